//! Whether something else took the cores.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let machine = facts.machine.as_ref()?;
    let fire = |words| Some(Fired::new("foreign", Effect::Note, words));
    if machine.steal > STEAL {
        return fire(format!(
            "A hypervisor gave {:.0} % of the cores' time to others: times and CPU are this \
             machine's.",
            machine.steal * 100.0
        ));
    }
    if machine.foreign > FOREIGN {
        return fire(format!(
            "Other processes took {:.0} % of the cores' time: times and CPU are this machine's.",
            machine.foreign * 100.0
        ));
    }
    None
}

const FOREIGN: f64 = 0.05;
const STEAL: f64 = 0.01;
