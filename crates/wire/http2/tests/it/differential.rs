//! The `h2` crate beside ours: what it refuses, ours does not take.

use std::collections::BTreeMap;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use catamaran_http2::{Config, Event, Limits, Server};
use catamaran_message::RequestHead;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transcript::{ACK, PREFACE, SETTINGS, block, frame, frames};

/// What a server understood: of each stream the method and path, the body so far, and whether it ended.
type Understood = BTreeMap<u32, (String, Vec<u8>, bool)>;

/// A socket on which these bytes have come.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<BytesMut>>);

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = self.0.lock().unwrap();
        if bytes.is_empty() {
            return Poll::Pending;
        }
        let len = buf.remaining().min(bytes.len());
        buf.put_slice(&bytes.split_to(len));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What `h2` understood, and the frames up to that for which it has ended the connection.
fn understood_by_h2(bytes: &[u8]) -> (Understood, Vec<u8>) {
    let mut understood = Understood::new();
    let mut read = PREFACE.to_vec();
    let cx = &mut Context::from_waker(Waker::noop());
    let mut builder = h2::server::Builder::new();
    builder
        .max_concurrent_streams(100)
        .enable_connect_protocol();
    let wire = Wire::default();
    wire.0.lock().unwrap().extend_from_slice(PREFACE);
    let mut handshake = pin!(builder.handshake::<_, bytes::Bytes>(wire.clone()));
    let Poll::Ready(Ok(mut connection)) = handshake.as_mut().poll(cx) else {
        return (understood, read);
    };
    let mut open = Vec::new();
    // A fault of the connection would hide the requests before it: frames come one by one.
    for (kind, flags, stream, payload) in frames(&bytes[PREFACE.len()..]) {
        let bytes = frame(kind, flags, stream, &payload);
        wire.0.lock().unwrap().extend_from_slice(&bytes);
        read.extend_from_slice(&bytes);
        let mut is_over = false;
        while let Poll::Ready(accepted) = connection.poll_accept(cx) {
            let Some(Ok((request, respond))) = accepted else {
                is_over = true;
                break;
            };
            let stream = request.body().stream_id().as_u32();
            let target = format!("{} {}", request.method(), request.uri().path());
            understood.insert(stream, (target, Vec::new(), false));
            open.push((stream, request.into_body(), respond));
        }
        for (stream, body, _) in &mut open {
            let Some(entry) = understood.get_mut(stream) else {
                continue;
            };
            loop {
                match body.poll_data(cx) {
                    Poll::Ready(Some(Ok(data))) => entry.1.extend_from_slice(&data),
                    Poll::Ready(None) => break entry.2 = true,
                    Poll::Ready(Some(Err(_))) | Poll::Pending => break,
                }
            }
        }
        if is_over {
            break;
        }
    }
    (understood, read)
}

/// What ours understood, where in the bytes it last found a fault, and which streams it has reset or answers with a fault.
fn understood_by_ours(bytes: &[u8], cut: usize) -> (Understood, usize, Vec<u32>) {
    let mut understood = Understood::new();
    let (mut at, mut fault_at, mut refused) = (0, 0, Vec::new());
    let config = Config {
        takes_tunnels: true,
        ..Config::default()
    };
    let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
    let mut server = Server::new(Limits::request(), config, &mut out);
    for piece in bytes.chunks(cut) {
        at += piece.len();
        input.extend_from_slice(piece);
        loop {
            match server.receive(&mut input, &mut out, || Box::new(RequestHead::empty())) {
                Ok(Some(Event::Head { stream, head, ends })) => {
                    let path = String::from_utf8_lossy(&head.target.path).into_owned();
                    let target = format!("{} {path}", head.method);
                    understood.insert(stream, (target, Vec::new(), ends));
                }
                Ok(Some(Event::Body { stream, data, ends })) => {
                    if let Some(entry) = understood.get_mut(&stream) {
                        entry.1.extend_from_slice(&data);
                        entry.2 |= ends;
                    }
                }
                Ok(Some(Event::Trailers { stream, .. })) => {
                    if let Some(entry) = understood.get_mut(&stream) {
                        entry.2 = true;
                    }
                }
                Ok(Some(Event::Failed { stream, .. })) => {
                    understood.remove(&stream);
                    refused.push(stream);
                    fault_at = at - input.len();
                }
                Ok(Some(Event::Refused { stream, .. })) => {
                    refused.push(stream);
                    fault_at = at - input.len();
                }
                Ok(Some(Event::GoAway { .. })) => fault_at = at - input.len(),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return (understood, bytes.len(), refused),
            }
        }
    }
    // A block is decoded once it is whole.
    if server.connection.is_amid_head() {
        fault_at = bytes.len();
    }
    (understood, fault_at, refused)
}

/// Fields of requests, most of them well-formed.
fn field_block() -> impl Strategy<Value = Vec<u8>> {
    let pseudo = prop_oneof![
        8 => Just(vec![(":method", "POST"), (":scheme", "http"), (":path", "/a"), (":authority", "h")]),
        1 => Just(vec![(":method", "GET"), (":scheme", "http"), (":path", "*"), (":authority", "h")]),
        1 => Just(vec![(":method", "GET"), (":path", "/"), (":authority", "h")]),
        1 => Just(vec![(":method", "CONNECT"), (":authority", "h:1")]),
        1 => Just(vec![(":method", "CONNECT"), (":protocol", "x"), (":scheme", "http"), (":path", "/"), (":authority", "h")]),
        1 => Just(vec![(":status", "200")]),
        2 => Just(vec![]),
    ];
    let other = prop::sample::select(vec![
        ("accept", "*/*"),
        ("cookie", "a=1"),
        ("content-length", "3"),
        ("content-length", "0"),
        ("content-length", "x"),
        ("host", "h"),
        ("host", "g"),
        ("te", "trailers"),
        ("te", "gzip"),
        ("connection", "close"),
        ("Upper", "x"),
        ("x-y", "z"),
        (":path", "/late"),
        ("x", " y"),
        ("trailer", "x"),
        ("expect", "100-continue"),
    ]);
    (pseudo, prop::collection::vec(other, 0..4), any::<bool>()).prop_map(
        |(pseudo, others, whole)| {
            let mut bytes = block(&[&pseudo[..], &others].concat());
            if !whole && others.len() == 3 {
                bytes.pop();
            }
            bytes
        },
    )
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop::sample::select(vec![0_u32, 1, 1, 1, 2, 3, 3, 5, 7]);
    let flags = prop::sample::select(vec![0_u8, 1, 4, 4, 5, 5, 8, 12, 13, 32, 37]);
    let payload = prop_oneof![
        6 => field_block(),
        2 => Just(b"abc".to_vec()),
        1 => Just(b"\x01ab\x00".to_vec()),
        2 => prop::collection::vec(any::<u8>(), 4..=4),
        1 => prop::collection::vec(any::<u8>(), 0..16),
        1 => Just(vec![0; 16_384]),
        1 => Just(vec![]),
    ];
    let kind = prop::sample::select(vec![0_u8, 0, 1, 1, 1, 1, 2, 3, 4, 6, 7, 8, 9, 16, 99]);
    (kind, flags, stream, payload)
        .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, &payload))
}

/// Frames of an orderly client, among which there may be others.
fn dialogue() -> impl Strategy<Value = Vec<u8>> {
    let request = (
        prop::sample::select(vec![1_u32, 3, 5, 7, 9]),
        field_block(),
        any::<bool>(),
    );
    let request =
        request.prop_map(|(stream, block, ends)| crate::transcript::headers(stream, ends, &block));
    let data = (
        prop::sample::select(vec![1_u32, 3, 5]),
        any::<bool>(),
        0..4_usize,
    );
    let data = data
        .prop_map(|(stream, ends, len)| frame(0, u8::from(ends), stream, &b"abc"[..len.min(3)]));
    let one = prop_oneof![4 => request, 4 => data, 2 => any_frame()];
    prop::collection::vec(one, 0..12).prop_map(|frames| {
        let hello = [
            PREFACE,
            &frame(SETTINGS, 0, 0, &[]),
            &frame(SETTINGS, ACK, 0, &[]),
        ]
        .concat();
        [hello, frames.concat()].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_h2_refuses_is_not_taken(bytes in dialogue(), cut in 1..200_usize) {
        let (theirs, read) = understood_by_h2(&bytes);
        let (ours, fault_at, refused) = understood_by_ours(&read, usize::MAX);
        prop_assert_eq!(&ours, &understood_by_ours(&read, cut).0, "it depends on how bytes were cut");
        // Where h2 ends the connection, ours may refuse the stream alone, and no frame of one that it has refused counts.
        let frames = frames(&read[PREFACE.len()..]);
        let is_ignored = frames.last().is_some_and(|last| refused.contains(&last.2));
        let is_refused = fault_at == read.len() || is_ignored;
        prop_assert!(read.len() == bytes.len() || is_refused, "taken: {:?}", frames);
        for (stream, (target, body, ended)) in &ours {
            let Some((its_target, its_body, its_end)) = theirs.get(stream) else {
                return Err(TestCaseError::fail(format!("{stream}: h2 does not take it: {frames:?}")));
            };
            prop_assert_eq!(target, its_target);
            // Ours may have ended the connection before.
            prop_assert!(its_body.starts_with(body), "stream {}: {:?}", stream, frames);
            prop_assert!(!ended || *its_end, "stream {} has not ended for h2", stream);
        }
    }
}
