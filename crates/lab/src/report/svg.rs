//! Pictures of a report: an interval around 1, and a value of each round beside a cell.
//!
//! A picture has a fixed size in pixels; pages have a wide and a narrow one and show what fits.

use std::fmt::Write as _;

use catamaran_chart::{escaped, round_step};

use super::table::digits;

/// What a page has to have once for these pictures.
pub(super) const STYLE: &str = "\
svg.strip { font: 12px system-ui, sans-serif; display: block }
svg.strip text { fill: light-dark(#444, #bbb) }
svg.strip .grid { stroke: light-dark(#e4e4e4, #383838) }
svg.strip .one { stroke: light-dark(#999, #777); stroke-dasharray: 3 3 }
svg.strip .bar { stroke: light-dark(#8db8de, #3f6d93); stroke-width: 6; stroke-linecap: round }
svg.strip .mark { fill: light-dark(#1f6fb4, #6cb4ee) }
svg.strip .dots { stroke: light-dark(#1f6fb499, #6cb4eeb0); stroke-width: 6; stroke-linecap: round; fill: none }
svg.strip .mid { stroke: light-dark(#1a1a1a, #eee); stroke-width: 2 }
svg.strip .said { fill: none; stroke: light-dark(#c2570c, #f0a060); stroke-width: 2 }
";

/// Ratios with their intervals on one logarithmic scale around 1, so that bars can be compared.
pub(super) struct Ratios {
    /// The logarithm at either end.
    reach: f64,
}

impl Ratios {
    /// A scale on which all these values have their place; what is farther off than [`REACH_MAX`] stands
    /// at the end.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let reach = values.map(|value| value.ln().abs()).fold(0.0, f64::max);
        let reach = reach.clamp(SCALE_MIN.ln(), REACH_MAX.ln()) * 1.05;
        Self { reach }
    }

    fn at(&self, value: f64) -> f64 {
        let share = value.clamp(1e-9, 1e9).ln() / self.reach;
        RATIO_WIDTH / 2.0 + share.clamp(-1.0, 1.0) * (RATIO_WIDTH / 2.0 - RATIO_EDGE)
    }

    /// The scale's ticks.
    fn ticks(&self) -> Vec<f64> {
        let fits = |ticks: &&&[f64]| ticks.iter().all(|tick| tick.ln() <= self.reach);
        let above = TICKS.iter().find(fits).copied().unwrap_or_default();
        let below = above.iter().rev().map(|tick| 1.0 / tick);
        below.chain([1.0]).chain(above.iter().copied()).collect()
    }

    /// The scale with its figures, to stand above the bars.
    pub(super) fn axis(&self) -> String {
        let mut svg = open("scale of the ratios", RATIO_WIDTH, 18.0);
        for tick in self.ticks() {
            let x = self.at(tick);
            let label = digits_of_tick(tick);
            put(
                &mut svg,
                format_args!("<text x=\"{x:.1}\" y=\"13\" text-anchor=\"middle\">{label}</text>"),
            );
        }
        svg + "</svg>"
    }

    /// A ratio with its interval; a ring is what was published.
    pub(super) fn bar(&self, low: f64, ratio: f64, high: f64, published: Option<f64>) -> String {
        let (height, middle) = (24.0, 12.0);
        let mut svg = open("ratio and interval", RATIO_WIDTH, height);
        for tick in self.ticks() {
            let class = if tick == 1.0 { "one" } else { "grid" };
            let x = self.at(tick);
            let line = format_args!("<path class=\"{class}\" d=\"M{x:.1} 1V{height}\"/>");
            put(&mut svg, line);
        }
        let (from, to, dot) = (self.at(low), self.at(high), self.at(ratio));
        put(
            &mut svg,
            format_args!(
                "<path class=\"bar\" d=\"M{from:.1} {middle}H{to:.1}\"/>\
                 <circle class=\"mark\" cx=\"{dot:.1}\" cy=\"{middle}\" r=\"4\"/>"
            ),
        );
        if let Some(published) = published {
            let ring = self.at(published);
            let circle =
                format_args!("<circle class=\"said\" cx=\"{ring:.1}\" cy=\"{middle}\" r=\"5\"/>");
            put(&mut svg, circle);
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

/// A cell of a strip.
pub(super) struct Row<'a> {
    /// The cell's levels.
    pub(super) label: &'a str,
    /// The value of each round.
    pub(super) values: &'a [f64],
    /// Their median.
    pub(super) median: f64,
}

/// Where a strip's parts are, in pixels.
struct Frame {
    is_narrow: bool,
    row: f64,
    left: f64,
    right: f64,
    height: f64,
}

/// A row for each cell with a dot for each value and a stroke at the median, from zero on.
pub(super) fn strip(title: &str, rows: &[Row<'_>], width: f64) -> String {
    let frame = Frame::of(rows, width);
    let top = rows
        .iter()
        .flat_map(|row| row.values)
        .copied()
        .fold(0.0, f64::max);
    let step = step(top, ((frame.right - frame.left) / TICK_ROOM).max(2.0));
    let end = (top / step).ceil().max(1.0) * step;
    let at = |value: f64| frame.left + value / end * (frame.right - frame.left);
    let mut svg = open(title, width, frame.height);
    let (bottom, base) = (frame.height - 28.0, frame.height - 12.0);
    for number in 0..=(end / step).round() as u32 {
        let value = f64::from(number) * step;
        let x = at(value);
        let label = round_digits(value, step);
        put(
            &mut svg,
            format_args!(
                "<path class=\"grid\" d=\"M{x:.1} 4V{bottom:.1}\"/>\
                 <text x=\"{x:.1}\" y=\"{base:.1}\" text-anchor=\"middle\">{label}</text>"
            ),
        );
    }
    for (place, row) in rows.iter().enumerate() {
        dots(&mut svg, &frame, place, row, &at);
    }
    svg + "</svg>"
}

impl Frame {
    fn of(rows: &[Row<'_>], width: f64) -> Self {
        let is_narrow = width < 500.0;
        let longest = rows
            .iter()
            .map(|row| row.label.chars().count())
            .max()
            .unwrap_or(0);
        let row = if is_narrow { 38.0 } else { 24.0 };
        Self {
            is_narrow,
            row,
            left: if is_narrow {
                10.0
            } else {
                longest as f64 * LETTER + 14.0
            },
            right: width - 28.0,
            height: rows.len() as f64 * row + 36.0,
        }
    }
}

/// A cell's label, dots and median. On narrow pages the label stands above the dots.
fn dots(svg: &mut String, frame: &Frame, place: usize, row: &Row<'_>, at: &dyn Fn(f64) -> f64) {
    let base = place as f64 * frame.row + 4.0;
    let (text, middle) = if frame.is_narrow {
        (base + 12.0, base + 26.0)
    } else {
        (base + 16.0, base + 12.0)
    };
    let (x, anchor) = if frame.is_narrow {
        (frame.left, "start")
    } else {
        (frame.left - 10.0, "end")
    };
    let label = escaped(row.label);
    put(
        svg,
        format_args!("<text x=\"{x:.1}\" y=\"{text:.1}\" text-anchor=\"{anchor}\">{label}</text>"),
    );
    let mut path = String::new();
    for value in row.values {
        // A line of no length with round ends: a dot in few bytes.
        put(&mut path, format_args!("M{:.1} {middle}h0", at(*value)));
    }
    let (x, from, to) = (at(row.median), middle - 8.0, middle + 8.0);
    let said = digits(row.median);
    put(
        svg,
        format_args!(
            "<path class=\"dots\" d=\"{path}\"/>\
             <path class=\"mid\" d=\"M{x:.1} {from}V{to}\"><title>median {said}</title></path>"
        ),
    );
}

/// A round distance of ticks of which at most about `count` fit up to `top`.
fn step(top: f64, count: f64) -> f64 {
    round_step((top / count).max(1e-9))
}

fn round_digits(value: f64, step: f64) -> String {
    let places = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.places$}")
}

fn open(title: &str, width: f64, height: f64) -> String {
    let title = escaped(title);
    format!(
        "<svg class=\"strip\" role=\"img\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\"><title>{title}</title>"
    )
}

fn put(svg: &mut String, arguments: std::fmt::Arguments<'_>) {
    svg.write_fmt(arguments).expect("a string takes all");
}

/// A scale shows at least this factor, so that small differences look small.
const SCALE_MIN: f64 = 1.25;

/// And at most this one.
const REACH_MAX: f64 = 20.0;

/// The width of a scale of ratios in pixels, and what is kept free at either end.
const RATIO_WIDTH: f64 = 190.0;
const RATIO_EDGE: f64 = 14.0;

/// Ticks above 1; the first ones that fit are taken.
const TICKS: [&[f64]; 5] = [&[10.0], &[2.0, 5.0], &[2.0], &[1.5], &[1.2]];

/// The width of a letter, at most on average.
const LETTER: f64 = 6.8;

/// The distance of ticks, at least.
const TICK_ROOM: f64 = 90.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (top, count, expected) in [(9700.0, 5.0, 2000.0), (0.31, 4.0, 0.1), (0.0, 3.0, 1e-9)] {
            assert!(
                (step(top, count) / expected - 1.0).abs() < 1e-6,
                "{top} {}",
                step(top, count)
            );
        }
        assert_eq!(round_digits(0.2, 0.1), "0.2");
        assert_eq!(round_digits(4000.0, 2000.0), "4000");
    }

    #[test]
    fn a_strip_has_a_dot_for_each_value() {
        let row = Row {
            label: "a<b",
            values: &[1.0, 2.0, 3.0],
            median: 2.0,
        };
        for width in [920.0, 350.0] {
            let svg = strip("CPU", std::slice::from_ref(&row), width);
            assert_eq!(svg.matches("h0").count(), 3);
            assert!(
                svg.contains("a&lt;b") && svg.contains("median 2.00"),
                "{svg}"
            );
        }
        assert!(strip("nothing", &[], 350.0).ends_with("</svg>"));
    }

    #[test]
    fn ratios_lie_on_one_scale_around_one() {
        let scale = Ratios::of([0.5, 2.0, f64::INFINITY, 0.0].into_iter());
        assert_eq!(scale.ticks(), [0.5, 1.0, 2.0]);
        assert!(
            (scale.at(0.5) + scale.at(2.0) - RATIO_WIDTH).abs() < 1e-9,
            "around the middle"
        );
        let svg = scale.bar(0.5, 0.6, 0.7, Some(2.0));
        assert_eq!(svg.matches("<circle").count(), 2);
        for svg in [
            svg,
            scale.axis(),
            scale.bar(1.0, 1.0, f64::INFINITY, None),
            scale.bar(0.0, 1.0, 2.0, None),
        ] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        for (value, ticks) in [(1.0, 3), (1.6, 3), (30.0, 3), (6.0, 5)] {
            let scale = Ratios::of([value].into_iter());
            assert_eq!(scale.ticks().len(), ticks, "{value}");
        }
    }
}
