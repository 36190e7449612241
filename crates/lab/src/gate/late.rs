//! Whether the load generator kept to its schedule, by its own verdict.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let text = TOKENS.iter().find_map(|token| facts.warnings.get(*token))?;
    Some(Fired::new(
        "late",
        Effect::Void,
        format!("The load generator says: {text}"),
    ))
}

/// Warnings of `bench` which make an open loop's run worthless.
const TOKENS: [&str; 2] = ["generator-late", "unsent"];
