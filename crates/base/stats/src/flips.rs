//! Tests whether any of several figures of the same pairs differs from 0: by sign flips, with the largest of their t
//! values.
//!
//! If each pair is equally likely to deviate to either side, the signs of all its figures could just as well be
//! reversed. The p value is the share of such flips for which the largest t value is at least the one found. So several
//! figures together report a false difference no more often than a single one. Six pairs suffice.

/// The p value of `pairs`, which all have the same figures: the probability that one of the figures deviates from 0 so
/// clearly if the true value of each is 0. It is 1 without pairs. There may be 64 pairs at most.
#[must_use]
pub fn p_value<const FIGURES: usize>(pairs: &[[f64; FIGURES]]) -> f64 {
    let mut spreads = [0.0_f64; FIGURES];
    for (figure, spread) in spreads.iter_mut().enumerate() {
        let squares = pairs.iter().map(|pair| pair[figure].powi(2));
        *spread = squares.sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    }
    // The largest t value if the pairs are flipped whose bits in `signs` are set. Flips do not change the sum of
    // squares, so that the t value grows with the sum: comparing the sums is enough.
    let largest_t = |signs: u64| {
        let mut largest = 0.0_f64;
        for (figure, spread) in spreads.iter().enumerate() {
            let mut sum = 0.0_f64;
            for (number, pair) in pairs.iter().enumerate() {
                let is_flipped = signs >> number & 1 == 1;
                sum += if is_flipped {
                    -pair[figure]
                } else {
                    pair[figure]
                };
            }
            largest = largest.max(sum.abs() / spread);
        }
        largest
    };
    let as_given = largest_t(0) - ROUNDING;
    let mut random = fastrand::Rng::with_seed(1);
    let tries_all = pairs.len() <= ALL_FLIPS_MAX;
    let flips = if tries_all { 1 << pairs.len() } else { DRAWN };
    let mut as_clear = 0_u64;
    for flip in 0..flips {
        // Flip 0, the signs as given, is always among the flips, also among those that are drawn.
        let is_drawn = !tries_all && flip != 0;
        let signs = if is_drawn { random.u64(..) } else { flip };
        as_clear += u64::from(largest_t(signs) >= as_given);
    }
    as_clear as f64 / flips as f64
}

/// The most pairs for which all flips are tried.
const ALL_FLIPS_MAX: usize = 10;

/// The number of flips drawn at random for more pairs.
const DRAWN: u64 = 1000;

/// The rounding error allowed between two sums of the same values.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::normal;

    #[test]
    fn six_pairs_that_agree_suffice() {
        let agree = [0.5, 0.51, 0.52, 0.5, 0.49, 0.5];
        let around = [0.2, -0.3, 0.1, -0.1, 0.05, -0.2];
        for of in [0, 1] {
            let pairs: Vec<[f64; 2]> = (0..6)
                .map(|at| {
                    if of == 0 {
                        [agree[at], around[at]]
                    } else {
                        [around[at], agree[at]]
                    }
                })
                .collect();
            assert!((p_value(&pairs) - 2.0 / 64.0).abs() < 1e-12);
            assert!((p_value(&pairs[..5]) - 2.0 / 32.0).abs() < 1e-12);
        }
        assert_eq!(p_value::<2>(&[]), 1.0);
        assert_eq!(p_value(&[[0.0, 0.0]; 8]), 1.0);
    }

    /// 1,000 simulated experiments each without a difference: 5 % are expected to be found, of two figures together; more than
    /// 7 % are as rare as one in 500.
    #[test]
    fn two_figures_find_no_more_than_one() {
        for count in [6, 8, 12] {
            let is_found = |seed: &u64| {
                let mut random = fastrand::Rng::with_seed(*seed);
                let pair = |_| {
                    let [first, middle, last] = [0; 3].map(|_| normal(&mut random));
                    [last - first, middle - f64::midpoint(first, last)]
                };
                p_value(&(0..count).map(pair).collect::<Vec<[f64; 2]>>()) <= 0.05
            };
            let found = (0..TIMES).filter(is_found).count() as f64 / TIMES as f64;
            println!("{count} pairs: {found}");
            assert!(found <= 0.07, "{count} {found}");
        }
    }

    const TIMES: u64 = 1000;
}
