//! Ratios with their intervals, drawn as bars on one shared logarithmic scale.

use crate::strips::{file, open};
use crate::{escaped, push, text_width};

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

    /// The horizontal place of a ratio; what lies beyond the scale has the place of its end.
    fn at(&self, value: f64) -> f64 {
        let share = value.clamp(1e-9, 1e9).ln() / self.reach;
        self.width / 2.0 + share.clamp(-1.0, 1.0) * (self.width / 2.0 - RATIO_EDGE)
    }

    /// The values at which the scale has ticks.
    fn ticks(&self) -> Vec<f64> {
        let mut sets = TICKS.into_iter();
        let fitting = sets.find(|ticks| ticks.iter().all(|tick| tick.ln() <= self.reach));
        let above = fitting.unwrap_or_default();
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
            interval(&mut svg, ours.map(|value| self.at(value)), middle);
        }
        for value in rings {
            ring(&mut svg, self.at(*value), middle);
        }
        svg + "</svg>"
    }
}

/// A row of [`ratio_file`].
#[derive(Clone, Debug, PartialEq)]
pub struct RatioRow {
    /// The text beside the row.
    pub label: String,
    /// Values published by others, drawn as rings.
    pub rings: Vec<f64>,
    /// Our ratio with the software that was published about, drawn as a diamond: the lower end of its interval, the
    /// ratio and the upper end, all alike if it has no interval.
    pub then: Option<[f64; 3]>,
    /// Our ratio today: the lower end of its interval, the ratio and the upper end.
    pub now: Option<[f64; 3]>,
}

/// The words of the legend of [`ratio_file`].
#[derive(Clone, Copy, Debug)]
pub struct RatioLegend<'a> {
    /// The text that explains rings.
    pub rings: &'a str,
    /// The text that explains diamonds.
    pub then: &'a str,
    /// The text that explains bars.
    pub now: &'a str,
}

/// Draws rows of ratios on one scale as an SVG file of its own, with its style inside. A ratio beyond the scale is drawn
/// at its end.
#[must_use]
pub fn ratio_file(title: &str, legend: RatioLegend<'_>, rows: &[RatioRow]) -> String {
    let values = rows.iter().flat_map(|row| {
        let ours = row.then.into_iter().chain(row.now).flatten();
        row.rings.iter().copied().chain(ours)
    });
    let scale = Ratios::of(values).with_width(FILE_SCALE);
    let labels = rows.iter().map(|row| text_width(&row.label));
    let left = labels.fold(0.0, f64::max) + 16.0;
    let bottom = FILE_HEAD + rows.len() as f64 * FILE_ROW;
    let mut svg = open(title, left + FILE_SCALE, bottom + 6.0);
    let mut x = 16.0;
    ring(&mut svg, x, 12.0);
    x = caption(&mut svg, x, legend.rings);
    diamond(&mut svg, x, 12.0);
    x = caption(&mut svg, x, legend.then);
    interval(&mut svg, [x - 8.0, x, x + 8.0], 12.0);
    caption(&mut svg, x, legend.now);
    for tick in scale.ticks() {
        let class = if tick == 1.0 { "one" } else { "grid" };
        let (x, label) = (left + scale.at(tick), digits_of_tick(tick));
        push(
            &mut svg,
            format_args!(
                "<text x=\"{x:.1}\" y=\"38\" text-anchor=\"middle\">×{label}</text>\
                 <path class=\"{class}\" d=\"M{x:.1} 44V{bottom:.1}\"/>"
            ),
        );
    }
    for (number, row) in rows.iter().enumerate() {
        let y = FILE_HEAD + (number as f64 + 0.5) * FILE_ROW;
        let (x, base, label) = (left - 8.0, y + 4.0, escaped(&row.label));
        push(
            &mut svg,
            format_args!("<text x=\"{x:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{label}</text>"),
        );
        let place = |value: f64| left + scale.at(value);
        if let Some(now) = row.now {
            interval(&mut svg, now.map(place), y);
        }
        if let Some(then) = row.then {
            of_then(&mut svg, then.map(place), y);
        }
        for value in &row.rings {
            ring(&mut svg, place(*value), y);
        }
    }
    file(&(svg + "</svg>"))
}

/// Writes what the mark at `x` is, and returns the place of the next mark.
fn caption(svg: &mut String, x: f64, words: &str) -> f64 {
    let (left, text) = (x + 14.0, escaped(words));
    push(
        svg,
        format_args!("<text x=\"{left:.1}\" y=\"16\">{text}</text>"),
    );
    left + text_width(words) + 22.0
}

fn interval(svg: &mut String, [from, dot, to]: [f64; 3], y: f64) {
    push(
        svg,
        format_args!(
            "<path class=\"bar\" d=\"M{from:.1} {y}H{to:.1}\"/>\
             <circle class=\"mark\" cx=\"{dot:.1}\" cy=\"{y}\" r=\"4\"/>"
        ),
    );
}

fn ring(svg: &mut String, x: f64, y: f64) {
    push(
        svg,
        format_args!("<circle class=\"said\" cx=\"{x:.1}\" cy=\"{y}\" r=\"5\"/>"),
    );
}

fn diamond(svg: &mut String, x: f64, y: f64) {
    let top = y - 6.0;
    push(
        svg,
        format_args!("<path class=\"then\" d=\"M{x:.1} {top}l5 6l-5 6l-5 -6z\"/>"),
    );
}

/// A diamond with a dashed line over its interval, if it has one, above the middle of the row.
fn of_then(svg: &mut String, [from, dot, to]: [f64; 3], y: f64) {
    // Less than a pixel is no interval.
    if to - from < 1.0 {
        diamond(svg, dot, y);
        return;
    }
    let above = y - THEN_ABOVE;
    push(
        svg,
        format_args!(
            "<path class=\"bar\" style=\"stroke-width:2;stroke-linecap:butt;stroke-dasharray:4 3\" d=\"M{from:.1} {above}H{to:.1}\"/>"
        ),
    );
    diamond(svg, dot, above);
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

/// The width of the scale of a file, the height of its head and of a row, in pixels.
const FILE_SCALE: f64 = 460.0;
const FILE_HEAD: f64 = 46.0;
const FILE_ROW: f64 = 24.0;

/// How far an interval of the software that was published about lies above today's, in pixels.
const THEN_ABOVE: f64 = 6.0;

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
        let rows = [
            RatioRow {
                label: "a<b".to_owned(),
                rings: vec![3.2],
                then: Some([0.01; 3]),
                now: Some([1.4, 1.5, f64::INFINITY]),
            },
            RatioRow {
                label: "每秒请求数".to_owned(),
                rings: vec![1.1, 1.5],
                then: Some([1.1, 1.4, 1.9]),
                now: None,
            },
        ];
        let legend = RatioLegend {
            rings: "published",
            then: "then",
            now: "now",
        };
        let file = ratio_file("five", legend, &rows);
        assert_eq!(file.matches("class=\"said\"").count(), 1 + 3, "{file}");
        assert_eq!(file.matches("class=\"then\"").count(), 1 + 2, "{file}");
        // One of them has an interval.
        assert_eq!(file.matches("stroke-dasharray:4 3").count(), 1, "{file}");
        assert!(file.contains("a&lt;b") && !file.contains("inf"), "{file}");
        for (value, ticks) in [(1.0, 3), (1.6, 3), (30.0, 3), (6.0, 5)] {
            let scale = Ratios::of([value].into_iter());
            assert_eq!(scale.ticks().len(), ticks, "{value}");
        }
    }
}
