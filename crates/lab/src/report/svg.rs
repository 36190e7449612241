//! Pictures of a report: an interval around 1, and a value of each round beside a cell.
//!
//! A picture has a fixed size in pixels; pages have a wide and a narrow one and show what fits. Both use the
//! same dots, and all pictures of a page the same labels, which keeps a page of many cells small.

use std::fmt::Write as _;

use catamaran_chart::{escaped, round_step};

use super::table::digits;
use crate::claim::PublishedRatio;

/// What a page has to have once for these pictures.
pub(super) const STYLE: &str = "\
svg.strip { font: 12px system-ui, sans-serif; display: block }
svg.strip text { fill: light-dark(#444, #bbb) }
svg.strip .grid { stroke: light-dark(#e4e4e4, #383838) }
svg.strip .one { stroke: light-dark(#999, #777); stroke-dasharray: 3 3 }
svg.strip .bar { stroke: light-dark(#8db8de, #3f6d93); stroke-width: 6; stroke-linecap: round }
svg.strip .mark { fill: light-dark(#1f6fb4, #6cb4ee) }
svg.strip .dots, svg.strip .mid { vector-effect: non-scaling-stroke }
svg.strip .dots { stroke: light-dark(#1f6fb499, #6cb4eeb0); stroke-width: 6; stroke-linecap: round; fill: none }
svg.strip .mid { stroke: light-dark(#1a1a1a, #eee); stroke-width: 2 }
svg.strip .said { fill: none; stroke: light-dark(#c2570c, #f0a060); stroke-width: 2 }
";

/// Ratios with their intervals on one logarithmic scale around 1, so that bars can be compared.
pub(super) struct Ratios {
    /// The logarithm at either end.
    reach: f64,
    /// In pixels.
    width: f64,
}

impl Ratios {
    /// A scale on which all these values have their place; what is farther off than [`REACH_MAX`] stands
    /// at the end.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let reach = values.map(|value| value.ln().abs()).fold(0.0, f64::max);
        let reach = reach.clamp(SCALE_MIN.ln(), REACH_MAX.ln()) * 1.05;
        let width = RATIO_WIDTH;
        Self { reach, width }
    }

    /// The same scale, so many pixels wide.
    pub(super) fn with_width(self, width: f64) -> Self {
        Self { width, ..self }
    }

    fn at(&self, value: f64) -> f64 {
        let share = value.clamp(1e-9, 1e9).ln() / self.reach;
        self.width / 2.0 + share.clamp(-1.0, 1.0) * (self.width / 2.0 - RATIO_EDGE)
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
        let mut svg = open("scale of the ratios", self.width, 18.0);
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

    /// A ratio with its interval, `ours` from the lower end on; a ring is what was published, two rings the ends of a
    /// published range.
    pub(super) fn bar(&self, ours: Option<[f64; 3]>, published: Option<PublishedRatio>) -> String {
        let (height, middle) = (24.0, 12.0);
        let mut svg = open("ratio and interval", self.width, height);
        for tick in self.ticks() {
            let class = if tick == 1.0 { "one" } else { "grid" };
            let x = self.at(tick);
            let line = format_args!("<path class=\"{class}\" d=\"M{x:.1} 1V{height}\"/>");
            put(&mut svg, line);
        }
        if let Some(ours) = ours {
            let [from, dot, to] = ours.map(|value| self.at(value));
            put(
                &mut svg,
                format_args!(
                    "<path class=\"bar\" d=\"M{from:.1} {middle}H{to:.1}\"/>\
                     <circle class=\"mark\" cx=\"{dot:.1}\" cy=\"{middle}\" r=\"4\"/>"
                ),
            );
        }
        if let Some(published) = published {
            let mut ends = published.ends().to_vec();
            ends.dedup();
            for end in ends {
                let ring = self.at(end);
                let circle = format_args!(
                    "<circle class=\"said\" cx=\"{ring:.1}\" cy=\"{middle}\" r=\"5\"/>"
                );
                put(&mut svg, circle);
            }
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

/// The scale of a strip, from zero on.
struct Scale {
    step: f64,
    end: f64,
}

impl Scale {
    fn of(rows: &[Row<'_>], frame: &Frame) -> Self {
        let values = rows.iter().flat_map(|row| row.values);
        let top = values.copied().fold(0.0, f64::max);
        let step = step(top, ((frame.right - frame.left) / TICK_ROOM).max(2.0));
        let end = (top / step).ceil().max(1.0) * step;
        Self { step, end }
    }

    /// Grid and figures.
    fn put(&self, svg: &mut String, frame: &Frame) {
        let (bottom, base) = (frame.height - 28.0, frame.height - 12.0);
        for number in 0..=(self.end / self.step).round() as u32 {
            let value = f64::from(number) * self.step;
            let x = frame.left + value / self.end * (frame.right - frame.left);
            let label = round_digits(value, self.step);
            put(
                svg,
                format_args!(
                    "<path class=\"grid\" d=\"M{x:.1} 4V{bottom:.1}\"/>\
                     <text x=\"{x:.1}\" y=\"{base:.1}\" text-anchor=\"middle\">{label}</text>"
                ),
            );
        }
    }
}

/// Strips of one page.
#[derive(Default)]
pub(super) struct Strips {
    count: usize,
    /// Labels that were drawn, wide and narrow.
    labels: Vec<(Vec<String>, bool)>,
}

impl Strips {
    /// A row for each cell with a dot for each value and a stroke at the median, in both widths.
    pub(super) fn strip(&mut self, title: &str, rows: &[Row<'_>]) -> String {
        self.count += 1;
        let [wide, narrow] = PAGE_WIDTHS.map(|width| self.picture(title, rows, width));
        format!("<div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>\n")
    }

    fn picture(&mut self, title: &str, rows: &[Row<'_>], width: f64) -> String {
        let frame = Frame::of(rows, width);
        // The wide one comes first; dots have to lie alike in both.
        let scale = Scale::of(rows, &Frame::of(rows, PAGE_WIDTHS[1]));
        let number = self.count;
        let mut svg = open(title, width, frame.height);
        scale.put(&mut svg, &frame);
        self.labels(&mut svg, rows, &frame);
        if !frame.is_narrow {
            let (dots, strokes) = places(rows, scale.end);
            put(
                &mut svg,
                format_args!(
                    "<defs><g id=\"strip-{number}\"><path class=\"dots\" d=\"{dots}\"/>\
                     <path class=\"mid\" d=\"{strokes}\"/></g></defs>"
                ),
            );
        }
        let (left, down) = (frame.left, frame.row / 2.0);
        let (across, top) = ((frame.right - left) / ACROSS, frame.middle(0) - down);
        put(
            &mut svg,
            format_args!(
                "<use href=\"#strip-{number}\" \
                 transform=\"translate({left:.1} {top}) scale({across:.5} {down})\"/>"
            ),
        );
        svg + "</svg>"
    }

    /// The labels of the rows, which strips of the same cells share.
    fn labels(&mut self, svg: &mut String, rows: &[Row<'_>], frame: &Frame) {
        let names: Vec<String> = rows.iter().map(|row| row.label.to_owned()).collect();
        let key = (names, frame.is_narrow);
        if let Some(number) = self.labels.iter().position(|known| *known == key) {
            return put(svg, format_args!("<use href=\"#labels-{number}\"/>"));
        }
        let number = self.labels.len();
        put(svg, format_args!("<g id=\"labels-{number}\">"));
        for (place, row) in rows.iter().enumerate() {
            label(svg, frame, place, row);
        }
        svg.push_str("</g>");
        self.labels.push(key);
    }
}

/// Dots and strokes of all rows: [`ACROSS`] units to the end of the scale, two units for each row.
fn places(rows: &[Row<'_>], end: f64) -> (String, String) {
    let (mut dots, mut strokes) = (String::new(), String::new());
    let at = |value: f64| value / end * ACROSS;
    for (place, row) in rows.iter().enumerate() {
        let middle = place * 2 + 1;
        for value in row.values {
            // A line of no length with round ends: a dot in few bytes.
            put(&mut dots, format_args!("M{:.0} {middle}h0", at(*value)));
        }
        let (x, from) = (at(row.median), middle as f64 - 0.5);
        put(&mut strokes, format_args!("M{x:.1} {from}v1"));
    }
    (dots, strokes)
}

/// A row for each cell with a dot for each value and a stroke at the median, as a picture by itself.
pub(super) fn strip(title: &str, rows: &[Row<'_>], width: f64) -> String {
    let frame = Frame::of(rows, width);
    let scale = Scale::of(rows, &frame);
    let at = |value: f64| frame.left + value / scale.end * (frame.right - frame.left);
    let mut svg = open(title, width, frame.height);
    scale.put(&mut svg, &frame);
    for (place, row) in rows.iter().enumerate() {
        label(&mut svg, &frame, place, row);
        dots(&mut svg, &frame, place, row, &at);
    }
    svg + "</svg>"
}

impl Frame {
    fn of(rows: &[Row<'_>], width: f64) -> Self {
        let is_narrow = width < 500.0;
        let lines: Vec<Vec<String>> = rows.iter().map(|row| wrapped(row.label)).collect();
        let letters = lines.iter().flatten().map(|line| line.chars().count());
        let longest = letters.max().unwrap_or(0);
        let high = lines.iter().map(Vec::len).max().unwrap_or(1) as f64 * LINE;
        let row = if is_narrow {
            high + 23.0
        } else {
            (high + 6.0).max(24.0)
        };
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

    /// Where a row's dots are.
    fn middle(&self, place: usize) -> f64 {
        let above = if self.is_narrow {
            self.row - 12.0
        } else {
            self.row / 2.0
        };
        place as f64 * self.row + 4.0 + above
    }
}

/// A label in lines that fit.
fn wrapped(label: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in label.split(' ') {
        let last = lines.last_mut().expect("there is one from the start");
        if !last.is_empty() && last.len() + word.len() >= LABEL_MAX {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// A cell's label. On narrow pages it stands above the dots.
fn label(svg: &mut String, frame: &Frame, place: usize, row: &Row<'_>) {
    let lines = wrapped(row.label);
    let middle = frame.middle(place);
    let (x, first, anchor) = if frame.is_narrow {
        (frame.left, place as f64 * frame.row + 16.0, "start")
    } else {
        let half = (lines.len() - 1) as f64 * LINE / 2.0;
        (frame.left - 10.0, middle + 4.0 - half, "end")
    };
    for (number, line) in lines.iter().enumerate() {
        let (y, line) = (first + number as f64 * LINE, escaped(line));
        put(
            svg,
            format_args!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{line}</text>"),
        );
    }
}

/// A cell's dots and median.
fn dots(svg: &mut String, frame: &Frame, place: usize, row: &Row<'_>, at: &dyn Fn(f64) -> f64) {
    let middle = frame.middle(place);
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

/// The widths of strips on pages: one that fits a screen, one that fits a telephone.
const PAGE_WIDTHS: [f64; 2] = [920.0, 350.0];

/// Units of a strip from zero to the end of its scale.
const ACROSS: f64 = 1000.0;

/// The distance of a label's lines in pixels, and what fits one of them.
const LINE: f64 = 15.0;
const LABEL_MAX: usize = 44;

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
    fn long_labels_are_wrapped() {
        let label = "connector=apr client=spymemcached front=proxy_http_close delay=110ms";
        let lines = wrapped(label);
        assert_eq!(lines, [&label[..33], &label[34..]]);
        assert_eq!(wrapped(""), [""]);
        let row = Row {
            label,
            values: &[1.0],
            median: 1.0,
        };
        for width in PAGE_WIDTHS {
            let svg = strip("CPU", std::slice::from_ref(&row), width);
            assert!(svg.contains(&format!(">{}</text>", lines[0])), "{svg}");
        }
    }

    #[test]
    fn strips_of_a_page_share_dots_and_labels() {
        let row = |values| Row {
            label: "front=a<b",
            values,
            median: 2.0,
        };
        let mut strips = Strips::default();
        let (one, other) = ([row(&[1.0, 2.0, 3.0])], [row(&[2.0, 4.0])]);
        let first = strips.strip("CPU", &one);
        assert_eq!(first.matches("h0").count(), 3, "{first}");
        assert_eq!(first.matches("href=\"#strip-1\"").count(), 2, "{first}");
        assert_eq!(first.matches("front=a&lt;b</text>").count(), 2, "{first}");
        let second = strips.strip("p99", &other);
        assert!(second.contains("href=\"#strip-2\""), "{second}");
        assert!(!second.contains("front=a"), "{second}");
        for labels in ["href=\"#labels-0\"", "href=\"#labels-1\""] {
            assert!(second.contains(labels), "{second}");
        }
    }

    #[test]
    fn ratios_lie_on_one_scale_around_one() {
        let scale = Ratios::of([0.5, 2.0, f64::INFINITY, 0.0].into_iter());
        assert_eq!(scale.ticks(), [0.5, 1.0, 2.0]);
        assert!(
            (scale.at(0.5) + scale.at(2.0) - RATIO_WIDTH).abs() < 1e-9,
            "around the middle"
        );
        let svg = scale.bar(Some([0.5, 0.6, 0.7]), Some(PublishedRatio::One(2.0)));
        assert_eq!(svg.matches("<circle").count(), 2);
        let range = scale.bar(None, Some(PublishedRatio::Range([1.1, 1.5])));
        assert_eq!(range.matches("<circle").count(), 2, "a ring at either end");
        for svg in [
            svg,
            scale.axis(),
            scale.bar(Some([1.0, 1.0, f64::INFINITY]), None),
            scale.bar(Some([0.0, 1.0, 2.0]), None),
        ] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        for (value, ticks) in [(1.0, 3), (1.6, 3), (30.0, 3), (6.0, 5)] {
            let scale = Ratios::of([value].into_iter());
            assert_eq!(scale.ticks().len(), ticks, "{value}");
        }
    }
}
