//! Whether all requests were answered.

use super::{Effect, Facts, Fired, of};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let all = facts.completed + facts.failed;
    (facts.failed > 0 || facts.completed == 0).then(|| {
        let words = format!("{} requests had no good answer.", of(facts.failed, all));
        Fired::new("failed", Effect::Void, words)
    })
}
