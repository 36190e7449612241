//! What is recorded of one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::Levels;
use crate::gate::{Effect, Facts, GateFinding};

/// A run of one cell in one round: a line of `runs.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The cell, counted from 0.
    pub cell: usize,
    /// Its levels.
    pub levels: Levels,
    /// The round, counted from 0.
    pub round: usize,
    /// Its place in the round.
    pub place: usize,
    /// How often it was tried before.
    pub attempt: usize,
    /// When measuring began, in Unix time.
    pub started_at_s: f64,
    /// What was measured, by name.
    pub measures: BTreeMap<String, f64>,
    /// System calls of each counted server, by name, for one request.
    #[serde(default)]
    pub calls: BTreeMap<String, BTreeMap<String, f64>>,
    /// What gates look at.
    pub facts: Facts,
    /// Measures in each third of the span, in order, as far as they are known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thirds: BTreeMap<String, [f64; 3]>,
    /// Gates that fired.
    pub gates: Vec<GateFinding>,
    /// What was seen in each second.
    #[serde(default)]
    pub seconds: Vec<Second>,
    /// When each of its servers was started, in µs since 1970: runs in which a server has the same number share a
    /// start of it. Empty of a run by an older version.
    #[serde(default)]
    pub starts: BTreeMap<String, u64>,
    /// How the measures `memory` and `memory.SERVER` were counted.
    #[serde(default)]
    pub memory: MemoryCount,
}

/// How the memory of servers was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryCount {
    /// As PSS: a page of a program counts by shares among all processes that run it.
    #[default]
    Proportional,
    /// As what the servers have allocated: pages of no file.
    Allocated,
}

/// What was seen in a second of a run.
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
