//! The table of responses: what a client must do with which bytes of its server.
//!
//! Numbers are those of the project's catalogue of bad upstream responses; 0 marks cases beyond
//! it. Each row is fed whole, byte by byte, and cut at every offset.

use catamaran_http1::{Fault, Limits};
use http::Method;

use crate::invariants::feed::{Ending, SeenResponse, ask, cuts};

/// What a row expects.
enum Expect {
    Refuse(Fault),
    /// A response with this status and body, after which the connection is reusable.
    Reuse(u16, &'static [u8]),
    /// The same, but the connection must not be used again.
    Close(u16, &'static [u8]),
}
use Expect::{Close, Refuse, Reuse};

fn ok(fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}").into_bytes()
}

fn chunked(body: &str) -> Vec<u8> {
    ok("Transfer-Encoding: chunked", body)
}

/// A response with this status line and no body.
fn line(line: &str) -> Vec<u8> {
    format!("{line}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

/// A response without a body, whose head has this field line.
fn field(field: &str) -> Vec<u8> {
    ok(&format!("Content-Length: 0\r\n{field}"), "")
}

#[rustfmt::skip]
fn body_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    let length = |value: &str| ok(&format!("Content-Length: {value}"), "hello");
    let coding = |value: &str| ok(&format!("Transfer-Encoding: {value}"), CHUNKS);
    vec![
        (0, length("5"), Reuse(200, b"hello")),
        (0, coding("chunked"), Reuse(200, b"hello")),
        (0, length("5\r\nConnection: close"), Close(200, b"hello")),
        (0, b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec(), Close(200, b"hello")),
        (0, b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\nhello".to_vec(), Reuse(200, b"hello")),
        (0, [length("5"), b"x".to_vec()].concat(), Refuse(Fault::Unsolicited)),
        (0, [length("5"), b"\r\n".to_vec()].concat(), Refuse(Fault::Unsolicited)),
        (7, chunked("zz\r\nhello\r\n0\r\n\r\n"), Refuse(Fault::ChunkSize)),
        (7, chunked("0x5\r\nhello\r\n0\r\n\r\n"), Refuse(Fault::ChunkSize)),
        (7, chunked("5\nhello\n0\n\n"), Refuse(Fault::ChunkSize)),
        (7, chunked("5     \r\nhello\r\n0  \r\n\r\n"), Reuse(200, b"hello")),
        (7, chunked("5\t;a = b ; c = \"d\" \r\nhello\r\n0 ;last\r\n\r\n"), Reuse(200, b"hello")),
        (7, chunked("2 3\r\nhello\r\n0\r\n\r\n"), Refuse(Fault::ChunkSize)),
        (7, chunked(" 5\r\nhello\r\n0\r\n\r\n"), Refuse(Fault::ChunkSize)),
        (7, chunked("5 ;a b\r\nhello\r\n0\r\n\r\n"), Refuse(Fault::ChunkExtension)),
        (8, ok("Content-Length: 5\r\nTransfer-Encoding: chunked", CHUNKS), Refuse(Fault::FramingConflict)),
        (8, ok("Transfer-Encoding: chunked\r\nContent-Length: 5", CHUNKS), Refuse(Fault::FramingConflict)),
        (9, length("5\r\nContent-Length: 6"), Refuse(Fault::ContentLengthDuplicate)),
        (10, length("+5"), Refuse(Fault::ContentLength)),
        (10, length("-1"), Refuse(Fault::ContentLength)),
        (10, length(""), Refuse(Fault::ContentLength)),
        (10, length("18446744073709551621"), Refuse(Fault::ContentLength)),
        (11, coding("gzip"), Refuse(Fault::TransferEncoding)),
        (11, coding("gzip, chunked"), Refuse(Fault::TransferEncodingUnsupported)),
        (11, b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(), Refuse(Fault::TransferEncodingVersion)),
        (25, b"HTTP/1.1 200 OK\nX: y\nContent-Length: 5\r\n\nhello".to_vec(), Reuse(200, b"hello")),
        (26, b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n".to_vec(), Reuse(204, b"")),
        (26, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n".to_vec(), Close(204, b"")),
        (26, b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(), Close(204, b"")),
        (26, b"HTTP/1.1 204 No Content\r\n\r\nhello".to_vec(), Refuse(Fault::Unsolicited)),
        (26, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n".to_vec(), Reuse(304, b"")),
        (26, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello".to_vec(), Refuse(Fault::Unsolicited)),
    ]
}

#[rustfmt::skip]
fn head_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    let interim = |count: usize, fields: &str| {
        let interim = format!("HTTP/1.1 103 Early Hints\r\n{fields}\r\n");
        [interim.repeat(count).into_bytes(), ok("Content-Length: 5", "hello")].concat()
    };
    let large = format!("X: {}\r\n", "v".repeat(5000));
    vec![
        (13, interim(8, ""), Reuse(200, b"hello")),
        (13, interim(1000, ""), Reuse(200, b"hello")),
        (13, interim(7, &large), Reuse(200, b"hello")),
        (14, [EARLY_HINTS.as_bytes(), &ok("Content-Length: 5", "hello")].concat(), Reuse(200, b"hello")),
        (15, line("HTTP/1.1 101 Switching Protocols"), Refuse(Fault::Upgraded)),
        (16, line("HTTP/1.1 2000 OK"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/1.1 abc OK"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/1.1 099 OK"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/1.1 000 OK"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/1.1 20 OK"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/1.1  200 OK"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/1.1 200\tOK"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/2 200"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/2.0 200 OK"), Refuse(Fault::StatusLine)),
        (16, line("http/1.1 200 OK"), Refuse(Fault::StatusLine)),
        (16, line("ICY 200 OK"), Refuse(Fault::StatusLine)),
        (16, line("\r\nHTTP/1.1 200 OK"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/1.1 200 O\0K"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/1.1 200 O\rK"), Refuse(Fault::StatusLine)),
        (16, line("HTTP/1.1 200 "), Reuse(200, b"")),
        (16, line("HTTP/1.1 200"), Reuse(200, b"")),
        (16, line("HTTP/1.1 200 \u{e9}t\u{e9}"), Reuse(200, b"")),
        (17, line("HTTP/1.1 600 x"), Reuse(600, b"")),
        (17, line("HTTP/1.1 999 x"), Reuse(999, b"")),
        (19, field(&format!("X: {}", "v".repeat(12_000))), Reuse(200, b"")),
        (19, field(&format!("X: {}", "v".repeat(100_000))), Refuse(Fault::HeadTooLarge)),
        (19, field(&["X: 1"; 199].join("\r\n")), Reuse(200, b"")),
        (19, field(&["X: 1"; 200].join("\r\n")), Refuse(Fault::TooManyFields)),
        (20, field("X Y: v"), Refuse(Fault::FieldName)),
        (20, field("X : v"), Refuse(Fault::FieldName)),
        (20, field("X"), Refuse(Fault::FieldName)),
        (20, field(": v"), Refuse(Fault::FieldName)),
        (21, field("X: a\r\n b"), Refuse(Fault::FieldName)),
        (22, field("X: a\0b"), Refuse(Fault::FieldValue)),
        (22, field("X: a\x01b"), Refuse(Fault::FieldValue)),
        (23, field("X: a\rSet-Cookie: evil=1"), Refuse(Fault::FieldValue)),
    ]
}

fn all_rows() -> Vec<(u32, Vec<u8>, Expect)> {
    [body_rows(), head_rows()].into_iter().flatten().collect()
}

fn show(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(120)].escape_ascii().to_string()
}

fn check(seen: &SeenResponse, status: u16, body: &[u8], reusable: bool, about: &str) {
    assert!(seen.complete, "{about}");
    assert_eq!(
        seen.head.as_ref().map(|head| head.status.as_u16()),
        Some(status),
        "{about}"
    );
    assert_eq!(seen.body, body, "{about}");
    assert_eq!(seen.reusable, reusable, "{about}");
}

#[test]
fn every_row_is_decided_the_same_whole_and_byte_by_byte() {
    for (row, bytes, expect) in all_rows() {
        for pieces in cuts(&bytes) {
            let about = format!("row {row}, {} piece(s): {}", pieces.len(), show(&bytes));
            let (seen, ending) = ask(Limits::response(), &Method::GET, &pieces, false);
            match expect {
                Refuse(fault) => assert_eq!(ending, Ending::Fault(fault), "{about}"),
                Reuse(status, body) => check(&seen, status, body, true, &about),
                Close(status, body) => check(&seen, status, body, false, &about),
            }
        }
    }
}

/// Rows 1, 4 and 5.
#[test]
fn a_response_cut_short_is_never_complete() {
    for (row, bytes, expect) in all_rows() {
        if matches!(expect, Refuse(_)) || bytes.len() > 1000 {
            continue;
        }
        for cut in 0..bytes.len() {
            let about = format!("row {row}, cut at {cut}: {}", show(&bytes));
            let (seen, ending) = ask(Limits::response(), &Method::GET, &[&bytes[..cut]], true);
            assert!(!seen.complete, "{about}");
            let expected = match (&seen.head, cut) {
                (None, 0) => Fault::ClosedUnanswered,
                (None, _) => Fault::TruncatedHead,
                (Some(_), _) => Fault::TruncatedBody,
            };
            assert_eq!(ending, Ending::Fault(expected), "{about}");
        }
    }
}

#[test]
fn a_body_without_framing_ends_with_the_connection() {
    let bytes = ok("X: y", "hello");
    for pieces in cuts(&bytes) {
        let (seen, _) = ask(Limits::response(), &Method::GET, &pieces, false);
        assert_eq!((&seen.body[..], seen.complete), (&b"hello"[..], false));
        let (seen, _) = ask(Limits::response(), &Method::GET, &pieces, true);
        check(&seen, 200, b"hello", false, "at the end");
    }
}

/// Row 26: no response to HEAD has a body, whatever its head announces.
#[test]
fn responses_to_head_have_no_body() {
    for (fields, announced) in [
        ("Content-Length: 5", Some(5)),
        ("Transfer-Encoding: chunked", None),
        ("X: y", None),
    ] {
        let bytes = ok(fields, "");
        for pieces in cuts(&bytes) {
            let (seen, _) = ask(Limits::response(), &Method::HEAD, &pieces, false);
            check(&seen, 200, b"", true, fields);
            assert_eq!(seen.head.unwrap().content_length, announced);
        }
        let bytes = ok(fields, "hello");
        let (seen, ending) = ask(Limits::response(), &Method::HEAD, &[&bytes], false);
        assert_eq!(ending, Ending::Fault(Fault::Unsolicited));
        assert!(!seen.reusable);
    }
}

/// Rows 28 and 29.
#[test]
fn heads_keep_what_is_end_to_end() {
    let bytes = ok(
        "Location: /a\r\nContent-Type: text/a\r\nLOCATION: /b\r\ncontent-type: text/b\r\n\
         Connection: keep-alive, X-Secret\r\nX-Secret: s\r\nx-secret: t\r\nKeep-Alive: timeout=5\r\n\
         Proxy-Authenticate: Basic\r\nProxy-Connection: close\r\nUpgrade: h2c\r\nTE: x\r\n\
         Trailer: X\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5",
        "hello",
    );
    let (seen, _) = ask(Limits::response(), &Method::GET, &[&bytes], false);
    assert!(seen.reusable);
    let head = seen.head.unwrap();
    assert_eq!(head.content_length, Some(5));
    assert_eq!(head.reason.as_deref(), Some(&b"OK"[..]));
    let fields: Vec<_> = head
        .headers
        .iter()
        .map(|field| (field.name(), field.value()))
        .collect();
    assert_eq!(
        fields,
        [
            (&b"Location"[..], &b"/a"[..]),
            (b"Content-Type", b"text/a"),
            (b"Set-Cookie", b"a"),
            (b"Set-Cookie", b"b")
        ]
    );
}

/// Row 14.
#[test]
fn interim_responses_come_before_the_final_one() {
    let bytes = [
        EARLY_HINTS.as_bytes(),
        b"HTTP/1.1 100 Continue\r\nContent-Length: 7\r\nConnection: close\r\n\r\n",
        &ok("Content-Length: 5", "hello"),
    ]
    .concat();
    let (seen, _) = ask(Limits::response(), &Method::GET, &[&bytes], false);
    check(&seen, 200, b"hello", true, "after two interim responses");
    let interim: Vec<_> = seen
        .interim
        .iter()
        .map(|head| (head.status.as_u16(), head.headers.len()))
        .collect();
    assert_eq!(interim, [(103, 1), (100, 0)]);
    assert!(
        seen.interim
            .iter()
            .all(|head| head.content_length.is_none())
    );

    let (_, ending) = ask(
        Limits::response(),
        &Method::GET,
        &[EARLY_HINTS.as_bytes()],
        true,
    );
    assert_eq!(ending, Ending::Fault(Fault::TruncatedHead));
}

const CHUNKS: &str = "5\r\nhello\r\n0\r\n\r\n";
const EARLY_HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
