//! Reads the output of h2load.

use super::scan::{Scan, word_before};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `starting benchmark`, or at `finished in` if that was left out.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let is_report = |rest: Scan<'_>| rest.millis().is_some() && rest.line().contains("req/s");
    Scan(text).starts(ANCHOR, is_report, |head| {
        let first = head.places("starting benchmark").pop();
        first.or(Some(head.0.len()))
    })
}

/// Reads the report in `block`. The error is that a line is missing: of sums, of requests or of statuses.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    let missing = |label: &'static str| TextFault::Incomplete("h2load", label);
    let finished = scan.after(ANCHOR).ok_or_else(|| missing(ANCHOR))?;
    let status_codes = scan.after("status codes:");
    let status_codes = status_codes.ok_or_else(|| missing("status codes"))?;
    let requests = scan.after("requests:").ok_or_else(|| missing("requests"))?;
    let [good, redirects, client_errors, server_errors] =
        before_each(status_codes.line(), ["2xx", "3xx", "4xx", "5xx"]);
    let non_2xx = redirects + client_errors + server_errors;
    let [failed, late] = before_each(requests.line(), ["errored", "timeout"]);
    // Each thread has a line with the number of its clients.
    let mut clients = 0;
    for (label_start, _) in block.match_indices(" total client(s)") {
        let count = word_before(block, label_start).and_then(|word| word.parse::<u64>().ok());
        clients += count.unwrap_or(0);
    }
    // A run of some time has a line `Timing-based test with 2s of warm-up time` for each thread; 0s is no warm-up.
    let timing = scan.after("Timing-based test with").and_then(Scan::millis);
    let warm_up_ms = timing.filter(|millis| *millis > 0.0);
    // The line is `finished in 1.01s, 990.11 req/s, 1.20MB/s`.
    let rate = finished.line().split(',').nth(1);
    let figures = TextFigures {
        tool: "h2load",
        clients: (clients > 0).then_some(clients),
        seconds: finished.millis().map(|millis| millis / 1000.0),
        warm_up_s: warm_up_ms.map(|millis| millis / 1000.0),
        completed: Some(good + non_2xx),
        failed: Some(failed),
        late: Some(late),
        non_2xx: Some(non_2xx),
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
    // The row is called `time for request:` or, in later versions, `request :`.
    let row = lines.find_map(|line| match Scan(line).after("time for request:") {
        Some(values) => Some(values),
        None => {
            let values = Scan(line).after("request")?;
            values.0.trim_start().starts_with(':').then_some(values)
        }
    })?;
    let values = row.all_millis();
    let first_column = head.iter().position(|name| *name == "min")?;
    let column = |name| {
        let column = head.iter().position(|other| *other == name)?;
        values.get(column - first_column).copied()
    };
    Some(Times {
        mean: column("mean")?,
        median: column("median"),
        max: column("max")?,
        rounding: 0.01,
    })
}

/// The beginning of the line of sums, which each report has once.
const ANCHOR: &str = "finished in";
