//! The JSON document of a search for a knee.

use serde::{Deserialize, Serialize};

/// The result of a search, as a JSON document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// The schema of the document: [`SCHEMA`].
    pub schema: String,
    /// The server's URL as given.
    pub url: String,
    /// The conditions by which a step fails, such as `p99>100ms`.
    pub limits: Vec<String>,
    /// All steps, in the order in which they ran.
    pub steps: Vec<Step>,
    /// The highest rate that was sustained; `None`: no rate was.
    pub sustained_per_s: Option<f64>,
    /// The lowest rate that was not sustained; `None`: none was found. The knee lies between
    /// `sustained_per_s` and this.
    pub broken_per_s: Option<f64>,
    /// Whether no rate broke a limit, but the generator was late at some rate.
    pub is_generator: bool,
}

/// One step of a search: a run at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The rate of the plan.
    pub rate_per_s: f64,
    /// The length of the measured time, in seconds.
    pub elapsed_s: f64,
    /// The number of requests sent per second.
    pub sent_per_s: f64,
    /// The median latency, counted from when requests were due; a lower bound if some requests had no response.
    pub p50_ms: f64,
    /// The 99th percentile of latency, counted from when requests were due; a lower bound if some requests had no
    /// response.
    pub p99_ms: f64,
    /// The number of requests that were never sent.
    pub unsent: u64,
    /// The verdict of the step: `passed`, `undecided`, `failed`, or [`LATE`].
    pub verdict: String,
    /// Whether the step tells nothing only because the generator was late: its verdict is [`LATE`].
    pub is_generator: bool,
    /// The conditions that were not passed, with their reasons.
    pub broken: Vec<String>,
}

/// The verdict of a step in which the generator was late and no limit was broken otherwise. It counts as undecided.
pub const LATE: &str = "late";

/// The schema of the document [`Knee`].
pub const SCHEMA: &str = "catamaran-bench-knee/1";
