//! Requests, responses and the ends of streams as a server sees them.

use catamaran_http2::hpack::Decoder;
use catamaran_http2::{Code, Config, Event, Fault, SendError, StreamFault};
use catamaran_message::name::COOKIE;
use catamaran_message::{BodyLength, Fields, Response};
use http::{Method, StatusCode, Version};

use crate::bodies::decode_all;
use crate::transcript::{
    Begun, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, RST_STREAM, SETTINGS,
    block, frame, frames, get, headers,
};

fn begun() -> Begun {
    Begun::new(Config::default())
}

#[test]
fn a_request_is_one_whatever_its_bytes_were_cut_into() {
    let fields = get(&[
        ("accept", "*/*"),
        ("cookie", "a=1"),
        ("x-own", "v"),
        ("cookie", "b=2"),
    ]);
    let (first, second) = fields.split_at(20);
    let wire = [
        frame(HEADERS, 0, 1, first),
        frame(CONTINUATION, END_HEADERS, 1, second),
        frame(DATA, PADDED, 1, b"\x03helloxxx"),
        frame(DATA, END_STREAM, 1, b""),
    ]
    .concat();
    for size in [1, 2, 7, 9, 10, 1000] {
        let mut begun = begun();
        let mut events = Vec::new();
        for piece in wire.chunks(size) {
            events.extend(begun.receive(piece).unwrap());
        }
        let [
            Event::Head {
                stream: 1,
                head,
                ends: false,
            },
            data,
            end,
        ] = &events[..]
        else {
            panic!("{events:?}");
        };
        assert_eq!(
            (&head.method, head.version),
            (&Method::GET, Version::HTTP_2)
        );
        assert_eq!(
            (&head.target.path[..], head.target.query.as_deref()),
            (&b"/a"[..], Some(&b"b"[..]))
        );
        assert_eq!(head.authority.as_ref().unwrap().host, "example.org");
        assert_eq!(head.body, BodyLength::Unknown);
        assert_eq!(head.headers.text_of(COOKIE), Some("a=1; b=2"));
        assert_eq!(head.headers.text_of("x-own"), Some("v"));
        assert_eq!(head.headers.len(), 3);
        assert_eq!(
            *data,
            Event::Body {
                stream: 1,
                data: "hello".into(),
                ends: false
            }
        );
        assert_eq!(
            *end,
            Event::Body {
                stream: 1,
                data: "".into(),
                ends: true
            }
        );
    }
}

#[test]
fn a_response_is_a_head_data_and_trailers() {
    let mut begun = begun();
    begun.receive(&headers(1, true, &get(&[]))).unwrap();
    let (server, out) = (&mut begun.server, &mut begun.out);
    let response = Response {
        status: StatusCode::OK,
        reason: None,
        headers: &Fields::from_iter([("content-type", "text/plain"), ("Connection", "close")]),
        body: BodyLength::Unknown,
    };
    assert_eq!(
        server.connection.begin_data(1, 5, false, out),
        Err(SendError::OutOfTurn)
    );
    let hints = Fields::from_iter([("link", "</a.css>")]);
    server
        .send_interim(1, StatusCode::EARLY_HINTS, &hints, out)
        .unwrap();
    server.send_head(1, &response, false, out).unwrap();
    assert_eq!(
        server.send_head(1, &response, false, out),
        Err(SendError::OutOfTurn)
    );
    assert_eq!(server.connection.begin_data(1, 5, false, out), Ok(5));
    out.extend_from_slice(b"hello");
    let trailers = Fields::from_iter([("x-sum", "1")]);
    server.connection.send_trailers(1, &trailers, out).unwrap();
    assert_eq!(server.connection.open_streams(), 0);
    let written = begun.written();
    let kinds: Vec<_> = written.iter().map(|it| (it.0, it.1, it.2)).collect();
    let expected = [
        (HEADERS, END_HEADERS, 1),
        (HEADERS, END_HEADERS, 1),
        (DATA, 0, 1),
        (HEADERS, END_HEADERS | END_STREAM, 1),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(written[2].3, b"hello");
}

#[test]
fn what_has_no_body_ends_with_its_head() {
    for (method, status, body) in [
        ("HEAD", StatusCode::OK, BodyLength::Known(5)),
        ("GET", StatusCode::NOT_MODIFIED, BodyLength::Known(5)),
        ("GET", StatusCode::NO_CONTENT, BodyLength::Unknown),
        ("GET", StatusCode::OK, BodyLength::Known(0)),
    ] {
        let mut begun = begun();
        let pseudo = [
            (":method", method),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "a"),
        ];
        begun.receive(&headers(1, true, &block(&pseudo))).unwrap();
        let response = Response {
            status,
            reason: None,
            headers: &Fields::new(),
            body,
        };
        begun
            .server
            .send_head(1, &response, false, &mut begun.out)
            .unwrap();
        let (kind, flags, stream, _) = begun.written()[0].clone();
        assert_eq!(
            (kind, flags, stream),
            (HEADERS, END_HEADERS | END_STREAM, 1),
            "{method} {status}"
        );
    }
}

/// The peer takes 16 KiB a frame: all but the last of a block have as much.
#[test]
fn large_heads_are_continued() {
    for len in (16_350..16_400).chain([32_768, 40_000]) {
        let mut begun = begun();
        begun.receive(&headers(1, true, &get(&[]))).unwrap();
        // Huffman's code would make it longer, so it is written as it is.
        let value = "~".repeat(len);
        let response = Response {
            status: StatusCode::OK,
            reason: None,
            headers: &Fields::from_iter([("x-large", &value[..])]),
            body: BodyLength::Unknown,
        };
        let Begun { server, out, .. } = &mut begun;
        server.send_head(1, &response, true, out).unwrap();
        let written = begun.written();
        let block: Vec<u8> = written.iter().flat_map(|it| it.3.clone()).collect();
        let (shown, _) = decode_all(&mut Decoder::new(), &block).unwrap();
        assert_eq!(shown[1].1, value.as_bytes());
        assert_eq!(written.len(), block.len().div_ceil(16_384));
        let last = written.len() - 1;
        for (at, (kind, flags, stream, payload)) in written.iter().enumerate() {
            assert!(payload.len() == 16_384 || at == last);
            let begins = if at == 0 { HEADERS } else { CONTINUATION };
            let of_first = if at == 0 { END_STREAM } else { 0 };
            let of_last = if at == last { END_HEADERS } else { 0 };
            assert_eq!((*kind, *flags, *stream), (begins, of_first | of_last, 1));
        }
    }
}

#[test]
fn the_answer_to_a_refused_head_request_has_no_body() {
    let mut begun = begun();
    let pseudo = [(":method", "HEAD"), (":scheme", "http"), (":path", "/")];
    let events = begun.receive(&headers(1, true, &block(&pseudo))).unwrap();
    assert!(matches!(events[..], [Event::Refused { stream: 1, .. }]));
    let response = Response {
        status: StatusCode::BAD_REQUEST,
        reason: None,
        headers: &Fields::new(),
        body: BodyLength::Known(5),
    };
    begun
        .server
        .send_head(1, &response, false, &mut begun.out)
        .unwrap();
    assert_eq!(begun.written()[0].1, END_HEADERS | END_STREAM);
}

#[test]
fn a_head_that_comes_slowly_is_seen() {
    let mut begun = begun();
    let wire = headers(1, true, &get(&[]));
    let (first, second) = wire.split_at(12);
    begun.receive(first).unwrap();
    assert!(begun.server.connection.is_amid_head());
    begun.receive(second).unwrap();
    assert!(!begun.server.connection.is_amid_head());
}

#[test]
fn a_table_that_was_smaller_in_between_is_said_to_be() {
    let mut begun = begun();
    let setting = |size: u32| [&[0, 1][..], &size.to_be_bytes()].concat();
    let both = [setting(0), setting(4096)].concat();
    begun.receive(&frame(SETTINGS, 0, 0, &both)).unwrap();
    begun.receive(&headers(1, true, &get(&[]))).unwrap();
    begun.written();
    let none = Fields::new();
    let response = Response {
        status: StatusCode::OK,
        reason: None,
        headers: &none,
        body: BodyLength::Known(0),
    };
    begun
        .server
        .send_head(1, &response, true, &mut begun.out)
        .unwrap();
    // Sizes of 0 and 4,096, and then `:status: 200`.
    assert!(
        begun.written()[0]
            .3
            .starts_with(&[0x20, 0x3f, 0xe1, 0x1f, 0x88])
    );
}

#[test]
fn a_body_is_as_long_as_its_head_says() {
    let none = Fields::new();
    let response = |length| Response {
        status: StatusCode::OK,
        reason: None,
        headers: &none,
        body: BodyLength::Known(length),
    };
    let mut begun = begun();
    begun.receive(&headers(1, true, &get(&[]))).unwrap();
    let (server, out) = (&mut begun.server, &mut begun.out);
    assert_eq!(
        server.send_head(1, &response(5), true, out),
        Err(SendError::Length)
    );
    server.send_head(1, &response(5), false, out).unwrap();
    assert_eq!(
        server.connection.begin_data(1, 6, false, out),
        Err(SendError::Length)
    );
    assert_eq!(
        server.connection.begin_data(1, 4, true, out),
        Err(SendError::Length)
    );
    assert_eq!(
        server.connection.send_trailers(1, &Fields::new(), out),
        Err(SendError::Length)
    );
    assert_eq!(server.connection.begin_data(1, 5, true, out), Ok(5));
}

#[test]
fn malformed_requests_are_reset_and_others_answered() {
    for (fields, fault) in faulty_requests() {
        let mut begun = begun();
        let events = begun.receive(&headers(1, true, &block(&fields))).unwrap();
        match fault.status() {
            Some(_) => {
                assert_eq!(
                    events,
                    [Event::Refused {
                        stream: 1,
                        fault,
                        ends: true
                    }],
                    "{fields:?}"
                );
                assert_eq!(begun.server.connection.open_streams(), 1, "{fields:?}");
            }
            None => {
                assert_eq!(events, [Event::Failed { stream: 1, fault }], "{fields:?}");
                let code = fault.code().0.to_be_bytes().to_vec();
                assert_eq!(begun.written(), [(RST_STREAM, 0, 1, code)], "{fields:?}");
            }
        }
        // The connection goes on.
        let next = begun
            .receive(&headers(3, true, &get(&[("te", "trailers")])))
            .unwrap();
        assert!(
            matches!(next[..], [Event::Head { stream: 3, .. }]),
            "{fields:?}: {next:?}"
        );
    }
}

/// Fields of requests without a body, and what is wrong with them.
fn faulty_requests() -> Vec<(Vec<(&'static str, &'static str)>, StreamFault)> {
    use StreamFault as F;
    let pseudo = |left_out: &str| {
        let all = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "a"),
        ];
        all.into_iter()
            .filter(|it| it.0 != left_out)
            .collect::<Vec<_>>()
    };
    let with = |others: &[(&'static str, &'static str)]| [&pseudo("")[..], others].concat();
    let instead =
        |name: &'static str, value: &'static str| [&[(name, value)], &pseudo(name)[..]].concat();
    vec![
        (pseudo(":method"), F::Pseudo),
        (pseudo(":scheme"), F::Pseudo),
        (pseudo(":path"), F::Pseudo),
        (pseudo(":authority"), F::HostMissing),
        (with(&[(":path", "/")]), F::Pseudo),
        (with(&[("a", "b"), (":status", "200")]), F::Pseudo),
        (with(&[(":unknown", "x")]), F::Pseudo),
        ([&[("a", "b")], &pseudo("")[..]].concat(), F::Pseudo),
        (with(&[("X-Upper", "x")]), F::Field),
        (with(&[("Accept", "x")]), F::Field),
        (with(&[("a b", "x")]), F::Field),
        (with(&[("", "x")]), F::Field),
        (with(&[("connection", "close")]), F::Field),
        (with(&[("transfer-encoding", "chunked")]), F::Field),
        (with(&[("upgrade", "h2c")]), F::Field),
        (with(&[("te", "gzip")]), F::Field),
        (with(&[("a", " x")]), F::FieldValue),
        (with(&[("a", "x\t")]), F::FieldValue),
        (with(&[("a", "x\ny")]), F::FieldValue),
        (
            with(&[("content-length", "5"), ("content-length", "5")]),
            F::ContentLength,
        ),
        (with(&[("content-length", "+5")]), F::ContentLength),
        (with(&[("content-length", "5")]), F::LengthMismatch),
        (instead(":path", ""), F::Pseudo),
        (
            instead(":path", "*"),
            F::Target(catamaran_message::TargetFault::Form),
        ),
        (instead(":method", "G T"), F::Method),
        (instead(":scheme", "ftp"), F::Scheme),
        (instead(":authority", "a@b"), F::HostSyntax),
        (with(&[("host", "b")]), F::HostMismatch),
        (with(&[("host", "a"), ("host", "a")]), F::HostDuplicate),
        (
            with(&[("authorization", "a"), ("authorization", "a")]),
            F::FieldDuplicate,
        ),
        (with(&[("expect", "more")]), F::Expectation),
        (
            vec![(":method", "CONNECT"), (":authority", "a:1")],
            F::Connect,
        ),
    ]
}

#[test]
fn tunnels_are_taken_if_the_configuration_says_so() {
    let fields = block(&[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat"),
        (":authority", "a"),
    ]);
    let refused = begun().receive(&headers(1, false, &fields)).unwrap();
    assert_eq!(
        refused,
        [Event::Failed {
            stream: 1,
            fault: StreamFault::Pseudo
        }]
    );
    let config = Config {
        takes_tunnels: true,
        ..Config::default()
    };
    let taken = Begun::new(config)
        .receive(&headers(1, false, &fields))
        .unwrap();
    let [
        Event::Head {
            head, ends: false, ..
        },
    ] = &taken[..]
    else {
        panic!("{taken:?}");
    };
    assert_eq!(head.headers.text_of("upgrade"), Some("websocket"));
    assert_eq!(
        (&head.method, head.body),
        (&Method::CONNECT, BodyLength::Known(0))
    );
}

#[test]
fn trailers_end_a_body() {
    let mut begun = begun();
    let wire = [
        headers(1, false, &get(&[("content-length", "2")])),
        frame(DATA, 0, 1, b"hi"),
        headers(1, true, &block(&[("x-sum", "1")])),
    ];
    let events = begun.receive(&wire.concat()).unwrap();
    let fields = Fields::from_iter([("x-sum", "1")]);
    assert_eq!(events[2], Event::Trailers { stream: 1, fields });
    // Without an end, or with a pseudo-field, they are none.
    for (ends, name, fault) in [
        (false, "x-sum", StreamFault::Trailers),
        (true, ":path", StreamFault::Pseudo),
    ] {
        let mut begun = crate::server::begun();
        begun.receive(&headers(1, false, &get(&[]))).unwrap();
        let events = begun
            .receive(&headers(1, ends, &block(&[(name, "/")])))
            .unwrap();
        assert_eq!(events, [Event::Failed { stream: 1, fault }]);
    }
}

#[test]
fn streams_end_in_order() {
    let mut begun = begun();
    begun.receive(&headers(1, true, &get(&[]))).unwrap();
    begun.receive(&headers(3, false, &get(&[]))).unwrap();
    begun.receive(&headers(5, false, &get(&[]))).unwrap();
    // This side gives one up, the peer another one.
    begun
        .server
        .connection
        .reset(3, Code::CANCEL, &mut begun.out);
    assert_eq!(
        begun.receive(&frame(DATA, END_STREAM, 3, b"late")),
        Ok(vec![])
    );
    let reset = begun.receive(&frame(RST_STREAM, 0, 5, &8_u32.to_be_bytes()));
    assert_eq!(
        reset,
        Ok(vec![Event::Reset {
            stream: 5,
            code: Code::CANCEL
        }])
    );
    assert_eq!(begun.server.connection.open_streams(), 1);
    // Behind the end of its request a stream takes no data.
    let late = begun.receive(&frame(DATA, 0, 1, b"late"));
    assert_eq!(
        late,
        Ok(vec![Event::Failed {
            stream: 1,
            fault: StreamFault::AfterEnd
        }])
    );
    assert_eq!(
        begun.receive(&frame(DATA, 0, 5, b"late")),
        Err(Fault::StreamClosed)
    );
    assert_eq!(
        begun.receive(&[]),
        Err(Fault::StreamClosed),
        "a fault is final"
    );
}

#[test]
fn more_streams_than_agreed_are_refused() {
    let config = Config {
        streams_max: 1,
        ..Config::default()
    };
    let mut begun = Begun::new(config);
    begun.receive(&headers(1, true, &get(&[]))).unwrap();
    let events = begun.receive(&headers(3, true, &get(&[])));
    let fault = StreamFault::TooManyStreams;
    assert_eq!(events, Ok(vec![Event::Failed { stream: 3, fault }]));
    assert_eq!(
        begun.written(),
        [(RST_STREAM, 0, 3, 7_u32.to_be_bytes().to_vec())]
    );
}

#[test]
fn a_connection_ends_in_two_steps() {
    let mut begun = begun();
    begun.receive(&headers(1, true, &get(&[]))).unwrap();
    begun
        .server
        .connection
        .go_away(Code::NO_ERROR, false, &mut begun.out);
    begun.receive(&headers(3, true, &get(&[]))).unwrap();
    begun
        .server
        .connection
        .go_away(Code::NO_ERROR, true, &mut begun.out);
    let last: Vec<_> = begun.written().into_iter().map(|it| it.3[3]).collect();
    assert_eq!(last, [0xff, 3]);
    // What was on its way is read and not taken, its body too.
    assert_eq!(begun.receive(&headers(5, false, &get(&[]))), Ok(vec![]));
    assert_eq!(begun.receive(&frame(DATA, 0, 5, b"late")), Ok(vec![]));
    assert_eq!(frames(&begun.out), []);
}
