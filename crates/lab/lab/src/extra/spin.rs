//! A process that computes all the time, to use the part of a core that servers with a weight leave.

use std::sync::atomic::{AtomicBool, Ordering};

/// Computes until `stop` is true.
pub fn run(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}
