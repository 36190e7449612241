//! Reads the output of wrk and wrk2.

use super::scan::{Scan, number, word_before};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `2 threads and 100 connections`.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let places = Scan(text).places(ANCHOR).into_iter();
    let is_report = |at: &usize| {
        word_before(text, *at).and_then(number).is_some()
            && Scan(&text[at + ANCHOR.len()..]).number().is_some()
    };
    places.filter(is_report).collect()
}

pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    let tool = if block.contains("Thread calibration") || block.contains("(HdrHistogram") {
        "wrk2"
    } else {
        "wrk"
    };
    let missing = |label: &'static str| TextFault::Incomplete(tool, label);
    let rate = scan.after("Requests/sec:").and_then(Scan::number);
    let rate = rate.ok_or_else(|| missing("Requests/sec"))?;
    let summary = scan
        .find(" requests in", 0)
        .or_else(|| block.find(" requests in"));
    let summary = summary.ok_or_else(|| missing("requests in"))?;
    let completed = word_before(block, summary).and_then(number);
    let seconds = Scan(&block[summary..])
        .after("requests in")
        .and_then(Scan::millis);
    let errors = scan.after("Socket errors:").map(|rest| Scan(rest.line()));
    let error = |label| {
        let count = errors.and_then(|errors| errors.after(label));
        count.and_then(Scan::count).unwrap_or(0)
    };
    let figures = TextFigures {
        tool,
        clients: scan.after(ANCHOR).and_then(Scan::count),
        seconds: seconds.map(|millis| millis / 1000.0),
        completed: completed.map(|count| count as u64),
        failed: Some(error("connect") + error("read") + error("write")),
        late: Some(error("timeout")),
        // The line counts responses that are neither 2xx nor 3xx, so a missing line does not mean that all were 2xx.
        non_2xx: scan
            .after("Non-2xx or 3xx responses:")
            .and_then(Scan::count),
        rate: Some(rate),
        total_ms: times(scan),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// Reads the row `Latency` of the table of threads, and the median if `--latency` was given.
fn times(scan: Scan<'_>) -> Option<Times> {
    let rows = scan.places("Latency ").into_iter();
    let mut rows = rows.map(|at| {
        Scan(&scan.0[at..])
            .after("Latency ")
            .map_or(vec![], Scan::all_millis)
    });
    let [mean, _, max, ..] = rows.find(|row| row.len() >= 3)?[..] else {
        return None;
    };
    let median = scan.after("Latency Distribution").and_then(|rest| {
        let label = ["50.000%", "50%"].into_iter();
        label
            .filter_map(|label| rest.after(label))
            .find_map(Scan::millis)
    });
    Some(Times {
        mean,
        median,
        max,
        rounding: 0.01,
    })
}

const ANCHOR: &str = "threads and";
