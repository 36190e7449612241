//! What the kernel did not count, since BPF is forbidden or not there.

use super::{Effect, Facts, Fired};

/// System calls, as the base of measures on them is called.
pub const SYSCALLS: &str = "syscalls";
/// Bytes of hops, as the base of measures on them is called.
pub const BYTES: &str = "bytes";
/// Requests that reach servers. No measure is of them.
pub const REQUESTS: &str = "requests";

pub(super) fn check_syscalls(facts: &Facts) -> Option<Fired> {
    check(facts, SYSCALLS)
}

pub(super) fn check_bytes(facts: &Facts) -> Option<Fired> {
    check(facts, BYTES)
}

pub(super) fn check_requests(facts: &Facts) -> Option<Fired> {
    check(facts, REQUESTS)
}

fn check(facts: &Facts, base: &str) -> Option<Fired> {
    let why = facts.machine.as_ref()?.uncounted.get(base)?;
    Some(Fired::new(&name(base), Effect::Note, words(base, why)))
}

/// The gate that says that measures with this base were not counted.
#[must_use]
pub fn name(base: &str) -> String {
    format!("uncounted-{base}")
}

/// What is not counted, and why.
#[must_use]
pub fn words(base: &str, why: &str) -> String {
    if base == SYSCALLS {
        format!("System calls are not counted: {why}.")
    } else if base == REQUESTS {
        format!(
            "Requests at each server are not counted: {why}. That each took CPU time for them is all that is known."
        )
    } else {
        format!(
            "Bytes of hops are not counted: {why}. Those of clients without a crowd are the load generator's, \
             which has no headers of TCP and IP."
        )
    }
}
