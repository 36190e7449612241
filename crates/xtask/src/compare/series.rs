//! The little statistics a comparison needs: the middle of the rounds and how far they reach.
//!
//! Ratios are made within a round, where both sides met the same noise, and summed up afterwards;
//! a ratio of two medians would compare different moments of the machine.

use std::fmt;

/// The median of some rounds, with the extremes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    /// `None` when there is nothing to sum up.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { median, min, max })
    }
}

/// `median [min..max]`, each with the precision asked for.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, min, max } = self;
        let places = f.precision().unwrap_or(2);
        write!(f, "{median:.places$} [{min:.places$}..{max:.places$}]")
    }
}

/// The ratios of what two contenders did in the same rounds; rounds that either has lost are left
/// out.
pub(super) fn ratios(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Spread> {
    let pairs = ours.iter().zip(theirs);
    Spread::of(pairs.filter_map(|(ours, theirs)| Some((*ours)? / (*theirs)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two() {
        let spread = |median, min, max| Some(Spread { median, min, max });
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([7.0]), spread(7.0, 7.0, 7.0));
        assert_eq!(Spread::of([9.0, 1.0, 3.0]), spread(3.0, 1.0, 9.0));
        assert_eq!(Spread::of([4.0, 1.0, 9.0, 2.0]), spread(3.0, 1.0, 9.0));
    }

    #[test]
    fn ratios_are_made_within_a_round() {
        // A busy second round doubles both sides: the ratio does not see it.
        let ours = [Some(1.0), Some(2.0), None, Some(1.5)];
        let theirs = [Some(2.0), Some(4.0), Some(2.0), Some(2.0)];
        let expected = Spread {
            median: 0.5,
            min: 0.5,
            max: 0.75,
        };
        assert_eq!(ratios(&ours, &theirs), Some(expected));
        assert_eq!(ratios(&[None], &[Some(1.0)]), None);
    }

    #[test]
    fn a_spread_is_shown_with_its_ends() {
        let spread = Spread::of([1.0, 2.0, 4.0]).unwrap();
        assert_eq!(format!("{spread:.1}"), "2.0 [1.0..4.0]");
    }
}
