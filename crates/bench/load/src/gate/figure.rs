//! The figures of a run with their confidence intervals.

use catamaran_stats::estimate::{self, BLOCKS_MAX, Hits};
use catamaran_stats::{Histogram, LatencyFloor};

use crate::clock::millis;
use crate::report::Report;
use crate::timeline::TimeSlice;

/// A figure of a run with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) value: Option<f64>,
    /// The ends of the confidence interval. An end is `None` if it lies among requests without a response; the interval
    /// is `None` if the run has too few parts for one.
    pub(super) interval: Option<(Option<f64>, Option<f64>)>,
    /// The number of independent values that the parts of the run are worth, which is smaller if neighbouring parts are
    /// alike; `None` without an interval.
    pub(super) independent: Option<f64>,
}

/// The number of complete responses per second.
pub(super) fn rate(report: &Report) -> Figure {
    let seconds = report.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let value = report.in_span.completed as f64 / seconds;
    let responses: Vec<f64> = blocks(report)
        .iter()
        .map(|block| block.total.count() as f64)
        .collect();
    let mean = estimate::mean(&responses);
    let interval = mean.map(|mean| {
        // Turns responses per block into responses per second.
        let scale = if mean.value > 0.0 {
            value / mean.value
        } else {
            0.0
        };
        (Some((mean.low * scale).max(0.0)), Some(mean.high * scale))
    });
    Figure {
        value: Some(value),
        interval,
        independent: mean.map(|mean| mean.independent),
    }
}

/// The share of requests that failed, had no response, or had one that was not 2xx. `lacks` of the failed ones are left
/// out: they failed because this machine lacked something, such as ports.
pub(super) fn errors(report: &Report, lacks: u64) -> Figure {
    let counts = &report.requests;
    let unanswered = report.unfinished.total();
    let errors = counts.failed.saturating_sub(lacks) + counts.non_2xx + unanswered;
    let value = errors as f64 / counts.started.saturating_sub(lacks).max(1) as f64;
    let mut hits: Vec<Hits> = blocks(report)
        .iter()
        .map(|block| {
            let requests = block.total.count() + block.failed;
            Hits {
                hits: (block.failed + block.non_2xx).min(requests),
                of: requests,
            }
        })
        .collect();
    // It is not known when requests without a response were due, so each block gets an equal part of them.
    let parts = hits.len().max(1) as u64;
    for (index, block) in (0..).zip(&mut hits) {
        let part = unanswered / parts + u64::from(index < unanswered % parts);
        block.hits += part;
        block.of += part;
    }
    let share = estimate::share(&hits);
    let interval = share.map(|share| {
        // The blocks may count other requests than the whole run: the interval is moved to the run's share.
        let scale = if share.value > 0.0 {
            value / share.value
        } else {
            1.0
        };
        (Some(share.low * scale), Some((share.high * scale).min(1.0)))
    });
    Figure {
        value: Some(value),
        interval,
        independent: share.map(|share| share.independent),
    }
}

/// A percentile of latency in milliseconds; in an open loop, latency counts from when a request was due. Requests
/// without a response count as slower than all others.
pub(super) fn percentile(report: &Report, percent: f64) -> Figure {
    let value = bound_at(report, percent).at_least;
    let value_us = u64::try_from(value.as_micros()).unwrap_or(u64::MAX);
    let is_open = report.latency.corrected.is_some();
    let hits: Vec<Hits> = blocks(report)
        .iter()
        .map(|block| {
            let latencies = if is_open {
                &block.corrected
            } else {
                &block.total
            };
            Hits {
                hits: latencies.count_above(value_us) + block.failed,
                of: latencies.count() + block.failed,
            }
        })
        .collect();
    let range = estimate::percents(percent, &hits);
    let interval = range.map(|range| {
        let low = bound_at(report, range.low).at_least;
        let high = bound_at(report, range.high.min(100.0));
        let has_end = high.is_exact && range.high < 100.0;
        (Some(millis(low)), has_end.then(|| millis(high.at_least)))
    });
    Figure {
        value: Some(millis(value)),
        interval,
        independent: range.map(|range| range.independent),
    }
}

/// A percentile of the latency of all requests.
fn bound_at(report: &Report, percent: f64) -> LatencyFloor {
    if let Some(corrected) = report.latency.censored() {
        return corrected.percentile(percent);
    }
    let answered: &Histogram = &report.latency.total.histogram;
    let requests = &report.requests;
    // A response of another length counts as failed, but it was received.
    let unanswered = requests.started.saturating_sub(requests.completed);
    let total = (answered.count() + unanswered).max(1) as f64;
    // Requests without a response are slower than all others, so the percentile is a higher one of the answered ones.
    let among_answered = percent * total / answered.count().max(1) as f64;
    LatencyFloor {
        at_least: answered.percentile(among_answered.min(100.0)),
        is_exact: among_answered <= 100.0,
    }
}

/// The parts of equal length into which the measured time is divided to estimate intervals.
fn blocks(report: &Report) -> Vec<TimeSlice> {
    report.timeline.blocks(report.elapsed, BLOCKS_MAX)
}
