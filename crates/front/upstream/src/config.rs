//! The configuration of one backend, as typed values.
//!
//! `catamaran-config` has the file's syntax, and docs/reference.md what each value means. The defaults are here,
//! in [`BackendConfig::new`], so a front without a file behaves alike. No value is an `Option` that means "use
//! the default".

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

/// The protocol spoken to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// AJP13, to Tomcat's, JBoss's or Undertow's AJP connector.
    Ajp,
    /// HTTP/1.1 with kept-alive connections.
    Http,
}

/// Where a backend listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host (name, IPv4, or IPv6 without brackets) and its port. A name is resolved beside the traffic.
    Tcp {
        /// Host name or address.
        host: String,
        /// TCP port, never 0.
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
/// A field is the key of that name in `[[upstream.NAME.backend]]` or `[upstream.NAME]` of docs/reference.md,
/// which has its meaning, unit, default and the directives of other servers. `protocol` and `address` are its
/// `url`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendConfig {
    /// Name in logs and counters.
    pub name: String,
    /// The protocol spoken.
    pub protocol: Protocol,
    /// Where to dial.
    pub address: Address,
    /// Share of the load under weighted policies, 1 or more.
    pub weight: u32,
    /// The suffix of the ids of its sessions, unique in its upstream.
    pub jvm_route: String,
    /// The replication group, whose members have its sessions, too.
    pub domain: Option<String>,
    /// The `jvm_route` of the backend that its sessions go to when it is out.
    pub fallback: Option<String>,
    /// The backend serves only if no backend with a lower distance can.
    pub distance: u32,
    /// Which requests it gets unless an operator says otherwise at run time.
    pub activation: Activation,
    /// Open connections to it over all workers, idle ones included.
    pub connections_max: usize,
    /// Exchanges that may wait for a connection.
    pub queue_max: usize,
    /// How long an exchange may wait for a connection.
    pub queue_timeout: Duration,
    /// How long an unused connection stays pooled.
    pub idle_timeout: Duration,
    /// How long a dial may take, name resolution included.
    pub connect_timeout: Duration,
    /// How long it may be silent before the first byte of a response, bodies of requests not counted.
    pub first_byte_timeout: Duration,
    /// How long it may be silent within a response, or not take the next bytes of a request.
    pub idle_body_timeout: Duration,
    /// How long a whole exchange may take; `None` is no limit.
    pub exchange_timeout: Option<Duration>,
    /// Whether it is put out while it cannot be connected to.
    pub eject: bool,
    /// The number of responses 5xx in a row that puts the backend out; `None`: no number does. A client that asks for a
    /// page that fails can put a backend out with it.
    pub eject_after_5xx: Option<u32>,
    /// After so long a silence while an exchange awaits its response it is suspect; `None`: never.
    pub suspect_after: Option<Duration>,
    /// Regular probes while the backend is up (`[upstream.NAME.probe]`); `None`: there are none.
    pub probe: Option<ProbeConfig>,
    /// How long its share grows after it was out.
    pub slow_start: Duration,
    /// Statuses that another backend is asked after, if the request may run twice.
    pub retry_status: Vec<RangeInclusive<u16>>,
    /// How an HTTP backend is told of the client's TLS and certificate.
    pub client_cert_fields: ClientCertFields,
    /// TLS on the connections: `https://` of the `url`, and the keys from `ca_file` to `client_key`.
    pub tls: Option<Arc<Trust>>,
    /// The HTTP/1.1 address for tunnels of a backend that speaks AJP13 (`upgrade_url`). One that speaks HTTP/1.1 takes
    /// tunnels itself.
    pub upgrade: Option<End>,
    /// Tunnels that may be open at a time, over all workers.
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
    /// By the backend's own address: see [`BackendConfig::own_host`].
    Backend,
    /// By this name.
    Named(HostName),
}

/// A host, with its port if that is not the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    /// Host and port.
    pub authority: Authority,
    /// The value of `Host`: `authority` as bytes.
    text: Bytes,
}

impl HostName {
    /// `None` if the text is no host, or has a user.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let authority = Authority::parse(&Bytes::copy_from_slice(text.as_bytes())).ok()?;
        let text = authority.to_bytes();
        Some(Self { authority, text })
    }

    /// The value of `Host`.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// Where to dial, and by what the peer there is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The address.
    pub address: Address,
    /// TLS on the connections, if there is.
    pub tls: Option<Arc<Trust>>,
}

/// The fields by which an HTTP backend is told of the client's TLS and certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertFields {
    /// No fields.
    #[default]
    Off,
    /// `Client-Cert`, and `Client-Cert-Chain` if the chain is told (RFC 9440).
    Rfc9440,
    /// The fields that Tomcat's `SSLValve` reads.
    Tomcat,
}

/// How a backend is probed while it is up. What it says of answers also holds while it is out. A field is the
/// key of that name in `[upstream.NAME.probe]` of docs/reference.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeConfig {
    /// The question of a probe.
    pub kind: ProbeKind,
    /// The pause between the end of a probe and the next probe, a tenth more or less.
    pub interval: Duration,
    /// How long a probe may take, connecting included.
    pub timeout: Duration,
    /// The number of answered probes in a row that brings the backend back.
    pub up: u32,
    /// The number of failed probes in a row that puts the backend out.
    pub down: u32,
}

/// What a probe asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// That it can be connected to.
    Connect,
    /// CPING; of an HTTP backend, that it can be connected to.
    Cping,
    /// A request, over the backend's protocol.
    Request(Box<ProbeRequest>),
}

/// The request of a probe, and what is a good answer: keys of `[upstream.NAME.probe]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// GET or HEAD.
    pub method: Method,
    /// Path and query (`path`).
    pub target: String,
    /// `Host`; `None` is the backend's address.
    pub host: Option<String>,
    /// Statuses that are good (`status`).
    pub statuses: Vec<RangeInclusive<u16>>,
    /// What must be found in the body; `None`: nothing.
    pub body: Option<String>,
}

impl ProbeConfig {
    /// A probe of this kind, with every default.
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

/// Settings of an AJP13 backend. A field is the key of that name in `[[upstream.NAME.backend]]` of
/// docs/reference.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AjpConfig {
    /// Size of a whole packet.
    pub packet_size: PacketSize,
    /// The shared secret, sent with each request (`secret`, `secret_file`).
    pub secret: Option<Secret>,
    /// A pooled connection idle for longer is asked CPING before its next use; `None`: none is.
    pub ping_after_idle: Option<Duration>,
    /// Whether each new connection is asked CPING before its first request.
    pub ping_fresh: bool,
    /// How long CPONG may take.
    pub ping_timeout: Duration,
    /// Whether a body of unknown length is announced by `Transfer-Encoding: chunked`, never beside Content-Length. The body
    /// is fetched by GET_BODY_CHUNK in any case.
    pub announce_chunked: bool,
}

/// A shared secret; it never shows in a log or a report.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret of this text, which AJP13 sends as it is.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Its bytes.
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
    /// Where requests go, and by which TLS.
    #[must_use]
    pub fn end(&self) -> (&Address, Option<&Trust>) {
        (&self.address, self.tls.as_deref())
    }

    /// The host name that is sent in the place of the one that the client asked for; `None`: the client's is sent.
    #[must_use]
    pub fn sent_host(&self) -> Option<&HostName> {
        match &self.host {
            SentHost::Named(name) => Some(name),
            SentHost::Client | SentHost::Backend => None,
        }
    }

    /// The host of its address; with the port over HTTP, if that is not the usual one. A port of AJP13 is
    /// none that a client could ask for. `None` for a Unix socket.
    #[must_use]
    pub fn own_host(&self) -> Option<HostName> {
        let Address::Tcp { host, port } = &self.address else {
            return None;
        };
        let usual = if self.tls.is_some() { 443 } else { 80 };
        let brackets = host.contains(':');
        let host = if brackets {
            format!("[{host}]")
        } else {
            host.clone()
        };
        match self.protocol {
            Protocol::Http if *port != usual => HostName::new(&format!("{host}:{port}")),
            Protocol::Http | Protocol::Ajp => HostName::new(&host),
        }
    }

    /// Whether requests go to it as HTTP, of any version, with fields for what AJP13 tells by itself.
    #[must_use]
    pub fn speaks_http(&self) -> bool {
        match self.protocol {
            Protocol::Http => true,
            Protocol::Ajp => false,
        }
    }

    /// Whether it can have tunnels.
    #[must_use]
    pub fn takes_tunnels(&self) -> bool {
        self.speaks_http() || self.upgrade.is_some()
    }

    /// Where requests for a tunnel go, and by which TLS.
    #[must_use]
    pub fn tunnel_end(&self) -> (&Address, Option<&Trust>) {
        match &self.upgrade {
            Some(end) => (&end.address, end.tls.as_deref()),
            None => self.end(),
        }
    }

    /// Whether a response with this status is to be had from another backend.
    #[must_use]
    pub fn retries_status(&self, status: StatusCode) -> bool {
        let mut ranges = self.retry_status.iter();
        ranges.any(|range| range.contains(&status.as_u16()))
    }

    /// A backend with every default.
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
