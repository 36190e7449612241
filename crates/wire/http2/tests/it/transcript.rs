//! Frames as a peer writes them, and a connection that reads them.

use bytes::BytesMut;
use catamaran_http2::{Config, Event, Fault, Limits, Server};
use catamaran_message::RequestHead;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&[a, b, c, kind, flags][..], &stream.to_be_bytes()].concat();
    [&head[..], payload].concat()
}

/// A block of fields as literals that leave the table alone.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// The fields of a plain request, and others.
pub(crate) fn get(others: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/a?b"),
        (":authority", "example.org"),
    ];
    block(&[&pseudo[..], others].concat())
}

/// HEADERS of a whole block.
pub(crate) fn headers(stream: u32, ends: bool, block: &[u8]) -> Vec<u8> {
    let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, block)
}

/// The kind, the flags, the stream and the payload of each frame.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let [a, b, c, kind, flags, s0, s1, s2, s3, rest @ ..] = bytes {
        let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let stream = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
        frames.push((*kind, *flags, stream, rest[..len].to_vec()));
        bytes = &rest[len..];
    }
    frames
}

/// A server whose client has said its settings.
pub(crate) struct Begun {
    pub(crate) server: Server,
    pub(crate) input: BytesMut,
    pub(crate) out: BytesMut,
}

impl Begun {
    pub(crate) fn new(config: Config) -> Self {
        let mut out = BytesMut::new();
        let mut begun = Self {
            server: Server::new(Limits::request(), config, &mut out),
            input: BytesMut::new(),
            out,
        };
        let hello = [
            PREFACE,
            &frame(SETTINGS, 0, 0, &[]),
            &frame(SETTINGS, ACK, 0, &[]),
        ]
        .concat();
        assert_eq!(begun.receive(&hello), Ok(vec![]));
        begun.out.clear();
        begun
    }

    /// What comes of further bytes.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Event<RequestHead>>, Fault> {
        self.input.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(event) = self.receive_one()? {
            events.push(event);
        }
        Ok(events)
    }

    fn receive_one(&mut self) -> Result<Option<Event<RequestHead>>, Fault> {
        let empty_head = || Box::new(RequestHead::empty());
        let Self { server, input, out } = self;
        server.receive(input, out, empty_head)
    }

    /// The frames that were written since this was called last.
    pub(crate) fn written(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        frames(&self.out.split())
    }
}
