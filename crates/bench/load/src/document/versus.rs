//! Two targets compared in one run, as `bench --versus --json` has it.

use serde::{Deserialize, Serialize};

/// The version of the keys' meanings.
pub const SCHEMA: &str = "catamaran-bench-versus/1";

/// A comparison of two targets, `a` and `b`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// [`SCHEMA`].
    pub schema: String,
    /// The URL of `a`.
    pub a: String,
    /// The URL of `b`.
    pub b: String,
    /// When the first block began, in Unix time.
    pub started_at_s: f64,
    /// The length of a block in seconds, its lead included.
    pub block_s: f64,
    /// The beginning of each block that is not measured, in seconds: connections are opened in it.
    pub lead_s: f64,
    /// Pairs of blocks that were measured.
    pub pairs: usize,
    /// The measures that were compared.
    pub measures: Vec<Measure>,
    /// Spans without an answer, which medians of blocks hide: of `a`, then of `b`. Empty in files of before there was
    /// this key.
    #[serde(default)]
    pub silences: Vec<SilentBlocks>,
    /// Every block, in the order of the run.
    pub blocks: Vec<Block>,
    /// Reasons to distrust the figures.
    pub warnings: Vec<Warning>,
    /// All in one sentence.
    pub sentence: String,
}

/// One measure of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// `rate`, `p50`, `p99` or `errors`.
    pub measure: String,
    /// `requests/s`, `ms` or `share`.
    pub unit: String,
    /// The median of the blocks of `a`; `None`: there was nothing to measure.
    pub a: Option<f64>,
    /// The median of the blocks of `b`; `None`: there was nothing to measure.
    pub b: Option<f64>,
    /// Pairs that have a ratio.
    pub pairs: usize,
    /// The median of the pairs' ratios, `a` by `b`; `None`: too few pairs, or infinite.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end; `None`: infinite, or too few pairs.
    pub high: Option<f64>,
    /// The exact confidence level of the interval, from 0 to 1.
    pub level: Option<f64>,
    /// The probability of such ratios without a difference (two-sided sign test).
    pub p: f64,
    /// `differs`, `suggests` (but not beside the other measures), `none-shown`, `too-few`.
    pub verdict: String,
    /// Why there is no verdict.
    pub reason: Option<String>,
}

/// A target's silences: spans without an answer although requests waited for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SilentBlocks {
    /// `a` or `b`.
    pub target: String,
    /// The number of its blocks that have a silence.
    pub blocks: usize,
    /// Silences in all of them.
    pub count: usize,
    /// The longest span without an answer in any block, also one that is no silence; 0: none was as long as 1 ms.
    pub longest_ms: f64,
}

/// One block of one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The pair's number, from 0.
    pub pair: usize,
    /// `a` or `b`.
    pub target: String,
    /// Requests that were begun or due.
    pub requests: u64,
    /// Complete answers per second.
    pub requests_per_s: f64,
    /// The median latency, corrected where there is a schedule; `None` without answers.
    pub p50_ms: Option<f64>,
    /// The 99th percentile.
    pub p99_ms: Option<f64>,
    /// The share of requests that failed, had no answer or were not answered 2xx.
    pub errors: f64,
    /// Silences: spans without an answer of 100 ms or more, as [`Report::silences`] has them.
    ///
    /// [`Report::silences`]: crate::report::Report::silences
    #[serde(default)]
    pub silences: usize,
    /// The longest span without an answer; `None` if none was as long as 1 ms.
    #[serde(default)]
    pub longest_silence_ms: Option<f64>,
}

/// A warning, and in how many blocks it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Its token.
    pub kind: String,
    /// Its text in the first block that has it.
    pub text: String,
    /// Blocks of `a` that have it.
    pub a: usize,
    /// Blocks of `b` that have it.
    pub b: usize,
}
