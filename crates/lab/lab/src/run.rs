//! What is recorded of one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::Levels;
use crate::facts::Facts;
use crate::gate::{Effect, GateFinding};

/// A run of one cell in one round: a line of `runs.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The cell, counted from 0.
    pub cell: usize,
    /// Its levels.
    pub levels: Levels,
    /// The round, counted from 0.
    pub round: usize,
    /// The run's place in the round.
    pub place: usize,
    /// The number of earlier attempts at this run.
    pub attempt: usize,
    /// When measuring began, in Unix time.
    pub started_at_s: f64,
    /// The measures, by name.
    pub measures: BTreeMap<String, f64>,
    /// System calls of each counted server, by name, for one request.
    #[serde(default)]
    pub calls: BTreeMap<String, BTreeMap<String, f64>>,
    /// The facts that gates check.
    pub facts: Facts,
    /// Measures in each third of the span, in order, as far as they are known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thirds: BTreeMap<String, [f64; 3]>,
    /// Gates that fired.
    pub gates: Vec<GateFinding>,
    /// Answers and latency of each second.
    #[serde(default)]
    pub seconds: Vec<Second>,
    /// The time of each server's start, in µs since 1970: runs in which a server has the same number share a start of
    /// it. Empty of a run by an older version.
    #[serde(default)]
    pub starts: BTreeMap<String, u64>,
    /// The way in which the measures `memory` and `memory.SERVER` were counted.
    #[serde(default)]
    pub memory: MemoryCount,
}

/// A run's cell and its round, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunKey {
    /// The cell.
    pub cell: usize,
    /// The round.
    pub round: usize,
}

/// A server's version, command and settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub target: String,
    /// The version, as its program prints it.
    pub version: String,
    /// Its command; here and below `RUN` is the directory of the run, and our own program `catamaran`.
    pub command: Vec<String>,
    /// All its parameters.
    pub settings: BTreeMap<String, String>,
    /// Its configuration: names and texts.
    pub files: BTreeMap<String, String>,
}

/// A way of counting the memory of servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryCount {
    /// As PSS: a page of a program counts by shares among all processes that run it.
    #[default]
    Proportional,
    /// As what the servers have allocated: pages of no file.
    Allocated,
}

/// Answers and latency in a second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Answers.
    pub completed: u64,
    /// The 99th percentile of their latencies in milliseconds.
    pub p99_ms: Option<f64>,
}

impl Run {
    /// Whether it counts.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.gates.iter().any(|fired| fired.effect == Effect::Void)
    }
}

/// The valid run of a cell in the middle by throughput, the lower one of two, and its number, counted
/// from 0.
pub(crate) fn median_run(runs: &[Run], cell: usize) -> Option<(usize, &Run)> {
    let rate = |run: &Run| run.measures.get("throughput").copied().unwrap_or(0.0);
    let of_cell = runs.iter().enumerate();
    let valid = of_cell.filter(|(_, run)| run.cell == cell && run.is_valid());
    let mut runs: Vec<(usize, &Run)> = valid.collect();
    runs.sort_by(|(_, one), (_, other)| rate(one).total_cmp(&rate(other)));
    runs.get(runs.len().checked_sub(1)? / 2).copied()
}

/// The most attempts at a run of a cell in a round: 1 if earlier rounds have given it no valid run, so that a server
/// that never serves does not take the time of all others; else [`ATTEMPTS`].
pub(crate) fn attempts(runs: &[Run], at: RunKey) -> usize {
    let is_before = |run: &&Run| run.cell == at.cell && run.round < at.round;
    let mut before = runs.iter().filter(is_before).peekable();
    let was_tried = before.peek().is_some();
    if was_tried && !before.any(Run::is_valid) {
        1
    } else {
        ATTEMPTS
    }
}

/// A void run is repeated at most twice.
pub(crate) const ATTEMPTS: usize = 3;
