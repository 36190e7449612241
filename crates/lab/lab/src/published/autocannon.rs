//! Reads the tables of autocannon.

use super::scan::{Scan, number, short_count, word_before};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `Running 10s test @ URL`, if its number of samples follows.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let is_report = |rest: Scan<'_>| rest.number().is_some();
    Scan(text).starts(ANCHOR, is_report, |head| {
        let first = head.places("Running").pop();
        let table = || head.places("Latency").pop();
        first.or_else(table).or(Some(head.0.len()))
    })
}

pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let missing = |label: &'static str| TextFault::Incomplete("autocannon", label);
    let summary = block
        .find(" requests in")
        .ok_or_else(|| missing("requests in"))?;
    let sent = word_before(block, summary).and_then(short_count);
    let seconds = Scan(&block[summary..])
        .after("requests in")
        .and_then(Scan::millis);
    let before = |label: &str| {
        let at = block.find(label)?;
        word_before(block, at).and_then(short_count)
    };
    let other = before(" non 2xx responses").unwrap_or(0);
    let late = block
        .find(" timeouts)")
        .and_then(|at| word_before(block, at));
    let late = late.and_then(short_count).unwrap_or(0);
    let errors = before(" errors (").unwrap_or(0);
    let good = before(" 2xx responses");
    let rate = column(block, "Req/Sec", "Avg").and_then(number);
    let rate = rate.or_else(|| first_table(block, "Req/Sec").map(|[mean, _]| mean));
    let rate = rate.ok_or_else(|| missing("Req/Sec"))?;
    let millis = |name| column(block, "Latency", name).and_then(|cell| Scan(cell).millis());
    let in_columns = millis("Avg")
        .zip(millis("Max"))
        .map(|(mean, max)| [mean, max]);
    let times = in_columns.or_else(|| first_table(block, "Latency (ms)"));
    let figures = TextFigures {
        tool: "autocannon",
        clients: before(" connections"),
        seconds: seconds.map(|millis| millis / 1000.0),
        asked_seconds: Scan(block)
            .after("Running")
            .and_then(Scan::millis)
            .map(|millis| millis / 1000.0),
        // Some requests may have had no response. autocannon prints the number of responses only if some of them are
        // not 2xx.
        completed: good
            .map(|good| good + other)
            .or_else(|| Some(sent?.saturating_sub(errors))),
        failed: Some(errors.saturating_sub(late)),
        late: Some(late),
        non_2xx: Some(other),
        bytes: Scan(&block[summary..])
            .after_comma()
            .and_then(|size| size.bytes(1000)),
        rate: Some(rate),
        total_ms: times.map(|[mean, max]| Times {
            mean,
            median: millis("50%"),
            max,
            rounding: 1.0,
        }),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// The cell in the row `label` below the column `name` of the last heading with `Stat` above that
/// row; `None` if there is none.
fn column<'a>(block: &'a str, label: &str, name: &str) -> Option<&'a str> {
    let mut head = Vec::new();
    for line in block.lines() {
        let cells: Vec<&str> = line.split(['\u{2502}', '|']).map(str::trim).collect();
        if cells.contains(&"Stat") {
            head = cells;
        } else if cells.contains(&label) {
            let start = head.iter().position(|cell| *cell == "Stat")?;
            let column = head.iter().position(|cell| *cell == name)? - start;
            let row = cells.iter().position(|cell| *cell == label)?;
            return cells.get(row + column).copied();
        }
    }
    None
}

/// The mean and the maximum in a row of the table that versions 1 and 2 print: `Latency (ms) 0.67 1.35 23.71`.
fn first_table(block: &str, label: &str) -> Option<[f64; 2]> {
    match Scan(block).after(label)?.numbers()[..] {
        [mean, _, max, ..] => Some([mean, max]),
        _ => None,
    }
}

const ANCHOR: &str = "Bytes/Sec";
