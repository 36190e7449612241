//! Whether there are requests enough for percentiles.

use catamaran_units::show_count;

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    // The median has ten values beyond it from twenty on; the 99th percentile needs a thousand.
    let few = facts.completed > 0 && !catamaran_stats::is_quotable(99.0, facts.completed);
    few.then(|| {
        let words = format!(
            "{} requests are too few for a 99th percentile: it needs 1,000.",
            show_count(facts.completed)
        );
        Fired::new("few-samples", Effect::Note, words)
    })
}
