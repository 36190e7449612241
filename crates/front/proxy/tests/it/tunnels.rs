//! Tunnels over HTTP/1.1: what opens one, what does not, and how each ends.

mod over_http2;

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{BackendConfig, Config, Protocol, RouteRules};
use catamaran_testkit::{Deadline, HttpClient, Outcome, Peer, Script, address};

use crate::{Front, config, loopback, tcp, to, wait_for_reason};

/// A front whose one route allows `websocket`.
fn front(backends: Vec<BackendConfig>, change: impl FnOnce(&mut Config)) -> Front {
    let mut config = config(&[loopback()], backends);
    config.routes[0].rules = Some(Arc::new(RouteRules {
        upgrade: vec!["websocket".to_owned()],
        ..RouteRules::default()
    }));
    change(&mut config);
    crate::start(config).unwrap()
}

fn as_it_is(_: &mut Config) {}

fn ask(running: &Front) -> HttpClient {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    client.send(ASK.as_bytes()).unwrap();
    client
}

/// A backend that agrees, and then does as `script` says.
fn agreeing(script: Script) -> Peer {
    let head = Script::new().expect_until(b"\r\n\r\n").send(AGREE);
    Peer::start(head.then(script))
}

fn wait_for_no_tunnel(running: &Front) {
    Deadline::default()
        .poll("the tunnel's end", || {
            (running.counters().tunnels_open == 0).then_some(())
        })
        .unwrap();
}

#[test]
fn bytes_go_both_ways_as_they_are_and_each_way_ends_by_itself() {
    let peer = agreeing(
        Script::new()
            .send(b"early from the backend")
            .expect_until(b"GET / HTTP/1.1\r\n\r\n")
            .send(b"0\r\n\r\n")
            .expect_end()
            .send(b"last"),
    );
    let running = front(vec![to(&peer)], as_it_is);
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    // What follows at once waits for the 101, and is no request.
    let early = format!("{ASK}GET / HTTP/1.1\r\n\r\n");
    client.send(early.as_bytes()).unwrap();
    let head = client.receive_head().unwrap();
    assert_eq!(head.status, 101);
    assert_eq!(head.header("upgrade"), Some("websocket"));
    assert_eq!(head.header("connection"), Some("Upgrade"));
    assert_eq!(head.header("sec-websocket-accept"), Some("x"));
    let sent = String::from_utf8(peer.wait_received(0, 60)).unwrap();
    let (request, _) = sent.split_once("\r\n\r\n").unwrap();
    let request = request.to_ascii_lowercase();
    assert!(
        request.contains("\r\nconnection: upgrade\r\nupgrade: websocket"),
        "{request}"
    );
    assert!(request.contains("sec-websocket-key: k"), "{request}");
    assert!(!request.contains("keep-alive"), "{request}");
    client.finish_sending().unwrap();
    let rest = client.receive_to_end().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&rest),
        "early from the backend0\r\n\r\nlast"
    );
    wait_for_no_tunnel(&running);
    let counters = running.counters();
    assert_eq!(counters.tunnel_bytes, [18, 31]);
    assert!(counters.reasons.is_empty(), "{counters:?}");
}

#[test]
fn only_the_protocol_that_was_asked_for_opens_a_tunnel() {
    for answer in [
        String::from_utf8_lossy(AGREE).replace("websocket", "h2c"),
        String::from_utf8_lossy(AGREE).replace("Connection: upgrade\r\n", ""),
        String::from_utf8_lossy(AGREE).replace("Sec-", "Transfer-Encoding: chunked\r\nSec-"),
    ] {
        let script = Script::new().expect_until(b"\r\n\r\n");
        let peer = Peer::start(script.send(answer.as_bytes()).stall());
        let running = front(vec![to(&peer)], as_it_is);
        let mut client = ask(&running);
        assert_eq!(client.receive().unwrap().status, 502, "{answer}");
        wait_for_reason(&running, "backend:upgraded");
        // A probe may have looked whether it is there.
        assert_eq!(peer.received(1), b"", "not asked again");
    }
}

#[test]
fn a_101_that_nobody_asked_for_is_a_fault() {
    let peer = agreeing(Script::new().stall());
    let running = front(vec![to(&peer)], |config| config.routes[0].rules = None);
    let mut client = ask(&running);
    assert_eq!(client.receive().unwrap().status, 502);
    let sent = String::from_utf8(peer.received(0)).unwrap();
    assert!(!sent.to_ascii_lowercase().contains("upgrade"), "{sent}");
}

#[test]
fn requests_that_ask_in_another_way_are_served_like_any_other() {
    let upgrade = "Connection: upgrade\r\nUpgrade: websocket\r\n";
    let post = |framing: &str, body: &str| {
        format!("GET / HTTP/1.1\r\nHost: a\r\n{upgrade}{framing}\r\n\r\n{body}")
    };
    for request in [
        post("Content-Length: 31", "GET /smuggled HTTP/1.1\r\nHost: a"),
        post("Transfer-Encoding: chunked", "2\r\nhi\r\n0\r\n\r\n"),
        ASK.replace("websocket", "websocket, h2c"),
        ASK.replace("websocket", "websocket\r\nUpgrade: h2c"),
        ASK.replace("GET", "POST"),
        ASK.replace(", Upgrade", ""),
    ] {
        let turn = Script::new()
            .expect_until(b"\r\n\r\n")
            .send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        let peer = Peer::start(turn.stall());
        let running = front(vec![to(&peer)], as_it_is);
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        let answer = client.ask(&request).unwrap();
        assert_eq!(answer.text(), "ok", "{request}");
        let sent = String::from_utf8(peer.received(0)).unwrap();
        let (head, _) = sent.split_once("\r\n\r\n").unwrap();
        assert!(!head.to_ascii_lowercase().contains("upgrade"), "{sent}");
        assert_eq!(running.counters().tunnels_open, 0);
    }
}

#[test]
fn another_status_is_an_ordinary_response_and_the_connection_stays() {
    let answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nnobytes";
    let peer = Peer::start_with(move |index| match index {
        0 => Script::new().expect_until(b"\r\n\r\n").send(answer).stall(),
        _ => Script::new()
            .expect_until(b"\r\n\r\n")
            .send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo")
            .stall(),
    });
    let running = front(vec![to(&peer)], as_it_is);
    let mut client = ask(&running);
    let refused = client.receive().unwrap();
    assert_eq!((refused.status, refused.text()), (403, "no".to_owned()));
    let next = client.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!((next.status, next.text()), (200, "two".to_owned()));
    assert_eq!(
        peer.connections(),
        2,
        "one for a tunnel carries nothing else"
    );
}

#[test]
fn it_is_not_asked_again_once_it_was_sent() {
    let first = Peer::start(Script::new().expect_until(b"\r\n\r\n").finish());
    let second = agreeing(Script::new().stall());
    let standby = BackendConfig {
        distance: 1,
        ..to(&second)
    };
    let running = front(vec![to(&first), standby], as_it_is);
    let mut client = ask(&running);
    assert_eq!(client.receive().unwrap().status, 502);
    assert_eq!(second.connections(), 0);
    drop(running);

    // Nothing was sent where nobody listens.
    let mut nobody = to(&first);
    nobody.name = "nobody".to_owned();
    let gone = address::refusing().unwrap();
    let mut refuses = nobody;
    refuses.address = catamaran_proxy::config::Address::Tcp {
        host: gone.ip().to_string(),
        port: gone.port(),
    };
    let standby = BackendConfig {
        distance: 1,
        ..to(&second)
    };
    let running = front(vec![refuses, standby], as_it_is);
    let mut client = ask(&running);
    assert_eq!(client.receive_head().unwrap().status, 101);
}

#[test]
fn a_silent_tunnel_is_closed_in_order() {
    let peer = agreeing(Script::new().expect_end());
    let running = front(vec![to(&peer)], |config| {
        config.routes[0].rules = Some(Arc::new(RouteRules {
            upgrade: vec!["websocket".to_owned()],
            tunnel_idle_timeout: Some(Duration::from_millis(200)),
            ..RouteRules::default()
        }));
    });
    let mut client = ask(&running);
    assert_eq!(client.receive_head().unwrap().status, 101);
    assert_eq!(client.receive_to_end().unwrap(), b"");
    assert_eq!(peer.wait_outcome(0), Outcome::Completed);
    wait_for_reason(&running, "client:tunnel-idle");
}

#[test]
fn a_client_that_takes_nothing_is_cut() {
    let peer = agreeing(Script::new().send(&vec![b'x'; 40 << 20]).stall());
    let running = front(vec![to(&peer)], |config| {
        config.listeners[0].write_timeout = Duration::from_millis(300);
    });
    let mut client = ask(&running);
    assert_eq!(client.receive_head().unwrap().status, 101);
    wait_for_reason(&running, "client:write-timeout");
    wait_for_no_tunnel(&running);
}

#[test]
fn a_backend_that_breaks_is_seen_to_by_the_client() {
    let peer = agreeing(Script::new().expect_until(b"go").reset());
    let running = front(vec![to(&peer)], as_it_is);
    let mut client = ask(&running);
    assert_eq!(client.receive_head().unwrap().status, 101);
    client.send(b"go").unwrap();
    assert!(client.receive_to_end().is_err(), "a reset");
    wait_for_reason(&running, "backend:io");
}

#[test]
fn a_client_that_breaks_is_seen_to_by_the_backend() {
    let peer = agreeing(Script::new().expect_until(b"go").expect_end());
    let running = front(vec![to(&peer)], as_it_is);
    let mut client = ask(&running);
    assert_eq!(client.receive_head().unwrap().status, 101);
    client.send(b"go").unwrap();
    let _ = peer.wait_received(0, 2);
    client.socket().set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    assert_ne!(peer.wait_outcome(0), Outcome::TimedOut);
    wait_for_reason(&running, "client:gone");
}

#[test]
fn tunnels_are_limited_by_themselves() {
    let peer = agreeing(Script::new().stall());
    let limited = BackendConfig {
        connections_max: 1,
        tunnels_max: 2,
        ..to(&peer)
    };
    let running = front(vec![limited], |config| {
        config.server.workers = 1.try_into().unwrap();
    });
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut client = ask(&running);
        assert_eq!(client.receive_head().unwrap().status, 101);
        open.push(client);
    }
    let mut third = ask(&running);
    assert_eq!(third.receive().unwrap().status, 503);
    wait_for_reason(&running, "front:tunnels-max");
    assert_eq!(running.counters().tunnels_open, 2);
    assert_eq!(
        running.backends()[0].counts.in_flight,
        0,
        "no exchange lasts"
    );
    drop(open);
    wait_for_no_tunnel(&running);
    let mut fourth = ask(&running);
    assert_eq!(fourth.receive_head().unwrap().status, 101);
}

#[test]
fn a_backend_over_ajp_needs_another_url() {
    let peer = Peer::start(Script::new().stall());
    let mut ajp = to(&peer);
    ajp.protocol = Protocol::Ajp;
    let running = front(vec![ajp.clone()], as_it_is);
    let mut client = ask(&running);
    assert_eq!(client.receive().unwrap().status, 501);
    wait_for_reason(&running, "front:no-upgrade-url");
    assert_eq!(peer.connections(), 0);
    drop(running);

    let upgrades = agreeing(Script::new().expect_until(b"ping").send(b"pong").stall());
    ajp.upgrade = Some(catamaran_proxy::config::End {
        address: to(&upgrades).address,
        tls: None,
    });
    let running = front(vec![ajp], as_it_is);
    let mut client = ask(&running);
    assert_eq!(client.receive_head().unwrap().status, 101);
    client.send(b"ping").unwrap();
    let mut pong = [0; 4];
    client.socket().read_exact(&mut pong).unwrap();
    assert_eq!(&pong, b"pong");
    let sent = String::from_utf8(upgrades.received(0)).unwrap();
    assert!(
        sent.to_ascii_lowercase()
            .contains("x-forwarded-for: 127.0.0.1"),
        "{sent}"
    );
}

#[test]
fn a_drain_closes_tunnels_in_order_when_its_time_is_over() {
    let peer = agreeing(Script::new().expect_end());
    let running = front(vec![to(&peer)], |config| {
        config.server.drain_timeout = Duration::from_secs(2);
    });
    let mut client = ask(&running);
    assert_eq!(client.receive_head().unwrap().status, 101);
    running.drain();
    // It goes on meanwhile.
    client.send(b"still").unwrap();
    assert_eq!(client.receive_to_end().unwrap(), b"");
    assert_eq!(peer.wait_outcome(0), Outcome::Completed);
    wait_for_reason(&running, "front:drained");
    running.join();
}

const ASK: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
                   Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";

const AGREE: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                       Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";
