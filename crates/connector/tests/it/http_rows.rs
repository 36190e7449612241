//! Bad and odd input over HTTP/1.1 on sockets: the rows of the project's catalogue of hostile
//! requests that concern a server, on every driver, each whole and byte by byte.
//!
//! The codec is held to more of them in its own tests, the front in the end-to-end tests; here it
//! is that every driver answers a refusal before it closes, serves nothing of a refused request,
//! and leaves a connection usable exactly when the row says so.

use catamaran_connector::{Body, Request, Response};
use catamaran_testkit::Failure;
use http::StatusCode;

use super::*;

/// What must come of some bytes.
enum Expect {
    /// One answer with this status and `Connection: close`, then the close, for this reason.
    Refuse(u16, &'static str),
    /// These requests, as the application sees them; the connection stays good.
    Serve(&'static [&'static str]),
    /// One request; the connection is closed after it.
    ServeAndClose(&'static str),
}
use Expect::{Refuse, Serve, ServeAndClose};

struct Row {
    number: u32,
    input: Vec<u8>,
    expect: Expect,
}

fn line(line: &str) -> Vec<u8> {
    format!("{line}\r\nHost: a\r\n\r\n").into_bytes()
}

fn target(target: &str) -> Vec<u8> {
    line(&format!("GET {target} HTTP/1.1"))
}

fn fields(fields: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").into_bytes()
}

fn host(host: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\n{host}\r\n\r\n").into_bytes()
}

fn post(fields: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{body}").into_bytes()
}

fn chunked(body: &str) -> Vec<u8> {
    post("Transfer-Encoding: chunked", body)
}

/// A chunked body of an application that reads it before it answers.
fn read(body: &str) -> Vec<u8> {
    let head = "POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    format!("{head}{body}").into_bytes()
}

fn rows() -> Vec<Row> {
    let rows = [
        request_lines(),
        heads(),
        framing(),
        chunks(),
        expectations(),
    ];
    let rows = rows.into_iter().flatten();
    rows.map(|(number, input, expect)| Row {
        number,
        input,
        expect,
    })
    .collect()
}

type Rows = Vec<(u32, Vec<u8>, Expect)>;

#[rustfmt::skip]
fn request_lines() -> Rows {
    vec![
        (1, b"GET / HTTP/1.1\nHost: a\n\n".to_vec(), Refuse(400, "bare-lf")),
        (1, b"GET / HTTP/1.1\r\nHost: a\r\n\n".to_vec(), Refuse(400, "bare-lf")),
        (4, [b"\r\n".to_vec(), target("/")].concat(), Serve(&["GET / a:"])),
        (5, [b"\r\n".repeat(200), target("/")].concat(), Refuse(400, "leading-lines")),
        (7, line("GET  / HTTP/1.1"), Refuse(400, "request-line")),
        (7, line("GET\t/\tHTTP/1.1"), Refuse(400, "request-line")),
        (8, line("GET / HTTP/1.1 "), Refuse(400, "request-line")),
        (10, line("FOO / HTTP/1.1"), Serve(&["FOO / a:"])),
        (11, line("GE(T / HTTP/1.1"), Refuse(400, "method")),
        (11, line("\0 / HTTP/1.1"), Refuse(400, "method")),
        (13, b"GET /\r\n".to_vec(), Refuse(400, "request-line")),
        (16, line("GET / HTTP/1.10"), Refuse(400, "version")),
        (16, line("GET / http/1.1"), Refuse(400, "version")),
        (17, line("GET / HTTP/2.0"), Refuse(505, "version-unsupported")),
        (19, target("/a b"), Refuse(400, "request-line")),
        (20, target("/a%zz"), Refuse(400, "target-escape")),
        (20, target("/a%1"), Refuse(400, "target-escape")),
        (22, target("/caf\u{e9}"), Serve(&["GET /caf%C3%A9 a:"])),
        (23, target("/\"<>^{|}`"), Serve(&["GET /%22%3C%3E%5E%7B%7C%7D%60 a:"])),
        (25, target("/a#b"), Refuse(400, "target-fragment")),
        (26, target("http://b/x"), Serve(&["GET /x b:"])),
        (28, target("https://a/"), Refuse(421, "scheme")),
        (29, target("http://u:p@a/"), Refuse(400, "host-syntax")),
        (29, target("ftp://a/"), Refuse(400, "target-form")),
        (31, target("*"), Refuse(400, "target-form")),
        (31, target("x"), Refuse(400, "target-form")),
        (32, line("CONNECT a:443 HTTP/1.1"), Refuse(405, "connect")),
        (34, target("//evil/x"), Serve(&["GET //evil/x a:"])),
        (35, target(&format!("/{}", "a".repeat(20_000))), Refuse(414, "target-too-long")),
    ]
}

#[rustfmt::skip]
fn heads() -> Rows {
    let long = format!("X: {}", "a".repeat(12_000));
    let large = format!("X: {}", "a".repeat(7500));
    vec![
        (2, fields("X: a\rb"), Refuse(400, "field-value")),
        (37, fields("Host: a"), Refuse(400, "host-duplicate")),
        (37, fields("Host: b"), Refuse(400, "host-duplicate")),
        (38, host("Host: "), Refuse(400, "host-syntax")),
        (38, host("X: a"), Refuse(400, "host-missing")),
        (40, host("Host: a:99999"), Refuse(400, "host-syntax")),
        (40, host("Host: a:8x"), Refuse(400, "host-syntax")),
        (41, host("Host: A.B."), Serve(&["GET / a.b:"])),
        (43, fields("X : a"), Refuse(400, "field-name")),
        (43, host("Host : a"), Refuse(400, "field-name")),
        (44, fields("X: a\r\n b"), Refuse(400, "field-name")),
        (46, host(" Host: a"), Refuse(400, "field-name")),
        (47, fields("Xfoo"), Refuse(400, "field-name")),
        (49, fields("X: a\0b"), Refuse(400, "field-value")),
        (50, fields("X: a\x7fb"), Refuse(400, "field-value")),
        (52, fields("X(y): v"), Refuse(400, "field-name")),
        (55, fields(&["X: 1"; 98].join("\r\n")), Serve(&["GET / a:"])),
        (55, fields(&["X: 1"; 150].join("\r\n")), Refuse(431, "too-many-fields")),
        (56, fields(&long), Refuse(431, "field-too-long")),
        (56, fields(&vec![large; 6].join("\r\n")), Refuse(431, "head-too-large")),
        (89, fields("Connection: close, Host, Cookie"), ServeAndClose("GET / a:")),
        (92, fields("Connection: Upgrade\r\nUpgrade: h2c"), Serve(&["GET / a:"])),
    ]
}

#[rustfmt::skip]
fn framing() -> Rows {
    let length = |value: &str| post(&format!("Content-Length: {value}"), "hello");
    let encoding = |value: &str| post(&format!("Transfer-Encoding: {value}"), CK);
    let old = b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    vec![
        (58, post("Content-Length: 5\r\nTransfer-Encoding: chunked", CK),
            Refuse(400, "framing-conflict")),
        (58, post("Transfer-Encoding: chunked\r\nContent-Length: 5", CK),
            Refuse(400, "framing-conflict")),
        (59, post("Content-Length: 5\r\nContent-Length: 6", "hello!"),
            Refuse(400, "content-length-duplicate")),
        (59, post("Content-Length: 5\r\nContent-Length: 5", "hello"),
            Refuse(400, "content-length-duplicate")),
        (61, length("+5"), Refuse(400, "content-length")),
        (62, length("-1"), Refuse(400, "content-length")),
        (62, length("0x5"), Refuse(400, "content-length")),
        (62, length("5 5"), Refuse(400, "content-length")),
        (62, length(""), Refuse(400, "content-length")),
        (64, length("18446744073709551621"), Refuse(400, "content-length")),
        (64, length("9223372036854775808"), Refuse(400, "content-length")),
        (65, length("005"), Serve(&["POST / a:hello"])),
        (67, encoding("gzip, chunked"), Refuse(501, "transfer-encoding-unsupported")),
        (68, encoding("chunked, chunked"), Refuse(400, "transfer-encoding")),
        (68, encoding("chunked\r\nTransfer-Encoding: chunked"), Refuse(400, "transfer-encoding")),
        (68, encoding(",chunked"), Refuse(400, "transfer-encoding")),
        (70, encoding("CHUNKED"), Serve(&["POST / a:hello"])),
        (71, old.to_vec(), Refuse(400, "transfer-encoding-version")),
        (73, line("POST / HTTP/1.1"), Serve(&["POST / a:"])),
        (74, post("Content-Length: 5", "helloGET /smug HTTP/1.1\r\nHost: b\r\n\r\n"),
            Serve(&["POST / a:hello", "GET /smug b:"])),
    ]
}

#[rustfmt::skip]
fn chunks() -> Rows {
    let zeros = format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(40));
    vec![
        (76, read("5 \r\nhello\r\n0\r\n\r\n"), Refuse(400, "chunk-size")),
        (77, chunked("5;a=b\r\nhello\r\n0;c\r\n\r\n"), Serve(&["POST / a:hello"])),
        (79, read("5\r\r;AB\r\nhello\r\n0\r\n\r\n"), Refuse(400, "chunk-size")),
        (79, read("5;a\rb\r\nhello\r\n0\r\n\r\n"), Refuse(400, "chunk-size")),
        (80, read("5\r\nhelloXX0\r\n\r\n"), Refuse(400, "chunk-end")),
        (82, read(&zeros), Refuse(400, "chunk-size-too-large")),
        (82, read("FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n"), Refuse(400, "chunk-size-too-large")),
        (83, read("\r\n\r\n"), Refuse(400, "chunk-size")),
        (85, chunked("5\r\nhello\r\n0\r\nX-T: y\r\n\r\n"), Serve(&["POST / a:hello"])),
        (86, chunked("5\r\nhello\r\n0\r\nContent-Length: 9\r\nHost: b\r\n\r\n"),
            Serve(&["POST / a:hello"])),
    ]
}

#[rustfmt::skip]
fn expectations() -> Rows {
    vec![
        (14, b"GET / HTTP/1.0\r\nHost: a\r\n\r\n".to_vec(), ServeAndClose("GET / a:")),
        (97, post("Expect: 100-continue\r\nContent-Length: 5", "hello"), Serve(&["POST / a:hello"])),
        (98, post("Expect: bogus\r\nContent-Length: 5", "hello"), Refuse(417, "expectation")),
        (98, fields("Expect: 100-continue"), Serve(&["GET / a:"])),
        (98, b"POST / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"
            .to_vec(), ServeAndClose("POST / a:hello")),
    ]
}

/// Says what it sees, then what it is sent; under `/read` it waits for the whole body first.
fn mirror(request: &Request) -> Response {
    if request.path == b"/read"[..] {
        let mut response = Response::text(StatusCode::OK, "read");
        response.after_body = true;
        return response;
    }
    let prefix = [
        request.method.as_str().as_bytes(),
        b" ",
        &request.path,
        b" ",
        &request.origin.server_name,
        b":",
    ];
    let prefix = prefix.concat().into();
    Response::new(StatusCode::OK, Body::Echo { prefix })
}

fn check_row(tier: &Tier, row: &Row, piece: usize) {
    let name = format!(
        "row {} in pieces of {piece}: {:?}",
        row.number,
        row.input.escape_ascii()
    );
    let before = tier.running.counters();
    let mut client = tier.http();
    for piece in row.input.chunks(piece) {
        // The connector may close before it has everything, and then writing fails.
        if client.send(piece).is_err() {
            break;
        }
    }
    let answer = |client: &mut HttpClient, request: &str| {
        let answer = client
            .receive()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, request),
            "{name}"
        );
        answer.header("connection") == Some("close")
    };
    match &row.expect {
        Refuse(status, token) => {
            let answer = client
                .receive()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let shown = (answer.status, answer.header("connection"));
            assert_eq!(shown, (*status, Some("close")), "{name}");
            ended(&mut client, &name);
            tier.counted(token, &before, &name);
        }
        Serve(requests) => {
            for request in *requests {
                assert!(!answer(&mut client, request), "{name}");
            }
            client.send(&get("/next")).unwrap();
            answer(&mut client, "GET /next a:");
        }
        ServeAndClose(request) => {
            assert!(answer(&mut client, request), "{name}");
            ended(&mut client, &name);
        }
    }
}

/// Nothing more comes. What was refused before it was read whole may end in a reset.
fn ended(client: &mut HttpClient, name: &str) {
    match client.receive() {
        Err(Failure::Closed | Failure::Reset { .. }) => {}
        other => panic!("{name}: {other:?}"),
    }
}

fn check_rows(piece: impl Fn(&Row) -> usize) {
    on_each_driver(|io| {
        let tier = Tier::serving(io, mirror, |_| {});
        for row in rows() {
            check_row(&tier, &row, piece(&row));
        }
    });
}

#[test]
fn every_row_whole() {
    check_rows(|_| usize::MAX);
}

/// Long ones in larger pieces: a system call for each byte would take seconds.
#[test]
fn every_row_byte_by_byte() {
    check_rows(|row| if row.input.len() > 2048 { 997 } else { 1 });
}

/// EOF in the middle of a head or a body: nothing is served, or the cut is counted.
#[test]
fn a_request_cut_short_is_never_taken_for_a_whole_one() {
    on_each_driver(|io| {
        let tier = Tier::serving(io, mirror, |_| {});
        let head = post("Content-Length: 5", "");
        for cut in 1..head.len() {
            let mut client = tier.http();
            client.send(&head[..cut]).unwrap();
            client.finish_sending().unwrap();
            assert!(
                client.receive().map_or(true, |answer| answer.status == 400),
                "{cut}"
            );
        }
        assert_eq!(tier.running.counters().requests, 0);
        let before = tier.running.counters();
        let mut client = tier.http();
        client.send(&read("5\r\nhel")).unwrap();
        client.finish_sending().unwrap();
        assert!(client.receive().map_or(true, |answer| answer.status == 400));
        tier.counted("truncated-body", &before, "a chunked body cut short");
    });
}

/// `chunked`'s usual body: `hello` in one chunk.
const CK: &str = "5\r\nhello\r\n0\r\n\r\n";
