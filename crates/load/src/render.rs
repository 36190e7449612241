//! A report as text, for people and for programs: pure functions from data to strings.
//!
//! Nothing here measures, judges or prints. The doubts about a run are decided where its [`Report`]
//! is made; here they become text. [`ab`] writes the report of `ab`, in its words and number formats;
//! [`text`] writes it in finer units and adds what `ab` does not show; [`json`], [`csv`] and [`hdr`]
//! are for programs, and docs/bench.md is their reference.

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

use catamaran_memcache::Dialect;

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
    /// What is spoken to the first target.
    pub protocol: SpokenProtocol,
    /// Requests that a connection carries at once.
    pub streams: u32,
    /// What was asked of memcached; `None`: another protocol is spoken.
    pub memcached: Option<MemcachedSubject>,
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

/// What was asked of memcached.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcachedSubject {
    /// Operations and their weights, such as `get=9, set=1`.
    pub mix: String,
    /// How many keys there are.
    pub keys: u64,
    /// The exponent of Zipf's law; `None`: each key is as frequent as any other.
    pub zipf: Option<f64>,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Values that were stored before the run, and are in no count of the report.
    pub prefilled: u64,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpokenProtocol {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
    /// AJP13.
    Ajp13,
    /// One of memcached's protocols.
    Memcached(Dialect),
}

impl SpokenProtocol {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Ajp13 => "AJP13",
            Self::Memcached(Dialect::Meta) => "memcached (meta)",
            Self::Memcached(Dialect::Text) => "memcached (text)",
        }
    }
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
    match (subject.rate, subject.has_stages, subject.streams) {
        (None, false, 1) => report.concurrency as f64 * across_all,
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
    fn a_part_of_a_second_is_no_second() {
        let mut report = sample::report();
        report.elapsed = Duration::from_millis(2400);
        report.seconds = [10, 12, 3].map(sample::second).to_vec();
        assert_eq!(whole_seconds(&report), [10.0, 12.0]);
    }
}
