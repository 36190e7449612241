//! Whether the load generator was the limit.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let percent = |share: f64| share * 100.0;
    let fire = |words| Some(Fired::new("generator", Effect::Time, words));
    // Beside a server that is as busy, the two wait for each other: then neither is the limit alone.
    let server = facts
        .machine
        .as_ref()
        .and_then(|machine| machine.server_core);
    match (facts.generator_busy, facts.generator_starved) {
        (Some(busy), _) if busy >= BUSY && server.is_none_or(|core| core < BUSY) => fire(format!(
            "The load generator was busy {:.0} % of the time: it was the limit, not the server.",
            percent(busy)
        )),
        (_, Some(starved)) if starved > STARVED => fire(format!(
            "The load generator waited {:.0} % of the time for a core: times are its own, too.",
            percent(starved)
        )),
        _ => None,
    }
}

const BUSY: f64 = 0.95;
const STARVED: f64 = 0.05;
