use super::*;
use crate::{Pattern, Peer, Script, Sha256};

fn client_of(answer: &[u8]) -> (Peer, HttpClient) {
    let peer = Peer::start(Script::new().send(answer).finish());
    let client = HttpClient::connect(peer.address()).unwrap();
    (peer, client)
}

#[test]
fn reads_exactly_one_response() {
    let (_peer, mut client) = client_of(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: x\r\na: y\r\n\r\nhiHTTP/1.1 204 \r\n\r\n",
    );
    let first = client.receive().unwrap();
    assert_eq!((first.status, first.reason.as_str()), (200, "OK"));
    assert_eq!(first.body, b"hi");
    assert_eq!(first.headers_named("A").collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(client.receive().unwrap().status, 204);
    assert!(matches!(client.receive(), Err(Failure::Closed)));
}

#[test]
fn reads_chunks_trailers_and_interim_responses() {
    let (_peer, mut client) = client_of(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n\
          3\r\nabc\r\na\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n",
    );
    let response = client.receive().unwrap();
    assert_eq!(response.interim, [100]);
    assert_eq!(response.body, b"abc0123456789");
    assert_eq!(response.trailers, [("X-T".to_owned(), "1".to_owned())]);
}

#[test]
fn reads_to_the_close_without_framing() {
    let (_peer, mut client) = client_of(b"HTTP/1.0 200 OK\r\n\r\nall of it");
    assert_eq!(client.receive().unwrap().text(), "all of it");
}

#[test]
fn tells_the_ways_a_response_can_fail() {
    let cases: [(&[u8], &str); 6] = [
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
            "cut short after 3",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "cut short after 3",
        ),
        (b"HTTP/1.1 200 OK\r\nContent", "(status None) was cut short"),
        (b"HTTP/1.1 OK\r\n\r\n", "not a response"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "chunk size",
        ),
        (b"HTTP/1.1 200 OK\n\n", "bare LF"),
    ];
    for (answer, expected) in cases {
        let (_peer, mut client) = client_of(answer);
        let message = client.receive().unwrap_err().to_string();
        assert!(message.contains(expected), "{message} lacks {expected}");
    }
}

#[test]
fn tells_a_reset_and_a_silence() {
    let peer = Peer::start(Script::new().expect(1).reset());
    let mut client = HttpClient::connect(peer.address()).unwrap();
    client.send(b"x").unwrap();
    assert!(matches!(client.receive(), Err(Failure::Reset { .. })));

    let peer = Peer::start(Script::new().send(b"HTTP/1.1 ").stall());
    let mut client = HttpClient::connect(peer.address()).unwrap();
    client.set_deadline(Deadline::after(std::time::Duration::from_millis(50)));
    assert!(matches!(client.receive(), Err(Failure::TimedOut { .. })));
}

#[test]
fn the_answer_to_head_has_no_body() {
    let (_peer, mut client) = client_of(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(
        client.receive_head().unwrap().header("content-length"),
        Some("5")
    );
    assert_eq!(client.receive_to_end().unwrap(), b"");
}

#[test]
fn streams_a_body_to_a_writer() {
    let length = 3 * Pattern::PERIOD;
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    answer.extend(Pattern::bytes(length));
    let (_peer, mut client) = client_of(&answer);
    let mut digest = Sha256::default();
    client.receive_into(&mut digest).unwrap();
    assert_eq!(digest.hex(), Pattern::sha256_hex(length));
}

#[test]
fn sends_chunks() {
    let peer = Peer::start(
        Script::new()
            .expect_until(b"0\r\n\r\n")
            .send(b"HTTP/1.1 204 \r\n\r\n"),
    );
    let mut client = HttpClient::connect(peer.address()).unwrap();
    client.send_chunked(&mut &b"hello"[..], 3).unwrap();
    client.receive().unwrap();
    assert_eq!(peer.received(0), b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
}

#[test]
fn connects_from_another_address() {
    let peer = Peer::start(Script::new().send(b"HTTP/1.1 204 \r\n\r\n"));
    let source = "127.0.0.9".parse().unwrap();
    let mut client = HttpClient::connect_from(source, peer.tcp_address()).unwrap();
    assert_eq!(client.local_address().unwrap().ip(), source);
    assert_eq!(client.receive().unwrap().status, 204);
}

#[test]
fn reads_an_interim_response_by_itself() {
    let (_peer, mut client) =
        client_of(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 \r\n\r\nHTTP/1.1 204 \r\n\r\n");
    assert_eq!(client.receive_interim().unwrap(), 100);
    assert_eq!(client.receive().unwrap().status, 204);
    assert!(matches!(
        client.receive_interim(),
        Err(Failure::Malformed(_))
    ));
}
