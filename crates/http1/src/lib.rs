//! HTTP/1.1 on the wire, both roles, without I/O.
#![forbid(unsafe_code)]

mod body;
mod chunked;
mod client;
mod conn;
mod error;
mod head;
mod limits;
mod server;
mod syntax;

pub use body::BodyLength;
pub use client::{Client, ClientEvent};
pub use error::{BodyError, Fault, RequestError, ResponseError};
pub use head::{Authority, ReceivedHead, Request, RequestHead, ResponseHead, Scheme, Target};
pub use limits::Limits;
pub use server::{Server, ServerEvent};
