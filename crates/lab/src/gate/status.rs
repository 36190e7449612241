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
        let part = of(wrong, facts.completed);
        if facts.is_rare(wrong) {
            let words = format!("{part} answers were {status} and not {expected}.");
            return Some(Fired::new("status", Effect::Note, words));
        }
        let words = format!("{part} answers were {status} and not {expected}: {what}.");
        return Some(Fired::new("status", Effect::Void, words));
    }
    // Most tools say no more than this.
    let other = facts
        .non_2xx
        .filter(|_| facts.statuses.is_empty() && expected < 300)?;
    if other == 0 {
        return None;
    }
    let part = of(other, facts.completed);
    if facts.is_rare(other) {
        let words = format!("{part} answers were not 2xx.");
        return Some(Fired::new("status", Effect::Note, words));
    }
    let what = match other == facts.completed {
        true => "a redirect or an error was measured, not the page",
        false => "redirects or errors are part of the figures",
    };
    let words = format!("{part} answers were not 2xx: {what}.");
    Some(Fired::new("status", Effect::Void, words))
}
