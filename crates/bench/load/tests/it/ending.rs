//! How runs end that are not ended by their number of requests.

use std::num::NonZeroU64;
use std::time::Duration;

use catamaran_load::plan::{ConnectPatience, Pace, Plan, PlanFault, Stage, Stop, WarmUp};
use catamaran_load::report::{Ending, FailureKind, Warning};
use catamaran_load::start;
use catamaran_stats::WarmUp as Verdict;
use catamaran_testkit::{Address, Peer, Script, address, timely};

use crate::bench::{balanced, closed, plan, requests, run};
use crate::server::Server;

fn stalling() -> Peer {
    Peer::start(Script::new().expect_until(b"\r\n\r\n").stall())
}

fn lasting(duration: Duration) -> Stop {
    Stop {
        requests: None,
        duration: Some(duration),
        grace: Duration::from_millis(10),
    }
}

#[test]
fn what_hangs_at_the_end_is_reported_with_its_age() {
    let peer = stalling();
    let hanging = || {
        run(Plan {
            pace: closed(3),
            stop: lasting(Duration::from_millis(300)),
            ..plan(peer.address())
        })
    };
    let report = timely(hanging, |report| {
        let ages = &report.unfinished.ages;
        report.unfinished.hung == 3 && ages.min() >= Duration::from_millis(100)
    });
    assert_eq!(report.ending, Ending::Duration);
    assert_eq!((report.unfinished.hung, report.requests.started), (3, 3));
    assert!(report.unfinished.ages.min() >= Duration::from_millis(100));
    assert!(report.elapsed >= Duration::from_millis(300));
    let is_hung = |warning: &Warning| matches!(warning, Warning::Hung { count: 3, .. });
    assert!(report.warnings.iter().any(is_hung), "{:?}", report.warnings);
}

#[test]
fn a_duration_ends_a_run_that_goes_well() {
    let well = || {
        let server = Server::start(KEPT, u64::MAX);
        let mut plan = plan(&server.address());
        plan.stop = Stop {
            grace: Duration::from_secs(20),
            ..lasting(Duration::from_millis(300))
        };
        (run(plan), server.requests())
    };
    let (report, received) = timely(well, |(report, _)| report.requests.ok > 0);
    assert_eq!(report.ending, Ending::Duration);
    assert!(report.requests.ok > 0);
    assert_eq!(report.unfinished.total(), 0);
    assert_eq!(received, report.requests.ok);
}

#[test]
fn a_run_is_stopped_from_outside() {
    let peer = stalling();
    let mut running = start(plan(peer.address())).unwrap();
    peer.wait_connections(1);
    assert!(!running.wait(Duration::ZERO));
    running.stopper().stop();
    assert!(running.wait(Duration::from_secs(20)));
    let report = balanced(running.finish());
    assert_eq!(report.ending, Ending::Stopped);
    assert_eq!((report.unfinished.cut, report.unfinished.hung), (1, 0));
}

/// Whichever thread has the connection that hangs: the others have ended by then.
#[test]
fn nothing_happens_for_too_long() {
    for hanging in 0..3 {
        let asked = || Script::new().expect_until(b"\r\n\r\n");
        let peer = Peer::start_with(move |number| {
            if number == hanging {
                asked().stall()
            } else {
                asked().send(KEPT).stall()
            }
        });
        let mut plan = plan(peer.address());
        plan.timeouts.idle = Some(Duration::from_millis(50));
        plan.pace = closed(3);
        plan.stop = requests(3);
        plan.threads = 3.try_into().unwrap();
        let report = run(plan);
        assert_eq!(report.ending, Ending::Idle);
        assert!(report.unfinished.total() >= 1);
    }
}

#[test]
fn the_first_reset_ends_a_run_that_wants_it_so() {
    let peer = Peer::start(Script::new().expect_until(b"\r\n\r\n").reset());
    let mut plan = plan(peer.address());
    plan.stop = requests(100);
    plan.checks.stop_at_receive_error = true;
    let report = run(plan);
    let Ending::Failure(fatal) = &report.ending else {
        panic!("{:?}", report.ending);
    };
    assert_eq!((fatal.kind, fatal.errno), (FailureKind::Reset, Some(104)));
    assert!(report.requests.failed < 100);
}

#[test]
fn patience_with_connects_ends() {
    for (patience, stops, failed) in [
        (ConnectPatience::Ab(10), true, 1),
        (ConnectPatience::BeforeFirstAnswer(10), false, 11),
    ] {
        let mut plan = plan(&Address::Tcp(address::refusing().unwrap()));
        plan.stop = requests(1000);
        plan.connections.patience = patience;
        plan.checks.stop_at_receive_error = stops;
        let report = run(plan);
        let Ending::Failure(fatal) = &report.ending else {
            panic!("{:?}", report.ending);
        };
        assert_eq!((fatal.kind, fatal.errno), (FailureKind::Refused, Some(111)));
        assert_eq!(report.requests.failed, failed);
    }
}

#[test]
fn the_warm_up_is_left_out() {
    let warmed = || {
        let server = Server::start(KEPT, u64::MAX);
        let report = run(Plan {
            warm_up: WarmUp::For(Duration::from_millis(300)),
            stop: requests(20),
            ..plan(&server.address())
        });
        (report, server.requests())
    };
    let (report, received) = timely(warmed, |(report, _)| report.warm_up.requests > 0);
    assert_eq!(report.requests.ok, 20);
    assert!(report.warm_up.requests > 0);
    assert_eq!(received, 20 + report.warm_up.requests);
    assert!(report.warm_up.duration >= Duration::from_millis(300));
    assert_eq!(report.warm_up.verdict, None);
}

#[test]
fn a_warm_up_that_is_not_steady_in_time_is_told() {
    let server = Server::start(KEPT, u64::MAX);
    let report = run(Plan {
        warm_up: WarmUp::Detect {
            max: Duration::from_millis(100),
        },
        stop: requests(20),
        ..plan(&server.address())
    });
    assert_eq!(report.requests.ok, 20);
    let unclear = Verdict::Unclear(f64::INFINITY);
    assert_eq!(report.warm_up.verdict.as_deref(), Some("unclear"));
    assert!(report.warnings.contains(&Warning::NotSteady(unclear)));
}

#[test]
fn stages_end_a_run_and_set_its_clients() {
    let server = Server::start(KEPT, u64::MAX);
    let stage = |level| Stage {
        duration: Duration::from_millis(300),
        level,
        ramp: false,
    };
    let staged = || {
        run(Plan {
            pace: closed(5),
            stages: vec![stage(1.0), stage(3.0)],
            stop: Stop {
                grace: Duration::from_secs(20),
                ..Stop::default()
            },
            ..plan(&server.address())
        })
    };
    let report = timely(staged, |report| report.connections.opened == 3);
    assert_eq!(report.ending, Ending::Duration);
    assert_eq!(report.connections.opened, 3);
    assert!(report.elapsed >= Duration::from_millis(600));
}

#[test]
fn clients_that_begin_one_after_the_other_all_begin() {
    let server = Server::start(KEPT, u64::MAX);
    let mut plan = plan(&server.address());
    plan.pace = Pace::Closed {
        concurrency: 4.try_into().unwrap(),
        spacing: Duration::from_millis(5),
    };
    plan.stop = Stop {
        grace: Duration::from_secs(20),
        ..lasting(Duration::from_millis(400))
    };
    let opened = timely(
        || run(plan.clone()).connections.opened,
        |&opened| opened == 4,
    );
    assert_eq!(opened, 4);
}

#[test]
fn plans_without_sense_are_refused() {
    let good = plan(&Address::Tcp(address::refusing().unwrap()));
    let fault = |change: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        start(plan).unwrap_err()
    };
    assert_eq!(fault(&|plan| plan.targets.clear()), PlanFault::NoTarget);
    assert_eq!(fault(&|plan| plan.stop.requests = None), PlanFault::Endless);
    assert_eq!(
        fault(&|plan| plan.pace = crate::bench::open(f64::NAN, 1, 1)),
        PlanFault::Rate
    );
    assert_eq!(
        fault(&|plan| {
            let target = plan.targets[0].clone();
            plan.targets.push(target);
        }),
        PlanFault::TooFewConnections {
            targets: 2,
            connections: 1
        }
    );
    assert_eq!(
        fault(&|plan| {
            plan.connections = crate::bench::pipelined(2);
            plan.connections.keep_alive = false;
        }),
        PlanFault::PipelineWithoutKeepAlive
    );
    let header = fault(&|plan| {
        plan.targets[0].requests[0] = plan.targets[0].requests[0].clone().header("X", "a\r\nb");
    });
    assert!(header.to_string().contains("line break"), "{header}");
    assert!(good.stop.requests == NonZeroU64::new(1) && good.check().is_ok());
}

const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
