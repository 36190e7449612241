//! Reads the text that `vegeta report` prints.

use std::collections::BTreeMap;

use super::scan::{Scan, number};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `Requests [total, rate…]`.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let mut starts = Scan(text).places("Requests");
    starts.retain(|start| {
        let columns = text[start + "Requests".len()..].trim_start();
        columns.starts_with("[total")
    });
    starts
}

/// Reads the report in `block`. The error is that the row of requests or that of statuses is missing.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let missing = |label: &'static str| TextFault::Incomplete("vegeta", label);
    let (names, requests) = row(block, "Requests").ok_or_else(|| missing("Requests"))?;
    let (_, counts) = row(block, "Status Codes").ok_or_else(|| missing("Status Codes"))?;
    let sent = Scan(requests).count();
    // vegeta's rate counts what was sent; its throughput counts successful responses.
    let column = |name| names.iter().position(|other| *other == name);
    let rate_column = column("throughput").or_else(|| column("rate"));
    let rate = rate_column.and_then(|column| number(requests.split(',').nth(column)?.trim()));
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    for word in counts.split_whitespace() {
        if let Some((status, count)) = word.split_once(':')
            && let (Ok(status), Ok(count)) = (status.parse(), count.parse())
        {
            statuses.insert(status, count);
        }
    }
    // The status 0 is that of requests without a response.
    statuses.remove(&0);
    let completed: u64 = statuses.values().sum();
    let seconds = row(block, "Duration").and_then(|(_, span)| Scan(span).millis());
    let figures = TextFigures {
        tool: "vegeta",
        seconds: seconds.map(|millis| millis / 1000.0),
        completed: Some(completed),
        failed: sent.map(|sent| sent.saturating_sub(completed)),
        statuses,
        rate,
        total_ms: times(block),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// The times in the row `Latencies`; `None` without a mean or a maximum.
fn times(block: &str) -> Option<Times> {
    let (names, values) = row(block, "Latencies")?;
    let values = Scan(values).all_millis();
    let column = |name| {
        let column = names.iter().position(|other| *other == name)?;
        values.get(column).copied()
    };
    Some(Times {
        mean: column("mean")?,
        median: column("50"),
        max: column("max")?,
        rounding: 0.01,
    })
}

/// Reads a row such as `Latencies [mean, 50, max] 1ms, 1ms, 2ms`: the names in brackets, and the text after them.
fn row<'a>(block: &'a str, label: &str) -> Option<(Vec<&'a str>, &'a str)> {
    let rest = Scan(block).after(label)?.0.trim_start().strip_prefix('[')?;
    let (names, values) = rest.split_once(']')?;
    let names = names.split(',').map(str::trim).collect();
    Some((names, Scan(values).line()))
}
