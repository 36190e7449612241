//! Writes the histograms of a run as a log for HdrHistogram's tools.
//!
//! `total` and `corrected` have an interval for each second, so that a tool can draw them over time
//! or leave out a part; all intervals of a tag together are the whole run. The other tags have one
//! line each. `corrected` contains requests without a response too, with the time that they were
//! waited for, since the format has no lower bounds. They are in its last line, because that time
//! is known only at the end.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

pub use catamaran_stats::log::Log;
use catamaran_stats::log::{self, Interval};
use catamaran_stats::{Histogram, Slice};

use crate::report::Report;
use crate::timeline::TimeSlice;

/// Writes the log of a run to `to`, one interval after the other.
///
/// # Errors
/// Writing to `to` fails.
pub fn write(report: &Report, to: &mut impl Write) -> io::Result<()> {
    let timeline = report.timeline.coarser(SECOND);
    let end = report.elapsed + report.drain;
    let is_open_loop = report.latency.corrected.is_some();
    let seconds = (0_u32..).zip(&timeline.slices).flat_map(|(index, slice)| {
        let start = timeline.length.saturating_mul(index);
        let length = timeline.length.min(end.saturating_sub(start));
        let total = interval("total", start, length, &slice.total);
        let corrected =
            is_open_loop.then(|| interval("corrected", start, length, &slice.corrected));
        [total].into_iter().chain(corrected)
    });
    let last_start = last_start(&timeline.slices, timeline.length).max(report.elapsed);
    let unanswered = unanswered_interval(report, last_start, end);
    let intervals = of_whole_run(report).chain(seconds).chain(unanswered);
    log::write(to, UNIX_EPOCH + report.started_at, intervals)
}

/// The interval of the requests without a response, with how long they were waited for; `None` if there are none.
fn unanswered_interval(
    report: &Report,
    start: Duration,
    end: Duration,
) -> Option<Interval<'static>> {
    let bounds = report.latency.censored()?.unanswered_bounds();
    if bounds.is_empty() {
        return None;
    }
    Some(Interval {
        tag: "corrected",
        start,
        length: end.saturating_sub(start),
        histogram: Cow::Owned(bounds),
    })
}

/// A table of a log's tags, with the count and the percentiles of each in milliseconds.
pub fn totals(log: &Log) -> String {
    let mut text = format!(
        "{:<16}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}\n",
        "", "count", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"
    );
    for (tag, histogram) in log.totals() {
        let times = [50.0, 90.0, 99.0, 99.9, 100.0].map(|percent| histogram.percentile(percent));
        write!(text, "{tag:<16}{:>12}", histogram.count()).expect("a string takes all");
        for time in times {
            let millis = time.as_secs_f64() * 1000.0;
            write!(text, "{millis:>12.3}").expect("a string takes all");
        }
        text.push('\n');
    }
    text
}

/// The histograms of the whole run that have no values for each second; empty ones are left out.
fn of_whole_run(report: &Report) -> impl Iterator<Item = Interval<'_>> {
    let latency = &report.latency;
    let histograms = [
        ("connect", Some(&latency.connect.histogram)),
        ("first_byte", Some(&latency.first_byte.histogram)),
        ("processing", Some(&latency.processing.histogram)),
        (
            "lateness",
            latency.lateness.as_ref().map(|times| &times.histogram),
        ),
        ("unfinished", Some(&report.unfinished.ages)),
    ];
    histograms.into_iter().filter_map(|(tag, histogram)| {
        let histogram = histogram.filter(|histogram| !histogram.is_empty())?;
        Some(Interval {
            tag,
            start: Duration::ZERO,
            length: report.elapsed,
            histogram: Cow::Borrowed(histogram),
        })
    })
}

/// An interval of the log with the latencies of one slice.
fn interval(
    tag: &'static str,
    start: Duration,
    length: Duration,
    slice: &Slice,
) -> Interval<'static> {
    Interval {
        tag,
        start,
        length,
        histogram: Cow::Owned(Histogram::from(slice)),
    }
}

/// The time at which the last slice begins; each slice has this `length`.
fn last_start(slices: &[TimeSlice], length: Duration) -> Duration {
    let before = slices.len().saturating_sub(1);
    length.saturating_mul(u32::try_from(before).unwrap_or(u32::MAX))
}

const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use catamaran_stats::CensoredLatencies;

    use super::super::sample;
    use super::*;
    use crate::timeline::TimelineRecorder;

    const MS: u64 = 1_000_000;

    /// An open loop of 2.4 s: an answer in its first second, none in the second, two in the third,
    /// and one of them in the drain.
    fn report() -> Report {
        let answers = [(500, 3, 4), (2300, 5, 1200), (2600, 9, 1300)];
        let mut timeline = TimelineRecorder::new(true);
        let mut corrected = CensoredLatencies::new();
        for (at, total, since_due) in answers {
            timeline.answer(at * MS, true, total * MS, since_due * MS);
            corrected.record(Duration::from_millis(since_due));
        }
        corrected.record_waiting(Duration::from_millis(1700));
        corrected.record_failed(Duration::from_millis(1));
        let mut report = sample::report();
        report.elapsed = Duration::from_millis(2400);
        report.drain = Duration::from_millis(300);
        report.timeline = timeline.finish();
        report.latency.total = sample::times([3000, 5000, 9000]);
        report.latency.corrected = Some(corrected.into());
        report
    }

    fn written(report: &Report) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(report, &mut bytes).unwrap();
        bytes
    }

    /// The tag, the start and the length of each line of the log.
    fn lines(text: &[u8]) -> Vec<String> {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("Tag="));
        let facts = lines.map(|line| line.split(',').take(3).collect::<Vec<_>>().join(" "));
        facts.collect()
    }

    #[test]
    fn each_second_has_its_interval() {
        let expected = [
            "connect 0.000 2.400",
            "first_byte 0.000 2.400",
            "processing 0.000 2.400",
            "total 0.000 1.000",
            "corrected 0.000 1.000",
            "total 1.000 1.000",
            "corrected 1.000 1.000",
            "total 2.000 0.700",
            "corrected 2.000 0.700",
            "corrected 2.400 0.300",
        ];
        assert_eq!(lines(&written(&report())), expected);
    }

    #[test]
    fn a_closed_loop_has_no_corrected_intervals() {
        let mut report = report();
        report.latency.corrected = None;
        let lines = lines(&written(&report));
        assert!(
            !lines.iter().any(|line| line.contains("corrected")),
            "{lines:?}"
        );
    }

    #[test]
    fn intervals_add_up_to_the_run() {
        let report = report();
        let log = Log::read(&written(&report)).unwrap();
        let totals = log.totals();
        let whole = report.latency.censored().unwrap().lower_bounds();
        for (tag, expected) in [
            ("total", &report.latency.total.histogram),
            ("corrected", &whole),
        ] {
            let found = &totals[tag];
            assert_eq!(found.count(), expected.count(), "{tag}");
            for percent in [1.0, 50.0, 99.0, 100.0] {
                let (found, expected) = (found.percentile(percent), expected.percentile(percent));
                let apart = found.abs_diff(expected).as_secs_f64();
                assert!(apart <= expected.as_secs_f64() / 500.0, "{tag} {percent}");
            }
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_tag() {
        let log = Log::read(&written(&report())).unwrap();
        let table = totals(&log);
        let rows: Vec<&str> = table.lines().collect();
        assert!(rows[0].ends_with("p99.9 ms      max ms"), "{table}");
        let expected = "total                      3       5.003       9.007       9.007       9.007       9.007";
        assert!(rows.contains(&expected), "{table}");
        assert_eq!(rows.len(), 6, "{table}");
    }
}
