//! The limit of open files, which is the limit of connections.

use rustix::process::{Resource, getrlimit};

/// The current limit of open files; `None`: no limit. Only the program may raise it.
pub(super) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The files that a run with this many connections needs open.
pub(super) fn needed(connections: usize) -> u64 {
    connections as u64 + BESIDES
}

/// Files open besides connections: event queues, timers, what the program has open itself.
const BESIDES: u64 = 32;
