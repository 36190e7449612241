//! Reads the output of siege.

use super::scan::{Scan, number};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `Transactions: 1000 hits`, or since 4.1 at `"transactions": 1000`.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let scan = Scan(text);
    let mut starts = scan.places(IN_JSON);
    let places = scan.places(ANCHOR).into_iter();
    starts.extend(places.filter(|at| {
        let mut words = text[at + ANCHOR.len()..].split_whitespace();
        words.next().and_then(number).is_some() && words.next() == Some("hits")
    }));
    starts.sort_unstable();
    starts
}

/// Reads the report in `block`, which is a list or JSON. The error is that failures or the rate are missing.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    let missing = |label: &'static str| TextFault::Incomplete("siege", label);
    let after_either = |label: &str, key: &str| scan.after(key).or_else(|| scan.after(label));
    let count = |label, key| after_either(label, key).and_then(Scan::count);
    let millis = |label, key| after_either(label, key).and_then(millis_of_seconds);
    let rate = after_either("Transaction rate:", "\"transaction_rate\":").and_then(Scan::number);
    let failed = count("Failed transactions:", "\"failed_transactions\":");
    let failed = failed.ok_or_else(|| missing("Failed transactions"))?;
    // siege counts a response such as 404 as a transaction, but neither as successful nor as failed.
    let transactions = count(ANCHOR, IN_JSON);
    let successful = count("Successful transactions:", "\"successful_transactions\":");
    let good =
        transactions.map(|transactions| successful.unwrap_or(transactions).min(transactions));
    let others = transactions.unwrap_or(0) - good.unwrap_or(0);
    let mean = millis("Response time:", "\"response_time\":");
    let max = millis("Longest transaction:", "\"longest_transaction\":");
    let seconds = millis("Elapsed time:", "\"elapsed_time\":");
    let figures = TextFigures {
        tool: "siege",
        seconds: seconds.map(|millis| millis / 1000.0),
        completed: good,
        failed: Some(failed + others),
        rate: Some(rate.ok_or_else(|| missing("Transaction rate"))?),
        total_ms: mean.zip(max).map(|(mean, max)| Times {
            mean,
            median: None,
            max,
            rounding: 10.0,
        }),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// A time in milliseconds; without a unit it is in seconds.
fn millis_of_seconds(value: Scan<'_>) -> Option<f64> {
    let line = Scan(value.line());
    match line.millis() {
        Some(millis) => Some(millis),
        None => line.number().map(|seconds| seconds * 1000.0),
    }
}

/// The label of the number of responses, with which a report begins.
const ANCHOR: &str = "Transactions:";
/// The same in JSON, in which siege reports since 4.1.
const IN_JSON: &str = "\"transactions\":";
