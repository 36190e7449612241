//! Intervals of what a single run estimates, from the blocks of its time.
//!
//! Requests of a run are not independent: a stall slows hundreds at once. So the run is cut into
//! blocks of time, and the spread between the blocks says how sure an estimate is; never less
//! unsure than independent requests would make it. Intervals are two-sided, of 95 %.

use std::ops::RangeInclusive;

/// So many blocks are the least from which an interval is made.
pub const BLOCKS_MIN: usize = 6;

/// More blocks say nothing more, and neighbours become alike.
pub const BLOCKS_MAX: usize = 20;

/// Hits among the cases of one block of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// Cases that were hits.
    pub hits: u64,
    /// All cases.
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
}

/// The mean of what `blocks` of equal length gave; `None` below [`BLOCKS_MIN`] of them.
#[must_use]
pub fn mean(blocks: &[f64]) -> Option<Estimate> {
    if blocks.len() < BLOCKS_MIN {
        return None;
    }
    let count = blocks.len() as f64;
    let value = blocks.iter().sum::<f64>() / count;
    let squares: f64 = blocks.iter().map(|block| (block - value).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let reach = student(blocks.len()) * error;
    Some(Estimate {
        value,
        low: value - reach,
        high: value + reach,
    })
}

/// The share of hits in all `blocks` (Wilson's interval, of as many cases as their spread leaves
/// independent); `None` below [`BLOCKS_MIN`] blocks, or without cases.
#[must_use]
pub fn share(blocks: &[Hits]) -> Option<Estimate> {
    let all: u64 = blocks.iter().map(|block| block.of).sum();
    if blocks.len() < BLOCKS_MIN || all == 0 {
        return None;
    }
    let hits: u64 = blocks.iter().map(|block| block.hits).sum();
    let (all, value) = (all as f64, hits as f64 / all as f64);
    let independent = value * (1.0 - value) / all;
    let variance = spread(blocks, value).max(independent);
    let cases = if variance > 0.0 {
        value * (1.0 - value) / variance
    } else {
        all
    };
    let reach = student(blocks.len()).powi(2) / cases;
    let middle = (value + reach / 2.0) / (1.0 + reach);
    let half = (reach * (value * (1.0 - value) + reach / 4.0)).sqrt() / (1.0 + reach);
    Some(Estimate {
        value,
        low: if hits == 0 { 0.0 } else { middle - half },
        high: middle + half,
    })
}

/// The percentiles between which the true `percent`th percentile lies, `blocks` being the hits
/// above the one that was found; `None` as for [`share`]. The upper end may be 100 or more: then
/// the run says nothing of it.
#[must_use]
pub fn percents(percent: f64, blocks: &[Hits]) -> Option<RangeInclusive<f64>> {
    let all: u64 = blocks.iter().map(|block| block.of).sum();
    if blocks.len() < BLOCKS_MIN || all == 0 {
        return None;
    }
    let above = 1.0 - percent / 100.0;
    let independent = above * (1.0 - above) / all as f64;
    let variance = spread(blocks, above).max(independent);
    let reach = 100.0 * student(blocks.len()) * variance.sqrt();
    Some((percent - reach).max(0.0)..=percent + reach)
}

/// The variance of a share as the blocks show it.
fn spread(blocks: &[Hits], share: f64) -> f64 {
    let count = blocks.len() as f64;
    let all: u64 = blocks.iter().map(|block| block.of).sum();
    let squares: f64 = blocks
        .iter()
        .map(|block| (block.hits as f64 - share * block.of as f64).powi(2))
        .sum();
    squares * count / (count - 1.0) / (all as f64).powi(2)
}

/// Student's two-sided 95 % point for the mean of `count` values, to 1 % from five degrees of
/// freedom on.
fn student(count: usize) -> f64 {
    let freedom = (count.max(2) - 1) as f64;
    1.96 + 2.37 / freedom + 2.82 / freedom.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(hits: &[u64], of: u64) -> Vec<Hits> {
        hits.iter().map(|&hits| Hits { hits, of }).collect()
    }

    #[test]
    fn students_points() {
        for (count, expected) in [(6, 2.571), (12, 2.201), (20, 2.093)] {
            let found = student(count);
            assert!((found - expected).abs() < 0.026, "{count} {found}");
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
        let estimate = mean(&[90.0, 110.0, 90.0, 110.0, 90.0, 110.0]).unwrap();
        assert!((estimate.low - 88.8).abs() < 0.3, "{estimate:?}");
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
        assert!(*found.end() > 100.0, "{found:?}");
        let found = percents(99.0, &blocks(&[100; 10], 10_000)).unwrap();
        assert!((98.9..99.0).contains(found.start()), "{found:?}");
        assert!((99.0..99.1).contains(found.end()), "{found:?}");
    }
}
