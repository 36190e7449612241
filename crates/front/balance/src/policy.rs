//! The balancing policies, from which a configuration chooses.
//!
//! Health, affinity and drain decide who may be picked; [`crate::Schedule`] has the order among
//! these members, and [`crate::hash`] the member of a key.

/// The policy by which one of the members that may be picked is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Weighted round robin: each backend's share is its weight, and heavy backends are spread out
    /// rather than served in bursts. Requests that a backend gets because of a session count, too.
    /// nginx's default; httpd's `byrequests`; mod_jk: `method=R`.
    #[default]
    RoundRobin,
    /// The backend with the fewest exchanges in flight for its weight; equal ones take turns. Exact
    /// among up to 32 backends; among more the better of two random ones, by weight. nginx:
    /// `least_conn`; mod_jk: `method=B`; httpd: `bybusyness`.
    LeastInFlight,
    /// Round robin by weights that are corrected once a second, so that in time each backend has
    /// its share of the sessions seen lately. mod_jk: `method=S`.
    Sessions,
    /// Round robin by weights that are corrected once a second, so that in time each backend has
    /// its share of the bytes moved lately. mod_jk: `method=T`; httpd: `bytraffic`.
    Traffic,
    /// Requests with the same key go to the same backend ([`crate::hash::Maglev`]); requests without
    /// a key take turns. nginx: `hash ... consistent`; HAProxy: `balance source`, `hash-type
    /// consistent`.
    Hash,
}

impl Policy {
    /// Whether a pick under this policy calls [`crate::Members::in_flight`].
    #[must_use]
    pub fn reads_in_flight(self) -> bool {
        match self {
            Self::LeastInFlight => true,
            Self::RoundRobin | Self::Sessions | Self::Traffic | Self::Hash => false,
        }
    }

    /// The word for the policy in the file and in the admin API.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LeastInFlight => "least-in-flight",
            Self::Sessions => "sessions",
            Self::Traffic => "traffic",
            Self::Hash => "hash",
        }
    }
}
