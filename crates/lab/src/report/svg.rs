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
svg.strip .dot { fill: light-dark(#1f6fb4, #6cb4ee) }
svg.strip .mid { stroke: light-dark(#1a1a1a, #eee); stroke-width: 2 }
svg.strip .said { fill: none; stroke: light-dark(#c2570c, #f0a060); stroke-width: 2 }
";

/// A ratio with its interval on a logarithmic scale around 1; a ring is what was published.
pub(super) fn interval(low: f64, ratio: f64, high: f64, published: Option<f64>) -> String {
    let (width, height) = (150.0, 24.0);
    let values = [low, high, ratio, published.unwrap_or(1.0), SCALE_MIN];
    let values = values
        .into_iter()
        .filter(|value| value.is_finite() && *value > 0.0);
    let reach = values.map(|value| value.ln().abs()).fold(0.0, f64::max);
    let half = width / 2.0;
    let at = |value: f64| {
        let share = value.clamp(1e-9, 1e9).ln() / reach;
        half + share.clamp(-1.0, 1.0) * (half - 8.0)
    };
    let middle = height / 2.0;
    let mut svg = open("ratio and interval", width, height);
    let (from, to, dot, bottom) = (at(low), at(high), at(ratio), height - 2.0);
    put(
        &mut svg,
        format_args!(
            "<line class=\"one\" x1=\"{half}\" x2=\"{half}\" y1=\"2\" y2=\"{bottom}\"/>\
             <line class=\"bar\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>\
             <circle class=\"dot\" cx=\"{dot:.1}\" cy=\"{middle}\" r=\"4\"/>"
        ),
    );
    if let Some(published) = published {
        let ring = at(published);
        let circle =
            format_args!("<circle class=\"said\" cx=\"{ring:.1}\" cy=\"{middle}\" r=\"5\"/>");
        put(&mut svg, circle);
    }
    svg + "</svg>"
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
    for number in 0..=(end / step).round() as u32 {
        let value = f64::from(number) * step;
        let (x, bottom, base) = (at(value), frame.height - 28.0, frame.height - 12.0);
        let label = round_digits(value, step);
        put(
            &mut svg,
            format_args!(
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"4\" y2=\"{bottom:.1}\"/>\
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
    for value in row.values {
        let x = at(*value);
        let circle = format_args!(
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"3\" fill-opacity=\".5\"/>"
        );
        put(svg, circle);
    }
    let (x, from, to) = (at(row.median), middle - 8.0, middle + 8.0);
    let said = digits(row.median);
    put(
        svg,
        format_args!(
            "<line class=\"mid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from:.1}\" y2=\"{to:.1}\">\
             <title>median {said}</title></line>"
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
            assert_eq!(svg.matches("<circle").count(), 3);
            assert!(
                svg.contains("a&lt;b") && svg.contains("median 2.00"),
                "{svg}"
            );
        }
        assert!(strip("nothing", &[], 350.0).ends_with("</svg>"));
    }

    #[test]
    fn an_interval_lies_around_one() {
        let svg = interval(0.5, 0.6, 0.7, Some(2.0));
        assert_eq!(svg.matches("<circle").count(), 2);
        for svg in [
            svg,
            interval(1.0, 1.0, f64::INFINITY, None),
            interval(0.0, 1.0, 2.0, None),
        ] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
