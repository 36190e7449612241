//! Tunnels over HTTP/2 (RFC 8441): an extended CONNECT towards the client, an upgrade towards the
//! backend.

use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{BackendConfig, Config, Protocols, RouteRules};
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use catamaran_testkit::{Deadline, Outcome, Peer, Script};

use super::{AGREE, front, wait_for_no_tunnel};
use crate::{Front, tcp, to, wait_for_reason};

/// A front whose one route allows `websocket` and [`OTHER`].
fn h2_front(backends: Vec<BackendConfig>, change: impl FnOnce(&mut Config)) -> Front {
    front(backends, |config| {
        config.listeners[0].protocols = Protocols::Both;
        allow(config, |_| ());
        change(config);
    })
}

fn allow(config: &mut Config, change: impl FnOnce(&mut RouteRules)) {
    let mut rules = RouteRules {
        upgrade: vec!["websocket".to_owned(), OTHER.to_owned()],
        ..RouteRules::default()
    };
    change(&mut rules);
    config.routes[0].rules = Some(Arc::new(rules));
}

fn as_it_is(_: &mut Config) {}

/// A backend that agrees to [`OTHER`], and then does as `script` says.
fn agreeing(script: Script) -> Peer {
    let agree = String::from_utf8_lossy(AGREE).replace("websocket", OTHER);
    let head = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(agree.as_bytes());
    Peer::start(head.then(script))
}

/// The head of an extended CONNECT with these fields besides.
fn connect(stream: u32, protocol: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", protocol),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/chat?x=y"),
    ];
    let fields: Vec<_> = fields
        .iter()
        .chain(more)
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect();
    frame(kind::HEADERS, END_HEADERS, stream, &block(&fields))
}

fn data(stream: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, stream, bytes)
}

/// A client that has sent the opening and `bytes`, in pieces of `cut`.
fn client(running: &Front, bytes: &[u8], cut: usize) -> Http2Client {
    let mut client = Http2Client::connect(tcp(running, 0)).unwrap();
    client.send(&[&opening(65_535), bytes].concat(), cut);
    client
}

/// A client whose tunnel is open on stream 1.
fn open(running: &Front) -> Http2Client {
    let mut client = client(running, &connect(1, OTHER, &[]), usize::MAX);
    assert_eq!(client.next_said().unwrap(), Said::Status(1, 200));
    client
}

#[test]
fn bytes_go_both_ways_and_each_way_ends_by_itself() {
    for cut in [usize::MAX, 7, 1] {
        let peer = agreeing(
            Script::new()
                .send(b"early from the backend")
                .expect_until(b"early from the client")
                .send(b"second")
                .expect_until(b"GET / HTTP/1.1\r\n\r\n")
                .expect_end()
                .send(b"last"),
        );
        let running = h2_front(vec![to(&peer)], as_it_is);
        // What follows the head at once waits for the backend's agreement.
        let early = [connect(1, OTHER, &[]), data(1, 0, b"early from the client")];
        let mut client = client(&running, &early.concat(), cut);
        assert_eq!(client.next_said().unwrap(), Said::Status(1, 200));
        let bytes = client.read_body(28).unwrap();
        assert_eq!(bytes, b"early from the backendsecond");
        let end = data(1, END_STREAM, b"GET / HTTP/1.1\r\n\r\n");
        client.send(&end, cut);
        assert_eq!(client.read_body(4).unwrap(), b"last");
        assert_eq!(client.next_said().unwrap(), Said::End(1));
        // The connection stays: another tunnel is asked for.
        client.send(&connect(3, OTHER, &[]), cut);
        assert_eq!(client.next_said().unwrap(), Said::Status(3, 200));
        let sent = String::from_utf8(peer.received(0)).unwrap();
        let (head, _) = sent.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("GET /chat?x=y HTTP/1.1\r\n"), "{head}");
        let head = head.to_ascii_lowercase();
        assert!(
            head.contains("\r\nconnection: upgrade\r\nupgrade: other"),
            "{head}"
        );
        assert!(!head.contains("sec-websocket-key"), "{head}");
        let counters = running.counters();
        assert!(counters.tunnel_bytes[0] >= 39 && counters.tunnel_bytes[1] >= 32);
        assert!(counters.reasons.is_empty(), "{counters:?}");
        drop(client);
    }
}

#[test]
fn it_is_announced_only_where_a_route_allows_a_tunnel() {
    let peer = agreeing(Script::new().stall());
    let running = h2_front(vec![to(&peer)], as_it_is);
    let allows = open(&running);
    let announced = (ENABLE_CONNECT_PROTOCOL, 1);
    assert!(allows.settings().contains(&announced));
    drop(allows);
    drop(running);

    let running = h2_front(vec![to(&peer)], |config| config.routes[0].rules = None);
    let mut client = client(&running, &connect(1, OTHER, &[]), usize::MAX);
    assert_eq!(client.next_said().unwrap(), Said::Reset(1, PROTOCOL_ERROR));
    let ids = client.settings().iter().map(|(id, _)| *id);
    assert!(!ids.into_iter().any(|id| id == ENABLE_CONNECT_PROTOCOL));
    wait_for_reason(&running, "client:h2-pseudo");
    assert_eq!(peer.connections(), 1, "only the first one's");
}

#[test]
fn what_is_refused_reaches_no_backend() {
    let peer = agreeing(Script::new().stall());
    let running = h2_front(vec![to(&peer)], as_it_is);
    let plain = [(&b":method"[..], &b"CONNECT"[..]), (b":authority", b"a")];
    let plain = frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &block(&plain));
    let no_path = [
        (&b":method"[..], &b"CONNECT"[..]),
        (b":protocol", b"other"),
        (b":scheme", b"http"),
        (b":authority", b"a"),
    ];
    let no_path = frame(kind::HEADERS, END_HEADERS, 1, &block(&no_path));
    let get = [
        (&b":method"[..], &b"GET"[..]),
        (b":protocol", b"other"),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", b"/"),
    ];
    let get = frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &block(&get));
    let status = |status| Said::Status(1, status);
    let reset = Said::Reset(1, PROTOCOL_ERROR);
    for (name, bytes, expected) in [
        (
            "another protocol",
            connect(1, "connect-udp", &[]),
            status(501),
        ),
        ("no protocol", plain, status(405)),
        ("no path", no_path, reset.clone()),
        ("a protocol of GET", get, reset.clone()),
        ("no token", connect(1, "a b", &[]), reset.clone()),
        ("an empty protocol", connect(1, "", &[]), reset.clone()),
        (
            "two protocols",
            connect(1, OTHER, &[(":protocol", OTHER)]),
            reset.clone(),
        ),
        (
            "a length",
            connect(1, OTHER, &[("content-length", "0")]),
            reset.clone(),
        ),
        (
            "Upgrade besides",
            connect(1, OTHER, &[("upgrade", "websocket")]),
            reset,
        ),
    ] {
        for cut in [usize::MAX, 1] {
            let mut client = client(&running, &bytes, cut);
            assert_eq!(client.next_said().unwrap(), expected, "{name}, {cut}");
        }
    }
    wait_for_reason(&running, "client:connect-protocol");
    wait_for_reason(&running, "client:connect");
    wait_for_reason(&running, "client:h2-content-length");
    assert_eq!(peer.connections(), 0);
}

#[test]
fn a_success_without_agreement_opens_nothing() {
    let answers = [
        ("200 OK", 502, "backend:not-upgraded"),
        ("206 Partial Content", 502, "backend:not-upgraded"),
        ("403 Forbidden", 403, ""),
        ("302 Found", 302, ""),
    ];
    for (answer, status, reason) in answers {
        let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 2\r\n\r\nno");
        let script = Script::new().expect_until(b"\r\n\r\n");
        let peer = Peer::start(script.send(answer.as_bytes()).stall());
        let running = h2_front(vec![to(&peer)], as_it_is);
        let early = [connect(1, OTHER, &[]), data(1, 0, b"for the tunnel")];
        let mut client = client(&running, &early.concat(), usize::MAX);
        assert_eq!(client.next_said().unwrap(), Said::Status(1, status));
        if reason.is_empty() {
            assert_eq!(client.read_body(2).unwrap(), b"no");
        } else {
            wait_for_reason(&running, reason);
        }
        assert_eq!(client.next_said().unwrap(), Said::End(1));
        let sent = String::from_utf8(peer.received(0)).unwrap();
        assert!(!sent.contains("for the tunnel"), "{sent}");
        drop(client);
    }
}

/// Envoy passes the key of its client of HTTP/1.1 on, and wants the answer to it.
#[test]
fn a_key_of_the_clients_is_kept_and_its_answer_passed_on() {
    for (answer, status) in [("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 200), ("another", 502)] {
        let agree = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Accept: {answer}\r\n\r\n"
        );
        let head = Script::new().expect_until(b"\r\n\r\n");
        let peer = Peer::start(head.send(agree.as_bytes()).stall());
        let running = h2_front(vec![to(&peer)], as_it_is);
        let own = [("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")];
        let mut client = client(&running, &connect(1, "websocket", &own), usize::MAX);
        assert_eq!(client.next_said().unwrap(), Said::Status(1, status));
        let sent = String::from_utf8(peer.received(0)).unwrap();
        assert_eq!(sent.matches(own[0].1).count(), 1, "{sent}");
        drop(client);
    }
}

#[test]
fn the_front_makes_the_key_and_checks_the_answer() {
    let head = Script::new().expect_until(b"\r\n\r\n").send(AGREE);
    let peer = Peer::start(head.stall());
    let running = h2_front(vec![to(&peer)], as_it_is);
    let own = [("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="); 2];
    let mut client = client(&running, &connect(1, "websocket", &own), usize::MAX);
    assert_eq!(client.next_said().unwrap(), Said::Status(1, 502));
    wait_for_reason(&running, "backend:websocket-accept");
    let sent = String::from_utf8(peer.received(0)).unwrap();
    let keys = sent.to_ascii_lowercase();
    assert_eq!(keys.matches("sec-websocket-key: ").count(), 1, "{sent}");
    assert!(!sent.contains(own[0].1), "{sent}");
}

#[test]
fn a_silent_tunnel_is_ended_and_reset() {
    let peer = agreeing(Script::new().expect_end());
    let running = h2_front(vec![to(&peer)], |config| {
        allow(config, |rules| {
            rules.tunnel_idle_timeout = Some(Duration::from_millis(200));
        });
    });
    let mut client = open(&running);
    assert_eq!(client.next_said().unwrap(), Said::End(1));
    assert_eq!(client.next_said().unwrap(), Said::Reset(1, CANCEL));
    assert_eq!(peer.wait_outcome(0), Outcome::Completed);
    wait_for_reason(&running, "client:tunnel-idle");
}

#[test]
fn a_reset_ends_one_tunnel_and_not_its_neighbour() {
    // Whether its bytes are awaited, or it has said that none follow.
    for flags in [0, END_STREAM] {
        // After the end of its client the first one has more to say than the client takes.
        let greeted = Script::new().expect_until(b"hello").send(b"yes");
        let peer = agreeing(greeted.expect_end().send(&vec![b'x'; 40 << 20]));
        let running = h2_front(vec![to(&peer)], as_it_is);
        let mut client = open(&running);
        client.send(&connect(3, OTHER, &[]), usize::MAX);
        assert_eq!(client.next_said().unwrap(), Said::Status(3, 200));
        client.send(&data(1, flags, b"hello"), usize::MAX);
        assert_eq!(client.read_body(3).unwrap(), b"yes");
        client.send(&frame(kind::RST_STREAM, 0, 1, &CANCEL.to_be_bytes()), 1);
        wait_for_reason(&running, "client:client-reset");
        let head = peer.received(1).len();
        client.send(&data(3, 0, b"hello"), usize::MAX);
        assert!(peer.wait_received(1, head + 5).ends_with(b"hello"));
        assert_eq!(running.counters().tunnels_open, 1);
        drop(client);
        wait_for_no_tunnel(&running);
    }
}

#[test]
fn a_backend_that_breaks_has_the_stream_reset() {
    let peer = agreeing(Script::new().expect_until(b"go").reset());
    let running = h2_front(vec![to(&peer)], as_it_is);
    let mut client = open(&running);
    client.send(&data(1, 0, b"go"), usize::MAX);
    assert_eq!(client.next_said().unwrap(), Said::Reset(1, CANCEL));
    wait_for_reason(&running, "backend:io");
}

#[test]
fn a_client_that_takes_nothing_is_cut_and_others_go_on() {
    let peer = Peer::start_with(|index| {
        let agree = String::from_utf8_lossy(AGREE).replace("websocket", OTHER);
        let head = Script::new()
            .expect_until(b"\r\n\r\n")
            .send(agree.as_bytes());
        match index {
            0 => head.send(&vec![b'x'; 40 << 20]).stall(),
            _ => head.expect_until(b"ping").stall(),
        }
    });
    let running = h2_front(vec![to(&peer)], |config| {
        config.listeners[0].write_timeout = Duration::from_millis(300);
    });
    let mut client = open(&running);
    // The connection's window is wide, that of the stream is not widened.
    let widened = frame(kind::WINDOW_UPDATE, 0, 0, &(1_u32 << 20).to_be_bytes());
    client.send(&[widened, connect(3, OTHER, &[])].concat(), usize::MAX);
    let said = client.wait(|said| matches!(said, Said::Reset(..))).unwrap();
    assert_eq!(said, Some(Said::Reset(1, CANCEL)));
    wait_for_reason(&running, "client:write-timeout");
    client.send(&data(3, 0, b"ping"), usize::MAX);
    assert_eq!(running.counters().tunnels_open, 1);
    drop(client);
    wait_for_no_tunnel(&running);
}

#[test]
fn pings_do_not_keep_a_tunnel_whose_bytes_nobody_takes() {
    let peer = agreeing(Script::new().send(&vec![b'x'; 4 << 20]).stall());
    let running = h2_front(vec![to(&peer)], |config| {
        config.listeners[0].write_timeout = Duration::from_millis(300);
    });
    // The window of the connection is the obstacle, too.
    let mut client = open(&running);
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    let reset = || {
        client.send(&ping, usize::MAX);
        let said = client.read_once().unwrap();
        assert!(!said.contains(&Said::Closed), "{said:?}");
        let is_reset = |it: &Said| matches!(it, Said::Reset(..));
        said.into_iter().find(is_reset)
    };
    let said = Deadline::default().poll("the cut", reset).unwrap();
    assert_eq!(said, Said::Reset(1, CANCEL));
    wait_for_reason(&running, "client:write-timeout");
    wait_for_no_tunnel(&running);
}

#[test]
fn a_drain_ends_tunnels_when_its_time_is_over() {
    let peer = agreeing(Script::new().expect_until(b"still").expect_end());
    let running = h2_front(vec![to(&peer)], |config| {
        config.server.drain_timeout = Duration::from_secs(5);
    });
    let mut client = open(&running);
    running.drain();
    // It goes on meanwhile.
    client.send(&data(1, 0, b"still"), usize::MAX);
    let mut said = Vec::new();
    loop {
        match client.next_said().unwrap() {
            Said::Closed => break,
            other => said.push(other),
        }
    }
    let of_stream = |said: &&Said| matches!(said, Said::End(1) | Said::Reset(1, CANCEL));
    assert_eq!(said.iter().filter(of_stream).count(), 2, "{said:?}");
    assert_eq!(peer.wait_outcome(0), Outcome::Completed);
    wait_for_reason(&running, "front:drained");
    running.join();
}

const ENABLE_CONNECT_PROTOCOL: u16 = 8;
const PROTOCOL_ERROR: u32 = 1;
const CANCEL: u32 = 8;

/// A protocol without a handshake of its own, so that a script can agree to it.
const OTHER: &str = "other";
