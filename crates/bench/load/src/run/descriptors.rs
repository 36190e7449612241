//! The limit of open files, which is the limit of connections.

use rustix::process::{Resource, getrlimit};

/// The limit as it stands; `None` is none. Raising it is up to the program, whose limit it is.
pub(super) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// What so many connections need.
pub(super) fn needed(connections: usize) -> u64 {
    connections as u64 + BESIDES
}

/// Files open besides connections: event queues, timers, what the program has open itself.
const BESIDES: u64 = 32;
