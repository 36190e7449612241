//! The configuration of the front, as typed values.
//!
//! `catamaran-config` reads the file and converts it into these types. The defaults are here.

pub(crate) mod attributes;
pub(crate) mod cache;
pub(crate) mod compress;
pub(crate) mod expression;
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
pub use expression::{ExpressionError, PathExpression};
use http::{HeaderValue, Method, StatusCode};
use ipnet::IpNet;
pub use members::{MemberTemplate, MemberTrust, MembersConfig};
pub use pages::{ErrorPages, Page};
pub use retry_sent::RetrySentRule;
pub use rules::{
    CookieFlags, Exclusion, FieldRule, Redirect, ResponseFieldRule, Rewrite, RouteRules, RouteText,
};
pub use template::{Placeholder, Template, TemplateError};

use crate::path;

/// The configuration of the whole front.
#[derive(Clone, Debug)]
pub struct Config {
    /// The settings that hold for all listeners.
    pub server: ServerConfig,
    /// The profiles of TLS, which listeners use by name.
    pub tls: Vec<TlsConfig>,
    /// The listeners, which accept clients; at least one.
    pub listeners: Vec<ListenerConfig>,
    /// The upstreams, which are groups of backends, with unique names.
    pub upstreams: Vec<UpstreamConfig>,
    /// The caches, with unique names, which routes use. Default: none.
    pub caches: Vec<CacheConfig>,
    /// The routes. A request without a match is answered 404; there is no default backend.
    pub routes: Vec<RouteConfig>,
    /// The operator's own error pages, for routes that have none and for requests without a route. Default: none; the
    /// front writes short pages itself.
    pub error_pages: Option<Arc<ErrorPages>>,
    /// The access log.
    pub log: LogConfig,
    /// The admin listener, which shows the front's state and steers it. Default: none. nginx: `stub_status`; httpd:
    /// `mod_status`, `balancer-manager`; mod_jk: a `status` worker.
    pub admin: Option<AdminConfig>,
}

impl Config {
    /// A front that passes all requests of these listeners to one upstream. It has no access log; everything else is
    /// the default.
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

    /// The most files that all workers together keep open, besides those that are being sent; 0 if no route has files.
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

/// The settings of the admin listener, which has a thread of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminConfig {
    /// The addresses where it listens; at least one.
    pub addresses: Vec<ListenAddress>,
    /// The permissions of a Unix socket's file, as for `chmod`. Default 0600: a client that may connect may change
    /// everything.
    pub socket_mode: u32,
    /// The secret that a client over TCP must send to change anything. Default: none; clients over TCP can only read.
    pub token: Option<Secret>,
    /// The names, in lower case, that `Host` of a client over TCP may have, besides `localhost` and the listener's
    /// address. Default: none.
    pub hosts: Vec<String>,
    /// The file that keeps operators' changes for a restart. Default: none. HAProxy: `server-state-file`.
    pub state_file: Option<PathBuf>,
    /// Whether changes are refused, whoever asks. Default off.
    pub read_only: bool,
    /// The upstreams that `/readyz` needs: it answers that the front is not ready while one of them accepts no new
    /// clients. Default: `None`, all upstreams.
    pub ready: Option<Vec<String>>,
    /// The values of variables and files that the configuration refers to. They are shown only to clients that have the
    /// token, are root, or are the user who runs the front. Default: none.
    pub hidden: Vec<HiddenValue>,
}

/// A value that the configuration takes from a variable or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenValue {
    /// The value itself.
    pub value: Secret,
    /// The text that is shown instead: `${NAME}`, or the path of the file.
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
    /// The number of workers, each an event loop with a thread of its own. Default: one per core. nginx:
    /// `worker_processes`.
    pub workers: NonZeroUsize,
    /// How long a drain waits for exchanges to finish before their connections are closed. Default 30 s. nginx:
    /// `worker_shutdown_timeout`.
    pub drain_timeout: Duration,
    /// How long a front that is told to stop still serves before it drains. `/readyz` fails meanwhile, so that a load
    /// balancer stops sending to it. Default 0 s. HAProxy: `grace`; Kubernetes: a `preStop` sleep.
    pub drain_delay: Duration,
    /// The networks of proxies whose `Forwarded` and `X-Forwarded-*` fields are believed. Default: none. nginx:
    /// `set_real_ip_from`; httpd: `RemoteIPTrustedProxy`.
    pub trusted_proxies: Vec<IpNet>,
    /// The names, in lower case, of fields with an underscore that are forwarded; other fields with an underscore are
    /// dropped. Default: none. nginx: `underscores_in_headers`.
    pub underscore_fields: Vec<String>,
    /// The most connections of clients in all workers; a further one is closed at once. Default: 20000, or what
    /// `files_max` leaves if that is less. nginx: `worker_connections`.
    pub connections_max: Option<usize>,
    /// The most files that the process may have open.
    ///
    /// Of those that connections to all backends leave, clients get as many as `connections_max` allows, and at least
    /// half of all. Default: `None`, not known. Not a key of the file: the system sets the limit.
    pub files_max: Option<u64>,
    /// The most connections of one client address (for IPv6, of one /64 network) in all workers; a further one is
    /// closed at once. Trusted proxies and Unix sockets are not counted. Default: no limit. nginx: `limit_conn`.
    pub connections_per_address: Option<NonZeroUsize>,
    /// The field in which backends get the request's id, as in the access log. An id that a trusted proxy sent is
    /// passed on instead. Default `X-Request-Id`; `None` sends none.
    pub request_id: Option<FieldName>,
    /// The pseudonym in `Via` (RFC 9110, section 7.6.3). Default `catamaran`; `None` writes none.
    pub via: Option<String>,
    /// The most bytes of memory that compressing responses may take in all workers; a further response is sent
    /// uncompressed. Default 64 MiB.
    pub compress_memory: u64,
    /// The files that each worker keeps open, besides those that it is sending. Default 1000; 0 keeps none. nginx:
    /// `open_file_cache`.
    pub files_open: usize,
    /// The memory in which each worker keeps small files, and the names of files, in bytes. Default 16 MiB; 0 keeps
    /// none.
    pub files_memory: u64,
    /// The file to which the secrets of all TLS sessions are appended, for debugging. Default: none. Not a key of the
    /// file, and a reload does not change it.
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
    /// The most connections that clients may have.
    pub(crate) fn clients_max(&self) -> usize {
        self.connections_max.unwrap_or(20_000)
    }
}

/// The address where a listener accepts clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// A TCP address and port; with port 0 the system chooses the port.
    Tcp(SocketAddr),
    /// The path of a Unix stream socket, whose file is created with mode 0660. A file that an earlier process left is
    /// replaced.
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
    /// Forwards all printable ASCII as the client sent it. Bytes beyond ASCII are escaped.
    AsReceived,
    /// Escapes as RFC 3986 demands: the characters `"<>[\]^`{|}`, and a percent sign that begins no escape, which
    /// becomes `%25`.
    Escaped,
}

/// One listener and the limits of its clients.
///
/// Each field is the key of that name of `[[listen]]` in `docs/reference.md`, which has its meaning, unit, default and
/// the directives of other servers.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// The name that routes use in `listen`; `None`: they use its address.
    pub name: Option<String>,
    /// The address to listen at.
    pub address: ListenAddress,
    /// How long an idle connection waits for the next request.
    pub keep_alive_timeout: Duration,
    /// The most requests on one connection, which is closed then.
    pub keep_alive_requests: u64,
    /// The deadline for a request's head, counted from its first byte; for the first one, from the accept.
    pub head_timeout: Duration,
    /// How long a client may be silent within a body.
    pub body_timeout: Duration,
    /// How long a client may refuse to take the next bytes of a response.
    pub write_timeout: Duration,
    /// The least bytes a second, on average, that a client must send of a body; 0: no least rate.
    pub body_rate_min: u64,
    /// The least bytes a second, on average, that a client must take of a response; 0: no least rate.
    pub write_rate_min: u64,
    /// The most bytes of a request's body; `None`: no limit.
    pub body_max: Option<u64>,
    /// Whether a client is served that closes its sending side before it has its response.
    pub serve_half_closed: bool,
    /// How queries are passed on.
    pub query: QueryForm,
    /// The most bytes of a request's body that are read, and discarded, after its response.
    pub linger_max: u64,
    /// The longest time for which such bytes are read.
    pub linger_timeout: Duration,
    /// The limits of a request's head and of chunked framing: the keys from `head_max` on.
    pub limits: Limits,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// The networks of proxies that may send that header.
    pub proxy_protocol_from: Vec<IpNet>,
    /// Whether those proxies end TLS of all clients whose headers do not tell about TLS.
    pub proxy_protocol_tls: bool,
    /// The name of the TLS profile; `None`: clients are served in clear text.
    pub tls: Option<String>,
    /// The protocols that clients may speak.
    pub protocols: Protocols,
    /// The limits of connections that speak HTTP/2: the keys that begin with `h2_`.
    pub http2: Http2Config,
    /// The port of `https://` to which clients in clear text are redirected; `None`: they are served.
    pub redirect_https: Option<u16>,
    /// The value of `Strict-Transport-Security` for responses over TLS; `None`: the front sets none.
    pub hsts: Option<HeaderValue>,
    /// The directory with the answers to ACME's challenges; `None`: challenges go to routes as other requests do.
    pub acme_webroot: Option<PathBuf>,
}

/// The limits of a client's connection that speaks HTTP/2.
///
/// Each field is the key of that name, with `h2_` before it, of `[[listen]]` in `docs/reference.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Config {
    /// The most requests at a time.
    pub streams_max: u32,
    /// The bytes of one request's body that the client may send before the backend takes them.
    pub window: u32,
    /// The bytes of all requests' bodies on a connection that the client may send before backends take them.
    pub connection_window: u32,
    /// The requests a second, over a long time, that a client may cancel or make the front reset.
    pub resets_per_second: u32,
    /// The value of [`Self::resets_per_second`] for peers in [`ServerConfig::trusted_proxies`].
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

    /// Whether its clients come over TLS: to the listener, or to proxies that end TLS for all of them.
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

/// A profile of TLS: certificates, the trust in certificates of clients, and the limits of handshakes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The unique name, which listeners, logs and metrics use.
    pub name: String,
    /// The certificates with their keys; at least one.
    pub certificates: Vec<CertificateConfig>,
    /// The file of the authorities whose certificates clients may have, as PEM. nginx: `ssl_client_certificate`.
    pub client_ca: Option<PathBuf>,
    /// The file that lists revoked certificates of clients, as PEM. nginx: `ssl_crl`.
    pub client_crl: Option<PathBuf>,
    /// The file of the keys of session tickets, which several fronts may share. Default: none; each process makes its
    /// own keys. nginx: `ssl_session_ticket_key`.
    pub ticket_keys_file: Option<PathBuf>,
    /// The settings that need no file.
    pub settings: ProfileSettings,
    /// The deadline of a handshake, from the accept. Default 10 s. nginx: `ssl_handshake_timeout`.
    pub handshake_timeout: Duration,
    /// The most handshakes that one worker has under way. For a further one, the handshake that has stalled longest is
    /// closed. Default 256.
    pub handshakes_max: usize,
    /// The interval at which files are checked for changes. A change that is the same at the next check is put in
    /// force. Default 30 s; `None`: only reloads read the files.
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

/// The files of one certificate, and whether it is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateConfig {
    /// The file of the certificate, followed by those of its issuers, as PEM.
    pub chain: PathBuf,
    /// The file of the certificate's key, as PEM.
    pub key: PathBuf,
    /// Whether it is used for clients that ask for an unknown name or for none. Without a default the first certificate
    /// is used.
    pub default: bool,
}

/// A named group of backends, and how requests are spread over them.
///
/// Each field is the key or table of that name in `[upstream.NAME]` of docs/reference.md, which has its meaning,
/// default and the directives of other servers.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The unique name, which routes, logs and counters use.
    pub name: String,
    /// The policy by which a backend is picked.
    pub policy: Policy,
    /// The part of a request that decides its backend under [`Policy::Hash`].
    pub hash_by: HashBy,
    /// The backends of the file; at least one, unless members are discovered.
    pub backends: Vec<BackendConfig>,
    /// The source of further members; `None`: there are none.
    pub members: Option<Arc<MembersConfig>>,
    /// The backends of discovered members; empty in a configuration that was just read.
    pub(crate) found: Vec<BackendConfig>,
    /// The most further attempts after a failed one.
    pub retries: u32,
    /// The methods that are retried although a backend may have received the request.
    pub retry_sent: RetrySentRule,
    /// The most weight, in percent, that may be left out because backends do not answer; 100: no limit.
    pub unwell_max: u8,
    /// How requests of a session are kept on one backend; `None`: they are not.
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

    /// All backends: those of the file first, then the discovered members.
    pub(crate) fn all(&self) -> impl Iterator<Item = &BackendConfig> + Clone {
        self.backends.iter().chain(&self.found)
    }
}

/// The part of a request by which [`Policy::Hash`] chooses its backend. A request without that part goes to any
/// backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashBy {
    /// The client's address; behind trusted proxies, the one that they report. nginx: `ip_hash`, of whole addresses.
    Address,
    /// The path, decoded, without parameters and query.
    Path,
    /// The value of the first cookie of that name.
    Cookie(String),
    /// The value of the first field of that name.
    Header(FieldName),
    /// The value of the first query parameter of that name, as received.
    Query(String),
}

/// How the requests of a session are recognised and kept on one backend. Each field is the key of that name in
/// `[upstream.NAME.sticky]` of docs/reference.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyConfig {
    /// The names of cookies that hold a session id.
    pub cookies: Vec<String>,
    /// The names of path parameters that hold a session id.
    pub parameters: Vec<String>,
    /// Whether ids are looked for in cookies or in the path first.
    pub first: IdFirst,
    /// The character between a session id and the route at its end; `None`: the whole id is the route.
    pub separator: Option<u8>,
    /// Whether a request is answered 503 while the backend of its session is out, instead of going to another backend.
    pub force: bool,
    /// How long after its last request a session may continue.
    pub session_timeout: Duration,
    /// Whether a session is counted although no response through this front gave out its id.
    pub count_unknown: bool,
    /// The front's own cookie, which leads a client back to its backend; `None`: the front sets none.
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

/// The order in which a request is searched for a session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdFirst {
    /// Cookies are searched first, then the path.
    Cookie,
    /// The path is searched first, then cookies.
    Path,
}

/// The cookie that the front sets, so that a client returns to its backend: the keys of `[upstream.NAME.sticky]` from
/// `set_cookie` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyCookie {
    /// The name of the cookie.
    pub name: String,
    /// The cookie's attribute `Path`.
    pub path: String,
    /// The cookie's attribute `SameSite`.
    pub same_site: SameSite,
    /// The key from which the cookie's values are made; `None`: a fixed key, which is the same in all fronts.
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

/// Whether browsers send a cookie with requests from other sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameSite {
    /// Browsers send the cookie only when the user follows a link.
    Lax,
    /// Browsers never send the cookie.
    Strict,
    /// Browsers always send the cookie, but only over TLS.
    None,
}

/// A route: which requests it takes, and their target.
///
/// `[[route]]` in `docs/reference.md` says which of several routes that match wins, and has the meaning, default and
/// directives of other servers of each key. A route of the file with several paths or suffixes becomes one
/// `RouteConfig` for each.
#[derive(Clone, Debug)]
pub struct RouteConfig {
    /// The hosts, in lower case: `www.example.org`, or `*.example.org` for every name below. Empty: any host.
    pub hosts: Vec<String>,
    /// The path prefix, in whole segments, that a request must have.
    pub path: String,
    /// Whether the request's path must be equal to `path` instead.
    pub exact: bool,
    /// The suffix that the path must also have; `None`: any.
    pub suffix: Option<String>,
    /// The pattern that the path must match, instead of `path`, `exact` and `suffix`; `None`: those hold.
    pub pattern: Option<String>,
    /// The expression that the path must match, instead of `path`, `exact`, `suffix` and `pattern`; `None`: those hold.
    pub regex: Option<PathExpression>,
    /// Whether expressions are not asked if this route would win without them. For a prefix only.
    pub before_regex: bool,
    /// The methods of requests that match; `HEAD` is among them if `GET` is. Empty: all.
    pub methods: Vec<Method>,
    /// Requests that this route leaves to others although they match.
    pub exclude: Vec<Exclusion>,
    /// The listeners that must have accepted the request, by index in [`Config::listeners`]. Empty: any.
    pub listen: Vec<usize>,
    /// The scheme that the client must have used; `None`: either.
    pub scheme: Option<RouteScheme>,
    /// Where the request goes.
    pub target: RouteTarget,
    /// The further rules of the route; `None`: it has none.
    pub rules: Option<Arc<RouteRules>>,
    /// The line of the file that has the route; `None` if it was not read from a file.
    pub place: Option<Place>,
    /// Whether the route comes from discovered members, not from the file.
    pub found: bool,
}

/// A line of a file, for messages to operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the file, as it was given.
    pub file: Arc<str>,
    /// The number of the line, counted from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The scheme that a client used, to the front or to a trusted proxy that reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteScheme {
    /// The client used clear text.
    Http,
    /// The client used TLS.
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
            regex: None,
            before_regex: false,
            methods: Vec::new(),
            exclude: Vec::new(),
            listen: Vec::new(),
            scheme: None,
            target,
            rules: None,
            place: None,
            found: false,
        }
    }

    /// The path in the form that requests are compared with. Two routes whose forms, hosts and suffixes are equal match
    /// the same requests, even if their paths are spelled differently.
    #[must_use]
    pub fn compared_path(&self) -> Bytes {
        let form = path::compared(&Bytes::copy_from_slice(self.path.as_bytes()));
        match form.strip_suffix(b"/") {
            // The closing slash of a prefix means nothing; `/` becomes the empty prefix.
            Some(prefix) if !self.exact => form.slice_ref(prefix),
            _ => form,
        }
    }

    /// Whether the route matches a path and all below it, whatever they end in.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        let is_bare = self.suffix.is_none() && self.pattern.is_none() && self.regex.is_none();
        is_bare && !self.exact
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
    /// The request goes to the upstream of that name.
    Upstream(String),
    /// The front answers with this status.
    Status(StatusCode),
    /// The front redirects the client.
    Redirect(Redirect),
    /// The front sends a file of the directory in [`RouteRules::files`]; 404 if there is none.
    Files,
}

impl RouteTarget {
    /// Whether the front answers every request of this target with an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Status(status) if status.as_u16() >= 400)
    }
}

/// The settings of the access log: where lines go, and their format.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Where lines are written. Default: standard output.
    pub access: AccessLogTarget,
    /// The format of a line. Default: combined.
    pub format: AccessLogFormat,
    /// Log files for the lines of some hosts, each `www.example.org`, or `*.example.org` for every name below; other
    /// lines go to `access`. Default: none. nginx: `access_log` of a `server`.
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

/// Where lines of the access log are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogTarget {
    /// The log is off.
    Off,
    /// Lines go to standard output.
    Stdout,
    /// Lines are appended to a file; a reload opens it again.
    File(PathBuf),
}

/// The format of a line of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// Apache's combined format, followed by upstream, timings, reason and request id.
    Combined,
    /// One JSON object in each line.
    Json,
}
