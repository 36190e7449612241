//! From when on a series of one value a second is steady.
//!
//! Fewer than half of all runs on a virtual machine reach a steady peak and stay there (Barrett et
//! al., OOPSLA 2017), so that a warm-up of a given length is an assumption. Here it is detected: a
//! series is warm when, twice in a row, the median of a window differs from that of the window
//! before by less than 2 %, or than what the noise of the values themselves would explain.

use crate::spread::{median, median_deviation};

/// What a series says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Steady: this many first values are to be left out.
    Warm(usize),
    /// Not yet steady, or the series is still too short to tell.
    NotSteady,
}

/// Looks for the first value after which `series` (throughput, one value a second) was known to be
/// steady. Asked again each second, it answers with the same number from then on.
#[must_use]
pub fn warm_up(series: &[f64]) -> WarmUp {
    let windows = 3 * WINDOW;
    let warm = series.windows(windows).position(|values| {
        let (first, rest) = values.split_at(WINDOW);
        let (second, third) = rest.split_at(WINDOW);
        agree(first, second) && agree(second, third)
    });
    warm.map_or(WarmUp::NotSteady, |at| WarmUp::Warm(at + windows))
}

/// Whether the medians of two windows differ by less than max(2 %, 2·MAD/√n).
fn agree(one: &[f64], other: &[f64]) -> bool {
    let (before, after) = (median(one), median(other));
    let noise = median_deviation(one).max(median_deviation(other));
    let tolerated = (MARGIN * before.max(after)).max(2.0 * noise / (WINDOW as f64).sqrt());
    (before - after).abs() <= tolerated
}

/// Values in a window: seconds.
const WINDOW: usize = 5;

/// The difference that is always tolerated, as a share.
const MARGIN: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_series_is_warm_as_soon_as_that_can_be_known() {
        assert_eq!(warm_up(&[100.0; 14]), WarmUp::NotSteady);
        assert_eq!(warm_up(&[100.0; 15]), WarmUp::Warm(15));
        assert_eq!(warm_up(&[100.0; 40]), WarmUp::Warm(15));
    }

    #[test]
    fn a_climb_is_left_out() {
        let climb = (1..=10).map(|second| f64::from(second) * 10.0);
        let series: Vec<f64> = climb.chain([100.0; 30]).collect();
        let WarmUp::Warm(cut) = warm_up(&series) else {
            panic!("it is steady for half a minute");
        };
        // Within the windows at most the last steps of the climb, which no median sees.
        assert!((20..=25).contains(&cut), "{cut}");
    }

    #[test]
    fn a_series_that_never_settles_is_not_called_steady() {
        let series: Vec<f64> = (0..30)
            .map(|second| 100.0 * 1.05_f64.powi(second))
            .collect();
        assert_eq!(warm_up(&series), WarmUp::NotSteady);
    }

    #[test]
    fn noise_around_a_level_is_steady() {
        let series: Vec<f64> = (0..30)
            .map(|second| [100.0, 93.0, 107.0, 98.0, 104.0, 95.0, 101.0][second % 7])
            .collect();
        assert_ne!(warm_up(&series), WarmUp::NotSteady);
    }

    #[test]
    fn nothing_done_at_all_is_a_level_too() {
        assert_eq!(warm_up(&[0.0; 15]), WarmUp::Warm(15));
    }
}
