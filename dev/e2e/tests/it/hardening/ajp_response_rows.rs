//! Section 2b of the hardening catalogue: what AJP13 backends send, and what a client must see.
//!
//! This is the table; [`super::responses`] runs it. Rows that are more than bytes are in
//! [`super::failing`]. Rows whose names begin with `row_c` are those of the catalogue of AJP13
//! for the client role.

use super::response_row::{
    Request, ResponseRow, bad_gateway, relayed, relayed_once, response_rows, truncated,
};

response_rows! { Ajp;
    row_037_messages_that_are_none_of_a_response: [
        bad_gateway("ajp-unexpected-message", packet([255])),
        bad_gateway("ajp-unexpected-message", packet([9])),
        bad_gateway("ajp-unexpected-message", packet([2, 2, 0, 0])),
        truncated(200, "ajp-unexpected-message", [head(200, &[]), packet([9]), end(1)].concat()),
    ];
    row_038_malformed_heads: [
        // Five fields announced, none there; none announced, one there; 65535 announced.
        bad_gateway("ajp-malformed-response", packet(b"\x04\0\xc8\0\x02OK\0\0\x05")),
        bad_gateway("ajp-malformed-response", [packet(b"\x04\0\xc8\0\x02OK\0\0\0\0\x01X\0\0\x01y\0"), end(1)].concat()),
        bad_gateway("ajp-malformed-response", packet(b"\x04\0\xc8\0\x02OK\0\xff\xff")),
        // A string that passes the packet, one without its zero byte.
        bad_gateway("ajp-malformed-response", packet(b"\x04\0\xc8\x7f\0OK\0\0\0")),
        bad_gateway("ajp-malformed-response", packet(b"\x04\0\xc8\0\x02OK\x01\0\0")),
        // A code that is no field.
        bad_gateway("ajp-malformed-response", packet(b"\x04\0\xc8\0\x02OK\0\0\x01\xa0\xff\0\x01y\0")),
        // Null for the reason and a value: both empty.
        relayed("200 | x:  |", [packet(b"\x04\0\xc8\xff\xff\0\x01\0\x01X\0\xff\xff"), end(1)].concat()),
    ];
    row_040_more_than_one_head: [
        truncated(200, "ajp-second-head", [head(200, &[]), head(200, &[]), end(1)].concat()),
        bad_gateway("ajp-interim-head", [head(103, &[]), head(200, &[]), end(1)].concat()),
        bad_gateway("ajp-interim-head", [head(100, &[]), head(200, &[]), end(1)].concat()),
        bad_gateway("ajp-status", [head(101, &[]), end(1)].concat()),
    ];
    row_041_chunk_longer_than_its_packet: [
        truncated(200, "ajp-malformed-response", [head(200, &[]), packet(b"\x03\0\x09hi\0")].concat()),
        truncated(200, "ajp-malformed-response", [head(200, &[]), packet(b"\x03\xff\xffhi\0")].concat()),
    ];
    row_043_end_with_an_odd_reuse: [
        relayed_once("200 | hi", [head(200, &[]), chunk("hi"), packet([5, 2])].concat()),
        relayed_once("200 | hi", [head(200, &[]), chunk("hi"), packet([5, 255])].concat()),
    ];
    // The catalogue of AJP13 (C23) is stricter than row 43 here: a message cut off is none.
    row_043_end_without_reuse: [
        truncated(200, "ajp-malformed-response", [head(200, &[]), chunk("hi"), packet([5])].concat()),
    ];
    row_044_shorter_than_announced: [
        truncated(200, "ajp-response-body-too-short", [head(200, &[("Content-Length", "100")]), chunk("0123456789"), end(1)].concat()),
        truncated(200, "ajp-response-body-too-short", [head(200, &[("Content-Length", "100")]), end(1)].concat()),
    ];
    row_046_bytes_after_the_end: [
        relayed_once("200 | hi", [hi(), hi()].concat()),
        relayed_once("200 | hi", [hi(), vec![b'A']].concat()),
        relayed_once("200 | hi", [hi(), packet([9])].concat()),
    ];
    row_047_statuses_that_are_none: [
        bad_gateway("ajp-status", [head(0, &[]), end(1)].concat()),
        bad_gateway("ajp-status", [head(99, &[]), end(1)].concat()),
        bad_gateway("ajp-status", [head(1000, &[]), end(1)].concat()),
        bad_gateway("ajp-status", [head(65535, &[]), end(1)].concat()),
    ];
    row_049_malformed_names: [
        bad_gateway("ajp-field-name", [head(200, &[("X Y", "v")]), end(1)].concat()),
        bad_gateway("ajp-field-name", [head(200, &[("X:", "v")]), end(1)].concat()),
    ];
    row_050_fields_of_one_connection: [
        relayed(
            "200 | hi",
            [
                head(200, &[
                    ("Transfer-Encoding", "chunked"), ("Connection", "close, X-Secret"), ("X-Secret", "1"),
                    ("Keep-Alive", "timeout=5"), ("Upgrade", "h2c"), ("Proxy-Connection", "close"),
                ]),
                chunk("hi"),
                end(1),
            ].concat(),
        ),
    ];
    row_052_asks_for_a_body_that_is_over: [
        relayed("200 | hi", [ask(8186), hi()].concat()).says(EMPTY),
        relayed("200 | hi", [ask(8186), hi()].concat()).says(EMPTY).to(Request::Post),
        relayed("200 | hi", [ask(8186).repeat(3), hi()].concat()).says(EMPTY.repeat(3)),
        bad_gateway("ajp-too-many-asks", [ask(8186).repeat(4), hi()].concat()),
        bad_gateway("ajp-too-many-asks", [ask(8186).repeat(1000), hi()].concat()),
    ];
    row_053_asks_for_nothing_or_too_much: [
        bad_gateway("ajp-malformed-response", [ask(0), hi()].concat()),
        bad_gateway("ajp-malformed-response", [ask(0), hi()].concat()).to(Request::Post),
        relayed("200 | hi", [ask(65535), hi()].concat()).says(EMPTY),
    ];
    row_055_body_where_there_is_none: [
        relayed("200 |", hi()).to(Request::Head),
        relayed("204 |", [head(204, &[]), chunk("hi"), end(1)].concat()),
        relayed("304 |", [head(304, &[]), chunk("hi"), end(1)].concat()),
        relayed_once("304 |", [head(304, &[]), chunk("hi"), end(0)].concat()),
    ];
    row_058_refusals_of_the_container: [
        relayed_once("403 | hi", [head(403, &[("Content-Length", "2")]), chunk("hi"), end(0)].concat()),
        relayed_once("503 |", [head(503, &[("Content-Length", "0")]), end(0)].concat()),
    ];

    row_c01_magic: [
        bad_gateway("ajp-magic", b"\x12\x34\0\x02\x05\x01"),
        bad_gateway("ajp-magic", "HTTP/1.1 200 OK\r\n\r\n"),
    ];
    row_c02_packets_beyond_the_size: [
        bad_gateway("ajp-packet-too-large", [&b"AB\x1f\xfd"[..], &[0; 8189]].concat()),
        bad_gateway("ajp-packet-too-large", b"AB\xff\xff\x04"),
    ];
    row_c04_unknown_messages: [
        bad_gateway("ajp-unexpected-message", packet([0])),
        bad_gateway("ajp-unexpected-message", packet([1])),
        bad_gateway("ajp-unexpected-message", packet([7])),
        bad_gateway("ajp-unexpected-message", packet([8])),
        bad_gateway("ajp-unexpected-message", packet([10])),
        bad_gateway("ajp-empty-packet", packet([])),
    ];
    row_c08_reasons: [
        relayed("200 OK | hi", [packet(b"\x04\0\xc8\xff\xff\0\0"), chunk("hi"), end(1)].concat()),
        relayed("200 OK | hi", [packet(b"\x04\0\xc8\0\0\0\0\0"), chunk("hi"), end(1)].concat()),
        relayed("200 OK | hi", [packet(b"\x04\0\xc8\0\x03200\0\0\0"), chunk("hi"), end(1)].concat()),
        bad_gateway("ajp-reason", [packet(b"\x04\0\xc8\0\x04O\r\nK\0\0\0"), end(1)].concat()),
    ];
    row_c13_names_that_are_none: [
        bad_gateway("ajp-malformed-response", packet(b"\x04\0\xc8\0\x02OK\0\0\x01\xff\xff\0\x01y\0")),
        bad_gateway("ajp-field-name", [packet(b"\x04\0\xc8\0\x02OK\0\0\x01\0\0\0\0\x01y\0"), end(1)].concat()),
    ];
    row_c14_values_with_control_characters: [
        bad_gateway("ajp-field-value", [head(200, &[("X", "a\rb")]), end(1)].concat()),
        bad_gateway("ajp-field-value", [head(200, &[("X", "a\r\nSet-Cookie: evil=1")]), end(1)].concat()),
        bad_gateway("ajp-field-value", [head(200, &[("X", "a\nb")]), end(1)].concat()),
        bad_gateway("ajp-field-value", [head(200, &[("X", "a\0b")]), end(1)].concat()),
    ];
    row_c16_content_length: [
        bad_gateway("ajp-content-length", [head(200, &[("Content-Length", "2"), ("Content-Length", "3")]), end(1)].concat()),
        bad_gateway("ajp-content-length", [head(200, &[("Content-Length", "+2")]), end(1)].concat()),
        bad_gateway("ajp-content-length", [head(200, &[("Content-Length", "")]), end(1)].concat()),
    ];
    row_c17_head_after_the_body: [
        truncated(200, "ajp-second-head", [head(200, &[]), chunk("hi"), head(200, &[]), end(1)].concat()),
    ];
    row_c19_body_before_the_head: [
        bad_gateway("ajp-chunk-before-head", [chunk("hi"), hi()].concat()),
        relayed("200 | hi", [chunk(""), hi()].concat()),
    ];
    // Grizzly (Payara, GlassFish) leaves the byte behind a chunk as its buffer has it.
    row_c21_the_byte_after_a_chunk: [
        relayed("200 | hi", [head(200, &[]), packet(b"\x03\0\x02hiA"), end(1)].concat()),
        relayed("200 | hi", [head(200, &[]), packet(b"\x03\0\x02hi\xff"), end(1)].concat()),
        relayed("200 | hi", [head(200, &[]), packet(b"\x03\0\x02hi"), end(1)].concat()),
        relayed("200 | hi", [head(200, &[("Content-Length", "2")]), packet(b"\x03\0\x02hi\xff"), end(1)].concat())
            .to(Request::Post),
        relayed("200 | hi", [head(200, &[]), packet(b"\x03\0\0\xff"), chunk("hi"), end(1)].concat()),
        relayed("200 | hi", [head(200, &[]), packet(b"\x03\0\0"), chunk("hi"), end(1)].concat()),
    ];
    row_c22_chunk_with_bytes_behind_it: [
        truncated(200, "ajp-malformed-response", [head(200, &[]), packet(b"\x03\0\x02hi\0!"), end(1)].concat()),
    ];
    row_c23_messages_cut_off: [
        truncated(200, "ajp-malformed-response", [head(200, &[]), packet([3])].concat()),
        truncated(200, "ajp-malformed-response", [head(200, &[]), packet([3, 0])].concat()),
        truncated(200, "ajp-malformed-response", [head(200, &[]), packet([3, 0, 5])].concat()),
        bad_gateway("ajp-malformed-response", packet([6])),
        bad_gateway("ajp-malformed-response", packet([6, 0x1f])),
        bad_gateway("ajp-malformed-response", packet([4])),
    ];
    // Both modules of Apache overlook what stands behind a message whose length is known.
    row_c24_bytes_behind_an_end_or_an_ask: [
        relayed("200 | hi", [head(200, &[]), chunk("hi"), packet([5, 1, 0])].concat()),
        relayed("200 | hi", [head(200, &[]), chunk("hi"), packet([5, 1, 0xff, 0x41])].concat()),
        relayed_once("200 | hi", [head(200, &[]), chunk("hi"), packet([5, 0, 1])].concat()),
        relayed("200 | hi", [packet([6, 0x1f, 0xfa, 0]), hi()].concat()).says(EMPTY),
    ];
    row_c25_longer_than_announced: [
        truncated(200, "ajp-response-body-too-long", [head(200, &[("Content-Length", "2")]), chunk("hi!"), end(1)].concat()),
    ];
    row_c26_end_without_a_head: [
        bad_gateway("ajp-end-before-head", end(1)),
        bad_gateway("ajp-end-before-head", end(0)),
    ];
}

fn packet(payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let length = u16::try_from(payload.len()).expect("a row's payload is short");
    [b"AB", &length.to_be_bytes()[..], payload].concat()
}

/// SEND_HEADERS; names are written out, which every web server has to read.
pub(crate) fn head(status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut payload = vec![4];
    payload.extend(status.to_be_bytes());
    let string = |text: &str| {
        let length = u16::try_from(text.len()).expect("a row's strings are short");
        [&length.to_be_bytes()[..], text.as_bytes(), b"\0"].concat()
    };
    payload.extend(string("OK"));
    payload.extend(u16::try_from(fields.len()).expect("few").to_be_bytes());
    for (name, value) in fields {
        payload.extend(string(name));
        payload.extend(string(value));
    }
    packet(payload)
}

/// SEND_BODY_CHUNK; an empty one is a flush.
pub(crate) fn chunk(data: &str) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("a row's chunks are short");
    packet([b"\x03", &length.to_be_bytes()[..], data.as_bytes(), b"\0"].concat())
}

/// GET_BODY_CHUNK
fn ask(bytes: u16) -> Vec<u8> {
    packet([b"\x06", &bytes.to_be_bytes()[..]].concat())
}

/// END_RESPONSE
pub(crate) fn end(reuse: u8) -> Vec<u8> {
    packet([5, reuse])
}

/// A whole response.
pub(crate) fn hi() -> Vec<u8> {
    [head(200, &[]), chunk("hi"), end(1)].concat()
}

/// A body packet that says: that was all.
const EMPTY: &[u8] = b"\x12\x34\0\x02\0\0";
