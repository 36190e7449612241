//! Whether handshakes were dropped.

use catamaran_units::show_count;

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let dropped = facts.machine.as_ref()?.listen_overflows;
    (dropped > 0).then(|| {
        let words = format!(
            "{} handshakes were dropped because a listening queue was full: clients tried again a \
             second later.",
            show_count(dropped)
        );
        Fired::new("backlog", Effect::Void, words)
    })
}
