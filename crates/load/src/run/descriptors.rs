//! The limit of open files, which is the limit of connections. ab never raises it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files open besides connections: event queues, timers, what the program has open itself.
const BESIDES: u64 = 32;

/// Raises the limit as far as the system lets us, and gives it; `None` is no limit.
pub(super) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
    if raised.is_ok() { maximum } else { current }
}

/// What so many connections need.
pub(super) fn needed(connections: usize) -> u64 {
    connections as u64 + BESIDES
}
