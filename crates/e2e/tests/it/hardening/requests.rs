//! Requests that a front must refuse, over every protocol to the backend, whole and byte by byte.

use catamaran_e2e::Front;
use catamaran_testkit::{Address, Peer, Script};

/// One malformed request.
struct Row {
    number: u16,
    bytes: &'static [u8],
    status: u16,
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { number: 1, bytes: b"GET / HTTP/1.1\nHost: a\n\n", status: 400 },
    Row { number: 2, bytes: b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", status: 400 },
    Row { number: 7, bytes: b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", status: 400 },
    Row { number: 11, bytes: b"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", status: 400 },
    Row { number: 13, bytes: b"GET /\r\n\r\n", status: 400 },
    Row { number: 17, bytes: b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", status: 505 },
    Row { number: 19, bytes: b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", status: 400 },
    Row { number: 20, bytes: b"GET /a%zz HTTP/1.1\r\nHost: a\r\n\r\n", status: 400 },
    Row { number: 25, bytes: b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", status: 400 },
    Row { number: 31, bytes: b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", status: 400 },
    Row { number: 32, bytes: b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", status: 405 },
    Row { number: 37, bytes: b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", status: 400 },
    Row { number: 38, bytes: b"GET / HTTP/1.1\r\nHost: \r\n\r\n", status: 400 },
    Row { number: 40, bytes: b"GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", status: 400 },
    Row { number: 43, bytes: b"GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n", status: 400 },
    Row { number: 44, bytes: b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", status: 400 },
    Row { number: 47, bytes: b"GET / HTTP/1.1\r\nHost: a\r\nXfoo\r\n\r\n", status: 400 },
    Row { number: 49, bytes: b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", status: 400 },
    Row { number: 58, bytes: b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", status: 400 },
    Row { number: 59, bytes: b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", status: 400 },
    Row { number: 61, bytes: b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", status: 400 },
    Row { number: 62, bytes: b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5a\r\n\r\nhello", status: 400 },
    Row { number: 64, bytes: b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551621\r\n\r\nhello", status: 400 },
    Row { number: 67, bytes: b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", status: 501 },
    Row { number: 68, bytes: b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", status: 400 },
    Row { number: 71, bytes: b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: 400 },
    Row { number: 103, bytes: b"GET /a/..;/admin HTTP/1.1\r\nHost: a\r\n\r\n", status: 400 },
    Row { number: 106, bytes: b"GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n", status: 400 },
];

#[test]
fn malformed_requests_are_refused_and_never_forwarded() {
    for protocol in ["ajp", "http"] {
        let peer = Peer::start(Script::new().stall());
        let Address::Tcp(address) = peer.address() else {
            unreachable!("the peer listens on TCP");
        };
        let front = Front::to(&[&format!("{protocol}://{address}")]).unwrap();
        for row in ROWS {
            for piece in [usize::MAX, 1] {
                refused(&front, row, piece);
            }
        }
        assert_eq!(
            peer.connections(),
            0,
            "{protocol}: a refused request reached the backend"
        );
    }
}

#[test]
fn heads_beyond_the_limits_are_refused() {
    let peer = Peer::start(Script::new().stall());
    let front = Front::to(&[&format!("ajp://{}", peer.tcp_address())]).unwrap();
    let long = "a".repeat(20_000);
    let cases = [
        (35, format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414),
        (55, front.head("GET", "/", &"X: 1\r\n".repeat(150)), 431),
        (56, front.head("GET", "/", &format!("X: {long}\r\n")), 431),
    ];
    for (number, request, status) in cases {
        let answer = front.ask(&request).unwrap();
        assert_eq!(answer.status, status, "row {number}");
        assert_eq!(answer.header("connection"), Some("close"), "row {number}");
    }
    assert_eq!(peer.connections(), 0);
}

fn refused(front: &Front, row: &Row, piece: usize) {
    let mut client = front.connect().unwrap();
    for bytes in row.bytes.chunks(piece) {
        // The front may refuse and close before the last piece.
        if client.send(bytes).is_err() {
            break;
        }
    }
    let answer = client.receive();
    let answer = answer.unwrap_or_else(|failure| panic!("row {}: {failure}", row.number));
    assert_eq!(answer.status, row.status, "row {}", row.number);
    assert_eq!(
        answer.header("connection"),
        Some("close"),
        "row {}",
        row.number
    );
    // Exactly one answer, then the end.
    let rest = client.receive_to_end().unwrap_or_default();
    assert_eq!(rest, b"", "row {}", row.number);
}
