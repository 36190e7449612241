//! Whether a closed loop kept the server busy: its core, or the part of the core that it may have.

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let machine = facts.machine.as_ref()?;
    if let Some(fired) = below_its_part(facts) {
        return Some(fired);
    }
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

/// The server in front is to be the limit, by its declared part.
fn below_its_part(facts: &Facts) -> Option<Fired> {
    let mut shares = facts.machine.as_ref()?.shares.iter();
    let (name, share) = shares.find(|(_, share)| share.is_tested)?;
    (facts.clients.is_some() && share.used < share.declared * SERVER).then(|| {
        let words = format!(
            "The server {name} took {:.0} % of its core, {:.0} % are declared: throughput is not its own.",
            share.used * 100.0,
            share.declared * 100.0
        );
        Fired::new("idle-server", Effect::Time, words)
    })
}

const SERVER: f64 = 0.9;
const LOAD: f64 = 0.9;
