//! Gates: what forbids to draw a conclusion from a run, in words.
//!
//! A gate is a record with a pure function: its name, when it fires, and what it looks at. Records stand with their
//! functions in a file for each group of subjects: here servers, the load, the machine, counts and samples, which
//! [`check`] holds a subject against; elsewhere the cases of claims (`claim/gates`), published rows (`judge/rows`) and
//! texts (`judge`). A fact that nobody has recorded is `None`, and no gate fires on it: the same gates judge our own runs
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
pub(crate) use self::server::{COMPILING_MAX, UNSTEADY};
use crate::facts::Facts;

/// What a gate that fired forbids.
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
    /// No claim of those beside which it stands.
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
    /// What was found, as a sentence.
    pub words: String,
}

/// What gates look at.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A run, by itself.
    Run(&'a Facts),
    /// Two runs, or two levels, that are compared: whether they differ in what is claimed alone.
    Pair(&'a Facts, &'a Facts),
    /// The machine's limits before an experiment begins.
    Limits(&'a [Check]),
}

/// All that is known of a gate, with what it looks at.
#[derive(Debug)]
pub struct GateRecord<L = Look> {
    /// Its name. A gate that has several causes has a record for each.
    pub name: &'static str,
    /// When it fires, as a part of its row in docs/lab.md.
    pub words: &'static str,
    /// Where it stands among those that look at the same subject: the first one that forbids a claim is the one that is
    /// named.
    pub(crate) rank: u8,
    pub(crate) look: L,
}

/// What a gate on runs or on the machine looks at, and how.
#[derive(Debug)]
pub enum Look {
    /// At one run.
    Run {
        /// Whether the facts are known that it looks at.
        applies: fn(&Facts) -> bool,
        /// What it finds.
        check: fn(&Facts) -> Option<GateFinding>,
    },
    /// At two runs.
    Pair(fn(&Facts, &Facts) -> Option<GateFinding>),
    /// At the machine's limits.
    Limits(fn(&[Check]) -> Option<GateFinding>),
    /// At more than a subject has: it is fired by name, where that is known.
    Beyond,
}

/// The gates that fire on a subject, by their ranks.
#[must_use]
pub fn check(subject: &Subject<'_>) -> Vec<GateFinding> {
    let gates = GATES.iter();
    gates.filter_map(|gate| gate.check(subject)).collect()
}

/// The gates that fire on one run, by itself.
#[must_use]
pub fn check_run(facts: &Facts) -> Vec<GateFinding> {
    check(&Subject::Run(facts))
}

/// What makes it doubtful that `one` and `other` differ in what is claimed alone.
#[must_use]
pub fn check_pair(one: &Facts, other: &Facts) -> Vec<GateFinding> {
    check(&Subject::Pair(one, other))
}

/// The names of the gates on one run, each once, by their ranks: those that a file may turn off.
#[must_use]
pub fn run_gates() -> Vec<&'static str> {
    let mut names = Vec::new();
    for gate in GATES.iter() {
        if matches!(gate.look, Look::Run { .. }) && !names.contains(&gate.name) {
            names.push(gate.name);
        }
    }
    names
}

/// Whether the facts of a run are known that the gate `name` looks at.
#[must_use]
pub fn applies(name: &str, facts: &Facts) -> bool {
    let of_name = GATES.iter().filter(|gate| gate.name == name);
    of_name.map(|gate| &gate.look).any(|look| match look {
        Look::Run { applies, .. } => applies(facts),
        _ => false,
    })
}

impl GateRecord {
    /// `None` also of what it does not look at.
    fn check(&self, subject: &Subject<'_>) -> Option<GateFinding> {
        match (&self.look, *subject) {
            (Look::Run { check, .. }, Subject::Run(facts)) => check(facts),
            (Look::Pair(check), Subject::Pair(one, other)) => check(one, other),
            (Look::Limits(check), Subject::Limits(limits)) => check(limits),
            _ => None,
        }
    }
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

/// The records of these files, by their ranks.
static GATES: LazyLock<Vec<&'static GateRecord>> = LazyLock::new(|| {
    let groups = [
        server::GATES,
        load::GATES,
        machine::GATES,
        counts::GATES,
        samples::GATES,
    ];
    let mut gates: Vec<&GateRecord> = groups.into_iter().flatten().collect();
    gates.sort_by_key(|gate| gate.rank);
    gates
});

#[cfg(test)]
mod tests;
