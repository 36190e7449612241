//! Histograms, and what may be concluded from the numbers of a run.
//!
//! This crate reads no clock, socket or file: `load` and `lab` provide the numbers, so that every conclusion can be
//! tested.
//!
//! - [`Histogram`]: latencies in constant memory, and [`log`], their exchange format;
//! - [`CensoredLatencies`]: latencies of which some are lower bounds, because no answer came;
//! - [`is_quotable`]: whether a percentile has enough samples to be reported;
//! - [`Spread`]: extremes, mean, median and deviation of a series;
//! - [`warm_up()`]: whether a series is steady enough to begin measuring; [`change()`]: where its level changes;
//! - [`signed_rank`]: whether pairs differ, and by how much; [`looks`]: the level of each of several looks at them;
//!   [`flips`]: whether any of several figures of pairs differs; [`order`]: several claims together;
//!   [`rank`]: two samples that are not pairs; [`ratio`]: a ratio of starts by all of this;
//! - [`blocks`]: the order in which to measure; [`Share`]: a share with its interval; [`fisher`]: whether two differ;
//! - [`repetition`]: whether a repetition confirms a published figure;
//! - [`estimate`]: intervals of what a run estimates; [`Slice`]: the values of a short time;
//! - [`tally`]: latencies of a running server, of the last minute;
//! - [`buckets`]: latencies of a running server since its start, in the form of Prometheus;
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
pub mod flips;
mod histogram;
mod little;
pub mod log;
pub mod looks;
pub mod order;
pub mod rank;
pub mod ratio;
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
