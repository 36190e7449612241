//! Reads the output of ApacheBench, from 1.3 to 2.3.

use super::scan::Scan;
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at the first of the lines about the server, or at the figures
/// if a page has left those lines out.
pub(super) fn starts(text: &str) -> Vec<usize> {
    // The label also occurs in prose. It belongs to a report only with a number, without words after it, and with other
    // lines of a report near it.
    let is_report = |after: Scan<'_>| {
        let has_figure = |text: &str| {
            let mut labels = FIGURES.iter();
            labels.any(|label| Scan(text).find(label, 0).is_some())
        };
        let report = after.0.split(ANCHOR).next().unwrap_or_default();
        // Some pages have lost their line ends, so that other figures follow in the same line.
        after.number().is_some()
            && has_figure(report)
            && (after.is_one_word() || has_figure(after.line()))
    };
    let mut starts = Scan(text).starts(ANCHOR, is_report, |head| {
        let lines = HEAD.iter().filter_map(|label| head.places(label).pop());
        lines.min().or(Some(head.0.len()))
    });
    // A run that ab gave up has no report, only an error.
    let errors = Scan(text).places(ERROR).into_iter();
    starts.extend(errors.filter(|start| error(&text[*start..]).is_some()));
    starts.sort_unstable();
    starts
}

/// Reads the report in `block`. The error is that one of [`FIGURES`] is missing.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    if let Some(why) = error(block) {
        return Ok(gave_up(scan, why));
    }
    let number = |label| scan.after(label).and_then(Scan::number);
    let count = |label| number(label).map(|value| value as u64);
    let missing = |label: &'static str| TextFault::Incomplete("ab", label);
    // A list of only some figures is not a report: its author may have left out what does not fit.
    for label in FIGURES {
        number(label).ok_or_else(|| missing(label.trim_end_matches(':')))?;
    }
    let completed = count("Complete requests:").unwrap_or(0);
    let bytes = count("Total transferred:");
    let failures = Failures::read(scan, count("Failed requests:"));
    // ab counts as complete what broke off, requests without a byte of a response, and requests that could not be
    // written.
    let unwritten = count("Write errors:").unwrap_or(0);
    let unanswered = match bytes {
        Some(0) => completed,
        _ => (failures.unanswered.unwrap_or(0) + unwritten).min(completed),
    };
    let kept = count("Keep-Alive requests:");
    let figures = TextFigures {
        tool: "ab",
        clients: count(ANCHOR),
        seconds: number("Time taken for tests:"),
        completed: Some(completed - unanswered),
        failed: Some(unanswered),
        other_length: failures
            .other_length
            .map(|other| other.saturating_sub(unwritten)),
        unexplained: failures.unexplained,
        non_2xx: Some(count("Non-2xx responses:").unwrap_or(0)),
        kept,
        keep_alive: Some(kept.is_some()),
        bytes,
        body_bytes: count("HTML transferred:"),
        document_bytes: count("Document Length:"),
        rate: number("Requests per second:"),
        total_ms: times(scan),
        software: scan
            .after("Server Software:")
            .map(|rest| rest.line().to_owned()),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// The error with which ab ended, at the beginning of `text`, such as `apr_socket_recv: Connection reset by peer
/// (104)`.
fn error(text: &str) -> Option<&str> {
    let line = text.strip_prefix(ERROR)?.lines().next()?;
    let (_, why) = line.split_once(": ")?;
    let (words, number) = why.trim_end().rsplit_once(" (")?;
    number.strip_suffix(')')?.parse::<u32>().ok()?;
    Some(words)
}

/// The figures of a run that ab gave up; ab then prints no report.
fn gave_up(scan: Scan<'_>, why: &str) -> PublishedText {
    let completed = scan.after("Total of").and_then(Scan::count);
    PublishedText::Run(Box::new(TextFigures {
        tool: "ab",
        completed: Some(completed.unwrap_or(0)),
        gave_up: Some(why.to_owned()),
        ..TextFigures::default()
    }))
}

/// The failures that ab counts, by reason.
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
        let line = scan.after("Failed requests:");
        let causes = line.and_then(|line| line.after("(Connect:"));
        let Some(causes) = causes.and_then(|causes| causes.0.split(')').next()) else {
            return Self {
                unexplained: failed,
                ..Self::default()
            };
        };
        let count = |label| Scan(causes).after(label).and_then(Scan::count).unwrap_or(0);
        let connect = Scan(causes).count().unwrap_or(0);
        let received = count("Receive:");
        Self {
            // A reset counts as a receive error and, when poll reports it, also as an exception.
            unanswered: Some(connect + received.max(count("Exceptions:"))),
            // A response that broke off is counted again for its length.
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

/// A label that each report has once, before its figures.
const ANCHOR: &str = "Concurrency Level:";

/// The beginning of the errors of ab's library.
const ERROR: &str = "apr_";

/// Lines with figures that each report has.
const FIGURES: [&str; 4] = [
    "Time taken for tests:",
    "Complete requests:",
    "Failed requests:",
    "Requests per second:",
];
/// Lines about the server, which stand before the anchor.
const HEAD: [&str; 4] = [
    "Server Software:",
    "Server Hostname:",
    "Document Path:",
    "Document Length:",
];
