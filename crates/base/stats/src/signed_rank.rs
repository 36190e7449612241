//! Whether paired measurements differ, and by how much: the signed rank test of Wilcoxon, exact, with the interval of
//! Hodges and Lehmann that belongs to it.
//!
//! A pair is given as the logarithm of its ratio. The estimate is the median of the means of all combinations of two
//! pairs (a pair with itself counts, too), and the ends of the interval are two of these means. Test and interval
//! agree: the interval excludes 0 exactly if the p value is below 1 - `level`. Both assume that a pair is equally
//! likely to deviate to either side. A sign test does not need that, but finds a difference later; the tests simulate
//! by how much.

use crate::spread::median_of_sorted;

/// The centre of paired measurements, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// The lower end of the interval.
    pub low: f64,
    /// The estimate.
    pub estimate: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The centre of `pairs`, with an interval that contains it with a probability of at least `level`; `None` if there are
/// too few pairs (fewer than 6 for 0.95). Pairs may be infinite, but not NaN.
#[must_use]
pub fn centre(pairs: &[f64], level: f64) -> Option<Centre> {
    let rank = rank(pairs.len(), level)?;
    let mut means = means(pairs);
    means.sort_by(f64::total_cmp);
    Some(Centre {
        low: means[rank - 1],
        estimate: median_of_sorted(&means),
        high: means[means.len() - rank],
    })
}

/// The centre of `pairs` without an interval; `None` only without pairs. For pairs that are not an independent sample,
/// such as the blocks of one start of a server, which share the noise of that start.
#[must_use]
pub fn estimate(pairs: &[f64]) -> Option<f64> {
    let mut means = means(pairs);
    means.sort_by(f64::total_cmp);
    (!means.is_empty()).then(|| median_of_sorted(&means))
}

/// The two-sided p value: the probability that pairs deviate to one side of 0 at least as clearly as these, if they are
/// equally likely to deviate to either side. Means of two pairs that are exactly 0 count for neither side, which gives
/// the larger p.
#[must_use]
pub fn p_value(pairs: &[f64]) -> f64 {
    let means = means(pairs);
    let above = means.iter().filter(|&&mean| mean > 0.0).count();
    let below = means.iter().filter(|&&mean| mean < 0.0).count();
    let clear = above.max(below);
    (2.0 * tail(pairs.len(), means.len() - clear)).min(1.0)
}

/// The smallest p value that this number of pairs can have: that of pairs which all lie on one side.
#[must_use]
pub fn p_value_min(pairs: usize) -> f64 {
    (2.0 * tail(pairs, 0)).min(1.0)
}

/// The fewest pairs from which an interval of `level` can be made.
#[must_use]
pub fn count_min(level: f64) -> usize {
    (1..=COUNT_MAX)
        .find(|&count| rank(count, level).is_some())
        .unwrap_or(COUNT_MAX)
}

impl Centre {
    /// Whether `value` lies outside the interval.
    #[must_use]
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }
}

/// The mean of every combination of two pairs, a pair with itself included.
fn means(pairs: &[f64]) -> Vec<f64> {
    let mut means = Vec::with_capacity(pairs.len() * (pairs.len() + 1) / 2);
    for (number, pair) in pairs.iter().enumerate() {
        let others = pairs[number..].iter();
        means.extend(others.map(|other| f64::midpoint(*pair, *other)));
    }
    means
}

/// The largest k for which the interval from the k-th smallest to the k-th largest mean contains the centre with a
/// probability of at least `level`; `None` if there is none.
fn rank(count: usize, level: f64) -> Option<usize> {
    let distribution = null_distribution(count);
    let outside = (1.0 - level) / 2.0 + ROUNDING;
    let mut sum = 0.0;
    let fits = distribution.iter().take_while(|probability| {
        sum += **probability;
        sum <= outside
    });
    let rank = fits.count();
    (count > 0 && rank > 0).then_some(rank)
}

/// The probability that at most `most` means of two pairs lie below 0.
fn tail(count: usize, most: usize) -> f64 {
    null_distribution(count).iter().take(most + 1).sum()
}

/// The null distribution of the signed rank sum of `count` pairs: element s is the probability that the ranks with a
/// negative sign add up to s. Each rank has a negative sign with the probability 1/2.
fn null_distribution(count: usize) -> Vec<f64> {
    let mut distribution = vec![0.0; count * (count + 1) / 2 + 1];
    distribution[0] = 1.0;
    for rank in 1..=count {
        // From the largest sum down, so that each rank is used only once.
        for sum in (0..distribution.len()).rev() {
            let with_rank = sum.checked_sub(rank).map_or(0.0, |rest| distribution[rest]);
            distribution[sum] = f64::midpoint(distribution[sum], with_rank);
        }
    }
    distribution
}

const ROUNDING: f64 = 1e-12;

/// The most pairs that a level can need; a level below 1 - 2^-63 needs no more.
const COUNT_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::normal;

    /// Checked against Wilcoxon's tables: the largest rank sums at 5 %, two-sided.
    #[test]
    fn ranks_are_those_of_the_tables() {
        for (count, critical) in [
            (6, 0),
            (7, 2),
            (8, 3),
            (10, 8),
            (12, 13),
            (15, 25),
            (20, 52),
        ] {
            assert_eq!(rank(count, 0.95), Some(critical + 1), "{count}");
        }
        assert_eq!((rank(0, 0.95), rank(5, 0.95)), (None, None));
        assert_eq!((count_min(0.95), count_min(0.99)), (6, 8));
        for count in [1, 6, 12, 60] {
            let all: f64 = null_distribution(count).iter().sum();
            assert!((all - 1.0).abs() < 1e-12, "{count} {all}");
        }
    }

    #[test]
    fn the_interval_excludes_none_where_the_test_does() {
        let mut random = fastrand::Rng::with_seed(1);
        for count in [6, 8, 12, 20] {
            for _ in 0..200 {
                let pairs: Vec<f64> = (0..count).map(|_| 0.6 + normal(&mut random)).collect();
                let centre = centre(&pairs, 0.95).unwrap();
                assert_eq!(centre.excludes(0.0), p_value(&pairs) <= 0.05, "{pairs:?}");
                assert!(centre.low <= centre.estimate && centre.estimate <= centre.high);
            }
        }
    }

    #[test]
    fn six_that_agree_are_the_fewest_that_show_anything() {
        assert!((p_value(&[0.1; 6]) - 0.031_25).abs() < 1e-12);
        assert!((p_value_min(6) - 0.031_25).abs() < 1e-12);
        assert_eq!(p_value(&[0.0; 12]), 1.0);
        assert_eq!(p_value(&[]), 1.0);
        let same = centre(&[0.0; 12], 0.95).unwrap();
        assert_eq!((same.low, same.high), (0.0, 0.0));
        let infinite = [0.0, 0.0, 0.0, 0.0, 0.0, f64::INFINITY];
        assert_eq!(centre(&infinite, 0.95).unwrap().estimate, 0.0);
    }

    /// How often signs and signed ranks show a difference of `shift` deviations.
    #[derive(Clone, Copy, Debug, Default)]
    struct Power {
        signs: f64,
        ranks: f64,
        /// Intervals that hold the truth.
        coverage: f64,
    }

    /// The noise of a pair, by the simulated ways of a machine.
    type PairNoise = fn(&mut fastrand::Rng) -> f64;

    fn gauss(random: &mut fastrand::Rng) -> f64 {
        normal(random)
    }

    /// One pair in twelve is five times as far off.
    fn outliers(random: &mut fastrand::Rng) -> f64 {
        let far = if random.u8(0..12) == 0 { 5.0 } else { 1.0 };
        far * normal(random)
    }

    /// The exact sign test: how probable it is that so many pairs, or more, lie on one side of 0.
    fn sign_test(pairs: &[f64]) -> f64 {
        let above = pairs.iter().filter(|&&pair| pair > 0.0).count();
        let fewer = above.min(pairs.len() - above);
        let mut ways = 1.0;
        let mut sum = 0.0;
        for heads in 0..=fewer {
            sum += ways;
            ways *= (pairs.len() - heads) as f64 / (heads + 1) as f64;
        }
        (2.0 * sum / 2.0_f64.powi(pairs.len() as i32)).min(1.0)
    }

    #[test]
    fn signs_are_counted_exactly() {
        for (above, below, expected) in [(6, 0, 0.031_25), (10, 2, 0.038_574), (3, 3, 1.0)] {
            let pairs = [vec![0.1; above], vec![-0.1; below]].concat();
            assert!(
                (sign_test(&pairs) - expected).abs() < 1e-6,
                "{above} {below}"
            );
        }
    }

    fn power(count: usize, shift: f64, level: f64, noise: PairNoise) -> Power {
        let mut power = Power::default();
        let part = 1.0 / f64::from(TIMES);
        for seed in 0..TIMES {
            let mut random = fastrand::Rng::with_seed(u64::from(seed));
            let pairs: Vec<f64> = (0..count).map(|_| shift + noise(&mut random)).collect();
            let is_by = |p: f64| if p <= 1.0 - level { part } else { 0.0 };
            power.signs += is_by(sign_test(&pairs));
            power.ranks += is_by(p_value(&pairs));
            let centre = centre(&pairs, 0.95).unwrap();
            power.coverage += if centre.excludes(shift) { 0.0 } else { part };
        }
        power
    }

    /// Pairs without a difference, 2,000 simulations of each case: ranks show one in 3 to 5.5 %, and the interval holds the
    /// truth in 94.5 % at least.
    #[test]
    fn none_is_rarely_shown() {
        for (name, noise) in [("gauss", gauss as PairNoise), ("outliers", outliers)] {
            for count in [8, 12, 20] {
                let found = power(count, 0.0, 0.95, noise);
                println!("{name} {count}: {found:.3?}");
                assert!((0.03..=0.055).contains(&found.ranks), "{name} {found:?}");
                assert!(found.coverage >= 0.945, "{name} {found:?}");
            }
        }
    }

    /// Twelve pairs with a deviation of 0.05 and a difference of 4 %: ranks find it in 65 % of 2,000 simulations, signs in
    /// 49 %; as the first of twelve claims by Holm in 22 % and 5 %.
    #[test]
    fn ranks_find_what_signs_do_not() {
        let shift = 1.04_f64.ln() / 0.05;
        let alone = power(12, shift, 0.95, gauss);
        let of_twelve = power(12, shift, 1.0 - 0.05 / 12.0, gauss);
        println!("alone {alone:.3?}, the first of twelve {of_twelve:.3?}");
        assert!(alone.ranks > 0.64 && alone.ranks > alone.signs + 0.1);
        assert!(of_twelve.ranks > 0.2 && of_twelve.ranks > of_twelve.signs + 0.1);
    }

    /// A planted 9 %, twelve pairs: beside the deviation of CPU time of a shared core (0.10) it is found in 72 %, beside that
    /// of throughput (0.86) in 5 %.
    #[test]
    fn cpu_time_finds_what_throughput_does_not() {
        let found = |deviation: f64| power(12, 1.09_f64.ln() / deviation, 0.95, gauss).ranks;
        let (cpu, throughput) = (found(0.10), found(0.86));
        println!("CPU time {cpu:.3}, throughput {throughput:.3}");
        assert!(cpu > 0.7 && throughput < 0.1);
    }

    const TIMES: u32 = 2000;
}
