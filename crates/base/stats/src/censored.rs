//! Latencies of which some are only known to be at least a value.
//!
//! A request that was never sent, that hung until the run ended, or that failed has no latency. It was at least as long
//! as the request was waited for: such a value is *right-censored*. Leaving it out makes the percentiles of a bad run
//! look like those of a good one. Here every request counts, and a percentile is a value or a lower bound of it.

use std::time::Duration;

use crate::Histogram;

/// Latencies of requests that were answered, and how long the others were waited for.
#[derive(Clone, Debug, Default)]
pub struct CensoredLatencies {
    answered: Histogram,
    /// The ages of the requests that were still waiting at the end of the run.
    waiting: Histogram,
    /// The ages of the requests that failed.
    failed: Histogram,
}

/// A latency, or a lower bound of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyFloor {
    /// The value, or its lower bound.
    pub at_least: Duration,
    /// Whether `at_least` is the latency itself, to 1 %.
    pub is_exact: bool,
}

impl CensoredLatencies {
    /// Latencies of no requests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a request that was answered after `latency`.
    pub fn record(&mut self, latency: Duration) {
        self.answered.record(latency);
    }

    /// Counts a request without an answer, which was waited for during `age`.
    pub fn record_waiting(&mut self, age: Duration) {
        self.waiting.record(age);
    }

    /// Counts a request that failed at this age and will never be answered: it counts as longer than all answered ones.
    pub fn record_failed(&mut self, age: Duration) {
        self.failed.record(age);
    }

    /// Adds the requests that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.answered.merge(&other.answered);
        self.waiting.merge(&other.waiting);
        self.failed.merge(&other.failed);
    }

    /// The number of requests counted, answered or not.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.answered.count() + self.unanswered()
    }

    /// The number of requests without an answer.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.waiting.count() + self.failed.count()
    }

    /// The latencies of the answered requests.
    #[must_use]
    pub fn answered(&self) -> &Histogram {
        &self.answered
    }

    /// All requests in one histogram; a request without an answer counts with its lower bound.
    #[must_use]
    pub fn lower_bounds(&self) -> Histogram {
        let mut all = self.answered.clone();
        all.merge(&self.unanswered_bounds());
        all
    }

    /// The lower bounds of the requests without an answer.
    #[must_use]
    pub fn unanswered_bounds(&self) -> Histogram {
        let mut bounds = self.waiting.clone();
        bounds.merge_at_least(&self.failed, self.answered.max());
        bounds
    }

    /// The latencies of all requests, answered or not, at these percentiles (0 to 100); each is
    /// exact or a lower bound.
    #[must_use]
    pub fn percentiles<const N: usize>(&self, percents: [f64; N]) -> [LatencyFloor; N] {
        let lower = self.lower_bounds();
        percents.map(|percent| self.bound(percent, lower.percentile(percent)))
    }

    /// The value at one percentile (0 to 100). Several at once are cheaper by
    /// [`percentiles`](Self::percentiles).
    #[must_use]
    pub fn percentile(&self, percent: f64) -> LatencyFloor {
        let [bound] = self.percentiles([percent]);
        bound
    }

    /// The longest latency of all requests.
    #[must_use]
    pub fn max(&self) -> LatencyFloor {
        LatencyFloor {
            at_least: self.lower_bounds().max(),
            is_exact: self.unanswered() == 0,
        }
    }

    /// The latency at `percent`, whose lower bound is `lower`. The upper bound is the latency at the same rank if all
    /// requests without an answer come after the answered ones; if both bounds agree, the latency is exact.
    fn bound(&self, percent: f64, lower: Duration) -> LatencyFloor {
        let answered = self.answered.count();
        let rank = percent / 100.0 * self.count() as f64;
        let mut is_exact = false;
        // Beyond the answered requests there is no upper bound.
        if rank <= answered as f64 + RANK_SLACK {
            let percent_of_answered = 100.0 * rank / answered.max(1) as f64;
            let upper = self.answered.percentile(percent_of_answered);
            is_exact =
                upper.as_secs_f64() <= lower.as_secs_f64() * (1.0 + TOLERANCE) + RESOLUTION_S;
        }
        LatencyFloor {
            at_least: lower,
            is_exact,
        }
    }
}

/// The rounding error allowed in a rank.
const RANK_SLACK: f64 = 1e-6;

/// Two bounds that differ by no more than this share are one value.
const TOLERANCE: f64 = 0.01;

/// A histogram's finest step, in seconds.
const RESOLUTION_S: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Latencies of `count` requests, each answered after one millisecond.
    fn answered(count: u64) -> CensoredLatencies {
        let mut latencies = CensoredLatencies::new();
        (0..count).for_each(|_| latencies.record(millis(1)));
        latencies
    }

    #[test]
    fn without_unanswered_ones_it_is_a_histogram() {
        let mut latencies = CensoredLatencies::new();
        let mut histogram = Histogram::new();
        for micros in 1..=1000 {
            latencies.record(Duration::from_micros(micros));
            histogram.record_micros(micros);
        }
        for percent in [0.0, 50.0, 99.0, 99.9, 100.0] {
            let expected = LatencyFloor {
                at_least: histogram.percentile(percent),
                is_exact: true,
            };
            assert_eq!(latencies.percentile(percent), expected, "{percent}");
        }
        assert!(latencies.max().is_exact);
    }

    /// A quarter of a run's requests was never sent, because the server stalled.
    #[test]
    fn a_percentile_among_those_that_wait_is_a_lower_bound() {
        let mut latencies = answered(1500);
        (1..=500).for_each(|age| latencies.record_waiting(millis(age)));
        let [median, p99] = latencies.percentiles([50.0, 99.0]);
        assert_eq!((median.at_least, median.is_exact), (millis(1), true));
        assert!(!p99.is_exact);
        let p99 = p99.at_least.as_secs_f64() * 1e3;
        assert!((479.0..=482.0).contains(&p99), "{p99}");
        assert_eq!((latencies.count(), latencies.unanswered()), (2000, 500));
    }

    #[test]
    fn what_failed_at_once_is_behind_all_answers() {
        let mut latencies = answered(950);
        (0..50).for_each(|_| latencies.record_failed(Duration::ZERO));
        let [p90, p95, p99] = latencies.percentiles([90.0, 95.0, 99.0]);
        assert!(p90.is_exact && p95.is_exact, "{p90:?} {p95:?}");
        assert_eq!((p99.at_least, p99.is_exact), (millis(1), false));
        assert!(!latencies.max().is_exact);
    }

    #[test]
    fn what_timed_out_has_its_time() {
        let mut latencies = answered(950);
        (0..50).for_each(|_| latencies.record_failed(millis(200)));
        let p99 = latencies.percentile(99.0);
        assert!(!p99.is_exact && p99.at_least >= millis(200), "{p99:?}");
    }

    #[test]
    fn with_no_answer_at_all_everything_is_a_lower_bound() {
        let mut latencies = CensoredLatencies::new();
        latencies.record_waiting(millis(3));
        let median = latencies.percentile(50.0);
        assert_eq!((median.at_least, median.is_exact), (millis(3), false));
        assert_eq!(
            CensoredLatencies::new().percentile(50.0).at_least,
            Duration::ZERO
        );
    }

    proptest! {
        /// Whatever the latency of the unanswered ones would have been, from their age on.
        #[test]
        fn the_true_percentile_is_never_below(
            known in prop::collection::vec(1_u64..1_000_000, 0..100),
            cut in prop::collection::vec((1_u64..1_000_000, 0_u64..1_000_000), 1..100),
            percent in 1.0_f64..100.0,
        ) {
            let mut latencies = CensoredLatencies::new();
            let mut truth = Histogram::new();
            for &micros in &known {
                latencies.record(Duration::from_micros(micros));
                truth.record_micros(micros);
            }
            for &(age, more) in &cut {
                latencies.record_waiting(Duration::from_micros(age));
                truth.record_micros(age + more);
            }
            let found = latencies.percentile(percent);
            let (found_s, truth_s) =
                (found.at_least.as_secs_f64(), truth.percentile(percent).as_secs_f64());
            prop_assert!(found_s <= truth_s * 1.001 + 1e-6, "{found:?} {truth_s}");
            if found.is_exact {
                prop_assert!(truth_s <= found_s * 1.012 + 2e-6, "{found:?} {truth_s}");
            }
        }
    }
}
