//! The configuration of one backend, as typed values.
//!
//! `catamaran-config` has the file's syntax and the documentation of defaults. The defaults are here,
//! in [`BackendConfig::new`], so a front without a file behaves alike. No value is an `Option` that
//! means "use the default".

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
use http::{HeaderValue, Method, StatusCode};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendConfig {
    /// Name in logs and counters. Default: the URL, such as `ajp://127.0.0.1:8009`.
    pub name: String,
    /// The protocol spoken.
    pub protocol: Protocol,
    /// Where to dial.
    pub address: Address,
    /// Share of the load under weighted policies, 1 or more. Default 1. mod_jk: `lbfactor`.
    pub weight: u32,
    /// The suffix of the ids of its sessions: Tomcat's `jvmRoute`. Unique in its upstream. Default:
    /// the name. mod_jk, httpd: `route`.
    pub jvm_route: String,
    /// The replication group: members with the same value have its sessions, too. Default: the text
    /// of `jvm_route` before its first dot, if it has one. mod_jk: `domain`.
    pub domain: Option<String>,
    /// The `jvm_route` of the backend that its sessions go to when it is out. Default: none. mod_jk,
    /// httpd: `redirect`.
    pub fallback: Option<String>,
    /// Strict preference: a backend serves only if none with a lower distance can. Default 0. mod_jk:
    /// `distance`; httpd: `lbset`; nginx: `backup`.
    pub distance: u32,
    /// Which requests it gets unless an operator says otherwise at run time. Default: all. mod_jk:
    /// `activation`; httpd: `status`.
    pub activation: Activation,
    /// Hard cap of open connections to this backend over all workers, idle ones included.
    /// Default 200, Tomcat's `maxThreads`: more would wait inside Tomcat unseen. mod_jk:
    /// `connection_pool_size`, but per process there.
    pub connections_max: usize,
    /// How many exchanges may wait for a connection when the cap is reached; one more is refused
    /// with 503. Default 1000; 0 refuses at once.
    pub queue_max: usize,
    /// How long an exchange may wait for a connection. Default 5 s. mod_jk:
    /// `connection_acquire_timeout`.
    pub queue_timeout: Duration,
    /// How long an unused connection stays pooled. Default 15 s; keep it below Tomcat's
    /// `keepAliveTimeout`, which is 20 s for HTTP in its stock `server.xml`. mod_jk: `connection_pool_timeout`.
    pub idle_timeout: Duration,
    /// How long a dial may take, name resolution included. Default 1 s, after which another backend
    /// is tried rather than waiting for a repeated SYN. mod_jk: `socket_connect_timeout`.
    pub connect_timeout: Duration,
    /// How long the backend may be silent from the end of the request's head to the first byte of the
    /// response. The transfer of a request's body does not count. Default 60 s. nginx:
    /// `proxy_read_timeout`; mod_jk: `reply_timeout`.
    pub first_byte_timeout: Duration,
    /// How long the backend may be silent between two reads of a response, or not take the next bytes
    /// of a request. Default 60 s. nginx: `proxy_read_timeout`, `proxy_send_timeout`.
    pub idle_body_timeout: Duration,
    /// How long a whole exchange may take. Default: no limit, as in nginx.
    pub exchange_timeout: Option<Duration>,
    /// Whether the backend is put out while it cannot be connected to. Default on. If it is off, each
    /// request tries it. nginx: `max_fails` (0 is off).
    pub eject: bool,
    /// So many responses 5xx in a row put the backend out while another one of its upstream answers well.
    /// Default: `None`, they do not. HAProxy: `observe layer7`, `error-limit`.
    pub eject_after_5xx: Option<u32>,
    /// The backend is suspect when no byte arrived on any of its connections for this time while an
    /// exchange awaits the first byte of its response. Then others are preferred, and an AJP13
    /// backend is asked CPING. Default 2 s; `None` never suspects.
    pub suspect_after: Option<Duration>,
    /// How it is probed while it is up. Default: it is not, failed requests alone lead to probes.
    /// mod_proxy_hcheck: `hcmethod`; HAProxy: `check`.
    pub probe: Option<ProbeConfig>,
    /// How long its share grows after it was out, from a tenth to all of its weight; 0 gives all at
    /// once. Default 10 s. nginx: `slow_start`; HAProxy: `slowstart`.
    pub slow_start: Duration,
    /// Statuses that another backend is asked after, if the request may run twice. Default: none.
    /// mod_jk: `fail_on_status`; nginx: `proxy_next_upstream http_503`.
    pub retry_status: Vec<RangeInclusive<u16>>,
    /// How an HTTP backend is told of the client's TLS and certificate. Default: it is not. AJP13 has
    /// fields of its own. nginx: `proxy_set_header ssl_client_escaped_cert`.
    pub client_cert_fields: ClientCertFields,
    /// TLS on the connections. Default: none. nginx: `proxy_ssl_*`; Tomcat: `SSLHostConfig`.
    pub tls: Option<Arc<Trust>>,
    /// Where a backend that speaks AJP13 takes requests for a tunnel, over HTTP/1.1. Default: nowhere.
    /// One that speaks HTTP/1.1 takes them itself. httpd: `ProxyPass ws://`.
    pub upgrade: Option<End>,
    /// Tunnels that may be open at a time; they do not count for `connections_max`. Default 1000.
    pub tunnels_max: usize,
    /// By what host it is called. Default: as the client called the front. httpd: `ProxyPreserveHost`;
    /// nginx: `proxy_set_header Host`.
    pub host: SentHost,
    /// Settings that only AJP13 has.
    pub ajp: AjpConfig,
}

/// By what host a backend is called: in `Host` and, over AJP13, as the server's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SentHost {
    /// As the client called the front.
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
    /// The same, as in `Host`.
    text: HeaderValue,
}

impl HostName {
    /// `None` if the text is no host, or has a user.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let authority = Authority::parse(&Bytes::copy_from_slice(text.as_bytes())).ok()?;
        let text = HeaderValue::from_maybe_shared(authority.to_bytes()).ok()?;
        Some(Self { authority, text })
    }

    /// As in `Host`.
    #[must_use]
    pub fn text(&self) -> &HeaderValue {
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
    /// None.
    #[default]
    Off,
    /// `Client-Cert`, and `Client-Cert-Chain` if the chain is told (RFC 9440).
    Rfc9440,
    /// Those that Tomcat's `SSLValve` reads.
    Tomcat,
}

/// How a backend is probed while it is up. What it says of answers also holds while it is out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeConfig {
    /// What it is asked.
    pub kind: ProbeKind,
    /// From the end of a probe to the beginning of the next, a tenth more or less. Default 5 s.
    /// HAProxy: `inter`.
    pub interval: Duration,
    /// How long a probe may take, connecting included. Default 2 s. HAProxy: `timeout check`.
    pub timeout: Duration,
    /// So many answered probes in a row bring the backend back. Default 2. HAProxy: `rise`.
    pub up: u32,
    /// So many failed probes in a row put it out. Default 3. HAProxy: `fall`.
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

/// The request of a probe, and what is a good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// GET or HEAD. Default GET.
    pub method: Method,
    /// Path and query. Default `/`.
    pub target: String,
    /// `Host`. Default: the backend's address.
    pub host: Option<String>,
    /// Statuses that are good. Default 200 to 399.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// What must be found in the first 64 KiB of the body. Default: nothing.
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

/// Settings of an AJP13 backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AjpConfig {
    /// Size of a whole packet, 8192 to 65536; must equal the connector's `packetSize`. Default 8192.
    /// mod_jk: `max_packet_size`.
    pub packet_size: PacketSize,
    /// The shared secret of the connector's `secret`, sent with each request. Default: none.
    pub secret: Option<Secret>,
    /// A pooled connection idle for longer is asked CPING before its next use. Default 10 s; `None`
    /// never asks. mod_jk: `connection_ping_interval`, `ping_mode`.
    pub ping_after_idle: Option<Duration>,
    /// Each new connection is asked CPING before its first request; no answer counts like a failed
    /// dial. Default off. mod_jk: `ping_mode` C, `connect_timeout`.
    pub ping_fresh: bool,
    /// How long CPONG may take. Default 1 s. mod_jk: `ping_timeout`.
    pub ping_timeout: Duration,
    /// Send `Transfer-Encoding: chunked` for a body of unknown length. Without it Tomcat gives the
    /// application no parameters of such a form, and Undertow (WildFly, JBoss) takes the request for
    /// one without a body. Default on, as mod_jk and mod_proxy_ajp do.
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

    /// By what it is called instead of by what the client asked for.
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

    /// Whether it can have tunnels.
    #[must_use]
    pub fn takes_tunnels(&self) -> bool {
        self.protocol == Protocol::Http || self.upgrade.is_some()
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
