use std::collections::VecDeque;
use std::io::Read;
use std::task::Waker;

use flate2::read::MultiGzDecoder;
use http::{StatusCode, Version};

use super::*;
use crate::worker::encoders::EncoderMemory;

/// The fields of a head, from names and values.
fn fields(lines: &[(&'static str, &'static str)]) -> Fields {
    lines.iter().copied().collect()
}

fn request(method: Method, lines: &[(&'static str, &'static str)]) -> RequestHead {
    RequestHead {
        method,
        headers: fields(lines),
        ..RequestHead::empty()
    }
}

fn config() -> CompressConfig {
    CompressConfig::new(vec![Coding::Zstd, Coding::Gzip])
}

fn html(lines: &[(&'static str, &'static str)]) -> ResponseHead {
    let mut headers = fields(lines);
    headers.insert(CONTENT_TYPE, "text/html");
    ResponseHead {
        status: StatusCode::OK,
        headers,
        content_length: Some(5000),
        ..ResponseHead::default()
    }
}

fn settled(request: &RequestHead, head: &mut ResponseHead) -> Option<StreamCoding> {
    CompressionOffer::new(&config(), 0, request).settle(head)
}

#[test]
fn the_client_chooses_the_coding() {
    for (accepted, expected) in [
        ("gzip, deflate, br, zstd", Some(StreamCoding::Zstd)),
        ("gzip, deflate, br", Some(StreamCoding::Gzip)),
        ("zstd;q=0.1, gzip", Some(StreamCoding::Gzip)),
        ("zstd;q=0, gzip;q=0", None),
        ("br", None),
        ("identity", None),
        ("*", Some(StreamCoding::Zstd)),
        ("gzip;q=0.5, identity", None),
    ] {
        let mut head = html(&[]);
        let request = request(Method::GET, &[("accept-encoding", accepted)]);
        assert_eq!(settled(&request, &mut head), expected, "{accepted}");
        assert_eq!(
            head.headers.text_of(VARY),
            Some("Accept-Encoding"),
            "whoever asks: {accepted}"
        );
    }
}

/// The codings for a client with this `Accept-Encoding`: of a whole body whose copies in `kept` exist, and of a body
/// that streams.
fn chosen(accepted: &'static str, kept: &[Coding]) -> (Option<Coding>, Option<StreamCoding>) {
    let config = CompressConfig::new(vec![Coding::Brotli, Coding::Zstd, Coding::Gzip]);
    let request = request(Method::GET, &[("accept-encoding", accepted)]);
    let offer = CompressionOffer::new(&config, 0, &request);
    let whole = offer.choose(|coding| kept.contains(&coding).then(Bytes::new));
    (
        whole.map(|(coding, _)| coding),
        offer.settle(&mut html(&[])),
    )
}

#[test]
fn a_whole_body_is_in_the_best_coding_that_is_kept_before_one_that_streams() {
    let (br, gzip, zstd) = (Coding::Brotli, Coding::Gzip, Coding::Zstd);
    let (in_gzip, in_zstd) = (Some(StreamCoding::Gzip), Some(StreamCoding::Zstd));
    for (accepted, kept, expected) in [
        ("gzip, br, zstd", &[][..], (None, in_zstd)),
        ("gzip, br, zstd", &[gzip], (None, in_zstd)),
        ("gzip, br, zstd", &[gzip, zstd], (Some(zstd), in_zstd)),
        ("gzip, br, zstd", &[br, gzip, zstd], (Some(br), in_zstd)),
        ("gzip, br", &[], (None, in_gzip)),
        ("gzip, br", &[gzip], (Some(gzip), in_gzip)),
        ("gzip, br;q=0.5", &[br], (None, in_gzip)),
        ("br", &[], (None, None)),
        ("br", &[br], (Some(br), None)),
        ("br;q=0, gzip;q=0", &[br, gzip], (None, None)),
        ("identity", &[br, gzip, zstd], (None, None)),
    ] {
        assert_eq!(chosen(accepted, kept), expected, "{accepted} {kept:?}");
    }
}

#[test]
fn a_304_has_the_tag_of_what_it_stands_for() {
    let config = CompressConfig::new(vec![Coding::Brotli, Coding::Gzip]);
    for (accepted, is_kept, expected) in [
        ("br", false, "\"a\""),
        ("br", true, "W/\"a\""),
        ("br, gzip", false, "W/\"a\""),
        ("identity", true, "\"a\""),
    ] {
        let request = request(Method::GET, &[("accept-encoding", accepted)]);
        let offer = CompressionOffer::new(&config, 0, &request);
        let mut head = ResponseHead {
            status: StatusCode::NOT_MODIFIED,
            headers: fields(&[("etag", "\"a\"")]),
            ..ResponseHead::default()
        };
        offer.mark_unmodified(&mut head, &html(&[]), |_| is_kept);
        assert_eq!(
            head.headers.text_of(ETAG),
            Some(expected),
            "{accepted} {is_kept}"
        );
        assert_eq!(head.headers.text_of(VARY), Some("Accept-Encoding"));
    }
}

#[test]
fn a_request_may_forbid_it() {
    let gzip = ("accept-encoding", "gzip");
    let forbids = request(
        Method::GET,
        &[gzip, ("cache-control", "no-cache, No-Transform")],
    );
    assert_eq!(settled(&forbids, &mut html(&[])), None);
    let mut old = request(Method::GET, &[gzip]);
    old.version = Version::HTTP_10;
    assert_eq!(settled(&old, &mut html(&[])), None);
}

#[test]
fn what_must_stay_as_it_is_does() {
    let gzip = request(Method::GET, &[("accept-encoding", "gzip")]);
    for line in [
        ("content-encoding", "br"),
        ("content-encoding", "identity"),
        ("content-range", "bytes 0-1/2"),
        ("content-digest", "sha-256=:AA==:"),
        ("content-md5", "x"),
        ("cache-control", "public,no-transform"),
    ] {
        let mut head = html(&[line, ("etag", "\"a\"")]);
        assert_eq!(settled(&gzip, &mut head), None, "{line:?}");
        assert!(
            !head.headers.contains(VARY),
            "{line:?}: all clients get the same"
        );
    }
    for status in [101, 103, 204, 205, 206, 304] {
        let mut head = html(&[]);
        head.status = StatusCode::from_u16(status).unwrap();
        assert_eq!(settled(&gzip, &mut head), None, "{status}");
    }
    for status in [200, 201, 404, 500] {
        let mut head = html(&[]);
        head.status = StatusCode::from_u16(status).unwrap();
        assert_eq!(
            settled(&gzip, &mut head),
            Some(StreamCoding::Gzip),
            "{status}"
        );
    }
    for (length, expected) in [
        (Some(0), None),
        (Some(1023), None),
        (Some(1024), Some(StreamCoding::Gzip)),
        (None, Some(StreamCoding::Gzip)),
    ] {
        let mut head = html(&[]);
        head.content_length = length;
        assert_eq!(settled(&gzip, &mut head), expected, "{length:?}");
    }
    for content_type in ["image/png", "application/octet-stream"] {
        let mut head = html(&[]);
        let value = content_type.as_bytes();
        head.headers.insert(CONTENT_TYPE, value);
        assert_eq!(settled(&gzip, &mut head), None, "{content_type}");
    }
    let mut head = html(&[]);
    head.headers.remove(CONTENT_TYPE);
    assert_eq!(settled(&gzip, &mut head), None, "nobody knows what it is");
}

#[test]
fn the_head_is_that_of_the_coded_body() {
    for (etag, expected) in [("\"a\"", "W/\"a\""), ("W/\"a\"", "W/\"a\""), ("a", "a")] {
        let mut head = html(&[("etag", etag), ("accept-ranges", "bytes")]);
        describe(&mut head, Coding::Gzip);
        assert_eq!(head.headers.text_of(ETAG), Some(expected));
        assert_eq!(head.headers.text_of(CONTENT_ENCODING), Some("gzip"));
        assert!(!head.headers.contains(ACCEPT_RANGES));
        assert_eq!(head.content_length, None);
    }
    let mut head = html(&[("etag", "\"a\"")]);
    let request = request(Method::HEAD, &[("accept-encoding", "gzip")]);
    assert_eq!(settled(&request, &mut head), None, "there is no body");
    assert_eq!(
        head.headers.text_of(CONTENT_ENCODING),
        Some("gzip"),
        "and the fields are those of GET"
    );
    assert_eq!(
        (head.headers.text_of(ETAG).unwrap(), head.content_length),
        ("W/\"a\"", None)
    );
}

#[test]
fn vary_is_added_to_the_line_there_is() {
    for (lines, expected) in [
        (&[][..], "Accept-Encoding"),
        (&[("vary", "Cookie")], "Cookie, Accept-Encoding"),
        (
            &[("vary", "Cookie"), ("vary", "Origin")],
            "Cookie, Origin, Accept-Encoding",
        ),
        (
            &[("vary", "Cookie, accept-ENCODING")],
            "Cookie, accept-ENCODING",
        ),
        (&[("vary", "*")], "*"),
    ] {
        let mut headers = fields(lines);
        vary(&mut headers, ACCEPT_ENCODING);
        assert_eq!(headers, fields(&[("vary", expected)]), "{lines:?}");
    }
}

/// The steps of a source.
enum Step {
    Body(Vec<u8>),
    Flush,
    /// The source has nothing for now.
    Pause,
    End,
}

/// The events that the relay sees. `Pending` is a wait for the source, or a rest while other tasks run.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Body(Vec<u8>),
    Flush,
    Pending,
    End,
}

fn begin(coding: StreamCoding, length: Option<u64>) -> Compression {
    let memory = EncoderMemory::default().reserve(1, 1).unwrap();
    let encoder = Some((Encoder::new(coding).unwrap(), memory));
    Compression::new(coding.into(), encoder, length)
}

/// Polls the compression until its end, and collects what the relay sees. After a pause the source goes on with the
/// next step.
fn run(compression: &mut Compression, steps: Vec<Step>) -> Vec<Seen> {
    let mut steps = VecDeque::from(steps);
    let mut cx = Context::from_waker(Waker::noop());
    let mut seen = Vec::new();
    let mut paused = false;
    loop {
        let polled = compression.poll_event(&mut cx, |_| match steps.front() {
            Some(Step::Pause) => {
                paused = true;
                Poll::Pending
            }
            _ => Poll::Ready(Ok(match steps.pop_front().expect("it ended") {
                Step::Body(data) => Event::Body(data.into()),
                Step::Flush => Event::Flush,
                Step::End | Step::Pause => Event::End,
            })),
        });
        match polled {
            Poll::Ready(Ok(Event::Body(data))) => seen.push(Seen::Body(data.to_vec())),
            Poll::Ready(Ok(Event::Flush)) => seen.push(Seen::Flush),
            Poll::Ready(Ok(Event::End)) => {
                seen.push(Seen::End);
                return seen;
            }
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => {
                seen.push(Seen::Pending);
                if std::mem::take(&mut paused) {
                    steps.pop_front();
                }
            }
        }
    }
}

/// The bytes that a client can decode of the events so far, and whether they are a whole body.
fn decode(seen: &[Seen]) -> (Vec<u8>, bool) {
    let mut coded = Vec::new();
    for it in seen {
        if let Seen::Body(data) = it {
            coded.extend_from_slice(data);
        }
    }
    let mut plain = Vec::new();
    let is_whole = MultiGzDecoder::new(&coded[..])
        .read_to_end(&mut plain)
        .is_ok();
    (plain, is_whole)
}

fn decoded(seen: &[Seen]) -> Vec<u8> {
    decode(seen).0
}

#[test]
fn what_was_taken_leaves_when_the_source_flushes_or_pauses() {
    for pause in [Step::Flush, Step::Pause] {
        let mut compression = begin(StreamCoding::Gzip, None);
        let steps = vec![
            Step::Body(b"data: 1\n\n".to_vec()),
            pause,
            Step::Body(b"data: 2\n\n".to_vec()),
            Step::End,
        ];
        let seen = run(&mut compression, steps);
        let first = seen
            .iter()
            .position(|it| matches!(it, Seen::Flush | Seen::Pending));
        let first = first.expect("it is written before more comes");
        assert_eq!(decoded(&seen[..first]), b"data: 1\n\n");
        assert_eq!(decoded(&seen), b"data: 1\n\ndata: 2\n\n");
        assert_eq!(compression.figures(), ("gzip", 18));
    }
}

#[test]
fn nothing_is_sent_for_a_pause_without_bytes() {
    let mut compression = begin(StreamCoding::Gzip, None);
    let steps = vec![
        Step::Pause,
        Step::Pause,
        Step::Flush,
        Step::Body(vec![b'a'; 10]),
        Step::End,
    ];
    let seen = run(&mut compression, steps);
    assert_eq!(seen[..3], [Seen::Pending, Seen::Pending, Seen::Flush]);
}

#[test]
fn others_have_their_turn() {
    let plain: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut compression = begin(StreamCoding::Gzip, Some(plain.len() as u64));
    let seen = run(&mut compression, vec![Step::Body(plain.clone()), Step::End]);
    let rests = seen.iter().filter(|it| **it == Seen::Pending).count();
    assert_eq!(rests, plain.len() / TURN_MAX);
    assert!(decoded(&seen) == plain);
    assert!(compression.is_whole());
}

/// A compressed response announces no length, so a client would take half a body for the whole if it had an end.
#[test]
fn a_body_that_is_shorter_than_announced_has_no_end() {
    let mut compression = begin(StreamCoding::Gzip, Some(20));
    let seen = run(
        &mut compression,
        vec![Step::Body(vec![b'a'; 19]), Step::End],
    );
    assert!(!compression.is_whole());
    assert!(!decode(&seen).1, "{seen:?}");
    let mut compression = begin(StreamCoding::Gzip, Some(20));
    let seen = run(
        &mut compression,
        vec![Step::Body(vec![b'a'; 30]), Step::End],
    );
    let expected = (vec![b'a'; 20], true);
    assert_eq!(decode(&seen), expected, "what is beyond is left out");
    assert!(compression.is_whole());
}
