//! AJP13 on the wire, both roles, without I/O.
//!
//! AJP13 joins a web server (the *client role*, [`Client`]) to a servlet container (the *server
//! role*, [`Server`]) over a long-lived connection that carries one exchange after another. This
//! crate turns bytes into events and messages into bytes; sockets, timeouts, pools and HTTP belong
//! to its callers. Every limit is a setting or a constant, every refusal a [`Fault`] with a name.
//!
//! - [`client`] and [`server`]: each role's end of one connection. `receive` takes bytes out of the
//!   caller's buffer and yields events (`None`: it needs more bytes); the `send` functions append to
//!   the caller's output. Body bytes are handed out as slices of the input.
//! - [`message`]: every message, borrowed decode and appending encode, on [`wire`]'s primitives,
//!   framed by [`packet`], numbered by [`code`].
//! - `exchange`, private: the state machine that decides which message may come next.
//!
//! # Example
//! Both roles, joined by two buffers: a POST is answered with what it sent.
//! ```
//! use std::net::IpAddr;
//!
//! use bytes::BytesMut;
//! use catamaran_ajp::{
//!     BodyLength, Client, ClientConfig, ClientEvent, End, Facts, Fields, Request, Response, Server,
//!     ServerConfig, ServerEvent,
//! };
//! use http::{Method, StatusCode, Version};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::new(ClientConfig::default());
//! let mut server = Server::new(ServerConfig::default());
//! let (mut up, mut down) = (BytesMut::new(), BytesMut::new());
//!
//! // The web server sends the head and, unasked, the first packet of the body.
//! let request = Request {
//!     method: &Method::POST,
//!     path: b"/greeting",
//!     query: None,
//!     host: b"example.com",
//!     headers: &Fields::new(),
//!     body: BodyLength::Known(5),
//! };
//! let facts = Facts {
//!     version: Version::HTTP_11,
//!     remote_ip: IpAddr::from([192, 0, 2, 7]),
//!     server_name: b"example.com",
//!     server_port: 80,
//!     is_ssl: false,
//!     announce_chunked: false,
//!     attributes: &[],
//! };
//! client.send_request(&request, &facts, &mut up)?;
//! client.send_data(b"hello", &mut up);
//! client.finish_body(&mut up)?;
//!
//! // The container reads it and answers.
//! while let Some(event) = server.receive(&mut up, &mut down)? {
//!     match event {
//!         ServerEvent::Request(head) => {
//!             assert_eq!(head.path, "/greeting");
//!             let head = Response {
//!                 status: StatusCode::OK,
//!                 reason: None,
//!                 headers: &Fields::new(),
//!                 body: BodyLength::Unknown,
//!             };
//!             server.send_head(&head, &mut down)?;
//!         }
//!         ServerEvent::Body(bytes) => server.send_data(&bytes, &mut down),
//!         ServerEvent::BodyEnd => break,
//!     }
//! }
//! assert_eq!(server.send_end(&up, &mut down), End::Reuse);
//!
//! // The web server reads the response.
//! let mut body = Vec::new();
//! while let Some(event) = client.receive(&mut down, &mut up)? {
//!     match event {
//!         ClientEvent::Head(head) => assert_eq!(head.status, StatusCode::OK),
//!         ClientEvent::Body(bytes) => body.extend_from_slice(&bytes),
//!         ClientEvent::End => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!(body, b"hello");
//! assert!(client.can_reuse() && down.is_empty());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod client;
pub mod code;
pub mod error;
mod exchange;
mod field;
mod ip;
pub mod message;
pub mod packet;
pub mod server;
pub mod wire;

pub use catamaran_message::{BodyLength, Fields, Request, Response, ResponseHead};
pub use client::{Attribute, Client, ClientConfig, ClientEvent, Facts};
pub use error::{BodyError, Fault, RequestError, ResponseError};
pub use ip::IpText;
pub use packet::{PacketSize, PacketSizeError};
pub use server::{Attributes, End, RequestHead, Server, ServerConfig, ServerEvent, Ssl};
