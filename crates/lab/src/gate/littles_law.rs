//! Whether clients, rate and latency fit each other.
//!
//! In a closed loop each client always waits for one answer, so that rate times mean latency is the
//! number of clients. If it is less, clients were idle or did not exist.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let (clients, rate, latency) = (facts.clients?, facts.rate?, facts.latency_ms?);
    let clients = clients as f64;
    let busy = |ms: f64| rate * ms / 1000.0;
    let (low, high) = (
        busy(latency.mean - latency.rounding),
        busy(latency.mean + latency.rounding),
    );
    (low > clients * (1.0 + MARGIN) || high < clients * (1.0 - MARGIN)).then(|| {
        let words = format!(
            "{clients:.0} clients are said, rate times latency is {:.0}: clients were idle, or \
             times are wrong.",
            busy(latency.mean)
        );
        Fired::new("littles-law", Effect::Void, words)
    })
}

const MARGIN: f64 = 0.05;
