//! Reads the output of hey, and of oha, which prints almost the same.

use std::collections::BTreeMap;

use super::scan::Scan;
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `Summary:`, the heading that `Slowest:` is below.
pub(super) fn starts(text: &str) -> Vec<usize> {
    Scan(text).starts(ANCHOR, |_| true, |head| head.places("Summary:").pop())
}

pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    let tool = match scan.after("Success rate:") {
        Some(_) => "oha",
        None => "hey",
    };
    let missing = |label: &'static str| TextFault::Incomplete(tool, label);
    let rate = scan.after("Requests/sec:").and_then(Scan::number);
    let statuses = listed(scan.after("Status code distribution:"));
    let errors = listed(scan.after("Error distribution:"));
    if statuses.is_empty() && errors.is_empty() {
        return Err(missing("Status code distribution"));
    }
    let statuses: BTreeMap<u16, u64> = statuses
        .iter()
        .filter_map(|(status, rest)| Some((*status as u16, Scan(rest).count()?)))
        .collect();
    // Requests in flight at the end of the time have not failed.
    let under_way = |why: &str| why.contains("aborted due to deadline");
    let (aborted, failed): (Vec<_>, Vec<_>) = errors.iter().partition(|(_, why)| under_way(why));
    let count = |errors: &[&(u64, &str)]| errors.iter().map(|(count, _)| count).sum::<u64>();
    let millis = |label| scan.after(label).and_then(Scan::millis);
    let median = ["50.00% in", "50%% in", "50% in"];
    let median = median.into_iter().find_map(millis);
    let seconds = millis("Total:").map(|millis| millis / 1000.0);
    let answered: u64 = statuses.values().sum();
    // hey keeps the first million results, but divides the sum of all times by their number.
    let sampled = (tool == "hey" && answered == HEY_MOST).then_some(answered);
    let all = rate
        .zip(seconds)
        .map(|(rate, seconds)| (rate * seconds).round() as u64);
    let told = count(&failed);
    let completed = all
        .filter(|_| sampled.is_some())
        .map_or(answered, |all| all.saturating_sub(told).max(answered));
    // If the list of errors was cut, the number of requests without a status is known only from rate and time, which is
    // rounded.
    let untold = all.map_or(0, |all| {
        all.saturating_sub(completed + told + count(&aborted))
    });
    let is_cut = all.is_some_and(|all| untold > all / UNTOLD_SHARE);
    let failed = if is_cut { told + untold } else { told };
    let sampled = sampled.filter(|_| completed > answered + answered / 1000);
    let of_all =
        |mean: f64| sampled.map_or(mean, |sampled| mean * sampled as f64 / completed as f64);
    let times = millis("Average:").map(of_all).zip(millis(ANCHOR));
    let figures = TextFigures {
        tool,
        seconds,
        completed: Some(completed),
        failed: Some(failed),
        sampled,
        body_bytes: scan.after("Total data:").and_then(|size| size.bytes(1024)),
        statuses,
        rate: Some(rate.ok_or_else(|| missing("Requests/sec"))?),
        total_ms: times.map(|(mean, max)| Times {
            mean,
            median,
            max,
            rounding: 0.1,
        }),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// Reads lines such as `[200] 5000 responses` after a heading: the number in brackets, and the text after it.
fn listed(heading: Option<Scan<'_>>) -> Vec<(u64, &str)> {
    let Some(Scan(text)) = heading else {
        return Vec::new();
    };
    let mut listed = Vec::new();
    for line in text.lines().skip(1) {
        // Names of containers may contain brackets, too.
        let row = line.split('[').skip(1).find_map(|row| {
            let (count, rest) = row.split_once(']')?;
            Some((count.trim().parse::<u64>().ok()?, rest.trim()))
        });
        match row {
            Some(row) => listed.push(row),
            None if line.trim_end().ends_with(':') => break,
            None => {}
        }
    }
    listed
}

const ANCHOR: &str = "Slowest:";

/// The largest part of all requests, as a divisor, that may be missing from statuses and errors because of rounding.
const UNTOLD_SHARE: u64 = 50;

/// The number of results that hey keeps.
const HEY_MOST: u64 = 1_000_000;
