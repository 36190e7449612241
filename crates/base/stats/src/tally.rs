//! Latencies of a running server, which one thread counts and others read, and which are forgotten after a while.
//!
//! A [`Tally`] has the counts of one thread, in 2 KiB and without a lock. A reader regularly takes the [`Sum`] of
//! several threads' tallies, and a [`Window`] keeps the differences between the last few sums. Buckets are coarse,
//! sixteen for each power of two, so a percentile is exact to some 3 %: enough to notice that a server has become slow.
//! [`crate::Histogram`] is for measuring.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Counts durations. Only one thread may record; all may read.
#[derive(Debug)]
pub struct Tally(Box<[AtomicU32]>);

/// The counts of several tallies together, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum(Box<[u32]>);

/// The counts of the last few slices of time, each between two sums.
#[derive(Clone, Debug)]
pub struct Window {
    last: Sum,
    /// The buckets that were hit, each with its count, for each slice; the oldest slice first.
    slices: VecDeque<Vec<(u16, u32)>>,
    slices_max: usize,
}

impl Tally {
    /// A tally without durations.
    #[must_use]
    pub fn new() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU32::new(0)).collect())
    }

    /// Counts a duration; more than an hour counts as an hour. Counts wrap after 2^32.
    pub fn record(&self, value: Duration) {
        let whole_micros = value.as_secs().saturating_mul(1_000_000);
        let micros = whole_micros.saturating_add(value.subsec_micros().into());
        let count = &self.0[bucket_of(micros)];
        // One thread writes, so this needs no read-modify-write.
        count.store(
            count.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

impl Sum {
    /// The sum of no tallies: all counts are 0.
    #[must_use]
    pub fn new() -> Self {
        Self(vec![0; BUCKETS].into_boxed_slice())
    }

    /// Adds what `tally` has counted so far.
    pub fn add(&mut self, tally: &Tally) {
        for (sum, count) in self.0.iter_mut().zip(&tally.0) {
            *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
        }
    }

    /// What was counted since `earlier`, by bucket.
    fn since(&self, earlier: &Self) -> Vec<(u16, u32)> {
        let both = self.0.iter().zip(&earlier.0).zip(0..);
        let slice = both.map(|((now, before), bucket)| (bucket, now.wrapping_sub(*before)));
        slice.filter(|&(_, count)| count > 0).collect()
    }
}

impl Default for Sum {
    fn default() -> Self {
        Self::new()
    }
}

impl Window {
    /// An empty window that keeps the last `slices_max` slices. The first slice counts from zero.
    #[must_use]
    pub fn new(slices_max: usize) -> Self {
        Self {
            last: Sum::new(),
            slices: VecDeque::with_capacity(slices_max),
            slices_max,
        }
    }

    /// Ends a slice, whose counts are those since the previous sum. Drops the oldest slice if there are too many.
    pub fn push(&mut self, sum: Sum) {
        let slice = sum.since(&self.last);
        self.last = sum;
        if self.slices.len() == self.slices_max {
            self.slices.pop_front();
        }
        self.slices.push_back(slice);
    }

    /// Adds the counts since the previous sum to the last slice, or begins one, to look at a slice before
    /// [`Self::push`] ends it.
    pub fn extend(&mut self, sum: Sum) {
        let slice = sum.since(&self.last);
        self.last = sum;
        match self.slices.back_mut() {
            Some(last) => last.extend(slice),
            None => self.slices.push_back(slice),
        }
    }

    /// The number of durations in the window.
    #[must_use]
    pub fn count(&self) -> u64 {
        let counts = self.slices.iter().flatten();
        counts.map(|&(_, count)| u64::from(count)).sum()
    }

    /// The duration that `percent` (0 to 100) of the durations do not exceed; `None` if there are none.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = (percent / 100.0 * count as f64 - 1e-6).ceil().max(1.0) as u64;
        let mut counts = vec![0_u64; BUCKETS];
        for &(bucket, count) in self.slices.iter().flatten() {
            counts[usize::from(bucket)] += u64::from(count);
        }
        let mut count_so_far = 0;
        for (bucket, count) in counts.into_iter().enumerate() {
            count_so_far += count;
            if count_so_far >= rank {
                return Some(Duration::from_micros(middle_of(bucket)));
            }
        }
        None
    }
}

/// The index of a value's bucket. Values below 32 have a bucket each; above, each power of two has sixteen.
fn bucket_of(micros: u64) -> usize {
    let micros = micros.min(MICROS_MAX);
    let shift = (micros | (SINGLE - 1)).ilog2() + 1 - SINGLE.ilog2();
    usize::try_from((u64::from(shift) << 4) + (micros >> shift)).unwrap_or(BUCKETS - 1)
}

/// The value in the middle of a bucket.
fn middle_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> 4).saturating_sub(1);
    let within = bucket - (shift << 4);
    (within << shift) + ((1 << shift) >> 1)
}

/// The number of lowest values that have a bucket each.
const SINGLE: u64 = 32;

/// An hour.
const MICROS_MAX: u64 = 3_600_000_000;

/// The number of buckets: one more than the bucket of an hour.
const BUCKETS: usize = 459;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum_of(tallies: &[Tally]) -> Sum {
        let mut sum = Sum::new();
        tallies.iter().for_each(|tally| sum.add(tally));
        sum
    }

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn an_hour_has_the_last_bucket() {
        assert_eq!(bucket_of(MICROS_MAX), BUCKETS - 1);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_of(0), 0);
        Tally::new().record(Duration::MAX);
    }

    #[test]
    fn a_window_forgets() {
        let tallies = [Tally::new(), Tally::new()];
        let mut window = Window::new(2);
        assert_eq!((window.count(), window.percentile(50.0)), (0, None));
        for value in [7, 7, 20] {
            tallies[0].record(micros(value));
        }
        tallies[1].record(micros(7));
        window.push(sum_of(&tallies));
        assert_eq!(window.count(), 4);
        assert_eq!(window.percentile(50.0), Some(micros(7)));
        assert_eq!(window.percentile(99.0), Some(micros(20)));
        tallies[1].record(micros(3));
        let mut ahead = window.clone();
        ahead.extend(sum_of(&tallies));
        assert_eq!((window.count(), ahead.count()), (4, 5));
        window.push(sum_of(&tallies));
        assert_eq!(window.count(), 5);
        window.push(sum_of(&tallies));
        assert_eq!(
            (window.count(), window.percentile(99.0)),
            (1, Some(micros(3)))
        );
        window.push(sum_of(&tallies));
        assert_eq!(window.percentile(50.0), None);
    }

    proptest! {
        #[test]
        fn a_percentile_is_right_to_three_percent(
            mut values in prop::collection::vec(0_u64..MICROS_MAX, 1..200),
            percent in 0.1_f64..100.0,
        ) {
            let tally = [Tally::new()];
            values.iter().for_each(|&value| tally[0].record(micros(value)));
            let mut window = Window::new(1);
            window.push(sum_of(&tally));
            values.sort_unstable();
            let rank = ((percent / 100.0 * values.len() as f64 - 1e-6).ceil() as usize).max(1);
            let exact = values[rank - 1] as f64;
            let found = window.percentile(percent).expect("there are some").as_micros() as f64;
            prop_assert!((found - exact).abs() <= exact / 31.0 + 1.0, "{found} {exact}");
        }
    }
}
