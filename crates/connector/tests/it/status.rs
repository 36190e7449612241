//! The status view in front of the application, and who may see it.

use catamaran_connector::{Body, Connections, Request, Response, StatusView, TrustedPeers};
use catamaran_testkit::ajp::{get as forward, text};
use http::StatusCode;

use super::*;
use crate::ajp_client::Exchange;

fn viewed(model: Model) -> Tier {
    Tier::with(model, |config| config.status = Some(StatusView::default()))
}

fn get_with(fields: &str) -> Vec<u8> {
    format!("GET /_status HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
}

/// Waits until the connections are in these states.
fn wait_for(tier: &Tier, expected: Connections) {
    let seen = || (tier.running.counters().connections == expected).then_some(());
    let waited = Deadline::default().poll(format!("{expected:?}"), seen);
    waited.unwrap_or_else(|expired| panic!("{expired}: {:?}", tier.running.counters()));
}

#[test]
fn connections_are_counted_by_what_they_are_about() {
    on_each_driver(|io| {
        let tier = viewed(io);
        let (mut idle, mut head, mut body, mut slow) =
            (tier.http(), tier.http(), tier.ajp(), tier.http());
        let silent = tier.ajp();
        assert_eq!(idle.ask(get("/")).unwrap().status, 200);
        head.send(b"GET / HT").unwrap();
        body.send_head(&Exchange::get("/delay/3600000"));
        slow.send(&get("/bytes/1000000000000")).unwrap();
        slow.receive_head().unwrap();
        wait_for(
            &tier,
            Connections {
                accepting: 1,
                reading: 1,
                serving: 1,
                writing: 1,
                keep_alive: 1,
            },
        );
        drop((idle, head, body, slow, silent));
        wait_for(&tier, Connections::default());
    });
}

#[test]
fn the_view_tells_each_listener_apart() {
    on_each_driver(|io| {
        let tier = viewed(io);
        assert_eq!(tier.ajp().get("/bytes/100").body.len(), 100);
        // A client may have its response before its time is counted.
        let timed = || (!tier.running.counters().processing_time.is_zero()).then_some(());
        Deadline::default().poll("its time", timed).unwrap();
        let mut client = tier.http();
        let answer = client
            .ask(b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        assert_eq!(answer.status, 400);
        assert_eq!(tier.refused("target-byte"), 1);
        let mut client = tier.http();
        for round in 0..2 {
            let seen = client.ask(get_with("")).unwrap();
            assert_eq!(
                (seen.status, seen.header("content-type")),
                (200, Some("application/json"))
            );
            let seen = seen.text();
            let (http, ajp) = seen.split_once("ajp://").unwrap();
            let has = |part: &str, what: &str| assert!(part.contains(what), "{what} in {seen}");
            has(http, &format!("\"io\": \"{}\"", io.io.as_str()));
            has(http, &format!("\"requests\": {}", round + 1));
            has(http, "\"target-byte\": 1");
            has(ajp, "\"requests\": 1");
            has(ajp, "\"errors\": {}");
            assert!(!ajp.contains("\"processing_time_us\": 0,"), "{seen}");
            let pool = matches!(io.kind, Kind::Threads) || io.io == IoModel::Threads;
            has(
                http,
                if pool {
                    "\"busy\": "
                } else {
                    "\"threads\": null"
                },
            );
        }
    });
}

#[test]
fn a_browser_gets_a_page() {
    on_each_driver(|io| {
        let tier = viewed(io);
        let mut client = tier.http();
        let page = client.ask(get_with("Accept: text/html,*/*\r\n")).unwrap();
        assert_eq!(
            page.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert!(
            page.text().contains("<h2>ajp://127.0.0.1:"),
            "{}",
            page.text()
        );
        client
            .send(b"GET /_status?format=json HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n")
            .unwrap();
        assert!(client.receive().unwrap().text().starts_with('{'));
        let answer = client
            .ask(b"DELETE /_status HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        assert_eq!(answer.status, 405);
    });
}

#[test]
fn whoever_comes_through_a_front_from_elsewhere_is_refused() {
    on_each_driver(|io| {
        let tier = viewed(io);
        let mut client = tier.http();
        for field in [
            "Via: 1.1 a",
            "Forwarded: for=a",
            "X-Forwarded-For: 127.0.0.1",
        ] {
            let answer = client.ask(get_with(&format!("{field}\r\n"))).unwrap();
            assert_eq!(answer.status, 403, "{field}");
        }
        for (remote, status) in [("192.0.2.1", 403), ("localhost", 403), ("127.0.0.1", 200)] {
            let mut wire = tier.packets();
            let mut request = forward().uri(text("/_status"));
            request.remote_addr = text(remote);
            wire.send(&request.packet());
            assert_eq!(wire.response().status, status, "{remote}");
        }
        let nobody = Tier::with(io, |config| {
            let peers = TrustedPeers::none();
            config.status = Some(StatusView {
                peers,
                ..StatusView::default()
            });
        });
        let mut client = nobody.http();
        assert_eq!(client.ask(get_with("")).unwrap().status, 403);
    });
}

#[test]
fn without_a_view_the_path_is_the_applications() {
    on_each_driver(|io| {
        let handler =
            |request: &Request| Response::new(StatusCode::OK, Body::Full(request.path.clone()));
        let tier = Tier::serving(io, handler, |_| {});
        let mut client = tier.http();
        assert_eq!(client.ask(get_with("")).unwrap().text(), "/_status");
    });
}
