//! What ends a connection, what is counted, and how large a head may be.

use catamaran_http2::{Config, Event, Fault, Limits, Server, StreamFault};
use catamaran_message::RequestHead;

use catamaran_testkit::replay_corpus;

use crate::connection_bodies;
use crate::transcript::{
    ACK, Begun, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING,
    PREFACE, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, block, frame, get,
    headers,
};

#[test]
fn what_may_not_stand_where_it_does_ends_the_connection() {
    for (wire, fault) in faults_of_streams()
        .into_iter()
        .chain(faults_of_connections())
    {
        let mut begun = Begun::new(Config::default());
        assert_eq!(
            begun.receive(&wire),
            Err(fault),
            "{:?}",
            &wire[..wire.len().min(30)]
        );
    }
}

/// Frames about streams, and the faults that they are.
fn faults_of_streams() -> Vec<(Vec<u8>, Fault)> {
    let priority = |stream: u32| [&stream.to_be_bytes()[..], &[16]].concat();
    vec![
        (frame(DATA, 0, 0, b"x"), Fault::Protocol),
        (frame(DATA, 0, 1, b"x"), Fault::Protocol),
        (headers(0, true, &get(&[])), Fault::Protocol),
        (headers(2, true, &get(&[])), Fault::Protocol),
        (
            frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0]),
            Fault::Protocol,
        ),
        (
            frame(HEADERS, END_HEADERS | PADDED, 1, &[]),
            Fault::FrameSize,
        ),
        (
            frame(HEADERS, END_HEADERS | 32, 1, &priority(1)),
            Fault::Protocol,
        ),
        (frame(HEADERS, END_HEADERS | 32, 1, &[0]), Fault::FrameSize),
        (frame(HEADERS, END_HEADERS, 1, &[0x80]), Fault::Compression),
        (frame(CONTINUATION, END_HEADERS, 1, &[]), Fault::Protocol),
        (
            frame(HEADERS, 0, 1, &[])
                .into_iter()
                .chain(frame(PING, 0, 0, &[0; 8]))
                .collect(),
            Fault::Protocol,
        ),
        (
            frame(HEADERS, 0, 1, &[])
                .into_iter()
                .chain(frame(CONTINUATION, 4, 3, &[]))
                .collect(),
            Fault::Protocol,
        ),
        (frame(PRIORITY, 0, 0, &priority(3)), Fault::Protocol),
        (frame(PRIORITY, 0, 3, &priority(3)), Fault::Protocol),
        (frame(PRIORITY, 0, 3, &[0; 4]), Fault::FrameSize),
        (frame(RST_STREAM, 0, 0, &[0; 4]), Fault::Protocol),
        (frame(RST_STREAM, 0, 1, &[0; 4]), Fault::Protocol),
        (frame(RST_STREAM, 0, 1, &[0; 3]), Fault::FrameSize),
    ]
}

/// The same of frames about the connection.
fn faults_of_connections() -> Vec<(Vec<u8>, Fault)> {
    let setting = |id: u8, value: u32| [&[0, id][..], &value.to_be_bytes()].concat();
    vec![
        (frame(SETTINGS, 0, 1, &[]), Fault::Protocol),
        (frame(SETTINGS, 0, 0, &[0; 5]), Fault::FrameSize),
        (frame(SETTINGS, ACK, 0, &[0; 6]), Fault::FrameSize),
        (frame(SETTINGS, ACK, 0, &[]), Fault::Protocol),
        (frame(SETTINGS, 0, 0, &setting(2, 2)), Fault::Protocol),
        (
            frame(SETTINGS, 0, 0, &setting(4, 1 << 31)),
            Fault::FlowControl,
        ),
        (frame(SETTINGS, 0, 0, &setting(5, 16_383)), Fault::Protocol),
        (frame(SETTINGS, 0, 0, &setting(5, 1 << 24)), Fault::Protocol),
        (frame(SETTINGS, 0, 0, &setting(8, 2)), Fault::Protocol),
        (
            frame(PUSH_PROMISE, END_HEADERS, 1, &[0; 4]),
            Fault::Protocol,
        ),
        (frame(PING, 0, 1, &[0; 8]), Fault::Protocol),
        (frame(PING, 0, 0, &[0; 7]), Fault::FrameSize),
        (frame(GOAWAY, 0, 1, &[0; 8]), Fault::Protocol),
        (frame(GOAWAY, 0, 0, &[0; 7]), Fault::FrameSize),
        (frame(WINDOW_UPDATE, 0, 0, &[0; 4]), Fault::Protocol),
        (frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]), Fault::Protocol),
        (frame(WINDOW_UPDATE, 0, 0, &[0; 3]), Fault::FrameSize),
        (frame(16, 0, 0, &[0; 4]), Fault::Protocol),
        (frame(16, 0, 1, &[0, 0, 0, 1]), Fault::Protocol),
        (
            frame(DATA, 0, 1, &[0; 16_385])[..9].to_vec(),
            Fault::FrameSize,
        ),
    ]
}

#[test]
fn a_connection_begins_with_the_preface_and_settings() {
    for (wire, fault) in [
        (&b"GET / HTTP/1.1\r\n"[..], Fault::Preface),
        (b"PRI * HTTP/2.0\r\n\r\nXX", Fault::Preface),
        (
            &[PREFACE, &frame(PING, 0, 0, &[0; 8])].concat(),
            Fault::Protocol,
        ),
        (
            &[PREFACE, &frame(SETTINGS, ACK, 0, &[])].concat(),
            Fault::Protocol,
        ),
    ] {
        let mut out = bytes::BytesMut::new();
        let mut server = Server::new(Limits::request(), Config::default(), &mut out);
        let mut input = bytes::BytesMut::from(wire);
        assert_eq!(
            server.receive(&mut input, &mut out, || Box::new(RequestHead::empty())),
            Err(fault)
        );
    }
}

#[test]
fn pings_and_settings_are_answered_and_counted() {
    let mut begun = Begun::new(Config::default());
    begun.server.connection.take_tally();
    let wire = [
        frame(PING, 0, 0, b"12345678"),
        frame(SETTINGS, 0, 0, &[]),
        frame(200, 0, 7, b"unknown"),
        frame(PRIORITY, 0, 9, &[0, 0, 0, 3, 1]),
        frame(16, 0, 0, b"\0\0\0\x05u=1"),
        headers(1, false, &get(&[])),
        frame(DATA, 0, 1, b""),
        frame(RST_STREAM, 0, 1, &[0; 4]),
    ];
    begun.receive(&wire.concat()).unwrap();
    let expected = [
        (PING, ACK, 0, b"12345678".to_vec()),
        (SETTINGS, ACK, 0, vec![]),
    ];
    assert_eq!(begun.written(), expected);
    let tally = begun.server.connection.take_tally();
    assert_eq!(
        (tally.useless, tally.resets, tally.provoked_resets),
        (6, 1, 0)
    );
    assert_eq!(
        begun.server.connection.take_tally(),
        catamaran_http2::Tally::default()
    );
}

#[test]
fn resets_that_the_peer_provokes_are_counted() {
    let mut begun = Begun::new(Config::default());
    begun.receive(&headers(1, true, &get(&[]))).unwrap();
    begun.receive(&frame(DATA, 0, 1, b"x")).unwrap();
    begun
        .receive(&headers(3, true, &block(&[("x", "y")])))
        .unwrap();
    assert_eq!(begun.server.connection.take_tally().provoked_resets, 2);
}

#[test]
fn large_heads_are_answered_and_floods_are_not() {
    let value = "v".repeat(120);
    let fields = |count: usize| get(&vec![("x-filler", value.as_str()); count]);
    let send = |block: &[u8]| {
        let mut begun = Begun::new(Config::default());
        let mut pieces = block.chunks(16_000).peekable();
        let mut kind = HEADERS;
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() {
                END_HEADERS
            } else {
                0
            };
            let ends = if kind == HEADERS { END_STREAM } else { 0 };
            let events = begun.receive(&frame(kind, flags | ends, 1, piece))?;
            kind = CONTINUATION;
            if !events.is_empty() {
                return Ok(events);
            }
        }
        Ok(vec![])
    };
    let refused = |fault| {
        Ok(vec![Event::Refused {
            stream: 1,
            fault,
            ends: true,
        }])
    };
    assert!(matches!(send(&fields(100)), Ok(events) if matches!(events[..], [Event::Head { .. }])));
    assert_eq!(send(&fields(101)), refused(StreamFault::TooManyFields));
    assert_eq!(send(&fields(210)), refused(StreamFault::HeadTooLarge));
    assert_eq!(send(&fields(850)), Err(Fault::HeadFlood));
}

#[test]
fn a_head_comes_in_few_frames() {
    let open = frame(HEADERS, 0, 1, &get(&[]));
    let mut begun = Begun::new(Config::default());
    let many = [
        open.clone(),
        frame(CONTINUATION, 0, 1, b"\0\x01a\x01b").repeat(17),
    ]
    .concat();
    assert_eq!(begun.receive(&many), Err(Fault::ContinuationFlood));
    let mut begun = Begun::new(Config::default());
    let empty = [open, frame(CONTINUATION, 0, 1, b"").repeat(3)].concat();
    assert_eq!(begun.receive(&empty), Err(Fault::ContinuationFlood));
}

#[test]
fn corpora_of_both_roles() {
    replay_corpus("http2_server", connection_bodies::server);
    replay_corpus("http2_client", connection_bodies::client);
}
