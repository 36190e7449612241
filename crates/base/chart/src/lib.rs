//! Charts as SVG text: line charts, groups of small charts, strips of dots, and bars of ratios. Data in, text
//! out.
//!
//! A chart has a fixed size in pixels, because the text of a scaled picture is either too small or too large.
//! Colours are CSS variables that [`STYLE`] defines, for light and dark pages. The caller decides what is drawn
//! and how a page arranges the charts. [`panels()`] draws small charts that share their axes.
//!
//! ```
//! use catamaran_chart::{Axis, Chart, Series};
//!
//! let chart = Chart {
//!     title: "Rate".to_owned(),
//!     x: Axis::linear("time (s)"),
//!     y: Axis::linear("requests/s"),
//!     series: vec![Series::new("answers", vec![(0.0, 10.0), (1.0, 12.0)])],
//!     shaded: vec![vec![(0.2, 0.4)]],
//! };
//! assert!(chart.svg(640, 240).starts_with("<svg "));
//! ```
#![forbid(unsafe_code)]

mod axis;
mod panels;
mod ratios;
mod strips;

use std::fmt::Write as _;

use axis::Scale;
pub use axis::{Axis, round_step};
pub use panels::{PANEL_HEIGHT, PANEL_WIDTH, Panel, PanelChart, Steps, panels};
pub use ratios::{RatioLegend, RatioRow, Ratios, ratio_file};
pub use strips::{STRIP_STYLE, StripRow, Strips, strip, strip_file};

/// A line chart: a title, two axes and the lines to draw. [`Chart::svg`] draws it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What the chart shows. It is not drawn, but read out by screen readers.
    pub title: String,
    /// The horizontal axis, with its label and scale.
    pub x: Axis,
    /// The vertical axis, with its label and scale.
    pub y: Axis,
    /// The lines. The first [`SERIES_MAX`] have different colours; later ones repeat them.
    pub series: Vec<Series>,
    /// Spans of the horizontal axis, each from and to, with a shaded background behind the lines. Several lists divide
    /// the height between them, the first one above.
    pub shaded: Vec<Vec<(f64, f64)>>,
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name of the line in the legend.
    pub name: String,
    /// The points as (x, y), from left to right. A point that is not finite, or not above zero on a logarithmic
    /// axis, is left out.
    pub points: Vec<(f64, f64)>,
}

/// How many lines have a colour of their own; further lines repeat the colours.
pub const SERIES_MAX: usize = 6;

/// The CSS that a page with charts must contain once, in a `style` element or a style sheet.
pub const STYLE: &str = "\
svg.chart { font: 12px system-ui, sans-serif; max-width: 100%; display: block }
svg.chart text, symbol.chart text { fill: light-dark(#444, #bbb) }
svg.chart .grid, symbol.chart .grid { stroke: light-dark(#e4e4e4, #383838) }
svg.chart .axis, symbol.chart .axis { stroke: light-dark(#999, #777) }
svg.chart .line { fill: none; stroke-width: 1.75; stroke-linejoin: round }
svg.chart .s0 { stroke: light-dark(#1f6fb4, #6cb4ee) }
svg.chart .s1 { stroke: light-dark(#c2570c, #f0a060) }
svg.chart .s2 { stroke: light-dark(#7a7a7a, #9a9a9a) }
svg.chart .s3 { stroke: light-dark(#2e7d32, #7fc983) }
svg.chart .s4 { stroke: light-dark(#8e3b9e, #cf93dc) }
svg.chart .s5 { stroke: light-dark(#8a6d00, #d9bf55) }
svg.chart .hang { fill: light-dark(#b3261e, #f2a09a) }
svg.chart .shaded { fill: light-dark(#f3d9d7, #4a2a28) }
svg.axes { position: absolute }
";

impl Series {
    /// A line with this name in the legend, through these points.
    #[must_use]
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            points,
        }
    }
}

impl Chart {
    /// Draws the chart as an `svg` element of this size in pixels. Use at least 240 by 140: nothing fits into
    /// less.
    #[must_use]
    pub fn svg(&self, width: u32, height: u32) -> String {
        let frame = Frame {
            left: MARGIN_LEFT,
            top: MARGIN_TOP,
            right: f64::from(width.max(240)) - MARGIN_RIGHT,
            bottom: f64::from(height.max(140)) - MARGIN_BOTTOM,
        };
        let points = || self.series.iter().flat_map(|series| &series.points);
        let (x_values, y_values) = (points().map(|(x, _)| *x), points().map(|(_, y)| *y));
        let x = self.x.scale(x_values, frame.left, frame.right);
        let y = self.y.scale(y_values, frame.bottom, frame.top);
        let mut svg = format!(
            "<svg class=\"chart\" role=\"img\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\"><title>{}</title>",
            escaped(&self.title)
        );
        let row_height = (frame.bottom - frame.top) / self.shaded.len().max(1) as f64;
        let mut top = frame.top;
        for spans in &self.shaded {
            shade(&mut svg, spans, &x, [top, row_height]);
            top += row_height;
        }
        self.axes(&mut svg, &frame, &x, &y);
        for (number, series) in self.series.iter().enumerate() {
            line(&mut svg, number, series, &x, &y);
        }
        self.legend(&mut svg, &frame);
        svg.push_str("</svg>");
        svg
    }

    fn axes(&self, svg: &mut String, frame: &Frame, x: &Scale<'_>, y: &Scale<'_>) {
        let Frame {
            left,
            top,
            right,
            bottom,
        } = *frame;
        for (at, label) in y.ticks(((bottom - top) / TICK_ROOM_Y) as usize) {
            push(
                svg,
                format_args!(
                    "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                    left - 6.0,
                    at + 4.0
                ),
            );
        }
        for (at, label) in x.ticks(((right - left) / TICK_ROOM_X) as usize) {
            push(
                svg,
                format_args!(
                    "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                    bottom + 4.0,
                    bottom + 18.0
                ),
            );
        }
        push(
            svg,
            format_args!(
                "<line class=\"axis\" x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"unit\" x=\"2\" y=\"12\">{}</text>\
             <text class=\"unit\" x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                escaped(&self.y.label),
                bottom + 36.0,
                escaped(&self.x.label)
            ),
        );
    }

    /// Draws the legend: a sample of each line with its name, to the right of the vertical axis' unit. A chart
    /// with a single line has none.
    fn legend(&self, svg: &mut String, frame: &Frame) {
        if self.series.len() < 2 {
            return;
        }
        // From right to left: the width of the names is known, but not where the first one begins.
        let mut left = frame.right;
        for (number, series) in self.series.iter().enumerate().rev() {
            left -= series.name.chars().count() as f64 * LETTER + 26.0;
            push(
                svg,
                format_args!(
                    "<line class=\"line s{}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"8\" y2=\"8\"/>\
                 <text x=\"{:.1}\" y=\"12\">{}</text>",
                    number % SERIES_MAX,
                    left,
                    left + 14.0,
                    left + 18.0,
                    escaped(&series.name)
                ),
            );
        }
    }
}

/// Shades spans of the horizontal axis; the second array has the upper edge and the height of the shading.
fn shade(svg: &mut String, spans: &[(f64, f64)], x: &Scale<'_>, [top, height]: [f64; 2]) {
    for (from, to) in spans {
        let (Some(from), Some(to)) = (x.at_most_end(*from), x.at_most_end(*to)) else {
            continue;
        };
        // Narrower than this it would not be seen.
        let width = (to - from).max(2.0);
        push(
            svg,
            format_args!(
                "<rect class=\"shaded\" x=\"{from:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            ),
        );
    }
}

/// A sample of a shaded span as a small `svg` element, for a legend that the page writes itself.
#[must_use]
pub fn shaded_key() -> String {
    "<svg class=\"chart\" width=\"16\" height=\"10\"><rect class=\"shaded\" width=\"16\" height=\"10\"/></svg>".to_owned()
}

/// Draws the line of a series; points that the axes cannot show are left out.
fn line(svg: &mut String, number: usize, series: &Series, x: &Scale<'_>, y: &Scale<'_>) {
    let mut path = String::new();
    for (x_value, y_value) in &series.points {
        if let (Some(x), Some(y)) = (x.at(*x_value), y.at(*y_value)) {
            let verb = if path.is_empty() { 'M' } else { 'L' };
            push(&mut path, format_args!("{verb}{x:.1} {y:.1}"));
        }
    }
    if !path.is_empty() {
        let class = number % SERIES_MAX;
        push(
            svg,
            format_args!("<path class=\"line s{class}\" d=\"{path}\"/>"),
        );
    }
}

/// A sample of line `number` as a small `svg` element, for a legend that the page writes itself.
#[must_use]
pub fn line_key(number: usize) -> String {
    let class = number % SERIES_MAX;
    format!(
        "<svg class=\"chart\" width=\"16\" height=\"8\"><path class=\"line s{class}\" d=\"M0 4H16\"/></svg>"
    )
}

/// A sample of the bars of [`Panel::bars`] as a small `svg` element, for a legend that the page writes itself.
#[must_use]
pub fn bar_key() -> String {
    "<svg class=\"chart\" width=\"16\" height=\"8\"><path class=\"hang\" d=\"M0 0H16V8H0z\"/></svg>"
        .to_owned()
}

/// The rectangle of a chart in which the lines are drawn, in pixels.
#[derive(Clone, Copy, Debug)]
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// `text` with the characters that have a meaning in HTML and SVG replaced by entities.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The width of `text` in pixels at the size of charts, estimated rather too high. A Chinese character takes two letters.
#[must_use]
pub fn text_width(text: &str) -> f64 {
    let letter = |it: char| if it.is_ascii() { LETTER } else { 2.0 * LETTER };
    text.chars().map(letter).sum()
}

pub(crate) fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all");
}

/// The space at the left for the labels of the vertical axis, in pixels.
const MARGIN_LEFT: f64 = 58.0;
/// The space at the top for the unit of the vertical axis and the legend.
const MARGIN_TOP: f64 = 26.0;
/// The space at the right for the half of the last label that reaches beyond the axis.
const MARGIN_RIGHT: f64 = 22.0;
/// The space at the bottom for the labels and the unit of the horizontal axis.
const MARGIN_BOTTOM: f64 = 42.0;
/// The least distance between two labels, in pixels.
const TICK_ROOM_X: f64 = 70.0;
const TICK_ROOM_Y: f64 = 34.0;
/// The average width of a letter in pixels, estimated rather too high.
const LETTER: f64 = 7.0;
#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        Chart {
            title: "a < b".to_owned(),
            x: Axis::linear("time (s)"),
            y: Axis::log("latency (ms)"),
            series: vec![
                Series::new("p50", points),
                Series::new("p99", vec![(0.0, 100.0)]),
            ],
            shaded: vec![vec![(5.0, 10.0)]],
        }
    }

    #[test]
    fn has_its_lines_units_and_legend() {
        let svg = chart(vec![(0.0, 1.0), (10.0, 10.0)]).svg(640, 240);
        for part in [
            "<title>a &lt; b</title>",
            ">time (s)</text>",
            ">latency (ms)</text>",
            ">p99</text>",
        ] {
            assert!(svg.contains(part), "{part} {svg}");
        }
        assert!(
            svg.contains("<rect class=\"shaded\" x=\"338.0\" y=\"26\" width=\"280.0\""),
            "{svg}"
        );
        // From one corner to the middle of the decades 1 to 100.
        assert!(svg.contains("d=\"M58.0 198.0L618.0 112.0\""), "{svg}");
    }

    #[test]
    fn spans_of_two_lists_stand_above_each_other() {
        let mut two = chart(vec![(0.0, 1.0), (10.0, 10.0)]);
        // The second one lasts longer than the axis is.
        two.shaded = vec![vec![(5.0, 10.0)], vec![(9.0, 99.0)]];
        let svg = two.svg(640, 240);
        for rect in [
            "<rect class=\"shaded\" x=\"338.0\" y=\"26\" width=\"280.0\" height=\"86.0\"/>",
            "<rect class=\"shaded\" x=\"562.0\" y=\"112\" width=\"56.0\" height=\"86.0\"/>",
        ] {
            assert!(svg.contains(rect), "{rect} {svg}");
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let svg = chart(vec![(0.0, 0.0), (1.0, f64::NAN), (2.0, f64::INFINITY)]).svg(640, 240);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let empty = Chart {
            series: Vec::new(),
            ..chart(Vec::new())
        };
        assert!(empty.svg(0, 0).ends_with("</svg>"));
    }
}
