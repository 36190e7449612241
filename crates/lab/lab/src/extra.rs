//! Small programs that take part in an experiment, each a process of its own: slow clients, clients of
//! an echo, a link with a delay, servers that do nothing but move bytes, and one that only computes. `catamaran lab extra` starts them.

pub mod bare;
pub mod crowd;
pub mod echo;
pub mod link;
pub mod spin;

use std::time::Instant;

/// The time; whoever waits and measures for real has no other.
#[expect(clippy::disallowed_methods, reason = "the clock of real runs")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
