//! AJP13: a container that answers, one that asks for a body, and those that break the protocol.

use bytes::Bytes;
use catamaran_load::plan::{Ajp, HttpVersion, Plan, Protocol, Request};
use catamaran_load::report::{FailureKind, Report};
use catamaran_testkit::ajp::{
    chunk, end_response, field, get_body_chunk, send_headers, to_web_server,
};
use catamaran_testkit::{Peer, Script};

use crate::bench::{plan, requests, run};

fn plan_of(peer: &Peer) -> Plan {
    let mut plan = plan(peer.address());
    plan.targets[0].endpoint.protocol = Protocol::Ajp(Ajp {
        secret: Some(b"hush".to_vec()),
        server_name: "localhost".to_owned(),
        server_port: 80,
        is_ssl: false,
        packet_bytes: 8192,
    });
    plan
}

fn answer(reuse: bool) -> Vec<u8> {
    let head = send_headers(
        200,
        &[field("Server", "Box/9"), field("Content-Length", "5")],
    );
    [head, chunk(b"hello"), end_response(u8::from(reuse))].concat()
}

#[test]
fn a_kept_connection_serves_them_all() {
    let once = Script::new().expect_packet().send(&answer(true));
    let peer = Peer::start(once.clone().then(once.clone()).then(once).stall());
    let mut plan = plan_of(&peer);
    plan.stop = requests(3);
    let report = run(plan);
    assert_eq!((report.requests.ok, report.requests.kept_alive), (3, 3));
    assert_eq!(
        (report.connections.opened, report.bytes.received_bodies),
        (1, 15)
    );
    assert_eq!(report.bytes.received, 3 * answer(true).len() as u64);
    let server = report.server;
    assert_eq!(server.software.as_deref(), Some("Box/9"));
    assert!(
        server
            .first_head
            .starts_with(b"HTTP/1.1 200 OK\r\nServer: Box/9\r\n")
    );
    let sent = peer.received(0);
    assert!(sent.windows(4).any(|bytes| bytes == b"hush"));
}

/// Grizzly (Payara, GlassFish) ends a chunk with whatever its buffer holds.
#[test]
fn a_chunk_may_end_with_any_byte_or_none() {
    for last in [&b"\0"[..], b"\x41", b"\xff", b""] {
        let chunk = |data: &[u8]| {
            let len = u16::try_from(data.len()).unwrap().to_be_bytes();
            to_web_server(&[&[3], &len[..], data, last].concat())
        };
        let head = send_headers(200, &[field("Content-Length", "5")]);
        let answer = [
            head,
            chunk(b"he"),
            chunk(b""),
            chunk(b"llo"),
            end_response(1),
        ]
        .concat();
        let once = Script::new().expect_packet().send(&answer);
        let peer = Peer::start(once.clone().then(once).stall());
        let mut plan = plan_of(&peer);
        plan.stop = requests(2);
        let report = run(plan);
        assert_eq!(report.requests.ok, 2, "{last:x?}: {:?}", report.failures);
        assert_eq!(
            (report.connections.opened, report.bytes.received_bodies),
            (1, 10)
        );
    }
}

#[test]
fn a_container_that_does_not_reuse_gets_new_connections() {
    let peer = Peer::start(Script::new().expect_packet().send(&answer(false)).finish());
    let mut plan = plan_of(&peer);
    plan.stop = requests(3);
    let report = run(plan);
    assert_eq!((report.requests.ok, report.connections.opened), (3, 3));
}

#[test]
fn a_body_is_sent_as_it_is_asked_for() {
    let body = Bytes::from(vec![b'x'; 20_000]);
    // 8186 bytes come unasked, then 8186 and the rest.
    let script = Script::new()
        .expect_packet()
        .expect_packet()
        .send(&get_body_chunk(8186))
        .expect_packet()
        .send(&get_body_chunk(8186))
        .expect_packet()
        .send(&answer(true));
    let peer = Peer::start(script.clone().then(script).stall());
    let mut plan = plan_of(&peer);
    plan.stop = requests(2);
    plan.targets[0].requests = vec![Request {
        method: "POST".to_owned(),
        body,
        ..Request::get("/upload", HttpVersion::Http11)
    }];
    let report = run(plan);
    assert_eq!(report.requests.ok, 2, "{:?}", report.failures);
    assert_eq!(report.bytes.sent_bodies, 40_000);
    assert_eq!(report.bytes.sent, peer.received(0).len() as u64);
}

fn check(answer: &[u8], kind: FailureKind) -> Report {
    let peer = Peer::start(Script::new().expect_packet().send(answer).finish());
    let mut plan = plan_of(&peer);
    plan.stop = requests(3);
    let report = run(plan);
    assert_eq!(
        report.failures.of(kind),
        3,
        "{:?} {answer:?}",
        report.failures
    );
    report
}

#[test]
fn each_break_of_the_protocol_is_a_failure() {
    let head = send_headers(200, &[field("Content-Length", "5")]);
    let end = end_response(1);
    for (answer, kind) in [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            FailureKind::BadPacket,
        ),
        ([&head[..], &head].concat(), FailureKind::BadPacket),
        (chunk(b"hello"), FailureKind::BadPacket),
        (
            [&head[..], &chunk(b"hell"), &end].concat(),
            FailureKind::BadPacket,
        ),
        (
            [&head[..], &chunk(b"hello!")].concat(),
            FailureKind::BadPacket,
        ),
        (end.clone(), FailureKind::BadPacket),
        (Vec::new(), FailureKind::EarlyClose),
        (head[..7].to_vec(), FailureKind::TruncatedHead),
        (head.clone(), FailureKind::TruncatedBody),
        (
            [&head[..], &chunk(b"hello")].concat(),
            FailureKind::TruncatedBody,
        ),
        ([&answer(true)[..], b"AB"].concat(), FailureKind::Excess),
    ] {
        check(&answer, kind);
    }
}
