//! Responses as a client sees them, and what it may ask.

use bytes::BytesMut;
use catamaran_http2::{Client, Code, Config, Event, Fault, Limits, SendError, StreamFault};
use catamaran_message::{BodyLength, Fields, Request, ResponseHead, Scheme};
use http::{Method, StatusCode};

use crate::transcript::{
    ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PUSH_PROMISE, RST_STREAM, SETTINGS, block,
    frame, frames, headers,
};

struct Begun {
    client: Client,
    input: BytesMut,
    out: BytesMut,
}

impl Begun {
    fn new() -> Self {
        let mut out = BytesMut::new();
        let mut begun = Self {
            client: Client::new(Limits::response(), Config::default(), &mut out),
            input: BytesMut::new(),
            out,
        };
        assert!(begun.out.starts_with(crate::transcript::PREFACE));
        begun.receive(&frame(SETTINGS, 0, 0, &[])).unwrap();
        begun.receive(&frame(SETTINGS, ACK, 0, &[])).unwrap();
        begun.out.clear();
        begun
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Event<ResponseHead>>, Fault> {
        self.input.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(event) = self.client.receive(&mut self.input, &mut self.out)? {
            events.push(event);
        }
        Ok(events)
    }

    fn ask(&mut self, method: Method, body: BodyLength) -> Result<u32, SendError> {
        let request = Request {
            method: &method,
            path: b"/",
            query: Some(b"q"),
            host: b"a",
            headers: &Fields::new(),
            body,
        };
        self.client
            .send_request(&request, Scheme::Http, &mut self.out)
    }
}

#[test]
fn a_response_may_have_interim_heads_before_it() {
    let mut begun = Begun::new();
    assert_eq!(begun.ask(Method::GET, BodyLength::Known(0)), Ok(1));
    let sent = frames(&begun.out);
    assert_eq!(
        (sent[0].0, sent[0].1, sent[0].2),
        (HEADERS, END_HEADERS | END_STREAM, 1)
    );
    let wire = [
        headers(1, false, &block(&[(":status", "103"), ("link", "</a>")])),
        headers(
            1,
            false,
            &block(&[(":status", "200"), ("content-length", "2")]),
        ),
        frame(DATA, END_STREAM, 1, b"hi"),
    ];
    let events = begun.receive(&wire.concat()).unwrap();
    let [
        Event::Head { head: hints, .. },
        Event::Head {
            head, ends: false, ..
        },
        data,
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        (hints.status, head.status),
        (StatusCode::EARLY_HINTS, StatusCode::OK)
    );
    assert_eq!(head.content_length, Some(2));
    assert_eq!(
        *data,
        Event::Body {
            stream: 1,
            data: "hi".into(),
            ends: true
        }
    );
    assert_eq!(begun.client.connection.open_streams(), 0);
}

#[test]
fn malformed_responses_are_reset() {
    use StreamFault as F;
    for (fields, method, ends, fault) in [
        (&[(":status", "20")][..], Method::GET, true, F::Pseudo),
        (&[(":status", "abc")], Method::GET, true, F::Pseudo),
        (&[], Method::GET, true, F::Pseudo),
        (
            &[(":status", "200"), (":path", "/")],
            Method::GET,
            true,
            F::Pseudo,
        ),
        (&[(":status", "101")], Method::GET, false, F::Pseudo),
        (&[(":status", "103")], Method::GET, true, F::Pseudo),
        (
            &[(":status", "200"), ("connection", "close")],
            Method::GET,
            true,
            F::Field,
        ),
        (
            &[(":status", "200"), ("content-length", "2")],
            Method::GET,
            true,
            F::LengthMismatch,
        ),
    ] {
        let mut begun = Begun::new();
        begun.ask(method, BodyLength::Known(0)).unwrap();
        let events = begun.receive(&headers(1, ends, &block(fields)));
        assert_eq!(
            events,
            Ok(vec![Event::Failed { stream: 1, fault }]),
            "{fields:?}"
        );
    }
    // What has no body may announce the length of one.
    let mut begun = Begun::new();
    begun.ask(Method::HEAD, BodyLength::Known(0)).unwrap();
    let fields = block(&[(":status", "200"), ("content-length", "2")]);
    let events = begun.receive(&headers(1, true, &fields)).unwrap();
    assert!(matches!(&events[..], [Event::Head { head, .. }] if head.content_length == Some(2)));
}

#[test]
fn requests_that_were_not_looked_at_are_told() {
    let mut begun = Begun::new();
    for stream in [1, 3, 5] {
        assert_eq!(begun.ask(Method::GET, BodyLength::Known(0)), Ok(stream));
    }
    let goaway = frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    let fault = StreamFault::NotProcessed;
    let expected = vec![
        Event::GoAway {
            code: Code::NO_ERROR,
        },
        Event::Failed { stream: 3, fault },
        Event::Failed { stream: 5, fault },
    ];
    assert_eq!(begun.receive(&goaway), Ok(expected));
    assert_eq!(
        begun.ask(Method::GET, BodyLength::Known(0)),
        Err(SendError::NoStream)
    );
    // The first one goes on.
    let reset = frame(RST_STREAM, 0, 1, &7_u32.to_be_bytes());
    let expected = vec![Event::Reset {
        stream: 1,
        code: Code::REFUSED_STREAM,
    }];
    assert_eq!(begun.receive(&reset), Ok(expected));
}

#[test]
fn a_server_that_leaves_gets_no_further_requests() {
    let mut begun = Begun::new();
    begun.ask(Method::GET, BodyLength::Known(0)).unwrap();
    let goaway = frame(GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let code = Code::NO_ERROR;
    assert_eq!(begun.receive(&goaway), Ok(vec![Event::GoAway { code }]));
    assert_eq!(
        begun.ask(Method::GET, BodyLength::Known(0)),
        Err(SendError::NoStream)
    );
    assert!(begun.client.is_leaving());
    assert_eq!(begun.client.connection.open_streams(), 1, "it goes on");
}

#[test]
fn streams_that_were_given_up_are_no_fault_however_many_there_were() {
    let mut begun = Begun::new();
    for _ in 0..300 {
        let stream = begun.ask(Method::GET, BodyLength::Known(0)).unwrap();
        begun
            .client
            .connection
            .reset(stream, Code::CANCEL, &mut begun.out);
    }
    let head = headers(1, false, &block(&[(":status", "200")]));
    assert_eq!(begun.receive(&head), Ok(vec![]));
    assert_eq!(begun.receive(&frame(DATA, 0, 1, b"late")), Ok(vec![]));
    // Both settings, the acknowledgement, and the head; data was on its way.
    assert_eq!(begun.client.connection.take_tally().useless, 3);
}

#[test]
fn a_server_opens_no_streams() {
    for wire in [
        headers(2, true, &block(&[(":status", "200")])),
        headers(1, true, &block(&[(":status", "200")])),
        frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]),
        frame(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 1]),
    ] {
        assert_eq!(
            Begun::new().receive(&wire),
            Err(Fault::Protocol),
            "{wire:?}"
        );
    }
}

#[test]
fn a_server_says_how_many_streams_it_takes() {
    let mut begun = Begun::new();
    begun
        .receive(&frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 1]))
        .unwrap();
    assert_eq!(begun.client.streams_max(), 1);
    assert_eq!(begun.ask(Method::GET, BodyLength::Unknown), Ok(1));
    assert_eq!(
        begun.ask(Method::GET, BodyLength::Known(0)),
        Err(SendError::NoStream)
    );
    begun
        .client
        .connection
        .reset(1, Code::CANCEL, &mut begun.out);
    assert_eq!(begun.ask(Method::GET, BodyLength::Known(0)), Ok(3));
}

#[test]
fn a_hundred_streams_are_opened_before_the_settings_come() {
    let mut out = BytesMut::new();
    let client = Client::new(Limits::response(), Config::default(), &mut out);
    let mut begun = Begun {
        client,
        input: BytesMut::new(),
        out,
    };
    for _ in 0..100 {
        begun.ask(Method::GET, BodyLength::Known(0)).unwrap();
    }
    let refused = Err(SendError::NoStream);
    assert_eq!(begun.ask(Method::GET, BodyLength::Known(0)), refused);
    assert!(!begun.client.is_leaving());
    begun.receive(&frame(SETTINGS, 0, 0, &[])).unwrap();
    assert_eq!(begun.ask(Method::GET, BodyLength::Known(0)), Ok(201));
}

#[test]
fn what_would_be_read_in_another_way_is_not_sent() {
    let mut begun = Begun::new();
    let none = Fields::new();
    let request = |path: &'static [u8], host: &'static [u8]| Request {
        method: &Method::GET,
        path,
        query: None,
        host,
        headers: &none,
        body: BodyLength::Known(0),
    };
    let mut send = |request| {
        begun
            .client
            .send_request(&request, Scheme::Http, &mut begun.out)
    };
    for path in [&b""[..], b"a", b"/a b", b"*", b"/\r\n"] {
        assert_eq!(
            send(request(path, b"a")),
            Err(SendError::Target),
            "{path:?}"
        );
    }
    for host in [&b""[..], b"a b", b"a\r\n"] {
        assert_eq!(send(request(b"/", host)), Err(SendError::Host), "{host:?}");
    }
}
