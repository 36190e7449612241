//! AJP13 on the wire, both roles, without I/O.
#![forbid(unsafe_code)]

pub mod client;
pub mod error;
pub mod packet;
pub mod server;

pub use client::{Attribute, Client, ClientConfig, ClientEvent, Request, ResponseHead};
pub use error::{BodyError, Fault, RequestError, ResponseError};
pub use packet::{PacketSize, PacketSizeError};
pub use server::{Attributes, End, RequestHead, Server, ServerConfig, ServerEvent};

/// How long a request's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// Exactly this many bytes; zero means that there is no body.
    Known(u64),
    /// Not known before its end.
    Unknown,
}
