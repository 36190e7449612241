//! Gates: what forbids to draw a conclusion from a run, in words.
//!
//! A gate is a record with a pure function: its name, when it fires, and what it looks at. Records stand with their
//! functions in a file for each group of subjects: here servers, the load, the machine, counts and samples, for
//! [`check_run`], [`check_pair`] and [`check_limits`]; elsewhere the cases of claims (`claim/gates`), published rows
//! (`judge/rows`) and texts (`judge`). A fact that nobody has recorded is `None`, and no gate fires on it: the same gates judge our own runs
//! and texts of others.
//!
//! A new gate takes a record and a function in one of these files, and a row in the table of docs/lab.md.

mod counts;
mod load;
mod machine;
mod samples;
mod server;

use std::sync::LazyLock;

use catamaran_gauge::machine::Check;
use catamaran_units::show_count;
use serde::{Deserialize, Serialize};

pub(crate) use self::counts::{REQUESTS, uncounted_gate};
pub use self::server::FILE_GATES;
pub(crate) use self::server::{COMPILING_MAX, LOAD_BUSY, SERVER_BUSY, UNSTEADY};
use crate::facts::Facts;

/// The effect of a gate that fired: what it forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The experiment does not begin.
    Refuse,
    /// The run counts for nothing and is made again.
    Void,
    /// No claim on throughput and latency.
    Time,
    /// No claim on throughput, latency and CPU time.
    Machine,
    /// No claim of those in whose row the gate appears.
    Claim,
    /// A remark beside the claims.
    Note,
}

/// A gate that fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateFinding {
    /// The gate's name.
    pub gate: String,
    /// What it forbids.
    pub effect: Effect,
    /// The finding, as a sentence.
    pub words: String,
}

/// All that is known of a gate, with the function that fires it.
#[derive(Debug)]
pub struct GateRecord<C> {
    /// Its name. A gate that has several causes has a record for each.
    pub name: &'static str,
    /// When it fires, as a part of its row in docs/lab.md.
    pub words: &'static str,
    /// Its place among those that look at the same: of several that forbid a claim the one with the lowest rank is named,
    /// so what explains more has the lower one. Gates on claims, rows and texts stand in the order of their lists.
    pub(crate) rank: u8,
    /// `()` of one that is fired where more is known than a record's function sees.
    pub(crate) check: C,
}

/// A gate on a run, by itself.
#[derive(Debug)]
pub struct RunGate {
    /// See [`GateRecord`].
    pub name: &'static str,
    /// See [`GateRecord`].
    pub words: &'static str,
    rank: u8,
    /// Whether the facts are known that it looks at.
    applies: fn(&Facts) -> bool,
    check: fn(&Facts) -> Option<GateFinding>,
}

/// A gate on two runs, or two levels, that are compared: whether they differ in what is claimed alone.
type PairGate = GateRecord<fn(&Facts, &Facts) -> Option<GateFinding>>;

/// A gate on the machine's limits before an experiment begins.
type LimitGate = GateRecord<fn(&[Check]) -> Option<GateFinding>>;

/// The gates that fire on one run, by itself.
#[must_use]
pub fn check_run(facts: &Facts) -> Vec<GateFinding> {
    let gates = RUN_GATES.iter();
    gates.filter_map(|gate| (gate.check)(facts)).collect()
}

/// Gates on two runs: reasons to doubt that `one` and `other` differ in the claimed level alone.
#[must_use]
pub fn check_pair(one: &Facts, other: &Facts) -> Vec<GateFinding> {
    let gates = PAIR_GATES.iter();
    gates.filter_map(|gate| (gate.check)(one, other)).collect()
}

/// The gates that fire on the machine's limits.
#[must_use]
pub fn check_limits(limits: &[Check]) -> Option<GateFinding> {
    let mut gates = machine::LIMIT_GATES.iter();
    gates.find_map(|gate| (gate.check)(limits))
}

/// The names of the gates on one run, each once, by their ranks: those that a file may turn off.
#[must_use]
pub fn run_gates() -> Vec<&'static str> {
    let mut names = Vec::new();
    for gate in RUN_GATES.iter() {
        if !names.contains(&gate.name) {
            names.push(gate.name);
        }
    }
    names
}

/// Whether the facts of a run are known that the gate `name` looks at.
#[must_use]
pub fn applies(name: &str, facts: &Facts) -> bool {
    let mut of_name = RUN_GATES.iter().filter(|gate| gate.name == name);
    of_name.any(|gate| (gate.applies)(facts))
}

impl GateFinding {
    pub(crate) fn new(gate: &str, effect: Effect, words: impl Into<String>) -> Self {
        let (gate, words) = (gate.to_owned(), words.into());
        Self {
            gate,
            effect,
            words,
        }
    }
}

/// `part` of `whole` with thousands apart, as gates say counts.
pub(crate) fn of(part: u64, whole: u64) -> String {
    format!("{} of {}", show_count(part), show_count(whole))
}

/// All gates on runs, by their ranks.
pub static RUN_GATES: LazyLock<Vec<&'static RunGate>> = LazyLock::new(|| {
    let groups = [
        server::RUN_GATES,
        load::RUN_GATES,
        machine::RUN_GATES,
        counts::RUN_GATES,
        samples::RUN_GATES,
    ];
    let mut gates: Vec<&RunGate> = groups.into_iter().flatten().collect();
    gates.sort_by_key(|gate| gate.rank);
    gates
});

/// All gates on two runs, by their ranks.
static PAIR_GATES: LazyLock<Vec<&'static PairGate>> = LazyLock::new(|| {
    let groups = [server::PAIR_GATES, machine::PAIR_GATES, samples::PAIR_GATES];
    let mut gates: Vec<&PairGate> = groups.into_iter().flatten().collect();
    gates.sort_by_key(|gate| gate.rank);
    gates
});

#[cfg(test)]
mod tests;
