//! The report as a [`Document`], and as its text.

use std::time::{Duration, UNIX_EPOCH};

use catamaran_stats::{
    Censored, Histogram, PERCENTILES, Slice, Spread, WarmUp as Verdict, is_quotable,
};

use super::verdict::Judgement;
use super::{Subject, generator_cpu, per_second, ratio, warning, whole_seconds};
use crate::document::{
    Bytes, Connections, CorrectedTimes, CurvePoint, Curves, Document, ErrorFacts, Generator,
    Latencies, Requests, SCHEMA, SecondFacts, Server, SilenceFacts, SpreadFacts, Thread,
    Throughput, Times, Tls, Unfinished, WarmUp, WarningText,
};
use crate::report::{Ending, Report, Second, Silence, TlsFacts};
use crate::timeline::TimeSlice;

/// One object, indented, with a line end.
pub fn json(report: &Report, subject: &Subject) -> String {
    text(&Document::of(report, subject))
}

/// The text of a document.
pub fn text(document: &Document) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("all keys are strings");
    text.push('\n');
    text
}

impl Document {
    /// What a report says, with what the plan said of its subject.
    #[must_use]
    pub fn of(report: &Report, subject: &Subject) -> Self {
        let (ending, error) = ending(&report.ending);
        let started = report.started_at.duration_since(UNIX_EPOCH);
        let failures = report.failures.iter();
        let reasons = report.reasons.iter();
        let judgement = Judgement::of(report);
        Self {
            schema: SCHEMA.to_owned(),
            verdict: judgement.word.to_owned(),
            verdict_reason: judgement.reason,
            url: subject.url.clone(),
            urls: subject.urls,
            protocol: subject.protocol.name().to_owned(),
            streams: subject.streams,
            streams_reached: report.streams_reached,
            started_at_s: started.unwrap_or_default().as_secs_f64(),
            elapsed_s: report.elapsed.as_secs_f64(),
            drain_s: report.drain.as_secs_f64(),
            ending: ending.to_owned(),
            error,
            warm_up: WarmUp {
                duration_s: report.warm_up.duration.as_secs_f64(),
                requests: report.warm_up.requests,
                steady: report
                    .warm_up
                    .verdict
                    .map(|verdict| verdict == Verdict::Steady),
                verdict: report
                    .warm_up
                    .verdict
                    .map(|verdict| verdict_token(verdict).to_owned()),
                movement: report.warm_up.verdict.and_then(movement),
            },
            threads: report.threads,
            concurrency: report.concurrency,
            concurrency_reached: report.concurrency_reached,
            rate_asked_per_s: subject.rate,
            server: Server::of(report),
            requests: Requests::of(report),
            statuses: report.statuses.clone(),
            memcached: super::memcached::facts(report, subject),
            failures: failures
                .map(|(kind, count)| (kind.token().to_owned(), count))
                .collect(),
            failure_reasons: reasons
                .map(|(kind, reason)| (kind.token().to_owned(), reason.clone()))
                .collect(),
            unfinished: Unfinished::of(report),
            bytes: Bytes::of(report),
            connections: Connections::of(report),
            throughput: Throughput::of(report),
            latency: Latencies::of(report),
            generator: Generator::of(report),
            silences: report.silences.iter().map(silence).collect(),
            silence_min_s: report.silence_min.as_secs_f64(),
            longest_silence: report.longest_silence.as_ref().map(silence),
            seconds: seconds(report),
            curves: curves(report),
            warnings: warnings(report),
            by_name: super::by_name::facts(report),
            gate: None,
            replay: None,
        }
    }
}

fn ending(ending: &Ending) -> (&'static str, Option<ErrorFacts>) {
    match ending {
        Ending::Requests => ("requests", None),
        Ending::Duration => ("duration", None),
        Ending::Stopped => ("stopped", None),
        Ending::Idle => ("idle", None),
        Ending::Failure(error) => {
            let facts = ErrorFacts {
                kind: error.kind.token().to_owned(),
                errno: error.errno,
                message: error.message.clone(),
            };
            ("failure", Some(facts))
        }
    }
}

fn verdict_token(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Steady => "steady",
        Verdict::Moving(_) => "moving",
        Verdict::Unclear(_) => "unclear",
    }
}

/// JSON has no infinity.
fn movement(verdict: Verdict) -> Option<f64> {
    match verdict {
        Verdict::Steady => None,
        Verdict::Moving(share) | Verdict::Unclear(share) => Some(share).filter(|it| it.is_finite()),
    }
}

fn seconds(report: &Report) -> Vec<SecondFacts> {
    let timeline = report.timeline.coarser(SECOND);
    let slices = Some(&timeline.slices).filter(|_| timeline.length == SECOND);
    let slice = |at: usize| slices.and_then(|slices| slices.get(at));
    let seconds = report.seconds.iter().enumerate();
    seconds
        .map(|(at, second)| SecondFacts::of(second, slice(at)))
        .collect()
}

/// Percentiles up to the last that can be quoted, each decade of the rest in eight steps.
fn curves(report: &Report) -> Curves {
    let curve = |times: &Histogram| {
        let percents = (0..=40).map(|step| 100.0 * (1.0 - 10_f64.powf(-f64::from(step) / 8.0)));
        let quotable = percents.filter(|percent| is_quotable(*percent, times.count()));
        let point = |percent| CurvePoint {
            percent,
            ms: times.percentile(percent).as_secs_f64() * 1000.0,
        };
        quotable.map(point).collect()
    };
    let corrected = report.latency.corrected.as_ref();
    Curves {
        total: curve(&report.latency.total),
        corrected: corrected.map(|corrected| curve(&corrected.lower_bounds())),
    }
}

fn silence(silence: &Silence) -> SilenceFacts {
    SilenceFacts {
        from_s: silence.from.as_secs_f64(),
        to_s: silence.to.as_secs_f64(),
    }
}

fn warnings(report: &Report) -> Vec<WarningText> {
    let warnings = report.warnings.iter();
    warnings
        .map(|each| WarningText {
            kind: warning::token(each).to_owned(),
            text: warning::text(each),
        })
        .collect()
}

impl Server {
    fn of(report: &Report) -> Self {
        let addresses = report.addresses.iter();
        let first = report.first.as_ref();
        Self {
            addresses: addresses
                .map(|address| address.map(|address| address.to_string()))
                .collect(),
            software: first.and_then(|first| first.server.clone()),
            first_status: first.map(|first| first.status),
            document_bytes: first.map(|first| first.body_bytes),
            tls: report.tls.as_ref().map(Tls::of),
        }
    }
}

impl Tls {
    fn of(facts: &TlsFacts) -> Self {
        Self {
            version: facts.version.clone(),
            cipher: facts.cipher.clone(),
            cipher_bits: facts.cipher_bits,
            key_bits: facts.key_bits,
            temp_key: facts.temp_key.clone(),
            server_name: facts.server_name.clone(),
        }
    }
}

impl Requests {
    fn of(report: &Report) -> Self {
        let counts = &report.counts;
        Self {
            started: counts.started,
            ok: counts.ok,
            failed: counts.failed,
            unfinished: report.unfinished.total(),
            completed: counts.completed,
            completed_in_drain: counts.completed - report.in_span.completed,
            other_length: counts.other_length,
            other_body: counts.other_body,
            non_2xx: counts.non_2xx,
            kept_alive: counts.kept_alive,
            without_length: counts.without_length,
        }
    }
}

impl Unfinished {
    fn of(report: &Report) -> Self {
        let unfinished = &report.unfinished;
        Self {
            hung: unfinished.hung,
            cut: unfinished.cut,
            unsent: unfinished.unsent,
            oldest_s: unfinished.ages.max().as_secs_f64(),
        }
    }
}

impl Bytes {
    fn of(report: &Report) -> Self {
        let bytes = &report.bytes;
        Self {
            sent: bytes.sent,
            sent_heads: bytes.sent.saturating_sub(bytes.sent_bodies),
            sent_bodies: bytes.sent_bodies,
            received: bytes.received,
            received_heads: bytes.heads,
            received_bodies: bytes.bodies,
        }
    }
}

impl Connections {
    fn of(report: &Report) -> Self {
        let connections = &report.connections;
        Self {
            attempted: connections.attempted,
            opened: connections.opened,
            reused: connections.reused,
            reset: connections.reset,
            closed_idle: connections.closed_idle,
            resent: connections.resent,
        }
    }
}

impl Throughput {
    fn of(report: &Report) -> Self {
        let elapsed = report.elapsed;
        Self {
            requests_per_s: per_second(report.in_span.completed, elapsed),
            sent_bytes_per_s: per_second(report.bytes.sent, elapsed),
            received_bytes_per_s: per_second(report.in_span.received, elapsed),
            per_second: Spread::of(&whole_seconds(report)).map(SpreadFacts::of),
        }
    }
}

impl SpreadFacts {
    fn of(spread: Spread) -> Self {
        Self {
            seconds: spread.count,
            min: spread.min,
            max: spread.max,
            mean: spread.mean,
            median: spread.median,
            stddev: spread.stddev,
            variation: spread.variation(),
        }
    }
}

impl Latencies {
    fn of(report: &Report) -> Self {
        let latency = &report.latency;
        Self {
            connect: Times::of(&latency.connect),
            first_byte: Times::of(&latency.first_byte),
            processing: Times::of(&latency.processing),
            total: Times::of(&latency.total),
            corrected: latency.corrected.as_ref().map(CorrectedTimes::of),
            lateness: latency.lateness.as_ref().map(Times::of),
        }
    }
}

impl CorrectedTimes {
    pub(super) fn of(times: &Censored) -> Self {
        let mut lower_bounds = Vec::new();
        for (bound, key) in times.percentiles(PERCENTILES).iter().zip(PERCENTILE_KEYS) {
            if !bound.is_exact {
                lower_bounds.push(key.to_owned());
            }
        }
        if times.unanswered() > 0 {
            lower_bounds.extend(["mean_us", "max_us"].map(str::to_owned));
        }
        Self {
            times: Times::of(&times.lower_bounds()),
            unanswered: times.unanswered(),
            lower_bounds,
        }
    }
}

impl Times {
    fn of(times: &Histogram) -> Self {
        let [
            p50_us,
            p75_us,
            p90_us,
            p95_us,
            p99_us,
            p99_9_us,
            p99_99_us,
            p99_999_us,
        ] = PERCENTILES.map(|percent| micros(times.percentile(percent)));
        let quotable = |percent: &f64| is_quotable(*percent, times.count());
        Self {
            count: times.count(),
            min_us: micros(times.min()),
            mean_us: micros(times.mean()),
            stddev_us: micros(times.stddev()),
            max_us: micros(times.max()),
            p50_us,
            p75_us,
            p90_us,
            p95_us,
            p99_us,
            p99_9_us,
            p99_99_us,
            p99_999_us,
            percentile_max: PERCENTILES.into_iter().rfind(quotable),
        }
    }
}

impl Generator {
    fn of(report: &Report) -> Self {
        let cpu_s = generator_cpu(report).as_secs_f64();
        let threads = report.generator.iter();
        Self {
            cpu_s,
            cpu_us_per_request: ratio(cpu_s * 1e6, report.counts.completed as f64),
            threads: threads
                .map(|thread| Thread {
                    wall_s: thread.wall.as_secs_f64(),
                    cpu_s: thread.cpu.as_secs_f64(),
                    busy: thread.busy(),
                    starved_s: thread.starved.map(|time| time.as_secs_f64()),
                    spun_s: thread.spun.as_secs_f64(),
                })
                .collect(),
            open_files_max: report.descriptors,
        }
    }
}

impl SecondFacts {
    fn of(second: &Second, slice: Option<&TimeSlice>) -> Self {
        let latency = slice.map(|slice| match slice.corrected.count() {
            0 => &slice.total,
            _ => &slice.corrected,
        });
        let latency = latency.filter(|latency| latency.count() > 0);
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

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

const SECOND: Duration = Duration::from_secs(1);

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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::report::{FailureKind, FatalError, Warning};

    fn value(report: &Report) -> Value {
        serde_json::from_str(&json(report, &sample::subject())).unwrap()
    }

    #[test]
    fn says_what_the_report_says() {
        let value = value(&sample::report());
        assert_eq!(value["schema"], "catamaran-bench/1");
        assert_eq!(value["ending"], "requests");
        assert_eq!(value["error"], Value::Null);
        assert_eq!(value["requests"]["completed"], 3);
        assert_eq!(value["statuses"]["200"], 3);
        assert_eq!(value["bytes"]["received_bodies"], 1041);
        assert_eq!(value["latency"]["total"]["min_us"], 2400);
        assert_eq!(value["latency"]["total"]["p50_us"], 4403);
        assert_eq!(value["latency"]["total"]["percentile_max"], Value::Null);
        assert_eq!(value["latency"]["corrected"], Value::Null);
        assert_eq!(value["throughput"]["requests_per_s"], 250.0);
        assert_eq!(value["generator"]["cpu_us_per_request"], 30.0);
    }

    #[test]
    fn says_why_it_failed_and_what_is_doubtful() {
        let mut report = sample::report();
        report.failures.add(FailureKind::Reset);
        report
            .warnings
            .push(Warning::NotSteady(Verdict::Moving(0.1)));
        report.ending = Ending::Failure(FatalError {
            kind: FailureKind::Reset,
            errno: Some(104),
            message: "Connection reset by peer".to_owned(),
        });
        let value = value(&report);
        assert_eq!(value["failures"]["reset"], 1);
        assert_eq!(value["error"]["errno"], 104);
        assert_eq!(value["warnings"][0]["kind"], "not-steady");
    }

    #[test]
    fn corrected_figures_say_which_are_lower_bounds() {
        let mut corrected = Censored::new();
        (0..980).for_each(|_| corrected.record(Duration::from_millis(1)));
        (0..20).for_each(|_| corrected.record_waiting(Duration::from_millis(500)));
        let mut report = sample::report();
        report.latency.corrected = Some(corrected);
        let corrected = &value(&report)["latency"]["corrected"];
        assert_eq!(
            (&corrected["count"], &corrected["unanswered"]),
            (&1000.into(), &20.into())
        );
        assert_eq!(
            (&corrected["p95_us"], &corrected["max_us"]),
            (&1000.into(), &500_000.into())
        );
        let expected = [
            "p99_us",
            "p99_9_us",
            "p99_99_us",
            "p99_999_us",
            "mean_us",
            "max_us",
        ];
        assert_eq!(corrected["lower_bounds"], Value::from(expected.to_vec()));
        assert!(
            corrected["p99_us"].as_u64().unwrap() >= 500_000,
            "{corrected}"
        );
    }

    #[test]
    fn what_was_written_is_read() {
        let (report, subject) = (sample::report(), sample::subject());
        let read = Document::parse(&json(&report, &subject)).unwrap();
        assert_eq!(read, Document::of(&report, &subject));
    }

    #[test]
    fn another_version_is_told_from_what_is_no_report() {
        let fault = |text: &str| Document::parse(text).unwrap_err().to_string();
        let newer = fault(r#"{"schema": "catamaran-bench/2", "url": 7}"#);
        assert_eq!(
            newer,
            r#"this report is of the version "catamaran-bench/2", and only "catamaran-bench/1" is known"#
        );
        assert!(fault("{}").starts_with("this is no report of `bench --json`: missing field"));
    }

    #[test]
    fn a_percentile_has_its_samples() {
        let mut report = sample::report();
        report.latency.total = sample::histogram(1..=1000);
        let value = value(&report);
        assert_eq!(value["latency"]["total"]["percentile_max"], 99.0);
    }
}
