//! One request as it is handed to a backend, whichever protocol carries it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use catamaran_message::BodyLength;
use http::{HeaderMap, Method};

/// A request's head, ready to be sent: routed, normalised, cleaned of hop-by-hop fields.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method, any token.
    pub method: &'a Method,
    /// The normalised path, percent-encoded, beginning with `/`; or `*` for OPTIONS.
    pub path: &'a [u8],
    /// The query as received, without `?`.
    pub query: Option<&'a [u8]>,
    /// The version the client spoke, such as `HTTP/1.1`; AJP13 tells the application.
    pub protocol: &'a str,
    /// The value of `Host`. Over AJP13 it is taken from `headers`.
    pub host: &'a [u8],
    /// End-to-end fields, `Host` among them. Content-Length and Transfer-Encoding are not heeded;
    /// `body` rules.
    pub headers: &'a HeaderMap,
    /// How long the body is.
    pub body: BodyLength,
    /// The route that led to this backend, for AJP13's attribute `jvm_route`.
    pub jvm_route: Option<&'a str>,
    /// Who asks, for AJP13's own fields.
    pub client: ClientFacts<'a>,
}

/// What the application should know of the client's connection. AJP13 has fields for all of it;
/// over HTTP/1.1 it travels in `X-Forwarded-*`, which the front writes into the headers.
#[derive(Clone, Copy, Debug)]
pub struct ClientFacts<'a> {
    /// The client's address as the application should see it, trusted proxies looked through.
    pub remote_ip: IpAddr,
    /// The client's port, where it is known.
    pub remote_port: Option<u16>,
    /// The address the client connected to.
    pub local_ip: IpAddr,
    /// The host name the client asked for.
    pub server_name: &'a [u8],
    /// The port the client asked for.
    pub server_port: u16,
    /// Whether the client's connection is secure (TLS, or a trusted proxy says so).
    pub secure: bool,
}

impl ClientFacts<'_> {
    /// A client on this very host, for examples and probes.
    #[must_use]
    pub fn local() -> Self {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
        Self {
            remote_ip: local.ip(),
            remote_port: None,
            local_ip: local.ip(),
            server_name: b"localhost",
            server_port: local.port(),
            secure: false,
        }
    }
}
