//! Servers under stress: what a report must not hide of them.

use std::time::Duration;

use catamaran_load::plan::{Arrivals, Pace, Plan, Stop};
use catamaran_testkit::{Peer, Script};

use crate::bench::{open, plan, run};

const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn asked() -> Script {
    Script::new().expect_until(b"\r\n\r\n")
}

/// One answer at once.
fn answer() -> Script {
    asked().send(KEPT)
}

/// So long, and then at most so long for what is under way.
fn lasting(duration: u64, grace: u64) -> Stop {
    Stop {
        requests: None,
        duration: Some(Duration::from_millis(duration)),
        grace: Duration::from_millis(grace),
    }
}

fn constant(per_second: f64, connections: usize) -> Pace {
    match open(per_second, connections, 1 << 20) {
        Pace::Open {
            per_second,
            connections,
            backlog,
            ..
        } => Pace::Open {
            per_second,
            arrivals: Arrivals::Constant,
            connections,
            backlog,
        },
        closed @ Pace::Closed { .. } => closed,
    }
}

/// Half of the schedule's requests are answered, and then the server stalls. Most of the others
/// are never sent.
#[test]
fn requests_never_sent_count_in_corrected_percentiles() {
    let peer = Peer::start(answer().repeat(50).then(asked().stall()));
    let report = run(Plan {
        pace: constant(400.0, 4),
        stop: lasting(1000, 10),
        ..plan(peer.address())
    });
    let corrected = report.latency.corrected.unwrap();
    assert_eq!(corrected.count(), report.counts.started);
    assert_eq!(corrected.unanswered(), report.unfinished.total());
    assert!(corrected.unanswered() >= 190, "{:?}", report.unfinished);
    let p99 = corrected.percentile(99.0);
    assert!(!p99.is_exact, "{p99:?}");
    // 1 % of 400 requests, with 2.5 ms between them, are not waited for longer.
    assert!(p99.at_least >= Duration::from_millis(400), "{p99:?}");
}

/// One request in twenty gets no answer in time.
#[test]
fn requests_that_time_out_count_in_corrected_percentiles() {
    let peer = Peer::start(answer().repeat(19).then(asked().stall()));
    let mut plan = plan(peer.address());
    plan.pace = constant(400.0, 10);
    plan.stop = lasting(1000, 2000);
    plan.timeouts.request = Some(Duration::from_millis(200));
    let report = run(plan);
    let corrected = report.latency.corrected.unwrap();
    assert_eq!(corrected.count(), report.counts.started);
    let p99 = corrected.percentile(99.0);
    assert!(
        !p99.is_exact && p99.at_least >= Duration::from_millis(200),
        "{p99:?}"
    );
}
