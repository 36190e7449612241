//! A process that computes all the time: what a core has left beside servers with a weight.

use std::sync::atomic::{AtomicBool, Ordering};

/// Computes until `stop`.
pub fn run(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}
