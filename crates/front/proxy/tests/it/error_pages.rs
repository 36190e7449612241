//! Pages of the operator's own in the place of backends' error responses.

use std::sync::Arc;

use bytes::Bytes;
use catamaran_proxy::config::{Activation, Config, ErrorPages, Page};
use catamaran_testkit::{Deadline, HttpClient, Peer, Script};

use crate::{Front, REQUEST, ask, config, loopback, start, tcp, to, wait_for_reason};

fn page(body: Option<&'static str>) -> Arc<Page> {
    Arc::new(Page {
        file: "5xx.txt".into(),
        content_type: "text/plain",
        body: body.map(|text| Bytes::from_static(text.as_bytes())),
    })
}

/// One worker, which replaces errors from 500 on, so that a second request meets the connection of
/// the first.
fn replacing(peer: &Peer) -> Config {
    let mut config = config(&[loopback()], vec![to(peer)]);
    config.server.workers = 1.try_into().unwrap();
    config.error_pages = Some(Arc::new(ErrorPages {
        pages: vec![(500..=599, page(Some(PAGE)))],
        replaced: vec![500..=599],
        maintenance: None,
    }));
    config
}

/// A backend that sends `answer` to each request.
fn answering(answer: Vec<u8>) -> Peer {
    let turn = Script::new().expect_until(b"\r\n\r\n").send(&answer);
    Peer::start(Script::new().then(turn.clone()).then(turn).stall())
}

fn error(fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 500 Oops: NullPointerException\r\nX-Powered-By: S\r\n{fields}\r\n{body}")
        .into_bytes()
}

/// Two requests on one connection, each answered with the page.
fn ask_twice(running: &Front) {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    for _ in 0..2 {
        let answer = ask(&mut client);
        assert_eq!((answer.status, answer.text()), (500, PAGE.to_owned()));
        assert_eq!(answer.header("content-type"), Some("text/plain"));
        assert_eq!(answer.header("content-length"), Some("5"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        for gone in [
            "x-powered-by",
            "etag",
            "content-encoding",
            "transfer-encoding",
        ] {
            assert_eq!(answer.header(gone), None, "{gone}");
        }
    }
    // The client has its page before the rest of the response is gone.
    let both = || {
        let reasons = running.counters().reasons;
        let mut replaced = reasons.iter();
        replaced.find(|(reason, count)| reason.token() == "error-replaced" && **count == 2)?;
        Some(())
    };
    Deadline::default().poll("two replaced", both).unwrap();
}

#[test]
fn a_replaced_response_leaves_its_connection_in_the_pool() {
    for answer in [
        error(
            "ETag: \"x\"\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n",
            "stack",
        ),
        error("Content-Length: 0\r\n", ""),
        error("Transfer-Encoding: chunked\r\n", "5\r\nstack\r\n0\r\n\r\n"),
    ] {
        let peer = answering(answer);
        let running = start(replacing(&peer)).unwrap();
        ask_twice(&running);
        assert_eq!(peer.connections(), 1);
    }
}

#[test]
fn a_response_too_long_or_too_slow_to_discard_costs_its_connection_alone() {
    let long = "x".repeat(300_000);
    for answer in [
        error("Content-Length: 300000\r\n", &long),
        error("Content-Length: 300000\r\n", "the rest never comes"),
        error("Transfer-Encoding: chunked\r\n", "no chunk\r\n"),
    ] {
        let peer = answering(answer);
        let running = start(replacing(&peer)).unwrap();
        ask_twice(&running);
        assert_eq!(peer.connections(), 2);
    }
}

#[test]
fn a_head_says_how_long_the_page_is_and_has_no_body() {
    let peer = answering(error("Content-Length: 999\r\n", ""));
    let running = start(replacing(&peer)).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    for _ in 0..2 {
        client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let answer = client.receive_head().unwrap();
        assert_eq!(
            (answer.status, answer.header("content-length")),
            (500, Some("5"))
        );
    }
    assert_eq!(peer.connections(), 1);
}

#[test]
fn other_responses_are_passed_on() {
    for status in ["200 OK", "404 Not Found", "499 Odd"] {
        let peer = answering(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nhi").into());
        let running = start(replacing(&peer)).unwrap();
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        assert_eq!(ask(&mut client).text(), "hi");
    }
}

#[test]
fn an_answer_before_the_upload_is_read_is_replaced_too() {
    let peer = answering(error("Content-Length: 5\r\n", "stack"));
    let running = start(replacing(&peer)).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
    let answer = client.ask(head).unwrap();
    assert_eq!((answer.status, answer.text()), (500, PAGE.to_owned()));
}

#[test]
fn a_page_that_is_missing_is_counted() {
    let peer = answering(error("Content-Length: 5\r\n", "stack"));
    let mut config = replacing(&peer);
    config.error_pages = Some(Arc::new(ErrorPages {
        pages: vec![(500..=599, page(None))],
        replaced: vec![500..=500],
        maintenance: None,
    }));
    let running = start(config).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    let answer = ask(&mut client);
    assert_eq!(answer.status, 500);
    assert!(
        answer.text().contains("The request was not served."),
        "{answer:?}"
    );
    wait_for_reason(&running, "front:error-page-missing");
}

#[test]
fn stopped_backends_are_a_maintenance_and_failed_ones_are_not() {
    let peer = answering(Vec::new());
    let gone = catamaran_testkit::address::refusing().unwrap();
    for (stopped, reason, text) in [
        (true, "front:maintenance", "back soon"),
        (false, "backend:connect-failed", PAGE),
    ] {
        let mut config = replacing(&peer);
        let pages = config.error_pages.take().unwrap();
        config.error_pages = Some(Arc::new(ErrorPages {
            maintenance: Some(page(Some("back soon"))),
            ..(*pages).clone()
        }));
        let backend = &mut config.upstreams[0].backends[0];
        if stopped {
            backend.activation = Activation::Stopped;
        } else {
            backend.address = catamaran_proxy::config::Address::Tcp {
                host: gone.ip().to_string(),
                port: gone.port(),
            };
        }
        let running = start(config).unwrap();
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        let answer = client.ask(REQUEST).unwrap();
        assert_eq!((answer.status, &answer.text()[..]), (503, text));
        let seconds = if stopped { "60" } else { "1" };
        assert_eq!(answer.header("retry-after"), Some(seconds));
        wait_for_reason(&running, reason);
    }
}

const PAGE: &str = "sorry";
