//! The JSON document of a comparison of two targets, as `bench --versus --json` writes it.

use serde::{Deserialize, Serialize};

use super::Gate;

/// The version of the keys' meanings.
pub const SCHEMA: &str = "catamaran-bench-versus/1";

/// The result of a comparison of two targets, `a` and `b`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// The schema of the document: [`SCHEMA`].
    pub schema: String,
    /// The URL of the target `a`.
    pub a: String,
    /// The URL of the target `b`.
    pub b: String,
    /// The time at which the first block began, in Unix time.
    pub started_at_s: f64,
    /// The length of a block in seconds, its lead included.
    pub block_s: f64,
    /// The beginning of each block that is not measured, in seconds; connections are opened in it.
    pub lead_s: f64,
    /// How long each target was warmed before the first block, of `a`, then of `b`; empty without `--warmup`.
    #[serde(default)]
    pub warm_up_s: Vec<f64>,
    /// The number of pairs of blocks that were measured.
    pub pairs: usize,
    /// The median of the blocks' mean length of a body, of `a`, then of `b`; `None`: there were no answers.
    #[serde(default)]
    pub body_bytes: [Option<f64>; 2],
    /// How the lengths of the targets' bodies differ; `None` if they do not, or if `-l` allows it.
    #[serde(default)]
    pub unequal_bodies: Option<String>,
    /// Why the comparison is invalid; `None` if it is valid.
    #[serde(default)]
    pub invalid: Option<String>,
    /// The target that stopped responding, which ended the comparison; `None`: all blocks were run.
    #[serde(default)]
    pub died: Option<Death>,
    /// The result of the conditions of `--fail-if`; `None`: there were none.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// The measures that were compared.
    pub measures: Vec<Measure>,
    /// The silences of `a`, then of `b`, which medians of blocks hide. Empty in files that older versions wrote.
    #[serde(default)]
    pub silences: Vec<SilentBlocks>,
    /// All blocks, in the order of the run.
    pub blocks: Vec<Block>,
    /// Reasons to distrust the figures.
    pub warnings: Vec<Warning>,
    /// The result in one sentence.
    pub sentence: String,
}

/// One measure of both targets, with the verdict on their difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The name of the measure: `rate`, `p50`, `p99`, `errors` or `cpu`.
    pub measure: String,
    /// The unit of the measure: `requests/s`, `ms`, `share` or `us`.
    pub unit: String,
    /// The median over the blocks of `a`; `None`: no block has the measure, or the median is infinite.
    pub a: Option<f64>,
    /// The median over the blocks of `b`; `None`: no block has the measure, or the median is infinite.
    pub b: Option<f64>,
    /// The number of pairs that have a ratio.
    pub pairs: usize,
    /// The estimate of Hodges and Lehmann of the pairs' ratios, `a` divided by `b`; `None`: there are too few pairs, or it is infinite.
    pub ratio: Option<f64>,
    /// The lower end of the ratio's interval; `None`: there are too few pairs, or it is infinite.
    pub low: Option<f64>,
    /// The upper end of the interval; `None`: it is infinite, or there are too few pairs.
    pub high: Option<f64>,
    /// The confidence level of the interval, from 0 to 1; the exact level is the same or a little higher. `None`: there
    /// is no interval.
    pub level: Option<f64>,
    /// The probability of such ratios if there were no difference (two-sided signed rank test).
    pub p: f64,
    /// The verdict: `differs`, `suggests` (a difference that does not hold with several measures compared),
    /// `none-shown`, `moved` (the ratio changed during the run) or `too-few`.
    pub verdict: String,
    /// Why there is no verdict; `None` if there is one.
    pub reason: Option<String>,
}

/// The silences of one target: spans without a response although requests waited for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SilentBlocks {
    /// The target: `a` or `b`.
    pub target: String,
    /// The number of the target's blocks that have a silence.
    pub blocks: usize,
    /// The number of silences in all blocks of the target.
    pub count: usize,
    /// The longest span without a response in any block, even if it is no silence; 0: none was as long as 1 ms.
    pub longest_ms: f64,
}

/// The figures of one block, in which one target was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The number of the block's pair, from 0.
    pub pair: usize,
    /// The target: `a` or `b`.
    pub target: String,
    /// The number of requests that were begun or due.
    pub requests: u64,
    /// The number of complete responses per second.
    pub requests_per_s: f64,
    /// The median latency; `None` without responses. In an open loop it counts from the time at which each request was
    /// due, and includes requests without a response.
    pub p50_ms: Option<f64>,
    /// The 99th percentile of latency, measured as `p50_ms`; `None` without responses.
    pub p99_ms: Option<f64>,
    /// The share of requests that failed, had no response, or one that was not 2xx.
    pub errors: f64,
    /// The mean length of a body in bytes; `None` without responses.
    #[serde(default)]
    pub body_bytes: Option<f64>,
    /// The CPU time per request in microseconds, of the processes that listen at the target's port; `None`: not known.
    #[serde(default)]
    pub cpu_us: Option<f64>,
    /// Silences: spans without an answer of 100 ms or more, as [`Report::silences`] has them.
    ///
    /// [`Report::silences`]: crate::report::Report::silences
    #[serde(default)]
    pub silences: usize,
    /// The longest span without a response; `None` if none was as long as 1 ms.
    #[serde(default)]
    pub longest_silence_ms: Option<f64>,
}

/// A target that stopped responding during a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Death {
    /// The target: `a` or `b`.
    pub target: String,
    /// The URL of the target.
    pub url: String,
    /// The number of blocks, of both targets, that were done before.
    pub blocks: usize,
    /// The error of the first block that failed.
    pub message: String,
}

/// A warning about blocks, with the number of blocks that had it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// The token of the warning.
    pub kind: String,
    /// The text of the warning in the first block that has it.
    pub text: String,
    /// The number of blocks of `a` that have the warning.
    pub a: usize,
    /// The number of blocks of `b` that have the warning.
    pub b: usize,
}
