//! Random messages: fragments of HTTP in any order, and random exchanges.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::invariants;

fn message() -> impl Strategy<Value = Vec<u8>> {
    vec(select(FRAGMENTS), 0..12).prop_map(|fragments| fragments.concat().into_bytes())
}

/// A request that is accepted more often than not.
fn likely_request() -> impl Strategy<Value = Vec<u8>> {
    let fields = vec(select(&FRAGMENTS[11..23]), 0..5);
    let tail = vec(select(FRAGMENTS), 0..4);
    (select(&FRAGMENTS[..5]), fields, tail).prop_map(|(line, fields, tail)| {
        [
            line,
            "Host: a\r\n",
            &fields.concat(),
            "\r\n",
            &tail.concat(),
        ]
        .concat()
        .into_bytes()
    })
}

/// A response that is accepted more often than not.
fn likely_response() -> impl Strategy<Value = Vec<u8>> {
    let fields = vec(select(&FRAGMENTS[11..23]), 0..4);
    let tail = vec(select(FRAGMENTS), 0..4);
    (select(&FRAGMENTS[5..9]), fields, tail).prop_map(|(line, fields, tail)| {
        [line, &fields.concat(), "\r\n", &tail.concat()]
            .concat()
            .into_bytes()
    })
}

/// A well-formed chunked body, then anything.
fn likely_chunks() -> impl Strategy<Value = Vec<u8>> {
    let chunk = vec(any::<u8>(), 1..40).prop_map(|data| {
        let size = format!("{:x}\r\n", data.len());
        [size.as_bytes(), &data, b"\r\n"].concat()
    });
    (vec(chunk, 0..5), message())
        .prop_map(|(chunks, tail)| [&chunks.concat(), &b"0\r\n"[..], &tail].concat())
}

proptest! {
    #[test]
    fn any_message_as_requests(data in prop_oneof![message(), likely_request()]) {
        invariants::request(&data);
    }

    #[test]
    fn any_message_as_responses(data in prop_oneof![message(), likely_response()]) {
        invariants::response(&data);
    }

    #[test]
    fn any_message_as_a_chunked_body(data in prop_oneof![message(), likely_chunks()]) {
        invariants::chunked(&data);
    }

    #[test]
    fn both_roles_understand_each_other(data in vec(any::<u8>(), 0..200)) {
        invariants::exchange(&data);
    }
}

/// What requests, responses and chunked bodies are made of, and what spoils them.
const FRAGMENTS: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "POST /a?b HTTP/1.1\r\n",
    "OPTIONS * HTTP/1.1\r\n",
    "GET http://A.b.:81/%41\u{e9} HTTP/1.1\r\n",
    "HEAD / HTTP/1.0\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 103 Early Hints\r\n",
    "HTTP/1.1 204 No Content\n",
    "HTTP/1.0 404\r\n",
    "Host: a\r\n",
    "host: [::1]:8080\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 05\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Connection: keep-alive\r\n",
    "Connection: close, X\r\n",
    "Expect: 100-continue\r\n",
    "Location: /\r\n",
    "X: y\r\n",
    "X: y\n",
    "X : y\r\n",
    "X: \t\u{e9} \r\n",
    "\r\n",
    "\n",
    "\r",
    " ",
    ":",
    "\0",
    "hello",
    "5\r\nhello\r\n",
    "5;a=\"b\"\r\nhello\r\n",
    "0\r\n",
    "0\r\n\r\n",
    "f",
];
