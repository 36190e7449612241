//! The spread of the values of a series, such as the throughput of each second of a run.

/// The extremes and the dispersion of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The number of values.
    pub count: usize,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The middle value, or the mean of the two in the middle.
    pub median: f64,
    /// The standard deviation as of a sample (divided by n - 1); 0 for a single value.
    pub stddev: f64,
}

impl Spread {
    /// The spread of `values`; `None` when there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let stddev = match values.len() {
            1 => 0.0,
            n => (squares / (n - 1) as f64).sqrt(),
        };
        let median = median_of_sorted(&sorted);
        Some(Self {
            count: values.len(),
            min,
            max,
            mean,
            median,
            stddev,
        })
    }

    /// The standard deviation as a share of the mean, the coefficient of variation; 0 when the
    /// mean is.
    #[must_use]
    pub fn variation(&self) -> f64 {
        if self.mean == 0.0 {
            0.0
        } else {
            self.stddev / self.mean
        }
    }
}

/// The median of `values`, which are not empty.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut selected = values.to_vec();
    // Selecting is several times as fast as sorting, and a warm-up needs thousands of medians.
    let middle = selected.len() / 2;
    let (below, &mut upper, _) = selected.select_nth_unstable_by(middle, f64::total_cmp);
    if values.len() % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp);
    lower.map_or(upper, |lower| f64::midpoint(lower, upper))
}

/// The median absolute deviation from the median of `values`, which are not empty.
pub(crate) fn median_deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&distances)
}

pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let upper = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[upper]
    } else {
        f64::midpoint(sorted[upper - 1], sorted[upper])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_series() {
        let spread = Spread::of(&[4.0, 2.0, 6.0, 8.0]).unwrap();
        assert_eq!((spread.count, spread.min, spread.max), (4, 2.0, 8.0));
        assert_eq!((spread.mean, spread.median), (5.0, 5.0));
        assert!((spread.stddev - (20.0_f64 / 3.0).sqrt()).abs() < 1e-9);
        assert!((spread.variation() - spread.stddev / 5.0).abs() < 1e-9);
    }

    #[test]
    fn of_one_of_none_and_of_nothing_done() {
        assert_eq!(Spread::of(&[]), None);
        let one = Spread::of(&[3.0]).unwrap();
        assert_eq!((one.median, one.stddev), (3.0, 0.0));
        assert_eq!(Spread::of(&[0.0, 0.0]).unwrap().variation(), 0.0);
    }

    #[test]
    fn outliers_do_not_move_the_median_deviation() {
        assert_eq!(median_deviation(&[1.0, 2.0, 3.0, 4.0, 1000.0]), 1.0);
    }
}
