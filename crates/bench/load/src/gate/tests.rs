use std::time::Duration;

use catamaran_stats::Histogram;

use super::*;
use crate::render::sample;
use crate::report::{FailureKind, ThreadShare};
use crate::timeline::TimelineRecorder;

/// A run of a second with evenly spaced responses of these latencies, in milliseconds.
pub(crate) fn run(latencies: impl Iterator<Item = u64>) -> Report {
    let mut report = sample::report();
    let mut timeline = TimelineRecorder::new(false);
    let mut total = Histogram::new();
    let latencies: Vec<u64> = latencies.collect();
    let count = latencies.len() as u64;
    for (number, latency) in (0..).zip(latencies) {
        timeline.answer(number * 1000 * MS / count, true, latency * MS, 0);
        total.record(Duration::from_millis(latency));
    }
    report.elapsed = Duration::from_secs(1);
    report.timeline = timeline.finish();
    report.latency.total = total.into();
    report.requests.started = count;
    report.requests.ok = count;
    report.requests.completed = count;
    report.in_span.completed = count;
    report
}

/// A run with 10,000 responses, of which one in two hundred takes 30 ms.
fn good() -> Report {
    run((0..10_000).map(|number| if number % 200 == 0 { 30 } else { 5 }))
}

fn judge_all(report: &Report, conditions: &[&str], waived: &[Waiver]) -> document::Gate {
    let conditions = conditions
        .iter()
        .map(|text| Condition::parse(text).unwrap());
    let gate = Gate {
        conditions: conditions.collect(),
        waived: waived.to_vec(),
    };
    gate.judge(report)
}

fn verdict(report: &Report, condition: &str) -> String {
    judge_all(report, &[condition], &[]).verdict
}

#[test]
fn a_limit_outside_the_interval_decides() {
    let report = good();
    for (condition, expected) in [
        ("p99>20ms", "passed"),
        ("p99>4ms", "failed"),
        ("p99.9>40ms", "passed"),
        ("p99.9>20ms", "failed"),
        ("rate<9000", "passed"),
        ("rate<11k", "failed"),
        ("errors>0.1%", "passed"),
        ("errors>0", "passed"),
    ] {
        assert_eq!(verdict(&report, condition), expected, "{condition}");
    }
}

/// With 0.95 to 1.05 % of slow responses it is open on which side of the limit p99 is.
#[test]
fn a_limit_within_the_interval_does_not() {
    let report = run((0..10_000).map(|number| if number % 101 == 0 { 30 } else { 5 }));
    let gate = judge_all(&report, &["p99>20ms"], &[]);
    let condition = &gate.conditions[0];
    assert_eq!(gate.verdict, "undecided");
    assert!(
        condition.high > Some(20.0) && condition.low < Some(20.0),
        "{condition:?}"
    );
    assert!(
        condition
            .reason
            .as_deref()
            .unwrap()
            .contains("a longer run"),
        "{condition:?}"
    );
}

/// With all slow responses in one stall the figure is much less certain than if they are spread.
#[test]
fn a_stall_widens_the_interval() {
    let scattered = run((0..10_000).map(|number| if number % 160 == 0 { 30 } else { 5 }));
    assert_eq!(verdict(&scattered, "p99>20ms"), "passed");
    let together = run((0..10_000).map(|number| if number < 62 { 30 } else { 5 }));
    assert_eq!(verdict(&together, "p99>20ms"), "undecided");
}

/// A server that alternates between two levels for seconds at a time: twenty blocks say little of its
/// mean, since most of them repeat the one before.
#[test]
fn a_level_that_wanders_is_undecided() {
    let wanders = |number: u64| if number < 6000 { 5 } else { 9 };
    let report = run((0..10_000).map(wanders));
    let gate = judge_all(&report, &["p50>7ms"], &[]);
    assert_eq!(gate.verdict, "undecided", "{gate:?}");
    let reason = gate.conditions[0].reason.as_deref().unwrap();
    assert!(reason.contains("count as 2.0 independent ones"), "{reason}");
}

#[test]
fn few_requests_or_a_short_run_decide_nothing() {
    let few = run((0..200).map(|_| 5));
    assert_eq!(verdict(&few, "p99>20ms"), "undecided");
    assert_eq!(verdict(&few, "errors>0.1%"), "undecided");
    let mut short = good();
    short.elapsed = Duration::from_millis(400);
    let gate = judge_all(&short, &["rate<1"], &[]);
    assert_eq!(gate.verdict, "undecided");
    assert!(
        gate.conditions[0]
            .reason
            .as_deref()
            .unwrap()
            .contains("too short")
    );
}

#[test]
fn bad_answers_fail_it_whatever_the_latency() {
    let failing = |change: &dyn Fn(&mut Report), waiver: Waiver| {
        let mut report = good();
        change(&mut report);
        let gate = judge_all(&report, &["p99>20ms"], &[]);
        assert_eq!(gate.verdict, "failed", "{gate:?}");
        let gate = judge_all(&report, &["p99>20ms"], &[waiver]);
        assert_eq!(gate.verdict, "passed", "{gate:?}");
    };
    failing(&|report| report.requests.non_2xx = 1, Waiver::Non2xx);
    failing(&|report| report.unfinished.unsent = 1, Waiver::Unsent);
    failing(&|report| report.unfinished.hung = 1, Waiver::Failed);
    failing(&|report| report.ending = Ending::Idle, Waiver::Invalid);
}

/// Faults of the generator make the gate undecided, unless their part in the latency is too small.
#[test]
fn a_generator_that_was_starved_stopped_or_late_decides_nothing() {
    let slow = run((0..10_000).map(|number| if number % 50 == 0 { 90 } else { 5 }));
    for warning in [
        Warning::GeneratorLate {
            p99: Duration::from_millis(100),
        },
        Warning::GeneratorStarved {
            threads: ThreadShare { count: 1, of: 1 },
            starved: 0.2,
        },
        Warning::GeneratorStalled {
            threads: ThreadShare { count: 1, of: 1 },
            total: Duration::from_millis(300),
            longest: Duration::from_millis(200),
        },
        Warning::GeneratorSaturated {
            threads: ThreadShare { count: 1, of: 1 },
            busy: 0.99,
        },
    ] {
        let mut report = slow.clone();
        report.warnings = vec![warning];
        for condition in ["p99>20ms", "rate<11k"] {
            let gate = judge_all(&report, &[condition], &[]);
            assert_eq!(gate.verdict, "undecided", "{condition} {gate:?}");
            let reason = gate.conditions[0].reason.as_deref().unwrap();
            assert!(
                reason.contains("generator did itself (generator-"),
                "{reason}"
            );
            let gate = judge_all(&report, &[condition], &[Waiver::Invalid]);
            assert_eq!(gate.verdict, "failed", "{condition} {gate:?}");
        }
        let gate = judge_all(&report, &["errors>0"], &[]);
        assert_eq!(gate.conditions[0].verdict, "passed", "{gate:?}");
    }
    let mut report = slow;
    report.warnings = vec![Warning::GeneratorLate {
        p99: Duration::from_millis(9),
    }];
    assert_eq!(verdict(&report, "p99>20ms"), "failed");
    assert_eq!(
        verdict(&report, "p99>1s"),
        "undecided",
        "the run is invalid"
    );
}

/// A missing descriptor is a lack of this machine, not a fault of the server.
#[test]
fn what_this_machine_lacks_decides_nothing() {
    let mut report = good();
    report.requests.failed = 3;
    for _ in 0..3 {
        report.failures.add(FailureKind::Descriptors);
    }
    for condition in ["p50>20ms", "errors>0"] {
        assert_eq!(verdict(&report, condition), "undecided", "{condition}");
    }
    let gate = judge_all(&report, &["errors>0"], &[]);
    let reason = gate.conditions[0].reason.as_deref().unwrap();
    assert!(reason.contains("no descriptor"), "{reason}");
    report.requests.failed = 4;
    report.failures.add(FailureKind::Reset);
    for condition in ["p50>20ms", "errors>0"] {
        assert_eq!(verdict(&report, condition), "failed", "{condition}");
    }
    // A tenth of all requests failed for it, and then another one for the server.
    let mut report = good();
    let mut timeline = TimelineRecorder::new(false);
    for number in 0..1000 {
        timeline.answer(number * MS, true, 5 * MS, 0);
        timeline.fail(number * MS);
        report.failures.add(FailureKind::Descriptors);
    }
    report.timeline = timeline.finish();
    report.requests.failed = 1000;
    assert_eq!(verdict(&report, "errors>1%"), "undecided");
    report.requests.failed = 2000;
    assert_eq!(verdict(&report, "errors>1%"), "failed");
}

/// Ten clients that all waited for a quarter of a second: 10 of 7,510 latencies have it in them, and of the
/// requests of a schedule every fourth would.
#[test]
fn a_stall_that_a_closed_loop_hides_passes_no_percentile() {
    let report = run((0..7510).map(|number| if number < 10 { 250 } else { 1 }));
    let gate = judge_all(&report, &["p99>20ms"], &[]);
    assert_eq!(gate.verdict, "undecided", "{gate:?}");
    let reason = gate.conditions[0].reason.as_deref().unwrap();
    assert!(
        reason.contains("for 23 % of their time") && reason.contains("--rate"),
        "{reason}"
    );
    // Three of four requests of a schedule would have been answered in time.
    assert_eq!(verdict(&report, "p50>20ms"), "passed");
    assert_eq!(verdict(&report, "p99>500ms"), "passed");
}

/// A limit of errors replaces the conditions on errors that hold for any run.
#[test]
fn errors_are_judged_by_their_limit() {
    let mut report = good();
    report.requests.non_2xx = 2;
    assert_eq!(verdict(&report, "errors>1%"), "passed");
    assert_eq!(verdict(&report, "errors>0"), "failed");
    report.unfinished.unsent = 1000;
    report.requests.started += 1000;
    assert_eq!(verdict(&report, "errors>1%"), "failed");
    assert_eq!(verdict(&report, "errors>0"), "failed");
}

/// Requests without a response count as slower than all others.
#[test]
fn what_was_not_answered_is_slow() {
    let mut report = good();
    report.requests.failed = 300;
    report.requests.started += 300;
    let gate = judge_all(&report, &["p99>20ms"], &[Waiver::Failed]);
    assert_ne!(gate.verdict, "passed", "{gate:?}");
    assert_eq!(gate.conditions[0].high, None);
}

const MS: u64 = 1_000_000;
