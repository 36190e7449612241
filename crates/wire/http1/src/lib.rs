//! HTTP/1.1 on the wire, both roles, without I/O.
//!
//! Bytes go in and events come out ([`Server::receive`], [`Client::receive`]); messages go in and
//! bytes come out (`send_*`). Sockets, deadlines and routing are the caller's. What the same
//! bytes mean never depends on how a stream was cut into reads.
//!
//! - **One strict grammar.** Of a request, anything that two readers could take for two things is
//!   refused, with a [`Fault`] that names the reason and the status to answer. Of a response a
//!   little more is tolerated (lines that end in LF), never in its framing.
//! - **Framing is not relayed.** Content-Length and Transfer-Encoding become a [`BodyLength`]; the
//!   other role announces the body in its own way.
//! - **A connection is reused** only if both messages ended where their framing said
//!   ([`Server::can_reuse`], [`Client::can_reuse`]).
//! - **Limits on everything** received: [`Limits`].
//!
//! - **A third reader**, [`Skimmer`], is for load generators: as strict as [`Client`], by the same
//!   code, but it keeps nothing of what it reads.
//!
//! Bodies and field values are slices of the buffer they arrived in. Between exchanges a
//! connection holds no buffer and less than 200 bytes of state.
//!
//! # Example
//!
//! One exchange, both roles, without a network between them:
//!
//! ```
//! use bytes::BytesMut;
//! use catamaran_http1::{
//!     BodyLength, Client, ClientEvent, Limits, Request, Response, Server, ServerEvent,
//! };
//! use catamaran_message::{Fields, name::CONTENT_TYPE};
//! use http::{Method, StatusCode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (mut up, mut down) = (BytesMut::new(), BytesMut::new());
//!
//! let mut client = Client::new(Limits::response());
//! let request = Request {
//!     method: &Method::GET,
//!     path: b"/greeting",
//!     query: Some(b"to=you"),
//!     host: b"example.org",
//!     headers: &Fields::new(),
//!     body: BodyLength::Known(0),
//! };
//! client.send_request(&request, &mut up)?;
//! assert_eq!(up, "GET /greeting?to=you HTTP/1.1\r\nHost: example.org\r\n\r\n");
//!
//! let mut server = Server::new(Limits::request());
//! let Some(ServerEvent::Head(head)) = server.receive(&mut up)? else { unreachable!() };
//! assert_eq!(head.target.path, "/greeting");
//! let response = Response {
//!     status: StatusCode::OK,
//!     reason: None,
//!     headers: &Fields::from_iter([(CONTENT_TYPE, "text/plain")]),
//!     body: BodyLength::Unknown,
//! };
//! server.send_head(&response, &mut down)?;
//! server.send_data(b"hello", &mut down);
//! server.send_end(&mut down)?;
//! assert!(server.can_reuse());
//!
//! let Some(ClientEvent::Head(head)) = client.receive(&mut down)? else { unreachable!() };
//! assert_eq!(head.headers.text_of(CONTENT_TYPE), Some("text/plain"));
//! assert_eq!(client.receive(&mut down)?, Some(ClientEvent::Body("hello".into())));
//! assert_eq!(client.receive(&mut down)?, Some(ClientEvent::End));
//! assert!(client.can_reuse() && down.is_empty());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod body;
mod chunked;
mod client;
mod conn;
mod error;
mod head;
mod limits;
mod server;
mod skim;
mod syntax;

pub use catamaran_message::{
    Authority, BodyLength, Fields, Request, RequestHead, Response, ResponseHead, Scheme, Target,
};
pub use client::{Client, ClientEvent};
pub use error::{BodyError, Fault, RequestError, ResponseError};
pub use limits::Limits;
pub use server::{Server, ServerEvent};
pub use skim::{Http1Skim, KnownHead, Outline, Skimmer};
