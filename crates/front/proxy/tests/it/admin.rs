//! The admin listener over a socket: what it says while the front lives, drains and is alone.

use std::net::SocketAddr;

use catamaran_proxy::BoundAddress;
use catamaran_proxy::config::{Address, AdminConfig, BackendConfig, Config, Protocol};
use catamaran_testkit::{Deadline, HttpClient, Peer, Response, Script};

use crate::{Front, NEVER, ask, backend, config, get, loopback, start, tcp, to};

pub(crate) fn with_admin(backends: Vec<BackendConfig>) -> Config {
    Config {
        admin: Some(AdminConfig::new(vec![loopback()])),
        ..config(&[loopback()], backends)
    }
}

pub(crate) fn admin(running: &Front) -> SocketAddr {
    match &running.admin_addresses()[..] {
        [BoundAddress::Tcp(address), ..] => *address,
        other => panic!("no TCP address: {other:?}"),
    }
}

fn request(address: SocketAddr, request: &str) -> Response {
    let mut client = HttpClient::connect(address).unwrap();
    let response = client.ask(request).unwrap();
    assert_eq!(client.receive_to_end().unwrap(), b"", "it is closed");
    response
}

pub(crate) fn page(address: SocketAddr, path: &str) -> (u16, String) {
    let response = request(address, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    (response.status, response.text())
}

/// What the API says of everything.
pub(crate) fn status(address: SocketAddr) -> String {
    let head = "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
    request(address, head).text()
}

#[test]
fn it_says_what_was_counted() {
    let app = backend("app");
    let running = start(with_admin(vec![to(&app)])).unwrap();
    for _ in 0..3 {
        assert_eq!(get(tcp(&running, 0)).status, 200);
    }
    // A client can have its response before it is counted.
    let counted = || (running.counters().responses[2] == 3).then_some(());
    Deadline::default()
        .poll("all responses to be counted", counted)
        .unwrap();
    let front = admin(&running);
    assert_eq!(page(front, "/healthz"), (200, "alive\n".to_owned()));
    assert_eq!(page(front, "/readyz"), (200, "ready\n".to_owned()));
    let response = request(front, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        response.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = response.text();
    let name = &running.backends()[0].backend;
    for line in [
        "catamaran_requests_total 3".to_owned(),
        "catamaran_responses_total{class=\"2xx\"} 3".to_owned(),
        format!("catamaran_backend_up{{upstream=\"app\",backend=\"{name}\"}} 1"),
        "catamaran_ready 1".to_owned(),
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in {text}");
    }
    drop(running);
    assert!(
        HttpClient::connect(front).is_err(),
        "it ends with the front"
    );
}

#[test]
fn it_refuses_what_it_does_not_know() {
    let app = backend("app");
    let running = start(with_admin(vec![to(&app)])).unwrap();
    let front = admin(&running);
    assert_eq!(page(front, "/nothing").0, 421, "the Host is not its own");
    let own = format!("GET /nothing HTTP/1.1\r\nHost: {front}\r\n\r\n");
    assert_eq!(request(front, &own).status, 404);
    let post = "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(request(front, post).status, 405);
    assert_eq!(request(front, "nonsense\r\n\r\n").status, 400);
}

/// More of them than there are places: connections that send nothing, a part of a head, and a head whose
/// body never comes.
#[test]
fn clients_that_hold_their_connections_do_not_keep_probes_out() {
    let running = start(with_admin(vec![])).unwrap();
    let front = admin(&running);
    let begun = [
        "",
        "GET /healthz HT",
        "POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",
        "POST /api/v1/reload HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",
    ];
    let mut held = Vec::new();
    for begun in begun.iter().cycle().take(32 * 4) {
        let mut client = HttpClient::connect(front).unwrap();
        client.send(begun.as_bytes()).unwrap();
        held.push(client);
        if held.len() >= 32 {
            assert_eq!(page(front, "/healthz"), (200, "alive\n".to_owned()));
        }
    }
    let (_, metrics) = page(front, "/metrics");
    let reason = "culprit=\"front\",reason=\"admin-connections-max\"} ";
    let line = metrics.lines().find_map(|line| line.split_once(reason));
    let closed: u64 = line.expect(&metrics).1.parse().unwrap();
    assert!(closed >= 32 * 3, "{closed}");
    let ready = page(front, "/readyz").1;
    assert!(!ready.contains("turned away"), "{ready}");
    let status = status(front);
    assert!(status.contains(r#""whom":"administrators""#), "{status}");
}

#[test]
fn it_is_not_ready_while_every_backend_is_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.sock");
    let dead = BackendConfig::new(Protocol::Http, Address::Unix(path.clone()));
    let running = start(with_admin(vec![dead])).unwrap();
    let front = admin(&running);
    assert_eq!(page(front, "/readyz").0, 200, "nobody has tried it yet");
    assert_eq!(get(tcp(&running, 0)).status, 503);
    let out = (
        503,
        "not ready\nupstream app accepts no new clients\n".to_owned(),
    );
    assert_eq!(page(front, "/readyz"), out);
    assert_eq!(page(front, "/healthz").0, 200);
    let _reborn = Peer::start_unix(&path, |_| Script::new().stall());
    let back = || (page(front, "/readyz").0 == 200).then_some(());
    Deadline::default()
        .poll("the backend to be back", back)
        .unwrap();
}

#[test]
fn a_drain_is_told_from_its_beginning_until_its_end() {
    let app = Peer::start(Script::new().expect_until(b"\r\n\r\n").stall());
    let mut config = with_admin(vec![to(&app)]);
    config.server.drain_timeout = NEVER;
    let running = start(config).unwrap();
    let front = admin(&running);
    // An exchange that does not end keeps the drain going.
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    client.send(crate::REQUEST).unwrap();
    app.wait_connections(1);
    running.drain();
    assert_eq!(page(front, "/readyz"), (503, "draining\n".to_owned()));
    assert!(
        page(front, "/metrics")
            .1
            .contains("\ncatamaran_draining 1\n")
    );
    assert_eq!(page(front, "/healthz").0, 200);
    drop(client);
    running.join();
    assert!(HttpClient::connect(front).is_err(), "the drain is over");
}

#[test]
fn nothing_is_served_unless_asked_for() {
    let app = backend("app");
    let running = start(config(&[loopback()], vec![to(&app)])).unwrap();
    assert_eq!(running.admin_addresses(), []);
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    assert_eq!(ask(&mut client).text(), "app");
}
