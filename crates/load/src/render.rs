//! A report as text, for people and for programs: pure functions from data to strings.
//!
//! Nothing here measures, judges or prints. What is doubtful about a run is decided where its
//! [`Report`] is made; here it only gets its words. [`ab`] says what `ab` says, in its words and
//! number formats; [`text`] says it in finer units and goes on to what `ab` hides; [`json`],
//! [`csv`] and [`hdr_log`] are for programs, and docs/bench.md is their reference.

pub mod ab;
pub mod csv;
pub mod gate;
pub mod html;
pub mod json;
pub mod knee;
mod page;
#[cfg(test)]
pub(crate) mod sample;
pub mod text;
pub mod verdict;
pub mod versus;
mod warning;

use std::time::Duration;

use catamaran_stats::Censored;
use catamaran_stats::log::{self, Interval};

use crate::report::{Report, Warning};

/// What a report is about: what the plan said and the report does not repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The first URL as the user gave it.
    pub url: String,
    /// How many URLs there were.
    pub urls: usize,
    /// The host in it, without brackets (ab: Server Hostname).
    pub hostname: String,
    /// Its port (ab: Server Port).
    pub port: u16,
    /// Path and query (ab: Document Path).
    pub path: String,
    /// Whether connections were to be kept alive (`-k`).
    pub keep_alive: bool,
    /// Whether requests have bodies (`-p`, `-u`).
    pub sends_body: bool,
    /// Whether answers may differ in length (`-l`).
    pub variable_length: bool,
    /// Whether the table of percentiles is wanted (not `-d`).
    pub percentiles: bool,
    /// Whether deviations and doubts are wanted (not `-S`).
    pub confidence: bool,
    /// Requests per second that were asked for (`--rate`); `None`: a closed loop.
    pub rate: Option<f64>,
    /// Whether the rate or the number of clients changes in the run (`--stage`, `--ramp`).
    pub has_stages: bool,
}

/// The histograms of a run as a log for HdrHistogram's tools, one line each, tagged `total`,
/// `corrected`, `connect`, `first_byte`, `processing`, `lateness` and `unfinished`; those without
/// values are left out. `corrected` has requests without an answer, too, with the time that they
/// were waited for: its format knows no lower bounds.
pub fn hdr_log(report: &Report) -> Vec<u8> {
    let latency = &report.latency;
    let corrected = latency.corrected.as_ref().map(Censored::lower_bounds);
    let histograms = [
        ("total", Some(&latency.total)),
        ("corrected", corrected.as_ref()),
        ("connect", Some(&latency.connect)),
        ("first_byte", Some(&latency.first_byte)),
        ("processing", Some(&latency.processing)),
        ("lateness", latency.lateness.as_ref()),
        ("unfinished", Some(&report.unfinished.ages)),
    ];
    let intervals: Vec<Interval<'_>> = histograms
        .into_iter()
        .filter_map(|(tag, histogram)| Some((tag, histogram?)))
        .filter(|(_, histogram)| !histogram.is_empty())
        .map(|(tag, histogram)| Interval {
            tag,
            start: Duration::ZERO,
            length: report.elapsed,
            histogram,
        })
        .collect();
    let mut bytes = Vec::new();
    log::write(&mut bytes, report.started_at, &intervals).expect("a vector takes all");
    bytes
}

/// What happened, and what it means or what to do.
pub(crate) fn warning_text(warning: &Warning) -> String {
    warning::text(warning)
}

/// Its name in files: kebab-case, never changed.
pub(crate) fn warning_token(warning: &Warning) -> &'static str {
    warning::token(warning)
}

/// The mean time of a request in milliseconds (ab's first "Time per request"): of a closed loop whose
/// clients are always as many from the time that all requests took, as ab has it, and otherwise as
/// measured.
fn time_per_request(report: &Report, subject: &Subject, across_all: f64) -> f64 {
    match (subject.rate, subject.has_stages) {
        (None, false) => report.concurrency as f64 * across_all,
        _ => report.latency.total.mean().as_secs_f64() * 1000.0,
    }
}

/// A count per second, zero in no time.
fn per_second(count: u64, elapsed: Duration) -> f64 {
    ratio(count as f64, elapsed.as_secs_f64())
}

/// One by the other, zero if there is no other.
fn ratio(one: f64, other: f64) -> f64 {
    if other > 0.0 { one / other } else { 0.0 }
}

/// Answers of each whole second; the last, shorter one would pass for a drop.
fn whole_seconds(report: &Report) -> Vec<f64> {
    let whole = usize::try_from(report.elapsed.as_secs()).unwrap_or(usize::MAX);
    let seconds = report.seconds.iter().take(whole);
    seconds.map(|second| second.completed as f64).collect()
}

/// CPU time of all our threads.
fn generator_cpu(report: &Report) -> Duration {
    let threads = report.generator.iter();
    threads.map(|thread| thread.cpu).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_a_line_for_each_histogram_with_values() {
        let text = String::from_utf8(hdr_log(&sample::report())).unwrap();
        let tags: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("Tag="))
            .filter_map(|line| line.split(',').next())
            .collect();
        assert_eq!(tags, ["total", "connect", "first_byte", "processing"]);
    }

    #[test]
    fn a_part_of_a_second_is_no_second() {
        let mut report = sample::report();
        report.elapsed = Duration::from_millis(2400);
        report.seconds = [10, 12, 3].map(sample::second).to_vec();
        assert_eq!(whole_seconds(&report), [10.0, 12.0]);
    }
}
