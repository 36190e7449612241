//! Gates: checks that forbid conclusions from runs.
//!
//! A gate is a record: its name, when it fires, and a pure function. The files here have the gates on servers, the
//! load, the machine, counts and samples, for [`check_run`], [`check_pair`] and [`check_limits`]. Gates on cases of
//! claims are in `claim/gates`, those on published rows in `judge/rows`, those on texts in `judge`. A fact that is not
//! known is `None`, and no gate fires on it. So the same gates judge our own runs and the texts of other tools.
//!
//! To add a gate, write a record and a function in one of these files, a row in the table of docs/lab.md, and a case
//! that fires it, where CONTRIBUTING.md says for its kind.

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

/// The effect of a finding: what it forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The experiment does not begin.
    Refuse,
    /// The run is void: it counts for nothing, and is made again.
    Void,
    /// The run is not used for claims on throughput and latency.
    Time,
    /// The run is not used for claims on throughput, latency and CPU time.
    Machine,
    /// The claim on which the gate has fired is forbidden.
    Claim,
    /// Nothing is forbidden: it is a remark.
    Note,
}

/// A finding: a gate has fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateFinding {
    /// The gate's name.
    pub gate: String,
    /// What the finding forbids.
    pub effect: Effect,
    /// The finding, as a sentence.
    pub words: String,
}

/// A gate, with the function that decides whether it fires.
#[derive(Debug)]
pub struct GateRecord<C> {
    /// The gate's name. A gate with several causes has a record for each.
    pub name: &'static str,
    /// The condition under which the gate fires, as in its row of docs/lab.md.
    pub words: &'static str,
    /// The order among gates of the same kind. If several forbid a claim, the one with the lowest rank is named, so a
    /// gate that explains more has a lower rank. Gates on claims, rows and texts are checked in the order of their
    /// lists instead.
    pub(crate) rank: u8,
    /// The function; `()` if other code fires the gate, which knows more than such a function would.
    pub(crate) check: C,
}

/// A gate on a single run.
#[derive(Debug)]
pub struct RunGate {
    /// See [`GateRecord`].
    pub name: &'static str,
    /// See [`GateRecord`].
    pub words: &'static str,
    rank: u8,
    /// Whether the facts that the gate looks at are known.
    applies: fn(&Facts) -> bool,
    check: fn(&Facts) -> Option<GateFinding>,
}

/// A gate on two runs or levels that are compared: whether something other than the claimed level differs.
type PairGate = GateRecord<fn(&Facts, &Facts) -> Option<GateFinding>>;

/// A gate on the machine's limits before an experiment begins.
type LimitGate = GateRecord<fn(&[Check]) -> Option<GateFinding>>;

/// The findings of all gates on a single run.
#[must_use]
pub fn check_run(facts: &Facts) -> Vec<GateFinding> {
    let gates = RUN_GATES.iter();
    gates.filter_map(|gate| (gate.check)(facts)).collect()
}

/// The findings on two runs: reasons to doubt that they differ only in the claimed level.
#[must_use]
pub fn check_pair(one: &Facts, other: &Facts) -> Vec<GateFinding> {
    let gates = PAIR_GATES.iter();
    gates.filter_map(|gate| (gate.check)(one, other)).collect()
}

/// The finding on the limits of a machine; `None` if they suffice.
#[must_use]
pub fn check_limits(limits: &[Check]) -> Option<GateFinding> {
    let mut gates = machine::LIMIT_GATES.iter();
    gates.find_map(|gate| (gate.check)(limits))
}

/// The names of the gates on a single run, each once, by rank. A file can turn these gates off.
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

/// The names of all gates on runs, pairs, limits and files, each with the condition under which it fires.
pub(crate) fn words() -> Vec<(&'static str, &'static str)> {
    let runs = RUN_GATES.iter().map(|gate| (gate.name, gate.words));
    let pairs = PAIR_GATES.iter().map(|gate| (gate.name, gate.words));
    let limits = machine::LIMIT_GATES.iter();
    let limits = limits.map(|gate| (gate.name, gate.words));
    let files = FILE_GATES.iter().map(|gate| (gate.name, gate.words));
    runs.chain(pairs).chain(limits).chain(files).collect()
}

/// Whether the facts that the gate `name` looks at are known.
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

/// `part` of `whole` as text, with commas between thousands.
pub(crate) fn part_of(part: u64, whole: u64) -> String {
    format!("{} of {}", show_count(part), show_count(whole))
}

/// All gates on a single run, by rank.
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

/// All gates on two runs, by rank.
static PAIR_GATES: LazyLock<Vec<&'static PairGate>> = LazyLock::new(|| {
    let groups = [server::PAIR_GATES, machine::PAIR_GATES, samples::PAIR_GATES];
    let mut gates: Vec<&PairGate> = groups.into_iter().flatten().collect();
    gates.sort_by_key(|gate| gate.rank);
    gates
});

#[cfg(test)]
mod tests;
