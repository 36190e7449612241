//! The balancing policies, a closed set chosen at run time.
//!
//! Health, affinity and drain decide who may be picked; [`crate::Schedule`] has the order among
//! those, and [`crate::hash`] the member of a key.

/// How a backend is picked among the eligible ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Weighted round robin: each backend's share is its weight, and heavy backends are spread out
    /// rather than served in bursts. Requests that a session leads to a backend count.
    /// nginx's default; httpd's `byrequests`; mod_jk: `method=R`.
    #[default]
    RoundRobin,
    /// The fewest exchanges in flight for its weight; ties go round. Exact among up to 32
    /// backends; among more the better of two random ones, by weight. nginx: `least_conn`; mod_jk:
    /// `method=B`; httpd: `bybusyness`.
    LeastInFlight,
    /// Round robin by weights that are corrected once a second, so that in time each backend has
    /// its share of the sessions seen lately. mod_jk: `method=S`.
    Sessions,
    /// Round robin by weights that are corrected once a second, so that in time each backend has
    /// its share of the bytes moved lately. mod_jk: `method=T`; httpd: `bytraffic`.
    Traffic,
    /// The same key leads to the same backend ([`crate::hash::Maglev`]); requests without a key take
    /// turns. nginx: `hash ... consistent`; HAProxy: `balance source`, `hash-type consistent`.
    Hash,
}

impl Policy {
    /// Whether picks ask for [`crate::Members::in_flight`].
    #[must_use]
    pub fn reads_in_flight(self) -> bool {
        match self {
            Self::LeastInFlight => true,
            Self::RoundRobin | Self::Sessions | Self::Traffic | Self::Hash => false,
        }
    }

    /// The word for it in the file and in the admin API.
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
