//! What a reload leaves of a backend whose settings change: its health, connections and counters.

use std::time::Duration;

use catamaran_proxy::BackendCounts;
use catamaran_proxy::config::{Address, BackendConfig, Protocol, Secret};
use catamaran_testkit::{HttpClient, Outcome, Peer, Script, ajp};

use crate::health::until;
use crate::{Front, ask, backend, config, get, loopback, start, tcp, to};

fn counts(running: &Front) -> Vec<BackendCounts> {
    running.backends().iter().map(|it| it.counts).collect()
}

#[test]
fn backends_that_are_out_stay_out() {
    let directory = tempfile::tempdir().unwrap();
    let dead = |name: &str| {
        let address = Address::Unix(directory.path().join(name));
        BackendConfig::new(Protocol::Http, address)
    };
    let first = config(&[loopback()], vec![dead("a"), dead("b")]);
    let running = start(first.clone()).unwrap();
    assert_eq!(get(tcp(&running, 0)).status, 503, "both are tried");
    let out = |running: &Front| {
        let of_each = |it: BackendCounts| (it.share, it.ejections);
        counts(running).into_iter().map(of_each).collect::<Vec<_>>()
    };
    assert_eq!(out(&running), [(0, 1), (0, 1)]);
    let mut second = first;
    second.upstreams[0].backends[1].idle_body_timeout = Duration::from_secs(7);
    let report = running.reload(second).unwrap();
    assert_eq!(out(&running), [(0, 1), (0, 1)]);
    assert_eq!(report.backends_kept, 2);
    assert_eq!(report.backends_changed, [dead("b").name]);
    assert!(report.backends_added.is_empty() && report.backends_removed.is_empty());
}

#[test]
fn other_settings_keep_connections_and_counters() {
    let (a, b) = (backend("a"), backend("b"));
    let first = config(&[loopback()], vec![to(&a), to(&b)]);
    let running = start(first.clone()).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    for _ in 0..10 {
        ask(&mut client);
    }
    // A client may have its response before the connection is back in the pool.
    let mut expected = until("both backends are idle", || {
        let counts = counts(&running);
        counts.iter().all(|it| it.in_flight == 0).then_some(counts)
    });
    expected[0].connections_max = 7;
    let mut second = first;
    let changed = &mut second.upstreams[0].backends[0];
    changed.name = "heavy".to_owned();
    changed.weight = 4;
    changed.connect_timeout = Duration::from_secs(3);
    changed.idle_timeout = Duration::from_secs(3600);
    changed.connections_max = 7;
    running.reload(second).unwrap();
    assert_eq!(counts(&running), expected);
    assert_eq!(running.backends()[0].backend, "heavy");
    let answers: Vec<String> = (0..10).map(|_| ask(&mut client).text()).collect();
    let of_heavy = answers.iter().filter(|text| *text == "a").count();
    assert_eq!(of_heavy, 8, "the weight is in force: {answers:?}");
    assert_eq!((a.connections(), b.connections()), (1, 1));
}

#[test]
fn another_secret_lets_connections_go_as_they_come_home() {
    let head = Script::new()
        .expect_packet()
        .send(&ajp::send_headers(200, &[]));
    let end = Script::new().send(&ajp::end_response(1)).expect_end();
    let at_once = head.clone().then(end.clone());
    let after_the_body = head.expect_packet().then(end);
    let peer = Peer::start_with(move |index| match index {
        0 => after_the_body.clone(),
        _ => at_once.clone(),
    });
    let backend = BackendConfig {
        protocol: Protocol::Ajp,
        ..to(&peer)
    };
    let first = config(&[loopback()], vec![backend]);
    let mut second = first.clone();
    second.upstreams[0].backends[0].ajp.secret = Some(Secret::new("swordfish".to_owned()));
    let running = start(first).unwrap();
    let mut in_flight = HttpClient::connect(tcp(&running, 0)).unwrap();
    let post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
    in_flight.send(post).unwrap();
    in_flight.receive_head().unwrap();
    assert_eq!(get(tcp(&running, 0)).status, 200);
    running.reload(second).unwrap();
    assert_eq!(
        peer.wait_outcome(1),
        Outcome::Completed,
        "the unused at once"
    );
    in_flight.send(b"body").unwrap();
    assert_eq!(
        peer.wait_outcome(0),
        Outcome::Completed,
        "the other at its end"
    );
    assert_eq!(get(tcp(&running, 0)).status, 200);
    let sent = String::from_utf8_lossy(&peer.received(2)).into_owned();
    assert!(sent.contains("swordfish"), "{sent}");
    assert_eq!(counts(&running)[0].dialled, 3);
}
