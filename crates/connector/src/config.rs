//! The configuration of the connector: listeners, limits, deadlines, trusted peers.
//!
//! The names are those of Tomcat's `<Connector>` where the meaning is the same. Values are typed and
//! final: `config` and `cli` read files and command lines. Only [`Config::check`] refuses unsafe
//! combinations (Ghostcat, CVE-2020-1938).

use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use subtle::ConstantTimeEq;

use crate::StartError;
use crate::attribute::AllowedAttributes;
use crate::confidential::ConfidentialPaths;
use crate::trust::TrustedPeers;

/// Everything [`start`](crate::start) needs besides the application.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses to listen on, each with its protocol. At least one.
    pub listeners: Vec<Listener>,
    /// Which I/O model runs the connections. Default: [`IoModel::Epoll`].
    pub io: IoModel,
    /// Event loops, each on a thread of its own. Default: one per core. Tomcat: `pollerThreadCount`
    /// of old, always one today. Without effect on [`IoModel::Threads`].
    pub workers: NonZeroUsize,
    /// Connections open at once, all listeners together; further ones wait in the kernel's queue
    /// until one closes. Default 8192, as Tomcat's `maxConnections`.
    pub max_connections: usize,
    /// Length of that queue per listener. Default 1024; Tomcat's `acceptCount` (100) overflows
    /// when a front opens its whole pool at once.
    pub accept_count: u32,
    /// Threads for a [blocking](crate::Application::blocking) application at most: so many of its
    /// requests are worked on at once. Default 200, as Tomcat's `maxThreads`. On
    /// [`IoModel::Threads`] each connection has one of them while it is open, so fewer than the
    /// fronts keep connections starve those beyond: they wait in the kernel's queue.
    pub max_threads: NonZeroUsize,
    /// Threads of those that are started at once and kept. Default 10; Tomcat: `minSpareThreads`.
    pub min_spare_threads: usize,
    /// Requests that may wait for a thread; further ones are answered with 503 and counted as
    /// `executor-full`. Default 8192, one for each connection of the default
    /// [`max_connections`](Self::max_connections). Tomcat: the executor's `maxQueueSize`, unlimited
    /// by default.
    pub max_queue_size: usize,
    /// How long a thread beyond the spare ones may have nothing to do before it ends. Default 60 s.
    /// Tomcat: the executor's `maxIdleTime`.
    pub max_idle_time: Duration,
    /// How long the peer may take to send the first byte after connecting, a whole head once begun,
    /// and each further piece of a body. Default 20 s, as `connectionTimeout` in Tomcat's
    /// `server.xml`. Too short cuts off slow clients, too long lets slow heads pile up.
    pub connection_timeout: Duration,
    /// How long an HTTP connection may be idle between requests. Default 60 s. Should outlive the
    /// idle time of the front's pool, or the front will meet closed connections. Tomcat:
    /// `keepAliveTimeout`.
    pub http_keep_alive_timeout: Duration,
    /// How long an AJP connection may be idle between requests; `None` (the default, and Tomcat's) never closes
    /// one.
    pub ajp_keep_alive_timeout: Option<Duration>,
    /// How long the peer may take nothing of what is to be sent to it. Default 30 s.
    pub write_timeout: Duration,
    /// Requests on one HTTP connection before it is closed; `None`, the default, sets no limit.
    /// Tomcat's `maxKeepAliveRequests` is 100, which costs a front a dial for every 100 requests.
    pub max_keep_alive_requests: Option<NonZeroU64>,
    /// Bytes of a request body that the application left unread which are still read and thrown
    /// away in order to keep an HTTP connection. Default 2 MiB, as Tomcat's `maxSwallowSize`.
    pub max_swallow_size: u64,
    /// Largest AJP packet, both ways; must equal the front's setting. Default 8192. Tomcat:
    /// `packetSize`; mod_jk: `max_packet_size`; mod_proxy_ajp: `ProxyIOBufferSize`.
    pub packet_size: catamaran_ajp::PacketSize,
    /// How many packets of a request body of known length are asked for over AJP besides the one that
    /// is awaited, at most 15; each saves an upload a round trip. Default 15; 0 asks for one at a time,
    /// as Tomcat does, for a front that cannot be asked ahead.
    pub body_ahead: u8,
    /// Limits on HTTP/1.1 heads and framing.
    pub http_limits: catamaran_http1::Limits,
    /// The secret that every AJP request must carry; `None` is allowed on loopback and Unix sockets only. Tomcat:
    /// `secret` and `secretRequired`.
    pub secret: Option<Secret>,
    /// The page on which the connector shows what it is doing, and who may see it. Default: `None`, all paths are
    /// the application's. Tomcat: the server status of its manager.
    pub status: Option<StatusView>,
    /// AJP request attributes accepted besides the well-known ones; a request with any other is
    /// refused with 403. Tomcat: `allowedRequestAttributesPattern`.
    pub allowed_request_attributes: AllowedAttributes,
    /// Who is believed about users and TLS without a secret. With a secret every request has
    /// proved it, and the list does not matter. Others are served as if they had said nothing of
    /// either. Default: this machine; listing a network trusts every host in it.
    pub trusted_peers: TrustedPeers,
    /// Whether the application authenticates users itself: then `remote_user` and `auth_type` of
    /// a front are not passed on, also from a trusted front. Default `false`; Tomcat's `tomcatAuthentication`
    /// is `true`, for it has no list of [trusted peers](Self::trusted_peers).
    pub tomcat_authentication: bool,
    /// How AJP fronts write paths. Must be what they do: an encoded path that is taken for a
    /// decoded one is escaped twice. Default [`UriForm::Encoded`].
    pub uri: UriForm,
    /// Whether AJP body packets are body bytes and nothing else, as lighttpd sends them, instead of
    /// a count and the bytes. Default `false`; no other front works with it.
    pub bare_body: bool,
    /// The most body bytes of a request, AJP and HTTP; more is refused with 413, before the
    /// application sees the request if its length is announced. `None`, the default, sets no limit.
    /// Tomcat's `maxPostSize` (2 MiB) is about forms only, which are the application's business
    /// here; nginx: `client_max_body_size`.
    pub max_post_size: Option<NonZeroU64>,
    /// Paths that are served over TLS only: a request in the clear is sent to
    /// [`redirect_port`](Self::redirect_port) with 302. Over AJP the front says what is encrypted,
    /// if it is believed. Default: none. In a servlet's `web.xml`: `transport-guarantee`.
    pub confidential: ConfidentialPaths,
    /// Where such requests are sent, at the host the client asked for. Default 443, as Tomcat's
    /// `redirectPort`.
    pub redirect_port: NonZeroU16,
    /// Permissions of Unix socket files: who may write may connect. Default 0660, the owner and
    /// group. Tomcat's `unixDomainSocketPathPermissions` lets everybody (`rw-rw-rw-`).
    pub unix_socket_mode: UnixSocketMode,
}

impl Default for Config {
    fn default() -> Self {
        let one = NonZeroUsize::MIN;
        Self {
            listeners: Vec::new(),
            io: IoModel::Epoll,
            workers: std::thread::available_parallelism().unwrap_or(one),
            max_connections: 8192,
            accept_count: 1024,
            max_threads: const { NonZeroUsize::new(200).expect("200 is not 0") },
            min_spare_threads: 10,
            max_queue_size: 8192,
            max_idle_time: Duration::from_secs(60),
            connection_timeout: Duration::from_secs(20),
            http_keep_alive_timeout: Duration::from_secs(60),
            ajp_keep_alive_timeout: None,
            write_timeout: Duration::from_secs(30),
            max_keep_alive_requests: None,
            max_swallow_size: 2 << 20,
            packet_size: catamaran_ajp::PacketSize::DEFAULT,
            body_ahead: 15,
            http_limits: catamaran_http1::Limits::request(),
            secret: None,
            status: None,
            allowed_request_attributes: AllowedAttributes::default(),
            trusted_peers: TrustedPeers::default(),
            tomcat_authentication: false,
            uri: UriForm::Encoded,
            bare_body: false,
            max_post_size: None,
            confidential: ConfidentialPaths::default(),
            redirect_port: NonZeroU16::new(443).unwrap_or(NonZeroU16::MIN),
            unix_socket_mode: UnixSocketMode::default(),
        }
    }
}

impl Config {
    /// Checks whether a connector may be started with this configuration.
    ///
    /// # Errors
    /// [`StartError::NoListeners`]; [`StartError::SecretRequired`] for AJP on a TCP address that is
    /// not loopback when there is no [`secret`](Self::secret).
    pub fn check(&self) -> Result<(), StartError> {
        if self.listeners.is_empty() {
            return Err(StartError::NoListeners);
        }
        for listener in &self.listeners {
            if let (Protocol::Ajp, Address::Tcp(address), None) =
                (listener.protocol, &listener.address, &self.secret)
                && !address.ip().to_canonical().is_loopback()
            {
                return Err(StartError::SecretRequired { address: *address });
            }
        }
        Ok(())
    }
}

/// A page about the connector, in front of the application.
///
/// It is JSON, or HTML for a client that prefers that (`Accept`) or asks for it (`?format=html`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusView {
    /// The path that shows it, exactly. Default `/_status`.
    pub path: String,
    /// The peers that may see the page; others are answered 403. Default: this machine. The connection must come
    /// from there, and so must the client behind a front, as AJP tells; an HTTP request that bears signs of a front
    /// (`Via`, `Forwarded`, `X-Forwarded-For`) is refused.
    pub peers: TrustedPeers,
}

impl Default for StatusView {
    fn default() -> Self {
        Self {
            path: "/_status".to_owned(),
            peers: TrustedPeers::default(),
        }
    }
}

/// One place to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The protocol spoken there.
    pub protocol: Protocol,
    /// The address.
    pub address: Address,
}

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Apache JServ Protocol 1.3.
    Ajp,
    /// HTTP/1.1 and 1.0.
    Http,
}

/// Where a listener is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address; port 0 lets the system choose (see
    /// [`Running::addresses`](crate::Running::addresses)).
    Tcp(SocketAddr),
    /// A Unix socket, created with [`Config::unix_socket_mode`] and removed at the end. A socket
    /// file that nobody listens on any more is replaced.
    Unix(PathBuf),
}

impl fmt::Display for Listener {
    /// As an upstream URL of the front: `ajp://127.0.0.1:8009`, `http+unix:/run/app.sock`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            Protocol::Ajp => "ajp",
            Protocol::Http => "http",
        };
        match &self.address {
            Address::Tcp(address) => write!(f, "{scheme}://{address}"),
            Address::Unix(path) => write!(f, "{scheme}+unix:{}", path.display()),
        }
    }
}

/// Which I/O model runs the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IoModel {
    /// Readiness: a few event loops, as Tomcat's NIO.
    Epoll,
    /// Completion: a few event loops on io_uring, as Tomcat's NIO2 on systems that have it. Needs
    /// Linux 6.0 that allows it, and the feature `uring`, which is on by default.
    #[cfg(feature = "uring")]
    Uring,
    /// Blocking: a thread per connection from a pool of [`Config::max_threads`], as Tomcat's BIO. Needs the feature
    /// `threads`, which is on by default.
    #[cfg(feature = "threads")]
    Threads,
}

/// How a front writes the path of an AJP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriForm {
    /// As a URI has it, percent-encoded: mod_jk (`ForwardURIProxy`, its default), mod_proxy_ajp,
    /// IIS, our own front.
    Encoded,
    /// Decoded: lighttpd, nginx's ajp module, mod_jk with `JkOptions +ForwardURICompat`. A `%`, `?`
    /// or `#` is a character of the path and is escaped once, before anything is compared; nothing
    /// is decoded.
    Decoded,
}

/// Permissions of a Unix socket file, such as `0660`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixSocketMode(u32);

/// The error of text that is not a [`UnixSocketMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mode is three octal digits, such as 660; 0 in front is allowed")]
pub struct UnixSocketModeError;

impl UnixSocketMode {
    /// As `chmod` takes it.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

impl Default for UnixSocketMode {
    fn default() -> Self {
        Self(0o660)
    }
}

impl FromStr for UnixSocketMode {
    type Err = UnixSocketModeError;

    /// Three octal digits, or four that begin with 0.
    fn from_str(digits: &str) -> Result<Self, Self::Err> {
        let is_octal = |digit| matches!(digit, b'0'..=b'7');
        if !matches!(digits.len(), 3 | 4) || !digits.bytes().all(is_octal) {
            return Err(UnixSocketModeError);
        }
        match u32::from_str_radix(digits, 8) {
            Ok(bits) if bits <= 0o777 => Ok(Self(bits)),
            _ => Err(UnixSocketModeError),
        }
    }
}

/// The shared secret of AJP. Never printed; compared in constant time (CVE-2026-43514).
#[derive(Clone)]
pub struct Secret(Bytes);

impl IoModel {
    /// Its name, as on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            #[cfg(feature = "uring")]
            Self::Uring => "uring",
            #[cfg(feature = "threads")]
            Self::Threads => "threads",
        }
    }

    /// Every model this build has.
    pub const ALL: &[Self] = &[
        Self::Epoll,
        #[cfg(feature = "uring")]
        Self::Uring,
        #[cfg(feature = "threads")]
        Self::Threads,
    ];

    /// Whether each connection has a thread, on which a blocking handler runs.
    pub(crate) fn has_thread_per_connection(self) -> bool {
        match self {
            Self::Epoll => false,
            #[cfg(feature = "uring")]
            Self::Uring => false,
            #[cfg(feature = "threads")]
            Self::Threads => true,
        }
    }
}

impl Secret {
    /// A secret of these bytes; `None` if empty, for an empty secret proves nothing.
    #[must_use]
    pub fn new(secret: impl Into<Bytes>) -> Option<Self> {
        let secret = secret.into();
        (!secret.is_empty()).then_some(Self(secret))
    }

    /// Whether `proof`, which a peer presented, is the secret.
    pub(crate) fn is_proved_by(&self, proof: &[u8]) -> bool {
        // `ct_eq` of slices returns early for unequal lengths only: the length is no secret.
        self.0.as_ref().ct_eq(proof).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_empty_and_never_shown() {
        assert!(Secret::new("").is_none());
        let config = Config {
            secret: Secret::new("swordfish"),
            ..Config::default()
        };
        assert!(!format!("{config:?}").contains("swordfish"));
    }

    #[test]
    fn a_mode_is_written_in_octal() {
        let bits = |digits: &str| digits.parse().map(UnixSocketMode::bits);
        assert_eq!(bits("660"), Ok(0o660));
        assert_eq!(bits("0600"), Ok(0o600));
        for wrong in ["", "66", "0o660", "999", "7777", "-660", "rw-rw----"] {
            assert_eq!(bits(wrong), Err(UnixSocketModeError), "{wrong}");
        }
    }

    #[test]
    fn only_ajp_beyond_this_machine_needs_a_secret() {
        let check = |protocol, address: &str, secret: &'static str| {
            let address = Address::Tcp(address.parse().unwrap());
            let listeners = vec![Listener { protocol, address }];
            let secret = Secret::new(secret);
            Config {
                listeners,
                secret,
                ..Config::default()
            }
            .check()
            .is_ok()
        };
        for local in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(check(Protocol::Ajp, local, ""), "{local}");
        }
        for remote in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1"] {
            assert!(!check(Protocol::Ajp, remote, ""), "{remote}");
            assert!(check(Protocol::Ajp, remote, "s"), "{remote}");
            assert!(check(Protocol::Http, remote, ""), "{remote}");
        }
    }
}
