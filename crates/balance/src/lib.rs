//! Choosing a backend: pure decisions, no connections.
//!
//! A [`Balancer`] belongs to one upstream on one worker. Whoever asks it describes each backend as
//! a [`Candidate`]; the balancer answers with an index. [`health`] says who may be a candidate,
//! [`RetryBudget`] how often a failed request may be tried again. Nothing here knows addresses,
//! opens connections or reads a clock, so that each decision is tested by asking for it.
//!
//! ```
//! use catamaran_balance::{Balancer, Candidate, Policy};
//!
//! let mut balancer = Balancer::new(Policy::RoundRobin, 2);
//! let backend = |weight| Candidate { weight, share: 100, in_flight: 0, eligible: true };
//! let picks: Vec<_> = (0..4)
//!     .filter_map(|_| balancer.pick(&[backend(3), backend(1)]))
//!     .collect();
//! assert_eq!(picks, [0, 0, 1, 0]);
//! ```
#![forbid(unsafe_code)]

mod budget;
pub mod health;
mod policy;

pub use budget::RetryBudget;
pub use policy::{Balancer, Candidate, Policy};
