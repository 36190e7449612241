//! Servers with a planted fault, and the words that name each: no figure of theirs may stand without them.

use std::time::Duration;

use catamaran_load::plan::{LengthCheck, Plan, Stop};
use catamaran_load::render::{text, versus};
use catamaran_load::report::Report;
use catamaran_load::versus::Duel;
use catamaran_testkit::{Peer, Script, timely};

use crate::bench::{closed, plan, requests, run};
use crate::server::Server;

/// What a server does, made anew for each connection by its number, and what its report must say.
struct PlantedFault {
    name: &'static str,
    script: fn(usize) -> Script,
    /// How long a request may take, in milliseconds: short where none is answered.
    timeout_ms: u64,
    words: &'static [&'static str],
}

#[test]
fn each_planted_fault_of_a_server_is_named() {
    for fault in FAULTS {
        let peer = Peer::start_with(fault.script);
        let mut plan = plan(peer.address());
        plan.connections.keep_alive = false;
        plan.checks.body_length = LengthCheck::Counted;
        plan.timeouts.request = Some(Duration::from_millis(fault.timeout_ms));
        let report = run(Plan {
            stop: requests(20),
            pace: closed(1),
            ..plan
        });
        let said = text::text(&report);
        for words in fault.words {
            assert!(
                said.contains(words),
                "{}: {words:?} is not said: {said}",
                fault.name
            );
        }
    }
}

/// The page of the lab's method has a table of all planted faults.
#[test]
fn each_planted_fault_of_a_server_is_in_the_table() {
    let page = include_str!("../../../../../docs/lab/method.md");
    let alone = FAULTS.iter().map(|fault| {
        let words = fault.words.join("; ");
        format!("| {} | `bench` | {words} |", fault.name)
    });
    let compared = COMPARED.iter();
    let compared =
        compared.map(|(name, _, words)| format!("| {name} | `bench --versus` | {words} |"));
    for row in alone.chain(compared) {
        assert!(page.contains(&row), "{row}");
    }
}

/// The first line of a comparison of a good server with one that has a fault.
fn compared(good: &'static [u8], other: &'static [u8]) -> String {
    let servers = [
        Server::start(good, u64::MAX),
        Server::start(other, u64::MAX),
    ];
    let plans = servers.each_ref().map(|server| Plan {
        pace: closed(1),
        stop: Stop {
            grace: Duration::ZERO,
            ..Stop::default()
        },
        ..plan(&server.address())
    });
    let urls = ["http://a/", "http://b/"].map(str::to_owned);
    let mut duel = Duel::new(urls, plans, Duration::from_millis(1400));
    while let Some(plan) = duel.next_plan() {
        let report: Report = run(plan);
        duel.add(&report, None);
    }
    versus::text(&duel.finish())
}

#[test]
fn each_planted_fault_of_a_compared_server_is_named() {
    for (name, other, words) in COMPARED {
        let said = timely(|| compared(GOOD, other), |said| said.contains(words));
        assert!(
            said.contains(words),
            "{name}: {words:?} is not said: {said}"
        );
    }
}

fn asked() -> Script {
    Script::new().expect_until(b"\r\n\r\n")
}

fn good() -> Script {
    asked().send(GOOD)
}

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

const FAULTS: &[PlantedFault] = &[
    PlantedFault {
        name: "every fifth connection gets a page of a login instead",
        script: |number| {
            if number % 5 == 4 {
                asked().send(
                    b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 5\r\n\r\nlogin",
                )
            } else {
                good()
            }
        },
        timeout_ms: 10_000,
        words: &["doubtful: non-2xx", "4 of 20 answers were not 2xx"],
    },
    PlantedFault {
        name: "the limiter answers 429 after the first two",
        script: |number| {
            if number < 2 {
                good()
            } else {
                asked().send(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\n\r\nslow!")
            }
        },
        timeout_ms: 10_000,
        words: &["18 of 20 answers were not 2xx: this is the speed of error pages"],
    },
    PlantedFault {
        name: "one answer in ten is empty",
        script: |number| {
            if number % 10 == 9 {
                asked().send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            } else {
                good()
            }
        },
        timeout_ms: 10_000,
        words: &["2 of 20 bodies were not as long as the first one"],
    },
    PlantedFault {
        name: "half of the bodies end ten bytes early",
        script: |number| {
            if number % 2 == 1 {
                asked()
                    .send(b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\nhello")
                    .finish()
            } else {
                good()
            }
        },
        timeout_ms: 10_000,
        words: &["Failed    10", "truncated"],
    },
    PlantedFault {
        name: "interim answers without a final one",
        script: |_| asked().send(b"HTTP/1.1 103 Early Hints\r\n\r\n").stall(),
        timeout_ms: 100,
        words: &["invalid", "Failed    20"],
    },
    PlantedFault {
        name: "a second answer that nobody asked for",
        script: |_| asked().send(&[GOOD, GOOD].concat()).stall(),
        timeout_ms: 10_000,
        words: &["Failed    20", "excess"],
    },
    PlantedFault {
        name: "a tarpit: a byte of the head, then nothing",
        script: |_| asked().send(b"H").stall(),
        timeout_ms: 100,
        words: &["invalid", "timeout"],
    },
];

const COMPARED: &[(&str, &[u8], &str)] = &[
    (
        "a stub: the same status, no page",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        "5 bytes",
    ),
    (
        "all answers of one side are 503",
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nbusy!",
        "errors",
    ),
];
