//! Latencies in constant memory: an HDR histogram, and beside it the exact moments that its buckets would round.
//!
//! The unit is the microsecond. With three significant digits, 1 µs to an hour take 184 KiB, whatever the number of
//! samples. Count, sum, sum of squares, minimum and maximum are kept exactly. Percentiles are never averaged: merge the
//! histograms, then compute the percentile.

use std::time::Duration;

use hdrhistogram::Histogram as Counts;

use crate::Slice;

/// How often each duration was recorded, to a microsecond or to three significant digits, whichever is coarser.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Counts<u64>,
    sum: u128,
    /// The sum of the squares in µs². An hour squared is less than 2^64, so it does not overflow before 2^64 samples.
    squares: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// A histogram without values.
    #[must_use]
    pub fn new() -> Self {
        let counts = Counts::new_with_bounds(1, MICROS_MAX, DIGITS).expect("the bounds are valid");
        Self {
            counts,
            sum: 0,
            squares: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts `value`. A fraction of a microsecond is cut off; more than an hour counts as an hour in the percentiles.
    pub fn record(&mut self, value: Duration) {
        self.record_micros(u64::try_from(value.as_micros()).unwrap_or(u64::MAX));
    }

    /// As [`record`](Self::record), for a number of microseconds.
    pub fn record_micros(&mut self, micros: u64) {
        let micros = micros.min(MICROS_MAX);
        self.counts.saturating_record(micros);
        self.sum += u128::from(micros);
        self.squares += u128::from(micros) * u128::from(micros);
        self.min = self.min.min(micros);
        self.max = self.max.max(micros);
    }

    /// Counts a value in microseconds `times` times.
    fn record_many(&mut self, micros: u64, times: u64) {
        let micros = micros.min(MICROS_MAX);
        self.counts.saturating_record_n(micros, times);
        self.sum += u128::from(micros) * u128::from(times);
        self.squares += u128::from(micros) * u128::from(micros) * u128::from(times);
        self.min = self.min.min(micros);
        self.max = self.max.max(micros);
    }

    /// Counts the value zero `times` times.
    pub fn record_zeros(&mut self, times: u64) {
        if times > 0 {
            self.counts.saturating_record_n(0, times);
            self.min = 0;
        }
    }

    /// Adds the values that `slice` recorded. Their sum, minimum and maximum are added exactly; each value and its
    /// square only to three significant digits, which is how a slice keeps them.
    pub fn add_slice(&mut self, slice: &Slice) {
        if slice.count() == 0 {
            return;
        }
        for (value, count) in slice.values() {
            self.counts
                .saturating_record_n(value.min(MICROS_MAX), count);
            self.squares += u128::from(value) * u128::from(value) * u128::from(count);
        }
        self.sum += u128::from(slice.sum_micros());
        self.min = self.min.min(slice.min_micros());
        self.max = self.max.max(slice.max_micros());
    }

    /// Adds the values that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.counts
            .add(&other.counts)
            .expect("all histograms have the same bounds");
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Adds the values that `other` counted; a value below `floor` counts as `floor`.
    pub(crate) fn merge_at_least(&mut self, other: &Self, floor: Duration) {
        let floor = u64::try_from(floor.as_micros()).unwrap_or(u64::MAX);
        for bucket in other.counts.iter_recorded() {
            let micros = bucket.value_iterated_to().min(other.max).max(floor);
            self.record_many(micros, bucket.count_since_last_iteration());
        }
    }

    /// The number of values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The value that `percent` (0 to 100) of the values do not exceed, to three significant digits; zero when there
    /// are none. 0 is the minimum and 100 the maximum, both exact.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Duration {
        if self.is_empty() {
            return Duration::ZERO;
        }
        let micros = if percent <= 0.0 {
            self.min
        } else {
            // 99.9 / 100 is a little more than 0.999, and so would be the rank of a thousand.
            let quantile = (percent * 1e6).round() / 1e8;
            // The upper end of a bucket, which the largest value need not reach.
            let upper = self.counts.value_at_quantile(quantile);
            upper.clamp(self.min, self.max)
        };
        Duration::from_micros(micros)
    }

    /// The sum of the amounts by which values of at least `from` exceed `limit`.
    #[must_use]
    pub fn beyond(&self, limit: Duration, from: Duration) -> Duration {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut sum = 0_u64;
        for bucket in self.counts.iter_recorded() {
            let value = bucket.value_iterated_to().min(self.max);
            if value >= micros(from) {
                let excess = value.saturating_sub(micros(limit));
                let of_bucket = excess.saturating_mul(bucket.count_since_last_iteration());
                sum = sum.saturating_add(of_bucket);
            }
        }
        Duration::from_micros(sum)
    }

    /// Counts the values by spans that divide each decade evenly on a logarithmic scale into `parts`. Returns the end
    /// of each span with its count, from the span of the smallest value to that of the largest, empty ones between them
    /// included. Values below a microsecond count as one.
    #[must_use]
    pub fn bars(&self, parts: u32) -> Vec<(Duration, u64)> {
        let parts = f64::from(parts.max(1));
        // Spans are numbered from that of a microsecond. The slack puts a power of ten into the span that it begins.
        let span_of =
            |micros: u64| (micros.max(1) as f64).log10().mul_add(parts, 1e-9).floor() as u32;
        let mut bars: Vec<(Duration, u64)> = Vec::new();
        let first = span_of(self.min);
        // Recorded values are in ascending order, so each belongs to the last span or a later one.
        for bucket in self.counts.iter_recorded() {
            let span = span_of(bucket.value_iterated_to().clamp(self.min, self.max));
            while bars.len() <= (span - first) as usize {
                let end = 10_f64.powf(f64::from(first + bars.len() as u32 + 1) / parts);
                bars.push((Duration::from_secs_f64(end / 1e6), 0));
            }
            if let Some((_, count)) = bars.last_mut() {
                *count += bucket.count_since_last_iteration();
            }
        }
        bars
    }

    /// The 50th percentile.
    #[must_use]
    pub fn median(&self) -> Duration {
        self.percentile(50.0)
    }

    /// The smallest value; zero when there are none.
    #[must_use]
    pub fn min(&self) -> Duration {
        Duration::from_micros(if self.is_empty() { 0 } else { self.min })
    }

    /// The largest value; zero when there are none.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max)
    }

    /// The arithmetic mean of the exact values; zero when there are none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let mean = self.sum.checked_div(u128::from(self.count())).unwrap_or(0);
        Duration::from_micros(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The sum of all values.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.sum).unwrap_or(u64::MAX))
    }

    /// The standard deviation of a sample (divided by n - 1, as in `ab`), from the exact values; zero for fewer than
    /// two.
    #[must_use]
    pub fn stddev(&self) -> Duration {
        let n = u128::from(self.count());
        if n < 2 {
            return Duration::ZERO;
        }
        // Σ(x-m)² = Σx² - (Σx)²/n, in integers unless they overflow: the difference of two large floats would lose the
        // digits that matter.
        let mean_of_square = match self.sum.checked_mul(self.sum) {
            Some(square) => square / n,
            None => (self.sum / n) * self.sum,
        };
        let variance = self.squares.saturating_sub(mean_of_square) as f64 / (n - 1) as f64;
        Duration::from_secs_f64(variance.sqrt() / 1e6)
    }

    /// The buckets, for the log.
    pub(crate) fn counts(&self) -> &Counts<u64> {
        &self.counts
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a percentile (0 to 100) of `count` values may be reported: at least ten values must lie beyond it. With
/// fewer, it shows where single requests happened to be.
#[must_use]
pub fn is_quotable(percent: f64, count: u64) -> bool {
    // The slack is for percentiles such as 99.9, which no float is.
    count as f64 * (100.0 - percent) / 100.0 >= BEYOND_MIN - 1e-6
}

/// The percentiles that are reported; [`is_quotable`] says which of them mean something.
pub const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];

const DIGITS: u8 = 3;

/// An hour.
const MICROS_MAX: u64 = 3_600_000_000;

const BEYOND_MIN: f64 = 10.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values
            .into_iter()
            .for_each(|micros| histogram.record_micros(micros));
        histogram
    }

    #[test]
    fn an_empty_one_has_only_zeros() {
        let empty = Histogram::new();
        assert!(empty.is_empty());
        for value in [
            empty.min(),
            empty.max(),
            empty.mean(),
            empty.stddev(),
            empty.percentile(99.0),
        ] {
            assert_eq!(value, Duration::ZERO);
        }
    }

    #[test]
    fn bars_divide_each_decade_alike() {
        let bars = of([100, 105, 150, 900, 1000]).bars(2);
        let ends: Vec<u128> = bars.iter().map(|(end, _)| end.as_micros()).collect();
        let counts: Vec<u64> = bars.iter().map(|(_, count)| *count).collect();
        assert_eq!(ends, [316, 1000, 3162]);
        assert_eq!(counts, [3, 1, 1]);
        assert_eq!(
            of([0, 7, 9_000_000])
                .bars(1)
                .iter()
                .map(|(_, count)| count)
                .sum::<u64>(),
            3
        );
        assert!(Histogram::new().bars(10).is_empty());
    }

    #[test]
    fn a_microsecond_is_resolved_and_an_hour_held() {
        let histogram = of([0, 1, 2, 2000, 2001]);
        assert_eq!(histogram.percentile(40.0), Duration::from_micros(1));
        assert_eq!(histogram.percentile(80.0), Duration::from_micros(2000));
        let long = of([u64::MAX]);
        assert_eq!(long.max(), Duration::from_secs(3600));
        assert_eq!(long.median(), Duration::from_secs(3600));
    }

    #[test]
    fn a_percentile_does_not_exceed_the_maximum() {
        let histogram = of([1_000_001]);
        assert_eq!(histogram.median(), Duration::from_micros(1_000_001));
    }

    #[test]
    fn the_rank_is_not_off_by_a_rounding_error() {
        let histogram = of(1..=1000);
        assert_eq!(histogram.percentile(99.9), Duration::from_micros(999));
        assert_eq!(histogram.percentile(100.0), Duration::from_micros(1000));
    }

    #[test]
    fn zeros_pull_the_mean_down() {
        let mut histogram = of([30]);
        histogram.record_zeros(2);
        assert_eq!(histogram.count(), 3);
        assert_eq!(histogram.mean(), Duration::from_micros(10));
        assert_eq!(histogram.min(), Duration::ZERO);
        histogram.record_zeros(0);
        assert_eq!(histogram.count(), 3);
    }

    #[test]
    fn ten_values_must_lie_beyond_a_percentile() {
        for (percent, count, expected) in [
            (50.0, 20, true),
            (50.0, 19, false),
            (99.0, 1000, true),
            (99.0, 999, false),
            (99.9, 10_000, true),
            (99.9, 9999, false),
            (99.999, 1_000_000, true),
            (100.0, 1_000_000, false),
        ] {
            assert_eq!(is_quotable(percent, count), expected, "{percent} {count}");
        }
    }

    proptest! {
        #[test]
        fn moments_are_those_of_the_values(values in prop::collection::vec(0_u64..10_000_000, 2..200)) {
            let histogram = of(values.iter().copied());
            let n = values.len() as f64;
            let mean = values.iter().sum::<u64>() as f64 / n;
            let squares: f64 = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
            prop_assert!((histogram.mean().as_secs_f64() * 1e6 - mean).abs() <= 1.0);
            let stddev = (squares / (n - 1.0)).sqrt();
            prop_assert!((histogram.stddev().as_secs_f64() * 1e6 - stddev).abs() <= 1.0);
            prop_assert_eq!(histogram.min().as_micros(), u128::from(*values.iter().min().unwrap()));
            prop_assert_eq!(histogram.max().as_micros(), u128::from(*values.iter().max().unwrap()));
        }

        #[test]
        fn merged_parts_are_the_whole(
            one in prop::collection::vec(0_u64..100_000_000, 0..100),
            other in prop::collection::vec(0_u64..100_000_000, 0..100),
        ) {
            let mut merged = of(one.iter().copied());
            merged.merge(&of(other.iter().copied()));
            let whole = of(one.iter().chain(&other).copied());
            prop_assert_eq!(merged.count(), whole.count());
            prop_assert_eq!(merged.stddev(), whole.stddev());
            for percent in PERCENTILES {
                prop_assert_eq!(merged.percentile(percent), whole.percentile(percent));
            }
        }

        #[test]
        fn a_percentile_is_the_value_of_that_rank(
            mut values in prop::collection::vec(0_u64..1_000_000_000, 1..300),
            percent in 0.1_f64..100.0,
        ) {
            let found = of(values.iter().copied()).percentile(percent).as_micros() as f64;
            values.sort_unstable();
            let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
            let exact = values[rank.clamp(1, values.len()) - 1] as f64;
            prop_assert!((found - exact).abs() <= exact / 1000.0 + 1.0, "{found} {exact}");
        }
    }
}
