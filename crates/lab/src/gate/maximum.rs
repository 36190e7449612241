//! Whether the longest request stands for anything.

use super::{Effect, Facts, Fired, thousands};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let latency = facts.latency_ms?;
    let median = latency.median.filter(|median| *median > 0.0)?;
    let times = latency.max / median;
    (times >= TIMES_MIN).then(|| {
        let words = format!(
            "The longest request took {:.0} ms, {times:.0} times the median: it is one of {} and \
             says nothing of the others.",
            latency.max,
            thousands(facts.completed)
        );
        Fired::new("maximum", Effect::Note, words)
    })
}

/// From how many times the median on a maximum is worth a remark.
const TIMES_MIN: f64 = 10.0;
