//! Small charts side by side that share one pair of axes, so that they can be compared by eye.

use crate::axis::{Axis, Scale};
use crate::{SERIES_MAX, escaped, push, shade};

/// The content of one of several small charts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What the panel shows. It is not drawn, but read out by screen readers.
    pub title: String,
    /// The lines. The first [`SERIES_MAX`] have different colours; later ones repeat them.
    pub lines: Vec<Steps>,
    /// Bars that hang below the horizontal axis; `None` for no bars.
    pub bars: Option<Steps>,
    /// Spans of the horizontal axis, each from and to, with a shaded background behind the lines.
    pub shaded: Vec<(f64, f64)>,
}

/// A step function: each value holds from one edge to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    /// The x positions of the steps from left to right, one more than there are values. Steps without
    /// edges are not drawn.
    pub edges: Vec<f64>,
    /// The value between two neighbouring edges. A value that is not finite leaves a gap.
    pub values: Vec<f64>,
}

/// The panels as SVG, ready to be put into a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanelChart {
    /// The drawing of the shared axes. It must stand in the page once, before the first of the panels.
    pub axes: String,
    /// An `svg` element for each panel, at most [`PANEL_WIDTH`] by [`PANEL_HEIGHT`] pixels.
    pub panels: Vec<String>,
}

/// Draws the panels with one shared pair of axes.
///
/// `id` is the name by which the panels refer to the axes in the page: letters, digits and hyphens. It
/// must be unique in the page.
#[must_use]
pub fn panels(id: &str, x: &Axis, y: &Axis, panels: &[Panel]) -> PanelChart {
    let lines = || panels.iter().flat_map(|panel| &panel.lines);
    let bars = || panels.iter().filter_map(|panel| panel.bars.as_ref());
    let edges = lines().chain(bars()).flat_map(|steps| &steps.edges);
    let has_bars = bars().next().is_some();
    let height = if has_bars {
        PANEL_HEIGHT
    } else {
        PANEL_HEIGHT - BARS
    };
    let sheet = Sheet {
        x: x.scale(edges.copied(), LEFT, f64::from(PANEL_WIDTH) - RIGHT),
        y: y.scale(lines().flat_map(|steps| &steps.values).copied(), BASE, TOP),
        bars: y.scale(
            bars().flat_map(|steps| &steps.values).copied(),
            0.0,
            BARS_ROOM,
        ),
        height,
    };
    PanelChart {
        axes: sheet.axes(id),
        panels: panels.iter().map(|panel| sheet.panel(id, panel)).collect(),
    }
}

/// The scales that all panels share.
struct Sheet<'a> {
    x: Scale<'a>,
    y: Scale<'a>,
    bars: Scale<'a>,
    height: u32,
}

impl Sheet<'_> {
    fn axes(&self, id: &str) -> String {
        let mut svg = format!(
            "<svg class=\"axes\" width=\"0\" height=\"0\" aria-hidden=\"true\"><symbol id=\"{id}\" class=\"chart\">"
        );
        let right = f64::from(PANEL_WIDTH) - RIGHT;
        for (at, label) in self.y.ticks(TICKS_Y) {
            push(
                &mut svg,
                format_args!(
                    "<path class=\"grid\" d=\"M{LEFT} {at:.0}H{right}\"/>\
                     <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{label}</text>",
                    LEFT - 4.0,
                    at + 4.0
                ),
            );
        }
        push(
            &mut svg,
            format_args!("<path class=\"axis\" d=\"M{LEFT} {BASE}H{right}\"/>"),
        );
        let base = f64::from(self.height) - 3.0;
        for (at, label) in self.x.ticks(TICKS_X) {
            push(
                &mut svg,
                format_args!(
                    "<text x=\"{at:.0}\" y=\"{base}\" text-anchor=\"middle\">{label}</text>"
                ),
            );
        }
        svg + "</symbol></svg>"
    }

    fn panel(&self, id: &str, panel: &Panel) -> String {
        let mut svg = format!(
            "<svg class=\"chart\" role=\"img\" width=\"{PANEL_WIDTH}\" height=\"{}\">\
             <title>{}</title>",
            self.height,
            escaped(&panel.title)
        );
        shade(&mut svg, &panel.shaded, &self.x, [TOP, BASE - TOP]);
        push(&mut svg, format_args!("<use href=\"#{id}\"/>"));
        if let Some(bars) = &panel.bars {
            self.hang(&mut svg, bars);
        }
        for (number, steps) in panel.lines.iter().enumerate() {
            let path = self.path(steps);
            if !path.is_empty() {
                let class = number % SERIES_MAX;
                push(
                    &mut svg,
                    format_args!("<path class=\"line s{class}\" d=\"{path}\"/>"),
                );
            }
        }
        svg + "</svg>"
    }

    /// The SVG path of a step line. Neighbouring steps of the same height become one segment. Steps without a height
    /// on the axis are gaps.
    fn path(&self, steps: &Steps) -> String {
        let mut path = String::new();
        // The height of the line so far; `None` at the beginning and in a gap.
        let mut level: Option<String> = None;
        // The `H` to the end of the line so far, which is written once the height changes.
        let mut end = String::new();
        for (span, value) in steps.spans() {
            let (Some(from), Some(to)) = (self.x.at(span[0]), self.x.at(span[1])) else {
                continue;
            };
            let height = self.y.at(value).map(|y| format!("{y:.0}"));
            if height != level {
                path += &std::mem::take(&mut end);
                match (&level, &height) {
                    (Some(_), Some(y)) => push(&mut path, format_args!("V{y}")),
                    // The line begins, or goes on after a gap.
                    (None, Some(y)) => push(&mut path, format_args!("M{from:.0} {y}")),
                    (_, None) => {}
                }
            }
            if height.is_some() {
                end = format!("H{to:.0}");
            }
            level = height;
        }
        path + &end
    }

    /// Draws bars that hang below the horizontal axis.
    fn hang(&self, svg: &mut String, bars: &Steps) {
        let mut path = String::new();
        let top = BASE + 2.0;
        for (span, value) in bars.spans().filter(|(_, value)| *value > 0.0) {
            let (from, to) = (self.x.at(span[0]), self.x.at(span[1]));
            if let (Some(from), Some(to), Some(depth)) = (from, to, self.bars.at(value)) {
                // A pixel is left free between neighbours.
                let (left, width) = (from + 0.5, (to - from - 1.0).max(1.0));
                push(
                    &mut path,
                    format_args!("M{left:.1} {top}h{width:.1}v{depth:.1}h-{width:.1}z"),
                );
            }
        }
        if !path.is_empty() {
            push(svg, format_args!("<path class=\"hang\" d=\"{path}\"/>"));
        }
    }
}

impl Steps {
    /// Each value with its two edges.
    fn spans(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.edges.windows(2).zip(self.values.iter().copied())
    }
}

/// The width of a panel in pixels.
pub const PANEL_WIDTH: u32 = 172;
/// The height in pixels of a panel that has bars; panels without bars are lower.
pub const PANEL_HEIGHT: u32 = 136;

const LEFT: f64 = 36.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
/// The y coordinate of the horizontal axis.
const BASE: f64 = 92.0;
/// The height of the space below the axis for bars.
const BARS: u32 = 24;
/// The length of the largest bar in pixels.
const BARS_ROOM: f64 = 20.0;
const TICKS_Y: usize = 3;
const TICKS_X: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(edges: &[f64], values: &[f64]) -> Steps {
        Steps {
            edges: edges.to_vec(),
            values: values.to_vec(),
        }
    }

    fn panel(values: &[f64]) -> Panel {
        Panel {
            title: "a < b".to_owned(),
            lines: vec![steps(&[0.0, 1.0, 2.0, 3.0], values)],
            bars: None,
            shaded: Vec::new(),
        }
    }

    #[test]
    fn the_same_value_stands_at_the_same_height_in_each_panel() {
        let (x, y) = (Axis::linear("s"), Axis::linear("MiB"));
        let drawn = panels(
            "m",
            &x,
            &y,
            &[panel(&[10.0, 5.0, 10.0]), panel(&[1.0, 5.0, 1.0])],
        );
        assert_eq!(
            drawn
                .axes
                .matches("<symbol id=\"m\" class=\"chart\">")
                .count(),
            1
        );
        // From 92 (zero) to 8 (ten): five is at 50, in both.
        assert!(
            drawn.panels[0].contains("d=\"M36 8H78V50H120V8H162\""),
            "{:?}",
            drawn.panels
        );
        assert!(drawn.panels[1].contains("V50H120"), "{:?}", drawn.panels);
        for panel in &drawn.panels {
            assert!(panel.contains("<use href=\"#m\"/>"), "{panel}");
            assert!(panel.contains("<title>a &lt; b</title>"), "{panel}");
        }
    }

    #[test]
    fn bars_hang_below_and_make_room() {
        let (x, y) = (Axis::linear("s"), Axis::linear("1/s"));
        let mut with = panel(&[1.0, 2.0, 3.0]);
        with.bars = Some(steps(&[0.0, 1.5, 3.0], &[0.0, 40.0]));
        let drawn = panels("m", &x, &y, &[with, panel(&[1.0])]);
        assert_eq!(
            drawn.panels[0].matches('z').count(),
            1,
            "{:?}",
            drawn.panels
        );
        assert!(drawn.panels[0].contains("v20.0"), "{:?}", drawn.panels);
        assert!(drawn.panels.iter().all(|it| it.contains("height=\"136\"")));
        let without = panels("m", &x, &y, &[panel(&[1.0])]);
        assert!(without.panels[0].contains("height=\"112\""));
    }

    #[test]
    fn a_span_of_one_panel_is_shaded_there() {
        let (x, y) = (Axis::linear("s"), Axis::linear("1/s"));
        let mut silent = panel(&[1.0, 0.0, 1.0]);
        silent.shaded = vec![(1.0, 2.0)];
        let drawn = panels("m", &x, &y, &[silent, panel(&[1.0])]);
        let rect = "<rect class=\"shaded\" x=\"78.0\" y=\"8\" width=\"42.0\" height=\"84.0\"/>";
        assert!(drawn.panels[0].contains(rect), "{:?}", drawn.panels);
        assert!(!drawn.panels[1].contains("shaded"), "{:?}", drawn.panels);
    }

    #[test]
    fn what_is_not_finite_leaves_a_gap() {
        let (x, y) = (Axis::linear("s"), Axis::linear("ms"));
        let drawn = panels("m", &x, &y, &[panel(&[4.0, f64::NAN, 4.0]), panel(&[])]);
        assert_eq!(
            drawn.panels[0].matches('M').count(),
            2,
            "{:?}",
            drawn.panels
        );
        assert!(!drawn.panels[1].contains("<path"), "{:?}", drawn.panels);
        let none = panels("m", &x, &y, &[]);
        assert!(
            none.panels.is_empty() && !none.axes.contains("NaN"),
            "{none:?}"
        );
    }
}
