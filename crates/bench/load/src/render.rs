//! Renders a report as text, for people and for programs, by pure functions.
//!
//! The functions neither measure nor judge nor print: warnings are decided where the [`Report`] is
//! made, and become text here. [`ab`] writes the report of `ab`, in its words and number formats;
//! [`text`] writes it in finer units and adds what `ab` does not show; [`json`], [`csv`] and
//! [`hdr`] are for programs, and docs/bench.md is their reference.

pub mod ab;
mod by_name;
pub mod csv;
pub mod gate;
pub mod hdr;
pub mod html;
pub mod json;
pub mod knee;
mod memcached;
mod page;
#[cfg(test)]
pub(crate) mod sample;
pub mod text;
pub mod verdict;
pub mod versus;
mod warning;

use std::time::Duration;

use crate::report::{Report, Subject, ratio};

/// The mean time of a request in milliseconds (ab's first "Time per request"). For a closed loop
/// with a constant number of clients it is computed from the time of all requests, as in ab;
/// otherwise it is the measured mean. `across_all` is the elapsed milliseconds per request.
fn time_per_request(report: &Report, subject: &Subject, across_all: f64) -> f64 {
    let is_closed_loop = subject.rate.is_none();
    if is_closed_loop && !subject.has_stages && subject.streams == 1 {
        report.concurrency as f64 * across_all
    } else {
        report.latency.total.histogram.mean().as_secs_f64() * 1000.0
    }
}

/// A count per second; zero if no time has elapsed.
fn per_second(count: u64, elapsed: Duration) -> f64 {
    ratio(count as f64, elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_second_is_no_second() {
        let mut report = sample::report();
        report.elapsed = Duration::from_millis(2400);
        report.seconds = [10, 12, 3].map(sample::second).to_vec();
        assert_eq!(report.whole_seconds(), [10.0, 12.0]);
    }
}
