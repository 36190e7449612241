//! Detects when a series is steady enough to begin measuring.
//!
//! Fewer than half of all runs on a virtual machine reach a steady peak and stay there (Barrett et al., OOPSLA 2017),
//! so a fixed warm-up time is a guess. Here the end is detected, from one value a tick (throughput, or mean latency).
//! The last values of a slow drift look alike, too. So the trend of the last part of the series is continued over the
//! span to be measured: the result is how much the level will still move, with the interval that the noise allows. The
//! noise of neighbouring ticks is correlated; an interval that ignored this would be three times too narrow at a
//! correlation of 0.8.

use crate::spread::{median, median_deviation};

/// The verdict on whether a series is steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmUp {
    /// The level will move by less than [`MOVEMENT_MAX`] over the span to be measured, allowing for the noise.
    Steady,
    /// The level still moves: by this share of itself over the span to be measured; negative if it falls.
    Moving(f64),
    /// A movement up to this share of the level could be hidden by the noise; infinite if the series is too short.
    Unclear(f64),
}

impl WarmUp {
    /// The joint verdict on two series of one run: the one that is farther from steady.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Steady, verdict) | (verdict, Self::Steady) => verdict,
            (moving @ Self::Moving(_), _) | (_, moving @ Self::Moving(_)) => moving,
            (Self::Unclear(one), Self::Unclear(other)) => Self::Unclear(one.max(other)),
        }
    }
}

/// The movement over the span to be measured, as a share of the level, that a steady series stays below.
pub const MOVEMENT_MAX: f64 = 0.05;

/// Judges whether `series`, one value a tick, is steady enough to measure the next `span` ticks.
/// A series whose level is zero never is.
#[must_use]
pub fn warm_up(series: &[f64], span: f64) -> WarmUp {
    // The longer window averages out more noise, the shorter one forgets a fast start.
    let [long, short] = [4, 2].map(|part| of_window(&series[series.len() / part..], span));
    match (long, short) {
        (WarmUp::Steady, _) | (_, WarmUp::Steady) => WarmUp::Steady,
        (WarmUp::Moving(_), moving @ WarmUp::Moving(_)) => moving,
        (WarmUp::Unclear(one), WarmUp::Unclear(other)) => WarmUp::Unclear(one.min(other)),
        (unclear @ WarmUp::Unclear(_), _) | (_, unclear @ WarmUp::Unclear(_)) => unclear,
    }
}

/// Judges the trend of one window.
fn of_window(window: &[f64], span: f64) -> WarmUp {
    if window.len() < WINDOW_MIN {
        return WarmUp::Unclear(f64::INFINITY);
    }
    let level = median(window);
    if level <= 0.0 {
        return WarmUp::Unclear(f64::INFINITY);
    }
    let trend = Trend::of(window);
    let movement = trend.slope * span / level;
    let error = trend.error * span / level;
    if movement.abs() + STEADY_ERRORS * error < MOVEMENT_MAX {
        WarmUp::Steady
    } else if movement.abs() > MOVING_ERRORS * error {
        WarmUp::Moving(movement)
    } else {
        WarmUp::Unclear(movement.abs() + STEADY_ERRORS * error)
    }
}

/// The trend of a window of values: its slope per tick.
#[derive(Clone, Copy, Debug)]
struct Trend {
    slope: f64,
    /// The standard error of the slope.
    error: f64,
}

impl Trend {
    /// The trend of at least three `values`: its slope is the median of the slopes of all pairs
    /// (Theil and Sen), which single stalls do not bend.
    fn of(values: &[f64]) -> Self {
        let count = values.len();
        let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
        for (tick, first) in values.iter().enumerate() {
            let later = values[tick + 1..].iter().zip(1_u32..);
            slopes.extend(later.map(|(value, ticks)| (value - first) / f64::from(ticks)));
        }
        let slope = median(&slopes);
        let without_trend: Vec<f64> = values
            .iter()
            .zip(0_u32..)
            .map(|(value, tick)| value - slope * f64::from(tick))
            .collect();
        // The error of a slope by least squares, as the variance of the ticks 0..n is about n²/12. That of Theil
        // and Sen is almost the same: for normal values its variance is larger by 5 % (π/3).
        let error = noise(&without_trend) * (12.0 / (count as f64).powi(3)).sqrt();
        Self { slope, error }
    }
}

/// The standard deviation of values about their median, increased for their correlation: independent values with this
/// deviation would give a trend of the same uncertainty.
pub(crate) fn noise(values: &[f64]) -> f64 {
    let middle = median(values);
    // The median absolute deviation of normal values is 0.6745 of their standard deviation.
    let deviation = median_deviation(values) / 0.6745;
    let limit = OUTLIER * deviation;
    let residuals: Vec<f64> = values
        .iter()
        .map(|value| (value - middle).clamp(-limit, limit))
        .collect();
    let count = residuals.len() as f64;
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    if squares == 0.0 {
        return 0.0;
    }
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let of_sample = products / squares;
    // The correlation found in values whose trend was removed is too small, by (2 + 4r)/n.
    let unbiased = ((count * of_sample + 2.0) / (count - 4.0)).clamp(0.0, CORRELATION_MAX);
    // Few values determine the correlation badly, and too small a one would make a drift look certain.
    let error = ((1.0 - unbiased * unbiased) / count).sqrt();
    let correlation = (unbiased + error).min(CORRELATION_MAX);
    let standard_deviation = (squares / (count - 2.0)).sqrt();
    standard_deviation * ((1.0 + correlation) / (1.0 - correlation)).sqrt()
}

/// The fewest ticks from which a trend is estimated.
const WINDOW_MIN: usize = 15;

/// The number of standard errors by which a movement must stay below the limit. The series is judged at each tick and
/// one verdict ends the warm-up, so this is more than a single look would need.
const STEADY_ERRORS: f64 = 2.0;

/// The number of standard errors from which on a movement is real.
const MOVING_ERRORS: f64 = 2.0;

/// The number of deviations beyond which a value is moved to that distance, so that a stall does not count as noise.
const OUTLIER: f64 = 3.0;

const CORRELATION_MAX: f64 = 0.95;

#[cfg(test)]
mod tests;
