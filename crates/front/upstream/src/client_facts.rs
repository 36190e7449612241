//! What a backend is told of a request besides its head.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use catamaran_ajp::Attribute;
use catamaran_balance::Activation;
use catamaran_tls::Facts;

/// What the application should know of the client's connection. AJP13 has fields for all of it;
/// over HTTP/1.1 it travels in `X-Forwarded-*`, which the front writes into the headers.
#[derive(Clone, Copy, Debug)]
pub struct ClientFacts<'a> {
    /// The version the client spoke, such as `HTTP/1.1`.
    pub protocol: &'a str,
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
    /// The route that led to this backend, for AJP13's attribute `jvm_route`.
    pub jvm_route: Option<&'a str>,
    /// Which requests the backend gets, for AJP13's `JK_LB_ACTIVATION`: Tomcat's
    /// `LoadBalancerDrainingValve` acts upon it.
    pub activation: Option<Activation>,
    /// What the client's own TLS agreed on, if it came over TLS to us.
    pub tls: Option<&'a Facts>,
    /// Whether a backend is told the chain of the client's certificate, too.
    pub certificate_chain: bool,
    /// What AJP13 tells besides: the user, and attributes by name.
    pub attributes: &'a [Attribute<'a>],
}

impl ClientFacts<'_> {
    /// A client on this very host, for examples and probes.
    #[must_use]
    pub fn local() -> Self {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
        Self {
            protocol: "HTTP/1.1",
            remote_ip: local.ip(),
            remote_port: None,
            local_ip: local.ip(),
            server_name: b"localhost",
            server_port: local.port(),
            secure: false,
            jvm_route: None,
            activation: None,
            tls: None,
            certificate_chain: false,
            attributes: &[],
        }
    }
}
