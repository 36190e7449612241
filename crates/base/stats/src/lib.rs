//! Histograms, and what may be concluded from the numbers of a run.
//!
//! Where the numbers come from is `load`'s and `lab`'s business: nothing here reads a clock, a
//! socket or a file, so that every conclusion can be tested by asking for it.
//!
//! - [`Histogram`]: latencies in memory that does not grow, and [`log`], their exchange format;
//! - [`CensoredLatencies`]: latencies of which some are lower bounds, because no answer came;
//! - [`is_quotable`]: whether a percentile has the samples behind it;
//! - [`Spread`]: how far apart the values of a series are;
//! - [`warm_up()`]: whether a series is steady enough to begin measuring; [`change()`]: where its
//!   level changes;
//! - [`signed_rank`]: whether pairs differ, and by how much; [`looks`]: how strict each of several looks at them is;
//!   [`order`]: several claims together; [`rank`]: samples that are no pairs;
//! - [`blocks`]: in which order to measure; [`fisher`]: whether two shares differ;
//! - [`repetition`]: whether a published figure is borne out by ours;
//! - [`estimate`]: intervals of what a run estimates; [`Slice`]: the values of a short time;
//! - [`tally`]: latencies of a server that goes on for ever, of the last minute;
//! - [`buckets`]: latencies of such a server since its start, as Prometheus wants them;
//! - [`LittlesLaw`]: whether a run's own figures fit each other.
//!
//! ```
//! use std::time::Duration;
//! use catamaran_stats::Histogram;
//!
//! let mut latency = Histogram::new();
//! for millis in 1..=100 {
//!     latency.record(Duration::from_millis(millis));
//! }
//! assert_eq!(latency.percentile(50.0).as_millis(), 50);
//! assert_eq!(latency.max(), Duration::from_millis(100));
//! ```
#![forbid(unsafe_code)]

pub mod blocks;
pub mod buckets;
mod censored;
mod change;
#[cfg(test)]
mod duels;
pub mod estimate;
mod histogram;
mod little;
pub mod log;
pub mod looks;
pub mod order;
pub mod rank;
pub mod repetition;
mod shares;
pub mod signed_rank;
#[cfg(test)]
mod simulation;
mod slice;
mod spread;
pub mod tally;
mod warm_up;

pub use censored::{CensoredLatencies, LatencyFloor};
pub use change::{Change, change};
pub use histogram::{Histogram, PERCENTILES, is_quotable};
pub use little::LittlesLaw;
pub use shares::{Share, fisher};
pub use slice::{Slice, SliceRecorder};
pub use spread::Spread;
pub use warm_up::{MOVEMENT_MAX, WarmUp, warm_up};
