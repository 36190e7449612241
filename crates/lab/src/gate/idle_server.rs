//! Whether a closed loop kept the server busy.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let machine = facts.machine.as_ref()?;
    let (load, server) = (machine.load_core?, machine.server_core?);
    (facts.clients.is_some() && server < SERVER && load >= LOAD).then(|| {
        let words = format!(
            "The server's core was busy {:.0} % of the time, the load's {:.0} %: throughput is not \
             the server's.",
            server * 100.0,
            load * 100.0
        );
        Fired::new("idle-server", Effect::Time, words)
    })
}

const SERVER: f64 = 0.9;
const LOAD: f64 = 0.9;
