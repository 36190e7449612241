//! Histograms of a report, and the figures of them that its JSON has.

use std::time::Duration;

use catamaran_stats::{CensoredLatencies, Histogram, PERCENTILES, Slice, is_quotable};
use serde::{Deserialize, Serialize};

use super::ratio;
use crate::timeline::TimeSlice;

/// How long things took, of all answers that came in full; [`Latencies::corrected`] has the others,
/// too.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// From the beginning of a connect to its end, with TLS; one value per connection opened in
    /// the measured time (ab counts 0 for reused ones: see [`Latencies::per_request_connects`]).
    pub connect: Times,
    /// From the request's last byte written to the answer's first byte read (ab: Waiting).
    pub first_byte: Times,
    /// From the connection being ready (or, reused, the request being sent) to the answer's last
    /// byte (ab: Processing).
    pub processing: Times,
    /// From the beginning, with the connect if there was one, to the last byte (ab: Total): the
    /// *raw* latency.
    pub total: Times,
    /// From when the request was due to its last byte: *corrected* for what a late or blocked
    /// sender hides. It has all requests: those that failed, hung or were never sent with the time
    /// that they were waited for, as a lower bound. `None` in a closed loop, which has no schedule.
    pub corrected: Option<CorrectedTimes>,
    /// From when the request was due, or its connection free if that was later, to when it was
    /// sent: how late we were ourselves. `None` in a closed loop.
    pub lateness: Option<Times>,
    /// From when the request was due to when a connection was free for it, of those requests that
    /// waited. `None` in a closed loop.
    #[serde(skip)]
    pub waits: Option<Histogram>,
    /// Answers that needed no connect of their own: so many zeros would be in ab's Connect row.
    #[serde(skip)]
    pub per_request_connects: u64,
}

impl Latencies {
    /// The corrected times, where there is a schedule.
    pub fn censored(&self) -> Option<&CensoredLatencies> {
        self.corrected.as_ref().map(|corrected| &corrected.censored)
    }
}

/// Latencies from when requests were due, of all requests. Those without an answer (failed, hung,
/// cut, never sent) count with the time that they were waited for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CorrectedTimes {
    /// The figures.
    #[serde(flatten)]
    pub times: Times,
    /// The number of requests among `count` that had no answer.
    pub unanswered: u64,
    /// The keys of the figures that are lower bounds, because they depend on requests that had no
    /// answer, such as `p99_us`.
    pub lower_bounds: Vec<String>,
    /// All of them.
    #[serde(skip)]
    pub censored: CensoredLatencies,
}

impl From<CensoredLatencies> for CorrectedTimes {
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

/// A histogram's figures. Percentiles are there whatever their worth: `percentile_max` says up to
/// which there are enough values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// The number of values.
    pub count: u64,
    /// The smallest.
    pub min_us: u64,
    /// The arithmetic mean.
    pub mean_us: u64,
    /// The standard deviation as of a sample.
    pub stddev_us: u64,
    /// The largest.
    pub max_us: u64,
    /// The median.
    pub p50_us: u64,
    /// The 75th percentile.
    pub p75_us: u64,
    /// The 90th percentile.
    pub p90_us: u64,
    /// The 95th percentile.
    pub p95_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The 99.9th percentile.
    pub p99_9_us: u64,
    /// The 99.99th percentile.
    pub p99_99_us: u64,
    /// The 99.999th percentile.
    pub p99_999_us: u64,
    /// The highest of these percentiles with ten values beyond it.
    pub percentile_max: Option<f64>,
    /// The values.
    #[serde(skip)]
    pub histogram: Histogram,
}

impl From<Histogram> for Times {
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

/// The results of the requests of one name. Requests that were never sent are in none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NamedFacts {
    /// Their name.
    pub name: String,
    /// Answered in full.
    pub completed: u64,
    /// Of these: with a status outside 200 to 299.
    pub non_2xx: u64,
    /// Failed.
    pub failed: u64,
    /// In flight when the run ended.
    pub unfinished: u64,
    /// From when they were due, which in a closed loop is when they began; those without an answer
    /// with the time that they were waited for.
    pub latency: CorrectedTimes,
}

/// Counts and latencies of one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondFacts {
    /// Complete answers.
    pub completed: u64,
    /// Failed requests.
    pub failed: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Mean raw latency of these answers.
    pub latency_mean_us: f64,
    /// The longest of them.
    pub latency_max_us: f64,
    /// Answers outside 200 to 299; 0 where seconds are not told apart.
    pub non_2xx: u64,
    /// The median of this second's latencies, corrected where there is a schedule; `None`: no
    /// answers, or the run is so long that seconds are not told apart.
    pub p50_us: Option<u64>,
    /// The 99th percentile.
    pub p99_us: Option<u64>,
    /// The longest, as the percentiles are.
    pub max_us: Option<u64>,
}

impl SecondFacts {
    /// A second with the times of its slice, where there is one.
    pub(crate) fn of(second: &crate::record::Second, slice: Option<&TimeSlice>) -> Self {
        let measured = slice.map(|slice| match slice.corrected.count() {
            0 => &slice.total,
            _ => &slice.corrected,
        });
        let latency = measured.filter(|latency| latency.count() > 0);
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

/// Latencies by percentile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// Raw.
    pub total: Vec<CurvePoint>,
    /// From when requests were due; where requests had no answer, lower bounds. `None` in a closed
    /// loop.
    pub corrected: Option<Vec<CurvePoint>>,
}

impl Curves {
    /// Percentiles up to the last that can be quoted, each decade of the rest in eight steps.
    pub(super) fn of(latency: &Latencies) -> Self {
        let curve = |times: &Histogram| {
            let percents = (0..=40).map(|step| 100.0 * (1.0 - 10_f64.powf(-f64::from(step) / 8.0)));
            let quotable = percents.filter(|percent| is_quotable(*percent, times.count()));
            let point = |percent| CurvePoint {
                percent,
                ms: times.percentile(percent).as_secs_f64() * 1000.0,
            };
            quotable.map(point).collect()
        };
        let corrected = latency.corrected.as_ref();
        Self {
            total: curve(&latency.total.histogram),
            corrected: corrected.map(|corrected| curve(&corrected.times.histogram)),
        }
    }
}

/// A percentile; only such as have ten values beyond them are there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// 0 to 100.
    pub percent: f64,
    /// The latency in milliseconds.
    pub ms: f64,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The keys of [`PERCENTILES`].
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
