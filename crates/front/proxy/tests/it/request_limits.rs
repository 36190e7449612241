//! Limits of requests: what counts as one request, and when the place of one in flight is given back.

use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{
    AdminConfig, BackendConfig, Config, LimitBy, LimitConfig, ListenAddress, Protocol, Protocols,
    Quota, RouteRules,
};
use catamaran_testkit::http2::{END_STREAM, Http2Client, Said, frame, kind, opening};
use catamaran_testkit::{HttpClient, Peer, Script};
use tempfile::TempDir;

use crate::cache::cache;
use crate::cache::operate::admin;
use crate::health::until;
use crate::http2::get;
use crate::leaving::Backend;
use crate::{Front, REQUEST, backend, config, loopback, start, tcp, to};

/// A front whose one route has one limit, for HTTP/1.1 and HTTP/2 and with an admin listener.
fn limited(
    quota: Quota,
    backend: BackendConfig,
    change: impl FnOnce(&mut Config, &mut RouteRules),
) -> (Front, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let socket = ListenAddress::Unix(directory.path().join("admin.sock"));
    let mut config = config(&[loopback()], vec![backend]);
    config.admin = Some(AdminConfig::new(vec![socket]));
    config.listeners[0].protocols = Protocols::Both;
    config.limits = vec![LimitConfig {
        name: "few".to_owned(),
        quota,
        by: LimitBy::Client,
        methods: Vec::new(),
        except: Vec::new(),
        prefix: [32, 64],
        enforce: true,
        fields: false,
    }];
    let mut rules = RouteRules {
        limits: vec!["few".to_owned()],
        ..RouteRules::default()
    };
    change(&mut config, &mut rules);
    config.routes[0].rules = Some(Arc::new(rules));
    (start(config).unwrap(), directory)
}

/// Waits until so many requests hold a place.
fn until_in_flight(front: &Front, count: usize) {
    let expected = format!("\"in_flight\":{count}");
    until(&expected, || {
        let (_, text) = admin(front, "GET", "/api/v1/limits", "");
        text.contains(&expected).then_some(())
    });
}

fn client(front: &Front, bytes: &[u8]) -> HttpClient {
    let mut client = HttpClient::connect(tcp(front, 0)).unwrap();
    client.send(bytes).unwrap();
    client
}

/// The statuses of so many streams of one connection.
fn statuses(front: &Front, streams: u32) -> Vec<u16> {
    let mut client = Http2Client::connect(tcp(front, 0)).unwrap();
    let requests: Vec<u8> = (0..streams).flat_map(|it| get(2 * it + 1)).collect();
    let acknowledged = frame(kind::SETTINGS, END_STREAM, 0, &[]);
    let begun = [opening(1 << 20), acknowledged, requests].concat();
    client.send(&begun, usize::MAX);
    let mut found = Vec::new();
    while found.len() < streams as usize {
        if let Said::Status(_, status) = client.next_said().unwrap() {
            found.push(status);
        }
    }
    found
}

/// Row 2: requests count alike on one connection, in one write, and as streams.
#[test]
fn the_same_requests_pass_however_they_come() {
    const ALL: usize = 100;
    const BURST: usize = 40;
    let app = backend("app");
    let quota = Quota::rate(1, Duration::from_secs(3600), 40);
    let passed = |statuses: Vec<u16>| {
        assert_eq!(statuses.len(), ALL);
        let refused = statuses.iter().filter(|it| **it == 429).count();
        let served = statuses.iter().filter(|it| **it == 200).count();
        assert_eq!((served, refused), (BURST, ALL - BURST));
    };
    let (front, _directory) = limited(quota, to(&app), |_, _| {});
    let mut kept = client(&front, b"");
    passed(
        (0..ALL)
            .map(|_| kept.ask(REQUEST).unwrap().status)
            .collect(),
    );

    let (front, _directory) = limited(quota, to(&app), |_, _| {});
    let mut pipelined = client(&front, &REQUEST.repeat(ALL));
    passed(
        (0..ALL)
            .map(|_| pipelined.receive().unwrap().status)
            .collect(),
    );

    let (front, _directory) = limited(quota, to(&app), |_, _| {});
    passed(statuses(&front, 100));
}

#[test]
fn a_limit_that_a_listener_and_its_route_name_is_asked_once() {
    let app = backend("app");
    let quota = Quota::rate(1, Duration::from_secs(3600), 2);
    let (front, _directory) = limited(quota, to(&app), |config, rules| {
        config.listeners[0].request_limits.clone_from(&rules.limits);
    });
    let mut kept = client(&front, b"");
    let statuses = [(); 3].map(|()| kept.ask(REQUEST).unwrap().status);
    assert_eq!(statuses, [200, 200, 429]);
}

#[test]
fn a_limit_of_a_listener_tells_what_it_leaves_on_routes_without_rules() {
    let app = backend("app");
    let quota = Quota::rate(1, Duration::from_secs(3600), 2);
    let (front, _directory) = limited(quota, to(&app), |config, rules| {
        config.limits[0].fields = true;
        config.listeners[0].request_limits = std::mem::take(&mut rules.limits);
    });
    for (status, left) in [(200, "r=1;"), (200, "r=0;"), (429, "r=0;")] {
        let answer = client(&front, REQUEST).receive().unwrap();
        let told = answer.header("ratelimit").unwrap_or_default();
        assert_eq!(answer.status, status);
        assert!(told.contains(left), "{told}");
    }
}

/// Row 10: a tunnel holds its place until it ends.
#[test]
fn a_tunnel_holds_its_place_to_its_end() {
    let agreeing = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Accept: x\r\n\r\n",
        )
        .expect_end();
    let peer = Peer::start(agreeing);
    let (front, _directory) = limited(Quota::InFlight(1), to(&peer), |_, rules| {
        rules.upgrade = vec!["websocket".to_owned()];
    });
    let mut tunnel = client(&front, TUNNEL);
    assert_eq!(tunnel.receive_head().unwrap().status, 101);
    until_in_flight(&front, 1);
    assert_eq!(client(&front, TUNNEL).receive().unwrap().status, 429);
    tunnel.finish_sending().unwrap();
    assert_eq!(tunnel.receive_to_end().unwrap(), b"");
    until_in_flight(&front, 0);
    assert_eq!(client(&front, TUNNEL).receive_head().unwrap().status, 101);
}

/// Row 10: a stream that is reset, and a connection that is.
#[test]
fn a_reset_gives_its_place_back() {
    let app = Peer::start(Script::new().expect_until(b"\r\n\r\n").stall());
    let (front, _directory) = limited(Quota::InFlight(1), to(&app), |_, _| {});
    let mut streams = Http2Client::connect(tcp(&front, 0)).unwrap();
    streams.send(&[opening(65_535), get(1)].concat(), usize::MAX);
    until_in_flight(&front, 1);
    streams.send(&get(3), usize::MAX);
    let refused = streams
        .wait(|said| matches!(said, Said::Status(3, _)))
        .unwrap();
    assert_eq!(refused, Some(Said::Status(3, 429)));
    let cancelled = frame(kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes());
    streams.send(&cancelled, usize::MAX);
    until_in_flight(&front, 0);

    let waiting = client(&front, REQUEST);
    until_in_flight(&front, 1);
    waiting.socket().set_linger(Some(Duration::ZERO)).unwrap();
    drop(waiting);
    until_in_flight(&front, 0);
}

/// Row 10: requests that end during a drain give their places back, and the drain ends.
#[test]
fn a_drain_leaves_no_place_taken() {
    let origin = Backend::start();
    let backend = BackendConfig {
        connections_max: 2,
        ..origin.config(Protocol::Http)
    };
    let (front, _directory) = limited(Quota::InFlight(2), backend, |_, _| {});
    let mut clients = [client(&front, REQUEST), client(&front, REQUEST)];
    let mut exchanges = [origin.accept(), origin.accept()];
    until_in_flight(&front, 2);
    assert_eq!(client(&front, REQUEST).receive().unwrap().status, 429);
    front.drain();
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    let [first, last] = &mut exchanges;
    first.receive_head();
    first.send(answer);
    until_in_flight(&front, 1);
    last.receive_head();
    last.send(answer);
    for client in &mut clients {
        assert_eq!(client.receive().unwrap().status, 200);
    }
    front.join();
}

/// The place is the client's: a fetch for a cache that goes on when its client has left holds none.
#[test]
fn a_fetch_that_outlives_its_client_holds_no_place() {
    let origin = Backend::start();
    let (front, _directory) = limited(
        Quota::InFlight(1),
        origin.config(Protocol::Http),
        |config, rules| {
            let pages = cache();
            rules.cache = Some(pages.name.clone());
            config.caches = vec![pages];
        },
    );
    let mut leaving = client(&front, REQUEST);
    let mut exchange = origin.accept();
    exchange.receive_head();
    exchange.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nab");
    assert_eq!(leaving.receive_head().unwrap().status, 200);
    until_in_flight(&front, 1);
    drop(leaving);
    until_in_flight(&front, 0);
    let (_, caches) = admin(&front, "GET", "/api/v1/caches", "");
    assert!(caches.contains("\"fills_open\":1"), "{caches}");
    // The next one of the client takes the place, and waits for the same fetch.
    let mut next = client(&front, REQUEST);
    until_in_flight(&front, 1);
    exchange.send(b"cd");
    assert_eq!(next.receive().unwrap().text(), "abcd");
    until_in_flight(&front, 0);
}

const TUNNEL: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Key: k\r\n\r\n";
