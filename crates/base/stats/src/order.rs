//! Conclusions from a few paired measurements, without assuming their distribution.
//!
//! The interval of a median is a pair of order statistics: the k-th smallest and the k-th largest
//! of n values hold the median between them with a probability that depends on n and k alone
//! (binomial with one half). It is checked by eye, and held 95 % in every kind of noise that was
//! simulated, where a t interval and a bootstrap did not.

use crate::spread::median;

/// A median with the interval that holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianInterval {
    /// The lower end.
    pub low: f64,
    /// The median of the values.
    pub median: f64,
    /// The upper end.
    pub high: f64,
    /// The probability with which the interval holds the true median, 0 to 1: at least what was
    /// asked for.
    pub level: f64,
}

/// The interval that holds the median of what `values` were drawn from with a probability of at
/// least `level`; `None` if they are too few (below 6 for 0.95). Values may be infinite, not NaN.
#[must_use]
pub fn median_interval(values: &[f64], level: f64) -> Option<MedianInterval> {
    let rank = rank(values.len(), level)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(MedianInterval {
        low: sorted[rank - 1],
        median: median(values),
        high: sorted[sorted.len() - rank],
        level: level_of(values.len(), rank),
    })
}

/// The fewest values from which a median's interval of `level` can be made.
#[must_use]
pub fn count_min(level: f64) -> usize {
    (1..=COUNT_MAX)
        .find(|&count| rank(count, level).is_some())
        .unwrap_or(COUNT_MAX)
}

impl MedianInterval {
    /// Whether `value` is not in it.
    #[must_use]
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }
}

/// The two-sided exact sign test: how probable it is that so many of `ratios`, or more, lie on the
/// same side of 1 if there is no difference. Ratios of exactly 1 say nothing and are left out, 1
/// if there are no others.
#[must_use]
pub fn sign_test(ratios: &[f64]) -> f64 {
    let above = ratios.iter().filter(|&&ratio| ratio > 1.0).count();
    let below = ratios.iter().filter(|&&ratio| ratio < 1.0).count();
    let tail = binomial_tail(above + below, above.min(below));
    (2.0 * tail).min(1.0)
}

/// Which of several claims hold together at `level`, by Holm's step-down over their p values: the
/// probability of even one false claim among them stays below 1 - `level`.
#[must_use]
pub fn holm(probabilities: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&one, &other| probabilities[one].total_cmp(&probabilities[other]));
    let mut holds = vec![false; probabilities.len()];
    for (place, &claim) in order.iter().enumerate() {
        let others = (probabilities.len() - place) as f64;
        if probabilities[claim] * others > 1.0 - level + ROUNDING {
            break;
        }
        holds[claim] = true;
    }
    holds
}

/// The largest k for which the k-th smallest and the k-th largest of `count` values hold the
/// median with a probability of at least `level`.
fn rank(count: usize, level: f64) -> Option<usize> {
    (1..=count / 2)
        .take_while(|&rank| level_of(count, rank) >= level - ROUNDING)
        .last()
}

fn level_of(count: usize, rank: usize) -> f64 {
    1.0 - 2.0 * binomial_tail(count, rank - 1)
}

/// The probability of at most `most` heads in `count` throws of a coin.
fn binomial_tail(count: usize, most: usize) -> f64 {
    // By logarithms: 2^-count alone is zero from 1,075 throws on.
    let mut term = -(count as f64) * std::f64::consts::LN_2;
    let mut sum = term.exp();
    for heads in 0..most {
        term += ((count - heads) as f64).ln() - ((heads + 1) as f64).ln();
        sum += term.exp();
    }
    sum
}

const ROUNDING: f64 = 1e-12;

/// No level below 1 - 2^-63 needs more values.
const COUNT_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked against tables of the binomial distribution.
    #[test]
    fn ranks_and_exact_levels() {
        for (count, from, to, percent) in [
            (6, 1, 6, 96.9),
            (9, 2, 8, 96.1),
            (12, 3, 10, 96.1),
            (15, 4, 12, 96.5),
            (17, 5, 13, 95.1),
            (20, 6, 15, 95.9),
        ] {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let interval = median_interval(&values, 0.95).unwrap();
            assert_eq!(
                (interval.low, interval.high),
                (f64::from(from), f64::from(to))
            );
            assert!(
                (interval.level * 100.0 - percent).abs() < 0.05,
                "{interval:?}"
            );
        }
    }

    #[test]
    fn few_values_have_no_interval() {
        assert_eq!(median_interval(&[1.0; 5], 0.95), None);
        assert_eq!(median_interval(&[], 0.95), None);
        assert_eq!(
            (count_min(0.95), count_min(0.9), count_min(0.99)),
            (6, 5, 8)
        );
    }

    #[test]
    fn many_values_lose_no_precision() {
        let values: Vec<f64> = (0..4000).map(f64::from).collect();
        let interval = median_interval(&values, 0.95).unwrap();
        // n/2 ± 1.96·√n/2.
        assert!((interval.low - (2000.0 - 62.0)).abs() < 2.0, "{interval:?}");
        assert!(
            (interval.high - (2000.0 + 61.0)).abs() < 2.0,
            "{interval:?}"
        );
    }

    #[test]
    fn infinite_ratios_are_the_largest() {
        let interval = median_interval(&[1.0, 1.0, 1.0, 1.0, 1.0, f64::INFINITY], 0.95).unwrap();
        assert_eq!((interval.low, interval.median), (1.0, 1.0));
        assert!(!interval.excludes(1.0) && interval.excludes(0.9));
    }

    #[test]
    fn the_sign_test_is_exact() {
        for (above, below, expected) in [(6, 0, 0.031_25), (10, 2, 0.038_574), (3, 3, 1.0)] {
            let ratios = [vec![1.1; above], vec![0.9; below], vec![1.0; 4]].concat();
            assert!(
                (sign_test(&ratios) - expected).abs() < 1e-6,
                "{above} {below}"
            );
        }
        assert_eq!(sign_test(&[1.0, 1.0]), 1.0);
    }

    #[test]
    fn holm_stops_at_the_first_that_fails() {
        assert_eq!(holm(&[0.04, 0.001, 0.03], 0.95), [false, true, false]);
        assert_eq!(holm(&[0.016, 0.024, 0.05], 0.95), [true, true, true]);
        assert!(holm(&[], 0.95).is_empty());
    }
}
