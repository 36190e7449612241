//! Choosing a backend: pure decisions, no connections.
//!
//! A [`Schedule`] belongs to one upstream on one worker. It asks what it needs of the upstream's
//! [`Members`] and answers with an index. [`affinity`] says whose session a request belongs to,
//! [`hash`] which member a key leads to, [`health`] who may be picked, [`RetryBudget`] how often a failed request may be tried again.
//! Nothing here knows addresses, opens connections or reads a clock, so that each decision is tested
//! by asking for it.
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
