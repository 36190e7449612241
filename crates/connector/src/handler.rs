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
/// Several workers may call it at the same time. A panic is answered with 500.
pub trait Handler: Send + Sync + 'static {
    /// Returns the response to one request. The request's body has not been read: only a response
    /// with [`Body::Echo`] or [`Response::after_body`] reads it, all others leave it unread.
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
    /// The method, such as GET.
    pub method: Method,
    /// The protocol that the *client* spoke, such as `HTTP/1.1`; over AJP, as the front states it.
    pub version: Bytes,
    /// The path, still percent-encoded; begins with `/`, or is `*` for `OPTIONS`.
    pub path: Bytes,
    /// The query after the `?`, as received; `None` if there is no `?`.
    pub query: Option<Bytes>,
    /// Header fields in the order received, without `Content-Length` and `Transfer-Encoding`, which
    /// [`body`](Self::body) stands for.
    pub headers: Fields,
    /// The length of the body.
    pub body: BodyLength,
    /// The addresses of the client's connection, and the host it asked for.
    pub origin: Origin,
    /// What the front states about the client's TLS connection; empty without TLS.
    pub tls: Tls,
    /// The user that the front has authenticated; `None` if it has not.
    pub user: Option<Bytes>,
    /// How the front has authenticated the user, such as `BASIC`.
    pub auth_type: Option<Bytes>,
    /// The name under which the front knows this application (AJP's `jvm_route`).
    pub route: Option<Bytes>,
    /// Further AJP request attributes, in the order sent.
    pub attributes: Vec<(Bytes, Bytes)>,
}

/// The ends of the client's connection: over AJP as the front states them, over HTTP those of the
/// socket.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The protocol of the connection to this application.
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
    /// The scheme of the client's request: `https` if its connection is encrypted, else `http`.
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

/// The user that the front has authenticated; an extension of a service's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: Option<Bytes>,
    /// How the user was authenticated, such as `BASIC`.
    pub auth_type: Option<Bytes>,
}

/// An extension of a service's request: the protocol that the client spoke, if the `http` crate has no such
/// version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientProtocol(pub Bytes);

/// The name under which the front knows this application (AJP's `jvm_route`); an extension of a
/// service's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route(pub Bytes);

/// Further AJP request attributes, in the order sent; an extension of a service's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes(pub Vec<(Bytes, Bytes)>);

/// A response as data, which the connector sends.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status, 200 to 999.
    pub status: StatusCode,
    /// Header fields. Fields for length and framing are ignored: the connector writes its own.
    pub headers: Fields,
    /// The body; not sent for HEAD, 204, 205 and 304.
    pub body: Body,
    /// How long to wait before the first byte is sent. This holds a timer, not a thread.
    pub delay: Duration,
    /// Whether to read the request's body to its end and throw it away before the delay and the
    /// response. Not for [`Body::Echo`], which would find nothing left.
    pub after_body: bool,
}

impl Response {
    /// A response without header fields or delay.
    pub fn new(status: StatusCode, body: Body) -> Self {
        Self {
            status,
            headers: Fields::new(),
            body,
            delay: Duration::ZERO,
            after_body: false,
        }
    }

    /// A response with a plain text in UTF-8.
    pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self::new(status, Body::Full(text.into()))
            .with_header(CONTENT_TYPE, "text/plain; charset=utf-8")
    }

    /// Sets one more header field; an earlier one of that name is replaced.
    #[must_use]
    pub fn with_header(mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.headers.insert(name.as_ref(), value);
        self
    }
}

/// A response body of any size, which takes constant memory.
#[derive(Clone, Debug)]
pub enum Body {
    /// The whole body as these bytes.
    Full(Bytes),
    /// `pattern` repeated until there are `length` bytes.
    Repeat {
        /// The bytes to repeat; if they are empty, so is the body.
        pattern: Bytes,
        /// The length of the whole body in bytes.
        length: u64,
    },
    /// `chunk`, sent `count` times: first at once, then each time after `every`. The length is not
    /// announced.
    Stream {
        /// The bytes sent each time.
        chunk: Bytes,
        /// How many times `chunk` is sent.
        count: u64,
        /// The pause between two sends.
        every: Duration,
    },
    /// `prefix`, then the request's body as it arrives.
    Echo {
        /// The bytes before the request's body.
        prefix: Bytes,
    },
}
