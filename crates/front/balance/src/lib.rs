//! Chooses backends: pure decisions, no connections.
//!
//! A [`Schedule`] belongs to one upstream on one worker. It asks the upstream's [`Members`] for facts and returns the
//! index of one. [`affinity`] finds the member of a request's session, [`hash`] the member of a key; [`health`] decides
//! who may be picked, [`RetryBudget`] how often failed requests may be tried again. Nothing here knows addresses, opens
//! connections or reads a clock, so each decision can be tested by a call.
//!
//! ```
//! use std::time::Duration;
//! use catamaran_balance::{Members, Policy, Schedule};
//!
//! struct AllUp;
//!
//! impl Members for AllUp {
//!     fn share(&self, _: usize) -> u8 {
//!         100
//!     }
//!
//!     fn in_flight(&self, _: usize) -> usize {
//!         0
//!     }
//!
//!     fn sessions(&self, _: usize) -> u64 {
//!         0
//!     }
//!
//!     fn traffic(&self, _: usize) -> u64 {
//!         0
//!     }
//! }
//!
//! let mut schedule = Schedule::new(Policy::RoundRobin, [3, 1], 7);
//! let picks = (0..4).filter_map(|_| schedule.pick(&AllUp, &[], Duration::ZERO));
//! assert_eq!(picks.filter(|&member| member == 0).count(), 3);
//! ```
#![forbid(unsafe_code)]

mod activation;
pub mod affinity;
mod budget;
pub mod hash;
pub mod health;
mod level;
mod policy;
mod schedule;
mod sessions;

pub use activation::Activation;
pub use budget::RetryBudget;
pub use policy::Policy;
pub use schedule::{Members, Schedule};
pub use sessions::Sessions;
