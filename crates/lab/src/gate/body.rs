//! Whether all bodies were as long as asked for.

use super::{Effect, Facts, Fired, of};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let (expected, found) = (facts.expect.body_bytes?, facts.body_bytes?);
    // A mean: requests that were cut at the end may have left bytes of theirs.
    ((found - expected as f64).abs() > 0.5 + expected as f64 * ROUNDING).then(|| {
        let words = format!("Bodies had {found:.1} bytes on average, {expected} were expected.");
        Fired::new("body", Effect::Void, words)
    })
}

/// Whether bodies of the same length have other bytes than the first one.
pub(super) fn check_content(facts: &Facts) -> Option<Fired> {
    let other = facts.other_body;
    (other > 0).then(|| {
        let words = format!(
            "{} bodies had other bytes than the first one: not one page was measured.",
            of(other, facts.completed)
        );
        Fired::new("body", Effect::Void, words)
    })
}

/// Whether bodies differ among themselves.
pub(super) fn check_varying(facts: &Facts) -> Option<Fired> {
    let other = facts.other_length;
    (other > 0 && facts.expect.body_bytes.is_some()).then(|| {
        let words = format!(
            "{} bodies were not as long as the first one.",
            of(other, facts.completed)
        );
        Fired::new("body", Effect::Void, words)
    })
}

/// What bytes of unfinished requests may add to the mean.
const ROUNDING: f64 = 0.01;
