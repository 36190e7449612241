//! Warnings that follow from several figures together: requests sent late, requests that waited for
//! a connection, or a stall that a closed loop hides.

use std::time::Duration;

use catamaran_stats::{CensoredLatencies, Histogram};

use crate::record::silence::Span;
use crate::report::{Silence, ThreadShare, Warning};

/// The 99th percentile of lateness, if it is high enough for a warning: above [`TOLERATED`] and
/// above 5 % of the corrected 99th percentile, which includes it.
pub(super) fn late(
    lateness: &Histogram,
    corrected: Option<&CensoredLatencies>,
) -> Option<Duration> {
    let p99 = lateness.percentile(99.0);
    (p99 > tolerated(corrected)).then_some(p99)
}

/// A warning if a large part of the corrected median is the generator's own lateness.
pub(super) fn late_median(
    lateness: &Histogram,
    corrected: Option<&CensoredLatencies>,
) -> Option<Warning> {
    let (lateness, corrected) = (lateness.median(), corrected?.percentile(50.0).at_least);
    let is_large = !lateness.is_zero() && lateness * LATE_OF_MEDIAN >= corrected;
    is_large.then_some(Warning::LateMedian {
        lateness,
        corrected,
    })
}

/// The figures of an open loop by which it is known to have too few connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionWaits<'a> {
    /// How long requests waited for a connection, without the requests that did not wait.
    pub(super) waits: &'a Histogram,
    pub(super) corrected: Option<&'a CensoredLatencies>,
    /// The raw latencies of complete responses.
    pub(super) total: &'a Histogram,
    /// The number of requests that were due.
    pub(super) started: u64,
    pub(super) connections: usize,
    /// The number of requests that a connection carries at once.
    pub(super) streams: u32,
    /// The highest rate of the plan, in requests per second.
    pub(super) per_second: f64,
}

impl ConnectionWaits<'_> {
    /// The warning, if the 99th percentile of the waits of all requests is above the lateness tolerated.
    pub(super) fn warning(&self) -> Option<Warning> {
        let waited = self.waits.count();
        let hundredth = self.started as f64 / 100.0;
        if self.total.is_empty() || waited as f64 <= hundredth {
            return None;
        }
        // `waits` lacks the requests that did not wait, so the 99th percentile of all is a lower one of it.
        let percent = (1.0 - hundredth / waited as f64) * 100.0;
        let p99 = self.waits.percentile(percent);
        (p99 > tolerated(self.corrected)).then(|| Warning::Waited {
            count: waited,
            of: self.started,
            needed: self.needed(),
        })
    }

    /// The number of connections that the rate needs: by Little's law the mean number of requests
    /// in flight, plus three times its square root, by which Poisson arrivals vary. If there were
    /// as many, the server stalled; then it is the number of requests due during the longest
    /// response.
    fn needed(&self) -> u64 {
        let in_flight = |latency: Duration| self.per_second * latency.as_secs_f64();
        let mean = in_flight(self.total.mean());
        let usual = (mean + 3.0 * mean.sqrt()).ceil() as u64;
        let most = in_flight(self.total.max()).ceil() as u64;
        let streams = u64::from(self.streams);
        let carried = self.connections as u64 * streams;
        let needed = if usual > carried { usual } else { most };
        needed.max(carried + 1).div_ceil(streams)
    }
}

/// A warning if a closed loop hid a stall: a large share `silent` of the time without responses
/// (from 0 to 1), or a longest response of a thousand times the median, less `standstill`, the longest
/// time in which the generator stood still.
pub(super) fn stalled(total: &Histogram, silent: f64, standstill: Duration) -> Option<Warning> {
    let (longest, median) = (total.max(), total.median());
    let of_server = longest.saturating_sub(standstill);
    let is_outlier = of_server >= STALL_MIN && of_server >= median * OUTLIER;
    (silent >= SILENT_MAX || is_outlier).then_some(Warning::Stalled {
        silent,
        longest,
        median,
    })
}

/// A warning if threads of the generator stood still for so long that the figures mislead. `threads` has the
/// standstills of each thread within the measured time `of`.
pub(super) fn stood_still(threads: &[Vec<Span>], of: Duration) -> Option<Warning> {
    let mut count = 0;
    let mut total_max = Duration::ZERO;
    let mut longest_max = Duration::ZERO;
    for spans in threads {
        let lengths = spans
            .iter()
            .map(|(from, to)| Duration::from_nanos(to - from));
        let total = lengths.clone().sum();
        let longest = lengths.max().unwrap_or_default();
        if is_long(total, longest, of) {
            count += 1;
            total_max = total_max.max(total);
            longest_max = longest_max.max(longest);
        }
    }
    (count > 0).then_some(Warning::GeneratorStalled {
        threads: ThreadShare {
            count,
            of: threads.len(),
        },
        total: total_max,
        longest: longest_max,
    })
}

/// A warning if there was no response for so long that the rate misleads; `of` is the measured time.
pub(super) fn silent(silences: &[Silence], of: Duration) -> Option<Warning> {
    let longest = silences.iter().max_by_key(|silence| silence.length())?;
    let total: Duration = silences.iter().map(|silence| silence.length()).sum();
    is_long(total, longest.length(), of).then_some(Warning::Silent {
        total,
        of,
        count: silences.len(),
        longest: *longest,
    })
}

/// Whether spans of this total length, or the longest of them, are long enough for a warning.
fn is_long(total: Duration, longest: Duration, of: Duration) -> bool {
    let share = total.as_secs_f64() / of.as_secs_f64().max(f64::MIN_POSITIVE);
    share >= SILENT_MAX || longest >= SILENCE_LONG
}

/// The lateness up to which there is no warning: [`TOLERATED`], or 5 % of the 99th percentile of `corrected` latency if
/// that is more.
fn tolerated(corrected: Option<&CensoredLatencies>) -> Duration {
    let p99 = corrected.map(|times| times.percentile(99.0).at_least);
    TOLERATED.max(p99.unwrap_or_default() / 20)
}

/// The 99th percentile of lateness that is tolerated in every case.
const TOLERATED: Duration = Duration::from_millis(1);

/// The largest multiple of the median lateness at which the corrected median leads to a warning.
const LATE_OF_MEDIAN: u32 = 3;

/// The share of the time from which silences or standstills lead to a warning; one second in ten is well above it.
const SILENT_MAX: f64 = 0.05;

/// The length from which a single silence or standstill leads to a warning, whatever its share of the time.
const SILENCE_LONG: Duration = Duration::from_secs(1);

/// The multiple of the median from which the longest response is an outlier.
const OUTLIER: u32 = 1000;

/// The least time that counts as a stall, however short the median is.
const STALL_MIN: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(millis: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        for millis in millis {
            histogram.record(Duration::from_millis(millis));
        }
        histogram
    }

    fn corrected(millis: u64) -> CensoredLatencies {
        let mut corrected = CensoredLatencies::new();
        (0..100).for_each(|_| corrected.record(Duration::from_millis(millis)));
        corrected
    }

    /// 2 ms are a fifth of 10 ms, and nothing beside 100 ms; below 1 ms is never late.
    #[test]
    fn lateness_is_judged_against_the_percentile_that_is_quoted() {
        let lateness = histogram([2; 100]);
        assert!(late(&lateness, Some(&corrected(10))).is_some());
        assert_eq!(late(&lateness, Some(&corrected(100))), None);
        assert!(late(&histogram([6; 100]), Some(&corrected(100))).is_some());
        let mut short = Histogram::new();
        (0..100).for_each(|_| short.record_micros(900));
        assert_eq!(late(&short, Some(&corrected(1))), None);
    }

    /// Answers in 0.05 ms, sent 0.06 ms late: the corrected median is more than twice the raw one.
    #[test]
    fn lateness_beside_fast_answers_is_told() {
        let mut lateness = Histogram::new();
        (0..100).for_each(|_| lateness.record_micros(60));
        let mut corrected = CensoredLatencies::new();
        (0..100).for_each(|_| corrected.record(Duration::from_micros(110)));
        let found = late_median(&lateness, Some(&corrected));
        assert!(
            matches!(found, Some(Warning::LateMedian { .. })),
            "{found:?}"
        );
        let slow = self::corrected(1);
        assert_eq!(late_median(&lateness, Some(&slow)), None);
        assert_eq!(late_median(&Histogram::new(), Some(&corrected)), None);
    }

    fn waiting<'a>(waits: &'a Histogram, total: &'a Histogram) -> ConnectionWaits<'a> {
        ConnectionWaits {
            waits,
            corrected: None,
            total,
            started: 1000,
            connections: 10,
            streams: 1,
            per_second: 1000.0,
        }
    }

    /// 1,000/s at 16 ms are 16 in flight, and 12 more; ten connections stalled for 2 s need 2,000.
    #[test]
    fn waiting_names_the_connections_that_the_rate_needs() {
        let waits = histogram([5; 100]);
        for (total, expected) in [
            (histogram([16; 100]), 28..=29),
            (histogram([1; 1000].into_iter().chain([2000])), 1999..=2010),
        ] {
            let found = waiting(&waits, &total).warning();
            let Some(Warning::Waited { count, of, needed }) = found else {
                panic!("{found:?}");
            };
            assert_eq!((count, of), (100, 1000));
            assert!(expected.contains(&needed), "{needed}");
        }
    }

    /// Ten connections with ten streams each carry 100: 1,000/s at 160 ms need 198, so 20 connections.
    #[test]
    fn streams_carry_more_on_fewer_connections() {
        let (waits, total) = (histogram([5; 100]), histogram([160; 100]));
        let multiplexed = ConnectionWaits {
            streams: 10,
            ..waiting(&waits, &total)
        };
        let found = multiplexed.warning();
        let Some(Warning::Waited { needed: 20, .. }) = found else {
            panic!("{found:?}");
        };
    }

    #[test]
    fn few_waits_and_short_ones_are_no_doubt() {
        let total = histogram([16; 100]);
        for waits in [histogram([50; 10]), histogram([1; 1000]), Histogram::new()] {
            let found = waiting(&waits, &total).warning();
            assert_eq!(found, None, "{waits:?}");
        }
        let long = corrected(1000);
        let waits = histogram([40; 1000]);
        let beside = ConnectionWaits {
            corrected: Some(&long),
            ..waiting(&waits, &total)
        };
        assert_eq!(beside.warning(), None);
    }

    #[test]
    fn a_stall_is_silence_or_an_answer_far_beyond_the_median() {
        let even = histogram([1; 1000]);
        let none = Duration::ZERO;
        assert_eq!(stalled(&even, 0.04, none), None);
        assert!(stalled(&even, 0.1, none).is_some());
        let outlier = histogram([1; 1000].into_iter().chain([1100]));
        assert!(stalled(&outlier, 0.01, none).is_some());
        // We stood still for as long.
        assert_eq!(stalled(&outlier, 0.01, Duration::from_secs(1)), None);
        let near = histogram([1; 1000].into_iter().chain([900]));
        assert_eq!(stalled(&near, 0.01, none), None);
        let mut fast = Histogram::new();
        (0..1000).for_each(|_| fast.record_micros(20));
        fast.record_micros(50_000);
        assert_eq!(stalled(&fast, 0.0, none), None);
    }
}
