//! Reads the summary that k6 prints at the end.

use super::scan::{Scan, word_before};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which summaries begin: at the row with the durations of requests.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let places = Scan(text).places(ANCHOR).into_iter();
    let is_row = |at: &usize| text[at + ANCHOR.len()..].starts_with(['.', ':', ' ']);
    places.filter(is_row).collect()
}

pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let missing = |label: &'static str| TextFault::Incomplete("k6", label);
    let requests = row(block, "http_reqs").ok_or_else(|| missing("http_reqs"))?;
    let times = row(block, ANCHOR).ok_or_else(|| missing(ANCHOR))?;
    let completed = Scan(requests).count();
    let rate = requests.split_whitespace().nth(1);
    let rate = rate.and_then(|word| Scan(word).number());
    let failed = row(block, "http_req_failed").and_then(failed);
    let value = |name| Scan(times).after(name).and_then(Scan::millis);
    let times = value("avg=").zip(value("max=")).map(|(mean, max)| Times {
        mean,
        median: value("med="),
        max,
        rounding: 0.01,
    });
    let most = row(block, "vus_max").or_else(|| row(block, "vus"));
    let figures = TextFigures {
        tool: "k6",
        clients: most.and_then(|rest| Scan(rest).count()),
        seconds: completed
            .zip(rate.filter(|rate| *rate > 0.0))
            .map(|(count, rate)| count as f64 / rate),
        completed: completed.map(|count| count - failed.unwrap_or(0).min(count)),
        failed,
        rate,
        total_ms: times,
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// The text after `name......:`; `None` if there is no such row.
fn row<'a>(block: &'a str, name: &str) -> Option<&'a str> {
    let places = Scan(block).places(name).into_iter();
    let rows = places.map(|at| &block[at + name.len()..]);
    let rows = rows.map(|rest| rest.trim_start_matches('.').trim_start());
    let mut rows = rows.filter_map(|rest| rest.strip_prefix(':'));
    rows.find_map(|rest| rest.lines().next())
}

/// The number of requests without a response or with a status of 400 and more, from `0.00% 0 out of
/// 100`; before 1.0 from `0.00% ✓ 0 ✗ 100`, where the first count is of those for which "failed" is
/// true.
fn failed(row: &str) -> Option<u64> {
    if let Some(at) = row.find(" out of") {
        return Scan(word_before(row, at)?).count();
    }
    let (_, rest) = row.split_once('\u{2713}')?;
    Scan(rest).count()
}

const ANCHOR: &str = "http_req_duration";
