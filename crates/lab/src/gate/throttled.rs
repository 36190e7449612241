//! Whether the kernel withheld time or memory from the experiment.

use super::{Effect, Facts, Fired};

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
            "A CPU quota stopped the experiment in {} periods (nr_throttled).",
            machine.throttled
        ));
    }
    None
}
