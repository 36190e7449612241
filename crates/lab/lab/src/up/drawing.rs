//! A topology as text: boxes from the load to the backmost servers, with lines between them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::topology::{Hop, Node, Topology};

/// The drawing, a line each.
pub(crate) fn draw(topology: &Topology) -> String {
    let boxes: Vec<Vec<String>> = topology.nodes.iter().map(lines).collect();
    // Odd, as the page is: so each has a middle column, and single boxes have the same one.
    let widths: Vec<usize> = boxes.iter().map(|it| (width(it) + FRAME) | 1).collect();
    let of_layer = |layer: &Vec<usize>| -> usize {
        let all: usize = layer.iter().map(|node| widths[*node]).sum();
        all + GAP * (layer.len() - 1)
    };
    let page = topology.layers.iter().map(of_layer).max().unwrap_or(0) | 1;
    let mut lefts = vec![0; boxes.len()];
    for layer in &topology.layers {
        let mut left = INDENT + (page - of_layer(layer)) / 2;
        for &node in layer {
            lefts[node] = left;
            left += widths[node] + GAP;
        }
    }
    let middles = lefts.iter().zip(&widths);
    let middles: Vec<usize> = middles.map(|(left, width)| left + width / 2).collect();
    let mut canvas = Canvas::default();
    let mut top = 0;
    for (number, layer) in topology.layers.iter().enumerate() {
        let heights = layer.iter().map(|node| boxes[*node].len());
        let height = heights.max().unwrap_or(0) + 2;
        for &node in layer {
            canvas.frame(lefts[node], top, widths[node], height);
            for (row, text) in boxes[node].iter().enumerate() {
                canvas.text(lefts[node] + 2, top + 1 + row, text);
            }
        }
        let is_below =
            |hop: &&Hop| layer.contains(&hop.from) && topology.layer(hop.to) == number + 1;
        let below: Vec<&Hop> = topology.hops.iter().filter(is_below).collect();
        top = canvas.hops(&below, &middles, top + height);
    }
    let mut drawing = canvas.into_text();
    for hop in &topology.hops {
        if topology.layer(hop.to) != topology.layer(hop.from) + 1 {
            let [from, to] = [hop.from, hop.to].map(|node| topology.nodes[node].name.as_str());
            drawing += &format!("  {from} also asks {to}: {}\n", said(hop));
        }
    }
    drawing
}

/// What a box says.
fn lines(node: &Node) -> Vec<String> {
    let mut lines = vec![if node.kind == node.name || node.kind.is_empty() {
        node.name.clone()
    } else {
        format!("{} ({})", node.name, node.kind)
    }];
    lines.extend(node.lines.iter().cloned());
    for (scheme, addresses) in &node.ports {
        lines.push(format!("{scheme} {}", span(addresses)));
    }
    let pid = node.pid.map(|pid| format!("pid {pid}"));
    let core = node.core.map(|core| format!("core {core}"));
    let ids: Vec<String> = [pid, core].into_iter().flatten().collect();
    if !ids.is_empty() {
        lines.push(ids.join(", "));
    }
    lines
}

/// Addresses in few words.
pub(crate) fn span(addresses: &[SocketAddr]) -> String {
    match addresses {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first}..{}", last.port()),
    }
}

/// What is spoken on a hop, and to how many ports.
pub(crate) fn said(hop: &Hop) -> String {
    match hop.ports.len() {
        1 => hop.scheme.clone(),
        several => format!("{} × {several}", hop.scheme),
    }
}

fn width(lines: &[String]) -> usize {
    let widths = lines.iter().map(|line| line.chars().count());
    widths.max().unwrap_or(0)
}

/// Characters, and which ways lines leave them.
#[derive(Default)]
struct Canvas(Vec<Vec<Cell>>);

#[derive(Clone, Copy, Default)]
struct Cell {
    /// Of [`UP`], [`DOWN`], [`LEFT`] and [`RIGHT`].
    ways: usize,
    text: Option<char>,
}

impl Canvas {
    fn at(&mut self, x: usize, y: usize) -> &mut Cell {
        if self.0.len() <= y {
            self.0.resize_with(y + 1, Vec::new);
        }
        let row = &mut self.0[y];
        if row.len() <= x {
            row.resize(x + 1, Cell::default());
        }
        &mut row[x]
    }

    fn text(&mut self, x: usize, y: usize, text: &str) {
        for (place, letter) in text.chars().enumerate() {
            self.at(x + place, y).text = Some(letter);
        }
    }

    fn across(&mut self, y: usize, from: usize, to: usize) {
        for x in from..to {
            self.at(x, y).ways |= RIGHT;
            self.at(x + 1, y).ways |= LEFT;
        }
    }

    fn down(&mut self, x: usize, from: usize, to: usize) {
        for y in from..to {
            self.at(x, y).ways |= DOWN;
            self.at(x, y + 1).ways |= UP;
        }
    }

    fn frame(&mut self, x: usize, y: usize, width: usize, height: usize) {
        let (right, bottom) = (x + width - 1, y + height - 1);
        for y in [y, bottom] {
            self.across(y, x, right);
        }
        for x in [x, right] {
            self.down(x, y, bottom);
        }
    }

    /// Draws the hops from boxes that end above the row `top`; the row at which those below begin. Each
    /// asking box has a row for its branches.
    fn hops(&mut self, hops: &[&Hop], middles: &[usize], top: usize) -> usize {
        if hops.is_empty() {
            return top;
        }
        let mut asking: Vec<usize> = hops.iter().map(|hop| hop.from).collect();
        asking.sort_unstable();
        asking.dedup();
        let end = top + asking.len();
        for hop in hops {
            let branch = asking
                .iter()
                .position(|from| *from == hop.from)
                .unwrap_or(0);
            let row = top + branch;
            let (from, to) = (middles[hop.from], middles[hop.to]);
            self.down(from, top - 1, row);
            self.across(row, from.min(to), from.max(to));
            self.down(to, row, end);
            self.at(to, end).text = Some('▼');
        }
        // Several schemes to one box stand beside each other.
        let mut texts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for hop in hops {
            let of_box = texts.entry(middles[hop.to]).or_default();
            let text = said(hop);
            if !of_box.contains(&text) {
                of_box.push(text);
            }
        }
        for (middle, texts) in texts {
            self.text(middle + 2, end, &texts.join(" "));
        }
        end + 1
    }

    fn into_text(self) -> String {
        let mut text = String::new();
        for row in self.0 {
            let line = row.iter().map(|cell| cell.text.unwrap_or(LINES[cell.ways]));
            let line: String = line.collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

const UP: usize = 1;
const DOWN: usize = 2;
const LEFT: usize = 4;
const RIGHT: usize = 8;
/// The character for each combination of ways.
const LINES: [char; 16] = [
    ' ', '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼',
];
/// Columns beside a drawing, between two boxes, and of a box beside its text.
const INDENT: usize = 2;
const GAP: usize = 2;
const FRAME: usize = 4;

#[cfg(test)]
mod tests {
    use super::super::topology::tests::{hop, node, two_applications};
    use super::*;

    #[test]
    fn a_front_with_two_applications() {
        let expected = concat!(
            "                    ┌───────────┐\n",
            "                    │ load      │\n",
            "                    │ pid 4711  │\n",
            "                    └─────┬─────┘\n",
            "                          │\n",
            "                          ▼ http\n",
            "               ┌─────────────────────┐\n",
            "               │ front               │\n",
            "               │ http 127.0.0.1:8005 │\n",
            "               │ pid 4711            │\n",
            "               └──────────┬──────────┘\n",
            "             ┌────────────┴───────────┐\n",
            "             ▼ ajp                    ▼ ajp\n",
            "  ┌─────────────────────┐  ┌─────────────────────┐\n",
            "  │ app1                │  │ app2                │\n",
            "  │ ajp 127.0.0.1:8001  │  │ ajp 127.0.0.1:8002  │\n",
            "  │ pid 4711            │  │ pid 4711            │\n",
            "  └─────────────────────┘  └─────────────────────┘\n",
        );
        assert_eq!(draw(&two_applications()), expected);
    }

    #[test]
    fn several_that_ask_have_a_branch_each() {
        let topology = Topology::of(
            vec![
                node("load", "", &[]),
                node("one", "http", &[1]),
                node("two", "http", &[2]),
                node("cache", "memcached", &[3]),
                node("jvm", "ajp", &[4, 5, 6]),
                node("lonely", "x", &[9]),
            ],
            &[
                hop("", "one", "http", &[1]),
                hop("", "two", "http", &[2]),
                hop("one", "cache", "memcached", &[3]),
                hop("two", "cache", "memcached", &[3]),
                hop("two", "jvm", "ajp", &[4, 5, 6]),
            ],
        );
        let expected = concat!(
            "                              ┌───────────┐\n",
            "                              │ load      │\n",
            "                              │ pid 4711  │\n",
            "                              └─────┬─────┘\n",
            "                        ┌───────────┴──────────┐\n",
            "                        ▼ http                 ▼ http\n",
            "              ┌───────────────────┐  ┌───────────────────┐\n",
            "              │ one               │  │ two               │\n",
            "              │ http 127.0.0.1:1  │  │ http 127.0.0.1:2  │\n",
            "              │ pid 4711          │  │ pid 4711          │\n",
            "              └─────────┬─────────┘  └─────────┬─────────┘\n",
            "              ┌─────────┘                      │\n",
            "              ├─────────────────────────┬──────┘\n",
            "              ▼ memcached               ▼ ajp × 3\n",
            "  ┌───────────────────────┐  ┌─────────────────────┐  ┌───────────────┐\n",
            "  │ cache                 │  │ jvm                 │  │ lonely        │\n",
            "  │ memcached 127.0.0.1:3 │  │ ajp 127.0.0.1:4..6  │  │ x 127.0.0.1:9 │\n",
            "  │ pid 4711              │  │ pid 4711            │  │ pid 4711      │\n",
            "  └───────────────────────┘  └─────────────────────┘  └───────────────┘\n",
        );
        assert_eq!(draw(&topology), expected);
    }

    #[test]
    fn a_hop_that_passes_over_a_layer_is_said_below() {
        let topology = Topology::of(
            vec![
                node("load", "", &[]),
                node("front", "http", &[1]),
                node("gateway", "ajp", &[2]),
                node("cache", "memcached", &[3]),
            ],
            &[
                hop("", "front", "http", &[1]),
                hop("front", "gateway", "ajp", &[2]),
                hop("front", "cache", "memcached", &[3]),
                hop("gateway", "cache", "memcached", &[3]),
            ],
        );
        let drawing = draw(&topology);
        assert!(
            drawing.ends_with("  front also asks cache: memcached\n"),
            "{drawing}"
        );
    }
}
