//! A ratio from the ratios of several starts of servers: its interval, and the p value of the look at it.
//!
//! This is the statistical part of the rule in docs/lab.md, "How a claim is decided", for a single claim. [`order`]
//! corrects for several of them.
//!
//! [`order`]: crate::order

use crate::looks::SpentLevel;
use crate::signed_rank;

/// A ratio with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    /// The lower end of the interval.
    pub low: f64,
    /// The estimate.
    pub ratio: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl RatioInterval {
    /// Whether the interval does not contain `ratio`.
    #[must_use]
    pub fn excludes(&self, ratio: f64) -> bool {
        ratio < self.low || ratio > self.high
    }
}

/// The result of a test on the ratios of starts, without regard to other claims.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioTest {
    /// The ratio with its interval; `None`: there are too few starts.
    pub interval: Option<RatioInterval>,
    /// The probability of ratios that are so clearly on one side of 1 if there is no difference, corrected for the
    /// number of looks.
    pub p: f64,
}

/// Tests the ratios of `starts`, by signed ranks over their logarithms.
///
/// `level` is the confidence level of all looks together, such as 0.95; `spent` is the part of the error probability
/// that this look may spend; `bias` is the logarithm by which the true ratio may be farther off, 0 if by nothing.
#[must_use]
pub fn test(starts: &[f64], level: f64, spent: &SpentLevel, bias: f64) -> RatioTest {
    let logs: Vec<f64> = starts.iter().map(|ratio| ratio.ln()).collect();
    let centre = signed_rank::centre(&logs, 1.0 - spent.level(1.0 - level));
    let interval = centre.map(|centre| RatioInterval {
        low: (centre.low - bias).exp(),
        ratio: centre.estimate.exp(),
        high: (centre.high + bias).exp(),
    });
    // The test assumes that the bias caused the difference, as far as it can.
    let estimate = centre.map_or(0.0, |centre| centre.estimate);
    let p = if bias > 0.0 && estimate.abs() <= bias {
        1.0
    } else {
        let shift = bias.copysign(estimate);
        let unbiased: Vec<f64> = logs.iter().map(|log| log - shift).collect();
        spent.p_value(signed_rank::p_value(&unbiased))
    };
    RatioTest { interval, p }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested(starts: &[f64], bias: f64) -> RatioTest {
        test(starts, 0.95, &SpentLevel::of_one_look(), bias)
    }

    #[test]
    fn six_starts_that_agree_are_decided_by_themselves() {
        let six = tested(&[0.5, 0.51, 0.52, 0.5, 0.49, 0.5], 0.0);
        let interval = six.interval.unwrap();
        assert_eq!((interval.low, interval.high), (0.49, 0.52));
        assert!((six.p - 0.031_25).abs() < 1e-12);
        assert_eq!(tested(&[0.5; 5], 0.0).interval, None);
    }

    #[test]
    fn a_bias_widens_and_weakens() {
        let starts = [0.90, 0.91, 0.92, 0.9, 0.89, 0.9, 0.91, 0.9];
        let (without, with) = (tested(&starts, 0.0), tested(&starts, 0.05));
        let [narrow, wide] = [without, with].map(|it| it.interval.unwrap());
        assert_eq!(narrow.ratio, wide.ratio);
        assert!((wide.low / narrow.low - (-0.05_f64).exp()).abs() < 1e-12);
        assert!((wide.high / narrow.high - 0.05_f64.exp()).abs() < 1e-12);
        assert_eq!(without.p, with.p, "all starts are beyond it");
        // It may be the whole difference.
        let whole = tested(&starts, 0.2);
        assert_eq!(whole.p, 1.0);
        assert!(!whole.interval.unwrap().excludes(1.0));
        assert!(tested(&starts, 0.1).p > without.p);
    }
}
