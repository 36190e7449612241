//! Whether the server was warm when measuring began, and stayed what it was.

use super::{Changed, Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let machine = facts.machine.as_ref()?;
    if let Some(compiling) = machine.compiling.filter(|share| *share > COMPILING_MAX) {
        let words = format!(
            "A Java virtual machine had {compiling:.2} threads compiling at a time, on average: it was \
             not warm."
        );
        let effect = match compiling > COMPILING_COUNTS {
            true => Effect::Machine,
            false => Effect::Note,
        };
        return Some(Fired::new("unsteady", effect, words));
    }
    if let Some(Changed {
        what,
        after_s,
        shift,
    }) = &machine.changed
    {
        let way = if *shift > 0.0 { "rose" } else { "fell" };
        let words = format!(
            "Within the run, {after_s:.1} s after its beginning, the {what} {way} by {:.0} %.",
            shift.abs() * 100.0
        );
        return Some(Fired::new("unsteady", Effect::Note, words));
    }
    let words = match (machine.moving, machine.hidden) {
        (_, Some(hidden)) if hidden >= 1.0 => {
            "The warm-up was too short to tell whether the server is steady.".to_owned()
        }
        (_, Some(hidden)) => format!(
            "After the warm-up the rate or the CPU time of a request may still have moved by {:.0} %: noise \
             would have hidden it.",
            hidden * 100.0
        ),
        (Some(moving), None) if moving.abs() > MOVEMENT_MAX => {
            let way = if moving > 0.0 { "up" } else { "down" };
            format!(
                "After the warm-up the rate or the CPU time of a request still moved {way} by {:.0} %.",
                moving.abs() * 100.0
            )
        }
        _ => return None,
    };
    Some(Fired::new("unsteady", Effect::Note, words))
}

/// The time that all compiling threads of a warm virtual machine may take, as a share of the span.
pub(crate) const COMPILING_MAX: f64 = 0.02;

/// From this share on compiling may be more of a request's CPU time than the usual margin of a claim.
const COMPILING_COUNTS: f64 = 0.05;

/// What throughput and CPU per request may move within a run.
const MOVEMENT_MAX: f64 = catamaran_stats::MOVEMENT_MAX;
