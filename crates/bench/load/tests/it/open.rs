//! The open loop: what is due is sent or accounted for, whatever the server does.

use std::time::Duration;

use catamaran_load::plan::{Arrival, HttpVersion, Plan, PlanFault, Replay, Request, Stop};
use catamaran_load::report::{Ending, FailureKind, ReplayFacts};
use catamaran_load::start;
use catamaran_testkit::{Peer, Script, timely};

use crate::bench::{open, plan, requests, run};
use crate::server::Server;

#[test]
fn a_schedule_sends_its_number_on_its_connections() {
    let server = Server::start(KEPT, u64::MAX);
    let report = run(Plan {
        pace: open(2000.0, 4, 1000),
        stop: requests(200),
        threads: 2.try_into().unwrap(),
        ..plan(&server.address())
    });
    assert_eq!((server.requests(), report.requests.ok), (200, 200));
    assert_eq!(report.ending, Ending::Requests);
    assert!(report.connections.opened <= 4);
    let corrected = report.latency.corrected.unwrap().censored;
    assert_eq!(corrected.count(), 200);
    assert_eq!(report.latency.lateness.unwrap().histogram.count(), 200);
    assert!(corrected.max().at_least >= report.latency.total.histogram.max());
}

#[test]
fn a_schedule_lasts_as_long_as_asked() {
    let server = Server::start(KEPT, u64::MAX);
    let report = run(Plan {
        pace: open(200.0, 4, 1000),
        stop: Stop {
            requests: None,
            duration: Some(Duration::from_millis(300)),
            grace: Duration::from_secs(20),
        },
        ..plan(&server.address())
    });
    assert_eq!(report.ending, Ending::Duration);
    assert!(report.elapsed >= Duration::from_millis(300));
    assert_eq!(report.requests.ok, server.requests());
}

/// One connection, which the server holds: what is due meanwhile waits, and is told in the end.
#[test]
fn what_finds_no_connection_is_unsent_not_forgotten() {
    let peer = Peer::start(Script::new().expect_until(b"\r\n\r\n").stall());
    let held = || {
        run(Plan {
            pace: open(1000.0, 1, 100_000),
            stop: Stop {
                requests: None,
                duration: Some(Duration::from_millis(200)),
                grace: Duration::from_millis(10),
            },
            ..plan(peer.address())
        })
    };
    let report = timely(held, |report| {
        report.unfinished.hung == 1 && report.unfinished.unsent > 50
    });
    assert_eq!(report.unfinished.hung, 1);
    assert!(report.unfinished.unsent > 50, "{:?}", report.unfinished);
    assert_eq!(report.requests.started, 1 + report.unfinished.unsent);
}

#[test]
fn what_finds_no_place_to_wait_fails() {
    let peer = Peer::start(Script::new().expect_until(b"\r\n\r\n").stall());
    let mut plan = plan(peer.address());
    plan.pace = open(1000.0, 1, 5);
    plan.stop = requests(50);
    plan.timeouts.request = Some(Duration::from_millis(300));
    let report = run(plan);
    assert!(
        report.failures.of(FailureKind::Backlog) > 10,
        "{:?}",
        report.failures
    );
    assert_eq!(report.requests.started, 50);
}

/// A server that closes unannounced after each answer: a client that notices in time connects
/// anew. Who sends at the same moment meets a reset, which nobody can tell from a real one.
#[test]
fn connections_closed_between_requests_are_replaced() {
    let server = Server::start(KEPT, 1);
    let report = run(Plan {
        pace: open(500.0, 2, 1000),
        stop: requests(40),
        ..plan(&server.address())
    });
    let reset = report.failures.of(FailureKind::Reset);
    assert_eq!(report.requests.ok + reset, 40, "{:?}", report.failures);
    assert_eq!(report.requests.ok, server.requests());
}

/// Ten requests of two kinds, the last one due after 90 ms of 100.
fn replay() -> Replay {
    let arrival = |place: u32| Arrival {
        at_ns: u64::from(place) * 10_000_000,
        request: u32::from(place > 6),
    };
    Replay {
        arrivals: (0..10).map(arrival).collect(),
        span: Duration::from_millis(100),
        facts: ReplayFacts::default(),
    }
}

#[test]
fn a_replay_sends_each_request_of_its_list() {
    let peer = Server::start(KEPT, u64::MAX);
    let mut plan = Plan {
        pace: open(100.0, 4, 1000),
        threads: 2.try_into().unwrap(),
        replay: Some(replay()),
        ..plan(&peer.address())
    };
    plan.stop.requests = None;
    let other = Request::get("/other", HttpVersion::Http11);
    let fault = start(plan.clone()).err();
    assert_eq!(
        fault,
        Some(PlanFault::Replay),
        "the second request is missing"
    );
    plan.targets[0].requests.push(other);
    let report = run(plan);
    assert_eq!(report.requests.started, 10);
    assert_eq!(report.latency.censored().map(|it| it.count()), Some(10));
    assert!(report.elapsed >= Duration::from_millis(100));
    assert_eq!(peer.requests(), 10);
}

const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
