//! Whether the server was warm when measuring began.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let moving = facts.machine.as_ref()?.moving?;
    (moving.abs() > MOVEMENT_MAX).then(|| {
        let words = if moving.is_finite() {
            let way = if moving > 0.0 { "up" } else { "down" };
            format!(
                "After the warm-up the rate still moved {way} by {:.0} %.",
                moving.abs() * 100.0
            )
        } else {
            "The warm-up was too short or too noisy to tell whether the server is steady."
                .to_owned()
        };
        Fired::new("unsteady", Effect::Note, words)
    })
}

/// What throughput and CPU per request may move within a run.
const MOVEMENT_MAX: f64 = catamaran_stats::MOVEMENT_MAX;
