//! Finds a change of level within a series, such as a run's CPU time per request when another program starts on the
//! machine, or when a JVM discards compiled code.
//!
//! Every place with at least a fifth of the values on either side is a candidate. The place is chosen at which the
//! values are closest to the medians of their sides. The difference of these medians is then compared with the noise of
//! the values about them. In series without a change, at most one in twenty is reported to have one, if neighbouring
//! values correlate by at most 0.8 (a test simulates this).

use crate::spread::median;
use crate::warm_up::{MOVEMENT_MAX, noise};

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The number of values before the change.
    pub after: usize,
    /// The change as a share of the level before it; negative if the level fell.
    pub shift: f64,
}

/// The change of level in `series`, if it is more than [`MOVEMENT_MAX`] and more than noise explains; `None`
/// otherwise, and for fewer than twelve values.
#[must_use]
pub fn change(series: &[f64]) -> Option<Change> {
    if series.len() < VALUES_MIN {
        return None;
    }
    let side_min = series.len().div_ceil(SIDES_MAX);
    let places = side_min..=series.len() - side_min;
    let splits = places.map(|after| Split::of(series, after));
    let split = splits.min_by(|one, other| one.distance.total_cmp(&other.distance))?;
    let shift = (split.then - split.before) / split.before;
    let is_large = split.before > 0.0 && shift.abs() > MOVEMENT_MAX;
    if !is_large || split.weight() <= ERRORS * noise(&split.residuals) {
        return None;
    }
    Some(Change {
        after: split.after,
        shift,
    })
}

/// A series in two parts.
#[derive(Clone, Debug)]
struct Split {
    after: usize,
    /// The level of the first part.
    before: f64,
    /// The level of the second part.
    then: f64,
    /// Each value minus the level of its part.
    residuals: Vec<f64>,
    /// The sum of the absolute values in `residuals`.
    distance: f64,
}

impl Split {
    /// Splits `series` after this number of values.
    fn of(series: &[f64], after: usize) -> Self {
        let (first, second) = series.split_at(after);
        let (before, then) = (median(first), median(second));
        let mut residuals: Vec<f64> = first.iter().map(|value| value - before).collect();
        residuals.extend(second.iter().map(|value| value - then));
        Self {
            after,
            before,
            then,
            distance: residuals.iter().map(|residual| residual.abs()).sum(),
            residuals,
        }
    }

    /// The distance between the two levels, in standard errors of a noise of 1.
    fn weight(&self) -> f64 {
        let count = self.residuals.len() as f64;
        let first = self.after as f64;
        (self.then - self.before).abs() * (first * (count - first) / count).sqrt()
    }
}

/// The fewest values in which a change is looked for.
const VALUES_MIN: usize = 12;

/// Each side of a change has at least this fraction of the values: a fifth.
const SIDES_MAX: usize = 5;

/// The number of standard errors from which on a change is real. It is high because the largest change of all places is
/// tested.
const ERRORS: f64 = 4.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Noise, RUNS};

    /// The share of simulated series in which a change is found. Their level is 1 in the first half and `then` in the
    /// second.
    fn found(count: usize, noise: Noise, then: f64) -> f64 {
        let level = |time: f64| if time < count as f64 / 2.0 { 1.0 } else { then };
        let is_found = |seed: &u64| {
            let series: Vec<f64> = noise.about(level, *seed).take(count).collect();
            change(&series).is_some()
        };
        (0..RUNS).filter(is_found).count() as f64 / RUNS as f64
    }

    #[test]
    fn noise_is_no_change() {
        for (count, correlation, share_max) in [
            (14, 0.0, 0.03),
            (14, 0.6, 0.05),
            (25, 0.0, 0.02),
            (25, 0.6, 0.04),
            (25, 0.8, 0.05),
            (75, 0.8, 0.05),
        ] {
            let noise = Noise {
                deviation: 0.05,
                correlation,
            };
            let share = found(count, noise, 1.0);
            assert!(share <= share_max, "{count} {correlation} {share}");
        }
    }

    #[test]
    fn a_change_beyond_the_noise_is_found() {
        let noise = Noise {
            deviation: 0.03,
            correlation: 0.4,
        };
        for (count, then, share_min) in [(14, 0.6, 0.85), (25, 0.8, 0.9), (75, 1.15, 0.95)] {
            let share = found(count, noise, then);
            assert!(share >= share_min, "{count} {then} {share}");
        }
    }

    #[test]
    fn its_place_and_its_size_are_told() {
        let mut series = [10.0; 20];
        series[12..].fill(7.0);
        let expected = Change {
            after: 12,
            shift: -0.3,
        };
        assert_eq!(change(&series), Some(expected));
        // A stall is no level.
        let mut stalled = [10.0; 20];
        stalled[9..11].fill(1.0);
        assert_eq!(change(&stalled), None);
    }

    #[test]
    fn few_values_small_changes_and_nothing_at_all_are_none() {
        assert_eq!(change(&[]), None);
        assert_eq!(
            change(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0, 9.0]),
            None
        );
        assert_eq!(change(&[0.0; 40]), None);
        let mut small = [100.0; 40];
        small[20..].fill(104.9);
        assert_eq!(change(&small), None);
        small[20..].fill(105.1);
        assert!(change(&small).is_some());
    }
}
