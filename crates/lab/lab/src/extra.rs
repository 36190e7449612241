//! Small programs that take part in an experiment, each in a process of its own: slow clients,
//! clients of an echo, a link with a delay, servers that only move bytes, and a program that only
//! computes. `catamaran lab extra` starts them.

pub mod bare;
pub mod crowd;
pub mod echo;
pub mod link;
pub mod spin;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The current time. Programs that measure real time read the clock here alone.
#[expect(clippy::disallowed_methods, reason = "the clock of real runs")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Sets the flag to true when it is dropped, also during a panic.
pub(crate) struct EndOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
