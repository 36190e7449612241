//! Backends that answer before they have read the request's body, and then close or reset.

mod over_http2;

use std::time::Duration;

use catamaran_proxy::config::ListenerConfig;
use catamaran_testkit::{Deadline, Failure, HttpClient, Peer, Script};

use crate::{Front, ask, config, loopback, start, tcp, to};

/// A backend that has `answer` sent once it knows the head, and leaves without reading on: by a
/// reset, or by a close that the kernel follows up with one.
fn answering(answer: &'static [u8], resets: bool) -> Peer {
    let script = Script::new().expect_until(b"\r\n\r\n").send(answer);
    Peer::start(if resets {
        script.reset()
    } else {
        script.finish()
    })
}

/// A connection whose upload goes on while the backend answers.
fn uploading(address: std::net::SocketAddr) -> HttpClient {
    let mut client = HttpClient::connect(address).unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY}\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    // A front that cuts the connection refuses the rest.
    let _ = (0..BODY / 2000).try_for_each(|_| client.send(&[b'x'; 2000]));
    client
}

#[test]
fn a_whole_answer_reaches_the_client_whatever_becomes_of_the_upload() {
    // Without the field, an upload that the sockets hold whole leaves a connection that may be used again, and the next one
    // meets its end.
    const ANSWER: &[u8] =
        b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno";
    for resets in [true, false] {
        let peer = answering(ANSWER, resets);
        let running = start(config(&[loopback()], vec![to(&peer)])).unwrap();
        for turn in 0..100 {
            let answer = uploading(tcp(&running, 0)).receive().unwrap();
            let got = (answer.status, answer.text());
            assert_eq!(got, (413, "no".to_owned()), "{resets} {turn}");
        }
    }
}

#[test]
fn a_reset_is_not_the_end_of_a_response_without_a_length() {
    let peer = answering(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npartial-",
        true,
    );
    let running = start(config(&[loopback()], vec![to(&peer)])).unwrap();
    for turn in 0..100 {
        match uploading(tcp(&running, 0)).receive() {
            Err(Failure::Truncated { .. } | Failure::Reset { .. }) => {}
            // The reset was there before the response was read.
            Ok(answer) => assert_eq!(answer.status, 502, "{turn}: {answer:?}"),
            Err(failure) => panic!("{turn}: {failure:?}"),
        }
    }
}

/// A front to `peer` whose listener is changed by `set`.
fn front(peer: &Peer, set: impl FnOnce(&mut ListenerConfig)) -> Front {
    let mut config = config(&[loopback()], vec![to(peer)]);
    set(&mut config.listeners[0]);
    start(config).unwrap()
}

/// Sends the head of an upload of so many bytes.
fn begin(running: &Front, length: usize) -> HttpClient {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    client
}

#[test]
fn a_client_that_writes_all_before_it_reads_gets_the_answer() {
    for resets in [true, false] {
        let peer = answering(UNAUTHORIZED, resets);
        let running = front(&peer, |_| ());
        let mut client = begin(&running, 9 * MEBIBYTE);
        let answer = client.ask(vec![b'x'; 9 * MEBIBYTE]).unwrap();
        assert_eq!(
            (answer.status, answer.header("connection")),
            (401, Some("close"))
        );
        assert_eq!(client.receive_to_end().unwrap(), b"");
    }
}

#[test]
fn so_does_one_whose_body_the_front_refuses() {
    let peer = answering(UNAUTHORIZED, false);
    let running = front(&peer, |listener| listener.body_max = Some(1000));
    let mut client = begin(&running, 9 * MEBIBYTE);
    assert_eq!(client.ask(vec![b'x'; 9 * MEBIBYTE]).unwrap().status, 413);
}

#[test]
fn so_does_one_whose_head_the_front_refuses() {
    let peer = answering(UNAUTHORIZED, false);
    let running = front(&peer, |_| ());
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    client.send(b"POST / HTTP/1.1\r\nHost : a\r\n\r\n").unwrap();
    assert_eq!(client.ask(vec![b'x'; 9 * MEBIBYTE]).unwrap().status, 400);
}

#[test]
fn an_early_success_leaves_the_connection_usable() {
    let peer = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", true);
    let running = front(&peer, |_| ());
    let mut client = begin(&running, 9 * MEBIBYTE);
    let answer = client.ask(vec![b'x'; 9 * MEBIBYTE]).unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, None));
    assert_eq!(ask(&mut client).status, 200);
}

#[test]
fn the_sending_side_is_closed_before_the_rest_of_the_body_has_come() {
    let peer = answering(UNAUTHORIZED, false);
    let running = front(&peer, |_| ());
    let mut client = begin(&running, 9 * MEBIBYTE);
    assert_eq!(client.receive().unwrap().status, 401);
    assert_eq!(client.receive_to_end().unwrap(), b"");
    // Far more than the sockets hold: it is read.
    client.send(&vec![b'x'; 9 * MEBIBYTE]).unwrap();
}

#[test]
fn there_is_an_end_to_it() {
    const FAR: Duration = Duration::from_secs(24 * 3600);
    const SOON: Duration = Duration::from_secs(1);
    // What is read at most, for how long, and with which pauses.
    let limits = [
        (10_000, FAR, FAR),
        (1 << 40, SOON, FAR),
        (1 << 40, FAR, SOON),
    ];
    for (max, time, pause) in limits {
        let peer = answering(UNAUTHORIZED, false);
        let running = front(&peer, |listener| {
            // The front answers at once, so that no time limit begins before its answer.
            listener.body_max = Some(1000);
            listener.linger_max = max;
            listener.linger_timeout = time;
            listener.body_timeout = pause;
            listener.body_rate_min = 0;
        });
        let mut client = begin(&running, 9 * MEBIBYTE);
        assert_eq!(client.receive().unwrap().status, 413);
        assert_eq!(client.receive_to_end().unwrap(), b"");
        // Two of the limits may have ended it by now.
        client.send(&[b'x'; 20_000]).ok();
        let closed = || (running.counters().open == 0).then_some(());
        Deadline::default().poll("a close", closed).unwrap();
    }
}

/// An application that works long says so by 102 again and again.
#[test]
fn interim_responses_are_limited_by_their_rate_alone() {
    const INTERIM: &[u8] = b"HTTP/1.1 102 Processing\r\n\r\n";
    for (interims, status) in [
        (INTERIM.repeat(90), 200),
        (INTERIM.repeat(10_000), 502),
        (early_hints(4).into_bytes(), 200),
        (early_hints(20).into_bytes(), 502),
    ] {
        let script = Script::new().expect_until(b"\r\n\r\n");
        let script = script.send(&interims);
        let peer = Peer::start(
            script
                .send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .stall(),
        );
        let running = start(config(&[loopback()], vec![to(&peer)])).unwrap();
        let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
        assert_eq!(ask(&mut client).status, status, "{}", interims.len());
    }
}

/// So many interim responses of 28 KB each.
fn early_hints(count: usize) -> String {
    let link = "x".repeat(7000);
    let fields = (0..4).map(|index| format!("Link-{index}: {link}\r\n"));
    let fields: String = fields.collect();
    format!("HTTP/1.1 103 Early Hints\r\n{fields}\r\n").repeat(count)
}

const BODY: usize = 200_000;

const UNAUTHORIZED: &[u8] = b"HTTP/1.1 401 Who\r\nContent-Length: 2\r\n\r\nno";

const MEBIBYTE: usize = 1 << 20;
