//! Whether all answers had the status that was asked for.

use super::{Effect, Facts, Fired, of};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let expected = facts.expect.status?;
    let others = || {
        facts
            .statuses
            .iter()
            .filter(|(status, _)| **status != expected)
    };
    let wrong: u64 = others().map(|(_, count)| count).sum();
    if let Some((status, _)) = others().max_by_key(|(_, count)| **count) {
        let what = match status {
            300..400 => "a redirect was measured",
            400.. => "an error was measured",
            _ => "something else was measured",
        };
        let words = format!(
            "{} answers were {status} and not {expected}: {what}.",
            of(wrong, facts.completed)
        );
        return Some(Fired::new("status", Effect::Void, words));
    }
    // ab says no more than this.
    let other = facts
        .non_2xx
        .filter(|_| facts.statuses.is_empty() && expected < 300)?;
    (other > 0).then(|| {
        let words = format!(
            "{} answers were not 2xx: a redirect or an error was measured, not the page.",
            of(other, facts.completed)
        );
        Fired::new("status", Effect::Void, words)
    })
}
