//! The configuration of the front, as typed values.
//!
//! `catamaran-config` reads the file and converts it into these types; the defaults are here. No
//! value is an `Option` that means "use the default", and no value is a string that is parsed later.

pub(crate) mod attributes;
pub(crate) mod cache;
pub(crate) mod compress;
pub(crate) mod members;
pub(crate) mod pages;
pub(crate) mod retry_sent;
pub(crate) mod rules;
pub(crate) mod template;

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use attributes::{AttributeSource, ClientFact, RequestAttributes, TlsFact};
use bytes::Bytes;
pub use cache::{CacheConfig, FreshnessRules, QueryRule, SetCookie};
pub use catamaran_balance::Policy;
pub use catamaran_coding::Coding;
pub use catamaran_discover::{
    AdvertConfig, DnsKind, DnsSource, FileSource, FoundMember, FoundState, McmpSource,
    MemberSource, Place as MemberPlace, Speech,
};
pub use catamaran_files::{EtagRule, FilesConfig, Links};
pub use catamaran_http1::Limits;
use catamaran_message::name;
pub use catamaran_message::{FieldName, NameRef, Traits};
pub use catamaran_tls::{ClientCertificate, ProfileSettings, Protocols, Version as TlsVersion};
pub use catamaran_upstream::config::{
    Activation, Address, AjpConfig, BackendConfig, ClientCertFields, ClientIdentity, End, HostName,
    PacketSize, ProbeConfig, ProbeKind, ProbeRequest, Protocol, Roots, Secret, SentHost, Trust,
    TrustFault, TrustSettings,
};
pub use compress::{CompressConfig, MediaPattern};
use http::{HeaderValue, StatusCode};
use ipnet::IpNet;
pub use members::{MemberTemplate, MemberTrust, MembersConfig};
pub use pages::{ErrorPages, Page};
pub use retry_sent::RetrySentRule;
pub use rules::{CookieFlags, Exclusion, FieldRule, Redirect, Rewrite, RouteRules};
pub use template::{Placeholder, Template, TemplateError};

use crate::path;

/// The whole front.
#[derive(Clone, Debug)]
pub struct Config {
    /// Settings of all listeners.
    pub server: ServerConfig,
    /// Profiles of TLS, which listeners name.
    pub tls: Vec<TlsConfig>,
    /// Where clients are accepted; at least one.
    pub listeners: Vec<ListenerConfig>,
    /// The groups of backends, by unique name.
    pub upstreams: Vec<UpstreamConfig>,
    /// Caches, by unique name, which routes name. Default: none.
    pub caches: Vec<CacheConfig>,
    /// The routes. A request without a match is answered 404; there is no default backend.
    pub routes: Vec<RouteConfig>,
    /// Pages of the operator's own, on routes that have none and for requests without a route. Default:
    /// none, the front writes short ones itself.
    pub error_pages: Option<Arc<ErrorPages>>,
    /// The access log.
    pub log: LogConfig,
    /// Where the front tells of itself and is steered. Default: nowhere. nginx: `stub_status`;
    /// httpd: `mod_status`, `balancer-manager`; mod_jk: a `status` worker.
    pub admin: Option<AdminConfig>,
}

impl Config {
    /// A front that passes all requests of these listeners to one upstream, with every default and without
    /// a log.
    #[must_use]
    pub fn of_one(listeners: Vec<ListenerConfig>, upstream: UpstreamConfig) -> Self {
        let target = RouteTarget::Upstream(upstream.name.clone());
        Self {
            server: ServerConfig::default(),
            tls: Vec::new(),
            listeners,
            upstreams: vec![upstream],
            caches: Vec::new(),
            routes: vec![RouteConfig::new("/", target)],
            error_pages: None,
            log: LogConfig {
                access: AccessLogTarget::Off,
                ..LogConfig::default()
            },
            admin: None,
        }
    }

    /// Files that all workers together may keep open, besides those that are sent. None if no route has files.
    #[must_use]
    pub fn files_kept_open(&self) -> usize {
        let mut rules = self.routes.iter().filter_map(|route| route.rules.as_ref());
        if rules.any(|rules| rules.files.is_some()) {
            self.server.workers.get() * self.server.files_open
        } else {
            0
        }
    }
}

/// The admin listener: it has a thread of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminConfig {
    /// Where it listens; at least one address.
    pub addresses: Vec<ListenAddress>,
    /// The permissions of the file of a Unix socket, as `chmod` takes them. Default 0600: who
    /// may connect may change everything.
    pub socket_mode: u32,
    /// What a client of TCP must know to change anything. Default: none, so that such clients only
    /// read.
    pub token: Option<Secret>,
    /// Names, in lower case, that clients of TCP may call this listener by, besides `localhost` and
    /// its address. Default: none.
    pub hosts: Vec<String>,
    /// Where changes are kept for a restart. Default: nowhere. HAProxy: `server-state-file`.
    pub state_file: Option<PathBuf>,
    /// Whether nobody can change anything. Default off.
    pub read_only: bool,
    /// The upstreams without which the front says at `/readyz` that it is not ready, while they accept no
    /// new clients. Default: `None`, all of them.
    pub ready: Option<Vec<String>>,
    /// Values of variables and of files that the file names, which are shown only to clients that have the token, run the
    /// front, or is root. Default: none.
    pub hidden: Vec<HiddenValue>,
}

/// A value that the configuration has from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenValue {
    /// The value.
    pub value: Secret,
    /// What is shown in its place: `${NAME}`, or the path of the file.
    pub name: String,
}

impl AdminConfig {
    /// An admin listener at these addresses, with every default.
    #[must_use]
    pub fn new(addresses: Vec<ListenAddress>) -> Self {
        Self {
            addresses,
            socket_mode: 0o600,
            token: None,
            hosts: Vec::new(),
            state_file: None,
            read_only: false,
            ready: None,
            hidden: Vec::new(),
        }
    }
}

/// The settings that hold for all listeners.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Workers: event loops, a thread each. Default: one per core. nginx: `worker_processes`.
    pub workers: NonZeroUsize,
    /// How long a drain lets exchanges finish before their connections are cut. Default 30 s.
    /// nginx: `worker_shutdown_timeout`.
    pub drain_timeout: Duration,
    /// How long a front that is asked to stop serves on before it drains, while `/readyz` says no, so that
    /// a load balancer before it notices. Default none. HAProxy: `grace`; Kubernetes: a `preStop` sleep.
    pub drain_delay: Duration,
    /// Peers whose `Forwarded` and `X-Forwarded-*` fields are believed. Default: none. nginx:
    /// `set_real_ip_from`; httpd: `RemoteIPTrustedProxy`.
    pub trusted_proxies: Vec<IpNet>,
    /// Names, in lower case, of fields with an underscore that are passed on; all other such fields
    /// are dropped. Default: none. nginx: `underscores_in_headers`.
    pub underscore_fields: Vec<String>,
    /// Connections of clients over all workers; one more is closed at once. Default: 20000, or what `files_max`
    /// leaves if that is less. nginx: `worker_connections`.
    pub connections_max: Option<usize>,
    /// How many files the process may have open. Of those that connections to all backends leave, clients get as many
    /// as `connections_max` allows, and at least half of all. Default: nobody says. Not in the file: the system has
    /// the limit.
    pub files_max: Option<u64>,
    /// Connections of one client address (for IPv6, of one /64 network) over all workers; one more
    /// is closed at once. Trusted proxies and Unix sockets are not counted. Default: no limit.
    /// nginx: `limit_conn`.
    pub connections_per_address: Option<NonZeroUsize>,
    /// The field by which backends get the request's id, the same as in the access log. One that a
    /// trusted proxy sent is passed on instead. Default `X-Request-Id`; `None` sends none.
    pub request_id: Option<FieldName>,
    /// The pseudonym in `Via` (RFC 9110, section 7.6.3). Default `catamaran`; `None` writes none.
    pub via: Option<String>,
    /// Bytes of memory that compressing responses may hold in all workers together; a response beyond is
    /// sent as it is. Default 64 MiB.
    pub compress_memory: u64,
    /// Files that each worker keeps open, besides those that it sends. Default 1000; 0 keeps none. nginx:
    /// `open_file_cache`.
    pub files_open: usize,
    /// Bytes of memory in which each worker keeps small files, and the names of files. Default 16 MiB; 0
    /// keeps none.
    pub files_memory: u64,
    /// A file to which the secrets of all TLS sessions are appended, for debugging. Default: none; not
    /// in the file, a reload does not change it.
    pub tls_key_log: Option<PathBuf>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            drain_timeout: Duration::from_secs(30),
            drain_delay: Duration::ZERO,
            trusted_proxies: Vec::new(),
            underscore_fields: Vec::new(),
            connections_max: None,
            files_max: None,
            connections_per_address: None,
            request_id: Some(name::X_REQUEST_ID.into()),
            via: Some("catamaran".to_owned()),
            compress_memory: 64 << 20,
            files_open: 1000,
            files_memory: 16 << 20,
            tls_key_log: None,
        }
    }
}

impl ServerConfig {
    /// How many connections clients may have.
    pub(crate) fn clients_max(&self) -> usize {
        self.connections_max.unwrap_or(20_000)
    }
}

/// Where clients are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// An address and port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// The path of a Unix stream socket, created with mode 0660; a stale one is replaced.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// How a request's query is passed on to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryForm {
    /// All printable ASCII as the client sent it. Bytes beyond ASCII are escaped.
    AsReceived,
    /// As RFC 3986 demands: the characters `"<>[\]^`{|}` are escaped, and a percent sign that begins
    /// no escape becomes `%25`.
    Escaped,
}

/// One listener and the limits of its clients.
///
/// Each field is the key of that name of `[[listen]]` in `docs/reference.md`, which has its meaning, unit, default and
/// the directives of other servers.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// A name for routes to say whose clients they are for; `None`: its address says it.
    pub name: Option<String>,
    /// Where to listen.
    pub address: ListenAddress,
    /// How long an idle connection waits for the next request.
    pub keep_alive_timeout: Duration,
    /// Requests on one connection before it is closed.
    pub keep_alive_requests: u64,
    /// The deadline for a head, from its first byte (from the accept, for the first).
    pub head_timeout: Duration,
    /// How long a client may be silent within a body.
    pub body_timeout: Duration,
    /// How long a client may refuse to take the next bytes of a response.
    pub write_timeout: Duration,
    /// Bytes a second that a client must send of a body, on average; 0 demands none.
    pub body_rate_min: u64,
    /// Bytes a second that a client must take of a response, on average; 0 demands none.
    pub write_rate_min: u64,
    /// Bytes of the largest body a client may send; `None` is no limit.
    pub body_max: Option<u64>,
    /// Whether a client is served that closes its sending side before it has its response.
    pub serve_half_closed: bool,
    /// How queries are passed on.
    pub query: QueryForm,
    /// Bytes of a request's body that are read after its response.
    pub linger_max: u64,
    /// How long such bytes are read.
    pub linger_timeout: Duration,
    /// Limits of a request's head and of chunked framing: the keys from `head_max` on.
    pub limits: Limits,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Who may send that header.
    pub proxy_protocol_from: Vec<IpNet>,
    /// Whether those proxies end TLS of all clients, where their headers do not tell.
    pub proxy_protocol_tls: bool,
    /// The profile of TLS that clients are served with; `None` is clear text.
    pub tls: Option<String>,
    /// The protocols that clients may speak.
    pub protocols: Protocols,
    /// Limits of connections that speak HTTP/2: the keys that begin with `h2_`.
    pub http2: Http2Config,
    /// The port of `https://` that clients in clear are sent to; `None`: they are served.
    pub redirect_https: Option<u16>,
    /// `Strict-Transport-Security` of responses over TLS; `None`: only the backend says it.
    pub hsts: Option<HeaderValue>,
    /// The directory with the answers to ACME's challenges; `None`: routes answer them.
    pub acme_webroot: Option<PathBuf>,
}

/// The limits of one client's connection that speaks HTTP/2, which it is told at its beginning.
///
/// Each field is the key of that name, with `h2_` before it, of `[[listen]]` in `docs/reference.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Config {
    /// Requests at a time.
    pub streams_max: u32,
    /// Bytes of one request's body that the client may send ahead of the backend's taking them.
    pub window: u32,
    /// As [`Self::window`], for all requests of a connection together.
    pub connection_window: u32,
    /// Requests a second that a client may give up, or make the front reset, for long.
    pub resets_per_second: u32,
    /// As [`Self::resets_per_second`], for peers in [`ServerConfig::trusted_proxies`].
    pub resets_per_second_trusted: u32,
}

impl Default for Http2Config {
    fn default() -> Self {
        Self {
            streams_max: 100,
            window: 256 * 1024,
            connection_window: 1024 * 1024,
            resets_per_second: 20,
            resets_per_second_trusted: 2000,
        }
    }
}

impl ListenerConfig {
    /// The label of the listener for operators: its name, or else its address.
    #[must_use]
    pub fn label(&self) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| self.address.to_string())
    }

    /// Whether its clients come over TLS: to it, or to proxies that end TLS and need not say so.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.tls.is_some() || self.proxy_protocol && self.proxy_protocol_tls
    }

    /// A listener with every default.
    #[must_use]
    pub fn new(address: ListenAddress) -> Self {
        Self {
            name: None,
            address,
            keep_alive_timeout: Duration::from_secs(60),
            keep_alive_requests: 10_000,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(15),
            write_timeout: Duration::from_secs(30),
            body_rate_min: 500,
            write_rate_min: 500,
            body_max: None,
            serve_half_closed: false,
            query: QueryForm::AsReceived,
            linger_max: 10 << 20,
            linger_timeout: Duration::from_secs(30),
            // With up to six fields of our own a container gets 100, the limit of Tomcat.
            limits: Limits {
                fields: 94,
                ..Limits::request()
            },
            proxy_protocol: false,
            proxy_protocol_from: Vec::new(),
            proxy_protocol_tls: false,
            tls: None,
            protocols: Protocols::Http1,
            http2: Http2Config::default(),
            redirect_https: None,
            hsts: None,
            acme_webroot: None,
        }
    }
}

/// A profile of TLS: certificates, the trust in clients, and the limits of handshakes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// Unique name, used by listeners, logs and metrics.
    pub name: String,
    /// Certificates with their keys; at least one.
    pub certificates: Vec<CertificateConfig>,
    /// Who may issue certificates of clients, as PEM. nginx: `ssl_client_certificate`.
    pub client_ca: Option<PathBuf>,
    /// Which certificates of clients were revoked, as PEM. nginx: `ssl_crl`.
    pub client_crl: Option<PathBuf>,
    /// The keys of tickets, which several fronts share. Default: each process makes its own. nginx:
    /// `ssl_session_ticket_key`.
    pub ticket_keys_file: Option<PathBuf>,
    /// The settings that need no file.
    pub settings: ProfileSettings,
    /// The deadline of a handshake, from the accept. Default 10 s. nginx: `ssl_handshake_timeout`.
    pub handshake_timeout: Duration,
    /// Handshakes that one worker may have under way; for one more the one that stalls for longest is
    /// closed. Default 256.
    pub handshakes_max: usize,
    /// How often files are compared with what they were; a change that lasts for a further period
    /// is put in force. Default 30 s; `None` leaves it to reloads.
    pub certificate_watch: Option<Duration>,
}

impl TlsConfig {
    /// A profile of these certificates with every default.
    #[must_use]
    pub fn new(name: impl Into<String>, certificates: Vec<CertificateConfig>) -> Self {
        Self {
            name: name.into(),
            certificates,
            client_ca: None,
            client_crl: None,
            ticket_keys_file: None,
            settings: ProfileSettings {
                strict_sni: false,
                version_min: TlsVersion::Tls12,
                client_certificate: ClientCertificate::Off,
                client_certificate_chain: false,
                tickets: true,
                ticket_rotation: Duration::from_secs(12 * 60 * 60),
            },
            handshake_timeout: Duration::from_secs(10),
            handshakes_max: 256,
            certificate_watch: Some(Duration::from_secs(30)),
        }
    }
}

/// The files of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateConfig {
    /// The certificate, then those of its issuers, as PEM.
    pub chain: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
    /// Whether it serves clients that ask for another name or for none. Default: the first does.
    pub default: bool,
}

/// A named group of backends with a policy. A field is the key or table of that name in `[upstream.NAME]` of
/// docs/reference.md, with its meaning, default and the directives of other servers.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// Unique name, used by routes, logs and counters.
    pub name: String,
    /// How a backend is picked.
    pub policy: Policy,
    /// The part of a request that decides its backend under [`Policy::Hash`].
    pub hash_by: HashBy,
    /// The backends of the file; at least one, unless members are found.
    pub backends: Vec<BackendConfig>,
    /// Where further members are found; `None`: nowhere.
    pub members: Option<Arc<MembersConfig>>,
    /// The members that were found; a configuration read from a file has none.
    pub(crate) found: Vec<BackendConfig>,
    /// Further attempts after a failed one.
    pub retries: u32,
    /// Which requests are sent again that a backend may have received.
    pub retry_sent: RetrySentRule,
    /// How much of the weight may be out because of missing answers, in percent; 100 is no limit.
    pub unwell_max: u8,
    /// How sessions stay with their backends; `None`: they do not.
    pub sticky: Option<StickyConfig>,
    /// The user and the named attributes for AJP backends: `remote_user`, `auth_type` and the table `attributes`.
    pub attributes: Option<Arc<RequestAttributes>>,
}

impl UpstreamConfig {
    /// A group of these backends, with every default.
    #[must_use]
    pub fn new(name: impl Into<String>, backends: Vec<BackendConfig>) -> Self {
        Self {
            name: name.into(),
            policy: Policy::default(),
            hash_by: HashBy::Address,
            backends,
            members: None,
            found: Vec::new(),
            retries: 2,
            retry_sent: RetrySentRule::Idempotent,
            unwell_max: 50,
            sticky: None,
            attributes: None,
        }
    }

    /// Every member, those of the file first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &BackendConfig> + Clone {
        self.backends.iter().chain(&self.found)
    }
}

/// What of a request leads to its backend under [`Policy::Hash`]. A request that does not have it
/// goes to any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashBy {
    /// The client's address, trusted proxies looked through. nginx: `ip_hash`, of whole addresses.
    Address,
    /// The path, decoded, without parameters and query.
    Path,
    /// The first cookie of that name.
    Cookie(String),
    /// The first field of that name.
    Header(FieldName),
    /// The first parameter of the query of that name, as received.
    Query(String),
}

/// How requests of a session are recognised and where they go. A field is the key of that name in
/// `[upstream.NAME.sticky]` of docs/reference.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyConfig {
    /// Cookies that hold a session id.
    pub cookies: Vec<String>,
    /// Path parameters that hold a session id.
    pub parameters: Vec<String>,
    /// Where ids are looked for first.
    pub first: IdFirst,
    /// The character between a session id and its route; `None`: the whole id is the route.
    pub separator: Option<u8>,
    /// Whether a session whose backend is out is answered 503 instead of being moved.
    pub force: bool,
    /// How long after its last request a session may come again.
    pub session_timeout: Duration,
    /// Whether a session counts as seen whose id no response gave out here.
    pub count_unknown: bool,
    /// A cookie of the front's own; `None`: there is none.
    pub set_cookie: Option<StickyCookie>,
}

impl Default for StickyConfig {
    fn default() -> Self {
        Self {
            cookies: vec!["JSESSIONID".to_owned()],
            parameters: vec!["jsessionid".to_owned()],
            first: IdFirst::Cookie,
            separator: Some(b'.'),
            force: false,
            session_timeout: Duration::from_secs(30 * 60),
            count_unknown: false,
            set_cookie: None,
        }
    }
}

/// Where session ids are looked for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdFirst {
    /// In cookies, then in the path.
    Cookie,
    /// In the path, then in cookies.
    Path,
}

/// A cookie that the front sets, by which a client returns to its backend: the keys of `[upstream.NAME.sticky]`
/// from `set_cookie` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyCookie {
    /// Its name.
    pub name: String,
    /// Its `Path`.
    pub path: String,
    /// Its `SameSite`.
    pub same_site: SameSite,
    /// What its values are made with; `None` is a fixed key, with which all fronts agree.
    pub key: Option<Secret>,
}

impl StickyCookie {
    /// A cookie of that name with every default.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            path: "/".to_owned(),
            same_site: SameSite::Lax,
            key: None,
        }
    }
}

/// Whether browsers send a cookie with requests that other sites cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameSite {
    /// When the user follows a link.
    Lax,
    /// Never.
    Strict,
    /// Always; over TLS only.
    None,
}

/// Which requests go to which target.
///
/// `[[route]]` in `docs/reference.md` says which of several routes that match wins, and has the meaning, default and
/// directives of other servers of each key. A route of the file with several paths or suffixes is one of these for each.
#[derive(Clone, Debug)]
pub struct RouteConfig {
    /// Hosts, lower case: `www.example.org`, or `*.example.org` for every name below. Empty: any.
    pub hosts: Vec<String>,
    /// The prefix that a path must have, by whole segments.
    pub path: String,
    /// Whether the path must be equal instead.
    pub exact: bool,
    /// How the path must also end.
    pub suffix: Option<String>,
    /// What the path must be like, in the place of path, exactness and suffix.
    pub pattern: Option<String>,
    /// Requests that match and are left to other routes all the same.
    pub exclude: Vec<Exclusion>,
    /// The listeners that must have accepted the request, by index in [`Config::listeners`]. Empty: any.
    pub listen: Vec<usize>,
    /// How the client must have come; `None` is either.
    pub scheme: Option<RouteScheme>,
    /// The target of the request.
    pub target: RouteTarget,
    /// The further rules of the route; `None`: it has none.
    pub rules: Option<Arc<RouteRules>>,
    /// Where it was written, for operators; `None` if it was not read from a file.
    pub place: Option<Place>,
    /// Whether members brought it, and no file.
    pub found: bool,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name, as it was given.
    pub file: Arc<str>,
    /// The line, the first being 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// How a client came: here, or to a trusted proxy that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteScheme {
    /// In clear text.
    Http,
    /// Over TLS.
    Https,
}

impl RouteConfig {
    /// A route for a path and all below it, on any host.
    #[must_use]
    pub fn new(path: impl Into<String>, target: RouteTarget) -> Self {
        Self {
            hosts: Vec::new(),
            path: path.into(),
            exact: false,
            suffix: None,
            pattern: None,
            exclude: Vec::new(),
            listen: Vec::new(),
            scheme: None,
            target,
            rules: None,
            place: None,
            found: false,
        }
    }

    /// The path in the form that requests are compared with. Routes whose forms, hosts and suffixes
    /// are equal match the same requests, however they are spelled.
    #[must_use]
    pub fn compared_path(&self) -> Bytes {
        let form = path::compared(&Bytes::copy_from_slice(self.path.as_bytes()));
        match form.strip_suffix(b"/") {
            // The closing slash of a prefix means nothing; `/` becomes the empty prefix.
            Some(prefix) if !self.exact => form.slice_ref(prefix),
            _ => form,
        }
    }

    /// The suffix in the form that requests are compared with.
    #[must_use]
    pub fn compared_suffix(&self) -> Option<Bytes> {
        let suffix = self.suffix.as_ref()?;
        Some(path::compared(&Bytes::copy_from_slice(suffix.as_bytes())))
    }
}

/// The target of a request that a route matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteTarget {
    /// It is handed to the upstream of that name.
    Upstream(String),
    /// It is answered by the front with this status.
    Status(StatusCode),
    /// The client is sent elsewhere.
    Redirect(Redirect),
    /// A file of the directory that [`RouteRules::files`] has; 404 if there is none.
    Files,
}

impl RouteTarget {
    /// Whether its requests get an error of the front's own, whatever they ask for.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Status(status) if status.as_u16() >= 400)
    }
}

/// Where the access log goes and how its lines look.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Where lines go. Default: standard output.
    pub access: AccessLogTarget,
    /// How a line looks. Default: combined.
    pub format: AccessLogFormat,
    /// Files of their own for the lines of some hosts, each `www.example.org`, or `*.example.org` for every
    /// name below; other lines go to `access`. Default: none. nginx: `access_log` of a `server`.
    pub hosts: Vec<(PathBuf, Vec<String>)>,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            access: AccessLogTarget::Stdout,
            format: AccessLogFormat::Combined,
            hosts: Vec::new(),
        }
    }
}

/// Where access-log lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogTarget {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// A file, appended to; reopened on reload.
    File(PathBuf),
}

/// How an access-log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// Apache's combined format, with upstream, timings, reason and request id behind it.
    Combined,
    /// One JSON object a line.
    Json,
}
