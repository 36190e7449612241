//! HTTP/2 on the wire (RFC 9113), both roles, without I/O: bytes go in and come out, sockets and deadlines belong
//! to the callers.
//!
//! [`Server`] and [`Client`] take frames out of the bytes received and return their meaning as [`Event`]s. Answers that
//! the protocol demands (settings, PING, resets) are written to the caller's output at once; windows are widened as the
//! caller gives credit. The functions that send in both roles are those of [`Connection`].
//!
//! - **Nothing is queued here.** [`Connection::begin_data`] takes as many bytes as the windows allow; the caller keeps
//!   the others.
//! - **Heads are those of `catamaran_message`**, under the rules of HTTP/1.1 and of RFC 9113, sections 8.1 to 8.3.
//!   A malformed message is reset ([`Event::Failed`]), or the server answers it with a status ([`Event::Refused`]).
//! - **A [`Fault`] ends the connection**: nothing after it can be trusted.
//! - **Useless frames are counted** ([`Tally`]). How many are too many is decided by the caller, who has a clock.
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
