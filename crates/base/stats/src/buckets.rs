//! Durations counted in buckets with fixed bounds, as Prometheus' histograms have them.
//!
//! [`Buckets`] are the counts of one thread, without a lock; [`BucketSums`] adds up the buckets of several threads.
//! Counts are exact and never forgotten. [`crate::tally`] has many more buckets, but keeps only the last minute.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets in microseconds; a bucket contains its bound. One more bucket has all longer
/// durations. Each bound is at least twice the one before: `bucket_of` relies on it.
pub const BOUNDS_MICROS: [u64; 15] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// Counts durations. Only one thread may record; all may read.
#[derive(Debug, Default)]
pub struct Buckets {
    counts: [AtomicU64; BUCKETS],
    micros: AtomicU64,
}

/// The counts of several [`Buckets`] together, as of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketSums {
    counts: [u64; BUCKETS],
    micros: u64,
}

impl Buckets {
    /// Counts a duration, to the microsecond.
    pub fn record(&self, value: Duration) {
        let whole_micros = value.as_secs().saturating_mul(1_000_000);
        let micros = whole_micros.saturating_add(value.subsec_micros().into());
        add(&self.counts[bucket_of(micros)], 1);
        add(&self.micros, micros);
    }
}

/// Adds to a count that only one thread writes, so this needs no read-modify-write.
fn add(sum: &AtomicU64, more: u64) {
    let before = sum.load(Ordering::Relaxed);
    sum.store(before.wrapping_add(more), Ordering::Relaxed);
}

impl BucketSums {
    /// Adds what `buckets` has counted so far.
    pub fn add(&mut self, buckets: &Buckets) {
        for (sum, count) in self.counts.iter_mut().zip(&buckets.counts) {
            *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
        }
        let micros = buckets.micros.load(Ordering::Relaxed);
        self.micros = self.micros.wrapping_add(micros);
    }

    /// Each bound in seconds, with the number of durations that do not exceed it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0_u64;
        let bounds = BOUNDS_MICROS.iter().zip(&self.counts);
        bounds.map(move |(bound, count)| {
            below = below.wrapping_add(*count);
            (seconds(*bound), below)
        })
    }

    /// The number of durations counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        let counts = self.counts.iter();
        counts.fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// The sum of the durations in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        seconds(self.micros)
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// The index of the bucket for a duration. At most one bound lies within each power of two, so one comparison is
/// enough.
fn bucket_of(micros: u64) -> usize {
    let power = (micros | 1).ilog2() as usize;
    let first = usize::from(FIRST_BUCKETS[power]);
    first + usize::from(first < BOUNDS_MICROS.len() && micros > BOUNDS_MICROS[first])
}

/// For each power of two, the first bucket whose bound is not smaller.
const fn first_buckets() -> [u8; 64] {
    let mut first = [0; 64];
    let mut power = 0;
    while power < 64 {
        let mut bucket = 0;
        while bucket < BOUNDS_MICROS.len() && BOUNDS_MICROS[bucket] < 1 << power {
            bucket += 1;
        }
        first[power] = bucket as u8;
        power += 1;
    }
    first
}

/// The number of buckets: one more than there are bounds.
const BUCKETS: usize = BOUNDS_MICROS.len() + 1;

/// For each power of two, the bucket of its smallest values.
const FIRST_BUCKETS: [u8; 64] = first_buckets();

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums_of(values: &[u64]) -> BucketSums {
        // Dealt out to two threads.
        let threads = [Buckets::default(), Buckets::default()];
        for (index, &micros) in values.iter().enumerate() {
            threads[index % 2].record(Duration::from_micros(micros));
        }
        let mut sums = BucketSums::default();
        threads.iter().for_each(|buckets| sums.add(buckets));
        sums
    }

    #[test]
    fn a_bucket_contains_its_bound() {
        for (index, bound) in BOUNDS_MICROS.into_iter().enumerate() {
            assert_eq!(bucket_of(bound), index);
            assert_eq!(bucket_of(bound + 1), index + 1);
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
        Buckets::default().record(Duration::MAX);
    }

    #[test]
    fn bounds_are_seconds() {
        let sums = sums_of(&[500, 1_000, 1_001, 70_000_000]);
        let buckets: Vec<_> = sums.cumulative().collect();
        assert_eq!(buckets[..2], [(0.001, 2), (0.0025, 3)]);
        assert_eq!(buckets.last(), Some(&(60.0, 3)));
        assert_eq!((sums.count(), sums.seconds()), (4, 70.002_501));
    }

    proptest! {
        #[test]
        fn counts_are_exact(values in prop::collection::vec(0_u64..100_000_000, 0..100)) {
            let sums = sums_of(&values);
            for ((_, found), bound) in sums.cumulative().zip(BOUNDS_MICROS) {
                let exact = values.iter().filter(|&&value| value <= bound).count();
                prop_assert_eq!(found, exact as u64);
            }
            prop_assert_eq!(sums.count(), values.len() as u64);
        }
    }
}
