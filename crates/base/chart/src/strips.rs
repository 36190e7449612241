//! Strip charts: one row for each item, with a dot for each of its values and a stroke at their median.
//!
//! A strip has a fixed size in pixels. Pages contain a wide and a narrow version and show the one that fits. Both
//! versions use the same dots, and all strips of a page share their labels, which keeps a page of many rows small.

use crate::{escaped, push, round_step};

/// The CSS that a page with strips or ratios must contain once.
pub const STRIP_STYLE: &str = "\
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
svg.strip .then { fill: light-dark(#2e7d32, #7fc983) }
";

/// One row of a strip, such as one cell of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct StripRow<'a> {
    /// The text beside the row.
    pub label: &'a str,
    /// The values to draw as dots, one for each round.
    pub values: &'a [f64],
    /// The median of `values`; it is drawn as a stroke.
    pub median: f64,
    /// The median as text, such as a number with its unit.
    pub median_text: &'a str,
}

/// The layout of a strip: where its parts are, in pixels.
struct StripFrame {
    is_narrow: bool,
    row: f64,
    left: f64,
    right: f64,
    height: f64,
}

/// The horizontal scale of a strip, which starts at zero.
struct StripScale {
    step: f64,
    end: f64,
}

impl StripScale {
    fn of(rows: &[StripRow<'_>], frame: &StripFrame) -> Self {
        let values = rows.iter().flat_map(|row| row.values);
        let top = values.copied().fold(0.0, f64::max);
        let step = step(top, ((frame.right - frame.left) / TICK_ROOM).max(2.0));
        let end = (top / step).ceil().max(1.0) * step;
        Self { step, end }
    }

    /// Draws the grid lines and the numbers of the scale.
    fn draw(&self, svg: &mut String, frame: &StripFrame) {
        let (bottom, base) = (frame.height - 28.0, frame.height - 12.0);
        for number in 0..=(self.end / self.step).round() as u32 {
            let value = f64::from(number) * self.step;
            let x = frame.left + value / self.end * (frame.right - frame.left);
            let label = round_digits(value, self.step);
            push(
                svg,
                format_args!(
                    "<path class=\"grid\" d=\"M{x:.1} 4V{bottom:.1}\"/>\
                     <text x=\"{x:.1}\" y=\"{base:.1}\" text-anchor=\"middle\">{label}</text>"
                ),
            );
        }
    }
}

/// Draws the strips of one page. They share the definitions of dots and labels, so one page needs one `Strips`.
#[derive(Clone, Debug, Default)]
pub struct Strips {
    count: usize,
    /// The sets of labels that were drawn already, each with whether it is the narrow version.
    labels: Vec<(Vec<String>, bool)>,
}

impl Strips {
    /// Draws a strip in its wide and its narrow version, as HTML: a row for each cell with a dot for each value and a
    /// stroke at the median.
    pub fn strip(&mut self, title: &str, rows: &[StripRow<'_>]) -> String {
        self.count += 1;
        let [wide, narrow] = PAGE_WIDTHS.map(|width| self.picture(title, rows, width));
        format!("<div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>\n")
    }

    /// Draws the version of a strip with this width.
    fn picture(&mut self, title: &str, rows: &[StripRow<'_>], width: f64) -> String {
        let frame = StripFrame::of(rows, width);
        // Both versions use the scale of the narrow one, because they share the dots. The wide version comes first and
        // defines them.
        let scale = StripScale::of(rows, &StripFrame::of(rows, PAGE_WIDTHS[1]));
        let number = self.count;
        let mut svg = open(title, width, frame.height);
        scale.draw(&mut svg, &frame);
        self.labels(&mut svg, rows, &frame);
        if !frame.is_narrow {
            let (dots, strokes) = places(rows, scale.end);
            push(
                &mut svg,
                format_args!(
                    "<defs><g id=\"strip-{number}\"><path class=\"dots\" d=\"{dots}\"/>\
                     <path class=\"mid\" d=\"{strokes}\"/></g></defs>"
                ),
            );
        }
        // The shared drawing is ACROSS units wide, and two units high for each row.
        let (left, scale_y) = (frame.left, frame.row / 2.0);
        let scale_x = (frame.right - left) / ACROSS;
        let top = frame.middle(0) - scale_y;
        push(
            &mut svg,
            format_args!(
                "<use href=\"#strip-{number}\" \
                 transform=\"translate({left:.1} {top}) scale({scale_x:.5} {scale_y})\"/>"
            ),
        );
        svg + "</svg>"
    }

    /// Draws the labels of the rows. If an earlier strip of the page had the same labels, it refers to those.
    fn labels(&mut self, svg: &mut String, rows: &[StripRow<'_>], frame: &StripFrame) {
        let names: Vec<String> = rows.iter().map(|row| row.label.to_owned()).collect();
        let key = (names, frame.is_narrow);
        if let Some(number) = self.labels.iter().position(|known| *known == key) {
            return push(svg, format_args!("<use href=\"#labels-{number}\"/>"));
        }
        let number = self.labels.len();
        push(svg, format_args!("<g id=\"labels-{number}\">"));
        for (place, row) in rows.iter().enumerate() {
            label(svg, frame, place, row);
        }
        svg.push_str("</g>");
        self.labels.push(key);
    }
}

/// The SVG paths of the dots and of the median strokes of all rows. The scale is [`ACROSS`] units long, and each row is
/// two units high.
fn places(rows: &[StripRow<'_>], end: f64) -> (String, String) {
    let (mut dots, mut strokes) = (String::new(), String::new());
    let x_of = |value: f64| value / end * ACROSS;
    for (number, row) in rows.iter().enumerate() {
        let middle = number * 2 + 1;
        for value in row.values {
            // A line of no length with round ends: a dot in few bytes.
            push(&mut dots, format_args!("M{:.0} {middle}h0", x_of(*value)));
        }
        let (x, top) = (x_of(row.median), middle as f64 - 0.5);
        push(&mut strokes, format_args!("M{x:.1} {top}v1"));
    }
    (dots, strokes)
}

/// Draws a strip as one independent `svg` element: a row for each cell with a dot for each value and a stroke at the
/// median.
#[must_use]
pub fn strip(title: &str, rows: &[StripRow<'_>], width: f64) -> String {
    let frame = StripFrame::of(rows, width);
    let scale = StripScale::of(rows, &frame);
    let mut svg = open(title, width, frame.height);
    scale.draw(&mut svg, &frame);
    for (number, row) in rows.iter().enumerate() {
        label(&mut svg, &frame, number, row);
        dots(&mut svg, &frame, &scale, number, row);
    }
    svg + "</svg>"
}

/// A strip as an SVG file of its own, with its style inside, such as for a README.
#[must_use]
pub fn strip_file(title: &str, rows: &[StripRow<'_>], width: f64) -> String {
    file(&strip(title, rows, width))
}

/// An `svg` element as a file of its own, with its style inside.
pub(crate) fn file(svg: &str) -> String {
    let (tag, content) = svg.split_once('>').unwrap_or((svg, ""));
    let tag = tag.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    format!(
        "{tag}>\n<style>\n:root {{ color-scheme: light dark }}\n{STRIP_STYLE}</style>\n{content}\n"
    )
}

impl StripFrame {
    fn of(rows: &[StripRow<'_>], width: f64) -> Self {
        let is_narrow = width < 500.0;
        let labels: Vec<Vec<String>> = rows.iter().map(|row| wrapped(row.label)).collect();
        let letters = labels.iter().flatten().map(|line| line.chars().count());
        let longest = letters.max().unwrap_or(0);
        let label_height = labels.iter().map(Vec::len).max().unwrap_or(1) as f64 * LINE;
        // In the narrow version, labels are above the dots; else they are beside them.
        let (row, left) = if is_narrow {
            (label_height + 23.0, 10.0)
        } else {
            let label_width = longest as f64 * LETTER;
            ((label_height + 6.0).max(24.0), label_width + 14.0)
        };
        Self {
            is_narrow,
            row,
            left,
            right: width - 28.0,
            height: rows.len() as f64 * row + 36.0,
        }
    }

    /// The y coordinate of the dots of the row with this number.
    fn middle(&self, number: usize) -> f64 {
        let above = if self.is_narrow {
            self.row - 12.0
        } else {
            self.row / 2.0
        };
        number as f64 * self.row + 4.0 + above
    }
}

/// Breaks a label at spaces into lines that fit, each of at most [`LABEL_MAX`] bytes unless a single word is longer.
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

/// Draws the label of a row. In the narrow version it stands above the dots.
fn label(svg: &mut String, frame: &StripFrame, number: usize, row: &StripRow<'_>) {
    let lines = wrapped(row.label);
    let middle = frame.middle(number);
    let (x, first_y, anchor) = if frame.is_narrow {
        (frame.left, number as f64 * frame.row + 16.0, "start")
    } else {
        let half_height = (lines.len() - 1) as f64 * LINE / 2.0;
        (frame.left - 10.0, middle + 4.0 - half_height, "end")
    };
    for (line_number, line) in lines.iter().enumerate() {
        let (y, text) = (first_y + line_number as f64 * LINE, escaped(line));
        push(
            svg,
            format_args!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"),
        );
    }
}

/// Draws the dots and the median stroke of a row.
fn dots(
    svg: &mut String,
    frame: &StripFrame,
    scale: &StripScale,
    number: usize,
    row: &StripRow<'_>,
) {
    let x_of = |value: f64| frame.left + value / scale.end * (frame.right - frame.left);
    let middle = frame.middle(number);
    let mut path = String::new();
    for value in row.values {
        // A line of no length with round ends: a dot in few bytes.
        push(&mut path, format_args!("M{:.1} {middle}h0", x_of(*value)));
    }
    let (x, top, bottom) = (x_of(row.median), middle - 8.0, middle + 8.0);
    let median = row.median_text;
    push(
        svg,
        format_args!(
            "<path class=\"dots\" d=\"{path}\"/>\
             <path class=\"mid\" d=\"M{x:.1} {top}V{bottom}\"><title>median {median}</title></path>"
        ),
    );
}

/// A round distance between ticks, such that at most about `count` ticks fit between zero and `top`.
fn step(top: f64, count: f64) -> f64 {
    round_step((top / count).max(1e-9))
}

fn round_digits(value: f64, step: f64) -> String {
    let places = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.places$}")
}

pub(crate) fn open(title: &str, width: f64, height: f64) -> String {
    let title = escaped(title);
    format!(
        "<svg class=\"strip\" role=\"img\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\"><title>{title}</title>"
    )
}

/// The average width of a letter in pixels, estimated rather too high.
const LETTER: f64 = 6.8;

/// The widths of the two versions of a strip in pixels: for a screen and for a telephone.
const PAGE_WIDTHS: [f64; 2] = [920.0, 350.0];

/// The length of a strip's scale in units of the shared drawing.
const ACROSS: f64 = 1000.0;

/// The height of a line of a label in pixels, and the most bytes of text in such a line.
const LINE: f64 = 15.0;
const LABEL_MAX: usize = 44;

/// The least distance between two ticks, in pixels.
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
        let row = StripRow {
            label: "a<b",
            values: &[1.0, 2.0, 3.0],
            median: 2.0,
            median_text: "2.00",
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
        let row = StripRow {
            label,
            values: &[1.0],
            median: 1.0,
            median_text: "1.00",
        };
        for width in PAGE_WIDTHS {
            let svg = strip("CPU", std::slice::from_ref(&row), width);
            assert!(svg.contains(&format!(">{}</text>", lines[0])), "{svg}");
        }
    }

    #[test]
    fn strips_of_a_page_share_dots_and_labels() {
        let row = |values| StripRow {
            label: "front=a<b",
            values,
            median: 2.0,
            median_text: "2.00",
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
}
