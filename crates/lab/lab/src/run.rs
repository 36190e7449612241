//! The record of one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::Levels;
use crate::facts::Facts;
use crate::gate::{Effect, GateFinding};

/// A run of one cell in one round: a line of `runs.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The number of the cell, counted from 0.
    pub cell: usize,
    /// The levels of the cell.
    pub levels: Levels,
    /// The round, counted from 0.
    pub round: usize,
    /// The run's place in the round.
    pub place: usize,
    /// The number of earlier attempts at this run; 0 for the first.
    pub attempt: usize,
    /// The time at which measuring began, in Unix time.
    pub started_at_s: f64,
    /// The values of the run's measures, by name.
    pub measures: BTreeMap<String, f64>,
    /// The number of each system call for one request, by server.
    #[serde(default)]
    pub calls: BTreeMap<String, BTreeMap<String, f64>>,
    /// The facts that gates check.
    pub facts: Facts,
    /// Measures in each third of the span, in order; those that are not known are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thirds: BTreeMap<String, [f64; 3]>,
    /// The measures of a duel in each block, by name, in the order of the blocks; empty for other runs. Blocks with the
    /// same index, of all cells of a round, were measured directly after each other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub blocks: BTreeMap<String, Vec<f64>>,
    /// The gates that fired on this run.
    pub gates: Vec<GateFinding>,
    /// The responses and the latency of each second.
    #[serde(default)]
    pub seconds: Vec<Second>,
    /// The longest spans without a response although requests waited, in order: from and to, in seconds since measuring
    /// began. Empty in a run of a duel, and in one by an older version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<[f64; 2]>,
    /// The time of each server's start, in µs since 1970, by name: runs in which it is the same
    /// share that start. Empty in a run by an older version.
    #[serde(default)]
    pub starts: BTreeMap<String, u64>,
    /// How the measures `memory` and `memory.SERVER` were counted.
    #[serde(default)]
    pub memory: MemoryCount,
}

/// The number of a run's cell and of its round, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunKey {
    /// The number of the cell.
    pub cell: usize,
    /// The number of the round.
    pub round: usize,
}

/// The record of a server: its version, command and settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// The server's name in the experiment.
    pub name: String,
    /// The kind of server: the name of its target.
    pub target: String,
    /// The version, as its program prints it.
    pub version: String,
    /// The command of the server. Here and below, `RUN` stands for the directory of the run, and
    /// `catamaran` for our own program.
    pub command: Vec<String>,
    /// The values of all parameters of the server.
    pub settings: BTreeMap<String, String>,
    /// The configuration files: names and texts.
    pub files: BTreeMap<String, String>,
}

/// How the memory of servers is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryCount {
    /// As PSS: a page of a program is divided among all processes that run the program.
    #[default]
    Proportional,
    /// As the memory that the servers have allocated: pages that belong to no file.
    Allocated,
}

/// The responses and the latency in one second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// The number of responses in this second.
    pub completed: u64,
    /// The 99th percentile of the responses' latencies in milliseconds; `None` if there were none.
    pub p99_ms: Option<f64>,
}

impl Run {
    /// Whether the run counts: no gate has made it void.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.gates.iter().any(|fired| fired.effect == Effect::Void)
    }
}

/// The valid run of a cell with the median throughput (the lower one of two), and its number, counted from 0.
pub(crate) fn median_run(runs: &[Run], cell: usize) -> Option<(usize, &Run)> {
    let rate = |run: &Run| run.measures.get("throughput").copied().unwrap_or(0.0);
    let mut valid: Vec<(usize, &Run)> = runs.iter().enumerate().collect();
    valid.retain(|(_, run)| run.cell == cell && run.is_valid());
    valid.sort_by(|(_, one), (_, other)| rate(one).total_cmp(&rate(other)));
    let last = valid.len().checked_sub(1)?;
    Some(valid[last / 2])
}

/// The most attempts at a run of a cell in a round: [`ATTEMPTS`], or 1 if earlier rounds gave the
/// cell no valid run, so that a server that never serves does not take the time of others.
pub(crate) fn attempts(runs: &[Run], at: RunKey) -> usize {
    let earlier = || {
        let runs = runs.iter();
        runs.filter(|run| run.cell == at.cell && run.round < at.round)
    };
    let was_tried = earlier().next().is_some();
    if was_tried && !earlier().any(Run::is_valid) {
        1
    } else {
        ATTEMPTS
    }
}

/// The most attempts at a run: a void run is repeated at most twice.
pub(crate) const ATTEMPTS: usize = 3;
