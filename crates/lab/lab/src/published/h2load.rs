//! Reads the output of h2load.

use super::scan::Scan;
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `starting benchmark`, or at `finished in` if that was left out.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let is_report = |rest: Scan<'_>| rest.millis().is_some() && rest.line().contains("req/s");
    Scan(text).starts(ANCHOR, is_report, |head| {
        let first = head.places("starting benchmark").pop();
        first.or(Some(head.0.len()))
    })
}

pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    let missing = |label: &'static str| TextFault::Incomplete("h2load", label);
    let finished = scan.after(ANCHOR).ok_or_else(|| missing(ANCHOR))?;
    let statuses = scan
        .after("status codes:")
        .ok_or_else(|| missing("status codes"))?;
    let requests = scan.after("requests:").ok_or_else(|| missing("requests"))?;
    let statuses = before_each(statuses.line(), ["2xx", "3xx", "4xx", "5xx"]);
    let [good, redirects, refused, broken] = statuses;
    let [errored, late] = before_each(requests.line(), ["errored", "timeout"]);
    let clients = block
        .match_indices(" total client(s)")
        .filter_map(|(at, _)| {
            let words = block[..at].split_whitespace();
            words.last()?.parse::<u64>().ok()
        });
    let clients: u64 = clients.sum();
    let rate = finished.line().split(',').nth(1);
    let figures = TextFigures {
        tool: "h2load",
        clients: Some(clients).filter(|clients| *clients > 0),
        seconds: finished.millis().map(|millis| millis / 1000.0),
        completed: Some(good + redirects + refused + broken),
        failed: Some(errored),
        late: Some(late),
        non_2xx: Some(redirects + refused + broken),
        rate: rate.and_then(|rate| Scan(rate).number()),
        total_ms: times(block),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// The counts before each of `names` on a line such as `1000 done, 12 failed`.
fn before_each<const N: usize>(line: &str, names: [&str; N]) -> [u64; N] {
    names.map(|name| {
        let mut parts = line.split(',');
        let is_named = |part: &&str| {
            let word = part.split_whitespace().nth(1);
            word.is_some_and(|word| word.trim_end_matches('*') == name)
        };
        let part = parts.find(is_named);
        part.and_then(|part| Scan(part).count()).unwrap_or(0)
    })
}

/// Reads the row about the times of requests; the line above it names the columns.
fn times(block: &str) -> Option<Times> {
    let mut lines = block.lines();
    let head: Vec<&str> = lines
        .find(|line| line.contains(" min ") && line.contains(" max ") && line.contains(" mean "))?
        .split_whitespace()
        .collect();
    let row = lines.find_map(|line| {
        let rest = Scan(line).after("time for request:");
        rest.or_else(|| {
            Scan(line)
                .after("request")
                .filter(|rest| rest.0.trim_start().starts_with(':'))
        })
    })?;
    let values = row.all_millis();
    let first = head.iter().position(|name| *name == "min")?;
    let column = |name| {
        let at = head.iter().position(|it| *it == name)?;
        values.get(at - first).copied()
    };
    Some(Times {
        mean: column("mean")?,
        median: column("median"),
        max: column("max")?,
        rounding: 0.01,
    })
}

const ANCHOR: &str = "finished in";
