//! The page of a tier that is up: the last minute in numbers and lines, and its servers as they stand. It
//! needs no script: the browser loads it anew each second. Why no template writes it: see `report/html`.

use std::collections::VecDeque;
use std::fmt::Write as _;

use catamaran_chart::{SPARK_STYLE, escaped, sparkline};

use super::drawing::{said, span};
use super::moment::{Point, ServerPoint};
use super::topology::{Hop, Node, Topology};
use crate::report::digits;

/// What a page shows beside figures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    /// The experiment's name.
    pub(crate) title: String,
    /// What it asks.
    pub(crate) question: String,
    /// Which cell, and where it is.
    pub(crate) place: String,
    /// What is not shown, and why.
    pub(crate) notes: Vec<String>,
}

/// The last minute, a point for each second.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(VecDeque<Point>);

impl History {
    pub(crate) fn push(&mut self, point: Point) {
        if self.0.len() == SECONDS {
            self.0.pop_front();
        }
        self.0.push_back(point);
    }

    fn last<'a, T>(&'a self, of: impl Fn(&'a Point) -> Option<T>) -> Option<T> {
        self.0.back().and_then(of)
    }

    fn spark(&self, title: &str, of: impl Fn(&Point) -> Option<f64>) -> String {
        let values = self.0.iter().map(|point| of(point).unwrap_or(f64::NAN));
        let room = self.0.len().max(SECONDS_AT_LEAST);
        sparkline(title, &values.collect::<Vec<_>>(), room)
    }
}

/// The page. `state` says how far it is; a page that `is_live` has itself loaded anew.
pub(crate) fn page(
    setting: &Setting,
    topology: &Topology,
    history: &History,
    (state, is_live): (&str, bool),
) -> String {
    let mut page = String::new();
    let refresh = if is_live {
        "<meta http-equiv=\"refresh\" content=\"1\">\n"
    } else {
        ""
    };
    let title = escaped(&setting.title);
    put(
        &mut page,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{refresh}<meta \
             name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}\
             </title>\n<style>\n{}{SPARK_STYLE}</style>\n</head>\n<body>\n<header><h1>{title}</h1>\
             <p>{}</p><p class=\"setting\">{}</p><p class=\"state\">{}</p></header>\n",
            include_str!("page.css"),
            escaped(&setting.question),
            escaped(&setting.place),
            escaped(state)
        ),
    );
    tiles(&mut page, history);
    tier(&mut page, topology, history);
    if !setting.notes.is_empty() {
        page.push_str("<footer><h2>Not shown</h2><ul>\n");
        for note in &setting.notes {
            put(&mut page, format_args!("<li>{}</li>\n", escaped(note)));
        }
        page.push_str("</ul></footer>\n");
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// A figure with its unit, what stands beside it, and its line.
struct Tile<'a> {
    name: &'a str,
    value: Option<(String, &'a str)>,
    beside: String,
    spark: String,
}

impl Tile<'_> {
    fn write(&self, page: &mut String) {
        let (value, unit) = match &self.value {
            Some((value, unit)) => (value.as_str(), *unit),
            None => ("–", ""),
        };
        put(
            page,
            format_args!(
                "<div class=\"tile\"><h3>{}</h3><p class=\"figure\"><b>{value}</b> {unit}</p><p \
                 class=\"beside\">{}</p>{}</div>\n",
                escaped(self.name),
                escaped(&self.beside),
                self.spark
            ),
        );
    }
}

fn tiles(page: &mut String, history: &History) {
    page.push_str("<section class=\"tiles\">\n");
    let plain = |value: f64, unit| (digits(value), unit);
    let failed = history.last(|point| point.rate.map(|_| point.failed));
    let opened = history.last(|point| point.per_request(point.opened?));
    let read = history.last(|point| Some(point.read));
    let written = history.last(|point| Some(point.written));
    let [read_text, written_text] = [read, written].map(|bytes| rate(bytes.unwrap_or(0.0)));
    for tile in [
        Tile {
            name: "Requests",
            value: history.last(|point| point.rate).map(|it| plain(it, "/s")),
            beside: failed.map_or_else(|| "no load".to_owned(), |it| format!("{it} failed")),
            spark: history.spark("requests a second", |point| point.rate),
        },
        Tile {
            name: "Latency, p50",
            value: history.last(|point| point.p50_ms).map(|it| plain(it, "ms")),
            beside: String::new(),
            spark: history.spark("median latency", |point| point.p50_ms),
        },
        Tile {
            name: "Latency, p99",
            value: history.last(|point| point.p99_ms).map(|it| plain(it, "ms")),
            beside: String::new(),
            spark: history.spark("99th percentile", |point| point.p99_ms),
        },
        Tile {
            name: "CPU",
            value: history.last(|it| Some(it.user + it.system)).map(cores),
            beside: history
                .last(|it| Some(shares(it.user, it.system)))
                .unwrap_or_default(),
            spark: history.spark("busy cores of the machine", |it| Some(it.user + it.system)),
        },
        Tile {
            name: "Network",
            value: history.last(|it| Some(it.network)).map(scaled_rate),
            beside: opened.map_or_else(String::new, |it| {
                format!("{} connections opened per request", digits(it))
            }),
            spark: history.spark("bytes a second", |point| Some(point.network)),
        },
        Tile {
            name: "Disks",
            value: read
                .zip(written)
                .map(|(read, written)| scaled_rate(read + written)),
            beside: format!("read {read_text}, written {written_text}"),
            spark: history.spark("bytes a second", |it| Some(it.read + it.written)),
        },
        Tile {
            name: "Available memory",
            value: history.last(|it| Some(it.available)).map(scaled),
            beside: String::new(),
            spark: history.spark("bytes", |point| Some(point.available)),
        },
        Tile {
            name: "Waiting for disks",
            value: history.last(|it| Some(it.wait)).map(cores),
            beside: String::new(),
            spark: history.spark("cores", |point| Some(point.wait)),
        },
    ] {
        tile.write(page);
    }
    page.push_str("</section>\n");
}

fn tier(page: &mut String, topology: &Topology, history: &History) {
    page.push_str("<h2>The tier</h2>\n<section class=\"tier\">\n");
    for (number, layer) in topology.layers.iter().enumerate() {
        page.push_str("<div class=\"layer\">\n");
        for node in layer {
            card(page, &topology.nodes[*node], history);
        }
        page.push_str("</div>\n");
        let hops = topology.hops.iter().enumerate();
        let below = hops.filter(|(_, hop)| topology.layer(hop.from) == number);
        let below: Vec<String> = below
            .map(|(place, hop)| {
                let open = history.last(|point| point.hops.get(place).copied());
                said_of_hop(topology, hop, open)
            })
            .collect();
        if !below.is_empty() {
            put(
                page,
                format_args!("<ul class=\"hops\">{}</ul>\n", below.concat()),
            );
        }
    }
    page.push_str("</section>\n");
}

fn said_of_hop(topology: &Topology, hop: &Hop, open: Option<u64>) -> String {
    let [from, to] = [hop.from, hop.to].map(|node| escaped(&topology.nodes[node].name));
    let open = open.map_or_else(String::new, |open| {
        let word = if open == 1 {
            "connection"
        } else {
            "connections"
        };
        format!(" <b>{open}</b> {word}")
    });
    format!(
        "<li>{from} → {to} <em>{}</em>{open}</li>",
        escaped(&said(hop))
    )
}

fn card(page: &mut String, node: &Node, history: &History) {
    let kind = if node.kind == node.name {
        String::new()
    } else {
        format!(" <small>{}</small>", escaped(&node.kind))
    };
    put(
        page,
        format_args!(
            "<div class=\"card\"><h3>{}{kind}</h3>\n",
            escaped(&node.name)
        ),
    );
    let pid = node.pid.map(|pid| format!("pid {pid}"));
    let core = node.core.map(|core| format!("core {core}"));
    let ports = node.ports.iter();
    let ports = ports.map(|(scheme, addresses)| format!("{scheme} {}", span(addresses)));
    let texts = node
        .lines
        .iter()
        .cloned()
        .chain(ports)
        .chain([pid, core].into_iter().flatten());
    let texts: Vec<String> = texts
        .map(|text| format!("<span>{}</span>", escaped(&text)))
        .collect();
    put(
        page,
        format_args!("<p class=\"setting\">{}</p>\n", texts.join(" ")),
    );
    if let Some(now) = history.last(|point| point.servers.get(&node.name).copied()) {
        figures(page, &node.name, now, history);
    }
    page.push_str("</div>\n");
}

fn figures(page: &mut String, name: &str, now: ServerPoint, history: &History) {
    let spark = |title: &str, of: fn(&ServerPoint) -> Option<f64>| {
        history.spark(title, |point| point.servers.get(name).and_then(of))
    };
    let whole = |(value, unit): (String, &str)| format!("{value} {unit}");
    let rows = [
        (
            "CPU",
            Some(format!(
                "{:.2} cores <small>{}</small>",
                now.user + now.system,
                shares(now.user, now.system)
            )),
            spark("busy cores", |it| Some(it.user + it.system)),
        ),
        (
            "memory",
            now.memory.map(|it| whole(scaled(it))),
            spark("bytes", |it| it.memory),
        ),
        (
            "heap",
            now.heap.map(|it| whole(scaled(it))),
            spark("bytes of the heap", |it| it.heap),
        ),
        (
            "system calls",
            now.calls.map(|each_second| {
                let each = history.last(|point| point.per_request(each_second));
                each.map_or_else(
                    || format!("{} /s", digits(each_second)),
                    |each| format!("{} per request", digits(each)),
                )
            }),
            history.spark("system calls per request", |point| {
                point.per_request(point.servers.get(name)?.calls?)
            }),
        ),
    ];
    page.push_str("<dl>\n");
    for (name, value, spark) in rows {
        if let Some(value) = value {
            put(
                page,
                format_args!("<dt>{name}</dt><dd>{value}</dd><dd>{spark}</dd>\n"),
            );
        }
    }
    page.push_str("</dl>\n");
}

fn cores(count: f64) -> (String, &'static str) {
    (format!("{count:.2}"), "cores")
}

/// How time is divided.
fn shares(user: f64, system: f64) -> String {
    format!("user {user:.2}, system {system:.2}")
}

/// Bytes with the unit that leaves few digits.
fn scaled(bytes: f64) -> (String, &'static str) {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut place = 0;
    while value >= 1024.0 && place + 1 < units.len() {
        value /= 1024.0;
        place += 1;
    }
    let text = if place == 0 {
        format!("{value:.0}")
    } else {
        digits(value)
    };
    (text, units[place])
}

fn scaled_rate(bytes: f64) -> (String, &'static str) {
    let (value, unit) = scaled(bytes);
    let unit = match unit {
        "B" => "B/s",
        "KiB" => "KiB/s",
        "MiB" => "MiB/s",
        "GiB" => "GiB/s",
        _ => "TiB/s",
    };
    (value, unit)
}

fn rate(bytes: f64) -> String {
    let (value, unit) = scaled_rate(bytes);
    format!("{value} {unit}")
}

fn put(page: &mut String, arguments: std::fmt::Arguments<'_>) {
    page.write_fmt(arguments).expect("a string takes all");
}

/// How many seconds lines reach back.
const SECONDS: usize = 60;
/// How many they have room for, however few there are yet.
const SECONDS_AT_LEAST: usize = 10;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::topology::tests::two_applications;
    use super::*;

    fn history(points: usize) -> History {
        let mut history = History::default();
        for number in 0..points {
            let server = ServerPoint {
                user: 0.5,
                system: 0.25,
                memory: Some(3.0 * 1024.0 * 1024.0),
                heap: None,
                calls: Some(4509.0),
            };
            history.push(Point {
                rate: Some(1000.0 + number as f64),
                p50_ms: Some(0.5),
                p99_ms: None,
                failed: 3,
                network: 2048.0,
                opened: Some(0.0),
                servers: BTreeMap::from([("front".to_owned(), server)]),
                hops: vec![10, 1, 5],
                ..Point::default()
            });
        }
        history
    }

    fn setting() -> Setting {
        Setting {
            title: "front <page>".to_owned(),
            question: "What does it cost?".to_owned(),
            place: "front=ours".to_owned(),
            notes: vec!["system calls: no root".to_owned()],
        }
    }

    #[test]
    fn figures_servers_and_hops_are_there() {
        let page = page(
            &setting(),
            &two_applications(),
            &history(3),
            ("after 3 s", true),
        );
        for part in [
            "<title>front &lt;page&gt;</title>",
            "content=\"1\"",
            "<b>1002</b> /s",
            "3 failed",
            "<b>0.500</b> ms",
            "<b>–</b>",
            "<b>2.00</b> KiB/s",
            "0.75 cores <small>user 0.50, system 0.25</small>",
            "3.00 MiB",
            "4.50 per request",
            "load → front <em>http</em> <b>10</b> connections",
            "front → app1 <em>ajp</em> <b>1</b> connection<",
            "front → app2 <em>ajp</em> <b>5</b> connections",
            "<span>ajp 127.0.0.1:8001</span>",
            "system calls: no root",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("heap"), "there is no Java virtual machine");
        assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("url("));
    }

    #[test]
    fn a_page_that_is_kept_stands_still_and_one_without_figures_is_a_page() {
        let empty = History::default();
        let page = page(
            &setting(),
            &two_applications(),
            &empty,
            ("it is over", false),
        );
        assert!(!page.contains("http-equiv"), "{page}");
        assert!(
            page.contains("no load") && page.contains("it is over"),
            "{page}"
        );
        assert!(!page.contains("NaN"), "{page}");
    }

    #[test]
    fn without_a_load_calls_are_by_the_second() {
        let mut history = history(1);
        history.0[0].rate = None;
        let page = page(&setting(), &two_applications(), &history, ("", true));
        assert!(
            page.contains("4509 /s") && page.contains("no load"),
            "{page}"
        );
    }

    #[test]
    fn the_history_is_a_minute() {
        let history = history(75);
        assert_eq!(history.0.len(), SECONDS);
        assert_eq!(history.last(|point| point.rate), Some(1074.0));
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(scaled(0.0), ("0".to_owned(), "B"));
        assert_eq!(scaled(1536.0), ("1.50".to_owned(), "KiB"));
        assert_eq!(scaled_rate(5e9), ("4.66".to_owned(), "GiB/s"));
        assert_eq!(scaled(f64::MAX).1, "TiB");
    }
}
