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

/// The configuration of a connector: everything that [`start`](crate::start) needs besides the application.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses to listen on, each with its protocol; at least one.
    pub listeners: Vec<Listener>,
    /// The I/O model that runs the connections. Default: [`IoModel::Epoll`].
    pub io: IoModel,
    /// The number of event loops, each on its own thread. Default: one per core. Old Tomcats have
    /// `pollerThreadCount`, today's always one. Without effect on [`IoModel::Threads`].
    pub workers: NonZeroUsize,
    /// The most connections open at once, over all listeners; further ones wait in the kernel's queue until one
    /// closes. Default 8192, as Tomcat's `maxConnections`.
    pub max_connections: usize,
    /// The most connections that wait in the kernel's queue to be accepted, per listener. Default 1024; Tomcat's
    /// `acceptCount` (100) overflows when a front opens its whole pool at once.
    pub accept_count: u32,
    /// The most threads for a [blocking](crate::Application::blocking) application, and so the most of its requests
    /// that run at once. Default 200, as Tomcat's `maxThreads`. On [`IoModel::Threads`] each open connection holds
    /// one of them, so with fewer than the fronts keep connections, the remaining connections wait in the kernel's
    /// queue.
    pub max_threads: NonZeroUsize,
    /// The number of application threads that are started at once and kept. Default 10; Tomcat: `minSpareThreads`.
    pub min_spare_threads: usize,
    /// The most requests that wait for a thread; further ones are answered with 503 and counted as `executor-full`.
    /// Default 8192, one for each connection of the default [`max_connections`](Self::max_connections). Tomcat: the
    /// executor's `maxQueueSize`, unlimited by default.
    pub max_queue_size: usize,
    /// How long a thread beyond the spare ones may be idle before it ends. Default 60 s. Tomcat: the executor's
    /// `maxIdleTime`.
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
    /// How long the peer may accept none of the bytes to be sent before the connection is closed. Default 30 s.
    pub write_timeout: Duration,
    /// The most requests on one HTTP connection before it is closed; `None`, the default, sets no limit. Tomcat's
    /// `maxKeepAliveRequests` is 100, so a front must connect anew after every 100 requests.
    pub max_keep_alive_requests: Option<NonZeroU64>,
    /// The most bytes of an unread request body that are read and thrown away in order to keep an HTTP connection.
    /// Default 2 MiB, as Tomcat's `maxSwallowSize`.
    pub max_swallow_size: u64,
    /// The largest AJP packet in bytes, in both directions; must equal the front's setting. Default 8192. Tomcat:
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
    /// The status page of the connector, and who may see it. Default: `None`, there is no such page. Tomcat: the
    /// server status of its manager.
    pub status: Option<StatusView>,
    /// AJP request attributes accepted besides the well-known ones; a request with any other is
    /// refused with 403. Tomcat: `allowedRequestAttributesPattern`.
    pub allowed_request_attributes: AllowedAttributes,
    /// Peers whose statements about users and TLS are believed although there is no secret. With a secret, every
    /// request proves it and the list does not matter. Requests of other peers are served as if they stated nothing
    /// about either. Default: this machine; listing a network trusts every host in it.
    pub trusted_peers: TrustedPeers,
    /// Whether the application authenticates users itself: then `remote_user` and `auth_type` of
    /// a front are not passed on, also from a trusted front. Default `false`; Tomcat's `tomcatAuthentication`
    /// is `true`, for it has no list of [trusted peers](Self::trusted_peers).
    pub tomcat_authentication: bool,
    /// How AJP fronts write paths. Must match them: an encoded path that is taken for a decoded one is escaped
    /// twice. Default [`UriForm::Encoded`].
    pub uri: UriForm,
    /// Whether AJP body packets are body bytes and nothing else, as lighttpd sends them, instead of
    /// a count and the bytes. Default `false`; no other front works with it.
    pub bare_body: bool,
    /// The most body bytes of a request, over AJP and HTTP. A longer one is refused with 413; if it announces its
    /// length, before the application sees it. `None`, the default, sets no limit. Tomcat's `maxPostSize` (2 MiB)
    /// limits forms only, which this connector leaves to the application; nginx: `client_max_body_size`.
    pub max_post_size: Option<NonZeroU64>,
    /// Paths that are served over TLS only: a plain request is redirected to [`redirect_port`](Self::redirect_port)
    /// with 302. Over AJP the front states whether its client used TLS, if it is trusted. Default: none. In a
    /// servlet's `web.xml`: `transport-guarantee`.
    pub confidential: ConfidentialPaths,
    /// The port of the redirect for [`confidential`](Self::confidential) paths, at the host that the client asked for.
    /// Default 443, as Tomcat's `redirectPort`.
    pub redirect_port: NonZeroU16,
    /// The permissions of Unix socket files: who may write to the file may connect. Default 0660, the owner and
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
            if self.secret.is_none()
                && listener.protocol == Protocol::Ajp
                && let Address::Tcp(address) = listener.address
                && !address.ip().to_canonical().is_loopback()
            {
                return Err(StartError::SecretRequired { address });
            }
        }
        Ok(())
    }
}

/// A status page of the connector, which takes precedence over the application.
///
/// The page is JSON, or HTML for a client that prefers it (`Accept`) or asks for it (`?format=html`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusView {
    /// The exact path of the page. Default `/_status`.
    pub path: String,
    /// The peers that may see the page; others are answered 403. Default: this machine. Both the connection and,
    /// over AJP, the client that the front names must be listed; an HTTP request that bears signs of a front
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

/// An address to listen on, with the protocol spoken there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The protocol that clients speak on this address.
    pub protocol: Protocol,
    /// The address to bind.
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

impl Protocol {
    /// The protocol's name, as in an upstream URL of the front.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ajp => "ajp",
            Self::Http => "http",
        }
    }
}

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address; port 0 lets the system choose (see
    /// [`Running::addresses`](crate::Running::addresses)).
    Tcp(SocketAddr),
    /// A Unix socket, created with [`Config::unix_socket_mode`] and removed when the connector ends. A socket file
    /// on which nobody listens is replaced.
    Unix(PathBuf),
}

impl fmt::Display for Listener {
    /// Writes the listener as an upstream URL of the front: `ajp://127.0.0.1:8009`, `http+unix:/run/app.sock`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.protocol.as_str();
        match &self.address {
            Address::Tcp(address) => write!(f, "{scheme}://{address}"),
            Address::Unix(path) => write!(f, "{scheme}+unix:{}", path.display()),
        }
    }
}

/// The I/O model that runs connections: how threads wait for sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IoModel {
    /// Readiness: a few event loops on epoll, like Tomcat's NIO.
    Epoll,
    /// Completion: a few event loops on io_uring, like Tomcat's NIO2 on systems that have it. Needs Linux 6.0 with
    /// io_uring allowed, and the feature `uring`, which is on by default.
    #[cfg(feature = "uring")]
    Uring,
    /// Blocking: a thread per connection from a pool of [`Config::max_threads`], like Tomcat's BIO. Needs the
    /// feature `threads`, which is on by default.
    #[cfg(feature = "threads")]
    Threads,
}

/// How a front writes the path of an AJP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriForm {
    /// Percent-encoded, as in a URI: mod_jk (`ForwardURIProxy`, its default), mod_proxy_ajp, IIS, our own front.
    Encoded,
    /// Decoded: lighttpd, nginx's ajp module, mod_jk with `JkOptions +ForwardURICompat`. A `%`, `?`
    /// or `#` is a character of the path and is escaped once, before anything is compared; nothing
    /// is decoded.
    Decoded,
}

/// Permissions of a Unix socket file, such as `0660`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixSocketMode(u32);

/// The error for a text that is not a [`UnixSocketMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mode is three octal digits, such as 660; 0 in front is allowed")]
pub struct UnixSocketModeError;

impl UnixSocketMode {
    /// The permission bits, as `chmod` takes them.
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

    /// Parses three octal digits, or four that begin with 0.
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

/// The shared secret of AJP. `Debug` does not print it; it is compared in constant time (CVE-2026-43514).
#[derive(Clone)]
pub struct Secret(Bytes);

impl IoModel {
    /// The model's name on the command line.
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

    /// All models that this build has.
    pub const ALL: &[Self] = &[
        Self::Epoll,
        #[cfg(feature = "uring")]
        Self::Uring,
        #[cfg(feature = "threads")]
        Self::Threads,
    ];

    /// Whether each connection has its own thread, on which a blocking handler runs.
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

    /// Whether `proof`, as sent by a peer, equals the secret.
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
