//! Reads the output of ApacheBench, from 1.3 to 2.3.

use super::scan::Scan;
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at the first of the lines about the server, or at the figures
/// if a page has left those lines out.
pub(super) fn starts(text: &str) -> Vec<usize> {
    // A label without a number is a sentence about ab.
    let is_report = |rest: Scan<'_>| rest.number().is_some();
    Scan(text).starts(ANCHOR, is_report, |head| {
        let first = HEAD.iter().filter_map(|label| head.places(label).pop());
        first.min().or(Some(head.0.len()))
    })
}

pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    let number = |label| scan.after(label).and_then(Scan::number);
    let count = |label| number(label).map(|value| value as u64);
    let missing = |label: &'static str| TextFault::Incomplete("ab", label);
    let completed = count("Complete requests:").ok_or_else(|| missing("Complete requests"))?;
    let rate = number("Requests per second:").ok_or_else(|| missing("Requests per second"))?;
    let bytes = count("Total transferred:");
    let failures = Failures::read(scan, count("Failed requests:"));
    // ab counts responses that broke off as complete, and also requests without a byte in response.
    let unanswered = match bytes {
        Some(0) => completed,
        _ => failures.unanswered.unwrap_or(0).min(completed),
    };
    let figures = TextFigures {
        tool: "ab",
        clients: count(ANCHOR),
        seconds: number("Time taken for tests:"),
        completed: Some(completed - unanswered),
        failed: Some(unanswered),
        other_length: failures.other_length,
        unexplained: failures.unexplained,
        non_2xx: Some(count("Non-2xx responses:").unwrap_or(0)),
        kept: count("Keep-Alive requests:"),
        bytes,
        body_bytes: count("HTML transferred:"),
        document_bytes: count("Document Length:"),
        rate: Some(rate),
        total_ms: times(scan),
        software: scan
            .after("Server Software:")
            .map(|rest| rest.line().to_owned()),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// The failures that ab counts, by their reasons.
#[derive(Default)]
struct Failures {
    unanswered: Option<u64>,
    other_length: Option<u64>,
    unexplained: u64,
}

impl Failures {
    /// Reads `Failed requests: 17` and, below it, `(Connect: 0, Receive: 0, Length: 17, Exceptions: 0)`.
    fn read(scan: Scan<'_>, failed: Option<u64>) -> Self {
        let Some(failed @ 1..) = failed else {
            return Self::default();
        };
        let causes = scan
            .after("Failed requests:")
            .and_then(|rest| rest.after("(Connect:"))
            .and_then(|rest| rest.0.split(')').next());
        let Some(causes) = causes else {
            return Self {
                unexplained: failed,
                ..Self::default()
            };
        };
        let count = |label| Scan(causes).after(label).and_then(Scan::count).unwrap_or(0);
        let connect = Scan(causes).count().unwrap_or(0);
        let received = count("Receive:");
        Self {
            // A reset counts as a receive error and, by poll, as an exception.
            unanswered: Some(connect + received.max(count("Exceptions:"))),
            // A response that broke off counts a second time, for its length.
            other_length: Some(count("Length:").saturating_sub(received)),
            unexplained: 0,
        }
    }
}

/// Reads the row `Total:` of the table of connection times: min, mean, deviation, median, max. ab
/// prints whole milliseconds; before 2.0, or with its confidence lines off, there are three
/// columns.
fn times(scan: Scan<'_>) -> Option<Times> {
    let values = scan.after("Processing:")?.after("Total:")?.numbers();
    let (mean, median, max) = match values[..] {
        [_, mean, _, median, max, ..] => (mean, Some(median), max),
        [_, mean, max] => (mean, None, max),
        _ => return None,
    };
    Some(Times {
        mean,
        median,
        max,
        rounding: 1.0,
    })
}

const ANCHOR: &str = "Concurrency Level:";
const HEAD: [&str; 4] = [
    "Server Software:",
    "Server Hostname:",
    "Document Path:",
    "Document Length:",
];
