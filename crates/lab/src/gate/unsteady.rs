//! Whether the server was warm when measuring began.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let machine = facts.machine.as_ref()?;
    if let Some(compiling) = machine.compiling.filter(|share| *share > COMPILING_MAX) {
        let words = format!(
            "A Java virtual machine compiled for {:.0} % of the time: it was not warm.",
            compiling * 100.0
        );
        return Some(Fired::new("unsteady", Effect::Note, words));
    }
    let moving = machine.moving?;
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

/// The share of the time for which a warm virtual machine may compile.
const COMPILING_MAX: f64 = 0.02;

/// What throughput and CPU per request may move within a run.
const MOVEMENT_MAX: f64 = catamaran_stats::MOVEMENT_MAX;
