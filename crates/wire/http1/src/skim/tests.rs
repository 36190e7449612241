//! Tests that a skimmer and a client find the same in a stream, however its bytes are cut,
//! although a skimmer keeps nothing.

use catamaran_message::Fields;
use http::Method;
use proptest::prelude::*;

use super::*;
use crate::{BodyLength, Client, ClientEvent, Request};

/// What a skimmer or a client found in a stream: statuses, body lengths, ends, and the fault.
///
/// How much of a body came before a fault is not compared, because a skimmer takes data and
/// framing in one step.
#[derive(Debug, Default, PartialEq, Eq)]
struct Story {
    interims: usize,
    heads: Vec<(u16, Option<u64>)>,
    body: usize,
    ends: usize,
    fault: Option<Fault>,
    reusable: bool,
}

/// Feeds `stream`, cut at `cuts`, to a skimmer, and then the end of the stream.
fn skim(stream: &[u8], cuts: &[usize], to_head: bool) -> Story {
    let mut skimmer = Skimmer::new(Limits::response());
    let mut known = KnownHead::default();
    let mut story = Story::default();
    skimmer.expect(to_head);
    let (mut from, mut kept) = (0, Vec::new());
    for &to in cuts.iter().chain([&stream.len()]) {
        kept.extend_from_slice(&stream[from..to]);
        from = to;
        let mut input = &kept[..];
        loop {
            match skimmer.receive(&mut input, &mut known) {
                Ok(None) => break,
                Ok(Some(skimmed)) => story.tell(skimmed),
                Err(fault) => return story.fail(fault),
            }
        }
        kept = input.to_vec();
    }
    story.reusable = skimmer.is_idle();
    match skimmer.receive_eof(!kept.is_empty()) {
        Ok(event) => event.into_iter().for_each(|event| story.tell(event)),
        Err(fault) => return story.fail(fault),
    }
    story
}

impl Story {
    fn fail(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self.body = 0;
        self
    }

    fn tell(&mut self, skimmed: Http1Skim) {
        match skimmed {
            Http1Skim::Interim(_) => self.interims += 1,
            Http1Skim::Head(outline) => self
                .heads
                .push((outline.status.as_u16(), outline.content_length)),
            Http1Skim::Body(len) => self.body += len,
            Http1Skim::End => self.ends += 1,
        }
    }
}

/// What a client, which keeps everything, finds in the stream.
fn read(stream: &[u8], to_head: bool) -> Story {
    let mut client = Client::new(Limits::response());
    let mut story = Story::default();
    let (method, headers) = (
        if to_head { Method::HEAD } else { Method::GET },
        Fields::new(),
    );
    let request = Request {
        method: &method,
        path: b"/",
        query: None,
        host: b"h",
        headers: &headers,
        body: BodyLength::Known(0),
    };
    client.send_request(&request, &mut BytesMut::new()).unwrap();
    let mut input = BytesMut::from(stream);
    let eof = loop {
        match client.receive(&mut input) {
            Ok(None) => {
                story.reusable = client.can_reuse();
                break client.receive_eof();
            }
            Ok(Some(event)) => story.hear(&event),
            Err(fault) => break Err(fault),
        }
    };
    match eof {
        Ok(event) => event.iter().for_each(|event| story.hear(event)),
        Err(fault) => return story.fail(fault),
    }
    story
}

impl Story {
    fn hear(&mut self, event: &ClientEvent) {
        match event {
            ClientEvent::Interim(_) => self.interims += 1,
            ClientEvent::Upgraded(_) => unreachable!("nothing asked for it"),
            ClientEvent::Head(head) => {
                self.heads.push((head.status.as_u16(), head.content_length));
            }
            ClientEvent::Body(bytes) => self.body += bytes.len(),
            ClientEvent::End => self.ends += 1,
        }
    }
}

#[test]
fn a_skimmer_sees_what_a_client_sees() {
    for stream in STREAMS {
        for to_head in [false, true] {
            let expected = read(stream.as_bytes(), to_head);
            let all: Vec<usize> = (0..stream.len()).collect();
            for cuts in [&[][..], &all] {
                let found = skim(stream.as_bytes(), cuts, to_head);
                assert_eq!(found, expected, "{stream:?} {cuts:?} to HEAD: {to_head}");
            }
        }
    }
}

#[test]
fn an_endless_head_is_refused_at_the_limit() {
    let mut stream = b"HTTP/1.1 200 OK\r\n".to_vec();
    while stream.len() < 40_000 {
        stream.extend_from_slice(b"X-Filler: 0123456789\r\n");
    }
    assert_eq!(read(&stream, false), skim(&stream, &[], false));
    assert!(skim(&stream, &[1000], false).fault.is_some());
}

#[test]
fn a_known_head_is_recognised_and_another_one_replaces_it() {
    let mut skimmer = Skimmer::new(Limits::response());
    let mut known = KnownHead::default();
    let heads = [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
    ];
    for (stream, expected) in heads.iter().zip([200, 200, 200, 404]) {
        skimmer.expect(false);
        let mut input = stream.as_bytes();
        let mut events = Vec::new();
        while let Some(event) = skimmer.receive(&mut input, &mut known).unwrap() {
            events.push(event);
        }
        let Some(Http1Skim::Head(outline)) = events.first() else {
            panic!("{events:?}");
        };
        assert_eq!(outline.status.as_u16(), expected);
        assert_eq!(known.bytes(), &stream.as_bytes()[..outline.bytes]);
        assert_eq!(events.last(), Some(&Http1Skim::End));
        assert!(input.is_empty() && skimmer.is_idle());
    }
}

#[test]
fn the_same_head_means_less_after_a_head_request() {
    let mut skimmer = Skimmer::new(Limits::response());
    let mut known = KnownHead::default();
    for to_head in [false, true, false] {
        skimmer.expect(to_head);
        let mut input = &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"[..];
        if to_head {
            input = &input[..input.len() - 2];
        }
        let mut body = 0;
        while let Some(event) = skimmer.receive(&mut input, &mut known).unwrap() {
            if let Http1Skim::Body(len) = event {
                body += len;
            }
        }
        assert_eq!(body, if to_head { 0 } else { 2 });
        assert!(skimmer.is_idle());
    }
}

proptest! {
    #[test]
    fn cuts_and_noise_change_nothing(
        which in 0..STREAMS.len(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        noise in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        to_head in any::<bool>(),
    ) {
        let mut stream = STREAMS[which].as_bytes().to_vec();
        if let (Some((at, byte)), false) = (noise, stream.is_empty()) {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        prop_assert_eq!(skim(&stream, &cuts, to_head), read(&stream, to_head));
    }
}

const STREAMS: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: x\r\n\r\nhello",
    "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab",
    "HTTP/1.0 200 OK\r\n\r\nuntil the end",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n3\r\nabc\r\n0\r\nT: v\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
    "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\nServer: half",
    "HTTP/2.0 200 OK\r\n\r\n",
    "SSH-2.0-OpenSSH\r\n",
    "",
];
