//! Whether measuring itself took a noticeable part.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let cost = facts.machine.as_ref()?.own_cost?;
    (cost > COST_MAX).then(|| {
        let words = format!(
            "Measuring took {:.1} % of the CPU time that was measured.",
            cost * 100.0
        );
        Fired::new("own-cost", Effect::Machine, words)
    })
}

const COST_MAX: f64 = 0.02;
