//! The table of requests: what a server must do with which bytes.
//!
//! Numbers are those of the project's catalogue of hostile and odd requests, so that a row can be
//! found again; 0 marks cases beyond it. Each row is fed whole, byte by byte, and cut at every
//! offset.

use catamaran_http1::{BodyLength, Fault, Limits, Scheme, Server};
use http::{Method, StatusCode, Version};

use crate::invariants::feed::{Ending, SeenRequest, cuts, serve};

/// What a row expects.
enum Expect {
    /// Refused with this fault, after so many complete requests.
    Refuse(Fault),
    /// One request, with this path (and query) and body.
    Serve(&'static str, &'static [u8]),
}
use Expect::{Refuse, Serve};

/// A request that begins like this has all a request line and Host can have.
fn get(fields: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").into_bytes()
}

fn post(fields: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{body}").into_bytes()
}

fn chunked(body: &str) -> Vec<u8> {
    post("Transfer-Encoding: chunked", body)
}

fn line(line: &str) -> Vec<u8> {
    format!("{line}\r\nHost: a\r\n\r\n").into_bytes()
}

fn target(target: &str) -> Vec<u8> {
    line(&format!("GET {target} HTTP/1.1"))
}

fn host(host: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost:{host}\r\n\r\n").into_bytes()
}

#[rustfmt::skip]
fn line_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    vec![
        (1, b"GET / HTTP/1.1\nHost: a\n\n".to_vec(), Refuse(Fault::BareLf)),
        (1, b"GET / HTTP/1.1\r\nHost: a\n\r\n".to_vec(), Refuse(Fault::BareLf)),
        (1, b"GET / HTTP/1.1\r\nHost: a\r\n\n".to_vec(), Refuse(Fault::BareLf)),
        (1, b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), Refuse(Fault::BareLf)),
        (2, get("X: a\rb"), Refuse(Fault::FieldValue)),
        (2, get("X: a\r\r"), Refuse(Fault::FieldValue)),
        (2, get("X: \r b"), Refuse(Fault::FieldValue)),
        (2, b"GET /\r HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), Refuse(Fault::TargetByte)),
        (4, [b"\r\n".to_vec(), target("/")].concat(), Serve("/", b"")),
        (4, ["\r\n".repeat(8).into_bytes(), target("/")].concat(), Serve("/", b"")),
        (5, ["\r\n".repeat(9).into_bytes(), target("/")].concat(), Refuse(Fault::LeadingLines)),
        (5, ["\r\n".repeat(200).into_bytes(), target("/")].concat(), Refuse(Fault::LeadingLines)),
        (0, b"\r\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), Refuse(Fault::Method)),
        (7, line("GET  / HTTP/1.1"), Refuse(Fault::RequestLine)),
        (7, line("GET /  HTTP/1.1"), Refuse(Fault::RequestLine)),
        (7, line("GET\t/\tHTTP/1.1"), Refuse(Fault::RequestLine)),
        (7, line("GET /\tHTTP/1.1"), Refuse(Fault::RequestLine)),
        (8, line("GET / HTTP/1.1 "), Refuse(Fault::RequestLine)),
        (8, line(" GET / HTTP/1.1"), Refuse(Fault::Method)),
        (10, line("FOO / HTTP/1.1"), Serve("/", b"")),
        (10, line("get / HTTP/1.1"), Serve("/", b"")),
        (11, line("GE(T / HTTP/1.1"), Refuse(Fault::Method)),
        (11, line("\0 / HTTP/1.1"), Refuse(Fault::Method)),
        (11, b"G\xc9T / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), Refuse(Fault::Method)),
        (11, line(&format!("{} / HTTP/1.1", "M".repeat(33))), Refuse(Fault::Method)),
        (11, line(&format!("{} / HTTP/1.1", "M".repeat(65536))), Refuse(Fault::Method)),
        (0, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc".to_vec(), Refuse(Fault::Method)),
        (13, b"GET /\r\n".to_vec(), Refuse(Fault::RequestLine)),
        (13, b"GET /\r\n\r\n".to_vec(), Refuse(Fault::RequestLine)),
        (13, b"GET /\r\nHost: a\r\n\r\n".to_vec(), Refuse(Fault::RequestLine)),
        (0, line("GET HTTP/1.1"), Refuse(Fault::RequestLine)),
        (14, b"GET / HTTP/1.0\r\n\r\n".to_vec(), Serve("/", b"")),
        (16, line("GET / HTTP/1.10"), Refuse(Fault::Version)),
        (16, line("GET / HTTP/01.1"), Refuse(Fault::Version)),
        (16, line("GET / http/1.1"), Refuse(Fault::Version)),
        (16, line("GET / HTTP/1.1x"), Refuse(Fault::Version)),
        (16, line("GET / HTTP/1"), Refuse(Fault::Version)),
        (16, line("GET / HTTP/1,1"), Refuse(Fault::Version)),
        (16, line("GET / HTTP/1.a"), Refuse(Fault::Version)),
        (16, line("GET / HTTPS/1.1"), Refuse(Fault::Version)),
        (17, line("GET / HTTP/2.0"), Refuse(Fault::VersionUnsupported)),
        (17, line("GET / HTTP/0.9"), Refuse(Fault::VersionUnsupported)),
        (17, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), Refuse(Fault::VersionUnsupported)),
        (0, line("GET / HTTP/1.2"), Serve("/", b"")),
    ]
}

#[rustfmt::skip]
fn target_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    vec![
        (19, target("/a b"), Refuse(Fault::RequestLine)),
        (20, target("/a%zz"), Refuse(Fault::TargetEscape)),
        (20, target("/a%"), Refuse(Fault::TargetEscape)),
        (20, target("/a%1"), Refuse(Fault::TargetEscape)),
        (20, target("/a%1?b"), Refuse(Fault::TargetEscape)),
        (20, target("/a?b=%g0&100%"), Serve("/a?b=%g0&100%", b"")),
        (20, target("/a%2f%C3%a9?b=%20"), Serve("/a%2f%C3%a9?b=%20", b"")),
        (22, target("/caf\u{e9}?\u{e9}"), Serve("/caf%C3%A9?%C3%A9", b"")),
        (22, b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), Serve("/%FF", b"")),
        (23, target("/\"<>^{|}`[]"), Serve("/%22%3C%3E%5E%7B%7C%7D%60%5B%5D", b"")),
        (23, target("/?\"<>^{|}`[]"), Serve("/?\"<>^{|}`[]", b"")),
        (23, target("/\\a"), Refuse(Fault::TargetByte)),
        (23, target("/?\\a"), Serve("/?\\a", b"")),
        (23, target("/\x7f"), Refuse(Fault::TargetByte)),
        (23, target("/\0"), Refuse(Fault::TargetByte)),
        (25, target("/a#b"), Refuse(Fault::TargetFragment)),
        (25, target("/a?b#c"), Refuse(Fault::TargetFragment)),
        (26, target("http://a/x"), Serve("/x", b"")),
        (26, target("HTTP://a?q"), Serve("/?q", b"")),
        (26, target("http://a"), Serve("/", b"")),
        (28, target("https://a/x"), Serve("/x", b"")),
        (29, target("http://u:p@a/x"), Refuse(Fault::HostSyntax)),
        (29, target("http:///x"), Refuse(Fault::HostSyntax)),
        (29, target("http://a#x"), Refuse(Fault::TargetFragment)),
        (29, target("ftp://a/x"), Refuse(Fault::TargetForm)),
        (29, target("http:/x"), Refuse(Fault::TargetForm)),
        (31, target("*"), Refuse(Fault::TargetForm)),
        (31, target("a:80"), Refuse(Fault::TargetForm)),
        (31, target("x"), Refuse(Fault::TargetForm)),
        (31, target("?x"), Refuse(Fault::TargetForm)),
        (31, line("OPTIONS *x HTTP/1.1"), Refuse(Fault::TargetForm)),
        (31, line("OPTIONS * HTTP/1.1"), Serve("*", b"")),
        (31, line("OPTIONS http://a HTTP/1.1"), Serve("*", b"")),
        (31, line("OPTIONS http://a/ HTTP/1.1"), Serve("/", b"")),
        (32, line("CONNECT a:443 HTTP/1.1"), Refuse(Fault::Connect)),
        (32, line("CONNECT / HTTP/1.1"), Refuse(Fault::Connect)),
        (34, target("//evil/x"), Serve("//evil/x", b"")),
        (35, target(&format!("/{}", "a".repeat(8 * 1024))), Refuse(Fault::TargetTooLong)),
        (35, target(&format!("/{}", "a".repeat(20_000))), Refuse(Fault::TargetTooLong)),
    ]
}

#[rustfmt::skip]
fn host_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    vec![
        (36, b"GET / HTTP/1.1\r\n\r\n".to_vec(), Refuse(Fault::HostMissing)),
        (36, b"GET http://a/ HTTP/1.1\r\n\r\n".to_vec(), Refuse(Fault::HostMissing)),
        (37, get("Host: a"), Refuse(Fault::HostDuplicate)),
        (37, get("hOST: b"), Refuse(Fault::HostDuplicate)),
        (
            37,
            b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n".to_vec(),
            Refuse(Fault::HostDuplicate),
        ),
        (0, get("Authorization: a\r\nauthorization: a"), Refuse(Fault::FieldDuplicate)),
        (0, get("If-Range: a\r\nX: b\r\nIf-Range: b"), Refuse(Fault::FieldDuplicate)),
        (0, get("Authorization: a\r\nIf-Range: b"), Serve("/", b"")),
        // Lists may stand in several lines (RFC 9110, section 5.3).
        (0, get("If-None-Match: \"a\"\r\nIf-None-Match: \"b\""), Serve("/", b"")),
        (38, host(" "), Refuse(Fault::HostSyntax)),
        (38, host(""), Refuse(Fault::HostSyntax)),
        (38, host(" :80"), Refuse(Fault::HostSyntax)),
        (38, host(" ."), Refuse(Fault::HostSyntax)),
        (40, host(" a:99999"), Refuse(Fault::HostSyntax)),
        (40, host(" a:65536"), Refuse(Fault::HostSyntax)),
        (40, host(" a:000080"), Refuse(Fault::HostSyntax)),
        (40, host(" a:0"), Refuse(Fault::HostSyntax)),
        (40, host(" a:8x"), Refuse(Fault::HostSyntax)),
        (40, host(" a:-8"), Refuse(Fault::HostSyntax)),
        (40, host(" a:80:80"), Refuse(Fault::HostSyntax)),
        (39, host(" a, b"), Refuse(Fault::HostSyntax)),
        (39, host(" a b"), Refuse(Fault::HostSyntax)),
        (39, host(" u@a"), Refuse(Fault::HostSyntax)),
        (39, host(" a/b"), Refuse(Fault::HostSyntax)),
        (39, host(" a%41"), Refuse(Fault::HostSyntax)),
        (39, host(" a..b"), Refuse(Fault::HostSyntax)),
        (39, host(" \u{e9}"), Refuse(Fault::HostSyntax)),
        (39, host(" [::1"), Refuse(Fault::HostSyntax)),
        (39, host(" [::1]x"), Refuse(Fault::HostSyntax)),
        (39, host(" [::g]"), Refuse(Fault::HostSyntax)),
        (39, host(" [v1.a]"), Refuse(Fault::HostSyntax)),
        (39, host(" ::1"), Refuse(Fault::HostSyntax)),
        (39, host(&format!(" {}", "a".repeat(256))), Refuse(Fault::HostSyntax)),
    ]
}

#[rustfmt::skip]
fn field_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    let long = |size: usize| get(&format!("X: {}", "v".repeat(size)));
    vec![
        (43, get("X : a"), Refuse(Fault::FieldName)),
        (43, host(" a\r\nHost : a"), Refuse(Fault::FieldName)),
        (43, post("Transfer-Encoding : chunked", CHUNKS), Refuse(Fault::FieldName)),
        (43, post("Transfer-Encoding\t: chunked", CHUNKS), Refuse(Fault::FieldName)),
        (44, get("X: a\r\n b"), Refuse(Fault::FieldName)),
        (44, get("X: a\r\n\tb"), Refuse(Fault::FieldName)),
        (44, get("X:\r\n b"), Refuse(Fault::FieldName)),
        (46, b"GET / HTTP/1.1\r\n Host: a\r\n\r\n".to_vec(), Refuse(Fault::FieldName)),
        (46, b"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n".to_vec(), Refuse(Fault::FieldName)),
        (46, b"GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n".to_vec(), Refuse(Fault::FieldName)),
        (47, get("Xfoo"), Refuse(Fault::FieldName)),
        (47, get(": v"), Refuse(Fault::FieldName)),
        (49, get("X: a\0b"), Refuse(Fault::FieldValue)),
        (49, get("X\0: a"), Refuse(Fault::FieldName)),
        (50, get("X: a\x01b"), Refuse(Fault::FieldValue)),
        (50, get("X: a\x7f"), Refuse(Fault::FieldValue)),
        (50, get("X: \x0b"), Refuse(Fault::FieldValue)),
        (52, b"GET / HTTP/1.1\r\nHost: a\r\nX\x85: v\r\n\r\n".to_vec(), Refuse(Fault::FieldName)),
        (52, get("X(y): v"), Refuse(Fault::FieldName)),
        (52, get("X\"y: v"), Refuse(Fault::FieldName)),
        (53, get("X_Real_IP: 9"), Serve("/", b"")),
        (55, get(&["X: 1"; 99].join("\r\n")), Serve("/", b"")),
        (55, get(&["X: 1"; 100].join("\r\n")), Refuse(Fault::TooManyFields)),
        (55, get(&["X: 1"; 1000].join("\r\n")), Refuse(Fault::TooManyFields)),
        (56, long(8 * 1024 - 3), Serve("/", b"")),
        (56, long(8 * 1024 - 2), Refuse(Fault::FieldTooLong)),
        (56, long(12_000), Refuse(Fault::FieldTooLong)),
        (56, long(64_000), Refuse(Fault::FieldTooLong)),
        (
            56,
            get(&vec![format!("X: {}", "v".repeat(7000)); 5].join("\r\n")),
            Refuse(Fault::HeadTooLarge),
        ),
        (94, get("Connection: Upgrade\r\nUpgrade: websocket"), Serve("/", b"")),
        (98, post("Expect: bogus\r\nContent-Length: 1", "x"), Refuse(Fault::Expectation)),
        (98, post("Expect: 100-continue, x\r\nContent-Length: 1", "x"), Refuse(Fault::Expectation)),
        (98, get("Expect: 100-continue"), Serve("/", b"")),
        (98, b"GET / HTTP/1.0\r\nExpect: bogus\r\n\r\n".to_vec(), Serve("/", b"")),
    ]
}

#[rustfmt::skip]
fn framing_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    let length = |value: &str| post(&format!("Content-Length: {value}"), "hello");
    let coding = |value: &str| post(&format!("Transfer-Encoding: {value}"), CHUNKS);
    let both = ["Content-Length: 5", "Transfer-Encoding: chunked"];
    let mut rows = vec![
        (58, post(&both.join("\r\n"), CHUNKS), Refuse(Fault::FramingConflict)),
        (58, post(&[both[1], both[0]].join("\r\n"), CHUNKS), Refuse(Fault::FramingConflict)),
        (59, length("5\r\nContent-Length: 6"), Refuse(Fault::ContentLengthDuplicate)),
        (59, length("5\r\nContent-Length: 5"), Refuse(Fault::ContentLengthDuplicate)),
        (59, length("5, 5"), Refuse(Fault::ContentLength)),
        (61, length("+5"), Refuse(Fault::ContentLength)),
        (62, length("5\x0b"), Refuse(Fault::FieldValue)),
        (64, length("18446744073709551621"), Refuse(Fault::ContentLength)),
        (64, length("9223372036854775808"), Refuse(Fault::ContentLength)),
        (65, length("005"), Serve("/", b"hello")),
        (65, length("\t 5 \t"), Serve("/", b"hello")),
        (67, coding("gzip, chunked"), Refuse(Fault::TransferEncodingUnsupported)),
        (67, coding("identity, chunked"), Refuse(Fault::TransferEncodingUnsupported)),
        (70, coding("CHUNKED"), Serve("/", b"hello")),
        (70, coding("\tchunked\t "), Serve("/", b"hello")),
        (
            71,
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(),
            Refuse(Fault::TransferEncodingVersion),
        ),
        (73, post("X: y", ""), Serve("/", b"")),
        (74, length("5"), Serve("/", b"hello")),
    ];
    for value in ["-1", "0x5", "5a", "5 5", "5.0", "5;x", "5_0", "\u{665}", "", "\"5\"", "5,"] {
        rows.push((62, length(value), Refuse(Fault::ContentLength)));
    }
    for value in [
        "chunked, chunked",
        "chunked\r\nTransfer-Encoding: chunked",
        "gzip, chunked\r\nTransfer-Encoding: chunked",
        ",chunked",
        "chunked,",
        "gzip",
        "chunked, gzip",
        "identity",
        "",
        "xchunked",
        "chunked;q=1",
        "\"chunked\"",
        "chun ked",
    ] {
        rows.push((68, coding(value), Refuse(Fault::TransferEncoding)));
    }
    rows
}

#[rustfmt::skip]
fn chunk_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    let one = |line: &str| chunked(&format!("{line}\r\nhello\r\n0\r\n\r\n"));
    let trailer = |trailer: &str| chunked(&format!("5\r\nhello\r\n0\r\n{trailer}\r\n\r\n"));
    let long_line = format!("5;{}", "x".repeat(1024));
    let many_extensions = format!("1;{}\r\nx\r\n", "x".repeat(900)).repeat(10);
    vec![
        (75, one("5"), Serve("/", b"hello")),
        (
            75,
            chunked("A\r\n0123456789\r\n0a\r\n0123456789\r\n000\r\n\r\n"),
            Serve("/", b"01234567890123456789"),
        ),
        (76, one("5 "), Refuse(Fault::ChunkSize)),
        (76, one(" 5"), Refuse(Fault::ChunkSize)),
        (76, one("5\t;x"), Refuse(Fault::ChunkSize)),
        (76, one("5; x"), Refuse(Fault::ChunkExtension)),
        (77, one("5;a=b"), Serve("/", b"hello")),
        (77, one("5;a;b=\"c;\\\"\""), Serve("/", b"hello")),
        (77, one("5;"), Refuse(Fault::ChunkExtension)),
        (77, one("5;a="), Refuse(Fault::ChunkExtension)),
        (78, chunked("5\nhello\r\n0\r\n\r\n"), Refuse(Fault::ChunkSize)),
        (78, chunked("5;a\nhello\r\n0\r\n\r\n"), Refuse(Fault::ChunkExtension)),
        (78, chunked("5\r\nhello\n0\r\n\r\n"), Refuse(Fault::ChunkEnd)),
        (78, chunked("5\r\nhello\r\n0\n\r\n"), Refuse(Fault::ChunkSize)),
        (78, chunked("5\r\nhello\r\n0\r\n\n"), Refuse(Fault::Trailer)),
        (79, one("5\r\r;AB"), Refuse(Fault::ChunkSize)),
        (79, one("5;a\rb"), Refuse(Fault::ChunkSize)),
        (80, chunked("5\r\nhelloXX"), Refuse(Fault::ChunkEnd)),
        (80, chunked("5\r\nhello0\r\n\r\n"), Refuse(Fault::ChunkEnd)),
        (81, one("0x5"), Refuse(Fault::ChunkSize)),
        (81, one("-5"), Refuse(Fault::ChunkSize)),
        (81, one("+5"), Refuse(Fault::ChunkSize)),
        (81, one("5_0"), Refuse(Fault::ChunkSize)),
        (81, one("g"), Refuse(Fault::ChunkSize)),
        (81, one("8000000000000000"), Refuse(Fault::ChunkSizeTooLarge)),
        (81, one("ffffffffffffffff"), Refuse(Fault::ChunkSizeTooLarge)),
        (82, one(&format!("{}5", "0".repeat(40))), Refuse(Fault::ChunkSizeTooLarge)),
        (82, one(&format!("{}5", "0".repeat(15))), Serve("/", b"hello")),
        (83, chunked("\r\n\r\n"), Refuse(Fault::ChunkSize)),
        (83, chunked(";a\r\n\r\n"), Refuse(Fault::ChunkSize)),
        (84, one(&long_line), Refuse(Fault::ChunkLineTooLong)),
        (84, chunked(&many_extensions), Refuse(Fault::ChunkExtensionsTooLarge)),
        (85, trailer("X-T: y"), Serve("/", b"hello")),
        (85, trailer("X-T: y\r\nX-U:"), Serve("/", b"hello")),
        (86, trailer("Content-Length: 9\r\nHost: b\r\nX-Forwarded-For: c"), Serve("/", b"hello")),
        (86, trailer("Transfer-Encoding: chunked"), Serve("/", b"hello")),
        (87, trailer("X-T : y"), Refuse(Fault::Trailer)),
        (87, trailer(" X-T: y"), Refuse(Fault::Trailer)),
        (87, trailer("X-T: y\r\n z"), Refuse(Fault::Trailer)),
        (87, trailer("X-T: y\nX"), Refuse(Fault::Trailer)),
        (87, trailer("X-T: \0"), Refuse(Fault::Trailer)),
        (87, trailer("X"), Refuse(Fault::Trailer)),
        (87, trailer(&format!("X: {}", "v".repeat(8192))), Refuse(Fault::TrailerTooLarge)),
    ]
}

fn all_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    [
        line_rows(),
        target_rows(),
        host_rows(),
        field_rows(),
        framing_rows(),
        chunk_rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn show(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(120)];
    head.escape_ascii().to_string()
}

fn path_and_query(request: &SeenRequest) -> Vec<u8> {
    let mut text = request.head.target.path.to_vec();
    if let Some(query) = &request.head.target.query {
        text.push(b'?');
        text.extend_from_slice(query);
    }
    text
}

#[test]
fn every_row_is_decided_the_same_whole_and_byte_by_byte() {
    for (row, bytes, expect) in all_rows() {
        for pieces in cuts(&bytes) {
            let about = format!("row {row}, {} piece(s): {}", pieces.len(), show(&bytes));
            let (seen, ending) = serve(Limits::request(), &pieces, false);
            match expect {
                Refuse(fault) => {
                    assert_eq!(ending, Ending::Fault(fault), "{about}");
                    assert!(seen.iter().all(|request| !request.complete), "{about}");
                }
                Serve(path, body) => {
                    assert_eq!(ending, Ending::Open(0), "{about}");
                    let [request] = &seen[..] else {
                        panic!("{about}: {seen:?}")
                    };
                    assert!(request.complete, "{about}");
                    assert_eq!(path_and_query(request), path.as_bytes(), "{about}");
                    assert_eq!(request.body, body, "{about}");
                }
            }
        }
    }
}

/// Row 88.
#[test]
fn a_request_cut_short_is_never_complete() {
    for (row, bytes, expect) in all_rows() {
        if !matches!(expect, Serve(..)) || bytes.len() > 1000 {
            continue;
        }
        let empty_lines = bytes
            .iter()
            .take_while(|byte| b"\r\n".contains(byte))
            .count();
        for cut in 0..bytes.len() {
            let about = format!("row {row}, cut at {cut}: {}", show(&bytes));
            let (seen, ending) = serve(Limits::request(), &[&bytes[..cut]], true);
            assert!(seen.iter().all(|request| !request.complete), "{about}");
            let expected = match (seen.is_empty(), cut <= empty_lines && cut % 2 == 0) {
                (true, true) => Ending::Open(0),
                (true, false) => Ending::Fault(Fault::TruncatedHead),
                (false, _) => Ending::Fault(Fault::TruncatedBody),
            };
            assert_eq!(ending, expected, "{about}");
        }
    }
}

#[test]
fn faults_say_what_to_answer() {
    for (fault, status) in [
        (Fault::Connect, StatusCode::METHOD_NOT_ALLOWED),
        (
            Fault::VersionUnsupported,
            StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        ),
        (Fault::TargetTooLong, StatusCode::URI_TOO_LONG),
        (
            Fault::FieldTooLong,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ),
        (
            Fault::TooManyFields,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ),
        (
            Fault::HeadTooLarge,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ),
        (
            Fault::TransferEncodingUnsupported,
            StatusCode::NOT_IMPLEMENTED,
        ),
        (Fault::Expectation, StatusCode::EXPECTATION_FAILED),
        (Fault::BareLf, StatusCode::BAD_REQUEST),
        (Fault::ChunkSize, StatusCode::BAD_REQUEST),
        (Fault::HostMissing, StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(fault.status(), status, "{fault}");
    }
}

/// Rows 26 to 28, 37 to 41: what becomes of Host and an absolute target.
#[test]
fn authorities_are_normalised() {
    for (bytes, host, port, scheme) in [
        (host(" a"), "a", None, None),
        (host(" a:"), "a", None, None),
        (host(" A.B."), "a.b", None, None),
        (host(" A.b.:8080"), "a.b", Some(8080), None),
        (host(" 127.0.0.1:1"), "127.0.0.1", Some(1), None),
        (host(" [2001:DB8::1]"), "[2001:db8::1]", None, None),
        (host(" [::1]:65535"), "[::1]", Some(65535), None),
        (host(" a_b"), "a_b", None, None),
        (target("http://a/x"), "a", None, Some(Scheme::Http)),
        (
            target("http://Other:81/x"),
            "other",
            Some(81),
            Some(Scheme::Http),
        ),
        (target("hTTps://a/x"), "a", None, Some(Scheme::Https)),
    ] {
        let (seen, _) = serve(Limits::request(), &[&bytes], false);
        let about = show(&bytes);
        let [SeenRequest { head, .. }] = &seen[..] else {
            panic!("{about}")
        };
        let authority = head.authority.as_ref().unwrap();
        assert_eq!(
            (&authority.host[..], authority.port),
            (host.as_bytes(), port),
            "{about}"
        );
        assert_eq!(head.target.scheme, scheme, "{about}");
    }
}

#[test]
fn a_head_keeps_its_fields_but_not_its_framing() {
    let bytes = post(
        "Cookie: a\r\nCookie: b\r\nConnection: x\r\nContent-Length: 5\r\nX-Y: \u{e9}\r\nZ:",
        "hello",
    );
    let (seen, _) = serve(Limits::request(), &[&bytes], false);
    let head = &seen[0].head;
    assert_eq!(head.method, Method::POST);
    assert_eq!(head.version, Version::HTTP_11);
    assert_eq!(head.body, BodyLength::Known(5));
    let fields: Vec<(&str, &[u8])> = head
        .headers
        .iter()
        .map(|field| (std::str::from_utf8(field.name()).unwrap(), field.value()))
        .collect();
    let expected: [(&str, &[u8]); 6] = [
        ("Host", b"a"),
        ("Cookie", b"a"),
        ("Cookie", b"b"),
        ("Connection", b"x"),
        ("X-Y", "\u{e9}".as_bytes()),
        ("Z", b""),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn version_and_connection_decide_on_keep_alive() {
    for (version, fields, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x, CLOSE\r\n", false),
        (
            "1.1",
            "Connection: keep-alive\r\nConnection: close\r\n",
            false,
        ),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        let (seen, _) = serve(Limits::request(), &[bytes.as_bytes()], false);
        assert_eq!(seen[0].keep_alive, keep_alive, "{bytes:?}");
    }
}

/// Row 74: what follows a message is the next one, parsed afresh.
#[test]
fn pipelined_requests_are_told_apart() {
    let all = [
        &post("Content-Length: 5", "hello")[..],
        b"GET /smug HTTP/1.1\r\nHost: b\r\n\r\n",
        &chunked(CHUNKS),
        b"\r\n\r\nHEAD /last HTTP/1.1\r\nHost: c\r\nConnection: close\r\n\r\n",
        b"GET /never HTTP/1.1\r\nHost: d\r\n\r\n",
    ]
    .concat();
    for pieces in cuts(&all) {
        let (seen, ending) = serve(Limits::request(), &pieces, true);
        let requests: Vec<_> = seen
            .iter()
            .map(|request| (path_and_query(request), &request.body[..], request.complete))
            .collect();
        let expected: [(Vec<u8>, &[u8], bool); 4] = [
            (b"/".to_vec(), b"hello", true),
            (b"/smug".to_vec(), b"", true),
            (b"/".to_vec(), b"hello", true),
            (b"/last".to_vec(), b"", true),
        ];
        assert_eq!(requests, expected);
        // Nothing after `Connection: close` is looked at.
        assert_eq!(
            ending,
            Ending::Open("GET /never HTTP/1.1\r\nHost: d\r\n\r\n".len())
        );
    }
}

#[test]
fn configured_limits_are_exact() {
    let limits = Limits {
        head_bytes: 40,
        target_bytes: 4,
        line_bytes: 9,
        fields: 2,
        ..Limits::request()
    };
    for (bytes, fault) in [
        ("GET /abc HTTP/1.1\r\nHost: abc\r\nX: y\r\n\r\n", None),
        (
            "GET /abcd HTTP/1.1\r\nHost: a\r\n\r\n",
            Some(Fault::TargetTooLong),
        ),
        (
            "GET /abc HTTP/1.1\r\nHost: abcd\r\n\r\n",
            Some(Fault::FieldTooLong),
        ),
        (
            "GET /abc HTTP/1.1\r\nHost: abc\r\nX: yzab\r\n\r\n",
            Some(Fault::HeadTooLarge),
        ),
        (
            "GET / HTTP/1.1\r\nHost:a\r\na:\r\nb:\r\n\r\n",
            Some(Fault::TooManyFields),
        ),
    ] {
        for pieces in cuts(bytes.as_bytes()) {
            let (_, ending) = serve(limits, &pieces, false);
            assert_eq!(
                ending,
                fault.map_or(Ending::Open(0), Ending::Fault),
                "{bytes:?}"
            );
        }
    }
}

#[test]
fn an_idle_connection_costs_little() {
    assert!(size_of::<Server>() < 200, "{}", size_of::<Server>());
    assert!(size_of::<catamaran_http1::Client>() < 300);
}

const CHUNKS: &str = "5\r\nhello\r\n0\r\n\r\n";
