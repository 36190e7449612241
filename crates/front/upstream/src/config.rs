//! The configuration of one backend, as typed values.
//!
//! `catamaran-config` has the file's syntax, and docs/reference.md what each value means. The defaults are here, in
//! [`BackendConfig::new`], so they also apply to a front without a file. No value is an `Option` whose `None` means
//! "use the default".

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
pub use catamaran_ajp::PacketSize;
pub use catamaran_balance::Activation;
use catamaran_message::Authority;
pub use catamaran_tls::{ClientIdentity, Roots, Trust, TrustFault, TrustSettings};
use http::{Method, StatusCode};

/// The protocol that the front speaks to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// AJP13, to Tomcat's, JBoss's or Undertow's AJP connector.
    Ajp,
    /// HTTP/1.1 with kept-alive connections.
    Http,
}

/// The address at which a backend listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host (name, IPv4, or IPv6 without brackets) and its port. A name is resolved apart from requests.
    Tcp {
        /// The host name, or IP address without brackets.
        host: String,
        /// The TCP port, never 0.
        port: u16,
    },
    /// The path of a Unix stream socket (Tomcat: `unixDomainSocketPath`).
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// One backend: an address, a protocol, and the limits of its pool and of each exchange.
///
/// A field is the key with the same name in `[[upstream.NAME.backend]]` or `[upstream.NAME]` of docs/reference.md,
/// which has its meaning, unit, default and the directives of other servers. `protocol` and `address` are parts of the
/// key `url`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendConfig {
    /// The backend's name in logs and counters.
    pub name: String,
    /// The protocol that the backend speaks.
    pub protocol: Protocol,
    /// The address to connect to.
    pub address: Address,
    /// The backend's share of the load in proportion to others', 1 or more.
    pub weight: u32,
    /// The suffix of the session ids that the backend gives out, unique in its upstream.
    pub jvm_route: String,
    /// The replication group, whose other members have copies of the backend's sessions; `None`: it is in none.
    pub domain: Option<String>,
    /// The `jvm_route` of the backend that gets its sessions when it is out; `None`: there is none.
    pub fallback: Option<String>,
    /// The backend serves only if no backend with a lower distance can.
    pub distance: u32,
    /// Which requests the backend gets, unless an operator changes that at run time.
    pub activation: Activation,
    /// The most open connections to the backend over all workers, including idle ones.
    pub connections_max: usize,
    /// The most exchanges that may wait for a connection.
    pub queue_max: usize,
    /// How long an exchange may wait for a connection.
    pub queue_timeout: Duration,
    /// How long an unused connection stays pooled.
    pub idle_timeout: Duration,
    /// How long a dial may take, including name resolution.
    pub connect_timeout: Duration,
    /// How long the backend may be silent before the first byte of a response, while no request body is being sent.
    pub first_byte_timeout: Duration,
    /// How long the backend may be silent within a response, or not accept the next bytes of a request.
    pub idle_body_timeout: Duration,
    /// How long a whole exchange may take; `None`: there is no limit.
    pub exchange_timeout: Option<Duration>,
    /// Whether the backend is put out while it cannot be connected to.
    pub eject: bool,
    /// The number of responses 5xx in a row that puts the backend out; `None`: no number does. A client that asks for a
    /// page that fails can put a backend out with it.
    pub eject_after_5xx: Option<u32>,
    /// How long the backend may be silent, while an exchange awaits its response, before it is suspect; `None`: it
    /// never is.
    pub suspect_after: Option<Duration>,
    /// Regular probes while the backend is up (`[upstream.NAME.probe]`); `None`: there are none.
    pub probe: Option<ProbeConfig>,
    /// How long the backend's share of the load grows after it was out.
    pub slow_start: Duration,
    /// Statuses at which another backend is asked, if the request may run twice.
    pub retry_status: Vec<RangeInclusive<u16>>,
    /// The fields by which an HTTP backend learns the client's TLS and certificate.
    pub client_cert_fields: ClientCertFields,
    /// The TLS of the connections: `https://` in the `url`, and the keys from `ca_file` to `client_key`; `None`: clear
    /// text.
    pub tls: Option<Arc<Trust>>,
    /// The HTTP/1.1 address to which tunnels of an AJP13 backend go (`upgrade_url`); `None`: such a backend takes none.
    /// A backend that speaks HTTP/1.1 takes tunnels itself.
    pub upgrade: Option<End>,
    /// The most tunnels that may be open at a time, over all workers.
    pub tunnels_max: usize,
    /// The host name that the front sends to the backend.
    pub host: SentHost,
    /// Settings that only AJP13 has.
    pub ajp: AjpConfig,
}

/// The host name that the front sends to a backend: in `Host` and, over AJP13, as the server's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SentHost {
    /// The host that the client asked for.
    #[default]
    Client,
    /// The host of the backend's own address: see [`BackendConfig::own_host`].
    Backend,
    /// A configured host name.
    Named(HostName),
}

/// A host, with its port if that is not the protocol's usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    /// The host with its port.
    pub authority: Authority,
    /// The bytes of `authority`, as the value of `Host`.
    text: Bytes,
}

impl HostName {
    /// Parses a host with an optional port; `None` if the text is no host, or has a user.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let authority = Authority::parse(&Bytes::copy_from_slice(text.as_bytes())).ok()?;
        let text = authority.to_bytes();
        Some(Self { authority, text })
    }

    /// The value of the field `Host`, as bytes.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// An address to connect to, and how the peer there is authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The address to connect to.
    pub address: Address,
    /// The TLS of the connections; `None`: clear text.
    pub tls: Option<Arc<Trust>>,
}

/// The fields by which an HTTP backend learns the client's TLS and certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertFields {
    /// No field is sent.
    #[default]
    Off,
    /// `Client-Cert`, and `Client-Cert-Chain` if the chain is sent, too (RFC 9440).
    Rfc9440,
    /// The fields that Tomcat's `SSLValve` reads.
    Tomcat,
}

/// How a backend is probed while it is up; which answers are good also holds while it is out. A field is the key with
/// the same name in `[upstream.NAME.probe]` of docs/reference.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeConfig {
    /// What a probe does.
    pub kind: ProbeKind,
    /// The pause between the end of a probe and the next probe, a tenth more or less.
    pub interval: Duration,
    /// How long a probe may take, including the connect.
    pub timeout: Duration,
    /// The number of answered probes in a row that brings the backend back.
    pub up: u32,
    /// The number of failed probes in a row that puts the backend out.
    pub down: u32,
}

/// What a probe does to see whether the backend is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// The probe only connects.
    Connect,
    /// The probe sends CPING and awaits CPONG; to an HTTP backend it only connects.
    Cping,
    /// The probe sends a request in the backend's protocol and checks the response.
    Request(Box<ProbeRequest>),
}

/// The request of a probe, and which responses are good: keys of `[upstream.NAME.probe]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// The method, GET or HEAD.
    pub method: Method,
    /// The path and query (`path`).
    pub target: String,
    /// The value of `Host`; `None`: the backend's address.
    pub host: Option<String>,
    /// The statuses of a good response (`status`).
    pub statuses: Vec<RangeInclusive<u16>>,
    /// A text that the body of a good response contains; `None`: any body is good.
    pub body: Option<String>,
}

impl ProbeConfig {
    /// Makes a probe of this kind, with defaults for the rest.
    #[must_use]
    pub fn new(kind: ProbeKind) -> Self {
        Self {
            kind,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            up: 2,
            down: 3,
        }
    }
}

impl Default for ProbeRequest {
    fn default() -> Self {
        Self {
            method: Method::GET,
            target: "/".to_owned(),
            host: None,
            statuses: vec![200..=399],
            body: None,
        }
    }
}

/// Settings of an AJP13 backend. A field is the key with the same name in `[[upstream.NAME.backend]]` of
/// docs/reference.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AjpConfig {
    /// The size of a whole packet in bytes.
    pub packet_size: PacketSize,
    /// The secret that is sent with each request (`secret`, `secret_file`); `None`: none is sent.
    pub secret: Option<Secret>,
    /// The idle time after which a pooled connection is tested with CPING before its next use; `None`: none is tested.
    pub ping_after_idle: Option<Duration>,
    /// Whether each new connection is tested with CPING before its first request.
    pub ping_fresh: bool,
    /// How long the answer to a CPING may take.
    pub ping_timeout: Duration,
    /// Whether a body of unknown length is announced by `Transfer-Encoding: chunked`, never beside Content-Length. In
    /// both cases the backend fetches the body by GET_BODY_CHUNK.
    pub announce_chunked: bool,
}

/// A shared secret; its `Debug` does not show it, so it never appears in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes a secret of this text, which AJP13 sends unchanged.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Default for AjpConfig {
    fn default() -> Self {
        Self {
            packet_size: PacketSize::DEFAULT,
            secret: None,
            ping_after_idle: Some(Duration::from_secs(10)),
            ping_fresh: false,
            ping_timeout: Duration::from_secs(1),
            announce_chunked: true,
        }
    }
}

impl BackendConfig {
    /// The address to which requests go, and its TLS; `None`: clear text.
    #[must_use]
    pub fn end(&self) -> (&Address, Option<&Trust>) {
        (&self.address, self.tls.as_deref())
    }

    /// The host name to send instead of the one that the client asked for; `None`: the client's is sent.
    #[must_use]
    pub fn sent_host(&self) -> Option<&HostName> {
        match &self.host {
            SentHost::Named(name) => Some(name),
            SentHost::Client | SentHost::Backend => None,
        }
    }

    /// The host of the backend's address; over HTTP with the port, if it is not the usual one. The port of AJP13 is
    /// left out, because no client could ask for it. `None` for a Unix socket.
    #[must_use]
    pub fn own_host(&self) -> Option<HostName> {
        let Address::Tcp { host, port } = &self.address else {
            return None;
        };
        let usual_port = if self.tls.is_some() { 443 } else { 80 };
        match self.protocol {
            Protocol::Http if *port != usual_port => HostName::new(&self.address.to_string()),
            // An IPv6 address has brackets in `Host`; with a port, `Address` has written them above.
            Protocol::Http | Protocol::Ajp if host.contains(':') => {
                HostName::new(&format!("[{host}]"))
            }
            Protocol::Http | Protocol::Ajp => HostName::new(host),
        }
    }

    /// Whether the backend speaks HTTP, of any version. It then gets as header fields what AJP13 has attributes for.
    #[must_use]
    pub fn speaks_http(&self) -> bool {
        self.protocol == Protocol::Http
    }

    /// Whether the backend can take tunnels: over HTTP, or at its `upgrade_url`.
    #[must_use]
    pub fn takes_tunnels(&self) -> bool {
        self.speaks_http() || self.upgrade.is_some()
    }

    /// The address to which requests for a tunnel go, and its TLS; `None`: clear text.
    #[must_use]
    pub fn tunnel_end(&self) -> (&Address, Option<&Trust>) {
        match &self.upgrade {
            Some(end) => (&end.address, end.tls.as_deref()),
            None => self.end(),
        }
    }

    /// Whether another backend is asked after a response with this status.
    #[must_use]
    pub fn retries_status(&self, status: StatusCode) -> bool {
        let mut ranges = self.retry_status.iter();
        ranges.any(|range| range.contains(&status.as_u16()))
    }

    /// Makes a backend with defaults for all settings.
    #[must_use]
    pub fn new(protocol: Protocol, address: Address) -> Self {
        let scheme = match (protocol, &address) {
            (Protocol::Ajp, Address::Tcp { .. }) => "ajp://",
            (Protocol::Http, Address::Tcp { .. }) => "http://",
            (Protocol::Ajp, Address::Unix(_)) => "ajp+unix:",
            (Protocol::Http, Address::Unix(_)) => "http+unix:",
        };
        let name = format!("{scheme}{address}");
        Self {
            jvm_route: name.clone(),
            domain: None,
            fallback: None,
            distance: 0,
            activation: Activation::Active,
            name,
            protocol,
            address,
            weight: 1,
            connections_max: 200,
            queue_max: 1000,
            queue_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(15),
            connect_timeout: Duration::from_secs(1),
            first_byte_timeout: Duration::from_secs(60),
            idle_body_timeout: Duration::from_secs(60),
            exchange_timeout: None,
            eject: true,
            eject_after_5xx: None,
            suspect_after: Some(Duration::from_secs(2)),
            probe: None,
            retry_status: Vec::new(),
            slow_start: Duration::from_secs(10),
            client_cert_fields: ClientCertFields::Off,
            tls: None,
            upgrade: None,
            tunnels_max: 1000,
            host: SentHost::Client,
            ajp: AjpConfig::default(),
        }
    }
}
