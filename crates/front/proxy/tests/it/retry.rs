//! A pooled connection that turns out to be dead: what is sent again, what never is.

use catamaran_proxy::config::RetrySentRule;
use catamaran_testkit::{HttpClient, Peer, Script};

use crate::{ask, config, loopback, start, tcp, to};

/// Its first connection answers one request, takes the next to the end of `last` and closes
/// without a word; later ones answer.
fn dying_once(last: &'static [u8]) -> Peer {
    Peer::start_with(move |index| {
        let first = Script::new().expect_until(b"\r\n\r\n").send(ANSWER);
        match index {
            0 => first.then(Script::new().expect_until(last)),
            _ => Script::new().expect_until(last).send(ANSWER).stall(),
        }
    })
}

/// What arrived on each connection that carried anything; the front also dials to see whether the
/// backend is alive.
fn delivered(peer: &Peer) -> Vec<Vec<u8>> {
    let all = (0..peer.connections()).map(|index| peer.received(index));
    all.filter(|bytes| !bytes.is_empty()).collect()
}

/// Sends a first request that leaves a pooled connection, then `request`; says what became of it.
fn second(request: &[u8], last: &'static [u8]) -> (u16, Peer) {
    second_with(RetrySentRule::Idempotent, request, last)
}

fn second_with(retry_sent: RetrySentRule, request: &[u8], last: &'static [u8]) -> (u16, Peer) {
    let peer = dying_once(last);
    let mut config = config(&[loopback()], vec![to(&peer)]);
    config.upstreams[0].retry_sent = retry_sent;
    // One worker, so that the second request meets the connection of the first.
    config.server.workers = 1.try_into().unwrap();
    let running = start(config).unwrap();
    let mut client = HttpClient::connect(tcp(&running, 0)).unwrap();
    assert_eq!(ask(&mut client).status, 200);
    let status = client.ask(request).unwrap().status;
    drop(running);
    (status, peer)
}

#[test]
fn an_idempotent_request_is_sent_again_with_its_body() {
    let request = b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world";
    let (status, peer) = second(request, b"hello world");
    let [first, again] = &delivered(&peer)[..] else {
        panic!("sent twice, each time on a connection of its own");
    };
    assert_eq!(status, 200);
    assert!(first.ends_with(b"hello world"));
    let again = String::from_utf8_lossy(again);
    assert!(again.starts_with("PUT / "), "{again}");
    assert!(again.ends_with("\r\n\r\nhello world"), "{again}");
}

#[test]
fn so_is_one_with_a_chunked_body() {
    let request = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                    5\r\nhello\r\n0\r\n\r\n";
    let (status, peer) = second(request, b"0\r\n\r\n");
    let delivered = delivered(&peer);
    assert_eq!((status, delivered.len()), (200, 2));
    assert!(delivered[1].ends_with(b"5\r\nhello\r\n0\r\n\r\n"));
}

#[test]
fn a_request_that_must_not_run_twice_is_not_sent_again() {
    let request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let (status, peer) = second(request, b"hello");
    assert_eq!((status, delivered(&peer).len()), (502, 1));
}

#[test]
fn an_upstream_may_forbid_to_send_again_what_a_backend_has_received() {
    let put = b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let get = b"GET /last HTTP/1.1\r\nHost: a\r\n\r\n";
    for (retry_sent, put_times, get_times) in [
        (RetrySentRule::Idempotent, 2, 2),
        (RetrySentRule::Safe, 1, 2),
        (RetrySentRule::Nothing, 1, 1),
    ] {
        let (status, peer) = second_with(retry_sent, put, b"hello");
        let times = delivered(&peer).len();
        assert_eq!(
            (status == 200, times),
            (put_times == 2, put_times),
            "{retry_sent:?}"
        );
        let (status, peer) = second_with(retry_sent, get, b"\r\n\r\n");
        let times = delivered(&peer).len();
        assert_eq!(
            (status == 200, times),
            (get_times == 2, get_times),
            "{retry_sent:?}"
        );
    }
}

#[test]
fn nor_is_a_body_too_long_to_keep() {
    let mut request = b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100004\r\n\r\n".to_vec();
    request.extend(vec![b'x'; 100_000]);
    request.extend(b"last");
    let (status, peer) = second(&request, b"last");
    assert_eq!((status, delivered(&peer).len()), (502, 1));
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
