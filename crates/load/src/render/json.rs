//! The report as JSON; docs/bench.md is the reference of its keys.
//!
//! The structs below are the schema: their field names are the keys, which have their units in
//! them. A key may be added at any time; none changes its meaning without a new `schema`.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use catamaran_stats::{Histogram, PERCENTILES, Spread, is_quotable};
use serde::Serialize;

use super::{Subject, generator_cpu, per_second, ratio, warning, whole_seconds};
use crate::report::{Ending, Report, Second, TlsFacts};

/// One object, indented, with a line end.
pub fn json(report: &Report, subject: &Subject) -> String {
    let document = Document::of(report, subject);
    let mut text = serde_json::to_string_pretty(&document).expect("all keys are strings");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    url: &'a str,
    urls: usize,
    started_at_s: f64,
    elapsed_s: f64,
    ending: &'static str,
    error: Option<ErrorFacts<'a>>,
    warm_up: WarmUp,
    threads: usize,
    concurrency: usize,
    concurrency_reached: usize,
    rate_asked_per_s: Option<f64>,
    server: Server<'a>,
    requests: Requests,
    statuses: &'a BTreeMap<u16, u64>,
    failures: BTreeMap<&'static str, u64>,
    unfinished: Unfinished,
    bytes: Bytes,
    connections: Connections,
    throughput: Throughput,
    latency: Latencies,
    generator: Generator,
    seconds: Vec<SecondFacts>,
    warnings: Vec<WarningText>,
}

#[derive(Serialize)]
struct ErrorFacts<'a> {
    kind: &'static str,
    errno: Option<i32>,
    message: &'a str,
}

#[derive(Serialize)]
struct WarmUp {
    duration_s: f64,
    requests: u64,
    steady: Option<bool>,
}

#[derive(Serialize)]
struct Server<'a> {
    addresses: Vec<Option<String>>,
    software: Option<&'a str>,
    first_status: Option<u16>,
    document_bytes: Option<u64>,
    tls: Option<Tls<'a>>,
}

#[derive(Serialize)]
struct Tls<'a> {
    version: &'a str,
    cipher: &'a str,
    cipher_bits: u32,
    key_bits: Option<u32>,
    temp_key: Option<&'a str>,
    server_name: Option<&'a str>,
}

#[derive(Serialize)]
struct Requests {
    started: u64,
    ok: u64,
    failed: u64,
    unfinished: u64,
    completed: u64,
    non_2xx: u64,
    kept_alive: u64,
    without_length: u64,
}

#[derive(Serialize)]
struct Unfinished {
    hung: u64,
    cut: u64,
    unsent: u64,
    oldest_s: f64,
}

#[derive(Serialize)]
struct Bytes {
    sent: u64,
    sent_heads: u64,
    sent_bodies: u64,
    received: u64,
    received_heads: u64,
    received_bodies: u64,
}

#[derive(Serialize)]
struct Connections {
    attempted: u64,
    opened: u64,
    reused: u64,
    reset: u64,
    closed_idle: u64,
}

#[derive(Serialize)]
struct Throughput {
    requests_per_s: f64,
    sent_bytes_per_s: f64,
    received_bytes_per_s: f64,
    per_second: Option<SpreadFacts>,
}

#[derive(Serialize)]
struct SpreadFacts {
    seconds: usize,
    min: f64,
    max: f64,
    mean: f64,
    median: f64,
    stddev: f64,
    variation: f64,
}

#[derive(Serialize)]
struct Latencies {
    connect: Times,
    first_byte: Times,
    processing: Times,
    total: Times,
    corrected: Option<Times>,
    lateness: Option<Times>,
}

/// Percentiles are there whatever their worth: `percentile_max` says up to which there are enough
/// values.
#[derive(Serialize)]
struct Times {
    count: u64,
    min_us: u64,
    mean_us: u64,
    stddev_us: u64,
    max_us: u64,
    p50_us: u64,
    p75_us: u64,
    p90_us: u64,
    p95_us: u64,
    p99_us: u64,
    p99_9_us: u64,
    p99_99_us: u64,
    p99_999_us: u64,
    percentile_max: Option<f64>,
}

#[derive(Serialize)]
struct Generator {
    cpu_s: f64,
    cpu_us_per_request: f64,
    threads: Vec<Thread>,
    open_files_max: Option<u64>,
}

#[derive(Serialize)]
struct Thread {
    wall_s: f64,
    cpu_s: f64,
    busy: f64,
}

#[derive(Serialize)]
struct SecondFacts {
    completed: u64,
    failed: u64,
    received_bytes: u64,
    latency_mean_us: f64,
    latency_max_us: f64,
}

#[derive(Serialize)]
struct WarningText {
    kind: &'static str,
    text: String,
}

impl<'a> Document<'a> {
    fn of(report: &'a Report, subject: &'a Subject) -> Self {
        let (ending, error) = ending(&report.ending);
        let started = report.started_at.duration_since(UNIX_EPOCH);
        let failures = report.failures.iter();
        Self {
            schema: "catamaran-bench/1",
            url: &subject.url,
            urls: subject.urls,
            started_at_s: started.unwrap_or_default().as_secs_f64(),
            elapsed_s: report.elapsed.as_secs_f64(),
            ending,
            error,
            warm_up: WarmUp {
                duration_s: report.warm_up.duration.as_secs_f64(),
                requests: report.warm_up.requests,
                steady: report.warm_up.steady,
            },
            threads: report.threads,
            concurrency: report.concurrency,
            concurrency_reached: report.concurrency_reached,
            rate_asked_per_s: subject.rate,
            server: Server::of(report),
            requests: Requests::of(report),
            statuses: &report.statuses,
            failures: failures
                .map(|(kind, count)| (kind.token(), count))
                .collect(),
            unfinished: Unfinished::of(report),
            bytes: Bytes::of(report),
            connections: Connections::of(report),
            throughput: Throughput::of(report),
            latency: Latencies::of(report),
            generator: Generator::of(report),
            seconds: report.seconds.iter().map(SecondFacts::of).collect(),
            warnings: warnings(report),
        }
    }
}

fn ending(ending: &Ending) -> (&'static str, Option<ErrorFacts<'_>>) {
    match ending {
        Ending::Requests => ("requests", None),
        Ending::Duration => ("duration", None),
        Ending::Stopped => ("stopped", None),
        Ending::Idle => ("idle", None),
        Ending::Failure(error) => {
            let facts = ErrorFacts {
                kind: error.kind.token(),
                errno: error.errno,
                message: &error.message,
            };
            ("failure", Some(facts))
        }
    }
}

fn warnings(report: &Report) -> Vec<WarningText> {
    let warnings = report.warnings.iter();
    warnings
        .map(|each| WarningText {
            kind: warning::token(each),
            text: warning::text(each),
        })
        .collect()
}

impl<'a> Server<'a> {
    fn of(report: &'a Report) -> Self {
        let addresses = report.addresses.iter();
        let first = report.first.as_ref();
        Self {
            addresses: addresses
                .map(|address| address.map(|address| address.to_string()))
                .collect(),
            software: first.and_then(|first| first.server.as_deref()),
            first_status: first.map(|first| first.status),
            document_bytes: first.map(|first| first.body_bytes),
            tls: report.tls.as_ref().map(Tls::of),
        }
    }
}

impl<'a> Tls<'a> {
    fn of(facts: &'a TlsFacts) -> Self {
        Self {
            version: &facts.version,
            cipher: &facts.cipher,
            cipher_bits: facts.cipher_bits,
            key_bits: facts.key_bits,
            temp_key: facts.temp_key.as_deref(),
            server_name: facts.server_name.as_deref(),
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
        }
    }
}

impl Throughput {
    fn of(report: &Report) -> Self {
        let elapsed = report.elapsed;
        Self {
            requests_per_s: per_second(report.counts.completed, elapsed),
            sent_bytes_per_s: per_second(report.bytes.sent, elapsed),
            received_bytes_per_s: per_second(report.bytes.received, elapsed),
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
            corrected: latency.corrected.as_ref().map(Times::of),
            lateness: latency.lateness.as_ref().map(Times::of),
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
                })
                .collect(),
            open_files_max: report.descriptors,
        }
    }
}

impl SecondFacts {
    fn of(second: &Second) -> Self {
        Self {
            completed: second.completed,
            failed: second.failed,
            received_bytes: second.received,
            latency_mean_us: ratio(second.latency_sum as f64 / 1e3, second.completed as f64),
            latency_max_us: second.latency_max as f64 / 1e3,
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

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
        report.warnings.push(Warning::NotSteady);
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
    fn a_percentile_has_its_samples() {
        let mut report = sample::report();
        report.latency.total = sample::histogram(1..=1000);
        let value = value(&report);
        assert_eq!(value["latency"]["total"]["percentile_max"], 99.0);
    }
}
