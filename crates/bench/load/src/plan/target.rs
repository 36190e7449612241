//! The targets of requests, and the requests.
//!
//! An [`Endpoint`] is what a connection is made to; a [`Request`] is what is sent on it. Requests
//! are turned into bytes once, before the run.

use std::num::NonZeroU32;
use std::path::PathBuf;

use bytes::Bytes;
use catamaran_tls::ClientIdentity;

use super::{Memcached, Operation};

/// An endpoint and the requests that are sent to it, in turn.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address, transport and protocol of its connections.
    pub endpoint: Endpoint,
    /// At least one; each connection goes through them in turn, beginning at its own number.
    pub requests: Vec<Request>,
}

/// The address, transport and protocol of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// TCP or a Unix socket.
    pub transport: Transport,
    /// TLS on it (`https`); `None`: plain. A fault with AJP13, which has none.
    pub tls: Option<Tls>,
    /// The protocol on top of it.
    pub protocol: Protocol,
}

/// What carries the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP to a name or address, looked up once before the run (the first address is taken, as ab
    /// does). With an HTTP proxy (ab `-X`) this is the proxy.
    Tcp {
        /// A name, an IPv4 address, or an IPv6 address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix stream socket (`http+unix:`, `ajp+unix:`).
    Unix(PathBuf),
}

/// The protocol on a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Protocol {
    /// HTTP/1.0 or 1.1, as each request says.
    Http,
    /// HTTP/2: under TLS if the server agrees to it (ALPN), and otherwise without asking (prior
    /// knowledge). A request's version is not written; its Host field is the authority asked for.
    Http2,
    /// AJP13, as a web server in front of a container speaks it.
    Ajp(Ajp),
    /// One of memcached's protocols. Of a request only method (`get` or `set`), name and weight count:
    /// see [`Request::operation`].
    Memcached(Memcached),
}

/// The attributes of an AJP13 request besides method, path and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ajp {
    /// Tomcat's `secret`; `None`: none is sent.
    pub secret: Option<Vec<u8>>,
    /// `remote_addr`: whom the request is said to come from. The command line says 127.0.0.1.
    pub remote_addr: String,
    /// `server_name`: the host asked for, as in the URL.
    pub server_name: String,
    /// `server_port`: the port asked for. The command line says 80 unless a Host field has one.
    pub server_port: u16,
    /// `is_ssl`: whether the client is said to have come over TLS. Default `false`.
    pub is_ssl: bool,
    /// The largest packet in bytes, 8192 to 65536, both ways (Tomcat `packetSize`). Default 8192.
    pub packet_bytes: usize,
}

/// One request.
///
/// For HTTP the engine writes `METHOD SP target SP version`, the headers as they stand here and
/// the body, byte for byte: Host, Connection and Content-Length are the caller's. For AJP13 it
/// encodes the same parts; Connection and Content-Length among the headers are then left out, for
/// AJP13 has no such question and takes the length from the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method, any token (ab `-m`).
    pub method: String,
    /// Path and query as sent; the whole URL for an HTTP proxy.
    pub target: String,
    /// The version written for HTTP, and `protocol` for AJP13.
    pub version: HttpVersion,
    /// The fields, in this order.
    pub headers: Vec<Header>,
    /// The body (ab `-p`, `-u`); empty: none.
    pub body: Bytes,
    /// Whether placeholders in the target, the header values and the body are filled in for each
    /// request, with Content-Length as long as the body then is: `{{n}}`, `{{uuid}}`,
    /// `{{rand LOW HIGH}}` and `{{csv COLUMN}}`. Otherwise braces are sent as they stand.
    pub has_placeholders: bool,
    /// The name under which the report counts it; `None`: it has no count of its own.
    pub name: Option<String>,
    /// How often it is sent, beside the target's other requests. Where all have the same weight, each
    /// connection sends them in turn.
    pub weight: NonZeroU32,
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name as sent.
    pub name: String,
    /// Its value as sent.
    pub value: Vec<u8>,
}

/// The version a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.0, ab's only one.
    Http10,
    /// HTTP/1.1.
    Http11,
}

impl HttpVersion {
    /// The version, as a request line has it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }
}

/// TLS, as the client wants it.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The name in SNI and, where certificates are verified, in the certificate; `None`: no SNI
    /// (ab `-I`), and then an address or name is taken from the transport for verification.
    pub server_name: Option<String>,
    /// Whether the server's certificate is looked at.
    pub verify: Verify,
    /// The versions offered, at least one; both by default (ab `-f`).
    pub versions: Vec<TlsVersion>,
    /// Cipher suites by their IANA or OpenSSL name (ab `-Z`); empty: all that rustls has.
    pub ciphers: Vec<String>,
    /// A certificate to show (ab `-E`).
    pub certificate: Option<ClientIdentity>,
}

/// Whether the server's certificate is looked at.
#[derive(Clone, Debug)]
pub enum Verify {
    /// No, as ab: the server may be anyone.
    Nothing,
    /// It must be one of these (PEM, one or more) or lead to one, and bear the server's name.
    Roots(Vec<u8>),
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Request {
    /// A GET without fields.
    pub fn get(target: impl Into<String>, version: HttpVersion) -> Self {
        Self {
            method: "GET".to_owned(),
            target: target.into(),
            version,
            headers: Vec::new(),
            body: Bytes::new(),
            has_placeholders: false,
            name: None,
            weight: NonZeroU32::MIN,
        }
    }

    /// An operation on memcached with a weight: one of weight 2 is drawn twice as often as one of weight 1. The report
    /// counts it under its word.
    pub fn operation(operation: Operation, weight: NonZeroU32) -> Self {
        Self {
            method: operation.word().to_owned(),
            name: Some(operation.word().to_owned()),
            weight,
            ..Self::get("-", HttpVersion::Http11)
        }
    }

    /// Adds a field behind the others.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push(Header {
            name: name.into(),
            value: value.into(),
        });
        self
    }
}
