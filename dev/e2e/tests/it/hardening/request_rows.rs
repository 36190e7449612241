//! Section 1 of the hardening catalogue: what clients send, and what must come of it.
//!
//! This is the table; `requests` runs it.

use super::row::{Row, chunked, cut_off, get, get_of, post, refused, served, served_and_closed};

/// Each row becomes an entry of `ROWS` and a test of its name.
macro_rules! rows {
    ($($name:ident: [$($case:expr),+ $(,)?];)+) => {
        /// Every row, in order.
        pub(crate) const ROWS: &[Row] = &[
            $(Row { name: stringify!($name), cases: || vec![$($case),+] }),+
        ];
        $(
            #[test]
            fn $name() {
                super::requests::check(stringify!($name));
            }
        )+
    };
}

rows! {
    // The request line.
    row_001_bare_lf: [
        refused(400, "bare-lf", "GET /$ HTTP/1.1\nHost: a\n\n"),
        refused(400, "bare-lf", "GET /$ HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
        refused(400, "bare-lf", "GET /$ HTTP/1.1\r\nHost: a\r\n\n"),
    ];
    row_002_bare_cr_in_a_value: [
        refused(400, "field-value", get("X: a\rb")),
        refused(400, "field-value", get("X: a\r\r\nY: b")),
    ];
    row_004_one_leading_empty_line: [
        served("\r\nGET /$ HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$ | host: a | 0:"]),
    ];
    row_005_many_leading_empty_lines: [
        served(["\r\n".repeat(8), text(get(""))].concat(), &["GET /$ | host: a | 0:"]),
        refused(400, "leading-lines", ["\r\n".repeat(200), text(get("X: y"))].concat()),
    ];
    row_007_two_spaces_or_tabs_in_the_request_line: [
        refused(400, "request-line", "GET  /$ HTTP/1.1\r\nHost: a\r\n\r\n"),
        refused(400, "request-line", "GET /$  HTTP/1.1\r\nHost: a\r\n\r\n"),
        refused(400, "request-line", "GET\t/$\tHTTP/1.1\r\nHost: a\r\n\r\n"),
    ];
    row_008_space_after_the_version: [
        refused(400, "request-line", "GET /$ HTTP/1.1 \r\nHost: a\r\n\r\n"),
    ];
    row_010_unknown_method: [
        served("FOO /$ HTTP/1.1\r\nHost: a\r\n\r\n", &["FOO /$ | host: a | 0:"]),
    ];
    row_011_method_that_is_no_token: [
        refused(400, "method", "GE(T /$ HTTP/1.1\r\nHost: a\r\n\r\n"),
        refused(400, "method", "\0 /$ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ];
    row_013_http_0_9: [
        refused(400, "request-line", "GET /$\r\n"),
        refused(400, "request-line", "GET /$\r\n\r\n"),
    ];
    row_014_http_1_0_without_host: [
        served_and_closed("GET /$ HTTP/1.0\r\n\r\n", &["GET /$ | host: LISTENER | 0:"]),
    ];
    row_016_malformed_version: [
        refused(400, "version", "GET /$ HTTP/1.10\r\nHost: a\r\n\r\n"),
        refused(400, "version", "GET /$ HTTP/01.1\r\nHost: a\r\n\r\n"),
        refused(400, "version", "GET /$ http/1.1\r\nHost: a\r\n\r\n"),
        refused(400, "version", "GET /$ HTTP/1.1x\r\nHost: a\r\n\r\n"),
    ];
    row_017_http_2_0_as_text: [
        refused(505, "version-unsupported", "GET /$ HTTP/2.0\r\nHost: a\r\n\r\n"),
    ];

    // The target.
    row_019_space_in_the_target: [
        refused(400, "request-line", "GET /$/a b HTTP/1.1\r\nHost: a\r\n\r\n"),
    ];
    row_020_malformed_percent_escape: [
        refused(400, "target-escape", get_of("/$/a%zz")),
        refused(400, "target-escape", get_of("/$/a%")),
        refused(400, "target-escape", get_of("/$/a%1")),
        // In a query browsers send it as it was typed.
        served(get_of("/$?q=100%"), &["GET /$?q=100% | host: a | x: $ | 0:"]),
        served(get_of("/$?a%1&%zz=%20"), &["GET /$?a%1&%zz=%20 | host: a | x: $ | 0:"]),
    ];
    row_022_raw_utf_8: [
        served(b"GET /$/caf\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/caf%C3%A9 | host: a | 0:"]),
    ];
    row_023_characters_that_no_uri_has: [
        served(
            "GET /$/\"<>^{|}` HTTP/1.1\r\nHost: a\r\n\r\n",
            &["GET /$/%22%3C%3E%5E%7B%7C%7D%60 | host: a | 0:"],
        ),
    ];
    row_025_fragment: [
        refused(400, "target-fragment", get_of("/$/a#b")),
        refused(400, "target-fragment", get_of("/$/a?b#c")),
    ];
    row_026_absolute_target: [
        served("GET http://a/$ HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$ | host: a | 0:"]),
        served("GET http://a/$ HTTP/1.1\r\nHost: b\r\n\r\n", &["GET /$ | host: a | 0:"]),
    ];
    row_028_https_target_on_cleartext: [
        refused(421, "scheme-mismatch", get_of("https://a/$")),
    ];
    row_029_userinfo_empty_host_other_scheme: [
        refused(400, "host-syntax", get_of("http://u:p@a/$")),
        refused(400, "host-syntax", get_of("http:///$")),
        refused(400, "target-form", get_of("ftp://a/$")),
    ];
    row_031_target_forms_of_other_methods: [
        refused(400, "target-form", get_of("*")),
        refused(400, "target-form", get_of("a:80")),
        refused(400, "target-form", get_of("x")),
    ];
    row_032_connect: [
        refused(405, "connect", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nX: $\r\n\r\n"),
    ];
    row_034_target_that_looks_like_an_authority: [
        served("GET //evil/$ HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /evil/$ | host: a | 0:"]),
        refused(404, "route-status", get_of("//forbidden/$")),
    ];
    row_035_target_of_20_kb: [
        refused(414, "target-too-long", get_of(format!("/$/{}", "a".repeat(20_000)))),
    ];

    // Host.
    row_037_two_hosts: [
        refused(400, "host-duplicate", get("Host: a")),
        refused(400, "host-duplicate", get("Host: b")),
        refused(400, "host-duplicate", get("host:")),
    ];
    row_038_empty_host: [
        refused(400, "host-syntax", "GET /$ HTTP/1.1\r\nHost: \r\n\r\n"),
        refused(400, "host-syntax", "GET /$ HTTP/1.1\r\nHost:\r\n\r\n"),
        refused(400, "host-missing", "GET /$ HTTP/1.1\r\nX: a\r\n\r\n"),
    ];
    row_040_port_that_is_none: [
        refused(400, "host-syntax", "GET /$ HTTP/1.1\r\nHost: a:99999\r\n\r\n"),
        refused(400, "host-syntax", "GET /$ HTTP/1.1\r\nHost: a:0\r\n\r\n"),
        refused(400, "host-syntax", "GET /$ HTTP/1.1\r\nHost: a:8x\r\n\r\n"),
    ];
    row_041_host_in_another_spelling: [
        served("GET /$ HTTP/1.1\r\nHost: a:\r\n\r\n", &["GET /$ | host: a | 0:"]),
        served("GET /$ HTTP/1.1\r\nHost: A.B.\r\n\r\n", &["GET /$ | host: a.b | 0:"]),
    ];

    // Field lines.
    row_043_space_before_the_colon: [
        refused(400, "field-name", get("X : a")),
        refused(400, "field-name", "GET /$ HTTP/1.1\r\nHost : a\r\n\r\n"),
        refused(400, "field-name", post("Transfer-Encoding : chunked", CK)),
        refused(400, "field-name", get("X\t: a")),
    ];
    row_044_folded_line: [
        refused(400, "field-name", get("X: a\r\n b")),
        refused(400, "field-name", get("X: a\r\n\tb")),
    ];
    row_046_first_line_begins_with_a_space: [
        refused(400, "field-name", "GET /$ HTTP/1.1\r\n Host: a\r\n\r\n"),
        refused(400, "field-name", "GET /$ HTTP/1.1\r\n\tX: a\r\nHost: a\r\n\r\n"),
    ];
    row_047_no_colon: [
        refused(400, "field-name", get("Xfoo")),
        refused(400, "field-name", get(": a")),
    ];
    row_049_nul: [
        refused(400, "field-value", get("X: a\0b")),
        refused(400, "field-name", get("X\0y: a")),
    ];
    row_050_control_characters_in_a_value: [
        refused(400, "field-value", get("X: a\x01b")),
        refused(400, "field-value", get("X: a\x7fb")),
    ];
    row_052_name_that_is_no_token: [
        refused(400, "field-name", get(b"X\x85: v")),
        refused(400, "field-name", get("X(y): v")),
    ];
    row_053_underscore_in_a_name: [
        served(get("X_Real_IP: 9"), &["GET /$ | host: a | 0:"]),
        served(post("Content-Length: 2\r\nTransfer_Encoding: chunked", "hi"), &["POST /$ | host: a | 2:hi"]),
    ];
    row_055_too_many_fields: [
        served(get(lines(93, "X: 1", "X: 1")), &[MANY]),
        refused(431, "too-many-fields", get(lines(100, "X: 1", "X: 1"))),
        refused(431, "too-many-fields", get(lines(150, "X: 1", "X: 1"))),
        refused(431, "too-many-fields", get(lines(1000, "X: 1", "X: 1"))),
    ];
    row_056_large_fields: [
        refused(431, "field-too-long", get(format!("X: {}", "a".repeat(12_000)))),
        refused(431, "field-too-long", get(format!("X: {}", "a".repeat(64_000)))),
        refused(431, "head-too-large", get(lines(6, "X: 1", &format!("X: {}", "a".repeat(7_500))))),
    ];

    // Framing.
    row_058_content_length_and_transfer_encoding: [
        refused(400, "framing-conflict", post("Content-Length: 5\r\nTransfer-Encoding: chunked", CK)),
        refused(400, "framing-conflict", post("Transfer-Encoding: chunked\r\nContent-Length: 5", CK)),
    ];
    row_059_two_content_lengths: [
        refused(400, "content-length-duplicate", post("Content-Length: 5\r\nContent-Length: 6", "hello!")),
        refused(400, "content-length-duplicate", post("Content-Length: 6\r\nContent-Length: 5", "hello!")),
        refused(400, "content-length-duplicate", post("Content-Length: 5\r\nContent-Length: 5", "hello")),
    ];
    row_061_content_length_with_a_plus: [
        refused(400, "content-length", post("Content-Length: +5", "hello")),
    ];
    row_062_content_length_that_is_no_number: [
        refused(400, "content-length", post("Content-Length: -1", "hello")),
        refused(400, "content-length", post("Content-Length: 0x5", "hello")),
        refused(400, "content-length", post("Content-Length: 5a", "hello")),
        refused(400, "content-length", post("Content-Length: 5 5", "hello")),
        refused(400, "content-length", post("Content-Length: 5, 5", "hello")),
        refused(400, "content-length", post("Content-Length: 5.0", "hello")),
        refused(400, "content-length", post("Content-Length: 5;x", "hello")),
        refused(400, "content-length", post("Content-Length: 5_0", "hello")),
        refused(400, "field-value", post("Content-Length: \x0b5", "hello")),
        refused(400, "content-length", post("Content-Length: \u{0665}", "hello")),
        refused(400, "content-length", post("Content-Length:", "hello")),
    ];
    row_064_content_length_overflow: [
        refused(400, "content-length", post("Content-Length: 18446744073709551621", "hello")),
        refused(400, "content-length", post("Content-Length: 9223372036854775808", "hello")),
    ];
    row_065_content_length_with_zeros: [
        served(post("Content-Length: 005", "hello"), &["POST /$ | host: a | 5:hello"]),
    ];
    row_067_another_coding_before_chunked: [
        refused(501, "transfer-encoding-unsupported", post("Transfer-Encoding: gzip, chunked", CK)),
        refused(501, "transfer-encoding-unsupported", post("Transfer-Encoding: identity, chunked", CK)),
    ];
    row_068_chunked_twice_or_in_an_odd_list: [
        refused(400, "transfer-encoding", post("Transfer-Encoding: chunked, chunked", CK)),
        refused(400, "transfer-encoding", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", CK)),
        refused(400, "transfer-encoding", post("Transfer-Encoding: ,chunked", CK)),
        refused(400, "transfer-encoding", post("Transfer-Encoding: chunked,", CK)),
    ];
    row_070_chunked_in_another_spelling: [
        served(post("Transfer-Encoding: CHUNKED", CK), &["POST /$ | host: a | ?:hello"]),
        served(post("Transfer-Encoding:\tchunked\t", CK), &["POST /$ | host: a | ?:hello"]),
    ];
    row_071_chunked_in_http_1_0: [
        refused(
            400,
            "transfer-encoding-version",
            "POST /$ HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ),
    ];
    row_073_post_without_a_length: [
        served("POST /$ HTTP/1.1\r\nHost: a\r\n\r\n", &["POST /$ | host: a | 0:"]),
    ];
    row_074_pipelined_after_a_body: [
        served(
            post("Content-Length: 5", "helloGET /$/smug HTTP/1.1\r\nHost: b\r\n\r\n"),
            &["POST /$ | host: a | 5:hello", "GET /$/smug | host: b | 0:"],
        ),
    ];

    // Chunks.
    row_076_white_space_after_the_chunk_size: [
        cut_off(400, "chunk-size", chunked("5 \r\nhello\r\n0\r\n\r\n")),
        cut_off(400, "chunk-size", chunked("5\t;x\r\nhello\r\n0\r\n\r\n")),
    ];
    row_077_chunk_extension: [
        served(chunked("5;a=b\r\nhello\r\n0;c\r\n\r\n"), &["POST /$ | host: a | ?:hello"]),
    ];
    row_079_bare_cr_in_a_chunk_line: [
        cut_off(400, "chunk-size", chunked("5\r\r;AB\r\nhello\r\n0\r\n\r\n")),
        cut_off(400, "chunk-size", chunked("5;a\rb\r\nhello\r\n0\r\n\r\n")),
    ];
    row_080_no_crlf_after_the_data: [
        cut_off(400, "chunk-end", chunked("5\r\nhelloXX0\r\n\r\n")),
        cut_off(400, "chunk-end", chunked("5\r\nhello\n0\r\n\r\n")),
    ];
    row_082_zeros_before_the_chunk_size: [
        cut_off(400, "chunk-size-too-large", chunked(format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(40)))),
        cut_off(400, "chunk-size-too-large", chunked("FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n")),
    ];
    row_083_empty_chunk_size: [
        cut_off(400, "chunk-size", chunked("\r\n\r\n")),
        cut_off(400, "chunk-size", chunked("5\r\nhello\r\n\r\n\r\n")),
        cut_off(400, "chunk-size", chunked(";a\r\nhello\r\n0\r\n\r\n")),
    ];
    row_085_trailer: [
        served(chunked("5\r\nhello\r\n0\r\nX-T: y\r\n\r\n"), &["POST /$ | host: a | ?:hello"]),
    ];
    row_086_trailers_that_would_change_the_request: [
        served(
            chunked("5\r\nhello\r\n0\r\nContent-Length: 9\r\nHost: b\r\nTransfer-Encoding: gzip\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n"),
            &["POST /$ | host: a | ?:hello"],
        ),
    ];

    // Fields between two neighbours only, and fields that do harm behind a front.
    row_089_connection_names_what_must_stay: [
        served_and_closed(
            get("Connection: close, X-Forwarded-For, X-Real-IP, Cookie, Authorization, Host, Via, X-Forwarded-Proto, X-Own\r\n\
                 X-Forwarded-For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nCookie: c=1\r\nAuthorization: Basic eA==\r\nX-Own: 1"),
            &["GET /$ | authorization: Basic eA== | cookie: c=1 | host: a | 0:"],
        ),
        served(
            post("Connection: Content-Length, Transfer-Encoding\r\nContent-Length: 5", "hello"),
            &["POST /$ | host: a | 5:hello"],
        ),
    ];
    row_091_fields_of_one_connection: [
        served(
            get("Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nTrailer: X\r\n\
                 Proxy-Authorization: Basic eA==\r\nHTTP2-Settings: AAMAAABk"),
            &["GET /$ | host: a | 0:"],
        ),
    ];
    row_092_upgrade_to_h2c: [
        served(
            get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
            &["GET /$ | host: a | 0:"],
        ),
    ];
    row_094_upgrade_to_websocket: [
        served(
            get("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 7\r\nSec-WebSocket-Key: bad"),
            &["GET /$ | host: a | sec-websocket-key: bad | sec-websocket-version: 7 | 0:"],
        ),
        served(
            post("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5", "hello"),
            &["POST /$ | host: a | 5:hello"],
        ),
    ];
    row_095_proxy: [
        served(get("Proxy: http://evil"), &["GET /$ | host: a | 0:"]),
    ];
    row_097_expect_with_the_body_at_once: [
        served(post("Expect: 100-continue\r\nContent-Length: 5", "hello"), &["POST /$ | host: a | 5:hello"]),
        served(post("Expect: 100-continue\r\nTransfer-Encoding: chunked", CK), &["POST /$ | host: a | ?:hello"]),
    ];
    row_098_expect_otherwise: [
        refused(417, "expectation", post("Expect: bogus\r\nContent-Length: 5", "hello")),
        served(get("Expect: 100-continue"), &["GET /$ | host: a | 0:"]),
        served_and_closed(
            "POST /$ HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
            &["POST /$ | host: a | 5:hello"],
        ),
    ];
    row_100_range_with_1300_ranges: [
        served(get(format!("Range: bytes={}", ["0-1"; 1300].join(","))), &[RANGES]),
    ];

    // The path: what a route matched is what the backend gets.
    row_101_dot_segments: [
        served("GET /$/a/../b HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/b | host: a | 0:"]),
        served("GET /$/a/./b HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/a/b | host: a | 0:"]),
        served("GET /$/a/%2e%2e/b HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/b | host: a | 0:"]),
        refused(400, "path-above-root", get_of("/../$")),
        refused(404, "route-status", get_of("/a/../forbidden/$")),
        refused(404, "route-status", get_of("/a/%2E%2e/forbidden/$")),
        refused(404, "route-status", get_of("/./forbidden/$")),
    ];
    row_103_dot_segments_with_parameters: [
        refused(400, "path-hidden-dots", get_of("/$/a/..;/admin")),
        refused(400, "path-hidden-dots", get_of("/$/a/.;x/b")),
        refused(400, "path-hidden-dots", get_of("/$/a/%2e%2e;x/b")),
        refused(400, "path-hidden-dots", get_of("/$/a/..%2fb")),
        refused(400, "path-hidden-dots", get_of("/$/a/..%5cb")),
        served("GET /$/admin;x=1 HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/admin;x=1 | host: a | 0:"]),
        refused(404, "route-status", get_of("/forbidden;x=1/$")),
    ];
    row_104_two_slashes: [
        served("GET /$/a//b HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/a/b | host: a | 0:"]),
        refused(404, "route-status", get_of("//forbidden//$")),
    ];
    row_106_escaped_control_characters: [
        refused(400, "path-escaped-control", get_of("/$/a%00b")),
        refused(400, "path-escaped-control", get_of("/$/a%0d%0aX:%20y")),
        refused(400, "path-escaped-control", get_of("/$/a%0ab")),
    ];
    row_107_double_encoding: [
        served("GET /$/%252e%252e/b HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/%252e%252e/b | host: a | 0:"]),
    ];
    row_109_escaped_letters: [
        served("GET /$/%41dmin HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/Admin | host: a | 0:"]),
        refused(404, "route-status", get_of("/%66orbidden/$")),
    ];
    row_110_escaped_delimiters: [
        served("GET /$/%3f%23%25 HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/%3f%23%25 | host: a | 0:"]),
    ];
    row_111_escaped_slashes_that_decide_the_route: [
        refused(400, "path-ambiguous", get_of("/forbidden%2F$")),
        refused(400, "path-ambiguous", get_of("/forbidden%5c$")),
        refused(400, "path-ambiguous", get_of("/%2fforbidden/$")),
        served("GET /$/a%2Fb%5cc HTTP/1.1\r\nHost: a\r\n\r\n", &["GET /$/a%2Fb%5cc | host: a | 0:"]),
    ];

    // What AJP13 is never told, and HTTP/1.1 neither. The backend takes any packet that it did
    // not ask for as a stray.
    row_112_transfer_encoding_over_ajp_is_our_own: [
        served(post("TE: trailers\r\nTransfer-Encoding: chunked", CK), &["POST /$ | host: a | ?:hello"]),
    ];
    row_113_first_body_packet: [
        served(post("Content-Length: 5", "hello"), &["POST /$ | host: a | 5:hello"]),
        served(post("Content-Length: 0", ""), &["POST /$ | host: a | 0:"]),
        served(chunked(CK), &["POST /$ | host: a | ?:hello"]),
        served(chunked("0\r\n\r\n"), &["POST /$ | host: a | ?:"]),
        // Read as a message of its own, this body would be a GET.
        served(post("Content-Length: 4", "\x02\x02\0\0"), &["POST /$ | host: a | 4:\x02\x02\0\0"]),
    ];
    row_115_absolute_target_with_a_query: [
        served("GET http://a/$?q=1 HTTP/1.1\r\nHost: b\r\n\r\n", &["GET /$?q=1 | host: a | 0:"]),
    ];
}

/// Names for texts that are too long for the table.
pub(crate) fn spelled_out(text: &str) -> String {
    match text {
        MANY => format!("GET /$ | host: a{} | 0:", " | x: 1".repeat(93)),
        RANGES => {
            let ranges = ["0-1"; 1300].join(",");
            format!("GET /$ | host: a | range: bytes={ranges} | 0:")
        }
        _ => text.to_owned(),
    }
}

/// `first`, then `line` until there are `count` lines.
fn lines(count: usize, first: &str, line: &str) -> String {
    let mut lines = vec![first];
    lines.resize(count, line);
    lines.join("\r\n")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("only used for text")
}

/// The catalogue's `CK`: `hello` in one chunk.
const CK: &str = "5\r\nhello\r\n0\r\n\r\n";

/// What the backend sees of 93 lines `X: 1`.
const MANY: &str = "MANY";

/// What the backend sees of 1300 ranges.
const RANGES: &str = "RANGES";
