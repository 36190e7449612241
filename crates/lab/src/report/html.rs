//! A result as one page of HTML that needs nothing else: no script, no network.
//!
//! Pictures are there twice, wide and narrow, because the text of a picture that is scaled cannot be
//! read; the page's style shows the one that fits. Colours follow the reader's choice of light or dark.

mod over_time;
mod page;

use catamaran_chart::escaped;

use self::page::Page;
use super::svg::Row;
use super::{setting, svg, table};
use crate::claim::{Outcome, number};
use crate::gate::Effect;
use crate::result::{CellResult, PublishedResult, ResultDocument};

/// The page.
#[must_use]
pub fn html(result: &ResultDocument) -> String {
    let mut page = Page::begin(&result.question);
    page.put(format_args!(
        "<p class=\"answer\">{}</p>\n",
        escaped(&result.answer)
    ));
    if !result.source.is_empty() {
        page.put(format_args!(
            "<p>Repeats: {}.</p>\n",
            escaped(&result.source)
        ));
    }
    page.put(format_args!(
        "<p class=\"setting\">{}</p>\n",
        escaped(&setting(result))
    ));
    as_published(&mut page, result);
    published(&mut page, result);
    claims(&mut page, result);
    cells(&mut page, result);
    pictures(&mut page, result);
    over_time::section(&mut page, result);
    calls(&mut page, result);
    gates(&mut page, result);
    details(&mut page, result);
    page.end()
}

/// What was printed then, and what the same command prints here.
fn as_published(page: &mut Page, result: &ResultDocument) {
    if result.as_published.is_empty() {
        return;
    }
    page.put(format_args!(
        "<h2>The published runs, made again once</h2>\n<p>With the source's own values, outside the \
         rounds: left what was published, right what the same command prints here. No claim is on \
         it.</p>\n"
    ));
    for run in &result.as_published {
        page.put(format_args!(
            "<h3>{}</h3>\n<div class=\"pair\"><pre>{}</pre><pre>{}</pre></div>\n",
            escaped(&run.name),
            escaped(&run.theirs),
            escaped(&run.ours)
        ));
        if !run.deviations.is_empty() {
            let deviations = escaped(&run.deviations.join("; "));
            page.put(format_args!("<p>Otherwise than there: {deviations}.</p>\n"));
        }
    }
}

/// Their figure, ours, and what theirs cannot carry.
fn published(page: &mut Page, result: &ResultDocument) {
    if result.published.is_empty() {
        return;
    }
    page.put(format_args!("<h2>As published, and here</h2>\n"));
    let row = |run: &PublishedResult| {
        let found = run.found.iter().map(|fired| {
            let (gate, words) = (escaped(&fired.gate), escaped(&fired.words));
            format!("<li><b>{gate}</b> {words}</li>")
        });
        let ours = run.ours.as_deref().unwrap_or("not run in this form");
        vec![
            format!("<td>{}</td>", escaped(&run.says)),
            format!("<td data-name=\"here\">{}</td>", escaped(ours)),
            format!("<td><ul>{}</ul></td>", found.collect::<String>()),
        ]
    };
    let rows: Vec<Vec<String>> = result.published.iter().map(row).collect();
    let ours = "here: median of the rounds [lowest..highest]";
    page.cards(&["published", ours, "what theirs cannot carry"], &rows);
}

fn claims(page: &mut Page, result: &ResultDocument) {
    page.put(format_args!(
        "<h2>Claims</h2>\n<p>Ratios are taken within rounds. Dot and bar: median and interval of \
         95 %, on a logarithmic scale around 1. Ring: what was published.</p>\n"
    ));
    let rows: Vec<Vec<String>> = result.claims.iter().map(claim).collect();
    page.cards(&["claim", "ratio", "published", "verdict"], &rows);
}

fn claim(claim: &Outcome) -> Vec<String> {
    let bar = match (claim.low, claim.ratio, claim.high) {
        (Some(low), Some(ratio), Some(high)) => svg::interval(low, ratio, high, claim.published),
        _ => String::new(),
    };
    let gates = claim.gates.iter().map(|fired| {
        let (gate, words) = (escaped(&fired.gate), escaped(&fired.words));
        format!("<br><small>{gate}: {words}</small>")
    });
    let fate = match claim.as_expected {
        Some(true) => "as claimed",
        Some(false) => "not as claimed",
        None => "open",
    };
    let word = claim.verdict.word();
    let class = word.replace(' ', "-");
    let published = claim.published.map_or_else(String::new, number);
    vec![
        format!(
            "<td class=\"says\"><b>{}</b><br>{fate}</td>",
            escaped(&claim.says)
        ),
        format!("<td>{bar}</td>"),
        format!("<td class=\"n\" data-name=\"published\">{published}</td>"),
        format!(
            "<td class=\"sentence\"><b class=\"{class}\">{word}</b> {}{}</td>",
            escaped(&claim.sentence),
            gates.collect::<String>()
        ),
    ]
}

fn cells(page: &mut Page, result: &ResultDocument) {
    page.put(format_args!(
        "<h2>Cells</h2>\n<p>Medians of valid runs; small: lowest..highest. The deviation and the \
         longest request are for the record: no claim is on them.</p>\n"
    ));
    let names = table::measures(result);
    let measured: Vec<String> = names.iter().map(|name| table::head(name)).collect();
    let mut heads = vec!["cell", "runs"];
    heads.extend(measured.iter().map(String::as_str));
    heads.extend(["req/s, deviation", "longest (ms)"]);
    let rows: Vec<Vec<String>> = result.cells.iter().map(|cell| row(cell, &names)).collect();
    page.table(&heads, &rows);
}

fn row(cell: &CellResult, names: &[String]) -> Vec<String> {
    let runs = match cell.void {
        0 => cell.runs.to_string(),
        void => format!("{}<br><small>{void} void</small>", cell.runs),
    };
    let mut row = vec![
        format!("<td class=\"says\">{}</td>", escaped(&cell.label)),
        format!("<td class=\"n\">{runs}</td>"),
    ];
    row.extend(names.iter().map(|name| match table::figure(cell, name) {
        Some((median, spread)) => {
            format!("<td class=\"n\">{median}<br><small>{spread}</small></td>")
        }
        None => "<td></td>".to_owned(),
    }));
    let deviation = cell.measures.get("throughput").and_then(|rate| rate.stddev);
    for value in [deviation, cell.max_ms] {
        let value = value.map_or_else(String::new, table::digits);
        row.push(format!("<td class=\"n\">{value}</td>"));
    }
    row
}

/// A strip of each measure.
fn pictures(page: &mut Page, result: &ResultDocument) {
    page.put(format_args!(
        "<h2>Each round</h2>\n<p>A dot is a run, a stroke the median.</p>\n"
    ));
    for name in table::measures(result) {
        let rows: Vec<Row<'_>> = result
            .cells
            .iter()
            .filter_map(|cell| {
                let measure = cell.measures.get(&name)?;
                Some(Row {
                    label: &cell.label,
                    values: &measure.values,
                    median: measure.median,
                })
            })
            .collect();
        let title = table::head(&name);
        let (wide, narrow) = (
            svg::strip(&title, &rows, 920.0),
            svg::strip(&title, &rows, 350.0),
        );
        page.put(format_args!(
            "<h3>{}</h3>\n<div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>\n",
            escaped(&title)
        ));
    }
}

/// System calls by name.
fn calls(page: &mut Page, result: &ResultDocument) {
    let mut names: Vec<(&String, &String)> = Vec::new();
    for (server, counts) in result.cells.iter().flat_map(|cell| &cell.calls) {
        let frequent = counts.iter().filter(|(_, count)| **count >= CALLS_MIN);
        names.extend(frequent.map(|(call, _)| (server, call)));
    }
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return;
    }
    page.put(format_args!("<h2>System calls of a request</h2>\n"));
    let mut heads = vec!["server", "call"];
    heads.extend(result.cells.iter().map(|cell| cell.label.as_str()));
    let row = |(server, call): &(&String, &String)| {
        let mut row = vec![
            format!("<td>{}</td>", escaped(server)),
            format!("<td>{}</td>", escaped(call)),
        ];
        row.extend(result.cells.iter().map(|cell| {
            let count = cell.calls.get(*server).and_then(|counts| counts.get(*call));
            format!("<td class=\"n\">{:.2}</td>", count.copied().unwrap_or(0.0))
        }));
        row
    };
    page.table(&heads, &names.iter().map(row).collect::<Vec<_>>());
}

fn gates(page: &mut Page, result: &ResultDocument) {
    page.put(format_args!("<h2>Gates</h2>\n<ul>\n"));
    for gate in &result.gates {
        let effect = match gate.effect {
            Effect::Refuse => "refuses",
            Effect::Void => "void",
            Effect::Time => "no claim on times",
            Effect::Machine => "no claim on times and CPU",
            Effect::Note => "note",
        };
        page.put(format_args!(
            "<li><b>{}</b> on {} runs ({effect}): {} <small>{}</small></li>\n",
            escaped(&gate.gate),
            gate.runs,
            escaped(&gate.words),
            escaped(&gate.cell)
        ));
    }
    let passed = escaped(&result.passed.join(", "));
    page.put(format_args!("<li>did not fire: {passed}</li>\n</ul>\n"));
}

fn details(page: &mut Page, result: &ResultDocument) {
    page.put(format_args!(
        "<details><summary>Servers of the first run, and how it was measured</summary>\n"
    ));
    for server in &result.servers {
        page.put(format_args!(
            "<h3>{} ({})</h3>\n<p>{}</p>\n<pre>{}</pre>\n",
            escaped(&server.name),
            escaped(&server.target),
            escaped(&server.version),
            escaped(&server.command.join(" "))
        ));
        for (name, text) in &server.files {
            page.put(format_args!(
                "<p>{}</p>\n<pre>{}</pre>\n",
                escaped(name),
                escaped(text)
            ));
        }
    }
    let order = |order: &Vec<usize>| {
        let cells: Vec<String> = order.iter().map(ToString::to_string).collect();
        format!("[{}]", cells.join(" "))
    };
    let orders: Vec<String> = result.orders.iter().map(order).collect();
    page.put(format_args!(
        "<p>Seed {}; the cells' order in each round: {}.</p>\n",
        result.seed,
        orders.join(" ")
    ));
    if let Some(cost) = result.own_cost {
        let percent = cost * 100.0;
        page.put(format_args!(
            "<p>Measuring took at most {percent:.2} % of the CPU time measured.</p>\n"
        ));
    }
    page.put(format_args!("</details>\n"));
}

/// Calls that are rarer than this for each request are left out.
const CALLS_MIN: f64 = 0.005;
