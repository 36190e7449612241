//! Gates on counts: how system calls, bytes, requests and memory were counted, or why they were not.

use super::{Effect, GateFinding, RunGate};
use crate::facts::Facts;
use crate::measure::{BYTES, SYSCALLS};

pub(super) static RUN_GATES: &[RunGate] = &[
    RunGate {
        name: "strace",
        words: "system calls were counted by strace",
        rank: 230,
        applies: Facts::has_machine,
        check: strace,
    },
    RunGate {
        name: "uncounted-syscalls",
        words: "BPF is forbidden, and strace is missing or cannot count them",
        rank: 240,
        applies: Facts::has_machine,
        check: |facts| uncounted(facts, SYSCALLS),
    },
    RunGate {
        name: "uncounted-bytes",
        words: "BPF is forbidden, and strace is missing or cannot count them",
        rank: 241,
        applies: Facts::has_machine,
        check: |facts| uncounted(facts, BYTES),
    },
    RunGate {
        name: "uncounted-requests",
        words: "BPF is forbidden, and the cell has several servers",
        rank: 242,
        applies: |facts| !facts.asked.is_empty(),
        check: |facts| uncounted(facts, REQUESTS),
    },
];

/// Fires if system calls were counted by strace, in a span of their own.
fn strace(facts: &Facts) -> Option<GateFinding> {
    let why = facts.machine.as_ref()?.by_strace.as_ref()?;
    let words = format!(
        "System calls are counted by strace, in a span of their own whose times are not looked at: {why}."
    );
    Some(GateFinding::new("strace", Effect::Note, words))
}

/// Fires if the measures with this base were not counted by the kernel, because BPF is forbidden or missing.
fn uncounted(facts: &Facts, base: &str) -> Option<GateFinding> {
    let why = facts.machine.as_ref()?.uncounted.get(base)?;
    let words = uncounted_words(base, why);
    Some(GateFinding::new(&uncounted_gate(base), Effect::Note, words))
}

/// The name of the gate that fires if measures with this base were not counted.
#[must_use]
pub(crate) fn uncounted_gate(base: &str) -> String {
    format!("uncounted-{base}")
}

/// A sentence on what is not counted, and why.
#[must_use]
fn uncounted_words(base: &str, why: &str) -> String {
    match base {
        SYSCALLS => format!("System calls are not counted: {why}."),
        BYTES => format!(
            "Bytes of hops are not counted: {why}. Those of clients without a crowd are the load generator's, \
             which has no headers of TCP and IP."
        ),
        REQUESTS => format!(
            "Requests at each server are not counted: {why}. That each took CPU time for them is all that is known."
        ),
        other => format!("{other} is not counted: {why}."),
    }
}

/// The base under which requests that reach servers are counted. There is no measure of that name.
pub(crate) const REQUESTS: &str = "requests";
