//! Responses that a front must not pass on: the client gets a 502 or sees the cut, and the
//! connection to the backend is never used again.

use catamaran_e2e::Front;
use catamaran_testkit::{Failure, Outcome, Peer, Script};

/// One malformed response. Nothing of it may be taken for a success.
struct Row {
    number: u16,
    bytes: &'static [u8],
}

#[rustfmt::skip]
const HTTP: &[Row] = &[
    Row { number: 4, bytes: b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789" },
    Row { number: 5, bytes: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel" },
    Row { number: 7, bytes: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello" },
    Row { number: 8, bytes: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
    Row { number: 10, bytes: b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello" },
    Row { number: 11, bytes: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello" },
    Row { number: 16, bytes: b"HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n" },
    Row { number: 20, bytes: b"HTTP/1.1 200 OK\r\nX Y: v\r\nContent-Length: 0\r\n\r\n" },
    Row { number: 22, bytes: b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n" },
    Row { number: 23, bytes: b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: evil=1\r\nContent-Length: 0\r\n\r\n" },
];

#[rustfmt::skip]
const AJP: &[Row] = &[
    // Magic of the other direction; CPONG, an unknown type and FORWARD_REQUEST in a response.
    Row { number: 37, bytes: b"\x12\x34\0\x02\x05\x01" },
    Row { number: 37, bytes: b"AB\0\x01\x09" },
    Row { number: 37, bytes: b"AB\0\x01\xff" },
    Row { number: 37, bytes: b"AB\0\x02\x02\x02" },
    // A count of fields that lies; a string beyond the packet.
    Row { number: 38, bytes: b"AB\0\x0a\x04\0\xc8\0\x02OK\0\0\x05" },
    Row { number: 38, bytes: b"AB\0\x0a\x04\0\xc8\xff\x00OK\0\0\x00" },
    // Two heads.
    Row { number: 40, bytes: b"AB\0\x0a\x04\0\xc8\0\x02OK\0\0\x00AB\0\x0a\x04\0\xc8\0\x02OK\0\0\x00AB\0\x02\x05\x01" },
    // A chunk longer than its packet.
    Row { number: 41, bytes: b"AB\0\x0a\x04\0\xc8\0\x02OK\0\0\x00AB\0\x06\x03\0\x09hi\0" },
    // Content-Length 100, but 2 bytes and END.
    Row { number: 44, bytes: b"AB\0\x12\x04\0\xc8\0\x02OK\0\0\x01\xa0\x03\0\x03100\0AB\0\x06\x03\0\x02hi\0AB\0\x02\x05\x01" },
    // Statuses that are none.
    Row { number: 47, bytes: b"AB\0\x0a\x04\0\x00\0\x02OK\0\0\x00AB\0\x02\x05\x01" },
    Row { number: 47, bytes: b"AB\0\x0a\x04\xff\xff\0\x02OK\0\0\x00AB\0\x02\x05\x01" },
    // END without a head.
    Row { number: 26, bytes: b"AB\0\x02\x05\x01" },
];

#[test]
fn malformed_responses_over_http_are_not_passed_on() {
    for row in HTTP {
        not_passed_on("http", row, Script::new().expect_until(b"\r\n\r\n"));
    }
}

#[test]
fn malformed_responses_over_ajp_are_not_passed_on() {
    for row in AJP {
        not_passed_on("ajp", row, Script::new().expect_packet());
    }
}

fn not_passed_on(protocol: &str, row: &Row, request: Script) {
    let truncated = protocol == "http" && [4, 5].contains(&row.number);
    for piece in [usize::MAX, 1] {
        let answer = request.clone().send_in_pieces(row.bytes, piece);
        // Only rows that are about a close end in one; all others leave the connection open, and
        // the front has to leave it.
        let script = if truncated {
            answer.finish()
        } else {
            answer.stall()
        };
        let peer = Peer::start(script);
        let front = Front::to(&[&format!("{protocol}://{}", peer.tcp_address())]).unwrap();
        let number = row.number;
        match front.ask(front.head("POST", "/", "Content-Length: 0\r\n")) {
            Ok(answer) => assert_eq!(answer.status, 502, "row {number}: {answer:?}"),
            Err(error) => {
                let failure = error.downcast::<Failure>().unwrap();
                let cut = matches!(failure, Failure::Truncated { .. } | Failure::Reset { .. });
                assert!(cut, "row {number}: {failure:?}");
            }
        }
        let outcome = peer.wait_outcome(0);
        let left = matches!(outcome, Outcome::Completed | Outcome::Failed(_));
        assert!(
            left,
            "row {number}: the front must leave the connection: {outcome:?}"
        );
    }
}
