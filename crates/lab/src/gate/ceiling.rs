//! Whether the clients' own pace was the limit.
//!
//! In a closed loop a client asks again when it has its answer, which takes at least the delay that
//! the experiment has put in: more than clients divided by delay cannot be measured, only counted
//! wrongly.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let (clients, rate) = (facts.clients?, facts.rate?);
    let delay = facts.expect.delay_ms.filter(|delay| *delay > 0.0)?;
    let ceiling = clients as f64 * 1000.0 / delay;
    let place = rate / ceiling;
    let words =
        format!("{clients} clients that wait {delay:.0} ms each can ask {ceiling:.0}/s at most");
    if place > BEYOND {
        let words = format!("{words}, {rate:.0}/s were counted: the delay did not take place.");
        return Some(Fired::new("ceiling", Effect::Void, words));
    }
    (place >= NEAR).then(|| {
        let words = format!("{words}, and {rate:.0}/s were reached: the clients are the limit.");
        Fired::new("ceiling", Effect::Note, words)
    })
}

/// Requests at both ends of the span are counted as a whole.
const BEYOND: f64 = 1.02;
const NEAR: f64 = 0.95;
