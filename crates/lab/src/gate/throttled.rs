//! Whether the kernel withheld time or memory from the experiment, beside what a server's `core_share` withholds, and
//! whether that was held to.

use super::{Effect, Facts, Fired, ShareFacts};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let machine = facts.machine.as_ref()?;
    let fire = |words| Some(Fired::new("throttled", Effect::Void, words));
    if machine.oom_kills > 0 {
        return fire(format!(
            "The kernel killed {} processes for want of memory.",
            machine.oom_kills
        ));
    }
    if machine.throttled > 0 {
        return fire(format!(
            "A CPU quota stopped the experiment in {} periods (nr_throttled), which no `core_share` declares.",
            machine.throttled
        ));
    }
    machine.shares.iter().find_map(beyond)
}

/// A server that had more than its declared part.
fn beyond((name, share): (&String, &ShareFacts)) -> Option<Fired> {
    if share.used <= share.declared * BEYOND {
        return None;
    }
    let percent = |part: f64| part * 100.0;
    let words = format!(
        "The server {name} took {:.0} % of its core, {:.0} % are declared",
        percent(share.used),
        percent(share.declared)
    );
    Some(match share.is_weight {
        true => {
            let why = "beside a spinner it also gets what other servers leave, so ratios of throughput are too near to 1";
            Fired::new("throttled", Effect::Note, format!("{words}: {why}."))
        }
        false => {
            let words = format!("{words}: its quota did not hold it.");
            Fired::new("throttled", Effect::Time, words)
        }
    })
}

/// More than the kernel is off in a second: periods of 10 ms gave up to 7 % more than was declared.
const BEYOND: f64 = 1.1;
