//! As many requests as asked for, no more and no fewer, however they are sent.

use std::num::{NonZeroU64, NonZeroUsize};

use catamaran_load::plan::{Connections, HttpVersion, Plan, Request, Samples};
use catamaran_load::report::{Ending, Warning};
use catamaran_testkit::{Peer, Script};

use crate::bench::{closed, pipelined, plan, requests, run, transport};
use crate::server::Server;

#[test]
fn kept_connections_send_exactly_what_was_asked() {
    for (count, clients, threads) in [(1, 1, 1), (100, 7, 3), (1000, 16, 2), (5, 5, 9)] {
        let server = Server::start(KEPT, u64::MAX);
        let report = run(Plan {
            pace: closed(clients),
            stop: requests(count),
            threads: NonZeroUsize::new(threads).unwrap(),
            ..plan(&server.address())
        });
        assert_eq!(server.requests(), count);
        assert_eq!(report.requests.ok, count);
        assert_eq!(report.requests.kept_alive, count);
        assert_eq!(report.ending, Ending::Requests);
        assert_eq!(report.threads, threads.min(clients));
        assert_eq!(report.connections.opened, clients as u64);
        assert_eq!(report.connections.reused, count - clients as u64);
        assert_eq!(report.bytes.received_bodies, 5 * count);
        assert_eq!(report.bytes.received, KEPT.len() as u64 * count);
        assert_eq!(
            report.bytes.received_heads + report.bytes.received_bodies,
            report.bytes.received
        );
        let sent = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n".len() as u64;
        assert_eq!(report.bytes.sent, sent * count);
    }
}

/// wrk and h2load take such heads, too.
#[test]
fn a_head_of_60_kb_with_500_fields_is_taken() {
    let fields: String = (0..499)
        .map(|number| format!("X-{number:03}: {}\r\n", "x".repeat(112)))
        .collect();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{fields}\r\nhello");
    assert!(answer.len() > 60_000, "{}", answer.len());
    let server = Server::start(Box::leak(answer.into_boxed_str()).as_bytes(), u64::MAX);
    let report = run(Plan {
        pace: closed(1),
        stop: requests(3),
        ..plan(&server.address())
    });
    assert_eq!(
        (report.requests.ok, report.connections.opened),
        (3, 1),
        "{:?}",
        report.failures
    );
}

#[test]
fn connections_that_close_are_made_anew() {
    let server = Server::start(CLOSED, 1);
    let report = run(Plan {
        pace: closed(4),
        stop: requests(50),
        ..plan(&server.address())
    });
    assert_eq!((server.requests(), report.requests.ok), (50, 50));
    assert_eq!(report.connections.opened, 50);
    assert_eq!(report.latency.connect.histogram.count(), 50);
    assert_eq!(
        (report.requests.kept_alive, report.connections.reused),
        (0, 0)
    );
    let warning = Warning::KeepAliveRefused { kept: 0, of: 50 };
    assert!(report.warnings.contains(&warning), "{:?}", report.warnings);
}

#[test]
fn a_body_that_ends_with_the_connection_is_whole() {
    let server = Server::start(b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 1);
    let report = run(Plan {
        stop: requests(5),
        ..plan(&server.address())
    });
    assert_eq!((report.requests.ok, report.requests.without_length), (5, 5));
    assert_eq!(report.bytes.received_bodies, 5 * 13);
}

#[test]
fn we_close_where_keep_alive_is_not_wanted_or_the_limit_is_reached() {
    for (keep_alive, requests_max, connections) in [(false, None, 10), (true, Some(4), 3)] {
        let server = Server::start(KEPT, u64::MAX);
        let report = run(Plan {
            stop: requests(10),
            connections: Connections {
                keep_alive,
                requests_max: requests_max.and_then(NonZeroU64::new),
                ..Connections::default()
            },
            ..plan(&server.address())
        });
        assert_eq!((server.requests(), report.requests.ok), (10, 10));
        assert_eq!(report.connections.opened, connections);
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(KEPT, u64::MAX);
    let report = run(Plan {
        pace: closed(2),
        stop: requests(101),
        connections: pipelined(8),
        ..plan(&server.address())
    });
    assert_eq!((server.requests(), report.requests.ok), (101, 101));
    assert_eq!(report.connections.opened, 2);
}

/// What was sent behind an answer that closed the connection is sent again on the next one.
#[test]
fn pipelined_requests_survive_a_close() {
    let server = Server::start(CLOSED, 1);
    let report = run(Plan {
        stop: requests(20),
        connections: pipelined(4),
        ..plan(&server.address())
    });
    assert_eq!(report.requests.ok, 20, "{:?}", report.failures);
}

#[test]
fn an_answer_in_small_pieces_is_one_answer() {
    let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let once = Script::new()
        .expect_until(b"\r\n\r\n")
        .send_in_pieces(answer, 1);
    let peer = Peer::start(once.clone().then(once).stall());
    let report = run(Plan {
        stop: requests(2),
        ..plan(peer.address())
    });
    assert_eq!((report.requests.ok, report.connections.opened), (2, 1));
    assert_eq!(report.bytes.received_bodies, 10);
    assert_eq!(report.bytes.received, 2 * answer.len() as u64);
}

/// Each connection has one target, and goes through its requests from its own number on.
#[test]
fn requests_and_targets_take_turns() {
    let (one, other) = (Peer::start(serving(6)), Peer::start(serving(6)));
    let mut plan = plan(one.address());
    let request = |path| Request::get(path, HttpVersion::Http10);
    plan.targets[0].requests = ["/a", "/b", "/c"].map(request).to_vec();
    let mut second = plan.targets[0].clone();
    second.endpoint.transport = transport(other.address());
    plan.targets.push(second);
    plan.pace = closed(2);
    plan.stop = requests(6);
    let report = run(plan);
    assert_eq!(report.requests.ok, 6);
    assert_eq!(report.server.addresses.len(), 2);
    let paths = |peer: &Peer| {
        let received = String::from_utf8(peer.received(0)).unwrap();
        let lines = received.lines().filter(|line| !line.is_empty());
        lines.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let (one, other) = (paths(&one), paths(&other));
    assert_eq!(one.len() + other.len(), 6);
    let lines = ["GET /a HTTP/1.0", "GET /b HTTP/1.0", "GET /c HTTP/1.0"];
    for (received, first) in [(one, 0), (other, 1)] {
        for (line, expected) in received.iter().zip(lines.iter().cycle().skip(first)) {
            assert_eq!(line, expected);
        }
    }
}

/// Serves so many requests on a connection, and then waits for the end.
fn serving(count: usize) -> Script {
    let once = || {
        Script::new()
            .expect_until(b"\r\n\r\n")
            .send(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n")
    };
    (1..count)
        .fold(once(), |script, _| script.then(once()))
        .stall()
}

#[test]
fn a_unix_socket_serves_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start_unix(&folder.path().join("socket"), |_| serving(5));
    let report = run(Plan {
        stop: requests(5),
        ..plan(peer.address())
    });
    assert_eq!((report.requests.ok, report.connections.opened), (5, 1));
    assert_eq!(report.server.addresses, [None]);
}

#[test]
fn statuses_first_answer_and_samples_are_kept() {
    let server = Server::start(
        b"HTTP/1.1 404 Not Found\r\nServer: A b\r\nContent-Length: 1\r\n\r\nx",
        u64::MAX,
    );
    let report = run(Plan {
        stop: requests(30),
        samples: Samples::First(NonZeroUsize::new(20).unwrap()),
        ..plan(&server.address())
    });
    assert_eq!(report.statuses.into_iter().collect::<Vec<_>>(), [(404, 30)]);
    assert_eq!((report.requests.ok, report.requests.non_2xx), (30, 30));
    assert!(
        report
            .warnings
            .contains(&Warning::NonSuccess { count: 30, of: 30 })
    );
    assert_eq!(report.samples.len(), 20);
    assert!(report.samples[0].connect > 0 && report.samples[1].connect == 0);
    let server = report.server;
    assert_eq!(
        (server.first_status, server.document_bytes),
        (Some(404), Some(1))
    );
    assert_eq!(server.software.as_deref(), Some("A b"));
    assert!(server.first_head.starts_with(b"HTTP/1.1 404 Not Found\r\n"));
}

#[test]
fn a_head_request_has_no_body() {
    let server = Server::start(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", u64::MAX);
    let mut plan = plan(&server.address());
    plan.targets[0].requests[0].method = "HEAD".to_owned();
    plan.stop = requests(3);
    let report = run(plan);
    assert_eq!((report.requests.ok, report.bytes.received_bodies), (3, 0));
    assert_eq!(report.connections.opened, 1);
}

#[test]
fn a_large_request_body_is_sent_whole() {
    let body = vec![b'x'; 3_000_000];
    let length = body.len().to_string();
    let answered = Script::new()
        .expect_until(b"\r\n\r\n")
        .expect(body.len())
        .send(KEPT);
    let peer = Peer::start(answered.clone().then(answered).stall());
    let mut plan = plan(peer.address());
    let request = Request::get("/", HttpVersion::Http11).header("Content-Length", length);
    plan.targets[0].requests = vec![Request {
        method: "PUT".to_owned(),
        body: body.into(),
        ..request
    }];
    plan.stop = requests(2);
    let report = run(plan);
    assert_eq!(report.requests.ok, 2, "{:?}", report.failures);
    assert_eq!(report.bytes.sent_bodies, 6_000_000);
    assert!(report.bytes.sent > 6_000_000);
}

const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\nServer: Test/1.0 (x)\r\nContent-Length: 5\r\n\r\nhello";
const CLOSED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
