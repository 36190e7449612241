//! The JSON documents besides a run's report: progress, a gate's decision, the search for a knee, a
//! comparison. The run itself is [`Report`](crate::report::Report). Field names are the keys, with
//! their units; docs/bench.md is the reference.

pub mod knee;
pub mod versus;

use serde::{Deserialize, Serialize};

/// The progress of a run: one line of `bench --ticks`. Counts are from the beginning of the run, or
/// from the end of its warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// The time since the run began; once measuring has begun, the time since then.
    pub elapsed_s: f64,
    /// Whether the run is warming up.
    pub is_warm_up: bool,
    /// The number of requests begun.
    pub started: u64,
    /// The number of requests answered in full.
    pub completed: u64,
    /// The number of requests that failed.
    pub failed: u64,
    /// The median latency of about the last second; `None` without responses, and while warming up.
    pub p50_ms: Option<f64>,
    /// The 99th percentile of latency of about the last second; `None` without responses, and while warming up.
    pub p99_ms: Option<f64>,
}

/// The result of a gate, with its conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The verdict of the gate: the worst of its conditions' (`passed`, `undecided` or `failed`).
    pub verdict: String,
    /// The conditions: first those of the user, then those that hold for any run.
    pub conditions: Vec<Condition>,
}

/// One condition of a gate, with its figure and verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The condition as the user wrote it.
    pub condition: String,
    /// The verdict: `passed`, `undecided` or `failed`.
    pub verdict: String,
    /// The unit of the figure: `ms`, `requests/s`, `share` or `requests`; `None` if there is no figure.
    pub unit: Option<String>,
    /// The figure; a lower bound if it depends on requests without a response.
    pub value: Option<f64>,
    /// The lower end of the figure's interval of 95 %; `None`: the run is too short for an interval.
    pub low: Option<f64>,
    /// The upper end of the interval; `None`: no upper end was found.
    pub high: Option<f64>,
    /// Why the condition is undecided, or the run invalid; `None`: no reason is given.
    pub reason: Option<String>,
}
