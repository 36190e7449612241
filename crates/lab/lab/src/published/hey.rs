//! Reads the output of hey, and of oha, which prints almost the same.

use std::collections::BTreeMap;

use super::scan::Scan;
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `Summary:`, the heading that `Slowest:` is below.
pub(super) fn starts(text: &str) -> Vec<usize> {
    Scan(text).starts(ANCHOR, |_| true, |head| head.places("Summary:").pop())
}

/// Reads the report in `block`. The error is that the rate is missing, or both lists of responses and errors are.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    let tool = match scan.after("Success rate:") {
        Some(_) => "oha",
        None => "hey",
    };
    let missing = |label: &'static str| TextFault::Incomplete(tool, label);
    let rate = scan.after("Requests/sec:").and_then(Scan::number);
    let rate = rate.ok_or_else(|| missing("Requests/sec"));
    let status_rows = numbered_rows(scan.after("Status code distribution:"));
    let error_rows = numbered_rows(scan.after("Error distribution:"));
    if status_rows.is_empty() && error_rows.is_empty() {
        return Err(missing("Status code distribution"));
    }
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    for (status, responses) in status_rows {
        statuses.extend(Scan(responses).count().map(|count| (status as u16, count)));
    }
    let millis = |label| scan.after(label).and_then(Scan::millis);
    let seconds = millis("Total:").map(|millis| millis / 1000.0);
    let requests = match (&rate, seconds) {
        (Ok(rate), Some(seconds)) => Some((rate * seconds).round() as u64),
        _ => None,
    };
    let counts = RequestCounts::of(tool, requests, statuses.values().sum(), &error_rows);
    let mut mean = millis("Average:");
    if let Some(sampled) = counts.sampled {
        // The mean is the sum of all times, divided by the number of results that hey has kept.
        mean = mean.map(|mean| mean * sampled as f64 / counts.completed as f64);
    }
    let median = ["50.00% in", "50%% in", "50% in"]
        .into_iter()
        .find_map(millis);
    let figures = TextFigures {
        tool,
        seconds,
        completed: Some(counts.completed),
        failed: Some(counts.failed),
        sampled: counts.sampled,
        body_bytes: scan.after("Total data:").and_then(|size| size.bytes(1024)),
        statuses,
        rate: Some(rate?),
        total_ms: mean.zip(millis(ANCHOR)).map(|(mean, max)| Times {
            mean,
            median,
            max,
            rounding: 0.1,
        }),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// The numbers of requests, as far as the lists of statuses and errors and the rate tell them.
struct RequestCounts {
    completed: u64,
    failed: u64,
    /// The number of results that hey has kept; `None`: all.
    sampled: Option<u64>,
}

impl RequestCounts {
    /// The counts of a run with `requests` requests by its rate and time, `answered` of which have a status.
    fn of(tool: &str, requests: Option<u64>, answered: u64, errors: &[(u64, &str)]) -> Self {
        // Requests in flight at the end of the time have not failed.
        let is_aborted = |why: &str| why.contains("aborted due to deadline");
        let (mut aborted, mut failed) = (0, 0);
        for (count, why) in errors {
            if is_aborted(why) {
                aborted += count;
            } else {
                failed += count;
            }
        }
        let Some(requests) = requests else {
            return Self {
                completed: answered,
                failed,
                sampled: None,
            };
        };
        let mut completed = answered;
        // hey has dropped the results beyond its maximum. What did not fail was answered.
        if tool == "hey" && answered == HEY_RESULTS_MAX {
            completed = requests.saturating_sub(failed).max(answered);
        }
        // If the list of errors was cut, the number of requests without a status is known only from rate and time,
        // which is rounded.
        let unlisted = requests.saturating_sub(completed + failed + aborted);
        if unlisted > requests / UNLISTED_SHARE {
            failed += unlisted;
        }
        // A smaller excess may come from the rounding of rate and time.
        let is_sampled = completed > answered + answered / 1000;
        Self {
            completed,
            failed,
            sampled: is_sampled.then_some(answered),
        }
    }
}

/// Reads lines such as `[200] 5000 responses` after a heading: the number in brackets, and the text after it.
fn numbered_rows(heading: Option<Scan<'_>>) -> Vec<(u64, &str)> {
    let Some(Scan(text)) = heading else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        // Names of containers may contain brackets, too.
        let row = line.split('[').skip(1).find_map(|row| {
            let (number, words) = row.split_once(']')?;
            Some((number.trim().parse::<u64>().ok()?, words.trim()))
        });
        match row {
            Some(row) => rows.push(row),
            // The next heading.
            None if line.trim_end().ends_with(':') => break,
            None => {}
        }
    }
    rows
}

/// A label that each report has once; prose does not have it.
const ANCHOR: &str = "Slowest:";

/// The largest part of all requests, as a divisor, that may be missing from statuses and errors because of rounding.
const UNLISTED_SHARE: u64 = 50;

/// The number of results that hey keeps.
const HEY_RESULTS_MAX: u64 = 1_000_000;
