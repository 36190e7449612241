//! Tests whole exchanges: what is sent, and what the received bytes mean, however they are cut into
//! reads.

use std::task::{Context, Poll, Waker};

use catamaran_message::Fields;
use catamaran_testkit::ajp::{
    attribute, chunk, data, end_response, get_body_chunk, named, send_headers,
};
use http::Method;

use super::*;
use crate::config::Address;

fn config(protocol: Protocol) -> BackendConfig {
    BackendConfig::new(protocol, Address::Unix("unused".into()))
}

/// The exchanges of one connection, without a socket.
struct Transcript {
    wire: Wire,
    config: BackendConfig,
    input: BytesMut,
    output: Output,
}

impl Transcript {
    fn new(protocol: Protocol) -> Self {
        let config = config(protocol);
        Self {
            wire: Wire::new(&config),
            config,
            input: BytesMut::new(),
            output: Output::default(),
        }
    }

    fn request(&mut self, method: &Method, body: BodyLength) -> &mut Self {
        let request = Request {
            method,
            path: b"/a",
            query: None,
            host: b"h",
            headers: &Fields::new(),
            body,
        };
        self.wire
            .send_request(
                &request,
                &ClientFacts::local(),
                &self.config,
                &mut self.output,
            )
            .unwrap();
        self
    }

    fn body(&mut self, bytes: &[u8]) -> usize {
        let mut body = ByteQueue::default();
        body.push(Bytes::copy_from_slice(bytes));
        self.wire.send_body(&mut body, &mut self.output);
        body.len()
    }

    /// The bytes that would have been written since the last call.
    fn sent(&mut self) -> Vec<u8> {
        let mut sent = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        let written = self.output.poll_write(&mut cx, &mut sent);
        assert!(matches!(written, Poll::Ready(Ok(_))), "a vector takes all");
        sent
    }

    /// Receives `bytes` in pieces of `size`, and describes the events in words.
    fn receive(&mut self, bytes: &[u8], size: usize) -> String {
        let mut said = Vec::new();
        for piece in bytes.chunks(size) {
            self.input.extend_from_slice(piece);
            while let Some(event) = self.next() {
                said.push(event);
            }
        }
        said.join(" ")
    }

    fn next(&mut self) -> Option<String> {
        let received = self.wire.receive(&mut self.input, &mut self.output);
        match received {
            Ok(event) => Some(words(event?)),
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Describes an event in words; a body byte by byte, so that it does not matter how it was cut.
fn words(event: Event) -> String {
    match event {
        Event::Interim(head) | Event::Head(head) | Event::Upgraded(head) => {
            head.status.as_str().to_owned()
        }
        Event::Body(data) => ["."].repeat(data.len()).join(" "),
        Event::Flush => "flush".to_owned(),
        Event::BodyWanted => "wanted".to_owned(),
        Event::End => "end".to_owned(),
    }
}

#[test]
fn a_response_means_the_same_in_both_protocols_however_it_is_cut() {
    let http = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let ajp = [send_headers(200, &[]), chunk(b"abc"), end_response(1)];
    for (protocol, bytes) in [(Protocol::Http, &http[..]), (Protocol::Ajp, &ajp.concat())] {
        for size in 1..=bytes.len() {
            let mut transcript = Transcript::new(protocol);
            for _ in 0..2 {
                transcript.request(&Method::GET, BodyLength::Known(0));
                assert!(!transcript.wire.can_reuse(), "{protocol:?}: under way");
                let said = transcript.receive(bytes, size);
                assert_eq!(said, "200 . . . end", "{protocol:?} by {size}");
                assert!(transcript.wire.can_reuse() && transcript.input.is_empty());
            }
        }
    }
}

#[test]
fn only_http_has_interim_responses() {
    let mut http = Transcript::new(Protocol::Http);
    http.request(&Method::GET, BodyLength::Known(0));
    let bytes = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
    assert_eq!(http.receive(bytes, 1), "103 204 end");
    let mut ajp = Transcript::new(Protocol::Ajp);
    ajp.request(&Method::GET, BodyLength::Known(0));
    ajp.input.extend_from_slice(&send_headers(103, &[]));
    let received = ajp.wire.receive(&mut ajp.input, &mut ajp.output);
    assert!(matches!(received, Err(Error::Ajp(_))), "{received:?}");
}

#[test]
fn ajp_sends_a_body_as_it_is_asked_for() {
    let mut transcript = Transcript::new(Protocol::Ajp);
    transcript.request(&Method::POST, BodyLength::Known(6));
    transcript.sent();
    assert_eq!(transcript.body(b"abc"), 0, "the first packet comes unasked");
    assert_eq!(transcript.sent(), data(b"abc"));
    assert_eq!(transcript.wire.body_credit(), 0);
    assert_eq!(transcript.body(b"def"), 3, "nobody has asked for more");
    assert_eq!(transcript.receive(&get_body_chunk(8186), 3), "wanted");
    assert_eq!(transcript.body(b"def"), 0);
    assert!(transcript.wire.finish_body(&mut transcript.output));
    assert_eq!(transcript.sent(), data(b"def"));
    assert_eq!(transcript.receive(&get_body_chunk(8186), 1), "");
    assert_eq!(
        transcript.sent(),
        data(b""),
        "whoever asks on is told the end"
    );
    let answer = [send_headers(200, &[]), end_response(1)].concat();
    assert_eq!(transcript.receive(&answer, 1), "200 end");
    assert!(transcript.wire.can_reuse());
}

#[test]
fn http_sends_a_body_at_once_and_frames_it_as_announced() {
    for (length, expected) in [
        (BodyLength::Known(3), "content-length: 3\r\n\r\nabc"),
        (
            BodyLength::Unknown,
            "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
    ] {
        let mut transcript = Transcript::new(Protocol::Http);
        transcript.request(&Method::POST, length);
        assert_eq!(transcript.body(b"abc"), 0);
        assert!(transcript.wire.finish_body(&mut transcript.output));
        let sent = String::from_utf8(transcript.sent()).unwrap().to_lowercase();
        assert!(sent.ends_with(expected), "{length:?}: {sent}");
    }
}

#[test]
fn a_body_that_is_too_short_is_noticed_and_one_that_is_too_long_is_cut() {
    for protocol in [Protocol::Ajp, Protocol::Http] {
        for (bytes, whole) in [(&b"ab"[..], false), (b"abc", true)] {
            let mut transcript = Transcript::new(protocol);
            transcript.request(&Method::POST, BodyLength::Known(3));
            transcript.body(bytes);
            let finished = transcript.wire.finish_body(&mut transcript.output);
            assert_eq!(finished, whole, "{protocol:?}, {bytes:?}");
        }
    }
    let mut transcript = Transcript::new(Protocol::Http);
    transcript.request(&Method::POST, BodyLength::Known(3));
    transcript.sent();
    transcript.body(b"abcdef");
    assert_eq!(transcript.sent(), b"abc");
}

#[test]
fn only_what_the_close_ends_is_ended_by_it() {
    for (protocol, bytes, expected) in [
        (Protocol::Http, &b"HTTP/1.1 200 OK\r\n\r\nab"[..], true),
        (
            Protocol::Http,
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            false,
        ),
        (Protocol::Http, b"", false),
        (Protocol::Ajp, &send_headers(200, &[]), false),
    ] {
        let mut transcript = Transcript::new(protocol);
        transcript.request(&Method::GET, BodyLength::Known(0));
        transcript.receive(bytes, 1);
        let ended = matches!(transcript.wire.receive_end(), Ok(Event::End));
        assert_eq!(ended, expected, "{protocol:?} {bytes:?}");
        assert!(!transcript.wire.can_reuse(), "{protocol:?} {bytes:?}");
    }
}

#[test]
fn a_pong_is_the_only_answer_to_a_ping() {
    let mut http = Transcript::new(Protocol::Http);
    assert!(!http.wire.can_ping() && !http.wire.send_ping(&mut http.output));
    for (answer, expected) in [
        (&b"AB\0\x01\x09"[..], Some(Ok(()))),
        (b"AB\0\x01", None),
        (&end_response(1), Some(Err(PingFailure::Other))),
        (b"AB\0\0", Some(Err(PingFailure::Garbled))),
        (b"HTTP/1.1 400 Bad", Some(Err(PingFailure::Garbled))),
    ] {
        let mut ajp = Transcript::new(Protocol::Ajp);
        assert!(ajp.wire.can_ping() && ajp.wire.send_ping(&mut ajp.output));
        assert_eq!(ajp.sent(), b"\x12\x34\0\x01\x0a");
        ajp.input.extend_from_slice(answer);
        let ponged = ajp.wire.receive_pong(&mut ajp.input, &mut ajp.output);
        assert_eq!(ponged, expected, "{answer:?}");
        assert_eq!(ajp.wire.can_reuse(), expected == Some(Ok(())));
    }
}

#[test]
fn an_ajp_backend_is_told_the_activation_in_the_words_of_mod_jk() {
    for (activation, word) in [
        (Activation::Active, "ACT"),
        (Activation::Drain, "DIS"),
        (Activation::Stopped, "STP"),
    ] {
        let request = Request {
            method: &Method::GET,
            path: b"/a",
            query: None,
            host: b"h",
            headers: &Fields::new(),
            body: BodyLength::Known(0),
        };
        let facts = ClientFacts {
            jvm_route: Some("blue"),
            activation: Some(activation),
            ..ClientFacts::local()
        };
        let mut transcript = Transcript::new(Protocol::Ajp);
        let Transcript {
            wire,
            config,
            output,
            ..
        } = &mut transcript;
        wire.send_request(&request, &facts, config, output).unwrap();
        let sent = transcript.sent();
        for expected in [named("JK_LB_ACTIVATION", word), attribute(6, "blue")] {
            let found = sent.windows(expected.len()).any(|it| it == expected);
            assert!(found, "{word}: {}", sent.escape_ascii());
        }
    }
}
