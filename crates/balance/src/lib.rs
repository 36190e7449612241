//! Choosing a backend: pure decisions, no connections.
#![forbid(unsafe_code)]

/// How a backend is picked among the usable ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Smooth weighted round robin.
    #[default]
    RoundRobin,
    /// The fewest exchanges in flight per weight.
    LeastInFlight,
}
