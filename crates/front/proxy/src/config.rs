//! The configuration of the front, as typed values.
//!
//! `catamaran-config` reads the file and converts it into these types. The defaults are here.

pub(crate) mod acme;
pub(crate) mod admin;
pub(crate) mod attributes;
pub(crate) mod auth;
pub(crate) mod cache;
pub(crate) mod compress;
pub(crate) mod conditions;
pub(crate) mod cookies;
pub(crate) mod cors;
pub(crate) mod expression;
pub(crate) mod limit;
pub(crate) mod log_condition;
pub(crate) mod log_template;
pub(crate) mod members;
pub(crate) mod own_certificate;
pub(crate) mod pages;
pub(crate) mod request_test;
pub(crate) mod retry_sent;
pub(crate) mod route;
pub(crate) mod rules;
pub(crate) mod template;
pub(crate) mod trace;
pub(crate) mod url_rule;

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use acme::{
    AcmeChallenge, AcmeConfig, ExternalAccount, IssuedKeyType, LETS_ENCRYPT, LETS_ENCRYPT_STAGING,
};
pub use admin::{AdminConfig, HiddenValue};
pub use attributes::{
    AttributeSource, CertificateUser, ClientFact, RequestAttributes, TlsFact, UserSource,
};
pub use auth::{AuthConfig, AuthKind, AuthSource, Challenge, ForwardAuth, RealmFault, UsersAuth};
pub use cache::{CacheConfig, FreshnessRules, QueryRule, SetCookie};
pub use catamaran_balance::Policy;
pub use catamaran_coding::Coding;
pub use catamaran_discover::{
    AdvertConfig, ApiConfig, ApiUrl, DnsKind, DnsSource, FileSource, FoundMember, FoundState,
    KubernetesSource, McmpSource, MemberSource, Place as MemberPlace, ServicePort, Speech,
};
pub use catamaran_files::{EtagRule, FilesConfig, Links};
pub use catamaran_http1::Limits;
use catamaran_message::name;
pub use catamaran_message::{FieldName, MediaPattern, NameRef, Traits};
pub use catamaran_tls::{
    ClientCertificate, DEPTH_MAX, ProfileSettings, Protocols, Version as TlsVersion,
};
pub use catamaran_upstream::config::{
    Activation, Address, AjpConfig, BackendConfig, ClientCertFields, ClientIdentity, End, HostName,
    PacketSize, ProbeConfig, ProbeKind, ProbeRequest, Protocol, Roots, Secret, SentHost, Trust,
    TrustFault, TrustSettings,
};
pub use compress::CompressConfig;
pub use conditions::{RequestConditions, Unless};
pub use cookies::{CookieReplacement, CookieRules, CookieTest, FlagChanges, FlagRule};
pub use cors::{CorsConfig, OriginError, OriginPattern};
pub use expression::{ExpressionError, PathExpression};
use http::HeaderValue;
use ipnet::IpNet;
pub use limit::{LimitBy, LimitConfig, Quota};
pub use log_condition::{Comparison, LogCondition, LogConditionError};
pub use log_template::{LogTemplate, LogTemplateError, names as log_names};
pub use members::{MemberTemplate, MemberTrust, MembersConfig};
pub use own_certificate::OwnCertificate;
pub use pages::{ErrorPages, Page};
pub use request_test::{RequestTest, RequestTestError};
pub use retry_sent::RetrySentRule;
pub use route::{Place, RouteConfig, RouteScheme, RouteTarget};
pub use rules::{
    CookieFlags, Exclusion, FieldRule, Redirect, ResponseFieldRule, Rewrite, RouteRules, RouteText,
};
pub use template::{KnownNames, LiveCount, Placeholder, Template, TemplateError};
pub use trace::TraceConfig;
pub use url_rule::{UrlPattern, UrlRule};

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
    /// The limits of requests, with unique names, which listeners and routes use. Default: none.
    pub limits: Vec<LimitConfig>,
    /// The sign-ons, with unique names, which routes use. Default: none.
    pub auths: Vec<AuthConfig>,
    /// The routes. A request without a match is answered 404; there is no default backend.
    pub routes: Vec<RouteConfig>,
    /// The operator's own error pages, for routes that have none and for requests without a route. Default: none; the
    /// front writes short pages itself.
    pub error_pages: Option<Arc<ErrorPages>>,
    /// The access log.
    pub log: LogConfig,
    /// How requests are traced. Default: they are not, and what clients say of traces is passed on as it is.
    pub trace: Option<Arc<TraceConfig>>,
    /// The admin listener, which shows the front's state and steers it. Default: none. nginx: `stub_status`; httpd:
    /// `mod_status`, `balancer-manager`; mod_jk: a `status` worker.
    pub admin: Option<AdminConfig>,
}

impl Config {
    /// The TCP addresses of all listeners, including the admin listener's.
    pub(crate) fn tcp_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let listeners = self.listeners.iter().map(|it| &it.address);
        let admin = self.admin.iter().flat_map(|admin| &admin.addresses);
        listeners.chain(admin).filter_map(|address| match address {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) => None,
        })
    }

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
            limits: Vec::new(),
            auths: Vec::new(),
            routes: vec![RouteConfig::new("/", target)],
            error_pages: None,
            log: LogConfig {
                access: AccessLogTarget::Off,
                ..LogConfig::default()
            },
            trace: None,
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
    /// The memory in which the front knows what clients owe to limits, in bytes. Default 8 MiB; without limits none is
    /// taken. nginx: `limit_req_zone`.
    pub limit_memory: u64,
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
            limit_memory: 8 << 20,
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
/// A field is the key of the same name of `[[listen]]`, unless its comment names other keys. `docs/reference.md` has
/// each key's meaning, unit and default, and the directives of other servers that do the same.
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
    /// The connections that are accepted of one client address; `None`: any number.
    pub connection_rate: Option<Quota>,
    /// The names of the limits of all requests: the key `limits`.
    pub request_limits: Vec<String>,
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
    /// The directories with the answers to challenges of the front's own orders, one for each `state_dir` of
    /// [`AcmeConfig`]. They are looked up after `acme_webroot`.
    pub acme_pending: Vec<PathBuf>,
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
            connection_rate: None,
            request_limits: Vec::new(),
            proxy_protocol: false,
            proxy_protocol_from: Vec::new(),
            proxy_protocol_tls: false,
            tls: None,
            protocols: Protocols::Http1,
            http2: Http2Config::default(),
            redirect_https: None,
            hsts: None,
            acme_webroot: None,
            acme_pending: Vec::new(),
        }
    }
}

/// A profile of TLS: certificates, the trust in certificates of clients, and the limits of handshakes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The unique name, which listeners, logs and metrics use.
    pub name: String,
    /// The files of certificates and their keys; at least one, unless there is a certificate of another origin.
    pub certificates: Vec<CertificateConfig>,
    /// Certificates that the front signed itself, which follow those. Files of a configuration have none.
    pub own_certificates: Vec<OwnCertificate>,
    /// The certificates that an authority issues to the front; `None`: all come from files.
    pub acme: Option<AcmeConfig>,
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
            own_certificates: Vec::new(),
            acme: None,
            client_ca: None,
            client_crl: None,
            ticket_keys_file: None,
            settings: ProfileSettings {
                strict_sni: false,
                version_min: TlsVersion::Tls12,
                client_certificate: ClientCertificate::Off,
                client_ca_depth: DEPTH_MAX,
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
    /// How requests wait while no backend can be picked; `None`: they are answered 503 at once.
    pub hold: Option<HoldConfig>,
}

/// The wait of requests for a first backend of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldConfig {
    /// How long a request waits: the key `hold`.
    pub wait: Duration,
    /// The most requests that may wait: the key `queue_max` of the upstream.
    pub queue_max: usize,
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
            hold: None,
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

impl SameSite {
    /// The value of the cookie's attribute.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lax => "Lax",
            Self::Strict => "Strict",
            Self::None => "None",
        }
    }
}

/// The settings of the access log: where lines go, which there are, and their format.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Where lines are written. Default: standard output.
    pub access: AccessLogTarget,
    /// The format of a line. Default: combined.
    pub format: AccessLogFormat,
    /// The conditions of which an exchange must meet one to have a line. Default: none, so that each has a line. nginx:
    /// `access_log … if=`.
    pub only: Vec<LogCondition>,
    /// Log files for the lines of some hosts, each `www.example.org`, or `*.example.org` for every name below; other
    /// lines go to `access`. Default: none. nginx: `access_log` of a `server`.
    pub hosts: Vec<(PathBuf, Vec<String>)>,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            access: AccessLogTarget::Stdout,
            format: AccessLogFormat::Combined,
            only: Vec::new(),
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
    /// Lines are sent to a syslog server.
    Syslog(SyslogAddress),
}

/// Where a syslog server takes messages (RFC 5424), each a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogAddress {
    /// The path of a socket on this machine, such as `/dev/log`.
    Unix(PathBuf),
    /// A UDP port.
    Udp {
        /// The host name, or IP address without brackets.
        host: String,
        /// The port, never 0.
        port: u16,
    },
}

impl SyslogAddress {
    /// The most bytes of a message; what is beyond them is cut off. Servers need not take more than 2048 (RFC 5424,
    /// section 6.1); those on the same machine take this much by default.
    pub(crate) fn message_max(&self) -> usize {
        match self {
            Self::Unix(_) => 8192,
            Self::Udp { .. } => 2048,
        }
    }
}

impl fmt::Display for SyslogAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Udp { host, port } if host.contains(':') => write!(f, "udp:[{host}]:{port}"),
            Self::Udp { host, port } => write!(f, "udp:{host}:{port}"),
        }
    }
}

/// The format of a line of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// Apache's combined format, followed by upstream, timings, reason and request id.
    Combined,
    /// One JSON object in each line.
    Json,
    /// A format of the operator's own.
    Template(Arc<LogTemplate>),
}
