//! Requests that differ from one another: placeholders, weights, names and cookies, over both
//! protocols, as a server sees them.

use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;
use catamaran_load::plan::{Ajp, HttpVersion, Plan, Protocol, Request, Row, Table};
use catamaran_testkit::ajp::{chunk, end_response, field, get_body_chunk, send_headers};
use catamaran_testkit::{Peer, Script};

use crate::bench::{plan, requests, run};

fn table() -> Arc<Table> {
    let row = |line, name: &str| Row {
        line,
        cells: vec![name.as_bytes().to_vec()],
    };
    Arc::new(Table {
        columns: vec!["name".to_owned()],
        rows: vec![row(2, "Ann"), row(3, "Bob B")],
    })
}

fn post() -> Request {
    Request {
        method: "POST".to_owned(),
        body: Bytes::from_static(b"name={{csv name}}"),
        has_placeholders: true,
        ..Request::get("/{{n}}/{{csv name}}", HttpVersion::Http11)
            .header("Host", "h")
            .header("X-Number", "{{n}}")
            .header("Content-Length", "17")
    }
}

/// Answers `count` requests of one connection, each of which has been read to the end of `body`.
fn http_peer(bodies: &[&[u8]], answer: &[u8]) -> Peer {
    let each = bodies
        .iter()
        .map(|body| Script::new().expect_until(body).send(answer));
    Peer::start(each.reduce(Script::then).unwrap().stall())
}

fn received(peer: &Peer) -> String {
    String::from_utf8_lossy(&peer.received(0)).into_owned()
}

#[test]
fn placeholders_are_filled_in_path_header_and_body() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let peer = http_peer(&[b"name=Ann", b"name=Bob B", b"name=Ann"], answer);
    let mut plan = plan(peer.address());
    plan.stop = requests(3);
    plan.table = Some(table());
    plan.targets[0].requests = vec![post()];
    let report = run(plan);
    assert_eq!(report.requests.ok, 3, "{:?}", report.failures);
    let head = |number, path, length| {
        format!(
            "POST /{number}/{path} HTTP/1.1\r\nHost: h\r\nX-Number: {number}\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    let expected = head(1, "Ann", 8)
        + "name=Ann"
        + &head(2, "Bob%20B", 10)
        + "name=Bob B"
        + &head(3, "Ann", 8)
        + "name=Ann";
    assert_eq!(received(&peer), expected);
    assert_eq!(report.bytes.sent, expected.len() as u64);
}

fn ajp_plan(peer: &Peer) -> Plan {
    let mut plan = plan(peer.address());
    plan.targets[0].endpoint.protocol = Protocol::Ajp(Ajp {
        secret: None,
        server_name: "localhost".to_owned(),
        server_port: 80,
        is_ssl: false,
        packet_bytes: 8192,
    });
    plan
}

/// A body of which the container asks for the rest belongs to its own request.
#[test]
fn ajp_requests_are_made_anew_with_their_bodies() {
    let answer = [send_headers(200, &[]), end_response(1)].concat();
    let script = Script::new()
        .expect_packet()
        .expect_packet()
        .send(&get_body_chunk(8186))
        .expect_packet()
        .send(&answer);
    let peer = Peer::start(script.clone().then(script).stall());
    let mut plan = ajp_plan(&peer);
    plan.stop = requests(2);
    plan.table = Some(table());
    let filler = "x".repeat(9000);
    plan.targets[0].requests = vec![Request {
        body: Bytes::from(filler + "{{csv name}}"),
        ..post()
    }];
    let report = run(plan);
    assert_eq!(report.requests.ok, 2, "{:?}", report.failures);
    assert_eq!(report.bytes.sent_bodies, 9003 + 9005);
    let received = received(&peer);
    for text in ["/1/Ann", "/2/Bob%20B", "xAnn", "xBob B"] {
        assert_eq!(received.matches(text).count(), 1, "{text}");
    }
    assert!(!received.contains("{{"), "{received}");
}

#[test]
fn each_client_sends_its_cookies_back() {
    let http = |cookie: &str| {
        format!("HTTP/1.1 200 OK\r\nSet-Cookie: {cookie}; Path=/\r\nContent-Length: 0\r\n\r\n")
    };
    let script = |cookie: &str| {
        Script::new()
            .expect_until(b"\r\n\r\n")
            .send(http(cookie).as_bytes())
    };
    let peer = Peer::start(
        script("sid=1")
            .then(script("sid=2"))
            .then(script("x=3"))
            .stall(),
    );
    let mut plan = plan(peer.address());
    plan.stop = requests(3);
    plan.cookie_jar = true;
    let report = run(plan);
    assert_eq!(report.requests.ok, 3, "{:?}", report.failures);
    let received = received(&peer);
    let cookies: Vec<&str> = received
        .lines()
        .filter(|line| line.starts_with("Cookie"))
        .collect();
    assert_eq!(cookies, ["Cookie: sid=1", "Cookie: sid=2"]);

    let answer = |cookie| {
        let head = send_headers(200, &[field("Set-Cookie", cookie)]);
        [head, chunk(b"hello"), end_response(1)].concat()
    };
    let script = |cookie| Script::new().expect_packet().send(&answer(cookie));
    let peer = Peer::start(script("sid=1").then(script("sid=2")).stall());
    let mut plan = ajp_plan(&peer);
    plan.stop = requests(2);
    plan.cookie_jar = true;
    assert_eq!(run(plan).requests.ok, 2);
    assert_eq!(self::received(&peer).matches("sid=1").count(), 1);
}

#[test]
fn names_have_counts_and_latencies_of_their_own() {
    let good = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let bad = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let once = |answer: &[u8]| Script::new().expect_until(b"\r\n\r\n").send(answer);
    let peer = Peer::start(once(good).then(once(bad)).then(once(good)).finish());
    let mut plan = plan(peer.address());
    plan.stop = requests(3);
    let named = |name: &str| Request {
        name: Some(name.to_owned()),
        ..Request::get("/", HttpVersion::Http11).header("Host", "h")
    };
    plan.targets[0].requests = vec![named("one"), named("two")];
    let report = run(plan);
    let found: Vec<_> = report
        .by_name
        .iter()
        .map(|it| {
            (
                it.name.as_str(),
                it.completed,
                it.non_2xx,
                it.latency.censored.count(),
            )
        })
        .collect();
    assert_eq!(found, [("one", 2, 0, 2), ("two", 1, 1, 1)]);
}

/// The same numbers go to the same requests, however many clients there are.
#[test]
fn a_mix_by_weight_repeats() {
    let mix = |clients| {
        let server =
            crate::server::Server::start(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", u64::MAX);
        let mut plan = plan(&server.address());
        plan.pace = crate::bench::closed(clients);
        plan.stop = requests(200);
        let weighted = |name: &str, weight| Request {
            name: Some(name.to_owned()),
            weight: NonZeroU32::new(weight).unwrap(),
            ..Request::get("/", HttpVersion::Http11).header("Host", "h")
        };
        plan.targets[0].requests = vec![weighted("rare", 1), weighted("often", 9)];
        let counts = run(plan).by_name.into_iter().map(|it| it.completed);
        counts.collect::<Vec<_>>()
    };
    let found = mix(1);
    assert_eq!(found, mix(4));
    assert!((5..40).contains(&found[0]), "{found:?}");
}
