//! The JSON document of a search for a knee.

use serde::{Deserialize, Serialize};

/// The result of a search, as a JSON document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// [`SCHEMA`].
    pub schema: String,
    /// The URL as given.
    pub url: String,
    /// The conditions under which a step fails.
    pub limits: Vec<String>,
    /// All steps, in the order in which they were done.
    pub steps: Vec<Step>,
    /// The highest rate that was sustained; `None`: not even the lowest one tried.
    pub sustained_per_s: Option<f64>,
    /// The lowest rate that was not; `None`: none was found. With `sustained_per_s` it is the
    /// interval in which the knee lies.
    pub broken_per_s: Option<f64>,
    /// Whether no rate broke a limit, but the generator was late at some.
    pub is_generator: bool,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The rate asked for.
    pub rate_per_s: f64,
    /// The length of the measured time.
    pub elapsed_s: f64,
    /// Requests sent per second.
    pub sent_per_s: f64,
    /// Median of corrected latency; a lower bound if requests without an answer are there.
    pub p50_ms: f64,
    /// 99th percentile of the same.
    pub p99_ms: f64,
    /// Requests that were never sent.
    pub unsent: u64,
    /// `passed`, `undecided`, `failed`, or [`LATE`].
    pub verdict: String,
    /// Whether it failed by nothing but the generator's own lateness: its verdict is [`LATE`].
    pub is_generator: bool,
    /// The conditions that did not pass, with their reasons.
    pub broken: Vec<String>,
}

/// The verdict of a step that the generator was late at, and that broke no limit otherwise. It counts
/// as undecided.
pub const LATE: &str = "late";

/// The schema of [`Knee`].
pub const SCHEMA: &str = "catamaran-bench-knee/1";
