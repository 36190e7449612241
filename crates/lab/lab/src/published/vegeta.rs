//! Reads the text that `vegeta report` prints.

use std::collections::BTreeMap;

use super::scan::{Scan, number};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `Requests [total, rate…]`.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let places = Scan(text).places("Requests").into_iter();
    let is_report = |at: &usize| {
        let rest = text[at + "Requests".len()..].trim_start();
        rest.starts_with("[total")
    };
    places.filter(is_report).collect()
}

pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let missing = |label: &'static str| TextFault::Incomplete("vegeta", label);
    let (names, requests) = row(block, "Requests").ok_or_else(|| missing("Requests"))?;
    let (_, counts) = row(block, "Status Codes").ok_or_else(|| missing("Status Codes"))?;
    let sent = Scan(requests).count();
    // vegeta's rate counts what was sent; its throughput counts successful responses.
    let values: Vec<&str> = requests.split(',').collect();
    let at = names.iter().position(|name| *name == "throughput");
    let rate = at.or_else(|| names.iter().position(|name| *name == "rate"));
    let rate = rate.and_then(|at| number(values.get(at)?.trim()));
    let statuses: BTreeMap<u16, u64> = counts
        .split_whitespace()
        .filter_map(|word| {
            let (status, count) = word.split_once(':')?;
            Some((status.parse().ok()?, count.parse().ok()?))
        })
        .collect();
    let answered = statuses.iter().filter(|(status, _)| **status > 0);
    let completed: u64 = answered.map(|(_, count)| count).sum();
    let seconds = row(block, "Duration").and_then(|(_, span)| Scan(span).millis());
    let figures = TextFigures {
        tool: "vegeta",
        seconds: seconds.map(|millis| millis / 1000.0),
        completed: Some(completed),
        failed: sent.map(|sent| sent.saturating_sub(completed)),
        statuses: statuses
            .into_iter()
            .filter(|(status, _)| *status > 0)
            .collect(),
        rate,
        total_ms: times(block),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

fn times(block: &str) -> Option<Times> {
    let (names, values) = row(block, "Latencies")?;
    let values = Scan(values).all_millis();
    let column = |name| {
        let at = names.iter().position(|it| *it == name)?;
        values.get(at).copied()
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
