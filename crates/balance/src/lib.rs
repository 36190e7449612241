//! Choosing a backend: pure decisions, no connections.
//!
//! A [`Balancer`] belongs to one upstream on one worker. Whoever asks it describes each backend as
//! a [`Candidate`]; the balancer answers with an index. It knows no addresses, opens nothing and
//! reads no clock, so that a policy is tested by calling it.
//!
//! ```
//! use catamaran_balance::{Balancer, Candidate, Policy};
//!
//! let mut balancer = Balancer::new(Policy::RoundRobin, 2);
//! let backend = |weight| Candidate { weight, in_flight: 0, eligible: true };
//! let picks: Vec<_> = (0..4)
//!     .filter_map(|_| balancer.pick(&[backend(3), backend(1)]))
//!     .collect();
//! assert_eq!(picks, [0, 0, 1, 0]);
//! ```
#![forbid(unsafe_code)]

mod policy;

pub use policy::{Balancer, Candidate, Policy};
