//! Gates on two runs, or two levels, that are compared with each other.

use super::{Effect, Facts, Fired};

/// What makes it doubtful that `one` and `other` differ in what is claimed alone.
#[must_use]
pub fn check(one: &Facts, other: &Facts) -> Vec<Fired> {
    let gates: [fn(&Facts, &Facts) -> Option<Fired>; 5] = [
        unequal_answers,
        unequal_failures,
        maxima,
        unequal_foreign,
        confounded,
    ];
    gates.iter().filter_map(|gate| gate(one, other)).collect()
}

/// Heads of different length: the servers said different things, and bytes compare that.
fn unequal_answers(one: &Facts, other: &Facts) -> Option<Fired> {
    let apart = one.head_bytes? - other.head_bytes?;
    (apart.abs() >= 0.5).then(|| {
        let words = format!(
            "Beside the body, answers differ by {:.1} bytes ({:.1} and {:.1}): bytes on this hop \
             compare heads, not what is claimed.",
            apart.abs(),
            one.head_bytes.unwrap_or_default(),
            other.head_bytes.unwrap_or_default()
        );
        Fired::new("unequal-answers", Effect::Note, words)
    })
}

/// A run with failures beside one without.
fn unequal_failures(one: &Facts, other: &Facts) -> Option<Fired> {
    let failed = (one.failed > 0) != (other.failed > 0);
    failed.then(|| {
        let words = format!(
            "One run had {} failed requests and the other {}: a failed request costs less than an \
             answer.",
            one.failed, other.failed
        );
        let effect = match one.is_rare(one.failed) && other.is_rare(other.failed) {
            true => Effect::Note,
            false => Effect::Void,
        };
        Fired::new("failed", effect, words)
    })
}

/// Maxima are single requests.
fn maxima(one: &Facts, other: &Facts) -> Option<Fired> {
    let (one, other) = (one.latency_ms?.max, other.latency_ms?.max);
    let (low, high) = (one.min(other), one.max(other));
    (low > 0.0 && high / low >= MAXIMA_MIN).then(|| {
        let words = format!(
            "The maxima differ by a factor of {:.0} ({low:.0} and {high:.0} ms): each is one request, so \
             that nothing follows.",
            high / low
        );
        Fired::new("maximum", Effect::Note, words)
    })
}

/// Something else on the machine took more from one of the two.
fn unequal_foreign(one: &Facts, other: &Facts) -> Option<Fired> {
    let share = |facts: &Facts| Some(facts.machine.as_ref()?.foreign);
    let (one, other) = (share(one)?, share(other)?);
    ((one - other).abs() > FOREIGN_APART).then(|| {
        let words = format!(
            "Other processes took {:.0} % of the cores' time from one level and {:.0} % from the other.",
            one * 100.0,
            other * 100.0
        );
        Fired::new("foreign", Effect::Machine, words)
    })
}

/// One of the two reuses connections to the application and the other does not: what differs may be
/// that, whatever else does.
fn confounded(one: &Facts, other: &Facts) -> Option<Fired> {
    let (one, other) = (one.dials?, other.dials?);
    ((one - other).abs() > DIALS_APART).then(|| {
        let words = format!(
            "Confounded with reuse: the servers opened {one:.2} connections to each other for a \
             request at one level, {other:.2} at the other."
        );
        Fired::new("confounded", Effect::Note, words)
    })
}

/// How far apart connections opened for a request may be.
const DIALS_APART: f64 = 0.5;

/// From which factor on maxima are worth a remark.
const MAXIMA_MIN: f64 = 2.0;

/// How far apart the shares of foreign work may be.
const FOREIGN_APART: f64 = 0.05;
