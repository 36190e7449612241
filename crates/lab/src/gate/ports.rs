//! Whether there were local ports enough.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let used = facts.machine.as_ref()?.ports_used?;
    (used > USED_MAX).then(|| {
        let words = format!(
            "{:.0} % of the local ports wait in TIME_WAIT: connects may have failed or been slow.",
            used * 100.0
        );
        Fired::new("ports", Effect::Void, words)
    })
}

const USED_MAX: f64 = 0.8;
