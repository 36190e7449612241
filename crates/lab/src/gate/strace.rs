//! Whether system calls were counted beside the load that was measured.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let why = facts.machine.as_ref()?.by_strace.as_ref()?;
    Some(Fired::new("strace", Effect::Note, words(why)))
}

/// How they were counted, and why.
#[must_use]
pub fn words(why: &str) -> String {
    format!(
        "System calls are counted by strace, in a span of their own whose times are not looked at: {why}."
    )
}
