//! What a connection says about its client: addresses, and TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use catamaran_tls::{Facts, Profile, Session};
use catamaran_transport::ProxyTls;

/// The facts about a client that its connection gives.
#[derive(Clone, Debug)]
pub(crate) struct PeerFacts {
    /// The client's address; for a Unix socket the loopback address and port 0.
    pub(crate) remote: SocketAddr,
    /// The address that the client connected to; for a Unix socket the loopback address and port 0.
    pub(crate) local: SocketAddr,
    /// Whether the client uses TLS: to the front, or to a proxy in front of it that terminated TLS.
    pub(crate) secure: bool,
    /// The TLS session; `None` without TLS, or if a proxy terminated it without giving details. [`Session::profile`]
    /// says whether the session is the front's own or a proxy's.
    pub(crate) tls: Option<Arc<Session>>,
}

impl PeerFacts {
    /// The facts about the client's TLS; `None` if it uses none, or they are not known.
    pub(crate) fn tls_facts(&self) -> Option<&Facts> {
        self.tls.as_deref().map(|session| &session.facts)
    }

    /// Whether the front itself verifies certificates on the client's connection.
    pub(crate) fn front_verifies(&self) -> bool {
        self.profile()
            .is_some_and(|profile| profile.verifies_clients())
    }

    /// Whether backends get the whole chain of the client's certificate.
    pub(crate) fn tells_chain(&self) -> bool {
        self.profile().is_some_and(|profile| profile.tells_chain())
    }

    fn profile(&self) -> Option<&Profile> {
        self.tls.as_ref()?.profile.as_deref()
    }
}

/// A client's TLS that a proxy in front of the front ended, as a header of the PROXY protocol or the listener's
/// configuration tells.
#[derive(Debug)]
pub(crate) struct ToldTls {
    /// The details of the TLS session; `None`: the proxy gave none.
    pub(crate) session: Option<Arc<Session>>,
}

impl ToldTls {
    /// Reads the client's TLS from the proxy's header; `None` if the client reached the proxy in clear text. Without a
    /// `header`, `secure` decides that.
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
