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

pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    let missing = |label: &'static str| TextFault::Incomplete("siege", label);
    let either = |label: &str, key: &str| scan.after(key).or_else(|| scan.after(label));
    let rate = either("Transaction rate:", "\"transaction_rate\":").and_then(Scan::number);
    let failed = either("Failed transactions:", "\"failed_transactions\":").and_then(Scan::count);
    let millis = |label, key| either(label, key).and_then(in_seconds);
    let failed = failed.ok_or_else(|| missing("Failed transactions"))?;
    // siege counts a response such as 404 as a transaction, but neither as successful nor as failed.
    let completed = either(ANCHOR, IN_JSON).and_then(Scan::count);
    let good = either("Successful transactions:", "\"successful_transactions\":");
    let good = good.and_then(Scan::count).or(completed);
    let good = good.zip(completed).map(|(good, all)| good.min(all));
    let others = completed.zip(good).map_or(0, |(all, good)| all - good);
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
fn in_seconds(rest: Scan<'_>) -> Option<f64> {
    let line = Scan(rest.line());
    line.millis()
        .or_else(|| line.number().map(|seconds| seconds * 1000.0))
}

const ANCHOR: &str = "Transactions:";
const IN_JSON: &str = "\"transactions\":";
