//! Reads the tables of autocannon.

use super::scan::{Scan, number, short_count, word_before};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `Running 10s test @ URL`, if its number of samples follows.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let is_report = |rest: Scan<'_>| rest.number().is_some();
    Scan(text).starts(ANCHOR, is_report, |head| {
        let first_line = head.places("Running").pop();
        let table = head.places("Latency").pop();
        first_line.or(table).or(Some(head.0.len()))
    })
}

/// Reads the report in `block`. The error is that the line of sums or the rate is missing.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let missing = |label: &'static str| TextFault::Incomplete("autocannon", label);
    let summary = block
        .find(" requests in")
        .ok_or_else(|| missing("requests in"))?;
    let sent = word_before(block, summary).and_then(short_count);
    let seconds_after = |text, label| {
        let millis = Scan(text).after(label)?.millis()?;
        Some(millis / 1000.0)
    };
    let count_before = |label: &str| {
        let label_start = block.find(label)?;
        word_before(block, label_start).and_then(short_count)
    };
    let non_2xx = count_before(" non 2xx responses").unwrap_or(0);
    let late = count_before(" timeouts)").unwrap_or(0);
    let errors = count_before(" errors (").unwrap_or(0);
    // Some requests may have had no response. autocannon prints the number of responses only if some of them are not
    // 2xx.
    let completed = match count_before(" 2xx responses") {
        Some(good) => Some(good + non_2xx),
        None => sent.map(|sent| sent.saturating_sub(errors)),
    };
    let rate = match column(block, "Req/Sec", "Avg").and_then(number) {
        Some(rate) => Some(rate),
        None => first_table(block, "Req/Sec").map(|[mean, _]| mean),
    };
    let millis = |name| column(block, "Latency", name).and_then(|cell| Scan(cell).millis());
    let times = match (millis("Avg"), millis("Max")) {
        (Some(mean), Some(max)) => Some([mean, max]),
        _ => first_table(block, "Latency (ms)"),
    };
    let figures = TextFigures {
        tool: "autocannon",
        clients: count_before(" connections"),
        seconds: seconds_after(&block[summary..], "requests in"),
        asked_seconds: seconds_after(block, "Running"),
        completed,
        // Timeouts are counted as errors, too.
        failed: Some(errors.saturating_sub(late)),
        late: Some(late),
        non_2xx: Some(non_2xx),
        bytes: Scan(&block[summary..])
            .after_comma()
            .and_then(|size| size.bytes(1000)),
        rate: Some(rate.ok_or_else(|| missing("Req/Sec"))?),
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
            // Logs may put other cells before the table, in each line as many as they like.
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

/// The label of a row that each report has once.
const ANCHOR: &str = "Bytes/Sec";
