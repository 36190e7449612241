//! Servers under stress: what a report must not hide of them.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use catamaran_load::plan::{Arrivals, Pace, Plan, Stage, StarvedTime, Stop, WarmUp};
use catamaran_load::report::{Ending, FailureKind, Thread, Warning};
use catamaran_testkit::{Address, Peer, Script, address, timely};

use crate::bench::{closed, open, plan, requests, run};

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
    let corrected = report.latency.corrected.unwrap().censored;
    assert_eq!(corrected.count(), report.requests.started);
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
    let corrected = report.latency.corrected.unwrap().censored;
    assert_eq!(corrected.count(), report.requests.started);
    let p99 = corrected.percentile(99.0);
    assert!(
        !p99.is_exact && p99.at_least >= Duration::from_millis(200),
        "{p99:?}"
    );
}

fn stage(millis: u64, level: f64) -> Stage {
    Stage {
        duration: Duration::from_millis(millis),
        level,
        ramp: false,
    }
}

/// A schedule of stages that the server's one connection cannot carry.
#[test]
fn overload_by_stages_is_told() {
    let slow = asked().pause(Duration::from_millis(20)).send(KEPT);
    let peer = Peer::start(slow.repeat(100));
    let report = run(Plan {
        pace: constant(1000.0, 1),
        stages: vec![stage(200, 1000.0), stage(200, 500.0)],
        stop: Stop {
            requests: None,
            duration: None,
            grace: Duration::from_secs(20),
        },
        ..plan(peer.address())
    });
    assert_eq!(report.requests.started, 300);
    let unsent = report.unfinished.unsent;
    assert!(unsent > 250, "{:?}", report.unfinished);
    let expected = Warning::Unsent {
        count: unsent,
        of: 300,
    };
    assert!(report.warnings.contains(&expected), "{:?}", report.warnings);
    let missed = report.warnings.iter().find_map(|warning| match warning {
        Warning::RateMissed { asked, sent } => Some((*asked, *sent)),
        _ => None,
    });
    let (asked, sent) = missed.unwrap();
    // What was due, over a span that a busy machine may have prolonged.
    let due = asked * report.elapsed.as_secs_f64();
    assert!((due - 300.0).abs() < 0.1 && sent < 200.0, "{due} {sent}");
}

/// One of four connections takes its time with the last answer.
#[test]
fn the_drain_is_apart_from_the_span() {
    let slow = asked().pause(Duration::from_millis(1500)).send(KEPT);
    let drained = || {
        let slow = slow.clone();
        let peer = Peer::start_with(move |connection| match connection {
            0 => slow.clone(),
            _ => asked()
                .pause(Duration::from_millis(10))
                .send(KEPT)
                .repeat(1000),
        });
        run(Plan {
            pace: closed(4),
            stop: lasting(300, 20_000),
            ..plan(peer.address())
        })
    };
    let report = timely(drained, |report| {
        report.elapsed < Duration::from_millis(1400)
    });
    assert_eq!(report.ending, Ending::Duration);
    assert!(
        report.elapsed < Duration::from_millis(1400),
        "{:?}",
        report.elapsed
    );
    assert!(report.drain > Duration::ZERO);
    assert!(report.elapsed + report.drain >= Duration::from_millis(1500));
    let in_drain = report.requests.completed - report.in_span.completed;
    assert!(
        (1..=4).contains(&in_drain),
        "{in_drain} {:?}",
        report.requests
    );
    assert_eq!(report.in_span.sent, report.requests.started);
}

/// A schedule that was kept: that the answers take longer than all of it is not the sender's doing.
#[test]
fn answers_in_the_drain_do_not_make_the_rate_missed() {
    let slow = asked().pause(Duration::from_millis(900)).send(KEPT);
    let peer = Peer::start(slow.repeat(2));
    let kept = || {
        run(Plan {
            pace: constant(200.0, 100),
            stop: requests(100),
            ..plan(peer.address())
        })
    };
    let missed = |warning: &Warning| matches!(warning, Warning::RateMissed { .. });
    let report = timely(kept, |report| !report.warnings.iter().any(missed));
    assert_eq!(report.requests.ok, 100);
    assert!(!report.warnings.iter().any(missed), "{:?}", report.warnings);
    assert!(report.drain > Duration::ZERO);
}

/// The server announces its close and then keeps the connection. 400 clients' turns of 100 ms each
/// would be longer than any test waits.
#[test]
fn an_announced_close_is_not_waited_for() {
    let closing = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    let peer = Peer::start(asked().send(closing).stall());
    let report = run(Plan {
        stop: requests(400),
        ..plan(peer.address())
    });
    assert_eq!((report.requests.ok, report.connections.opened), (400, 400));
    assert_eq!(report.concurrency_reached, 1);
}

/// Pauses after connects that fail are ours and meant: nothing is late by them.
#[test]
fn a_pause_of_ours_is_no_lateness() {
    let address = Address::Tcp(address::refusing().unwrap());
    let refused = || {
        let report = run(Plan {
            pace: constant(1000.0, 1),
            stop: requests(20),
            ..plan(&address)
        });
        assert_eq!(report.failures.of(FailureKind::Refused), 20);
        report.latency.lateness.unwrap().histogram.median()
    };
    // The pauses are 1 ms, and twice as long each time up to 100 ms: together 427 ms before the eleventh request.
    let max = Duration::from_millis(400);
    let lateness = timely(refused, |&lateness| lateness < max);
    assert!(lateness < max, "{lateness:?}");
}

/// Clients that still wait for answers of the warm-up when measuring begins are not idle, and those
/// for whom no request is left are not, either.
#[test]
fn clients_with_long_answers_are_not_called_idle() {
    let slow = asked().pause(Duration::from_millis(100)).send(KEPT);
    let peer = Peer::start(slow.repeat(1000));
    // Both end by their number, however many answers a busy machine gives in a while.
    let numbered = Plan {
        pace: closed(300),
        stop: requests(1000),
        ..plan(peer.address())
    };
    let warmed = Plan {
        warm_up: WarmUp::For(Duration::from_millis(250)),
        stop: requests(1350),
        ..numbered.clone()
    };
    for plan in [warmed, numbered] {
        let idle = |warning: &Warning| matches!(warning, Warning::LittlesLaw { .. });
        let report = timely(
            || run(plan.clone()),
            |report| !report.warnings.iter().any(idle),
        );
        assert!(
            report.latency.total.histogram.count() >= 1000,
            "{:?}",
            report.requests
        );
        assert!(!report.warnings.iter().any(idle), "{:?}", report.warnings);
    }
}

/// Threads that have always just waited an hour for a CPU, and others that never wait: only the first are told.
#[test]
fn a_starved_generator_is_told() {
    thread_local!(static LOOKS: Cell<u32> = const { Cell::new(0) });
    let an_hour_more = || {
        LOOKS.set(LOOKS.get() + 1);
        Some(Duration::from_secs(3600) * LOOKS.get())
    };
    let peer = Peer::start(answer().repeat(100_000));
    let planted: [StarvedTime; 3] = [an_hour_more, || Some(Duration::ZERO), || None];
    for (starved_time, told) in planted.into_iter().zip([Some(4), None, None]) {
        let report = run(Plan {
            pace: closed(4),
            threads: 4.try_into().unwrap(),
            stop: requests(400),
            starved_time,
            ..plan(peer.address())
        });
        let found = report.warnings.iter().find_map(|warning| match warning {
            Warning::GeneratorStarved { threads, .. } => Some(threads.count),
            _ => None,
        });
        assert_eq!(found, told, "{:?}: {:?}", report.ending, report.generator);
    }
}

/// Threads of the generator and two that only compute on one CPU: the kernel says that somebody had to wait.
#[test]
fn time_without_a_cpu_is_reported() {
    let peer = Peer::start(answer().repeat(100_000));
    let plan = Plan {
        pace: closed(4),
        threads: 4.try_into().unwrap(),
        stop: requests(2000),
        ..plan(peer.address())
    };
    // Threads inherit the CPU of the one that starts them.
    let test = std::thread::spawn(move || {
        let mut one = rustix::thread::CpuSet::new();
        one.set(rustix::thread::sched_getcpu());
        rustix::thread::sched_setaffinity(None, &one).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let report = run(plan);
            stop.store(true, Relaxed);
            report
        })
    });
    let report = test.join().unwrap();
    let waited = report
        .generator
        .threads
        .iter()
        .filter_map(|thread| thread.starved_s);
    assert!(waited.sum::<f64>() > 0.0, "{report:?}");
}

fn stalls(warning: &Warning) -> bool {
    matches!(warning, Warning::Stalled { .. })
}

/// One answer of 201 takes 400 ms: the median and the 99th percentile know nothing of it.
#[test]
fn a_stall_of_a_closed_loop_is_told() {
    let slow = asked().pause(Duration::from_millis(400)).send(KEPT);
    let script = answer().repeat(100).then(slow).then(answer().repeat(100));
    let peer = Peer::start(script);
    let report = run(Plan {
        stop: requests(201),
        ..plan(peer.address())
    });
    assert_eq!(report.requests.ok, 201);
    assert!(report.warnings.iter().any(stalls), "{:?}", report.warnings);
}

/// Where every answer takes long, nothing stalls.
#[test]
fn slow_answers_are_no_stall() {
    let slow = asked().pause(Duration::from_millis(150)).send(KEPT);
    let peer = Peer::start(slow.repeat(5));
    let slowly = || {
        run(Plan {
            stop: requests(5),
            ..plan(peer.address())
        })
    };
    let report = timely(slowly, |report| !report.warnings.iter().any(stalls));
    assert!(!report.warnings.iter().any(stalls), "{:?}", report.warnings);
}

/// 200/s at 20 ms or more are 4 in flight on average, and twice as many for Poisson's sake.
#[test]
fn requests_that_wait_for_a_connection_are_told() {
    let slow = asked().pause(Duration::from_millis(20)).send(KEPT);
    let peer = Peer::start(slow.repeat(1000));
    let needed = |connections| {
        let report = run(Plan {
            pace: constant(200.0, connections),
            stop: lasting(300, 20_000),
            ..plan(peer.address())
        });
        report.warnings.iter().find_map(|warning| match warning {
            Warning::Waited { needed, .. } => Some(*needed),
            _ => None,
        })
    };
    let is_enough = |found: &Option<u64>| found.is_some_and(|needed| needed >= 10);
    let found = timely(|| needed(1), is_enough);
    assert!(is_enough(&found), "{found:?}");
    // More than there are requests: none has to wait.
    assert_eq!(timely(|| needed(100), Option::is_none), None);
}

/// Starts 10 µs apart are too near for a timer. The server never answers, so that there is nothing
/// else to do than to wait for them.
#[test]
fn a_generator_that_spins_says_so() {
    let peer = Peer::start(asked().stall());
    let usage = |per_second| {
        let report = run(Plan {
            pace: constant(per_second, 1),
            stop: lasting(200, 10),
            ..plan(peer.address())
        });
        let [usage] = report.generator.threads[..] else {
            panic!("{:?}", report.generator);
        };
        usage
    };
    let often_and_rarely = || (usage(100_000.0), usage(10.0));
    let is_so = |(often, rarely): &(Thread, Thread)| {
        often.spun_s > 0.0 && often.spun_s <= often.cpu_s && rarely.spun_s < often.spun_s
    };
    let found = timely(often_and_rarely, is_so);
    assert!(is_so(&found), "{found:?}");
}

/// While it warms up, a closed loop has the clients of its first stage.
#[test]
fn a_warm_up_keeps_the_level_of_the_first_stage() {
    let slow = asked().pause(Duration::from_millis(5)).send(KEPT);
    let peer = Peer::start(slow.repeat(10_000));
    let report = run(Plan {
        pace: closed(8),
        // Two requests are answered long before the second stage begins.
        stages: vec![stage(20_000, 1.0), stage(5000, 8.0)],
        warm_up: WarmUp::For(Duration::from_millis(1000)),
        stop: Stop {
            requests: NonZeroU64::new(2),
            duration: None,
            grace: Duration::from_secs(20),
        },
        ..plan(peer.address())
    });
    assert_eq!(report.requests.ok, 2);
    assert_eq!(report.concurrency_reached, 1);
}

/// A server that closes a connection after many requests keeps it alive all the same.
#[test]
fn a_limit_of_requests_per_connection_refuses_no_keep_alive() {
    let last = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    let peer = Peer::start(answer().repeat(499).then(asked().send(last)));
    let report = run(Plan {
        stop: requests(1000),
        ..plan(peer.address())
    });
    assert_eq!(
        (report.requests.ok, report.requests.kept_alive),
        (1000, 998)
    );
    let refused = |warning: &Warning| matches!(warning, Warning::KeepAliveRefused { .. });
    assert!(
        !report.warnings.iter().any(refused),
        "{:?}",
        report.warnings
    );
}

const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
