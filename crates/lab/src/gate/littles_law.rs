//! Whether clients, rate and latency fit each other.
//!
//! In a closed loop each client always waits for one answer, so that rate times mean latency is the
//! number of clients. If it is less, clients were idle or did not exist.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    if facts.judges_itself {
        let text = facts.warnings.get("littles-law")?;
        let words = format!("The load generator says: {text}");
        return Some(Fired::new("littles-law", Effect::Void, words));
    }
    if facts.is_paced {
        return None;
    }
    let (clients, rate, latency) = (facts.clients?, facts.rate?, facts.latency_ms?);
    let clients = clients as f64;
    let busy = |ms: f64| rate * ms / 1000.0;
    let (low, high) = (
        busy(latency.mean - latency.rounding),
        busy(latency.mean + latency.rounding),
    );
    // At each end of the span a client may be within a request of which a part is not counted. Where
    // requests are counted out, clients without one wait for the longest.
    let longest = latency.max.max(latency.mean);
    let ends = facts
        .seconds
        .map_or(0.0, |seconds| longest / 1000.0 / seconds.max(1e-9));
    let margin = MARGIN + ends;
    (low > clients * (1.0 + margin) || high < clients * (1.0 - margin)).then(|| {
        let words = format!(
            "{clients:.0} clients are said, rate times latency is {:.0}: clients were idle, or \
             times are wrong.",
            busy(latency.mean)
        );
        Fired::new("littles-law", Effect::Void, words)
    })
}

const MARGIN: f64 = 0.05;
