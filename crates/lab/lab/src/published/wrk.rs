//! Reads the output of wrk and wrk2.

use super::scan::{Scan, number, word_before};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which reports begin: at `2 threads and 100 connections`.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let mut marks: Vec<(usize, Mark)> = Vec::new();
    for (mark, label) in [
        (Mark::Clients, ANCHOR),
        (Mark::Table, TABLE),
        (Mark::End, END),
    ] {
        let places = Scan(text).places(label).into_iter();
        let of_reports = places.filter(|place| mark.is_of_report(text, *place));
        marks.extend(of_reports.map(|place| (place, mark)));
    }
    marks.sort_unstable();
    let mut starts = Vec::new();
    // The last mark of a report that has not ended yet. A mark that does not come after it begins a new report.
    let mut last_mark: Option<Mark> = None;
    let mut searched_from = 0;
    for (place, mark) in marks {
        if last_mark.is_none_or(|last| mark <= last) {
            starts.push(searched_from + beginning(&text[searched_from..place]));
        }
        last_mark = (mark != Mark::End).then_some(mark);
        searched_from = place + 1;
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
        let is_near =
            |after: Scan<'_>, label| after.find(label, 0).is_some_and(|offset| offset < NEAR);
        match self {
            Self::Clients => {
                let after = Scan(&text[at + ANCHOR.len()..]);
                let has_threads = word_before(text, at).and_then(number).is_some();
                let has_numbers = has_threads && after.number().is_some();
                let mut chars_before = text[..at].char_indices().rev();
                let near_start = chars_before.nth(NEAR).map_or(0, |(start, _)| start);
                let has_first_line = text[near_start..at].contains(" test @ ");
                has_numbers && (has_first_line || is_near(after, TABLE))
            }
            Self::Table => text[at + TABLE.len()..].trim_start().starts_with("Avg"),
            Self::End => {
                let after = Scan(&text[at + END.len()..]);
                after.number().is_some() && is_near(after, "Transfer/sec:")
            }
        }
    }
}

/// The byte in `head`, the text before a report's first mark, at which the report begins: at its first line, at the
/// last lines of wrk2's histogram, or at the sum of requests; the end of `head` if it has none of them.
fn beginning(head: &str) -> usize {
    if let Some(first_line) = Scan(head).places("Running").pop()
        && head[first_line..].contains(" test @ ")
    {
        return first_line;
    }
    let Some(sum) = head.rfind(" requests in") else {
        return head.len();
    };
    let line_of_sum = head[..sum].rfind('\n').map_or(0, |end| end + 1);
    head.rfind(HISTOGRAM_END).unwrap_or(line_of_sum)
}

/// Reads the report in `block`. The error is that the rate or the number of requests is missing.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let scan = Scan(block);
    // In a run of less than 10 s wrk2 does not calibrate, and prints no rate of each thread.
    let thread_rate = scan.after("Req/Sec");
    let has_no_rate = thread_rate.is_some_and(|rate| rate.0.trim_start().starts_with("-nan"));
    let is_wrk2 = has_no_rate || WRK2.iter().any(|words| block.contains(words));
    let tool = if is_wrk2 { "wrk2" } else { "wrk" };
    let missing = |label: &'static str| TextFault::Incomplete(tool, label);
    let rate = scan.after("Requests/sec:").and_then(Scan::number);
    let rate = rate.ok_or_else(|| missing("Requests/sec"))?;
    let summary = scan
        .find(" requests in", 0)
        .or_else(|| block.find(" requests in"));
    let summary = summary.ok_or_else(|| missing("requests in"))?;
    let completed = word_before(block, summary).and_then(number);
    let seconds_after = |text, label| {
        let millis = Scan(text).after(label)?.millis()?;
        Some(millis / 1000.0)
    };
    let errors = scan.after("Socket errors:").map(|line| Scan(line.line()));
    let error = |label| {
        let count = errors.and_then(|errors| errors.after(label));
        count.and_then(Scan::count).unwrap_or(0)
    };
    let figures = TextFigures {
        tool,
        clients: scan.after(ANCHOR).and_then(Scan::count),
        seconds: seconds_after(&block[summary..], "requests in"),
        completed: completed.map(|count| count as u64),
        asked_seconds: seconds_after(block, "Running"),
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
    let median = scan.after("Latency Distribution").and_then(|percentiles| {
        // wrk2 prints more digits.
        let mut labels = ["50.000%", "50%"].into_iter();
        labels.find_map(|label| percentiles.after(label)?.millis())
    });
    Some(Times {
        mean,
        median,
        max,
        rounding: 0.01,
    })
}

/// The marks of a report: in its first lines, in its table of threads, and in its last lines.
const ANCHOR: &str = "threads and";
const TABLE: &str = "Thread Stats";
const END: &str = "Requests/sec:";

/// The last lines of the histogram of wrk2.
const HISTOGRAM_END: &str = "#[Mean ";

/// Words that only wrk2 prints.
const WRK2: [&str; 3] = ["Thread calibration", "(HdrHistogram", HISTOGRAM_END];

/// The most bytes between lines that follow each other, with what logs write before them.
const NEAR: usize = 300;
