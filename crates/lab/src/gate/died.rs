//! Whether servers lived and had nothing to complain about.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let machine = facts.machine.as_ref()?;
    let first = machine.alarms.first()?;
    let more = match machine.alarms.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    Some(Fired::new("died", Effect::Void, format!("{first}{more}")))
}
