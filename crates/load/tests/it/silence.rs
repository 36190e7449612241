//! Spans without an answer are named wherever they lie: at the beginning of a run, within it, at its end.

use std::time::Duration;

use catamaran_load::plan::{Plan, Stop};
use catamaran_load::report::{Report, Silence, Warning};
use catamaran_testkit::{Peer, Script};

use crate::bench::{closed, plan, run};

/// A run of a second of one client on new connections, of which those that `stalls` says get no answer
/// for 300 ms, which is when the client gives up.
fn run_with(stalls: fn(usize) -> bool) -> Report {
    let peer = Peer::start_with(move |number| {
        let asked = Script::new().expect_until(b"\r\n\r\n");
        match stalls(number) {
            true => asked.stall(),
            false => asked.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
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

fn longest(report: &Report) -> Silence {
    let warned = report.warnings.iter().find_map(|warning| match warning {
        Warning::Silent { longest, .. } => Some(*longest),
        _ => None,
    });
    let longest = warned.unwrap_or_else(|| panic!("{:?}", report.warnings));
    assert!(report.silences.contains(&longest), "{:?}", report.silences);
    assert!(longest.length() >= TIMEOUT, "{longest:?}");
    assert!(longest.to <= report.elapsed, "{longest:?}");
    longest
}

#[test]
fn a_stall_at_the_beginning_is_named() {
    let longest = longest(&run_with(|number| number == 0));
    assert!(longest.from < TIMEOUT, "{longest:?}");
}

#[test]
fn a_stall_within_is_named() {
    let longest = longest(&run_with(|number| number == 3));
    assert!(longest.from > Duration::ZERO, "{longest:?}");
}

#[test]
fn a_server_that_dies_is_silent_to_the_end() {
    let report = run_with(|number| number >= 3);
    let longest = longest(&report);
    assert_eq!(longest.to, report.elapsed);
}

const TIMEOUT: Duration = Duration::from_millis(300);

const SPAN: Duration = Duration::from_secs(1);
