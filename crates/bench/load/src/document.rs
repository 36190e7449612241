//! JSON of what is no single run: how far one is, what a gate decided, a search, a comparison. The run itself is
//! [`Report`](crate::report::Report). Field names are the keys, with their units in them; docs/bench.md is the
//! reference.

pub mod knee;
pub mod versus;

use serde::{Deserialize, Serialize};

/// The progress of a run: a line of `bench --ticks`. Counts are from its beginning, or from the end of its warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Since the run began; once measuring has begun, since then.
    pub elapsed_s: f64,
    /// Whether it is still warming up.
    pub is_warm_up: bool,
    /// Requests begun.
    pub started: u64,
    /// Answered in full.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// The median latency of about the last second; `None` without answers, and while warming up.
    pub p50_ms: Option<f64>,
    /// The 99th percentile of the same.
    pub p99_ms: Option<f64>,
}

/// The decision of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The worst of its conditions: `passed`, `undecided` or `failed`.
    pub verdict: String,
    /// Each condition: those that were asked for, then those that hold for any run.
    pub conditions: Vec<Condition>,
}

/// One condition of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The condition as it was written.
    pub condition: String,
    /// `passed`, `undecided` or `failed`.
    pub verdict: String,
    /// `ms`, `requests/s`, `share` or `requests`; `None` for what is no number.
    pub unit: Option<String>,
    /// The figure; a lower bound if requests without an answer are at its place.
    pub value: Option<f64>,
    /// The lower end of its interval of 95 %; `None`: the run is too short for one.
    pub low: Option<f64>,
    /// The upper end; `None`: no end was found.
    pub high: Option<f64>,
    /// Why it is undecided, or the run invalid.
    pub reason: Option<String>,
}
