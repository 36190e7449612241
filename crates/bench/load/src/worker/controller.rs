//! Ends a warm-up when the run is steady, which begins the measurement; one worker does so for all.
//! No worker ends before that.
//!
//! In an open loop the schedule determines the throughput, so only latency is watched. In a closed loop both are.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use catamaran_stats::{WarmUp as Verdict, warm_up};

use crate::board::Board;
use crate::clock::{NEVER, nanos};
use crate::plan::{Pace, Plan, WarmUp};

/// The measurements of the warm-up so far, second by second.
#[derive(Debug, Default)]
pub(super) struct Controller {
    /// The number of responses in each second.
    throughput: Vec<f64>,
    /// The mean latency of each second in nanoseconds; 0 where there were no responses.
    latency: Vec<f64>,
    completed: u64,
    latency_sum: u64,
    next_second: u64,
}

impl Controller {
    /// Checks once a second whether the warm-up is steady, and begins measuring if it is, or after its longest time.
    pub(super) fn look(&mut self, board: &Board, now: u64) {
        if board.measure_from() != NEVER || now < self.next_second {
            return;
        }
        self.count(board);
        self.next_second = now + SECOND;
        let WarmUp::Detect { max } = board.plan.warm_up else {
            return;
        };
        let is_open = matches!(board.plan.pace, Pace::Open { .. });
        let verdict = self.verdict(is_open, self.span(&board.plan));
        if verdict == Verdict::Steady || now >= nanos(max) {
            // This happens once: from here on `measure_from` is set.
            let _ = board.steady.set(verdict);
            board.measure(now + NOTICE);
        }
    }

    /// Adds the values of the last second, from the counts of all threads.
    fn count(&mut self, board: &Board) {
        let (mut completed, mut latency_sum) = (0, 0);
        for line in &board.lines {
            completed += line.completed.load(Relaxed);
            latency_sum += line.latency_sum.load(Relaxed);
        }
        // The first look only begins the first second.
        if self.next_second > 0 {
            let count = completed.saturating_sub(self.completed) as f64;
            let time = latency_sum.saturating_sub(self.latency_sum) as f64;
            self.throughput.push(count);
            self.latency
                .push(if count > 0.0 { time / count } else { 0.0 });
        }
        self.completed = completed;
        self.latency_sum = latency_sum;
    }

    /// Whether the run will be steady for the next `span` seconds, by the warm-up so far.
    fn verdict(&self, is_open: bool, span: f64) -> Verdict {
        let latency = warm_up(&self.latency, span);
        if is_open {
            latency
        } else {
            warm_up(&self.throughput, span).and(latency)
        }
    }

    /// The length of the measured time to come, in seconds, if plan and rate tell it; at most a minute.
    fn span(&self, plan: &Plan) -> f64 {
        let mut span = SPAN_MAX;
        if let Some(duration) = plan.stop.duration {
            span = span.min(duration.as_secs_f64());
        }
        let stages: Duration = plan.stages.iter().map(|stage| stage.duration).sum();
        if !stages.is_zero() {
            span = span.min(stages.as_secs_f64());
        }
        if let Some(requests) = plan.stop.requests {
            let per_second = self.throughput.last().copied().unwrap_or(0.0);
            span = span.min(requests.get() as f64 / per_second.max(1.0));
        }
        span
    }
}

/// The longest span that is predicted, in seconds: no trend of a minute can be continued for longer.
const SPAN_MAX: f64 = 60.0;

const SECOND: u64 = 1_000_000_000;

/// The time between the decision and the beginning of measuring, in nanoseconds, so that all threads learn of it.
const NOTICE: u64 = 60_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(throughput: impl Fn(f64) -> f64, latency: impl Fn(f64) -> f64) -> Controller {
        let series = |of: &dyn Fn(f64) -> f64| (0..30_u32).map(|at| of(f64::from(at))).collect();
        Controller {
            throughput: series(&throughput),
            latency: series(&latency),
            ..Controller::default()
        }
    }

    /// In an open loop the rate stays the same while the server becomes slower and slower.
    #[test]
    fn an_open_loop_is_judged_by_latency() {
        let slower = controller(|_| 1000.0, |second| 1e6 + 1e4 * second);
        assert!(matches!(slower.verdict(true, 20.0), Verdict::Moving(_)));
        let ramping = controller(|second| 1000.0 + 10.0 * second, |_| 1e6);
        assert_eq!(ramping.verdict(true, 20.0), Verdict::Steady);
    }

    #[test]
    fn a_closed_loop_is_judged_by_both() {
        let rising = controller(|second| 1000.0 + 10.0 * second, |_| 1e6);
        assert!(matches!(rising.verdict(false, 20.0), Verdict::Moving(_)));
        let slower = controller(|_| 1000.0, |second| 1e6 + 1e4 * second);
        assert!(matches!(slower.verdict(false, 20.0), Verdict::Moving(_)));
        assert_eq!(
            controller(|_| 1000.0, |_| 1e6).verdict(false, 20.0),
            Verdict::Steady
        );
    }

    #[test]
    fn a_server_that_answers_nothing_is_not_steady() {
        let dead = controller(|_| 0.0, |_| 0.0);
        for is_open in [true, false] {
            assert_ne!(dead.verdict(is_open, 1.0), Verdict::Steady);
        }
    }
}
