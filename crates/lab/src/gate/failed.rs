//! Whether all requests were answered.

use super::{Effect, Facts, Fired, of};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let all = facts.completed + facts.failed;
    if all == 0 {
        let words = "No request was answered.";
        return Some(Fired::new("failed", Effect::Void, words));
    }
    (facts.failed > 0).then(|| {
        let words = format!("{} requests had no good answer.", of(facts.failed, all));
        let effect = match facts.is_rare(facts.failed) {
            true => Effect::Note,
            false => Effect::Void,
        };
        Fired::new("failed", effect, words)
    })
}
