//! The application side: AJP13 and HTTP/1.1 served to an application, what Tomcat's `<Connector>`
//! is.
//!
//! [`start`] binds the listeners of a [`Config`] and serves a [`Handler`] until
//! [`Running::shutdown`]. An application describes its answers as data (a [`Response`] with a
//! [`Body`] and a delay), so that one thread plays thousands of them; [`App`] is the built-in one.
//! Connections are sans-IO state machines on the codecs `catamaran-ajp` and `catamaran-http1`; a
//! driver ([`IoModel`]) moves their bytes, and the same bytes get the same answers on each.
//!
//! Safe by default: AJP beyond loopback does not start without a [`Secret`], identity and TLS
//! attributes are believed only from a peer that proved it or is on this machine, and request
//! attributes that are not known to be harmless refuse the request.
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
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "waiting for a pool's end is for a driver that owns one"
    )
)]
mod pool;
mod rope;
mod running;
mod service;
mod source;
mod trust;

pub use catamaran_ajp::PacketSize;

pub use crate::{
    app::App,
    application::Application,
    attribute::AllowedAttributes,
    blocking::{BlockingHandler, BodyReader, Responder, ResponseWriter},
    confidential::{ConfidentialPathError, ConfidentialPaths},
    config::{
        Address, Config, IoModel, Listener, Protocol, Secret, UnixSocketMode, UnixSocketModeError,
        UriForm,
    },
    counters::Snapshot,
    handler::{
        Attributes, Body, BodyLength, ClientProtocol, Handler, Identity, Origin, Request, Response,
        Route, Tls,
    },
    pipe::BodyError,
    running::{NoUring, Running, StartError, start},
    service::RequestBody,
    trust::{TrustedPeers, TrustedPeersError},
};
