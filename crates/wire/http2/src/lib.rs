//! HTTP/2 on the wire (RFC 9113), both roles, without I/O: bytes go in and come out, sockets and deadlines are the
//! caller's.
//!
//! [`Server`] and [`Client`] take frames out of the bytes that were received and tell what they mean as [`Event`]s. What
//! the protocol answers by itself is written at once: settings, PING, resets, and windows once the caller has taken
//! what came. What both roles send is in [`Connection`].
//!
//! - **Nothing is queued here.** [`Connection::begin_data`] takes what the windows allow; the rest stays the caller's.
//! - **Heads are those of `catamaran_message`**, under the rules of HTTP/1.1 and those of RFC 9113, sections 8.1 to 8.3.
//!   What is malformed is reset ([`Event::Failed`]), what HTTP/1.1 answers is to be answered ([`Event::Refused`]).
//! - **A [`Fault`] ends the connection**: nothing behind it can be trusted.
//! - **Frames without use are counted** ([`Tally`]): how many are too many is for the caller, who has a clock.
//!
//! [`hpack`] compresses header fields; [`huffman`] is the code of strings that HTTP/2 and HTTP/3 share.
#![forbid(unsafe_code)]

mod block;
mod client;
mod conn;
mod encode;
mod error;
mod event;
mod frame;
pub mod hpack;
pub mod huffman;
mod limits;
mod request;
mod response;
mod server;
mod settings;
mod streams;
mod tally;

pub use client::Client;
pub use conn::{Connection, PREFACE};
pub use error::{Code, Fault, SendError, StreamFault};
pub use event::Event;
pub use limits::Limits;
pub use server::{Server, read_request};
pub use settings::Config;
pub use tally::Tally;
