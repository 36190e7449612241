//! The values of a short time, small enough to be kept for every second of a run.
//!
//! Buckets are those of [`Histogram`], to three significant digits of microseconds, but only those that were hit are
//! kept: some kilobytes, where a histogram takes 184. The slices of a run, added up, give the run's histogram.

use crate::Histogram;

/// Counts values, which [`Self::take`] returns as a [`Slice`].
#[derive(Clone, Debug)]
pub struct SliceRecorder {
    counts: Box<[u32]>,
    /// The buckets that were hit.
    hit: Vec<u16>,
    sum: u64,
    min: u64,
    max: u64,
}

/// The values of a short time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The buckets that were hit, each with its count, in the order of buckets.
    counts: Vec<(u16, u32)>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl SliceRecorder {
    /// A recorder without values.
    #[must_use]
    pub fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            hit: Vec::new(),
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts a value; more than an hour counts as an hour.
    pub fn record_micros(&mut self, micros: u64) {
        self.record_many(micros, 1);
    }

    /// Counts a value `times` times, which is at least once.
    pub(crate) fn record_many(&mut self, micros: u64, times: u32) {
        let micros = micros.min(MICROS_MAX);
        let bucket = bucket_of(micros);
        let count = &mut self.counts[usize::from(bucket)];
        if *count == 0 {
            self.hit.push(bucket);
        }
        *count = count.saturating_add(times);
        self.sum = self
            .sum
            .saturating_add(micros.saturating_mul(u64::from(times)));
        self.min = self.min.min(micros);
        self.max = self.max.max(micros);
    }

    /// Returns the values counted since the last call.
    pub fn take(&mut self) -> Slice {
        if self.hit.is_empty() {
            return Slice::default();
        }
        self.hit.sort_unstable();
        let counts: Vec<(u16, u32)> = self
            .hit
            .drain(..)
            .map(|bucket| {
                let count = std::mem::take(&mut self.counts[usize::from(bucket)]);
                (bucket, count)
            })
            .collect();
        let slice = Slice {
            count: counts.iter().map(|&(_, count)| u64::from(count)).sum(),
            counts,
            sum: self.sum,
            min: self.min,
            max: self.max,
        };
        (self.sum, self.min, self.max) = (0, u64::MAX, 0);
        slice
    }
}

impl Default for SliceRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Slice {
    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values in microseconds.
    #[must_use]
    pub fn sum_micros(&self) -> u64 {
        self.sum
    }

    /// The largest value in microseconds; 0 if there are none.
    #[must_use]
    pub fn max_micros(&self) -> u64 {
        self.max
    }

    /// The smallest value in microseconds; 0 if there are none.
    #[must_use]
    pub fn min_micros(&self) -> u64 {
        self.min
    }

    /// The value in microseconds that `percent` (0 to 100) of the values do not exceed, to three significant digits; 0
    /// when there are none.
    #[must_use]
    pub fn percentile_micros(&self, percent: f64) -> u64 {
        // The slack is for percentiles such as 99.9, which no float is.
        let rank = (percent / 100.0 * self.count as f64 - 1e-6).ceil().max(1.0) as u64;
        let mut count_so_far = 0;
        for &(bucket, count) in &self.counts {
            count_so_far += u64::from(count);
            if count_so_far >= rank {
                return highest_of(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// The number of values above `micros`, to three significant digits.
    #[must_use]
    pub fn count_above(&self, micros: u64) -> u64 {
        let limit = bucket_of(micros.min(MICROS_MAX));
        let above = self.counts.iter().filter(|&&(bucket, _)| bucket > limit);
        above.map(|&(_, count)| u64::from(count)).sum()
    }

    /// Adds the values of `other`.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        let mut counts = Vec::with_capacity(self.counts.len().max(other.counts.len()));
        let mut added = other.counts.iter().copied().peekable();
        for &(bucket, count) in &self.counts {
            while let Some(before) = added.next_if(|&(other, _)| other < bucket) {
                counts.push(before);
            }
            let same = added.next_if(|&(other, _)| other == bucket);
            let more = same.map_or(0, |(_, count)| count);
            counts.push((bucket, count.saturating_add(more)));
        }
        counts.extend(added);
        self.counts = counts;
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The highest value of each bucket, in microseconds, with its count.
    pub(crate) fn values(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.counts.iter();
        counts.map(|&(bucket, count)| (highest_of(bucket), u64::from(count)))
    }
}

impl From<&Slice> for Histogram {
    fn from(slice: &Slice) -> Self {
        let mut histogram = Self::new();
        histogram.add_slice(slice);
        histogram
    }
}

/// The index of a value's bucket. Values below 2,048 have a bucket each; above, each power of two has 1,024.
fn bucket_of(micros: u64) -> u16 {
    let shift = (micros | (SINGLE - 1)).ilog2() + 1 - SINGLE.ilog2();
    let bucket = (u64::from(shift) << 10) + (micros >> shift);
    u16::try_from(bucket).unwrap_or(u16::MAX)
}

/// The highest value in a bucket.
fn highest_of(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket >> 10).saturating_sub(1);
    let within = bucket - (shift << 10);
    ((within + 1) << shift) - 1
}

/// The number of lowest values that have a bucket each.
const SINGLE: u64 = 2048;

/// An hour, as in [`Histogram`].
pub(crate) const MICROS_MAX: u64 = 3_600_000_000;

const BUCKETS: usize = 23_222;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slice(values: &[u64]) -> Slice {
        let mut recorder = SliceRecorder::new();
        for &value in values {
            recorder.record_micros(value);
        }
        recorder.take()
    }

    #[test]
    fn every_value_has_a_bucket() {
        for micros in [
            0,
            1,
            2047,
            2048,
            2049,
            4095,
            4096,
            1_000_000,
            MICROS_MAX,
            u64::MAX,
        ] {
            let slice = slice(&[micros]);
            assert_eq!(slice.percentile_micros(50.0), micros.min(MICROS_MAX));
        }
        assert_eq!(usize::from(bucket_of(MICROS_MAX)) + 1, BUCKETS - 1);
    }

    #[test]
    fn taking_begins_anew() {
        let mut recorder = SliceRecorder::new();
        recorder.record_micros(5);
        assert_eq!(recorder.take().count(), 1);
        assert_eq!(recorder.take(), Slice::default());
        recorder.record_micros(7);
        let slice = recorder.take();
        assert_eq!(
            (slice.count(), slice.min_micros(), slice.max_micros()),
            (1, 7, 7)
        );
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Slice::default().percentile_micros(99.0), 0);
        assert_eq!(Slice::default().count_above(0), 0);
    }

    proptest! {
        #[test]
        fn slices_add_up_to_the_histogram(
            one in prop::collection::vec(0_u64..5_000_000_000, 0..200),
            other in prop::collection::vec(0_u64..5_000_000_000, 0..200),
            percent in 1.0_f64..100.0,
        ) {
            let mut whole = Histogram::new();
            one.iter().chain(&other).for_each(|&value| whole.record_micros(value));
            let mut sum = slice(&one);
            sum.add(&slice(&other));
            let found = Histogram::from(&sum);
            prop_assert_eq!(found.count(), whole.count());
            prop_assert_eq!(found.mean(), whole.mean());
            prop_assert_eq!((found.min(), found.max()), (whole.min(), whole.max()));
            prop_assert_eq!(found.percentile(percent), whole.percentile(percent));
            let micros = u128::from(sum.percentile_micros(percent));
            prop_assert_eq!(micros, whole.percentile(percent).as_micros());
        }

        #[test]
        fn what_is_above_is_counted(values in prop::collection::vec(0_u64..2000, 1..100), limit in 0_u64..2000) {
            let above = values.iter().filter(|&&value| value > limit).count() as u64;
            prop_assert_eq!(slice(&values).count_above(limit), above);
        }
    }
}
