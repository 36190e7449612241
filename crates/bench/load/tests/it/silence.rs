//! Spans without an answer are named wherever they lie: at the beginning of a run, within it, at its end.

use std::time::Duration;

use catamaran_load::plan::{Plan, Stop};
use catamaran_load::report::{Report, Silence, Warning};
use catamaran_load::versus::Duel;
use catamaran_testkit::{Peer, Script, timely};

use crate::bench::{closed, plan, run};

/// A run of a second of one client on new connections, of which those that `stalls` says get no answer
/// for 300 ms, which is when the client gives up.
fn run_with(stalls: fn(usize) -> bool) -> Report {
    let peer = Peer::start_with(move |number| {
        let asked = Script::new().expect_until(b"\r\n\r\n");
        if stalls(number) {
            asked.stall()
        } else {
            asked.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        }
    });
    let mut plan = plan(peer.address());
    plan.timeouts.request = Some(TIMEOUT);
    run(Plan {
        pace: closed(1),
        stop: Stop {
            requests: None,
            duration: Some(SPAN),
            grace: Duration::ZERO,
        },
        ..plan
    })
}

fn warned(report: &Report) -> Option<Silence> {
    report.warnings.iter().find_map(|warning| match warning {
        Warning::Silent { longest, .. } => Some(*longest),
        _ => None,
    })
}

/// It is shorter by what a busy machine took from the load's thread.
fn longest(report: &Report) -> Silence {
    let longest = warned(report).unwrap_or_else(|| panic!("{:?}", report.warnings));
    assert!(report.silences.contains(&longest), "{:?}", report.silences);
    assert!(longest.to <= report.elapsed, "{longest:?}");
    longest
}

#[test]
fn a_stall_at_the_beginning_is_named() {
    let is_named = |report: &Report| {
        warned(report).is_some_and(|longest| report.silences.first() == Some(&longest))
    };
    let report = timely(|| run_with(|number| number == 0), is_named);
    assert_eq!(report.silences.first(), Some(&longest(&report)));
}

#[test]
fn a_stall_within_is_named() {
    let is_named = |report: &Report| warned(report).is_some_and(|it| it.from > Duration::ZERO);
    let longest = longest(&timely(|| run_with(|number| number == 3), is_named));
    assert!(longest.from > Duration::ZERO, "{longest:?}");
}

#[test]
fn a_server_that_dies_is_silent_to_the_end() {
    let is_named = |report: &Report| {
        warned(report).is_some_and(|longest| report.silences.last() == Some(&longest))
    };
    let report = timely(|| run_with(|number| number >= 3), is_named);
    assert_eq!(report.silences.last(), Some(&longest(&report)));
}

/// Most blocks of A have no silence, so their median has none.
#[test]
fn a_comparison_names_silences() {
    let peer = |stalls: fn(usize) -> bool| {
        Peer::start_with(move |number| {
            let asked = || Script::new().expect_until(b"\r\n\r\n");
            let answer = asked().send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
            // A peer keeps its sockets until it ends: many answers on each, so that others have descriptors left.
            let answers = answer.repeat(100);
            if stalls(number) {
                answers.then(asked().stall())
            } else {
                answers
            }
        })
    };
    let peers = [peer(|number| number % 20 == 4), peer(|_| false)];
    let plans = [&peers[0], &peers[1]].map(|peer| {
        let mut plan = plan(peer.address());
        plan.timeouts.request = Some(Duration::from_millis(110));
        plan.pace = closed(1);
        plan.stop.grace = Duration::ZERO;
        plan
    });
    let urls = ["http://a/", "http://b/"].map(str::to_owned);
    let mut duel = Duel::new(urls, plans, Duration::from_millis(7200));
    while let Some(plan) = duel.next_plan() {
        duel.add(&run(plan), None);
    }
    let versus = duel.finish();
    let [a, b] = &versus.silences[..] else {
        panic!("{:?}", versus.silences)
    };
    // A stall at the end of a block is cut short by it.
    assert!(a.count >= 1 && a.blocks >= 1, "{a:?}");
    assert!(a.longest_ms >= 100.0, "{a:?}");
    assert_eq!((a.target.as_str(), b.target.as_str()), ("a", "b"));
    let of_a = versus.blocks.iter().filter(|block| block.target == "a");
    assert_eq!(of_a.map(|block| block.silences).sum::<usize>(), a.count);
}

const TIMEOUT: Duration = Duration::from_millis(300);

const SPAN: Duration = Duration::from_secs(1);
