//! Renders the report as one row of a table, so that many runs can be collected in one file;
//! docs/bench.md is the reference of its columns.

use std::borrow::Cow;
use std::time::Duration;

use catamaran_stats::{Histogram, Spread};

use super::per_second;
use super::verdict::Judgement;
use crate::report::{Report, Warning, ratio};

/// The header line with the names of the columns, with a line end.
pub fn header() -> String {
    let mut names: Vec<String> = COLUMNS.iter().map(|&(name, _)| name.to_owned()).collect();
    for (times, _) in TIMES {
        for (figure, _) in FIGURES {
            names.push(format!("{times}_{figure}_us"));
        }
    }
    names.push("warnings".to_owned());
    line(&names)
}

/// The run as a row, with a line end. Figures that it does not have are empty.
pub fn row(report: &Report) -> String {
    let mut cells: Vec<String> = COLUMNS.iter().map(|(_, cell)| cell(report)).collect();
    for (_, column) in TIMES {
        let times = column(report).filter(|times| !times.is_empty());
        for (_, figure) in FIGURES {
            cells.push(match &times {
                Some(times) => figure(times).as_micros().to_string(),
                None => String::new(),
            });
        }
    }
    let warnings: Vec<&str> = report.warnings.iter().map(Warning::token).collect();
    cells.push(warnings.join(" "));
    line(&cells)
}

fn line(cells: &[String]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells).expect("memory takes all");
    let line = writer.into_inner().expect("memory takes all");
    String::from_utf8(line).expect("cells are text")
}

type Cell = fn(&Report) -> String;

type LatencyColumn = for<'a> fn(&'a Report) -> Option<Cow<'a, Histogram>>;

type LatencyFigure = fn(&Histogram) -> Duration;

/// A figure of the spread over whole seconds; empty if there was no whole second.
fn spread(report: &Report, figure: impl Fn(&Spread) -> f64) -> String {
    match Spread::of(&report.whole_seconds()) {
        Some(spread) => format!("{:.3}", figure(&spread)),
        None => String::new(),
    }
}

// The verdict comes first, so that readers of a row see whether its figures count.
const COLUMNS: [(&str, Cell); 26] = [
    ("verdict", |report| Judgement::of(report).word.to_owned()),
    ("started_at_s", |report| {
        format!("{:.3}", report.started_at.as_secs_f64())
    }),
    ("url", |report| report.subject.url.clone()),
    ("threads", |report| report.threads.to_string()),
    ("concurrency", |report| report.concurrency.to_string()),
    ("rate_asked_per_s", |report| {
        report
            .subject
            .rate
            .map_or_else(String::new, |rate| rate.to_string())
    }),
    ("elapsed_s", |report| {
        format!("{:.6}", report.elapsed.as_secs_f64())
    }),
    ("started", |report| report.requests.started.to_string()),
    ("completed", |report| report.requests.completed.to_string()),
    ("failed", |report| report.requests.failed.to_string()),
    ("unfinished", |report| report.unfinished.total().to_string()),
    ("non_2xx", |report| report.requests.non_2xx.to_string()),
    ("misses", |report| {
        let operations = report.operations;
        operations.map_or_else(String::new, |operations| operations.misses.to_string())
    }),
    ("kept_alive", |report| {
        report.requests.kept_alive.to_string()
    }),
    ("connections_opened", |report| {
        report.connections.opened.to_string()
    }),
    ("sent_bytes", |report| report.bytes.sent.to_string()),
    ("received_bytes", |report| report.bytes.received.to_string()),
    ("received_body_bytes", |report| {
        report.bytes.received_bodies.to_string()
    }),
    ("requests_per_s", |report| {
        format!(
            "{:.3}",
            per_second(report.in_span.completed, report.elapsed)
        )
    }),
    ("second_min", |report| spread(report, |spread| spread.min)),
    ("second_max", |report| spread(report, |spread| spread.max)),
    ("second_variation", |report| {
        spread(report, |spread| spread.variation())
    }),
    ("generator_cpu_s", |report| {
        format!("{:.6}", report.generator.cpu_s)
    }),
    ("generator_cpu_us_per_request", |report| {
        let micros = report.generator.cpu_s * 1e6;
        format!("{:.3}", ratio(micros, report.requests.completed as f64))
    }),
    ("drain_s", |report| {
        format!("{:.6}", report.drain.as_secs_f64())
    }),
    ("corrected_unanswered", |report| {
        let corrected = report.latency.censored();
        corrected.map_or_else(String::new, |times| times.unanswered().to_string())
    }),
];

const TIMES: [(&str, LatencyColumn); 5] = [
    ("connect", |report| {
        Some(Cow::Borrowed(&report.latency.connect.histogram))
    }),
    ("first_byte", |report| {
        Some(Cow::Borrowed(&report.latency.first_byte.histogram))
    }),
    ("total", |report| {
        Some(Cow::Borrowed(&report.latency.total.histogram))
    }),
    ("corrected", |report| {
        let corrected = report.latency.censored();
        corrected.map(|times| Cow::Owned(times.lower_bounds()))
    }),
    ("lateness", |report| {
        let lateness = report.latency.lateness.as_ref();
        lateness.map(|times| Cow::Borrowed(&times.histogram))
    }),
];

const FIGURES: [(&str, LatencyFigure); 8] = [
    ("min", Histogram::min),
    ("mean", Histogram::mean),
    ("p50", Histogram::median),
    ("p90", |times| times.percentile(90.0)),
    ("p99", |times| times.percentile(99.0)),
    ("p99_9", |times| times.percentile(99.9)),
    ("p99_99", |times| times.percentile(99.99)),
    ("max", Histogram::max),
];

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_column_has_a_name_and_a_cell() {
        let mut report = sample::report();
        report.warnings = vec![
            Warning::NotSteady(catamaran_stats::WarmUp::Moving(0.1)),
            Warning::Short,
        ];
        report.subject.url = "http://a/?b,\"c\"".to_owned();
        let (header, row) = (header(), row(&report));
        assert!(
            header.starts_with("verdict,started_at_s,url,threads,"),
            "{header}"
        );
        assert!(
            row.starts_with(
                "doubtful,1700000000.000,\"http://a/?b,\"\"c\"\"\",1,1,,0.012000,3,3,0,0,"
            ),
            "{row}"
        );
        assert!(row.ends_with(",not-steady short\n"), "{row}");
        let row = row.replace("http://a/?b,", "");
        assert_eq!(header.matches(',').count(), row.matches(',').count());
    }

    #[test]
    fn the_row_of_an_invalid_run_begins_with_that() {
        let mut report = sample::report();
        assert!(row(&report).starts_with("valid,"));
        let p99 = Duration::from_millis(7);
        report.warnings = vec![Warning::GeneratorLate { p99 }];
        assert!(row(&report).starts_with("invalid,"));
    }
}
