use catamaran_stats::CensoredLatencies;
use serde_json::Value;

use super::*;
use crate::render::json::json;
use crate::render::sample;

fn written(report: &Report) -> String {
    let mut report = report.clone();
    report.conclude();
    json(&report)
}

fn value(report: &Report) -> Value {
    serde_json::from_str(&written(report)).unwrap()
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
        .push(Warning::NotSteady(Steadiness::Moving(0.1)));
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
    let mut corrected = CensoredLatencies::new();
    (0..980).for_each(|_| corrected.record(Duration::from_millis(1)));
    (0..20).for_each(|_| corrected.record_waiting(Duration::from_millis(500)));
    let mut report = sample::report();
    report.latency.corrected = Some(corrected.into());
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
    let mut report = sample::report();
    report.failures.add(FailureKind::Reset);
    report.warnings = vec![Warning::Short];
    report.ending = Ending::Failure(FatalError {
        kind: FailureKind::Reset,
        errno: Some(104),
        message: "Connection reset by peer".to_owned(),
    });
    let written = written(&report);
    let read = Report::parse(&written).unwrap();
    assert_eq!(json(&read), written);
    assert_eq!(read.ending, report.ending);
    assert_eq!(read.elapsed, report.elapsed);
}

#[test]
fn another_version_is_told_from_what_is_no_report() {
    let fault = |text: &str| Report::parse(text).unwrap_err().to_string();
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
    report.latency.total = sample::times(1..=1000);
    let value = value(&report);
    assert_eq!(value["latency"]["total"]["percentile_max"], 99.0);
}
