//! Reads the summary that k6 prints at the end.

use super::scan::{Scan, word_before};
use super::{Checks, PublishedText, TextFault, TextFigures, Times};

/// The bytes at which summaries begin: at the row with the durations of requests.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let is_row =
        |rest: Scan<'_>| rest.0.starts_with(['.', ':', ' ']) && rest.line().contains("avg=");
    Scan(text).starts(ANCHOR, is_row, |head| {
        let last_place = |label: &&str| head.places(label).pop();
        let part = PARTS.iter().filter_map(last_place).max();
        if let Some(total) = last_place(&TOTAL)
            && part.is_none_or(|part| part < total)
        {
            return Some(total);
        }
        // The row is that of a part, not of the whole run.
        if part.is_some() {
            return None;
        }
        // Before 1.0 rows stand in the order of their names.
        let first_row = EARLIER.iter().filter_map(last_place).min();
        first_row.or(Some(head.0.len()))
    })
}

/// Reads the summary in `block`. The error is that the row of requests or that of their durations is missing.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let missing = |label: &'static str| TextFault::Incomplete("k6", label);
    let count_in = |name| row(block, name).and_then(|row| Scan(row).count());
    let requests = row(block, "http_reqs").ok_or_else(|| missing("http_reqs"))?;
    let durations = row(block, ANCHOR).ok_or_else(|| missing(ANCHOR))?;
    let count = Scan(requests).count();
    let rate = requests.split_whitespace().nth(1);
    let rate = rate.and_then(|word| Scan(word).number());
    // k6 does not print how long the run took.
    let seconds = match (count, rate) {
        (Some(count), Some(rate)) if rate > 0.0 => Some(count as f64 / rate),
        _ => None,
    };
    let failed = row(block, "http_req_failed").and_then(failed);
    let millis = |name| Scan(durations).after(name).and_then(Scan::millis);
    let figures = TextFigures {
        tool: "k6",
        clients: count_in("vus_max").or_else(|| count_in("vus")),
        seconds,
        completed: count.map(|count| count.saturating_sub(failed.unwrap_or(0))),
        failed,
        checks: checks(block),
        dropped: count_in("dropped_iterations").unwrap_or(0),
        rate,
        total_ms: millis("avg=").zip(millis("max=")).map(|(mean, max)| Times {
            mean,
            median: millis("med="),
            max,
            rounding: 0.01,
        }),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// The text after `name......:`; `None` if there is no such row.
fn row<'a>(block: &'a str, name: &str) -> Option<&'a str> {
    for start in Scan(block).places(name) {
        let after_name = block[start + name.len()..].trim_start_matches('.');
        if let Some(value) = after_name.trim_start().strip_prefix(':') {
            return value.lines().next();
        }
    }
    None
}

/// The number of requests without a response or with a status from 400 on, from `0.00% 0 out of 100`. Before 1.0 the
/// row is `0.00% ✓ 0 ✗ 100`, where the first count is of the failed requests.
fn failed(row: &str) -> Option<u64> {
    if let Some(at) = row.find(" out of") {
        return Scan(word_before(row, at)?).count();
    }
    let (_, rest) = row.split_once('\u{2713}')?;
    Scan(rest).count()
}

/// The checks of the script. The row is `checks_failed: 50.00% 257 out of 514` since 1.0, and before it either `checks:
/// 50.00% 257 out of 514` or `50.00% ✓ 257 ✗ 257`, where the first count is of the checks that passed.
fn checks(block: &str) -> Option<Checks> {
    let passed_and_all = |row: &str| {
        if let Some((passed, all)) = row.split_once(" out of") {
            return Some((
                Scan(word_before(passed, passed.len())?).count()?,
                Scan(all).count()?,
            ));
        }
        let (passed, failed) = row.split_once('\u{2713}')?.1.split_once('\u{2717}')?;
        let passed = Scan(passed).count()?;
        Some((passed, passed + Scan(failed).count()?))
    };
    if let Some((failed, made)) = row(block, "checks_failed").and_then(passed_and_all) {
        return Some(Checks { made, failed });
    }
    let (passed, made) = row(block, "checks").and_then(passed_and_all)?;
    Some(Checks {
        made,
        failed: made.saturating_sub(passed),
    })
}

/// The name of a row that each summary has, and each part of one.
const ANCHOR: &str = "http_req_duration";

/// The heading of the run in the summary of 1.0 and later.
const TOTAL: &str = "TOTAL RESULTS";

/// The headings of parts of a run.
const PARTS: [&str; 2] = ["SCENARIO:", "GROUP:"];

/// Rows that stand before the anchor.
const EARLIER: [&str; 3] = ["checks.", "data_received.", "dropped_iterations."];
