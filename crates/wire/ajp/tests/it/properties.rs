//! Properties that hold for all inputs, shown on random ones.
//!
//! The bodies of the fuzz targets serve here too: random bytes decide what both roles play against
//! each other, and how the bytes between them are split.

use std::net::{IpAddr, Ipv4Addr};

use bytes::BytesMut;
use catamaran_ajp::message::fields::FieldName;
use catamaran_ajp::message::forward_request::ForwardRequest;
use catamaran_ajp::{
    Attribute, BodyLength, Client, ClientConfig, ClientEvent, Facts, Request, Response, Server,
    ServerConfig, ServerEvent,
};
use catamaran_message::Fields;
use http::{Method, StatusCode, Version};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::corpus::bodies;
use crate::{FACTS, raw};

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![
        (0..27_usize).prop_map(|index| catamaran_ajp::code::METHODS[index].to_owned()),
        "[A-Z][A-Z-]{0,20}",
    ]
    .prop_map(|name| Method::from_bytes(name.as_bytes()).unwrap())
}

/// Fields that a codec passes on as they are.
fn headers() -> impl Strategy<Value = Fields> {
    let coded = prop::sample::select(vec![
        "accept",
        "host",
        "authorization",
        "user-agent",
        "content-type",
        "set-cookie",
        "location",
        "date",
        "status",
        "www-authenticate",
        "pragma",
    ]);
    let name = prop_oneof![coded.prop_map(str::to_owned), "x-[a-z0-9-]{1,60}"];
    let value = "[ -~\\t\u{80}-\u{ff}]{0,60}";
    vec((name, value), 0..20).prop_map(|fields| {
        let pairs = fields.iter().map(|(name, value)| {
            let value = value.trim_matches([' ', '\t']);
            (name.as_str(), value)
        });
        pairs.collect()
    })
}

fn body_length() -> impl Strategy<Value = BodyLength> {
    prop_oneof![
        Just(BodyLength::Unknown),
        Just(BodyLength::Known(0)),
        (1..=i64::MAX as u64).prop_map(BodyLength::Known),
    ]
}

/// A field with which a client tries to say how its body is framed.
fn claim_of_framing() -> impl Strategy<Value = (&'static str, &'static str)> {
    let name = prop::sample::select(vec!["content-length", "transfer-encoding"]);
    let value = prop::sample::select(vec!["0", "7", "chunked", "identity", "gzip, chunked", ""]);
    (name, value)
}

/// The fields of a FORWARD_REQUEST's payload that say how long the body is.
fn framing_fields(payload: &[u8]) -> Vec<(&'static str, String)> {
    let mut framing = Vec::new();
    for field in ForwardRequest::decode(payload).unwrap().fields {
        let field = field.unwrap();
        let name = match &field.name {
            FieldName::Coded(name) => name.spelling().as_bytes(),
            FieldName::Literal(name) => name,
        };
        for known in ["content-length", "transfer-encoding"] {
            if name.eq_ignore_ascii_case(known.as_bytes()) {
                let value = String::from_utf8_lossy(field.value.unwrap_or_default());
                framing.push((known, value.into_owned()));
            }
        }
    }
    framing
}

/// Feeds `bytes` to `receive` in pieces of the given lengths, over and over.
fn in_pieces<E: std::fmt::Debug>(
    bytes: &[u8],
    lengths: &[usize],
    mut receive: impl FnMut(&mut BytesMut, &mut BytesMut) -> Option<E>,
) -> (Vec<String>, Vec<u8>) {
    let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
    let (mut rest, mut events) = (bytes, Vec::new());
    for len in lengths.iter().cycle() {
        let (piece, later) = rest.split_at((*len).min(rest.len()));
        rest = later;
        input.extend_from_slice(piece);
        while let Some(event) = receive(&mut input, &mut out) {
            events.push(format!("{event:?}"));
        }
        if rest.is_empty() {
            break;
        }
    }
    (events, out.to_vec())
}

proptest! {
    #[test]
    fn a_request_arrives_as_it_was_sent(
        method in method(),
        path in "/[!-~]{0,200}",
        query in option::of("[!-~]{0,100}"),
        headers in headers(),
        body in body_length(),
        announce_chunked: bool,
        user in option::of("[ -~]{1,20}"),
        key_size: u16,
        others in vec(("[!-~]{1,20}", "[ -~\\n]{0,20}"), 0..5),
        is_ssl: bool,
        server_port: u16,
    ) {
        let mut attributes = vec![Attribute::SslKeySize(key_size)];
        attributes.extend(user.as_ref().map(|user| Attribute::RemoteUser(user.as_bytes())));
        attributes.extend(others.iter().map(|(name, value)| Attribute::Request {
            name: name.as_bytes(),
            value: value.as_bytes(),
        }));
        let request = Request {
            method: &method,
            path: path.as_bytes(),
            query: query.as_ref().map(String::as_bytes),
            host: b"example.com",
            headers: &headers,
            body,
        };
        let facts = Facts {
            version: Version::HTTP_11,
            remote_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            server_name: b"example.com",
            server_port,
            is_ssl,
            announce_chunked,
            attributes: &attributes,
        };
        let (mut wire, mut out) = (BytesMut::new(), BytesMut::new());
        Client::new(ClientConfig::default()).send_request(&request, &facts, &mut wire).unwrap();
        let mut server = Server::new(ServerConfig::default());
        let Some(ServerEvent::Request(head)) = server.receive(&mut wire, &mut out).unwrap() else {
            panic!("no request");
        };
        prop_assert!(wire.is_empty());
        prop_assert_eq!(head.method, method);
        prop_assert_eq!(head.path, path);
        prop_assert_eq!(head.query, query.map(Into::into));
        prop_assert_eq!(head.headers, headers);
        prop_assert_eq!(head.body, body);
        prop_assert_eq!((head.server_port, head.is_ssl), (server_port, is_ssl));
        prop_assert_eq!(head.attributes.ssl.unwrap().key_size, Some(u32::from(key_size)));
        prop_assert_eq!(head.attributes.remote_user, user.map(Into::into));
        let read = head.attributes.other.into_iter();
        let sent = others.into_iter().map(|(name, value)| (name.into(), value.into()));
        prop_assert!(read.eq(sent));
    }

    /// A container may heed either field, so a head has exactly one of them, and it is ours: a
    /// length if that is known, `chunked` or nothing if it is not.
    #[test]
    fn a_head_says_one_thing_of_its_body(
        headers in headers(),
        claims in vec(claim_of_framing(), 0..4),
        body in body_length(),
        announce_chunked: bool,
    ) {
        let mut headers = headers;
        for (name, value) in claims {
            headers.append(name, value);
        }
        let request = Request { body, ..plain_get(&headers) };
        let facts = Facts { announce_chunked, ..FACTS };
        let mut wire = BytesMut::new();
        Client::new(ClientConfig::default()).send_request(&request, &facts, &mut wire).unwrap();
        let expected = match body {
            BodyLength::Known(length) => vec![("content-length", length.to_string())],
            BodyLength::Unknown if announce_chunked => {
                vec![("transfer-encoding", "chunked".to_owned())]
            }
            BodyLength::Unknown => vec![],
        };
        let framing = framing_fields(&wire[4..]);
        prop_assert_eq!(framing, expected);
    }

    #[test]
    fn a_response_head_arrives_as_it_was_sent(
        status in 200..=999_u16,
        reason in "[ -~]{0,40}",
        headers in headers(),
        length in option::of(0..=i64::MAX as u64),
    ) {
        let status = StatusCode::from_u16(status).unwrap();
        let (mut up, mut down) = (BytesMut::new(), BytesMut::new());
        let mut server = Server::new(ServerConfig::default());
        server.receive(&mut BytesMut::from(&raw::get().packet()[..]), &mut down).unwrap();
        let head = Response {
            status,
            reason: Some(reason.as_bytes()),
            headers: &headers,
            body: length.map_or(BodyLength::Unknown, BodyLength::Known),
        };
        server.send_head(&head, &mut down).unwrap();

        let mut client = Client::new(ClientConfig::default());
        client.send_request(&plain_get(&Fields::new()), &FACTS, &mut up).unwrap();
        let Some(ClientEvent::Head(head)) = client.receive(&mut down, &mut up).unwrap() else {
            panic!("no head");
        };
        prop_assert!(down.is_empty());
        prop_assert_eq!(head.status, status);
        prop_assert_eq!(head.headers, headers);
        let is_empty = matches!(status.as_u16(), 204 | 205);
        prop_assert_eq!(head.content_length, length.filter(|_| !is_empty));
        let says_more = !reason.is_empty() && reason != status.as_str();
        prop_assert_eq!(head.reason, says_more.then(|| reason.into()));
    }

    #[test]
    fn splits_do_not_change_what_a_server_sees(
        lengths in vec(1..600_usize, 1..20),
        bodies in vec(1..3000_usize, 1..4),
    ) {
        let mut bytes = raw::to_container(&[0x0A]);
        let total: usize = bodies.iter().sum();
        bytes.extend(raw::post(total).packet());
        for len in bodies {
            bytes.extend(raw::data(&vec![b'x'; len]));
        }
        let run = |lengths: &[usize]| {
            let mut server = Server::new(ServerConfig::default());
            in_pieces(&bytes, lengths, |input, out| {
                let mut receive = || server.receive(input, out).unwrap();
                receive().or_else(|| {
                    server.want_body(out);
                    server.receive(input, out).unwrap()
                })
            })
        };
        prop_assert_eq!(run(&lengths), run(&[bytes.len()]));
    }

    #[test]
    fn splits_do_not_change_what_a_client_sees(
        lengths in vec(1..600_usize, 1..20),
        chunks in vec(0..3000_usize, 0..5),
        asks in 0..4_usize,
    ) {
        let mut bytes = raw::get_body_chunk(100).repeat(asks);
        bytes.extend(raw::send_headers(200, &[raw::coded(1, "text/plain")]));
        for len in chunks {
            bytes.extend(raw::chunk(&vec![b'x'; len]));
        }
        bytes.extend(raw::end_response(1));
        let run = |lengths: &[usize]| {
            let mut client = Client::new(ClientConfig::default());
            client.send_request(&plain_get(&Fields::new()), &FACTS, &mut BytesMut::new()).unwrap();
            client.finish_body(&mut BytesMut::new()).unwrap();
            in_pieces(&bytes, lengths, |input, out| client.receive(input, out).unwrap())
        };
        prop_assert_eq!(run(&lengths), run(&[bytes.len()]));
    }

    /// Both roles against each other; also: DATA travels unasked if and only if the head that was
    /// sent has a Content-Length above zero, and then once.
    #[test]
    fn both_roles_understand_each_other(bytes in vec(any::<u8>(), 0..600)) {
        bodies::exchange(&bytes);
    }

    #[test]
    fn no_bytes_upset_the_framing(bytes in vec(any::<u8>(), 0..300)) {
        bodies::packet(&bytes);
        bodies::forward_request(&bytes);
        bodies::response(&bytes);
    }

    /// A good request with a few bytes changed reaches deeper than random bytes do.
    #[test]
    fn no_damage_to_a_request_upsets_the_server(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut payload = raw::post(5)
            .field(raw::field("x-a", "b"))
            .attribute(raw::attribute(5, "q"))
            .attribute(vec![0x0B, 0, 128])
            .attribute(raw::named("a", "b"))
            .payload();
        for (index, byte) in changes {
            let at = index.index(payload.len());
            payload[at] = byte;
        }
        bodies::forward_request(&payload);
    }
}

fn plain_get(headers: &Fields) -> Request<'_> {
    Request {
        method: &Method::GET,
        path: b"/",
        query: None,
        host: b"example.com",
        headers,
        body: BodyLength::Unknown,
    }
}
