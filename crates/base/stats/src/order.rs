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

/// Which of several claims hold together at `level`, one of them being the `headline`: what was asked first.
///
/// The headline may be wrong with [`HEADLINE`] of the probability 1 - `level`, which six pairs that agree reach; the others
/// together, by Holm, with the rest. Who is done leaves its part to the others: they have all of it once the headline holds,
/// and the headline once all others do. So the headline is not weakened by what stands beside it, the others are not closed
/// if it is open, and even one false claim among all has a probability below 1 - `level`.
#[must_use]
pub fn holm_with_headline(probabilities: &[f64], headline: Option<usize>, level: f64) -> Vec<bool> {
    let Some(headline) = headline else {
        return holm(probabilities, level);
    };
    let others: Vec<usize> = (0..probabilities.len())
        .filter(|claim| *claim != headline)
        .collect();
    let of_others: Vec<f64> = others.iter().map(|other| probabilities[*other]).collect();
    let all = 1.0 - level;
    let is_headline = |part: f64| probabilities[headline] <= part + ROUNDING;
    let others_hold = |part: f64| holm(&of_others, 1.0 - part);
    let first = others_hold(all * (1.0 - HEADLINE));
    let headline_holds =
        is_headline(all * HEADLINE) || (first.iter().all(|holds| *holds) && is_headline(all));
    let others_do = if headline_holds {
        others_hold(all)
    } else {
        first
    };
    let mut holds = vec![headline_holds; probabilities.len()];
    for (other, does) in others.into_iter().zip(others_do) {
        holds[other] = does;
    }
    holds
}

/// The part of the probability of a false claim that the headline has at first: at 5 %, that of six pairs which agree.
pub const HEADLINE: f64 = 0.625;

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

    #[test]
    fn a_headline_is_not_weakened_by_others_and_does_not_close_them() {
        let six = 0.031_25;
        for (probabilities, headline, expected) in [
            ([six, 0.9, 0.9], Some(0), [true, false, false]),
            ([six, 0.9, 0.9], None, [false, false, false]),
            // What the headline had goes to the others, and the other way round.
            ([six, 0.02, 0.04], Some(0), [true, true, true]),
            ([0.04, 0.005, 0.01], Some(0), [true, true, true]),
            ([0.04, 0.005, 0.03], Some(0), [false, true, false]),
            ([0.02, 0.03, 0.04], Some(2), [false, false, false]),
        ] {
            let found = holm_with_headline(&probabilities, headline, 0.95);
            assert_eq!(found, expected, "{probabilities:?}");
        }
        assert_eq!(holm_with_headline(&[0.04], Some(0), 0.95), [true]);
    }

    /// 10,000 simulated questions of twelve claims: 5.2 % have a false claim if no difference exists (5 % is expected, with a
    /// deviation of 0.2 %), and 4 % beside a headline that is true. That headline, which by itself is found in 72 %, is found
    /// in 68 %, and by Holm in 55 %.
    #[test]
    fn simulated_questions_have_few_false_claims() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut found = [0.0; 4];
        for _ in 0..10_000 {
            let mut claims: Vec<f64> = (0..12).map(|_| random.f64()).collect();
            let holds = holm_with_headline(&claims, Some(0), 0.95);
            found[0] += f64::from(u8::from(holds.contains(&true)));
            // A p value with the power 0.72 at 5 %, by a Lehmann alternative: p^(1/k).
            claims[0] = random.f64().powf(9.119);
            let holds = holm_with_headline(&claims, Some(0), 0.95);
            found[1] += f64::from(u8::from(holds[0]));
            found[2] += f64::from(u8::from(holds[1..].contains(&true)));
            found[3] += f64::from(u8::from(holm(&claims, 0.95)[0]));
        }
        let found = found.map(|count| count / 10_000.0);
        println!(
            "false {} headline {} others {} by Holm {}",
            found[0], found[1], found[2], found[3]
        );
        assert!(found[0] <= 0.055 && found[2] <= 0.055, "{found:?}");
        assert!(found[1] > found[3] + 0.1, "{found:?}");
    }
}
