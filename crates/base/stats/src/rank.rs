//! Whether two independent samples differ in location: the rank sum test of Mann and Whitney, exact, with the interval
//! of Hodges and Lehmann that belongs to it.

/// The amount by which the second of two samples lies above the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The lower end of the interval.
    pub low: f64,
    /// The median of all differences.
    pub estimate: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The p value: the probability of ranks at least so far apart if there is no difference.
    pub p: f64,
}

/// The shift from `before` to `after`, with an interval that contains it with a probability of at least `level`; `None`
/// if there are too few values. Values may not be NaN.
#[must_use]
pub fn shift(before: &[f64], after: &[f64], level: f64) -> Option<Shift> {
    let mut differences: Vec<f64> = Vec::with_capacity(before.len() * after.len());
    for value in before {
        differences.extend(after.iter().map(|other| other - value));
    }
    differences.sort_by(f64::total_cmp);
    let distribution = null_distribution(before.len(), after.len());
    let sum_of_first = |count: usize| {
        let first = &distribution[..count.min(distribution.len())];
        first.iter().sum::<f64>()
    };
    // The largest rank at which the true shift lies below the interval with at most this probability.
    let outside = (1.0 - level) / 2.0;
    let ranks = 1..=differences.len() / 2;
    let rank = ranks
        .take_while(|rank| sum_of_first(*rank) <= outside)
        .last()?;
    let above = differences.iter().filter(|&&it| it > 0.0).count();
    let below = differences.iter().filter(|&&it| it < 0.0).count();
    let ties = differences.len() - above - below;
    // Half of the ties count for the smaller side, so that ties never make p smaller.
    let tail = sum_of_first(above.min(below) + 1 + ties / 2);
    Some(Shift {
        low: differences[rank - 1],
        estimate: crate::spread::median(&differences),
        high: differences[differences.len() - rank],
        p: (2.0 * tail).min(1.0),
    })
}

/// The null distribution of the rank sum statistic for samples of `one` and `other` values: element n is the
/// probability that in n pairs of values the second one is the smaller. Computed as the coefficients of a Gaussian
/// binomial.
fn null_distribution(one: usize, other: usize) -> Vec<f64> {
    let length = one * other + 1;
    let mut counts = vec![0.0; length];
    counts[0] = 1.0;
    // Multiplies by (1 - q^(other + step)) and divides by (1 - q^step).
    for step in 1..=one {
        for power in (other + step..length).rev() {
            counts[power] -= counts[power - other - step];
        }
        for power in step..length {
            counts[power] += counts[power - step];
        }
    }
    let sum: f64 = counts.iter().sum();
    counts.iter().map(|count| count / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_null_distribution_is_that_of_the_tables() {
        // Of 3 and 3 values: 1 1 2 3 3 3 3 2 1 1 of 20.
        let expected = [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 1.0].map(|it| it / 20.0);
        let found = null_distribution(3, 3);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert!((null_distribution(20, 20).iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn samples_apart_and_alike() {
        let before = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5];
        let after = before.map(|value| value + 2.0);
        let found = shift(&before, &after, 0.95).unwrap();
        assert!((found.estimate - 2.0).abs() < 1e-9, "{found:?}");
        assert!(found.low > 1.5 && found.high < 2.5, "{found:?}");
        // Both orders of 6 before 6: 2 of 924.
        assert!((found.p - 2.0 / 924.0).abs() < 1e-9, "{found:?}");
        let same = shift(&before, &before, 0.95).unwrap();
        assert!(
            same.low < 0.0 && same.high > 0.0 && same.p > 0.5,
            "{same:?}"
        );
        assert_eq!(shift(&before[..2], &after[..2], 0.95), None);
        assert_eq!(shift(&[], &after, 0.95), None);
    }
}
