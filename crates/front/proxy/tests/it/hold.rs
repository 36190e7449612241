//! Requests that wait for a first member of their upstream.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{
    Activation, Address, BackendConfig, Config, HoldConfig, Protocol, RouteRules, RouteTarget,
};
use catamaran_testkit::address::unused;
use catamaran_testkit::{HttpClient, Peer, Response, Script};
use http::StatusCode;

use crate::health::{reasons, until};
use crate::members::{config_of, line};
use crate::operate::{scrape, site, write};
use crate::sticky::named;
use crate::{Front, REQUEST, backend, start, tcp, to};

fn held(mut config: Config, wait: Duration, queue_max: usize) -> Front {
    config.upstreams[0].hold = Some(HoldConfig { wait, queue_max });
    start(config).unwrap()
}

/// A front whose members are in a file that lists none yet.
fn without_members(directory: &Path, wait: Duration, queue_max: usize) -> Front {
    fs::write(directory.join("members"), "").unwrap();
    let config = config_of(directory, "members", Vec::new(), HOUR);
    held(config, wait, queue_max)
}

/// Has the file list these members.
fn list(directory: &Path, members: &str) {
    fs::write(directory.join("members.new"), members).unwrap();
    fs::rename(directory.join("members.new"), directory.join("members")).unwrap();
}

fn send(running: &Front, request: &[u8]) -> HttpClient {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    client.send(request).unwrap();
    client
}

fn response(client: &mut HttpClient) -> Response {
    client.receive().unwrap()
}

/// Waits until so many requests wait.
fn wait_for(running: &Front, count: usize) {
    let wanted = format!("catamaran_upstream_held_requests{{upstream=\"app\"}} {count}\n");
    until("requests that wait", || {
        scrape(running).contains(&wanted).then_some(())
    });
}

/// A backend at an address where nobody listens yet.
fn absent() -> (BackendConfig, SocketAddr) {
    let address = unused().unwrap();
    let (host, port) = (address.ip().to_string(), address.port());
    let backend = BackendConfig::new(Protocol::Http, Address::Tcp { host, port });
    (backend, address)
}

#[test]
fn the_first_member_of_a_list_serves_all_that_wait_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let running = without_members(directory.path(), HOUR, 100);
    let mut waiting: Vec<HttpClient> = (0..20).map(|_| send(&running, REQUEST)).collect();
    waiting.push(send(&running, POST));
    wait_for(&running, 21);
    let peer = backend("first");
    list(directory.path(), &line("a", &peer));
    for client in &mut waiting {
        let answer = response(client);
        assert_eq!((answer.status, answer.text()), (200, "first".to_owned()));
    }
    wait_for(&running, 0);
    let page = scrape(&running);
    let waits = "catamaran_upstream_hold_seconds_count{upstream=\"app\"} 21\n";
    assert!(page.contains(waits), "{page}");
    let received = String::from_utf8(peer.received(0)).unwrap();
    let told = received.to_ascii_lowercase();
    assert!(told.contains("x-forwarded-for: 127.0.0.1"), "{received}");
}

#[test]
fn who_waits_too_long_is_one_too_many_or_leaves_is_let_go() {
    let directory = tempfile::tempdir().unwrap();
    let running = without_members(directory.path(), Duration::from_millis(100), 100);
    assert_eq!(response(&mut send(&running, REQUEST)).status, 503);
    assert_eq!(reasons(&running, "front:hold-timeout"), 1);
    drop(running);

    let running = without_members(directory.path(), HOUR, 1);
    let waiting = send(&running, REQUEST);
    wait_for(&running, 1);
    assert_eq!(response(&mut send(&running, REQUEST)).status, 503);
    assert_eq!(reasons(&running, "front:queue-full"), 1);
    drop(waiting);
    wait_for(&running, 0);
    assert_eq!(reasons(&running, "client:gone"), 1);
}

#[test]
fn a_drain_ends_the_wait() {
    let directory = tempfile::tempdir().unwrap();
    let running = without_members(directory.path(), HOUR, 1);
    let mut waiting = send(&running, REQUEST);
    wait_for(&running, 1);
    running.drain();
    assert_eq!(response(&mut waiting).status, 503);
    assert_eq!(reasons(&running, "front:drained"), 1);
    running.join();
}

#[test]
fn a_backend_that_was_refused_is_waited_for_until_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let (gone, address) = absent();
    let running = held(site(directory.path(), vec![gone]), HOUR, 100);
    // The first finds out that nobody is there, the second knows. Nothing of either was sent.
    let mut waiting = Vec::new();
    for count in 1..=2 {
        waiting.push(send(&running, POST));
        wait_for(&running, count);
    }
    let turn = Script::new()
        .expect_until(b"\r\n\r\nab")
        .send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let script = turn.clone().then(turn).stall();
    let peer = Peer::start_at(address, script);
    for client in &mut waiting {
        assert_eq!(response(client).status, 200);
    }
    drop(peer);
}

/// A backend that is killed closes its connections before the front knows that it is gone.
#[test]
fn a_backend_that_closes_before_it_answers_is_waited_for_until_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let address = unused().unwrap();
    let killed = Peer::start_at(address, Script::new().stall());
    let running = held(site(directory.path(), vec![to(&killed)]), HOUR, 100);
    let mut waiting = send(&running, REQUEST);
    assert!(!killed.wait_received(0, 1).is_empty());
    drop(killed);
    wait_for(&running, 1);
    let script = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .stall();
    let back = Peer::start_at(address, script);
    assert_eq!(response(&mut waiting).status, 200);
    drop(back);
}

#[test]
fn nobody_waits_for_backends_that_operators_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let peer = backend("stopped");
    let backends = vec![named("a", to(&peer))];
    let running = held(site(directory.path(), backends), HOUR, 100);
    let stop = r#"{"activation":"stopped","force":true}"#;
    let path = "/api/v1/upstreams/app/backends/a";
    assert_eq!(write(&running, "PATCH", path, "*", stop).status, 200);
    assert_eq!(response(&mut send(&running, REQUEST)).status, 503);
    assert_eq!(reasons(&running, "front:maintenance"), 1);
}

#[test]
fn a_fetch_for_a_cache_leaves_with_the_last_who_wants_it() {
    let directory = tempfile::tempdir().unwrap();
    let (gone, _) = absent();
    let mut config = site(directory.path(), vec![gone]);
    let pages = crate::cache::cache();
    let rules = RouteRules {
        cache: Some(pages.name.clone()),
        ..RouteRules::default()
    };
    config.routes[0].rules = Some(Arc::new(rules));
    config.caches = vec![pages];
    let running = held(config, HOUR, 100);
    let two = [send(&running, REQUEST), send(&running, REQUEST)];
    wait_for(&running, 1);
    drop(two);
    wait_for(&running, 0);
    assert_eq!(reasons(&running, "front:hold-timeout"), 0);
}

#[test]
fn a_member_that_the_route_drains_is_not_the_one_that_is_awaited() {
    let directory = tempfile::tempdir().unwrap();
    let (gone, address) = absent();
    let drained = backend("drained");
    let backends = vec![named("a", gone), named("b", to(&drained))];
    let rules = RouteRules {
        activation: vec![("b".to_owned(), Activation::Drain)],
        ..RouteRules::default()
    };
    let mut config = site(directory.path(), backends);
    config.routes[0].rules = Some(Arc::new(rules));
    let running = held(config, HOUR, 100);
    let mut waiting = send(&running, REQUEST);
    wait_for(&running, 1);
    let script = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .stall();
    let back = Peer::start_at(address, script);
    assert_eq!(response(&mut waiting).status, 200);
    assert_eq!(drained.received(0), b"");
    drop(back);
}

#[test]
fn a_request_for_members_that_are_told_otherwise_is_not_sent_to_others() {
    let directory = tempfile::tempdir().unwrap();
    let (gone, _) = absent();
    let ajp = BackendConfig::new(Protocol::Ajp, gone.address);
    let config = site(directory.path(), vec![ajp]);
    // Seen to wait below, and to wait no longer after the reload.
    let running = held(config, Duration::from_secs(5), 100);
    let mut waiting = send(&running, REQUEST);
    wait_for(&running, 1);
    let peer = backend("http");
    let mut next = site(directory.path(), vec![to(&peer)]);
    next.upstreams[0].hold = Some(HoldConfig {
        wait: HOUR,
        queue_max: 1,
    });
    running.reload(next).unwrap();
    assert_eq!(response(&mut send(&running, REQUEST)).text(), "http");
    assert_eq!(response(&mut waiting).status, 503);
    assert_eq!(reasons(&running, "front:hold-timeout"), 1);
}

#[test]
fn nobody_goes_on_waiting_for_backends_that_operators_stop() {
    let directory = tempfile::tempdir().unwrap();
    let (gone, _) = absent();
    let backends = vec![named("a", gone)];
    let running = held(site(directory.path(), backends), HOUR, 100);
    let mut waiting = send(&running, REQUEST);
    wait_for(&running, 1);
    let stop = r#"{"activation":"stopped","force":true}"#;
    let path = "/api/v1/upstreams/app/backends/a";
    assert_eq!(write(&running, "PATCH", path, "*", stop).status, 200);
    assert_eq!(response(&mut waiting).status, 503);
    assert_eq!(reasons(&running, "front:maintenance"), 1);
}

#[test]
fn nobody_goes_on_waiting_for_an_upstream_that_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (gone, _) = absent();
    let mut config = site(directory.path(), vec![gone]);
    let running = held(config.clone(), HOUR, 100);
    let mut waiting = send(&running, REQUEST);
    wait_for(&running, 1);
    config.routes[0].target = RouteTarget::Status(StatusCode::GONE);
    config.upstreams.clear();
    running.reload(config).unwrap();
    assert_eq!(response(&mut waiting).status, 503);
    assert_eq!(reasons(&running, "front:no-backend"), 1);
}

const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";

const HOUR: Duration = Duration::from_secs(3600);
