//! Ratios with their intervals, drawn as bars on one shared logarithmic scale.

use crate::push;
use crate::strips::open;

/// A logarithmic scale around 1, on which ratios and their intervals are drawn as bars that can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Ratios {
    /// The natural logarithm of the ratio at the right end; the left end has its negative.
    reach: f64,
    /// The width of the drawing in pixels.
    width: f64,
}

impl Ratios {
    /// Makes a scale that is wide enough for all these values. It shows at most a factor of 20 either way; a
    /// value farther off is drawn at the end.
    #[must_use]
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let farthest = values.map(|value| value.ln().abs()).fold(0.0, f64::max);
        let reach = farthest.clamp(SCALE_MIN.ln(), REACH_MAX.ln()) * 1.05;
        let width = RATIO_WIDTH;
        Self { reach, width }
    }

    /// The same scale, drawn `width` pixels wide.
    #[must_use]
    pub fn with_width(self, width: f64) -> Self {
        Self { width, ..self }
    }

    fn at(&self, value: f64) -> f64 {
        let share = value.clamp(1e-9, 1e9).ln() / self.reach;
        self.width / 2.0 + share.clamp(-1.0, 1.0) * (self.width / 2.0 - RATIO_EDGE)
    }

    /// The values at which the scale has ticks.
    fn ticks(&self) -> Vec<f64> {
        let fits = |ticks: &&&[f64]| ticks.iter().all(|tick| tick.ln() <= self.reach);
        let above = TICKS.iter().find(fits).copied().unwrap_or_default();
        let below = above.iter().rev().map(|tick| 1.0 / tick);
        below.chain([1.0]).chain(above.iter().copied()).collect()
    }

    /// Draws the scale with its numbers, to be placed above the bars.
    #[must_use]
    pub fn axis(&self) -> String {
        let mut svg = open("scale of the ratios", self.width, 18.0);
        for tick in self.ticks() {
            let x = self.at(tick);
            let label = digits_of_tick(tick);
            push(
                &mut svg,
                format_args!("<text x=\"{x:.1}\" y=\"13\" text-anchor=\"middle\">{label}</text>"),
            );
        }
        svg + "</svg>"
    }

    /// Draws one ratio with its interval.
    ///
    /// `ours` holds the lower end of the interval, the ratio and the upper end. `rings` are values published by
    /// others, drawn as rings.
    #[must_use]
    pub fn bar(&self, ours: Option<[f64; 3]>, rings: &[f64]) -> String {
        let (height, middle) = (24.0, 12.0);
        let mut svg = open("ratio and interval", self.width, height);
        for tick in self.ticks() {
            let class = if tick == 1.0 { "one" } else { "grid" };
            let x = self.at(tick);
            let line = format_args!("<path class=\"{class}\" d=\"M{x:.1} 1V{height}\"/>");
            push(&mut svg, line);
        }
        if let Some(ours) = ours {
            let [from, dot, to] = ours.map(|value| self.at(value));
            push(
                &mut svg,
                format_args!(
                    "<path class=\"bar\" d=\"M{from:.1} {middle}H{to:.1}\"/>\
                     <circle class=\"mark\" cx=\"{dot:.1}\" cy=\"{middle}\" r=\"4\"/>"
                ),
            );
        }
        for ring in rings {
            let ring = self.at(*ring);
            let circle =
                format_args!("<circle class=\"said\" cx=\"{ring:.1}\" cy=\"{middle}\" r=\"5\"/>");
            push(&mut svg, circle);
        }
        svg + "</svg>"
    }
}

fn digits_of_tick(tick: f64) -> String {
    if tick >= 1.0 {
        format!("{tick}")
    } else {
        format!("{tick:.2}").trim_end_matches('0').to_owned()
    }
}

/// The least factor that a scale covers, so that small differences look small.
const SCALE_MIN: f64 = 1.25;

/// The largest factor that a scale covers.
const REACH_MAX: f64 = 20.0;

/// The usual width of a scale in pixels, and the space kept free at either end.
const RATIO_WIDTH: f64 = 190.0;
const RATIO_EDGE: f64 = 14.0;

/// Sets of ticks above 1, from wide to narrow scales. The first set that fits the scale is used.
const TICKS: [&[f64]; 5] = [&[10.0], &[2.0, 5.0], &[2.0], &[1.5], &[1.2]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_lie_on_one_scale_around_one() {
        let scale = Ratios::of([0.5, 2.0, f64::INFINITY, 0.0].into_iter());
        assert_eq!(scale.ticks(), [0.5, 1.0, 2.0]);
        assert!(
            (scale.at(0.5) + scale.at(2.0) - RATIO_WIDTH).abs() < 1e-9,
            "around the middle"
        );
        let svg = scale.bar(Some([0.5, 0.6, 0.7]), &[2.0]);
        assert_eq!(svg.matches("<circle").count(), 2);
        let range = scale.bar(None, &[1.1, 1.5]);
        assert_eq!(range.matches("<circle").count(), 2, "a ring at either end");
        for svg in [
            svg,
            scale.axis(),
            scale.bar(Some([1.0, 1.0, f64::INFINITY]), &[]),
            scale.bar(Some([0.0, 1.0, 2.0]), &[]),
        ] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        for (value, ticks) in [(1.0, 3), (1.6, 3), (30.0, 3), (6.0, 5)] {
            let scale = Ratios::of([value].into_iter());
            assert_eq!(scale.ticks().len(), ticks, "{value}");
        }
    }
}
