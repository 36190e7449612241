//! Gates on samples: whether there are enough requests for percentiles, and what a longest request or a silence means.

use catamaran_units::show_count;

use super::{Effect, GateFinding, GateRecord, PairGate, RunGate};
use crate::facts::Facts;

pub(super) static RUN_GATES: &[RunGate] = &[
    RunGate {
        name: "few-samples",
        words: "fewer than ten requests lie beyond the 99th percentile",
        rank: 180,
        applies: |_| true,
        check: few_samples,
    },
    RunGate {
        name: "maximum",
        words: "the longest request took ten times the median",
        rank: 200,
        applies: |_| true,
        check: maximum,
    },
    RunGate {
        name: "silences",
        words: "no answer came for 100 ms or longer although requests waited",
        rank: 210,
        applies: |facts| facts.silences.is_some(),
        check: silences,
    },
];

pub(super) static PAIR_GATES: &[PairGate] = &[GateRecord {
    name: "maximum",
    words: "two maxima are set side by side",
    rank: 30,
    check: maxima,
}];

/// Fires if there are too few requests for a 99th percentile.
fn few_samples(facts: &Facts) -> Option<GateFinding> {
    // A percentile needs ten values beyond it: the median 20 requests, the 99th percentile 1,000.
    let few = facts.completed > 0 && !catamaran_stats::is_quotable(99.0, facts.completed);
    few.then(|| {
        let words = format!(
            "{} requests are too few for a 99th percentile: it needs 1,000.",
            show_count(facts.completed)
        );
        GateFinding::new("few-samples", Effect::Note, words)
    })
}

/// Fires if the longest request took many times the median: it is only one request.
fn maximum(facts: &Facts) -> Option<GateFinding> {
    let latency = facts.latency_ms?;
    let median = latency.median.filter(|median| *median > 0.0)?;
    let times = latency.max / median;
    // Both are rounded in texts of other tools.
    let times_at_least = (latency.max - latency.rounding) / (median + latency.rounding);
    (times_at_least >= MAXIMUM_TIMES_MIN).then(|| {
        let words = format!(
            "The longest request took {:.0} ms, {times:.0} times the median: it is one of {} and \
             says nothing of the others.",
            latency.max,
            show_count(facts.completed)
        );
        GateFinding::new("maximum", Effect::Note, words)
    })
}

/// Fires if the longest requests of two runs differ much: each is only one request.
fn maxima(one: &Facts, other: &Facts) -> Option<GateFinding> {
    let (first, second) = (one.latency_ms?.max, other.latency_ms?.max);
    let (low, high) = (first.min(second), first.max(second));
    (low > 0.0 && high / low >= MAXIMA_MIN).then(|| {
        let words = format!(
            "The maxima differ by a factor of {:.0} ({low:.0} and {high:.0} ms): each is one request, so \
             that nothing follows.",
            high / low
        );
        GateFinding::new("maximum", Effect::Note, words)
    })
}

/// Fires if there were spans without a response although requests waited for one.
fn silences(facts: &Facts) -> Option<GateFinding> {
    let silences = facts.silences.as_ref().filter(|it| it.count > 0)?;
    let meaning = match facts.clients {
        Some(_) => ": clients that wait send nothing, so that percentiles hide it",
        None => "",
    };
    let (longest, from, min) = (silences.longest_ms, silences.from_s, silences.min_ms);
    let others = match silences.count {
        1 => String::new(),
        count => format!(", in {} spans of {min:.0} ms or more", show_count(count)),
    };
    let words = format!("No answer came for {longest:.0} ms from {from:.1} s on{others}{meaning}.");
    Some(GateFinding::new("silences", Effect::Note, words))
}

/// The least multiple of the median at which the longest request gets a remark.
const MAXIMUM_TIMES_MIN: f64 = 10.0;

/// The least ratio of two longest requests that gets a remark.
const MAXIMA_MIN: f64 = 2.0;
