//! Reads the lines of JMeter's summariser.

use super::scan::{Scan, short_count};
use super::{PublishedText, TextFault, TextFigures, Times};

/// The bytes at which runs begin: at the first line of sums, and at each line whose sums are smaller than before.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut last_samples = None;
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(row) = SummaryRow::read(line) {
            if last_samples.is_none_or(|last| row.samples < last) {
                starts.push(line_start);
            }
            last_samples = Some(row.samples);
        } else if line.contains("end of run") {
            last_samples = None;
        }
        line_start += line.len();
    }
    starts
}

/// Reads the last line of sums in `block`. The error is that there is none.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let mut rows = block.lines().filter_map(SummaryRow::read);
    let row = rows
        .next_back()
        .ok_or(TextFault::Incomplete("JMeter", "summary ="))?;
    let figures = TextFigures {
        tool: "JMeter",
        seconds: row.seconds,
        completed: Some(row.samples.saturating_sub(row.failed)),
        failed: Some(row.failed),
        rate: row.rate,
        total_ms: Some(Times {
            mean: row.mean,
            median: None,
            max: row.max,
            rounding: 1.0,
        }),
        ..TextFigures::default()
    };
    Ok(PublishedText::Run(Box::new(figures)))
}

/// A line of sums: `summary =   1000 in 00:00:05 =  200.0/s Avg:    10 Min:     0 Max:   100 Err:
/// 0 (0.00%)`. The word before the first sign is the summariser's name. Lines with `+` cover one
/// interval.
struct SummaryRow {
    samples: u64,
    seconds: Option<f64>,
    rate: Option<f64>,
    mean: f64,
    max: f64,
    failed: u64,
}

impl SummaryRow {
    /// Reads a line of sums; `None` for other lines.
    fn read(line: &str) -> Option<Self> {
        let (_, sums) = line.split_once('=')?;
        let scan = Scan(sums);
        let value = |label| scan.after(label).and_then(Scan::number);
        let (samples, rest) = sums.split_once(" in ")?;
        let (span, rate) = rest.split_once('=')?;
        let rate = rate.split_whitespace().next()?;
        Some(Self {
            samples: short_count(samples.trim())?,
            seconds: seconds(span.trim()),
            rate: Scan(rate.strip_suffix("/s")?).number(),
            mean: value("Avg:")?,
            max: value("Max:")?,
            failed: value("Err:")? as u64,
        })
    }
}

/// Reads a time such as `00:01:05`, or `65.2s` before version 2.12, in seconds.
fn seconds(span: &str) -> Option<f64> {
    if !span.contains(':') {
        return span.trim_end_matches('s').trim().parse().ok();
    }
    span.split(':').try_fold(0.0, |sum, part| {
        Some(sum * 60.0 + part.parse::<f64>().ok()?)
    })
}
