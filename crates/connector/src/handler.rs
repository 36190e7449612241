//! The application's side of an exchange: the request, and the response it returns.
//!
//! A [`Handler`] runs on the event loop, so it must not block. It returns a description of its
//! response (a delay and a body that are *data*), and the connector sends it. A thousand delayed or
//! streaming responses then cost a timer each, and no threads.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
pub use catamaran_message::BodyLength;
use catamaran_message::Fields;
use catamaran_message::name::CONTENT_TYPE;
use http::{Method, StatusCode};

use crate::config::Protocol;

/// An application that answers at once, without blocking.
///
/// It may be called from several workers at the same time. A panic is answered with 500.
pub trait Handler: Send + Sync + 'static {
    /// The answer to one request. The request's body is not there yet: only an answer with
    /// [`Body::Echo`] or [`Response::after_body`] reads it, all others leave it unread.
    fn handle(&self, request: &Request) -> Response;
}

impl<F: Fn(&Request) -> Response + Send + Sync + 'static> Handler for F {
    fn handle(&self, request: &Request) -> Response {
        self(request)
    }
}

/// One request as the application sees it, whichever protocol brought it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The protocol the *client* spoke, such as `HTTP/1.1`; over AJP, the front's word.
    pub version: Bytes,
    /// The path, still percent-encoded; begins with `/`, or is `*` for `OPTIONS`.
    pub path: Bytes,
    /// What follows the `?`, raw.
    pub query: Option<Bytes>,
    /// Header fields in the order received, without `Content-Length` and `Transfer-Encoding`, which
    /// [`body`](Self::body) stands for.
    pub headers: Fields,
    /// How long the body is.
    pub body: BodyLength,
    /// Where the request came from and where it was meant to go.
    pub origin: Origin,
    /// What the front says of the client's TLS connection; empty without TLS.
    pub tls: Tls,
    /// Whom the front has authenticated, if it has.
    pub user: Option<Bytes>,
    /// How the front has authenticated the user, such as `BASIC`.
    pub auth_type: Option<Bytes>,
    /// The name under which the front knows this application (AJP's `jvm_route`).
    pub route: Option<Bytes>,
    /// Further AJP request attributes, in the order sent.
    pub attributes: Vec<(Bytes, Bytes)>,
}

/// The ends of the client's connection: the front's word over AJP, the socket's over HTTP.
#[derive(Clone, Debug)]
pub struct Origin {
    /// What the connection to this application speaks.
    pub protocol: Protocol,
    /// The client's address; `None` on a Unix socket.
    pub remote_addr: Option<Bytes>,
    /// The client's name, if the front looked it up.
    pub remote_host: Option<Bytes>,
    /// The client's port.
    pub remote_port: Option<u16>,
    /// The address that the client connected to.
    pub local_addr: Option<Bytes>,
    /// The host the client asked for, without port.
    pub server_name: Bytes,
    /// The port the client asked for.
    pub server_port: u16,
    /// Whether the client's connection is encrypted.
    pub secure: bool,
    /// The address at the other end of *this* connection; `None` on a Unix socket.
    pub peer: Option<IpAddr>,
}

impl Origin {
    /// `https` if the client's connection is encrypted.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

/// The client's TLS connection, as AJP's attributes describe it.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The version, such as `TLSv1.3`.
    pub protocol: Option<Bytes>,
    /// The cipher suite.
    pub cipher: Option<Bytes>,
    /// The session identifier, in hexadecimal.
    pub session: Option<Bytes>,
    /// The cipher's key size in bits.
    pub key_size: Option<u32>,
    /// The client's certificate (or chain), PEM.
    pub certificate: Option<Bytes>,
}

/// Whom the front has authenticated; an extension of a service's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: Option<Bytes>,
    /// How the user was authenticated, such as `BASIC`.
    pub auth_type: Option<Bytes>,
}

/// The protocol the client spoke, if that is none of `http`'s versions; an extension of a service's
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientProtocol(pub Bytes);

/// The name under which the front knows this application (AJP's `jvm_route`); an extension of a
/// service's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route(pub Bytes);

/// Further AJP request attributes, in the order sent; an extension of a service's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes(pub Vec<(Bytes, Bytes)>);

/// An answer, described rather than produced.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status, 200 to 999.
    pub status: StatusCode,
    /// Header fields; lengths and framing are the connector's business and ignored here.
    pub headers: Fields,
    /// The body; not sent for HEAD, 204, 205 and 304.
    pub body: Body,
    /// How long to wait before the first byte. Holds a timer, not a thread.
    pub delay: Duration,
    /// Whether to read the request's body to its end, and throw it away, before any of this.
    /// Not for [`Body::Echo`], which would find nothing left.
    pub after_body: bool,
}

impl Response {
    /// An answer without headers or delay.
    pub fn new(status: StatusCode, body: Body) -> Self {
        Self {
            status,
            headers: Fields::new(),
            body,
            delay: Duration::ZERO,
            after_body: false,
        }
    }

    /// A plain text.
    pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self::new(status, Body::Full(text.into()))
            .with_header(CONTENT_TYPE, "text/plain; charset=utf-8")
    }

    /// The same with one more header field; an earlier one of that name is replaced.
    #[must_use]
    pub fn with_header(mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.headers.insert(name.as_ref(), value);
        self
    }
}

/// A response body, of any size at a constant price in memory.
#[derive(Clone, Debug)]
pub enum Body {
    /// These bytes.
    Full(Bytes),
    /// `length` bytes: `pattern` over and over, cut at the end.
    Repeat {
        /// What is repeated; if empty, so is the body.
        pattern: Bytes,
        /// How many bytes there are in all.
        length: u64,
    },
    /// `chunk`, `count` times, each sent as soon as it is due: the first at once, the next `every`
    /// later. The length is not announced.
    Stream {
        /// What is sent each time.
        chunk: Bytes,
        /// How many times.
        count: u64,
        /// The pause between two.
        every: Duration,
    },
    /// `prefix`, then the request's body as it arrives.
    Echo {
        /// What comes before the request's body.
        prefix: Bytes,
    },
}
