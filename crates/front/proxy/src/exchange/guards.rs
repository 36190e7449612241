//! The guards of a route, which decide whether a client may use it.
//!
//! They are asked in one place, [`crate::exchange::verdict`], once the route is known and before any
//! source of a response: a backend, a tunnel, a page, a status, a redirect. A route's `listen` is not a
//! guard: for clients of another listener such a route does not exist.

use http::StatusCode;

use crate::exchange::fields::forwarded::Identity;
use crate::peer::PeerFacts;
use crate::site::rules::Rules;

/// The guard that refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// `allow`: the client's address is in none of the networks. `deny`: it is in one of them.
    Address,
    /// `client_certificate`: the front has verified no certificate of the client.
    Certificate,
}

impl Guard {
    /// The guard of a route that refuses a client; `None`: all let it pass.
    pub(crate) fn refusing(rules: &Rules, peer: &PeerFacts, client: &Identity) -> Option<Self> {
        if rules.asks_certificate() && !has_certificate(peer) {
            return Some(Self::Certificate);
        }
        Self::refusing_preflight(rules, client)
    }

    /// The guard of a route that refuses a preflight of CORS, with which browsers show no certificate.
    pub(crate) fn refusing_preflight(rules: &Rules, client: &Identity) -> Option<Self> {
        (!rules.allows(client.ip)).then_some(Self::Address)
    }

    /// The status with which a refused request is answered.
    pub(crate) const STATUS: StatusCode = StatusCode::FORBIDDEN;

    /// The reason for the log.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::Address => "route-denied",
            Self::Certificate => "client-certificate-missing",
        }
    }

    /// The reason in words.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Address => "`allow` does not have the client's address, or `deny` has it",
            Self::Certificate => {
                "`client_certificate` of the route: the client showed none to this front"
            }
        }
    }
}

/// Whether the front itself has verified a certificate of the client. A certificate that a trusted proxy
/// reports is no proof here: a client that reaches the listener instead of that proxy could claim one.
fn has_certificate(peer: &PeerFacts) -> bool {
    let facts = peer.tls_facts();
    facts.is_some_and(|facts| facts.client_sha256.is_some())
}
