//! A server of AJP13 and HTTP/1.1 for applications behind a front, like Tomcat's `<Connector>`.
//!
//! [`start`] binds the listeners of a [`Config`] and serves an [`Application`] until [`Running::shutdown`]. Connections
//! are sans-IO state machines on the codecs `catamaran-ajp` and `catamaran-http1`; a driver ([`IoModel`]) moves their
//! bytes, and the same bytes get the same answers on each, from each kind of application:
//!
//! | kind | runs | for |
//! |---|---|---|
//! | [`Handler`] | on the event loop, and must not block | answers that are data: a [`Response`] with a [`Body`] and a delay; the built-in [`App`] |
//! | [`Application::service`] | as tasks of a tokio runtime | axum, or any other tower service |
//! | [`Application::blocking`] | on threads of an executor | code that blocks, as a servlet does |
//!
//! The bodies of the last two stream in both directions at once, with back-pressure. An application may answer early,
//! leave the body unread, fail, panic, stall, or outlive its client; other requests are not affected. A response that
//! did not end is cut so that its client sees it. The request of a client that leaves is cancelled.
//!
//! Safe by default: AJP beyond loopback does not start without a [`Secret`]. Identity and TLS attributes are trusted
//! only from a peer that sent the secret or is listed. Request attributes that are not known to be harmless refuse the
//! request.
//!
//! The drivers `threads` and `uring` are features that are on by default: an application that needs neither leaves them
//! out, and with them all `unsafe` code of the crate.
//!
//! # A service
//!
//! An axum router over AJP13; `examples/axum.rs` is the whole program.
//!
//! ```
//! use axum::{Router, extract::Path, routing::get};
//! use catamaran_connector::{Address, Application, Config, Listener, Protocol, start};
//! # use std::{io::{Read, Write}, time::Duration};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Router::new()
//!     .route("/greet/{name}", get(|Path(name): Path<String>| async move { format!("hello, {name}") }));
//! let config = Config {
//!     listeners: vec![Listener {
//!         protocol: Protocol::Ajp,
//!         address: Address::Tcp("127.0.0.1:0".parse()?),
//!     }],
//!     ..Config::default()
//! };
//! let running = start(config, Application::service(app))?;
//!
//! let Address::Tcp(address) = running.addresses()[0].address else { unreachable!() };
//! let answer = tokio::task::spawn_blocking(move || greet(address)).await??;
//! assert!(answer.ends_with(b"hello, AJP\0AB\0\x02\x05\x01"), "a body, and the end of the response");
//! running.shutdown(Duration::from_secs(10));
//! # tokio::task::spawn_blocking(|| running.join()).await?;
//! # Ok(())
//! # }
//! # // GET /greet/AJP from a front.
//! # fn greet(address: std::net::SocketAddr) -> std::io::Result<Vec<u8>> {
//! #     let mut front = std::net::TcpStream::connect(address)?;
//! #     front.set_read_timeout(Some(Duration::from_secs(30)))?;
//! #     let mut head = vec![2, 2];
//! #     for text in ["HTTP/1.1", "/greet/AJP", "192.0.2.1", "", "localhost"] {
//! #         head.extend((text.len() as u16).to_be_bytes());
//! #         head.extend(text.bytes().chain([0]));
//! #     }
//! #     head.extend([0, 80, 0, 0, 0, 0xff]);
//! #     let mut packet = vec![0x12, 0x34];
//! #     packet.extend((head.len() as u16).to_be_bytes());
//! #     packet.extend(head);
//! #     front.write_all(&packet)?;
//! #     let mut answer = Vec::new();
//! #     while !answer.ends_with(b"AB\0\x02\x05\x01") {
//! #         let mut buffer = [0; 1024];
//! #         let count = front.read(&mut buffer)?;
//! #         assert!(count > 0, "no whole answer");
//! #         answer.extend_from_slice(&buffer[..count]);
//! #     }
//! #     Ok(answer)
//! # }
//! ```
//!
//! # A handler that blocks
//!
//! ```
//! use std::io;
//!
//! use catamaran_connector::{Application, BodyReader, Request, Responder};
//! use http::StatusCode;
//!
//! /// Sends the request's body back as it comes.
//! fn echo(_: &Request, body: &mut BodyReader<'_>, responder: Responder<'_>) -> io::Result<()> {
//!     let mut writer = responder.begin(StatusCode::OK);
//!     io::copy(body, &mut writer)?;
//!     Ok(())
//! }
//! let application = Application::blocking(echo);
//! ```
//!
//! # A handler on the event loop
//!
//! ```
//! use std::io::{Read, Write};
//! use std::time::Duration;
//!
//! use catamaran_connector::{Address, Config, Listener, Protocol, Request, Response, start};
//! use http::StatusCode;
//!
//! let config = Config {
//!     listeners: vec![
//!         Listener { protocol: Protocol::Ajp, address: Address::Tcp("127.0.0.1:0".parse()?) },
//!         Listener { protocol: Protocol::Http, address: Address::Tcp("127.0.0.1:0".parse()?) },
//!     ],
//!     ..Config::default()
//! };
//! let hello = |request: &Request| {
//!     let port = request.origin.server_port;
//!     Response::text(StatusCode::OK, format!("hello from port {port}\n"))
//! };
//! let running = start(config, hello)?;
//!
//! let Address::Tcp(address) = &running.addresses()[1].address else { unreachable!() };
//! let mut client = std::net::TcpStream::connect(address)?;
//! client.write_all(b"GET / HTTP/1.1\r\nHost: a:8080\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.ends_with("\r\n\r\nhello from port 8080\n"));
//!
//! running.shutdown(Duration::from_secs(10));
//! running.join();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(all(feature = "threads", feature = "uring")),
    allow(dead_code, reason = "what only a driver uses that is left out")
)]

mod app;
mod application;
mod attribute;
mod blocking;
mod confidential;
mod config;
mod conn;
mod counters;
mod handler;
mod io;
mod output;
mod pipe;
mod played;
mod pool;
mod running;
mod service;
mod source;
mod status;
mod trust;

pub use catamaran_ajp::PacketSize;
pub use catamaran_message::{Field, Fields};

pub use crate::app::App;
pub use crate::application::Application;
pub use crate::attribute::AllowedAttributes;
pub use crate::blocking::{BlockingHandler, BodyReader, Responder, ResponseWriter};
pub use crate::confidential::{ConfidentialPathError, ConfidentialPaths};
pub use crate::config::{
    Address, Config, IoModel, Listener, Protocol, Secret, StatusView, UnixSocketMode,
    UnixSocketModeError, UriForm,
};
pub use crate::counters::{Connections, Snapshot};
pub use crate::handler::{
    Attributes, Body, BodyLength, ClientProtocol, Handler, Identity, Origin, Request, Response,
    Route, Tls,
};
pub use crate::pipe::BodyError;
#[cfg(feature = "uring")]
pub use crate::running::NoUring;
pub use crate::running::{Running, StartError, start};
pub use crate::service::RequestBody;
pub use crate::status::{Status, Threads};
pub use crate::trust::{TrustedPeers, TrustedPeersError};
