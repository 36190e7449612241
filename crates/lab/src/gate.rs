//! Gates: what forbids to draw a conclusion from a run, in words.
//!
//! Each gate is a file and a pure function: [`check_run`] holds [`Facts`] of one run against those
//! that need no other run, [`pair`] compares runs of two levels. A fact that nobody has recorded is
//! `None`, and no gate fires on it: the same gates judge our own runs and texts of others.

mod backlog;
mod body;
mod capped;
mod ceiling;
mod died;
mod facts;
mod failed;
mod few_samples;
pub mod files;
mod foreign;
mod generator;
mod idle_server;
mod keep_alive;
mod late;
mod littles_law;
mod maximum;
mod own_cost;
pub mod pair;
mod path;
mod ports;
pub mod published;
pub mod shared_pages;
mod silences;
mod status;
pub mod strace;
mod throttled;
pub mod uncounted;
mod unsteady;

use catamaran_units::show_count;
use serde::{Deserialize, Serialize};

pub(crate) use self::facts::successes_as_one;
pub use self::facts::{
    AskedFacts, Changed, Expect, Facts, LatencyFacts, MachineFacts, ShareFacts, SilenceFacts,
};
pub(crate) use self::unsteady::COMPILING_MAX;

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
pub struct Fired {
    /// The gate's name.
    pub gate: String,
    /// What it forbids.
    pub effect: Effect,
    /// What was found, as a sentence.
    pub words: String,
}

/// The gates that fire on one run, by name.
#[must_use]
pub fn check_run(facts: &Facts) -> Vec<Fired> {
    let gates: [fn(&Facts) -> Option<Fired>; 27] = [
        status::check,
        body::check,
        keep_alive::check,
        failed::check,
        path::check,
        littles_law::check,
        generator::check,
        idle_server::check,
        late::check,
        unsteady::check,
        foreign::check,
        ports::check,
        backlog::check,
        died::check,
        throttled::check,
        ceiling::check,
        capped::check,
        few_samples::check,
        own_cost::check,
        maximum::check,
        silences::check,
        body::check_varying,
        body::check_content,
        strace::check,
        uncounted::check_syscalls,
        uncounted::check_bytes,
        uncounted::check_requests,
    ];
    gates.iter().filter_map(|check| check(facts)).collect()
}

/// The names of all gates on one run, for the list of those that passed.
pub const RUN_GATES: [&str; 26] = [
    "status",
    "body",
    "keep-alive",
    "failed",
    "path",
    "littles-law",
    "generator",
    "idle-server",
    "late",
    "unsteady",
    "foreign",
    "ports",
    "backlog",
    "died",
    "throttled",
    "ceiling",
    "capped",
    "few-samples",
    "own-cost",
    "maximum",
    "silences",
    "not-ready",
    "strace",
    "uncounted-syscalls",
    "uncounted-bytes",
    "uncounted-requests",
];

/// Whether the facts are known that the gate `name` looks at.
#[must_use]
pub fn applies(name: &str, facts: &Facts) -> bool {
    let machine = facts.machine.as_ref();
    match name {
        "status" => facts.expect.status.is_some(),
        "body" => facts.expect.body_bytes.is_some(),
        "keep-alive" => facts.expect.kept.is_some(),
        "littles-law" => facts.clients.is_some(),
        "late" => facts.clients.is_none(),
        "path" | "uncounted-requests" => !facts.asked.is_empty(),
        "idle-server" => machine
            .is_some_and(|it| it.server_core.and(it.load_core).is_some() || !it.shares.is_empty()),
        "unsteady" => machine.is_some_and(|it| it.moving.is_some() || it.hidden.is_some()),
        "ports" => machine.is_some_and(|it| it.ports_used.is_some()),
        "ceiling" => facts.expect.delay_ms.is_some(),
        "silences" => facts.silences.is_some(),
        "foreign" | "not-ready" | "backlog" | "died" | "own-cost" | "throttled" | "capped"
        | "strace" | "uncounted-syscalls" | "uncounted-bytes" => machine.is_some(),
        _ => true,
    }
}

impl Fired {
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

#[cfg(test)]
mod tests;
