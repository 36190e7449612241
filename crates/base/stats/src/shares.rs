//! Whether two shares differ by more than chance explains: Fisher's exact test.

/// A part of a whole, such as the void runs among all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The cases that count, such as void runs.
    pub part: u64,
    /// All cases, at least as many as `part`.
    pub whole: u64,
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
}
