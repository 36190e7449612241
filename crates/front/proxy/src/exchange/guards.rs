//! The guards of a route: who may have what it gives.
//!
//! They are asked in one place, [`crate::exchange::verdict`], once the route is known and before any
//! source of a response: a backend, a tunnel, a page, a status, a redirect. A route's `listen` is not
//! among them: for clients of another listener such a route does not exist.

use http::StatusCode;

use crate::exchange::fields::forwarded::Identity;
use crate::peer::PeerFacts;
use crate::site::rules::Rules;

/// A guard that refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// `allow`: the client's address is in none of the networks. `deny`: it is in one of them.
    Address,
    /// `client_certificate`: the client has shown no certificate to this front.
    Certificate,
}

impl Guard {
    /// The first guard of a route that refuses a client.
    pub(crate) fn refusing(rules: &Rules, peer: &PeerFacts, client: &Identity) -> Option<Self> {
        if rules.asks_certificate() && !has_certificate(peer) {
            return Some(Self::Certificate);
        }
        (!rules.allows(client.ip)).then_some(Self::Address)
    }

    /// The status with which a refused request is answered.
    pub(crate) const STATUS: StatusCode = StatusCode::FORBIDDEN;

    /// The reason in the log.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::Address => "route-denied",
            Self::Certificate => "client-certificate-missing",
        }
    }

    /// Why, in words.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Address => "`allow` does not have the client's address, or `deny` has it",
            Self::Certificate => {
                "`client_certificate` of the route: the client showed none to this front"
            }
        }
    }
}

/// Whether the front itself has verified a certificate of the client. What a trusted proxy says of one is
/// no proof here: a client that reaches a listener in the place of that proxy would need none.
fn has_certificate(peer: &PeerFacts) -> bool {
    let session = peer.tls.as_deref();
    session.is_some_and(|session| session.facts.client_sha256.is_some())
}
