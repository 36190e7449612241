//! What the client role promises a web server beyond refusing bad input.

use bytes::BytesMut;
use catamaran_ajp::{
    Attribute, BodyError, BodyLength, Client, ClientConfig, ClientEvent, Facts, PacketSize,
    Request, RequestError, ResponseHead,
};
use catamaran_message::Fields;
use catamaran_message::name::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::Method;

use crate::FACTS;
use crate::raw::{self, coded, field, send_headers, send_headers_of, text};

fn request<'a>(headers: &'a Fields, body: BodyLength) -> Request<'a> {
    Request {
        method: &Method::POST,
        path: b"/",
        query: None,
        host: b"localhost",
        headers,
        body,
    }
}

/// A client that has sent a POST with this body.
fn posting(body: BodyLength) -> Client {
    let mut client = Client::new(ClientConfig::default());
    client
        .send_request(&request(&Fields::new(), body), &FACTS, &mut BytesMut::new())
        .unwrap();
    client
}

/// What a client makes of `packets`; panics on a fault.
fn take(client: &mut Client, packets: &[Vec<u8>]) -> Vec<ClientEvent> {
    let mut input = BytesMut::from(&packets.concat()[..]);
    let mut out = BytesMut::new();
    let mut events = Vec::new();
    while let Some(event) = client.receive(&mut input, &mut out).unwrap() {
        events.push(event);
    }
    assert!(input.is_empty());
    events
}

/// The head that a client makes of `packet`, in answer to a request of `method`.
fn head_for(method: &Method, packet: Vec<u8>) -> Box<ResponseHead> {
    let mut client = Client::new(ClientConfig::default());
    let headers = Fields::new();
    let request = Request {
        method,
        ..request(&headers, BodyLength::Known(0))
    };
    client
        .send_request(&request, &FACTS, &mut BytesMut::new())
        .unwrap();
    match take(&mut client, &[packet]).remove(0) {
        ClientEvent::Head(head) => head,
        other => panic!("{other:?}"),
    }
}

fn sent(request: &Request<'_>) -> Result<BytesMut, RequestError> {
    sent_with(request, &FACTS)
}

fn sent_with(request: &Request<'_>, facts: &Facts<'_>) -> Result<BytesMut, RequestError> {
    let mut out = BytesMut::from(&b"before"[..]);
    let result = Client::new(ClientConfig::default()).send_request(request, facts, &mut out);
    let packet = out.split_off(6);
    assert_eq!(out, b"before"[..]);
    assert!(
        result.is_ok() || packet.is_empty(),
        "an error writes nothing"
    );
    result.map(|()| packet)
}

#[test]
fn the_first_packet_of_a_known_length_needs_no_asking_the_others_do() {
    let mut client = posting(BodyLength::Known(10_000));
    let mut out = BytesMut::new();
    assert_eq!(client.body_credit(), 8186);
    client.send_data(b"x", &mut out);
    assert_eq!(client.body_credit(), 0);
    take(&mut client, &[raw::get_body_chunk(8186)]);
    assert_eq!(client.body_credit(), 8186);
    client.send_data(&[b'x'; 8186], &mut out);
    take(&mut client, &[raw::get_body_chunk(8186)]);
    assert_eq!(client.body_credit(), 10_000 - 8187);
    client.send_data(&[b'x'; 10_000 - 8187], &mut out);
    client.finish_body(&mut out).unwrap();
    assert_eq!(client.body_credit(), 0);
    let all = [1, 8186, 10_000 - 8187].map(|len| raw::data(&vec![b'x'; len]));
    assert_eq!(out, all.concat());
}

#[test]
fn no_body_and_unknown_lengths_have_no_credit_until_asked() {
    assert_eq!(posting(BodyLength::Known(0)).body_credit(), 0);
    let mut client = posting(BodyLength::Unknown);
    assert_eq!(client.body_credit(), 0);
    let events = take(&mut client, &[raw::get_body_chunk(100)]);
    assert!(matches!(events[..], [ClientEvent::BodyWanted]));
    assert_eq!(client.body_credit(), 100);
}

#[test]
fn several_asks_are_answered_one_by_one_with_the_least() {
    let mut client = posting(BodyLength::Unknown);
    take(
        &mut client,
        &[raw::get_body_chunk(100), raw::get_body_chunk(50)],
    );
    let mut out = BytesMut::new();
    for left in [2, 1] {
        assert_eq!(
            (client.body_credit(), client.body_wanted()),
            (50, 50 * left)
        );
        client.send_data(&[b'x'; 50], &mut out);
    }
    assert_eq!((client.body_credit(), client.body_wanted()), (0, 0));
    take(&mut client, &[raw::get_body_chunk(70)]);
    assert_eq!(client.body_credit(), 70);
}

#[test]
fn what_is_wanted_in_all_is_no_more_than_is_left() {
    let mut client = posting(BodyLength::Known(20_000));
    assert_eq!(client.body_wanted(), 8186);
    take(&mut client, &[raw::get_body_chunk(8186)]);
    assert_eq!(client.body_wanted(), 2 * 8186);
    take(&mut client, &[raw::get_body_chunk(8186)]);
    assert_eq!(client.body_wanted(), 20_000);
    let mut out = BytesMut::new();
    for len in [8186, 8186, 20_000 - 2 * 8186] {
        client.send_data(&vec![b'x'; len], &mut out);
    }
    assert_eq!(client.body_wanted(), 0);
}

#[test]
#[should_panic(expected = "exceed the credit")]
fn data_that_nobody_asked_for_is_a_bug_of_the_caller() {
    posting(BodyLength::Unknown).send_data(b"x", &mut BytesMut::new());
}

#[test]
fn the_response_may_start_before_the_owed_packet_is_sent() {
    // Tomcat withholds the end of the response until it has that packet.
    let mut client = posting(BodyLength::Known(5));
    take(&mut client, &[send_headers(200, &[]), raw::chunk(b"hi")]);
    assert_eq!(client.body_credit(), 5);
    client.send_data(b"hello", &mut BytesMut::new());
    client.finish_body(&mut BytesMut::new()).unwrap();
    take(&mut client, &[raw::end_response(1)]);
    assert!(client.can_reuse());
}

/// CVE-2008-5519, CVE-2009-1191, CVE-2012-3502: only what ended on both sides is used again.
#[test]
fn a_connection_is_reused_only_when_both_messages_are_complete() {
    let end = [send_headers(200, &[]), raw::end_response(1)];
    let mut out = BytesMut::new();

    let mut unsent = posting(BodyLength::Known(5));
    assert_eq!(
        unsent.finish_body(&mut out),
        Err(BodyError::Short { missing: 5 })
    );
    take(&mut unsent, &end);
    assert!(!unsent.can_reuse() && !unsent.is_idle());

    let mut partly_sent = posting(BodyLength::Known(5));
    partly_sent.send_data(b"hell", &mut out);
    assert_eq!(
        partly_sent.finish_body(&mut out),
        Err(BodyError::Short { missing: 1 })
    );
    take(&mut partly_sent, &end);
    assert!(!partly_sent.can_reuse());

    let mut asked = posting(BodyLength::Unknown);
    take(&mut asked, &[&[raw::get_body_chunk(10)][..], &end].concat());
    assert!(!asked.can_reuse());

    let mut complete = posting(BodyLength::Known(5));
    assert!(!complete.can_reuse());
    complete.send_data(b"hello", &mut out);
    take(&mut complete, &end);
    assert!(complete.can_reuse() && complete.is_idle());
    assert_eq!(complete.receive_eof(), Ok(()));

    let mut refused = posting(BodyLength::Known(0));
    take(
        &mut refused,
        &[send_headers(403, &[]), raw::end_response(0)],
    );
    assert!(!refused.can_reuse() && !refused.is_idle());
    assert_eq!(refused.receive_eof(), Ok(()));
    let headers = Fields::new();
    let again = refused.send_request(&request(&headers, BodyLength::Known(0)), &FACTS, &mut out);
    assert_eq!(again, Err(RequestError::Busy));
}

/// CVE-2023-34981: the second response has no head, and must not borrow the first one's.
#[test]
fn no_head_outlives_its_exchange() {
    let mut client = posting(BodyLength::Known(0));
    take(
        &mut client,
        &[send_headers(200, &[field("a", "b")]), raw::end_response(1)],
    );
    let mut out = BytesMut::new();
    client
        .send_request(
            &request(&Fields::new(), BodyLength::Known(0)),
            &FACTS,
            &mut out,
        )
        .unwrap();
    let mut input = BytesMut::from(&raw::end_response(1)[..]);
    let fault = client.receive(&mut input, &mut out).unwrap_err();
    assert_eq!(fault.token(), "ajp-end-before-head");
}

#[test]
fn a_request_is_framed_by_its_body_alone() {
    // CL together with TE, or a TE of one's own, is how requests are smuggled (CVE-2022-26377).
    let mut headers = Fields::new();
    headers.insert(CONTENT_LENGTH, "7");
    headers.append(TRANSFER_ENCODING, "chunked, chunked");
    let mut bare = raw::get().method(4);
    bare.fields.clear();
    let known = sent(&request(&headers, BodyLength::Known(5))).unwrap();
    assert_eq!(known, bare.clone().field(coded(raw::LENGTH, "5")).packet());
    let none = sent(&request(&headers, BodyLength::Known(0))).unwrap();
    assert_eq!(none, bare.clone().field(coded(raw::LENGTH, "0")).packet());
    let unknown = sent(&request(&headers, BodyLength::Unknown)).unwrap();
    assert_eq!(unknown, bare.packet());
    let facts = Facts {
        announce_chunked: true,
        ..FACTS
    };
    let chunked = field("Transfer-Encoding", "chunked");
    assert_eq!(
        sent_with(&request(&headers, BodyLength::Unknown), &facts).unwrap(),
        bare.clone().field(chunked).packet()
    );
    let both = sent_with(&request(&headers, BodyLength::Known(5)), &facts).unwrap();
    assert_eq!(both, known);
}

#[test]
fn a_head_that_does_not_fit_is_not_sent() {
    let value = |len: usize| "v".repeat(len);
    let mut headers = Fields::new();
    headers.insert("a", value(1));
    let rest = sent(&request(&headers, BodyLength::Unknown)).unwrap().len() - 1;
    headers.insert("a", value(8192 - rest));
    assert_eq!(
        sent(&request(&headers, BodyLength::Unknown)).unwrap().len(),
        8192
    );
    for excess in [1, 60_000, 200_000] {
        headers.insert("a", value(8192 - rest + excess));
        let error = sent(&request(&headers, BodyLength::Unknown)).unwrap_err();
        let RequestError::HeadTooLarge { bytes, max: 8188 } = error else {
            panic!("{error}");
        };
        assert!(bytes >= 8188 + excess, "{bytes}");
    }
}

#[test]
fn a_larger_packet_size_carries_more_both_ways() {
    let config = ClientConfig {
        packet_size: PacketSize::MAX,
        reply_packet_size: PacketSize::MAX,
        ..ClientConfig::default()
    };
    let mut client = Client::new(config);
    let mut headers = Fields::new();
    headers.insert("a", "v".repeat(60_000));
    let mut out = BytesMut::new();
    client
        .send_request(
            &request(&headers, BodyLength::Known(100_000)),
            &FACTS,
            &mut out,
        )
        .unwrap();
    assert_eq!(client.body_credit(), 65_530);
    let head = send_headers(200, &[field("b", "v".repeat(60_000))]);
    let events = take(&mut client, &[head, raw::chunk(&[b'x'; 65_528])]);
    assert!(matches!(&events[1], ClientEvent::Body(body) if body.len() == 65_528));
}

#[test]
fn too_many_or_too_long_fields_are_not_sent() {
    let mut headers = Fields::new();
    for index in 0..100 {
        headers.insert(&*format!("x-{index}"), "v");
    }
    assert!(sent(&request(&headers, BodyLength::Unknown)).is_ok());
    let error = sent(&request(&headers, BodyLength::Known(0))).unwrap_err();
    assert_eq!(
        error,
        RequestError::TooManyFields {
            fields: 101,
            max: 100
        }
    );
    for (len, is_sent) in [(255, true), (256, false)] {
        let headers = Fields::from_iter([(&*"n".repeat(len), "v")]);
        assert_eq!(
            sent(&request(&headers, BodyLength::Unknown)).is_ok(),
            is_sent
        );
    }
}

#[test]
fn only_absolute_targets_without_controls_and_blanks_are_sent() {
    let headers = Fields::new();
    let good = request(&headers, BodyLength::Known(0));
    for path in ["/a b", "/a\r\nb", "/\x7F", "", "a", "*", "http://h/"] {
        let bad = Request {
            path: path.as_bytes(),
            ..good
        };
        assert!(sent(&bad).is_err(), "{path:?}");
    }
    for query in ["a b", "\n", "\0"] {
        let bad = Request {
            query: Some(query.as_bytes()),
            ..good
        };
        assert_eq!(sent(&bad), Err(RequestError::Control("query")), "{query:?}");
    }
    let encoded = Request {
        path: b"/%0d%0a%25%2F;a=b",
        query: Some(b""),
        ..good
    };
    assert!(sent(&encoded).is_ok());
    let asterisk = Request {
        path: b"*",
        method: &Method::OPTIONS,
        ..good
    };
    assert!(sent(&asterisk).is_ok());
    let endless = Request {
        body: BodyLength::Known(1 << 63),
        ..good
    };
    assert_eq!(sent(&endless), Err(RequestError::BodyTooLong));
}

#[test]
fn a_server_name_with_controls_is_not_sent() {
    let headers = Fields::new();
    let request = request(&headers, BodyLength::Known(0));
    for server_name in [&b"h\n"[..], b"h\r", b"1\0"] {
        let bad = Facts {
            server_name,
            ..FACTS
        };
        assert!(
            matches!(sent_with(&request, &bad), Err(RequestError::Control(_))),
            "{bad:?}"
        );
    }
}

#[test]
fn attributes_with_controls_are_not_sent() {
    let named = |name, value| Attribute::Request { name, value };
    for (attribute, is_sent) in [
        (Attribute::RemoteUser(b"a\r\nb"), false),
        (Attribute::SslCipher(b"a\0"), false),
        (Attribute::Secret(b"a\0"), false),
        (named(b"a\0", b"v"), false),
        (named(b"", b"v"), false),
        (named(b"a", b"v\0"), false),
        (named(b"a", b"line\nline"), true),
        (Attribute::SslCert(b"-----BEGIN\r\n"), true),
    ] {
        let (headers, attributes) = (Fields::new(), [attribute]);
        let facts = Facts {
            attributes: &attributes,
            ..FACTS
        };
        let result = sent_with(&request(&headers, BodyLength::Known(0)), &facts);
        assert_eq!(result.is_ok(), is_sent, "{attribute:?}");
    }
}

#[test]
fn fields_of_one_connection_are_dropped_from_a_response() {
    let head = head_for(
        &Method::GET,
        send_headers(
            200,
            &[
                field("Transfer-Encoding", "chunked"),
                field("Connection", "x-hop, close"),
                field("Keep-Alive", "timeout=5"),
                field("Proxy-Connection", "keep-alive"),
                field("Trailer", "x"),
                field("Upgrade", "h2c"),
                field("TE", "trailers"),
                field("X-Hop", "1"),
                coded(7, "a=1"),
                coded(7, "b=2"),
                field("x-end", "2"),
                coded(3, "0"),
            ],
        ),
    );
    let kept = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("x-end", "2")];
    assert_eq!(head.headers, Fields::from_iter(kept));
    assert_eq!(head.content_length, Some(0));
}

#[test]
fn a_reason_is_kept_if_it_says_something() {
    let reason = |status, reason: Vec<u8>| {
        head_for(&Method::GET, send_headers_of(status, &reason, 0, &[])).reason
    };
    assert_eq!(reason(200, text("Fine")).unwrap(), "Fine");
    assert_eq!(reason(200, text("201")).unwrap(), "201");
    assert_eq!(reason(201, text("OK")).unwrap(), "OK");
    assert_eq!(reason(200, text("OK")), None);
    assert_eq!(reason(200, text("200")), None);
    assert_eq!(reason(200, text("")), None);
    assert_eq!(reason(200, raw::null()), None);
}

#[test]
fn a_length_without_a_body_is_kept_where_http_has_a_use_for_it() {
    let length =
        |method, status| head_for(&method, send_headers(status, &[coded(3, "100")])).content_length;
    assert_eq!(length(Method::HEAD, 200), Some(100));
    assert_eq!(length(Method::GET, 304), Some(100));
    assert_eq!(length(Method::GET, 204), None);
    assert_eq!(length(Method::GET, 200), Some(100));
}

#[test]
fn interim_heads_pass_if_they_are_wanted() {
    let config = ClientConfig {
        interim_max: 2,
        ..ClientConfig::default()
    };
    let early = || send_headers(103, &[field("link", "</a>")]);
    let mut client = Client::new(config);
    let headers = Fields::new();
    let post = request(&headers, BodyLength::Known(0));
    let mut out = BytesMut::new();
    client.send_request(&post, &FACTS, &mut out).unwrap();
    let all = [
        early(),
        early(),
        send_headers(200, &[]),
        raw::end_response(1),
    ];
    let events = take(&mut client, &all);
    assert!(matches!(
        &events[..],
        [ClientEvent::Interim(first), ClientEvent::Interim(_), ClientEvent::Head(_), ClientEvent::End]
            if first.headers.text_of("link") == Some("</a>")
    ));
    client.send_request(&post, &FACTS, &mut out).unwrap();
    let mut input = BytesMut::from(&[early(), early(), early()].concat()[..]);
    client.receive(&mut input, &mut out).unwrap();
    client.receive(&mut input, &mut out).unwrap();
    let fault = client.receive(&mut input, &mut out).unwrap_err();
    assert_eq!(fault.token(), "ajp-interim-head");
}

#[test]
fn a_ping_is_answered_between_exchanges() {
    let mut client = Client::new(ClientConfig::default());
    let mut out = BytesMut::new();
    client.send_ping(&mut out);
    assert_eq!(out, raw::to_container(&[0x0A]));
    assert!(!client.is_idle() && client.receive_eof().is_err());
    let events = take(&mut client, &[raw::to_web_server(&[9])]);
    assert!(matches!(events[..], [ClientEvent::Pong]));
    assert!(client.is_idle());
}

#[test]
fn an_idle_connection_is_small() {
    assert!(size_of::<Client>() <= 224, "{}", size_of::<Client>());
    assert!(
        size_of::<catamaran_ajp::Server>() <= 128,
        "{}",
        size_of::<catamaran_ajp::Server>()
    );
}

#[test]
fn secrets_stay_out_of_debug_output() {
    let attribute = Attribute::Secret(b"s3cret");
    assert_eq!(format!("{attribute:?}"), "Attribute(Secret)");
}

/// Containers pass on what applications set; HTTP/2 forbids white space around values.
#[test]
fn white_space_around_values_goes_where_they_enter() {
    let fields = [
        field("X-A", "v "),
        field("X-B", "\tv"),
        field("X-C", " \t "),
        field("Set-Cookie", " a=b "),
        field("Content-Length", "2 "),
    ];
    let head = head_for(&Method::POST, send_headers(200, &fields));
    for (name, value) in [
        ("x-a", "v"),
        ("x-b", "v"),
        ("x-c", ""),
        ("set-cookie", "a=b"),
    ] {
        assert_eq!(head.headers.text_of(name), Some(value), "{name}");
    }
    assert_eq!(head.content_length, Some(2));
}
