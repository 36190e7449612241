//! The balancing policies, a closed set chosen at run time.
//!
//! Health, affinity and drain decide who may be picked; [`crate::Schedule`] has the order among
//! those.

/// How a backend is picked among the eligible ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Weighted round robin: each backend's share is its weight, and heavy backends are spread out
    /// rather than served in bursts. nginx's default; httpd's `byrequests`.
    #[default]
    RoundRobin,
    /// The fewest exchanges in flight for its weight; ties go round. Exact among up to 32
    /// backends; among more the better of two random ones, by weight. nginx: `least_conn`; mod_jk:
    /// `method=B`; httpd: `bybusyness`.
    LeastInFlight,
}
