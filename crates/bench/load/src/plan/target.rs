//! The targets of a plan: endpoints, and the requests that are sent to them.
//!
//! An [`Endpoint`] is the address that connections are made to; a [`Request`] is what is sent on
//! them. Requests are turned into bytes once, before the run.

use std::num::NonZeroU32;
use std::path::PathBuf;

use bytes::Bytes;
use catamaran_tls::ClientIdentity;

use super::{Memcached, Operation};

/// A server's endpoint, and the requests that are sent to it in turn.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address, transport and protocol of the target's connections.
    pub endpoint: Endpoint,
    /// At least one request; each connection sends them in turn, beginning at its own number.
    pub requests: Vec<Request>,
}

/// The address, transport and protocol of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The transport: TCP or a Unix socket.
    pub transport: Transport,
    /// The TLS options (`https`); `None`: no TLS. A fault with AJP13, which has no TLS.
    pub tls: Option<Tls>,
    /// The protocol on the transport.
    pub protocol: Protocol,
}

/// The transport of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP to a host, resolved once before the run (the first address is used, as in ab). With an
    /// HTTP proxy (ab `-X`) this is the proxy.
    Tcp {
        /// A host name, an IPv4 address, or an IPv6 address without brackets.
        host: String,
        /// The TCP port to connect to.
        port: u16,
    },
    /// A Unix stream socket (`http+unix:`, `ajp+unix:`).
    Unix(PathBuf),
}

/// The protocol on a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Protocol {
    /// HTTP/1.0 or 1.1, as set in each request.
    Http,
    /// HTTP/2: under TLS if the server agrees to it (ALPN), otherwise with prior knowledge, without
    /// asking. A request's version is not written; its Host field becomes the authority.
    Http2,
    /// AJP13, as a web server speaks it with a servlet container.
    Ajp(Ajp),
    /// One of memcached's protocols. Of a request only method (`get` or `set`), name and weight
    /// count: see [`Request::operation`].
    Memcached(Memcached),
}

/// The attributes of an AJP13 request besides method, path and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ajp {
    /// Tomcat's `secret`; `None`: none is sent.
    pub secret: Option<Vec<u8>>,
    /// `server_name`: the host, as in the URL.
    pub server_name: String,
    /// `server_port`: the port. The command line's default is 80, unless a Host field has another one.
    pub server_port: u16,
    /// `is_ssl`: whether the client came over TLS. Default `false`.
    pub is_ssl: bool,
    /// The largest packet in bytes, 8192 to 65536, both ways (Tomcat `packetSize`). Default 8192.
    pub packet_bytes: usize,
}

/// One request, as it will be sent.
///
/// For HTTP the engine writes `METHOD SP target SP version`, the headers as given here and the
/// body, byte for byte: Host, Connection and Content-Length are the caller's. For AJP13 it encodes
/// the same parts but leaves out Connection and Content-Length: AJP13 has no Connection field and
/// takes the length from the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method: any token (ab `-m`).
    pub method: String,
    /// The path and query as sent; for an HTTP proxy, the whole URL.
    pub target: String,
    /// The version in the request line of HTTP, and `protocol` in AJP13.
    pub version: HttpVersion,
    /// The header fields, in the order in which they are sent.
    pub headers: Vec<Header>,
    /// The body (ab `-p`, `-u`); empty: the request has none.
    pub body: Bytes,
    /// Whether the placeholders `{{n}}`, `{{uuid}}`, `{{rand LOW HIGH}}` and `{{csv COLUMN}}` in
    /// the target, the header values and the body are filled in for each request; Content-Length is
    /// then that of the body made. `false`: braces are sent as they are.
    pub has_placeholders: bool,
    /// The name under which the report counts the request; `None`: it is not counted by name.
    pub name: Option<String>,
    /// How often the request is sent, relative to the target's other requests. If all have the same
    /// weight, each connection sends them in turn.
    pub weight: NonZeroU32,
}

/// A header field: name and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The field's name as sent.
    pub name: String,
    /// The field's value as sent.
    pub value: Vec<u8>,
}

/// The HTTP version of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP version 1.0, the only one that ab has.
    Http10,
    /// HTTP version 1.1.
    Http11,
}

impl HttpVersion {
    /// The version as in a request line, such as `HTTP/1.1`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }
}

/// The TLS options of a client.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The host name for SNI and, if certificates are verified, for the certificate; `None`: no SNI
    /// (ab `-I`), and verification uses the transport's address or name.
    pub server_name: Option<String>,
    /// Whether the server's certificate is verified.
    pub verify: Verify,
    /// The versions offered, at least one; the command line's default is both (ab `-f`).
    pub versions: Vec<TlsVersion>,
    /// Cipher suites by their IANA or OpenSSL name (ab `-Z`); empty: all that rustls has.
    pub ciphers: Vec<String>,
    /// The client's certificate and key (ab `-E`); `None`: the client has none.
    pub certificate: Option<ClientIdentity>,
}

/// Whether the server's certificate is verified.
#[derive(Clone, Debug)]
pub enum Verify {
    /// The certificate is not verified, as in ab: any server is accepted.
    Nothing,
    /// The certificate must be, or lead to, one of these (PEM, one or more), and have the server's name.
    Roots(Vec<u8>),
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS version 1.2.
    Tls12,
    /// TLS version 1.3.
    Tls13,
}

impl Request {
    /// A GET request without header fields.
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

    /// An operation on memcached. Of two operations, one with twice the weight is chosen twice as
    /// often. The report counts it under its word.
    pub fn operation(operation: Operation, weight: NonZeroU32) -> Self {
        Self {
            method: operation.word().to_owned(),
            name: Some(operation.word().to_owned()),
            weight,
            ..Self::get("-", HttpVersion::Http11)
        }
    }

    /// Adds a header field after the others.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push(Header {
            name: name.into(),
            value: value.into(),
        });
        self
    }
}
