//! Gates on the load: whether it was as planned, and whether it was the limit.

use super::{Effect, GateFinding, RunGate};
use crate::facts::Facts;

pub(super) static RUN_GATES: &[RunGate] = &[
    RunGate {
        name: "littles-law",
        words: "rate times mean latency differs from the number of clients",
        rank: 60,
        applies: |facts| facts.clients.is_some(),
        check: littles_law,
    },
    RunGate {
        name: "generator",
        words: "a thread of the load was busy 95 % of the time or more",
        rank: 70,
        applies: |_| true,
        check: generator,
    },
    RunGate {
        name: "late",
        words: "the load missed its own schedule",
        rank: 90,
        applies: |facts| facts.clients.is_none(),
        check: late,
    },
    RunGate {
        name: "ceiling",
        words: "there were more answers than clients divided by the `delay` of `[expect]` allow",
        rank: 160,
        applies: |facts| facts.expect.delay_ms.is_some(),
        check: ceiling,
    },
];

/// Fires if clients, rate and latency contradict Little's law. In a closed loop each client always waits for a
/// response, so rate times mean latency is the number of clients. If the product is smaller, clients were idle or did
/// not exist.
fn littles_law(facts: &Facts) -> Option<GateFinding> {
    if facts.judges_itself {
        let text = facts.warnings.get("littles-law")?;
        let words = format!("The load generator says: {text}");
        return Some(GateFinding::new("littles-law", Effect::Void, words));
    }
    if facts.is_paced {
        return None;
    }
    let (clients, rate, latency) = (facts.clients? as f64, facts.rate?, facts.latency_ms?);
    let busy_clients = |latency_ms: f64| rate * latency_ms / 1000.0;
    let low = busy_clients(latency.mean - latency.rounding);
    let high = busy_clients(latency.mean + latency.rounding);
    // At each end of the span, clients may be in the middle of requests that are counted only in part. If the run ends
    // by its number of requests, clients wait idly for the longest of the last ones.
    let longest = latency.max.max(latency.mean);
    let ends = match facts.seconds {
        Some(seconds) => longest / 1000.0 / seconds.max(1e-9),
        None => 0.0,
    };
    let margin = LITTLE_OFF_MAX + ends;
    let is_apart = low > clients * (1.0 + margin) || high < clients * (1.0 - margin);
    if !is_apart {
        return None;
    }
    let words = format!(
        "{clients:.0} clients are said, rate times latency is {:.0}: clients were idle, or times are wrong.",
        busy_clients(latency.mean)
    );
    Some(GateFinding::new("littles-law", Effect::Void, words))
}

/// Fires if the load generator was the limit, or often waited for a core.
fn generator(facts: &Facts) -> Option<GateFinding> {
    let fire = |words| Some(GateFinding::new("generator", Effect::Time, words));
    let machine = facts.machine.as_ref();
    let server_core = machine.and_then(|machine| machine.server_core);
    // If the server is as busy as the load generator, they wait for each other, and neither alone is the limit.
    if let Some(busy) = facts.generator_busy
        && busy >= BUSY
        && server_core.is_none_or(|core| core < BUSY)
    {
        return fire(format!(
            "The load generator was busy {:.0} % of the time: it was the limit, not the server.",
            busy * 100.0
        ));
    }
    let starved = facts.generator_starved?;
    if starved <= STARVED {
        return None;
    }
    fire(format!(
        "The load generator waited {:.0} % of the time for a core: times are its own, too.",
        starved * 100.0
    ))
}

/// Fires if the load generator itself says that it was late or did not send requests.
fn late(facts: &Facts) -> Option<GateFinding> {
    let text = LATE.iter().find_map(|token| facts.warnings.get(*token))?;
    Some(GateFinding::new(
        "late",
        Effect::Void,
        format!("The load generator says: {text}"),
    ))
}

/// Compares the rate with the highest one that the clients' own pace allows. A client of a closed loop makes a request
/// when it has the last response, which takes at least the delay that the experiment has set. So a rate above clients
/// divided by delay is wrong, and voids the run. A rate near it is a remark: the clients are the limit.
fn ceiling(facts: &Facts) -> Option<GateFinding> {
    let (clients, rate) = (facts.clients?, facts.rate?);
    let delay = facts.expect.delay_ms.filter(|delay| *delay > 0.0)?;
    let ceiling = clients as f64 * 1000.0 / delay;
    let part_of_ceiling = rate / ceiling;
    let limit =
        format!("{clients} clients that wait {delay:.0} ms each can ask {ceiling:.0}/s at most");
    if part_of_ceiling > CEILING_BEYOND {
        let words = format!("{limit}, {rate:.0}/s were counted: the delay did not take place.");
        return Some(GateFinding::new("ceiling", Effect::Void, words));
    }
    if part_of_ceiling < CEILING_NEAR {
        return None;
    }
    let words = format!("{limit}, and {rate:.0}/s were reached: the clients are the limit.");
    Some(GateFinding::new("ceiling", Effect::Note, words))
}

/// The largest relative difference between rate times latency and the number of clients.
const LITTLE_OFF_MAX: f64 = 0.05;

/// The share of its time from which the load generator, or the server's core, counts as the limit.
const BUSY: f64 = 0.95;
/// The largest share of its time that the load generator may wait for a core.
const STARVED: f64 = 0.05;

/// Warnings of `bench` that make a run of an open loop void.
const LATE: [&str; 2] = ["generator-late", "unsent"];

/// The largest ratio of the rate to the highest possible one: requests at the ends of the span count in full.
const CEILING_BEYOND: f64 = 1.02;
/// The ratio from which the clients count as the limit.
const CEILING_NEAR: f64 = 0.95;
