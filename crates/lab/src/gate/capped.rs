//! Whether a server had reached a maximum of its own.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let first = facts.machine.as_ref()?.capped.first()?;
    let words = format!("A maximum of the server's was reached: {first}");
    Some(Fired::new("capped", Effect::Note, words))
}
