//! Who the other end of a client's connection is.

use std::net::SocketAddr;
use std::sync::Arc;

use catamaran_tls::{Facts, Session};
use catamaran_transport::ProxyTls;

/// What the connection tells of the client.
#[derive(Clone, Debug)]
pub(crate) struct PeerFacts {
    /// The client's address; for a Unix socket the loopback address and port 0.
    pub(crate) remote: SocketAddr,
    /// The address the client connected to; for a Unix socket as `remote`.
    pub(crate) local: SocketAddr,
    /// Whether it came over TLS: to the front, or to a proxy in front of it that ended TLS.
    pub(crate) secure: bool,
    /// The TLS session; `None` without TLS, and if the proxy does not tell. [`Session::profile`] says whether it is the
    /// front's own or a proxy's.
    pub(crate) tls: Option<Arc<Session>>,
}

/// A client's TLS that a proxy in front of the front ended, as a header of the PROXY protocol or the listener's
/// configuration tells.
#[derive(Debug)]
pub(crate) struct ToldTls {
    /// The TLS session, if the proxy tells.
    pub(crate) session: Option<Arc<Session>>,
}

impl ToldTls {
    /// The TLS that a proxy tells of; `None` if the client reached the proxy in clear. Without a `header`, `secure`
    /// decides that.
    pub(crate) fn new(header: Option<ProxyTls>, secure: bool) -> Option<Box<Self>> {
        let is_used = header.as_ref().map_or(secure, |tls| tls.is_used);
        let facts =
            header.and_then(|tls| Facts::told(&tls.version?, tls.cipher, tls.certificate_cn));
        let session = facts.map(|facts| {
            let profile = None;
            Arc::new(Session { facts, profile })
        });
        is_used.then(|| Box::new(Self { session }))
    }
}
