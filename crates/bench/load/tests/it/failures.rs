//! Every kind of failure that a server, or its absence, can cause over HTTP: each request counts
//! once, with its cause, and the run goes on to its number.

use std::time::Duration;

use catamaran_load::plan::{ConnectPatience, LengthCheck, Plan, Resend, Transport};
use catamaran_load::report::{AbCounts, Ending, FailureKind, Warning};
use catamaran_load::start;
use catamaran_testkit::{Address, Deadline, Peer, Script, address};

use crate::bench::{closed, plan, requests, run};
use crate::server::Server;

fn asked() -> Script {
    Script::new().expect_until(b"\r\n\r\n")
}

/// Ten requests on new connections, all of which fail for the same reason.
fn check_plan(plan: Plan, kind: FailureKind) -> catamaran_load::report::Report {
    let report = run(Plan {
        stop: requests(10),
        pace: closed(3),
        ..plan
    });
    assert_eq!(report.failures.of(kind), 10, "{:?}", report.failures);
    assert_eq!(report.requests.started, 10);
    assert_eq!(report.ending, Ending::Requests);
    let warning = Warning::Failed { count: 10, of: 10 };
    assert!(report.warnings.contains(&warning), "{:?}", report.warnings);
    report
}

fn check(script: Script, kind: FailureKind) -> catamaran_load::report::Report {
    let peer = Peer::start(script);
    check_plan(plan(peer.address()), kind)
}

#[test]
fn a_close_instead_of_an_answer() {
    let report = check(asked().finish(), FailureKind::EarlyClose);
    assert_eq!(report.connections.opened, 10);
}

#[test]
fn a_close_amid_the_head() {
    let script = asked().send(b"HTTP/1.1 200 OK\r\nContent-Le");
    check(script, FailureKind::TruncatedHead);
}

#[test]
fn a_close_amid_the_body() {
    let script = asked().send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    let report = check(script, FailureKind::TruncatedBody);
    assert_eq!(report.bytes.received_bodies, 50);
    assert_eq!(report.requests.completed, 0);
}

#[test]
fn a_close_amid_a_chunked_body() {
    let script = asked().send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
    check(script, FailureKind::TruncatedBody);
}

#[test]
fn a_reset() {
    let report = check(asked().reset(), FailureKind::Reset);
    assert_eq!(report.connections.reset, 10);
    let ab = AbCounts {
        receive: 10,
        exceptions: 10,
        ..AbCounts::default()
    };
    assert_eq!(report.ab, ab);
}

#[test]
fn more_bytes_than_the_answer_has() {
    let script = asked().send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, and more");
    check(script.stall(), FailureKind::Excess);
}

#[test]
fn what_is_not_http() {
    check(
        asked().send(b"SSH-2.0-OpenSSH_9.2\r\n").stall(),
        FailureKind::BadHead,
    );
}

#[test]
fn what_speaks_before_it_is_asked() {
    let script = Script::new()
        .send(b"220 mail.example.org ESMTP\r\n")
        .stall();
    check(script, FailureKind::BadHead);
}

#[test]
fn a_head_that_http_forbids() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi";
    check(asked().send(head).stall(), FailureKind::BadHead);
}

#[test]
fn a_head_without_end() {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    while head.len() < 40_000 {
        head.extend_from_slice(b"X-Filler: 0123456789\r\n");
    }
    check(asked().send(&head).stall(), FailureKind::BadHead);
}

#[test]
fn a_malformed_chunk() {
    let script = asked().send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
    check(script.stall(), FailureKind::BadBody);
}

#[test]
fn no_answer_in_time() {
    let peer = Peer::start(asked().stall());
    let mut plan = plan(peer.address());
    plan.timeouts.request = Some(Duration::from_millis(20));
    check_plan(plan, FailureKind::Timeout);
}

#[test]
fn half_an_answer_in_time() {
    let peer = Peer::start(asked().send(b"HTTP/1.1 200 OK\r\n").stall());
    let mut plan = plan(peer.address());
    plan.timeouts.request = Some(Duration::from_millis(20));
    check_plan(plan, FailureKind::Timeout);
}

#[test]
fn nobody_there() {
    let address = Address::Tcp(address::refusing().unwrap());
    let report = check_plan(plan(&address), FailureKind::Refused);
    assert_eq!((report.ab.receive, report.ab.exceptions), (10, 5));
    assert_eq!(report.connections.opened, 0);
    assert_eq!(report.bytes.sent, 0);
}

/// A request that waits for a connection fails at once if the connection is refused.
#[test]
fn nobody_there_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let addresses = [
        Address::Tcp(address::refusing().unwrap()),
        Address::Unix(folder.path().join("nobody")),
    ];
    for address in addresses {
        let mut plan = Plan {
            stop: requests(1000),
            pace: closed(3),
            ..plan(&address)
        };
        plan.connections.patience = ConnectPatience::UntilConnected;
        let report = run(plan);
        let Ending::Failure(fatal) = &report.ending else {
            panic!("{:?}", report.ending);
        };
        assert_eq!(fatal.kind, FailureKind::Refused);
        assert!(report.requests.started <= 3, "{:?}", report.requests);
    }
}

/// A server that stops listening amid the run does not end it: that is what the run is about.
#[test]
fn a_server_that_goes_away_does_not_end_the_run() {
    let server = Server::start(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 1);
    let mut plan = Plan {
        stop: requests(1_000_000_000),
        ..plan(&server.address())
    };
    plan.connections.patience = ConnectPatience::UntilConnected;
    let running = start(plan).unwrap();
    let is_asked = || (server.requests() > 0).then_some(());
    Deadline::default().poll("a request", is_asked).unwrap();
    drop(server);
    let is_refused = || (running.progress().failed >= 3).then_some(());
    Deadline::default().poll("failures", is_refused).unwrap();
    running.stopper().stop();
    let report = running.finish();
    assert_eq!(report.ending, Ending::Stopped);
    assert!(report.failures.of(FailureKind::Refused) >= 3);
}

#[test]
fn no_such_socket() {
    let folder = tempfile::tempdir().unwrap();
    let address = Address::Unix(folder.path().join("nobody"));
    check_plan(plan(&address), FailureKind::Refused);
}

/// An address that is no one's (RFC 5737), and one of the other family.
#[test]
fn a_source_address_that_cannot_be_bound() {
    for source in ["192.0.2.1", "::1"] {
        let peer = Peer::start(asked().stall());
        let mut plan = plan(peer.address());
        plan.connections.sources = vec![source.parse().unwrap()];
        let report = check_plan(plan.clone(), FailureKind::Source);
        assert_eq!(report.connections.opened, 0);
        plan.connections.patience = ConnectPatience::UntilConnected;
        plan.stop = requests(1000);
        let Ending::Failure(fatal) = run(plan).ending else {
            panic!("{source} does not end the run");
        };
        assert_eq!(fatal.kind, FailureKind::Source);
        let words = "the local address of -B could not be bound: ";
        assert!(fatal.message.starts_with(words), "{}", fatal.message);
    }
}

#[test]
fn no_such_name() {
    let mut plan = plan(&Address::Tcp(address::refusing().unwrap()));
    plan.targets[0].endpoint.transport = Transport::Tcp {
        host: "no-such-host.invalid".to_owned(),
        port: 80,
    };
    let report = run(plan);
    assert_eq!(report.failures.of(FailureKind::Name), 1);
    let Ending::Failure(fatal) = report.ending else {
        panic!("{:?}", report.ending);
    };
    assert_eq!(fatal.kind, FailureKind::Name);
    assert!(
        fatal.message.contains("no-such-host.invalid"),
        "{}",
        fatal.message
    );
}

/// The same bytes, however they are framed, are the same body; others of the same length are not.
#[test]
fn a_body_with_other_bytes() {
    let answers: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n3\r\nbcd\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndcba\r\n0\r\n\r\n",
    ];
    let peer = Peer::start_with(move |number| asked().send(answers[number % 4]).finish());
    let mut plan = plan(peer.address());
    plan.stop = requests(4);
    plan.connections.keep_alive = false;
    for (is_checked, others) in [(false, 0), (true, 2)] {
        plan.checks.body_content = is_checked;
        let report = run(plan.clone());
        assert_eq!((report.requests.completed, report.requests.ok), (4, 4));
        assert_eq!(report.requests.other_body, others);
    }
}

#[test]
fn a_body_of_another_length() {
    let bodies = [&b"2\r\n\r\nab"[..], b"3\r\n\r\nabc"];
    let peer = Peer::start_with(move |number| {
        let answer = [b"HTTP/1.1 200 OK\r\nContent-Length: ", bodies[number % 2]].concat();
        asked().send(&answer).finish()
    });
    let mut plan = plan(peer.address());
    plan.stop = requests(4);
    plan.connections.keep_alive = false;
    let report = run(plan.clone());
    assert_eq!(report.failures.of(FailureKind::BodyLength), 2);
    assert_eq!((report.requests.completed, report.requests.ok), (4, 2));
    assert_eq!(report.ab.length, 2);
    assert_eq!(report.server.document_bytes, Some(2));
    assert_eq!(report.requests.other_length, 2);
    for (check, counted) in [(LengthCheck::Counted, 2), (LengthCheck::Ignored, 0)] {
        plan.checks.body_length = check;
        let report = run(plan.clone());
        assert_eq!((report.requests.completed, report.requests.ok), (4, 4));
        assert_eq!(report.requests.other_length, counted);
        assert!(report.is_sound(), "{report:?}");
        let warning = Warning::BodyLengthChanged { count: 2, of: 4 };
        assert_eq!(report.warnings.contains(&warning), counted > 0);
    }
}

/// ab's way: a reset counts as a receive error, an exception, and a body of another length.
#[test]
fn a_reset_after_a_good_answer_counts_three_times_for_ab() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
    let peer = Peer::start_with(move |number| match number {
        0 => asked().send(answer).finish(),
        _ => asked().reset(),
    });
    let mut plan = plan(peer.address());
    plan.stop = requests(11);
    let report = run(plan);
    assert_eq!(report.failures.of(FailureKind::Reset), 10);
    let ab = report.ab;
    assert_eq!((ab.receive, ab.length, ab.exceptions), (10, 10, 10));
    assert_eq!(ab.failed(), 30);
}

/// A server that answers once on a kept connection, reads the next request, and closes.
fn dropping_the_second() -> Peer {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let script = asked().send(answer).expect_until(b"\r\n\r\n").finish();
    Peer::start_with(move |number| match number {
        0 => script.clone(),
        _ => asked().send(answer).stall(),
    })
}

/// Nobody sends it again, whatever its method: the server has read it.
#[test]
fn a_request_that_the_server_read_and_dropped_has_failed() {
    for method in ["GET", "POST"] {
        let peer = dropping_the_second();
        let mut plan = plan(peer.address());
        plan.targets[0].requests[0].method = method.to_owned();
        plan.stop = requests(3);
        let report = run(plan);
        assert_eq!(report.failures.of(FailureKind::EarlyClose), 1, "{method}");
        assert_eq!(
            (report.requests.ok, report.connections.resent),
            (2, 0),
            "{method}"
        );
    }
}

/// As ab: a request on a kept connection that ends is an answer of no length, also where the end was there
/// before the request was written.
#[test]
fn a_kept_connection_that_is_gone_fails_its_request_for_ab() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let closing = Peer::start_with(move |number| match number {
        0 => asked().send(answer).finish_sending().stall(),
        _ => asked().send(answer).stall(),
    });
    for peer in [dropping_the_second(), closing] {
        let mut plan = plan(peer.address());
        plan.connections.resend = Resend::Never;
        plan.stop = requests(3);
        let report = run(plan);
        assert_eq!((report.requests.ok, report.ab.length), (2, 1));
        assert_eq!(report.failures.of(FailureKind::EarlyClose), 1);
        assert_eq!(report.connections.resent, 0);
        let head = b"GET / HTTP/1.1\r\n";
        // The peer may still be about to read the second.
        let is_written_once = || {
            let sent = peer.received(0);
            let heads = sent.windows(head.len()).filter(|it| it == head);
            (heads.count() == 2).then_some(())
        };
        Deadline::default()
            .poll("a head that is written once", is_written_once)
            .unwrap();
    }
}

/// A POST behind an answer that closes the connection: nobody knows whether it was read.
#[test]
fn pipelined_requests_that_must_not_run_twice_are_not_sent_again() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
    let head = b"POST / HTTP/1.1\r\nHost: test\r\n\r\n";
    let peer = Peer::start(Script::new().expect(2 * head.len()).send(answer));
    let mut plan = plan(peer.address());
    plan.targets[0].requests[0].method = "POST".to_owned();
    plan.connections = crate::bench::pipelined(2);
    plan.stop = requests(4);
    let report = run(plan);
    assert_eq!((report.requests.ok, report.connections.resent), (2, 0));
    assert_eq!(report.failures.of(FailureKind::EarlyClose), 2);
}
