//! The facts about a request's client that a backend gets besides the request's head.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use catamaran_ajp::Attribute;
use catamaran_balance::Activation;
use catamaran_tls::Facts;
use http::Version;

/// The facts about the client's connection that the application may need. AJP13 has fields for all
/// of them; over HTTP/1.1 they travel in `X-Forwarded-*`, which the front writes into the headers.
#[derive(Clone, Copy, Debug)]
pub struct ClientFacts<'a> {
    /// The version of HTTP that the client speaks.
    pub version: Version,
    /// The client's address as the application should see it; trusted proxies may have given it.
    pub remote_ip: IpAddr,
    /// The client's port; `None`: it is not known.
    pub remote_port: Option<u16>,
    /// The address that the client connected to.
    pub local_ip: IpAddr,
    /// The host name that the client asked for.
    pub server_name: &'a [u8],
    /// The port that the client asked for.
    pub server_port: u16,
    /// Whether the client's connection is secure (TLS, or a trusted proxy says so).
    pub secure: bool,
    /// The route that led to this backend, for AJP13's attribute `jvm_route`.
    pub jvm_route: Option<&'a str>,
    /// Which requests the backend gets, for AJP13's attribute `JK_LB_ACTIVATION`, which Tomcat's
    /// `LoadBalancerDrainingValve` reads.
    pub activation: Option<Activation>,
    /// The client's TLS session; `None`: the client did not use TLS, or its details are not known.
    pub tls: Option<&'a Facts>,
    /// Whether the backend also gets the chain of the client's certificate.
    pub certificate_chain: bool,
    /// Further AJP13 attributes: the user, and others by name.
    pub attributes: &'a [Attribute<'a>],
}

impl ClientFacts<'_> {
    /// The facts of a client on this host, for examples and probes.
    #[must_use]
    pub fn local() -> Self {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
        Self {
            version: Version::HTTP_11,
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
