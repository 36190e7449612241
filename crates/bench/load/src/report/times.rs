//! The latencies of a report: histograms, and the figures of them that the JSON has.

use std::time::Duration;

use catamaran_stats::{CensoredLatencies, Histogram, PERCENTILES, Slice, is_quotable};
use serde::{Deserialize, Serialize};

use super::ratio;
use crate::timeline::TimeSlice;

/// Latencies and their parts, of all complete responses; [`Latencies::corrected`] includes the other requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// The time of a connect, with TLS: one value for each connection opened in the measured time
    /// (ab adds a 0 for each reused one: see [`Latencies::per_request_connects`]).
    pub connect: Times,
    /// The time from the request's last byte written to the response's first byte read (ab: Waiting).
    pub first_byte: Times,
    /// The time from the connection being ready (on a reused one: from the request being sent) to
    /// the response's last byte (ab: Processing).
    pub processing: Times,
    /// The *raw* latency: from the beginning of the request, with its connect if there was one, to
    /// the response's last byte (ab: Total).
    pub total: Times,
    /// The *corrected* latency: from when the request was due to the response's last byte, so that
    /// it includes the time that a late or blocked sender hides. Requests that failed, hung or were
    /// never sent are included with the time that they were waited for, as a lower bound. `None` in
    /// a closed loop, which has no schedule.
    pub corrected: Option<CorrectedTimes>,
    /// The generator's lateness: from when the request was due, or from when its connection was
    /// free if that was later, to when it was sent. `None` in a closed loop.
    pub lateness: Option<Times>,
    /// The time from when the request was due to when a connection was free, of the requests that
    /// waited. `None` in a closed loop.
    #[serde(skip)]
    pub waits: Option<Histogram>,
    /// The number of responses without a connect of their own. ab counts each as a connect time of zero.
    #[serde(skip)]
    pub per_request_connects: u64,
}

impl Latencies {
    /// The corrected latencies; `None` without a schedule.
    pub fn censored(&self) -> Option<&CensoredLatencies> {
        self.corrected.as_ref().map(|corrected| &corrected.censored)
    }
}

/// Latencies from when requests were due, of all requests. Those without a response (failed, hung,
/// cut, never sent) are included with the time that they were waited for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CorrectedTimes {
    /// The figures of the latencies.
    #[serde(flatten)]
    pub times: Times,
    /// The number of requests among `count` that had no response.
    pub unanswered: u64,
    /// The keys of the figures that are lower bounds, such as `p99_us`, because they depend on
    /// requests without a response.
    pub lower_bounds: Vec<String>,
    /// The latencies themselves, with their lower bounds.
    #[serde(skip)]
    pub censored: CensoredLatencies,
}

impl From<CensoredLatencies> for CorrectedTimes {
    /// Notes the keys of all figures that are only lower bounds, because some requests were not answered.
    fn from(censored: CensoredLatencies) -> Self {
        let mut lower_bounds = Vec::new();
        for (bound, key) in censored
            .percentiles(PERCENTILES)
            .iter()
            .zip(PERCENTILE_KEYS)
        {
            if !bound.is_exact {
                lower_bounds.push(key.to_owned());
            }
        }
        // The time of an unanswered request is not known, so neither mean nor maximum is exact.
        if censored.unanswered() > 0 {
            lower_bounds.extend(["mean_us", "max_us"].map(str::to_owned));
        }
        Self {
            times: Times::from(censored.lower_bounds()),
            unanswered: censored.unanswered(),
            lower_bounds,
            censored,
        }
    }
}

/// The figures of a histogram. All percentiles are given; `percentile_max` is the highest with enough values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// The number of values in the histogram.
    pub count: u64,
    /// The smallest value, in microseconds.
    pub min_us: u64,
    /// The arithmetic mean, in microseconds.
    pub mean_us: u64,
    /// The standard deviation of a sample, in microseconds.
    pub stddev_us: u64,
    /// The largest value, in microseconds.
    pub max_us: u64,
    /// The median, in microseconds.
    pub p50_us: u64,
    /// The 75th percentile, in microseconds.
    pub p75_us: u64,
    /// The 90th percentile, in microseconds.
    pub p90_us: u64,
    /// The 95th percentile, in microseconds.
    pub p95_us: u64,
    /// The 99th percentile, in microseconds.
    pub p99_us: u64,
    /// The 99.9th percentile, in microseconds.
    pub p99_9_us: u64,
    /// The 99.99th percentile, in microseconds.
    pub p99_99_us: u64,
    /// The 99.999th percentile, in microseconds.
    pub p99_999_us: u64,
    /// The highest of these percentiles with ten values beyond it; `None`: none has as many.
    pub percentile_max: Option<f64>,
    /// The histogram of the values.
    #[serde(skip)]
    pub histogram: Histogram,
}

impl From<Histogram> for Times {
    /// The figures of a histogram; `percentile_max` is the highest percentile that its number of values supports.
    fn from(histogram: Histogram) -> Self {
        let [
            p50_us,
            p75_us,
            p90_us,
            p95_us,
            p99_us,
            p99_9_us,
            p99_99_us,
            p99_999_us,
        ] = PERCENTILES.map(|percent| micros(histogram.percentile(percent)));
        let quotable = |percent: &f64| is_quotable(*percent, histogram.count());
        Self {
            count: histogram.count(),
            min_us: micros(histogram.min()),
            mean_us: micros(histogram.mean()),
            stddev_us: micros(histogram.stddev()),
            max_us: micros(histogram.max()),
            p50_us,
            p75_us,
            p90_us,
            p95_us,
            p99_us,
            p99_9_us,
            p99_99_us,
            p99_999_us,
            percentile_max: PERCENTILES.into_iter().rfind(quotable),
            histogram,
        }
    }
}

/// The results of the requests of one name. Requests that were never sent are not included.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NamedFacts {
    /// The name of the requests.
    pub name: String,
    /// The number of requests that were answered in full.
    pub completed: u64,
    /// Completed requests with a status outside 200 to 299.
    pub non_2xx: u64,
    /// The number of requests that failed.
    pub failed: u64,
    /// The number of requests in flight when the run ended.
    pub unfinished: u64,
    /// Latencies from when requests were due, which in a closed loop is when they began; requests
    /// without a response count with the time that they were waited for.
    pub latency: CorrectedTimes,
}

/// Counts and latencies of one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondFacts {
    /// The number of complete responses.
    pub completed: u64,
    /// The number of failed requests.
    pub failed: u64,
    /// The number of bytes received.
    pub received_bytes: u64,
    /// The mean raw latency of this second's responses, in microseconds.
    pub latency_mean_us: f64,
    /// The longest raw latency of this second's responses, in microseconds.
    pub latency_max_us: f64,
    /// The number of responses outside 200 to 299; 0 if the run is too long for values of each second.
    pub non_2xx: u64,
    /// The median of this second's latencies, counted in an open loop from when requests were due; `None`: there were
    /// no responses, or the run is too long for values of each second.
    pub p50_us: Option<u64>,
    /// The 99th percentile of the same latencies; `None` as for `p50_us`.
    pub p99_us: Option<u64>,
    /// The longest of the same latencies; `None` as for `p50_us`.
    pub max_us: Option<u64>,
}

impl SecondFacts {
    /// The facts of one second; `slice` has its latencies, if there are any.
    pub(crate) fn of(second: &crate::record::Second, slice: Option<&TimeSlice>) -> Self {
        let latencies = slice.map(|slice| {
            // A closed loop has no corrected latencies.
            if slice.corrected.count() == 0 {
                &slice.total
            } else {
                &slice.corrected
            }
        });
        let latency = latencies.filter(|latency| latency.count() > 0);
        Self {
            completed: second.completed,
            failed: second.failed,
            received_bytes: second.received,
            latency_mean_us: ratio(second.latency_sum as f64 / 1e3, second.completed as f64),
            latency_max_us: second.latency_max as f64 / 1e3,
            non_2xx: slice.map_or(0, |slice| slice.non_2xx),
            p50_us: latency.map(|latency| latency.percentile_micros(50.0)),
            p99_us: latency.map(|latency| latency.percentile_micros(99.0)),
            max_us: latency.map(Slice::max_micros),
        }
    }
}

/// Latencies by percentile, for a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The curve of raw latencies.
    pub total: Vec<CurvePoint>,
    /// The curve of corrected latencies, from when requests were due; lower bounds where requests
    /// had no response. `None` in a closed loop.
    pub corrected: Option<Vec<CurvePoint>>,
    /// The number of latencies in each tenth of a decade, in an open loop counted from when requests were due; empty in
    /// files that older versions wrote.
    #[serde(default)]
    pub bars: Vec<LatencyBar>,
}

impl Curves {
    /// The curves, up to the last percentile that can be quoted; each decade of the rest has eight points.
    pub(super) fn of(latency: &Latencies) -> Self {
        let total = &latency.total.histogram;
        let corrected_times = latency.corrected.as_ref().map(|corrected| &corrected.times);
        let corrected = corrected_times.map(|times| &times.histogram);
        let bars = corrected.unwrap_or(total).bars(BARS).into_iter();
        Self {
            total: curve(total),
            corrected: corrected.map(curve),
            bars: bars
                .map(|(end, count)| LatencyBar {
                    to_ms: end.as_secs_f64() * 1000.0,
                    count,
                })
                .collect(),
        }
    }
}

/// The points of a curve: percentiles of 0, 25, 44 and so on, where eight steps divide the rest by ten.
fn curve(times: &Histogram) -> Vec<CurvePoint> {
    let mut points = Vec::new();
    // Five decades: up to 99.999 %.
    for step in 0..=40 {
        let percent = 100.0 * (1.0 - 10_f64.powf(-f64::from(step) / 8.0));
        if is_quotable(percent, times.count()) {
            points.push(CurvePoint {
                percent,
                ms: times.percentile(percent).as_secs_f64() * 1000.0,
            });
        }
    }
    points
}

/// A bar of the histogram of latencies. It begins where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyBar {
    /// The upper end of the bar, in milliseconds.
    pub to_ms: f64,
    /// The number of latencies in the bar.
    pub count: u64,
}

/// One point of a curve. A percentile has a point only if ten values lie beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The percentile, from 0 to 100.
    pub percent: f64,
    /// The latency at the percentile, in milliseconds.
    pub ms: f64,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The number of bars for each decade of latencies.
pub(crate) const BARS: u32 = 10;

/// The keys of the figures in [`Times`], in the order of [`PERCENTILES`].
const PERCENTILE_KEYS: [&str; 8] = [
    "p50_us",
    "p75_us",
    "p90_us",
    "p95_us",
    "p99_us",
    "p99_9_us",
    "p99_99_us",
    "p99_999_us",
];
