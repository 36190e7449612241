//! Backends that answer before they have read the request's body, and then close or reset.

use catamaran_front::start;
use catamaran_testkit::{Failure, HttpClient, Peer, Script};

use crate::{config, loopback, stop, tcp, to};

const BODY: usize = 200_000;

/// A backend that has `answer` sent once it knows the head, and leaves without reading on: by a
/// reset, or by a close that the kernel follows up with one.
fn answering(answer: &'static [u8], resets: bool) -> Peer {
    let script = Script::new().expect_until(b"\r\n\r\n").send(answer);
    Peer::start(match resets {
        true => script.reset(),
        false => script.finish(),
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
    const ANSWER: &[u8] = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
    for resets in [true, false] {
        let peer = answering(ANSWER, resets);
        let running = start(config(&[loopback()], vec![to(&peer)])).unwrap();
        for turn in 0..100 {
            let answer = uploading(tcp(&running, 0)).receive().unwrap();
            let got = (answer.status, answer.text());
            assert_eq!(got, (413, "no".to_owned()), "{resets} {turn}");
        }
        stop(running);
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
    stop(running);
}
