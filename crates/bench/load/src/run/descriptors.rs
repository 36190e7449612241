//! The limit of open files, which limits the number of connections.

use rustix::process::{Resource, getrlimit};

/// The current limit of open files; `None`: no limit. The program raises it, not this crate.
pub(super) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The number of open files that a run with this many connections needs.
pub(super) fn needed(connections: usize) -> u64 {
    connections as u64 + BESIDES
}

/// Open files besides connections: event queues, timers, and those of the program itself.
const BESIDES: u64 = 32;
