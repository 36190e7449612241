//! Reads the output of wrk and wrk2.

use super::scan::{Scan, number, word_before};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `2 threads and 100 connections`.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let scan = Scan(text);
    let places = [
        (Mark::Clients, scan.places(ANCHOR)),
        (Mark::Table, scan.places(TABLE)),
        (Mark::End, scan.places(END)),
    ];
    let mut marks: Vec<(usize, Mark)> = places
        .into_iter()
        .flat_map(|(mark, places)| places.into_iter().map(move |at| (at, mark)))
        .filter(|(at, mark)| mark.is_of_report(text, *at))
        .collect();
    marks.sort_unstable();
    let mut starts = Vec::new();
    let mut open: Option<Mark> = None;
    let mut from = 0;
    for (at, mark) in marks {
        if open.is_none_or(|last| mark <= last) {
            starts.push(from + beginning(&text[from..at]));
        }
        open = (mark != Mark::End).then_some(mark);
        from = at + 1;
    }
    starts
}

/// A line by which a report is known, in the order of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Clients,
    Table,
    End,
}

impl Mark {
    /// Whether the mark's text at `at` belongs to a report of wrk, and not to prose or to the output of another tool.
    fn is_of_report(self, text: &str, at: usize) -> bool {
        match self {
            Self::Clients => {
                let around = Scan(&text[at + ANCHOR.len()..]);
                let has_numbers =
                    word_before(text, at).and_then(number).is_some() && around.number().is_some();
                let has_table = around.find(TABLE, 0).is_some_and(|table| table < NEAR);
                let before = text[..at]
                    .char_indices()
                    .rev()
                    .nth(NEAR)
                    .map_or(0, |(from, _)| from);
                has_numbers && (has_table || text[before..at].contains(" test @ "))
            }
            Self::Table => text[at + TABLE.len()..].trim_start().starts_with("Avg"),
            Self::End => {
                let rest = Scan(&text[at + END.len()..]);
                rest.number().is_some()
                    && rest
                        .find("Transfer/sec:", 0)
                        .is_some_and(|transfer| transfer < NEAR)
            }
        }
    }
}

/// The byte in `head`, the text before a report's first mark, at which the report begins: at its first line, at the
/// last lines of wrk2's histogram, or at the sum of requests; the end of `head` if it has none of them.
fn beginning(head: &str) -> usize {
    let scan = Scan(head);
    let running = scan
        .places("Running")
        .pop()
        .filter(|at| head[*at..].contains(" test @ "));
    let sum = || {
        let at = head.rfind(" requests in")?;
        Some(head[..at].rfind('\n').map_or(0, |line| line + 1))
    };
    let histogram = || {
        head.rfind(HISTOGRAM_END)
            .filter(|_| head.contains(" requests in"))
    };
    running
        .or_else(histogram)
        .or_else(sum)
        .unwrap_or(head.len())
}

pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    // In a run of less than 10 s wrk2 does not calibrate, and prints no rate of each thread.
    let has_no_rate = || {
        scan.after("Req/Sec")
            .is_some_and(|rest| rest.0.trim_start().starts_with("-nan"))
    };
    let is_wrk2 = WRK2.iter().any(|words| block.contains(words)) || has_no_rate();
    let tool = if is_wrk2 { "wrk2" } else { "wrk" };
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
        asked_seconds: scan
            .after("Running")
            .and_then(Scan::millis)
            .map(|millis| millis / 1000.0),
        // A client whose connect failed has no connection for the whole run.
        unconnected: error("connect"),
        failed: Some(error("read") + error("write")),
        late: Some(error("timeout")),
        // The line counts responses that are neither 2xx nor 3xx, so a missing line does not mean that all were 2xx.
        non_2xx: scan
            .after("Non-2xx or 3xx responses:")
            .and_then(Scan::count),
        bytes: Scan(&block[summary..])
            .after_comma()
            .and_then(|size| size.bytes(1024)),
        rate: Some(rate),
        deviation_ms: row(scan).map(|[_, deviation, _]| deviation),
        total_ms: times(scan),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// The mean, the deviation and the maximum in the row `Latency` of the table of threads.
fn row(scan: Scan<'_>) -> Option<[f64; 3]> {
    let rows = scan.places("Latency ").into_iter();
    rows.filter_map(|at| Scan(&scan.0[at..]).after("Latency "))
        .find_map(|rest| rest.all_millis().first_chunk().copied())
}

/// The times in the row `Latency`, with the median if `--latency` was given.
fn times(scan: Scan<'_>) -> Option<Times> {
    let [mean, _, max] = row(scan)?;
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
const TABLE: &str = "Thread Stats";
const END: &str = "Requests/sec:";

/// The last lines of the histogram of wrk2.
const HISTOGRAM_END: &str = "#[Mean ";

/// Words that only wrk2 prints.
const WRK2: [&str; 3] = ["Thread calibration", "(HdrHistogram", HISTOGRAM_END];

/// The most bytes between lines that follow each other, with what logs write before them.
const NEAR: usize = 300;
