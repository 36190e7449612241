//! Packets that Tomcat, Undertow, httpd and lighttpd accepted, byte for byte, and what the other
//! role makes of them.

use bytes::BytesMut;
use catamaran_ajp::{
    Attribute, BodyLength, Client, ClientConfig, ClientEvent, End, Facts, Request, Response,
    Server, ServerConfig, ServerEvent,
};
use catamaran_message::Fields;
use catamaran_message::name::HOST;
use http::{Method, StatusCode};

use crate::{FACTS, raw};

/// The bytes that `hex` spells; blanks are for the reader.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let pairs = digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

fn plain_get(headers: &Fields) -> Request<'_> {
    Request {
        method: &Method::GET,
        path: b"/",
        query: None,
        host: b"localhost",
        headers,
        body: BodyLength::Unknown,
    }
}

fn host() -> Fields {
    Fields::from_iter([(HOST, "localhost")])
}

#[test]
fn names_go_out_as_codes_or_as_they_came() {
    let mut bare = raw::get();
    bare.fields.clear();
    let received = bare
        .clone()
        .field(raw::field("X-Custom", "1"))
        .field(raw::field("uSER-aGENT", "2"))
        .field(raw::field("DNT", "3"))
        .field(raw::field("oRIGIN", "4"));
    let mut headers = read(&received.packet()).headers;
    headers.append("ORIGIN", "5");
    let sent = bare
        .field(raw::field("X-Custom", "1"))
        .field(raw::coded(0x0E, "2"))
        .field(raw::field("DNT", "3"))
        .field(raw::field("oRIGIN", "4"))
        .field(raw::field("Origin", "5"));
    let mut out = BytesMut::new();
    let mut client = Client::new(ClientConfig::default());
    client
        .send_request(&plain_get(&headers), &FACTS, &mut out)
        .unwrap();
    assert_eq!(out, sent.packet());
}

#[test]
fn a_get_is_written_as_in_the_reference() {
    let mut out = BytesMut::new();
    let mut client = Client::new(ClientConfig::default());
    client
        .send_request(&plain_get(&host()), &FACTS, &mut out)
        .unwrap();
    assert_eq!(out, bytes(GET));
    assert_eq!(out, raw::get().packet());
}

#[test]
fn a_get_is_read_as_in_the_reference() {
    let mut server = Server::new(ServerConfig::default());
    let mut input = BytesMut::from(&bytes(GET)[..]);
    let Some(ServerEvent::Request(head)) =
        server.receive(&mut input, &mut BytesMut::new()).unwrap()
    else {
        panic!("no request");
    };
    assert_eq!(head.method, Method::GET);
    assert_eq!(head.protocol, "HTTP/1.1");
    assert_eq!(head.path, "/");
    assert_eq!(head.query, None);
    assert_eq!(head.remote_addr.unwrap(), "127.0.0.1");
    assert_eq!(head.remote_host, None);
    assert_eq!(head.server_name, "localhost");
    assert_eq!(head.server_port, 80);
    assert!(!head.is_ssl);
    assert_eq!(head.headers, host());
    assert_eq!(head.body, BodyLength::Unknown);
    assert!(input.is_empty());
}

fn response(headers: &Fields, body: BodyLength) -> Response<'_> {
    Response {
        status: StatusCode::OK,
        reason: None,
        headers,
        body,
    }
}

#[test]
fn a_reply_is_written_as_in_the_reference() {
    let mut server = Server::new(ServerConfig::default());
    let mut input = BytesMut::from(&bytes(GET)[..]);
    let mut out = BytesMut::new();
    server.receive(&mut input, &mut out).unwrap().unwrap();
    let no_fields = Fields::new();
    let head = response(&no_fields, BodyLength::Known(2));
    server.send_head(&head, &mut out).unwrap();
    server.send_data(b"hi", &mut out);
    assert_eq!(server.send_end(&input, &mut out), End::Reuse);
    assert_eq!(out, bytes(&[HEAD_200, CHUNK_HI, END_REUSE].concat()));
}

#[test]
fn a_reply_is_read_as_in_the_reference() {
    let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
    let mut client = Client::new(ClientConfig::default());
    client
        .send_request(&plain_get(&host()), &FACTS, &mut out)
        .unwrap();
    client.finish_body(&mut out).unwrap();
    input.extend_from_slice(&bytes(&[HEAD_200, CHUNK_HI, END_REUSE].concat()));
    let mut next = || client.receive(&mut input, &mut out).unwrap().unwrap();
    let ClientEvent::Head(head) = next() else {
        panic!("no head");
    };
    assert_eq!(
        (head.status, head.content_length),
        (StatusCode::OK, Some(2))
    );
    assert_eq!(head.reason, None, "the usual one says nothing");
    assert!(head.headers.is_empty());
    assert!(matches!(next(), ClientEvent::Body(body) if body == "hi"));
    assert!(matches!(next(), ClientEvent::End));
    assert!(client.can_reuse() && input.is_empty());
}

#[test]
fn the_first_body_packet_is_as_in_the_reference() {
    let mut out = BytesMut::new();
    let mut client = Client::new(ClientConfig::default());
    let headers = host();
    let request = Request {
        method: &Method::POST,
        body: BodyLength::Known(5),
        ..plain_get(&headers)
    };
    client.send_request(&request, &FACTS, &mut out).unwrap();
    let head = out.split();
    client.send_data(b"hello", &mut out);
    assert_eq!(out, bytes(DATA_HELLO));

    let mut server = Server::new(ServerConfig::default());
    let mut input = head;
    input.unsplit(out);
    let mut next = || server.receive(&mut input, &mut BytesMut::new()).unwrap();
    assert!(
        matches!(next(), Some(ServerEvent::Request(head)) if head.body == BodyLength::Known(5))
    );
    assert!(matches!(next(), Some(ServerEvent::Body(body)) if body == "hello"));
    assert!(matches!(next(), Some(ServerEvent::BodyEnd)));
    assert!(next().is_none());
}

#[test]
fn the_constant_packets_are_as_in_the_reference() {
    use catamaran_ajp::message::{body_chunk, end_response, get_body_chunk, ping};
    assert_eq!(ping::CPING[..], bytes("12340001 0a"));
    assert_eq!(ping::CPONG[..], bytes("41420001 09"));
    assert_eq!(end_response::REUSE[..], bytes("41420002 0501"));
    assert_eq!(end_response::CLOSE[..], bytes("41420002 0500"));
    assert_eq!(body_chunk::FLUSH[..], bytes("41420004 03000000"));
    let mut out = BytesMut::new();
    get_body_chunk::encode(8186, &mut out);
    assert_eq!(out, bytes("41420003 06 1ffa"));
}

/// Every part a request can have, in the numbers of the reference.
#[test]
fn a_request_with_everything_is_written_and_read_back() {
    let attributes = [
        Attribute::RemoteUser(b"ann"),
        Attribute::AuthType(b"BASIC"),
        Attribute::JvmRoute(b"r1"),
        Attribute::SslCert(b"-----BEGIN\nEND-----\n"),
        Attribute::SslCipher(b"TLS_AES_128_GCM_SHA256"),
        Attribute::SslSession(b"abcd"),
        Attribute::SslKeySize(128),
        Attribute::Secret(b"s3cret"),
        Attribute::Request {
            name: b"AJP_REMOTE_PORT",
            value: b"40000",
        },
    ];
    let mut headers = host();
    headers.append("x-custom", "1");
    headers.append("x-custom", "2");
    let method = Method::from_bytes(b"PATCH").unwrap();
    let request = Request {
        method: &method,
        path: b"/a%2Fb;v=1",
        query: Some(b"q=%20&r"),
        body: BodyLength::Known(0),
        ..plain_get(&headers)
    };
    let facts = Facts {
        is_ssl: true,
        server_port: 443,
        attributes: &attributes,
        ..FACTS
    };
    let mut out = BytesMut::new();
    let mut client = Client::new(ClientConfig::default());
    client.send_request(&request, &facts, &mut out).unwrap();

    let expected = raw::get()
        .method(255)
        .uri(raw::text("/a%2Fb;v=1"))
        .field(raw::field("x-custom", "1"))
        .field(raw::field("x-custom", "2"))
        .field(raw::coded(0x08, "0"))
        .attribute(raw::attribute(5, "q=%20&r"))
        .attribute(raw::attribute(3, "ann"))
        .attribute(raw::attribute(4, "BASIC"))
        .attribute(raw::attribute(6, "r1"))
        .attribute(raw::attribute(7, "-----BEGIN\nEND-----\n"))
        .attribute(raw::attribute(8, "TLS_AES_128_GCM_SHA256"))
        .attribute(raw::attribute(9, "abcd"))
        .attribute(vec![0x0B, 0, 128])
        .attribute(raw::attribute(0x0C, "s3cret"))
        .attribute(raw::named("AJP_REMOTE_PORT", "40000"))
        .attribute(raw::attribute(0x0D, "PATCH"));
    let mut expected = expected.packet();
    let port_at = expected
        .windows(3)
        .position(|bytes| bytes == [0, 80, 0])
        .unwrap();
    expected[port_at..port_at + 3].copy_from_slice(&[0x01, 0xBB, 1]);
    assert_eq!(out, expected);

    let head = read(&out);
    assert_eq!(head.method, method);
    assert_eq!(head.headers, headers);
    assert_eq!(head.body, BodyLength::Known(0));
    assert_has_everything(*head);
}

/// Checks the texts of the request above.
fn assert_has_everything(head: catamaran_ajp::RequestHead) {
    assert_eq!(head.path, "/a%2Fb;v=1");
    assert_eq!(head.query.unwrap(), "q=%20&r");
    assert_eq!((head.server_port, head.is_ssl), (443, true));
    let read = head.attributes;
    assert_eq!(read.remote_user.unwrap(), "ann");
    assert_eq!(read.auth_type.unwrap(), "BASIC");
    assert_eq!(read.jvm_route.unwrap(), "r1");
    let ssl = read.ssl.unwrap();
    assert_eq!(ssl.cert.unwrap(), "-----BEGIN\nEND-----\n");
    assert_eq!(ssl.cipher.unwrap(), "TLS_AES_128_GCM_SHA256");
    assert_eq!(ssl.session.unwrap(), "abcd");
    assert_eq!(ssl.key_size, Some(128));
    assert_eq!(read.secret.unwrap(), "s3cret");
    assert_eq!(read.other, [("AJP_REMOTE_PORT".into(), "40000".into())]);
}

fn read(packet: &[u8]) -> Box<catamaran_ajp::RequestHead> {
    let mut server = Server::new(ServerConfig::default());
    match server.receive(&mut BytesMut::from(packet), &mut BytesMut::new()) {
        Ok(Some(ServerEvent::Request(head))) => head,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_method_is_known_both_ways() {
    for (code, name) in METHODS {
        assert_eq!(
            read(&raw::get().method(code).packet()).method.as_str(),
            name
        );
        let method = Method::from_bytes(name.as_bytes()).unwrap();
        let mut out = BytesMut::new();
        let headers = host();
        let request = Request {
            method: &method,
            ..plain_get(&headers)
        };
        Client::new(ClientConfig::default())
            .send_request(&request, &FACTS, &mut out)
            .unwrap();
        assert_eq!(out, raw::get().method(code).packet(), "{name}");
    }
    for name in ["PATCH", "QUERY", "CONNECT", "FOO", "get"] {
        let stored = raw::get()
            .method(255)
            .attribute(raw::attribute(0x0D, name))
            .packet();
        assert_eq!(read(&stored).method.as_str(), name);
        let method = Method::from_bytes(name.as_bytes()).unwrap();
        let mut out = BytesMut::new();
        let headers = host();
        let request = Request {
            method: &method,
            ..plain_get(&headers)
        };
        Client::new(ClientConfig::default())
            .send_request(&request, &FACTS, &mut out)
            .unwrap();
        assert_eq!(out, stored, "{name}");
    }
}

#[test]
fn every_request_field_is_known_both_ways() {
    for (code, name) in REQUEST_FIELDS {
        let mut bare = raw::get();
        bare.fields.clear();
        let by_code = bare.clone().field(raw::coded(code, "5")).packet();
        let by_name = bare.clone().field(raw::field(name, "5")).packet();
        let by_shouting = bare.field(raw::field(name.to_uppercase(), "5")).packet();
        for packet in [&by_code, &by_name, &by_shouting] {
            let head = read(packet);
            match name {
                "content-length" => assert_eq!(head.body, BodyLength::Known(5)),
                "connection" => assert!(head.headers.is_empty()),
                _ => assert_eq!(head.headers.text_of(name), Some("5")),
            }
        }
        let mut headers = Fields::new();
        let mut request = plain_get(&headers);
        if name == "content-length" {
            request.body = BodyLength::Known(5);
        } else {
            headers.insert(name, "5");
            request = plain_get(&headers);
        }
        let mut out = BytesMut::new();
        Client::new(ClientConfig::default())
            .send_request(&request, &FACTS, &mut out)
            .unwrap();
        assert_eq!(out, by_code);
    }
}

#[test]
fn every_response_field_is_known_both_ways() {
    for (code, name) in RESPONSE_FIELDS {
        let headers = Fields::from_iter([(name, "5")]);
        // That field is not sent as it stands.
        let length = match name {
            "content-length" => BodyLength::Known(5),
            _ => BodyLength::Unknown,
        };
        let mut server = Server::new(ServerConfig::default());
        let mut out = BytesMut::new();
        let mut input = BytesMut::from(&bytes(GET)[..]);
        server.receive(&mut input, &mut out).unwrap().unwrap();
        let head = response(&headers, length);
        server.send_head(&head, &mut out).unwrap();
        let by_code = raw::send_headers(200, &[raw::coded(code, "5")]);
        assert_eq!(out, by_code);
        let by_name = raw::send_headers(200, &[raw::field(name.to_uppercase(), "5")]);
        for packet in [by_code, by_name] {
            let mut client = Client::new(ClientConfig::default());
            client
                .send_request(&plain_get(&host()), &FACTS, &mut out)
                .unwrap();
            let mut input = BytesMut::from(&packet[..]);
            let Ok(Some(ClientEvent::Head(head))) = client.receive(&mut input, &mut out) else {
                panic!("no head");
            };
            match name {
                "content-length" => assert_eq!(head.content_length, Some(5)),
                _ => assert_eq!(head.headers, headers),
            }
        }
    }
}

const GET: &str = "1234003f 02 02 0008485454502f312e3100 00012f00 00093132372e302e302e3100 ffff
    00096c6f63616c686f737400 0050 00 0001 a00b 00096c6f63616c686f737400 ff";
const HEAD_200: &str = "41420010 04 00c8 00024f4b00 0001 a003 00013200";
const CHUNK_HI: &str = "41420006 03 0002 6869 00";
const END_REUSE: &str = "41420002 05 01";
const DATA_HELLO: &str = "12340007 0005 68656c6c6f";

/// Method numbers of the reference, written out again here.
#[rustfmt::skip]
const METHODS: [(u8, &str); 27] = [
    (1, "OPTIONS"), (2, "GET"), (3, "HEAD"), (4, "POST"), (5, "PUT"), (6, "DELETE"), (7, "TRACE"),
    (8, "PROPFIND"), (9, "PROPPATCH"), (10, "MKCOL"), (11, "COPY"), (12, "MOVE"), (13, "LOCK"),
    (14, "UNLOCK"), (15, "ACL"), (16, "REPORT"), (17, "VERSION-CONTROL"), (18, "CHECKIN"),
    (19, "CHECKOUT"), (20, "UNCHECKOUT"), (21, "SEARCH"), (22, "MKWORKSPACE"), (23, "UPDATE"),
    (24, "LABEL"), (25, "MERGE"), (26, "BASELINE-CONTROL"), (27, "MKACTIVITY"),
];

/// Request field numbers of the reference.
#[rustfmt::skip]
const REQUEST_FIELDS: [(u8, &str); 14] = [
    (1, "accept"), (2, "accept-charset"), (3, "accept-encoding"), (4, "accept-language"),
    (5, "authorization"), (6, "connection"), (7, "content-type"), (8, "content-length"),
    (9, "cookie"), (10, "cookie2"), (11, "host"), (12, "pragma"), (13, "referer"),
    (14, "user-agent"),
];

/// Response field numbers of the reference.
#[rustfmt::skip]
const RESPONSE_FIELDS: [(u8, &str); 11] = [
    (1, "content-type"), (2, "content-language"), (3, "content-length"), (4, "date"),
    (5, "last-modified"), (6, "location"), (7, "set-cookie"), (8, "set-cookie2"),
    (9, "servlet-engine"), (10, "status"), (11, "www-authenticate"),
];
