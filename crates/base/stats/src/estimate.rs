//! Intervals of 95 %, two-sided, for what a single run estimates, from its blocks of time.
//!
//! Requests of a run are not independent: a stall slows hundreds at once. So the run is cut into blocks of time, and
//! the spread between the blocks shows how uncertain an estimate is. It is never taken as less uncertain than with
//! independent requests.
//!
//! Neighbouring blocks correlate, too. Their correlation is estimated as that of an autoregressive process of first
//! order, corrected for its bias in short series (Kendall 1954) and increased by one standard error, since few blocks
//! determine it badly. Correlated blocks count as fewer independent ones, which widens the interval and reduces its
//! degrees of freedom. The tests simulate how often the true value lies outside.

/// The fewest blocks from which an interval is made.
pub const BLOCKS_MIN: usize = 6;

/// The most blocks that a run is cut into; more do not improve the interval.
pub const BLOCKS_MAX: usize = 100;

/// A run whose blocks count as fewer independent ones than this is too short: its interval is too wide to be of use.
pub const INDEPENDENT_MIN: f64 = 2.5;

/// The number of hits among the cases of one block of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// Cases that were hits.
    pub hits: u64,
    /// All cases of the block.
    pub of: u64,
}

/// A value with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The number of independent blocks as which the run's blocks count, at least 2.
    pub independent: f64,
}

/// The mean of the counts of `blocks`, which are equally long; `None` for fewer than [`BLOCKS_MIN`].
#[must_use]
pub fn mean(blocks: &[f64]) -> Option<Estimate> {
    if blocks.len() < BLOCKS_MIN {
        return None;
    }
    let count = blocks.len() as f64;
    let value = blocks.iter().sum::<f64>() / count;
    let residuals: Vec<f64> = blocks.iter().map(|block| block - value).collect();
    let independent = independent(&residuals);
    let standard_error = (sum_of_squares(&residuals) / count / (independent - 1.0)).sqrt();
    let half_width = student(independent) * standard_error;
    Some(Estimate {
        value,
        low: value - half_width,
        high: value + half_width,
        independent,
    })
}

/// The share of hits in all `blocks`, with Wilson's interval for as many independent cases as the spread of the blocks
/// corresponds to; `None` for fewer than [`BLOCKS_MIN`] blocks, or without cases.
#[must_use]
pub fn share(blocks: &[Hits]) -> Option<Estimate> {
    let all: u64 = blocks.iter().map(|block| block.of).sum();
    if blocks.len() < BLOCKS_MIN || all == 0 {
        return None;
    }
    let hits: u64 = blocks.iter().map(|block| block.hits).sum();
    let (all, value) = (all as f64, hits as f64 / all as f64);
    let spread = SpreadEstimate::of(blocks, value);
    // The blocks never count as less uncertain than independent cases.
    let variance = spread.variance.max(value * (1.0 - value) / all);
    let independent_cases = if variance > 0.0 {
        value * (1.0 - value) / variance
    } else {
        all
    };
    // Wilson's interval, with z² / n as `z2_n`.
    let z2_n = student(spread.independent).powi(2) / independent_cases;
    let middle = (value + z2_n / 2.0) / (1.0 + z2_n);
    let half_width = (z2_n * (value * (1.0 - value) + z2_n / 4.0)).sqrt() / (1.0 + z2_n);
    Some(Estimate {
        value,
        // Rounding would leave a little above 0.
        low: if hits == 0 { 0.0 } else { middle - half_width },
        high: middle + half_width,
        independent: spread.independent,
    })
}

/// An interval of percentiles that contains the true `percent`th percentile. `blocks` count the values above the
/// percentile that was found; `None` as for [`share`]. If the upper end is 100 or more, the run does not limit it.
#[must_use]
pub fn percents(percent: f64, blocks: &[Hits]) -> Option<Estimate> {
    let all: u64 = blocks.iter().map(|block| block.of).sum();
    if blocks.len() < BLOCKS_MIN || all == 0 {
        return None;
    }
    let above = 1.0 - percent / 100.0;
    // If many values equal the percentile found, fewer than expected are above it.
    let hits: u64 = blocks.iter().map(|block| block.hits).sum();
    let spread = SpreadEstimate::of(blocks, hits as f64 / all as f64);
    let variance = spread.variance.max(above * (1.0 - above) / all as f64);
    let half_width = 100.0 * student(spread.independent) * variance.sqrt();
    Some(Estimate {
        value: percent,
        low: (percent - half_width).max(0.0),
        high: percent + half_width,
        independent: spread.independent,
    })
}

/// The spread of blocks around a share.
#[derive(Clone, Copy, Debug)]
struct SpreadEstimate {
    /// The variance of the share of hits in all blocks, estimated from the spread of the blocks.
    variance: f64,
    independent: f64,
}

impl SpreadEstimate {
    fn of(blocks: &[Hits], share: f64) -> Self {
        let count = blocks.len() as f64;
        let all: u64 = blocks.iter().map(|block| block.of).sum();
        let residuals: Vec<f64> = blocks
            .iter()
            .map(|block| block.hits as f64 - share * block.of as f64)
            .collect();
        let independent = independent(&residuals);
        Self {
            variance: sum_of_squares(&residuals) * count
                / (independent - 1.0)
                / (all as f64).powi(2),
            independent,
        }
    }
}

fn sum_of_squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// The number of independent blocks as which correlated ones count, from 2 to their number: the variance of one block
/// divided by that of the blocks' mean. `residuals` are the differences from the mean. Their squares are too small by
/// the variance of the mean, which callers correct by dividing by this number less 1.
fn independent(residuals: &[f64]) -> f64 {
    let count = residuals.len() as f64;
    let mean = residuals.iter().sum::<f64>() / count;
    let centred: Vec<f64> = residuals.iter().map(|residual| residual - mean).collect();
    let squares = sum_of_squares(&centred);
    if squares < ROUNDING {
        return count;
    }
    let products: f64 = centred.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let of_sample = products / squares;
    // Kendall's correction for short series, then one standard error more.
    let unbiased = (of_sample + (1.0 + 3.0 * of_sample) / count).clamp(0.0, CORRELATION_MAX);
    let error = ((1.0 - unbiased * unbiased) / count).sqrt();
    let correlation = (unbiased + error).min(CORRELATION_MAX);
    // In an autoregressive process, blocks at a distance correlate by a power of the neighbours' correlation.
    let mut power = 1.0;
    let mut inflation = 1.0;
    for distance in 1..centred.len() {
        power *= correlation;
        inflation += 2.0 * (1.0 - distance as f64 / count) * power;
    }
    (count / inflation).clamp(2.0, count)
}

/// Student's two-sided 95 % point for the mean of `independent` independent values, to 1 %.
pub(crate) fn student(independent: f64) -> f64 {
    let freedom = (independent - 1.0).max(1.0);
    1.96 + 2.37 / freedom + 2.82 / freedom.powi(2) + 5.56 * freedom.powf(-3.6)
}

/// Blocks whose squared differences add up to less are equal.
const ROUNDING: f64 = 1e-9;

/// The largest correlation assumed: at 1 each value would equal the one before it, and the series would
/// have no mean.
const CORRELATION_MAX: f64 = 0.99;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Noise, RUNS};

    fn blocks(hits: &[u64], of: u64) -> Vec<Hits> {
        hits.iter().map(|&hits| Hits { hits, of }).collect()
    }

    #[test]
    fn students_points() {
        for (count, expected) in [
            (2.0, 12.706),
            (3.0, 4.303),
            (4.0, 3.182),
            (5.0, 2.776),
            (6.0, 2.571),
            (12.0, 2.201),
            (20.0, 2.093),
        ] {
            let found = student(count);
            assert!((found / expected - 1.0).abs() < 0.011, "{count} {found}");
        }
    }

    #[test]
    fn few_blocks_say_nothing() {
        assert_eq!(mean(&[1.0; 5]), None);
        assert_eq!(share(&blocks(&[1; 5], 100)), None);
        assert_eq!(percents(99.0, &blocks(&[1; 5], 100)), None);
        assert_eq!(share(&blocks(&[0; 6], 0)), None);
    }

    #[test]
    fn a_mean_is_as_sure_as_its_blocks() {
        assert_eq!(
            mean(&[5.0; 6]).map(|it| (it.low, it.high)),
            Some((5.0, 5.0))
        );
        let estimate = mean(&[90.0, 110.0].repeat(10)).unwrap();
        assert!((estimate.low - 93.7).abs() < 0.3, "{estimate:?}");
    }

    #[test]
    fn no_hits_are_no_proof_of_none() {
        let estimate = share(&blocks(&[0; 10], 100)).unwrap();
        assert_eq!((estimate.value, estimate.low), (0.0, 0.0));
        assert!((0.004..0.006).contains(&estimate.high), "{estimate:?}");
    }

    #[test]
    fn hits_in_one_block_are_less_sure_than_scattered_ones() {
        let scattered = share(&blocks(&[5; 10], 1000)).unwrap();
        let together = share(&blocks(&[50, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1000)).unwrap();
        assert_eq!(scattered.value, together.value);
        assert!(
            together.high > 2.0 * scattered.high,
            "{together:?} {scattered:?}"
        );
    }

    #[test]
    fn a_percentile_of_few_requests_has_no_upper_end() {
        let found = percents(99.0, &blocks(&[1; 6], 50)).unwrap();
        assert!(found.high > 100.0, "{found:?}");
        let found = percents(99.0, &blocks(&[100; 10], 10_000)).unwrap();
        assert!((98.9..99.0).contains(&found.low), "{found:?}");
        assert!((99.0..99.1).contains(&found.high), "{found:?}");
    }

    /// The shares of simulated runs whose interval held the truth, was below it, or was of too short a
    /// run.
    #[derive(Clone, Copy, Debug, Default)]
    struct Coverage {
        within: f64,
        /// Runs whose whole interval was below the truth: they pass a gate that they should fail.
        below: f64,
        /// Blocks were worth fewer than [`INDEPENDENT_MIN`].
        too_short: f64,
    }

    impl Coverage {
        fn of(truth: f64, run: impl Fn(u64) -> Estimate) -> Self {
            let mut coverage = Self::default();
            let part = 1.0 / RUNS as f64;
            for seed in 0..RUNS {
                let estimate = run(seed);
                let is_below = estimate.high < truth;
                let is_within = !is_below && estimate.low <= truth;
                coverage.within += if is_within { part } else { 0.0 };
                coverage.below += if is_below { part } else { 0.0 };
                let is_short = estimate.independent < INDEPENDENT_MIN;
                coverage.too_short += if is_short { part } else { 0.0 };
            }
            coverage
        }
    }

    fn noise(correlation: f64, seed: u64) -> impl Iterator<Item = f64> {
        let noise = Noise {
            deviation: 0.3,
            correlation,
        };
        noise.about(|_| 1.0, seed)
    }

    /// A thousand requests a block, whose latencies are exponential with a mean that the noise moves.
    struct Latencies {
        scales: Vec<f64>,
    }

    impl Latencies {
        fn new(correlation: f64, count: usize, seed: u64) -> Self {
            let scales = noise(correlation, seed).map(|scale| scale.max(0.05));
            Self {
                scales: scales.take(count).collect(),
            }
        }

        fn share_above(&self, limit: f64) -> f64 {
            let shares = self.scales.iter().map(|scale| (-limit / scale).exp());
            shares.sum::<f64>() / self.scales.len() as f64
        }

        fn p99(&self) -> f64 {
            let (mut low, mut high) = (0.0, 50.0);
            for _ in 0..30 {
                let middle = f64::midpoint(low, high);
                if self.share_above(middle) > 0.01 {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            high
        }

        fn hits_above(&self, limit: f64) -> Vec<Hits> {
            let hits = |scale: &f64| Hits {
                hits: (1000.0 * (-limit / scale).exp()).round() as u64,
                of: 1000,
            };
            self.scales.iter().map(hits).collect()
        }
    }

    fn coverage_of_mean(correlation: f64, count: usize) -> Coverage {
        Coverage::of(1.0, |seed| {
            let blocks: Vec<f64> = noise(correlation, seed).take(count).collect();
            mean(&blocks).unwrap()
        })
    }

    fn coverage_of_share(correlation: f64, count: usize) -> Coverage {
        Coverage::of(0.1, |seed| {
            let hits = |share: f64| Hits {
                hits: (100.0 * share.clamp(0.0, 2.0)).round() as u64,
                of: 1000,
            };
            let blocks: Vec<Hits> = noise(correlation, seed).take(count).map(hits).collect();
            share(&blocks).unwrap()
        })
    }

    fn coverage_of_p99(correlation: f64, count: usize) -> Coverage {
        // The scales of blocks far apart are independent: their distribution is that of noise.
        let truth = Latencies::new(0.0, 100_000, 1).p99();
        // Each run's place of the true value among its own ones.
        let places: Vec<f64> = (0..RUNS)
            .map(|seed| {
                let run = Latencies::new(correlation, count, seed);
                100.0 * (1.0 - run.share_above(truth))
            })
            .collect();
        Coverage::of(0.0, |seed| {
            let run = Latencies::new(correlation, count, seed);
            let found = percents(99.0, &run.hits_above(run.p99())).unwrap();
            let place = places[usize::try_from(seed).unwrap()];
            Estimate {
                low: found.low - place,
                high: found.high - place,
                ..found
            }
        })
    }

    /// Simulates runs of 20 blocks, as two seconds have, and of 100. At a correlation of 0.9, 20 blocks
    /// are worth about one. The intervals hold the truth in 93 % of the runs at least, in 94.5 % with
    /// 100 blocks.
    #[test]
    fn the_truth_is_within_the_interval_whatever_the_correlation() {
        for correlation in [0.0, 0.6, 0.9] {
            for (count, least) in [(20, 0.93), (100, 0.945)] {
                for (name, coverage) in [
                    ("mean", coverage_of_mean(correlation, count)),
                    ("share", coverage_of_share(correlation, count)),
                    ("p99", coverage_of_p99(correlation, count)),
                ] {
                    println!("{name:5} {count:3} blocks, {correlation:.1}: {coverage:.3?}");
                    assert!(
                        coverage.within >= least && coverage.below <= 0.05,
                        "{name} {count} {correlation} {coverage:?}"
                    );
                }
            }
        }
    }

    /// Of simulated runs of 20 blocks without correlation, fewer than 2 % are called too short.
    #[test]
    fn blocks_without_correlation_are_rarely_called_too_few() {
        let coverage = coverage_of_mean(0.0, 20);
        assert!(coverage.too_short < 0.02, "{coverage:?}");
        let estimate = mean(&noise(0.0, 1).take(100).collect::<Vec<_>>()).unwrap();
        assert!(estimate.independent > 40.0, "{estimate:?}");
    }
}
