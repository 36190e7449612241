//! Whether the longest request stands for anything.

use catamaran_units::show_count;

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let latency = facts.latency_ms?;
    let median = latency.median.filter(|median| *median > 0.0)?;
    let times = latency.max / median;
    let at_least = (latency.max - latency.rounding) / (median + latency.rounding);
    (at_least >= TIMES_MIN).then(|| {
        let words = format!(
            "The longest request took {:.0} ms, {times:.0} times the median: it is one of {} and \
             says nothing of the others.",
            latency.max,
            show_count(facts.completed)
        );
        Fired::new("maximum", Effect::Note, words)
    })
}

/// From how many times the median on a maximum is worth a remark.
const TIMES_MIN: f64 = 10.0;
