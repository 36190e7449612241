//! What one of the workers does for all: it ends the warm-up when throughput is steady, and so
//! decides when measuring begins. No worker ends before that.

use std::sync::atomic::Ordering::Relaxed;

use catamaran_stats::{WarmUp as Verdict, warm_up};

use crate::{
    board::Board,
    clock::{NEVER, nanos},
    plan::WarmUp,
};

/// What the controller remembers.
#[derive(Debug, Default)]
pub(super) struct Controller {
    /// Answers in each second of the warm-up.
    seconds: Vec<f64>,
    completed: u64,
    next_second: u64,
}

const SECOND: u64 = 1_000_000_000;

/// How long after the decision measuring begins, so that all threads hear of it before.
const NOTICE: u64 = 60_000_000;

impl Controller {
    /// Looks how steady the warm-up is.
    pub(super) fn look(&mut self, board: &Board, now: u64) {
        if board.measure_from() != NEVER || now < self.next_second {
            return;
        }
        let lines = board.lines.iter();
        let completed = lines.map(|line| line.completed.load(Relaxed)).sum();
        if self.next_second > 0 {
            self.seconds.push((completed - self.completed) as f64);
        }
        self.completed = completed;
        self.next_second = now + SECOND;
        let WarmUp::Detect { max } = board.plan.warm_up else {
            return;
        };
        let is_steady = matches!(warm_up(&self.seconds), Verdict::Warm(_));
        if is_steady || now >= nanos(max) {
            // Said once: `measure_from` is set from here on.
            let _ = board.steady.set(is_steady);
            board.measure(now + NOTICE);
        }
    }
}
