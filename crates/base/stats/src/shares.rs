//! Shares: between which values the true one lies (Clopper and Pearson 1934), and whether two differ by more than
//! chance explains (Fisher's exact test).

use std::ops::RangeInclusive;

/// A part of a whole, such as the void runs among all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The cases that count, such as void runs.
    pub part: u64,
    /// All cases, at least as many as `part`.
    pub whole: u64,
}

impl Share {
    /// The exact interval of the true share at this confidence level, from 0 to 1: the shares with which neither so
    /// few nor so many cases are improbable. From 0 to 1 without cases.
    #[must_use]
    pub fn interval(self, level: f64) -> [f64; 2] {
        let tail = (1.0 - level) / 2.0;
        let low = match self.part {
            0 => 0.0,
            part => bisected(|share| self.tail(part..=self.whole, share) < tail),
        };
        let high = match self.part {
            part if part >= self.whole => 1.0,
            part => bisected(|share| self.tail(0..=part, share) > tail),
        };
        [low, high]
    }

    /// The probability that one of the numbers in `parts` counts of [`Self::whole`], if the true share is `share`.
    fn tail(self, parts: RangeInclusive<u64>, share: f64) -> f64 {
        let of_part = |part: u64| {
            let (counts, others) = (part as f64, (self.whole - part) as f64);
            (ln_choose(self.whole, part) + counts * share.ln() + others * (1.0 - share).ln()).exp()
        };
        parts.map(of_part).sum()
    }
}

/// The share between 0 and 1 up to which `holds` is true.
fn bisected(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Fisher's exact test, two-sided: the probability, if both sides have the same share, that the parts are distributed
/// at least as unevenly as here. 1 if a side has no cases.
#[must_use]
pub fn fisher(one: Share, other: Share) -> f64 {
    let parts = one.part + other.part;
    let whole = one.whole + other.whole;
    // The parts that the first side can have of all parts.
    let least = parts.saturating_sub(other.whole);
    let most = parts.min(one.whole);
    // The number of ways in which the first side can have `part` of them.
    let ways =
        |part: u64| (ln_choose(one.whole, part) + ln_choose(other.whole, parts - part)).exp();
    let all_ways = ln_choose(whole, parts).exp();
    let ways_here = ways(one.part.clamp(least, most));
    let as_uneven = (least..=most)
        .map(ways)
        .filter(|ways| *ways <= ways_here * ROUNDING);
    (as_uneven.sum::<f64>() / all_ways).min(1.0)
}

/// The logarithm of the number of ways to choose `part` of `whole`; `part` must not exceed `whole`.
fn ln_choose(whole: u64, part: u64) -> f64 {
    // Choosing a part is the same as choosing the others.
    let smaller = part.min(whole - part);
    let base = whole - smaller;
    let factors = (1..=smaller).map(|factor| ((base + factor) as f64 / factor as f64).ln());
    factors.sum()
}

/// The factor by which equal probabilities may differ after rounding.
const ROUNDING: f64 = 1.0 + 1e-9;

/// The number of halvings by which the end of an interval is found: it is exact to a billionth.
const HALVINGS: u32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn p(one: [u64; 2], other: [u64; 2]) -> f64 {
        let share = |[part, whole]: [u64; 2]| Share { part, whole };
        fisher(share(one), share(other))
    }

    /// By hand, with binomial coefficients.
    #[test]
    fn uneven_shares_are_improbable() {
        for (one, other, expected) in [
            // Fisher's tea: 3 and 1 of 4.
            ([3, 4], [1, 4], 34.0 / 70.0),
            ([4, 4], [0, 4], 2.0 / 70.0),
            ([9, 21], [0, 12], 0.0122),
            ([3, 15], [0, 12], 0.2308),
            ([12, 12], [0, 12], 2.0 / 2_704_156.0),
        ] {
            let found = p(one, other);
            assert!((found - expected).abs() < 1e-4, "{one:?} {other:?} {found}");
            assert!((p(other, one) - found).abs() < 1e-12);
        }
    }

    #[test]
    fn equal_shares_and_nothing_at_all_are_certain() {
        for (one, other) in [
            ([0, 12], [0, 12]),
            ([12, 12], [12, 12]),
            ([3, 12], [3, 12]),
            ([0, 0], [5, 12]),
            ([0, 0], [0, 0]),
        ] {
            assert!((p(one, other) - 1.0).abs() < 1e-9, "{one:?} {other:?}");
        }
    }

    /// From tables of the binomial distribution.
    #[test]
    fn the_interval_of_a_share_is_exact() {
        for (part, whole, expected) in [
            (0, 30, [0.0, 0.1157]),
            (30, 30, [0.8843, 1.0]),
            (1, 20, [0.0013, 0.2487]),
            (5, 10, [0.1871, 0.8129]),
            (57, 60, [0.8608, 0.9896]),
            (0, 0, [0.0, 1.0]),
        ] {
            let found = Share { part, whole }.interval(0.95);
            for (found, expected) in found.into_iter().zip(expected) {
                let off = (found - expected).abs();
                assert!(
                    off < 1e-4,
                    "{part} of {whole}: {found}, expected {expected}"
                );
            }
        }
    }
}
