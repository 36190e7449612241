//! Section 2a of the hardening catalogue: what HTTP/1.1 backends send, and what a client must see.
//!
//! This is the table; [`super::responses`] runs it. Rows that are more than bytes are in
//! [`super::failing`].

use super::response_row::{
    Request, ResponseRow, bad_gateway, relayed, relayed_once, response_rows, truncated,
};

response_rows! { Http;
    row_004_shorter_than_announced: [
        truncated(200, "closed", ok("Content-Length: 100", "0123456789")).then_closes(),
        truncated(200, "closed", ok("Content-Length: 100", "")).then_closes(),
    ];
    row_005_no_last_chunk: [
        truncated(200, "closed", chunked("5\r\nhel")).then_closes(),
        truncated(200, "closed", chunked("5\r\nhello\r\n")).then_closes(),
        truncated(200, "closed", chunked("5\r\nhello\r\n0\r\n")).then_closes(),
        bad_gateway("closed", "HTTP/1.1 200 OK\r\nContent-Le").then_closes(),
    ];
    row_007_malformed_chunks: [
        truncated(200, "chunk-size", chunked("zz\r\nhello\r\n0\r\n\r\n")),
        truncated(200, "chunk-size", chunked("0x5\r\nhello\r\n0\r\n\r\n")),
        truncated(200, "chunk-size", chunked("5\nhello\n0\n\n")),
        truncated(200, "chunk-end", chunked("5\r\nhelloXX0\r\n\r\n")),
    ];
    row_008_content_length_and_transfer_encoding: [
        bad_gateway("framing-conflict", ok("Content-Length: 5\r\nTransfer-Encoding: chunked", CK)),
        bad_gateway("framing-conflict", ok("Transfer-Encoding: chunked\r\nContent-Length: 5", CK)),
    ];
    row_010_malformed_content_length: [
        bad_gateway("content-length", ok("Content-Length: +5", "hello")),
        bad_gateway("content-length", ok("Content-Length: -1", "hello")),
        bad_gateway("content-length", ok("Content-Length:", "hello")),
        bad_gateway("content-length", ok("Content-Length: 18446744073709551621", "hello")),
        bad_gateway("content-length-duplicate", ok("Content-Length: 5\r\nContent-Length: 6", "hello!")),
    ];
    row_011_other_codings: [
        bad_gateway("transfer-encoding", ok("Transfer-Encoding: gzip", "hello")),
        bad_gateway("transfer-encoding-unsupported", ok("Transfer-Encoding: gzip, chunked", CK)),
        bad_gateway("transfer-encoding", ok("Transfer-Encoding: chunked, chunked", CK)),
    ];
    row_013_endless_interim_responses: [
        bad_gateway("interim-flood", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000)),
        bad_gateway("interim-flood", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(5000)).to(Request::GetHttp10),
    ];
    row_014_early_hints: [
        relayed("103 103 200 | hello", [&HINTS.repeat(2)[..], HELLO].concat()),
        relayed("200 | hello", [HINTS, HELLO].concat()).to(Request::GetHttp10),
        relayed("200 | hello", ["HTTP/1.1 100 Continue\r\n\r\n", HELLO].concat()),
    ];
    row_016_malformed_status_line: [
        bad_gateway("status-line", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"),
        bad_gateway("status-line", "HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n"),
        bad_gateway("status-line", "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n"),
        bad_gateway("status-line", "HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n"),
        bad_gateway("status-line", "HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n"),
        bad_gateway("status-line", "hello"),
        bad_gateway("upgraded", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
    ];
    row_017_status_from_600_to_999: [
        relayed("600 | hello", "HTTP/1.1 600 Odd\r\nContent-Length: 5\r\n\r\nhello"),
        relayed("999 | hello", "HTTP/1.1 999 Odd\r\nContent-Length: 5\r\n\r\nhello"),
    ];
    row_019_large_heads: [
        relayed(LONG, ok(format!("Content-Length: 5\r\nX: {}", "a".repeat(12_000)), "hello")),
        bad_gateway("head-too-large", ok(format!("Content-Length: 5\r\nX: {}", "a".repeat(100_000)), "hello")),
        bad_gateway("too-many-fields", ok(format!("Content-Length: 5{}", "\r\nX: 1".repeat(300)), "hello")),
    ];
    row_020_malformed_names: [
        bad_gateway("field-name", ok("X Y: v\r\nContent-Length: 5", "hello")),
        bad_gateway("field-name", ok("Xfoo\r\nContent-Length: 5", "hello")),
        bad_gateway("field-name", ok(": v\r\nContent-Length: 5", "hello")),
        bad_gateway("field-name", ok("X: a\r\n b\r\nContent-Length: 5", "hello")),
    ];
    row_022_control_characters: [
        bad_gateway("field-value", ok("X: a\0b\r\nContent-Length: 5", "hello")),
        bad_gateway("field-value", ok("X: a\x01b\r\nContent-Length: 5", "hello")),
        bad_gateway("field-value", ok("X: a\x7fb\r\nContent-Length: 5", "hello")),
    ];
    row_023_bare_cr_in_a_value: [
        bad_gateway("field-value", ok("X: a\rSet-Cookie: evil=1\r\nContent-Length: 5", "hello")),
        bad_gateway("status-line", "HTTP/1.1 200 OK\rX: y\r\nContent-Length: 5\r\n\r\nhello"),
    ];
    row_025_bare_lf: [
        relayed("200 | x: y | hello", "HTTP/1.1 200 OK\nX: y\nContent-Length: 5\n\nhello"),
    ];
    row_026_body_where_there_is_none: [
        relayed_once("204 |", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
        relayed_once("304 |", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"),
        relayed_once("200 |", HELLO).to(Request::Head),
        relayed_once("200 |", chunked(CK)).to(Request::Head),
    ];
    row_028_fields_that_may_stand_once: [
        relayed(
            "302 | content-type: a/b | location: /a |",
            "HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Type: a/b\r\nContent-Type: c/d\r\nContent-Length: 0\r\n\r\n",
        ),
    ];
    row_029_fields_of_one_connection: [
        relayed(
            "200 | hello",
            ok("Connection: X-Secret\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nContent-Length: 5", "hello"),
        ),
        relayed_once("200 | hello", ok("Connection: close, X-Secret\r\nX-Secret: 1\r\nContent-Length: 5", "hello")),
    ];
    // Not a row of its own, but rule 4 of the catalogue.
    row_046_bytes_after_the_response: [
        relayed_once("200 | hello", [HELLO, HELLO].concat()),
        relayed_once("200 | hello", chunked([CK, HELLO].concat())),
        relayed_once("200 | hello", [HELLO, "\r\n"].concat()),
    ];
}

/// Names for texts that are too long for the table.
pub(crate) fn spelled_out(text: &str) -> String {
    match text {
        LONG => format!("200 | x: {} | hello", "a".repeat(12_000)),
        _ => text.to_owned(),
    }
}

fn ok(fields: impl AsRef<[u8]>, body: impl AsRef<[u8]>) -> Vec<u8> {
    let (start, end) = (b"HTTP/1.1 200 OK\r\n", b"\r\n\r\n");
    [&start[..], fields.as_ref(), end, body.as_ref()].concat()
}

fn chunked(body: impl AsRef<[u8]>) -> Vec<u8> {
    ok("Transfer-Encoding: chunked", body)
}

/// What the client sees of a field of 12 KB.
const LONG: &str = "LONG";

const CK: &str = "5\r\nhello\r\n0\r\n\r\n";
const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const HINTS: &str =
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Secret\r\nX-Secret: 1\r\n\r\n";
