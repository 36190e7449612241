//! The bodies of the AJP fuzz targets.
//!
//! They are plain functions that panic on a finding. The fuzzer calls them, and a test of the crate replays the
//! committed corpus through them.

#[path = "ajp/duel.rs"]
mod duel;
#[path = "ajp/entropy.rs"]
mod entropy;

use std::net::{IpAddr, Ipv4Addr};

use bytes::{BufMut, Bytes, BytesMut};
use catamaran_ajp::message::forward_request::ForwardRequest;
use catamaran_ajp::message::send_headers::SendHeaders;
use catamaran_ajp::message::{body_chunk, data, end_response, get_body_chunk, ping};
use catamaran_ajp::{
    BodyLength, Client, ClientConfig, ClientEvent, Facts, Fault, PacketSize, Request, RequestHead,
    Server, ServerConfig, ServerEvent, packet,
};
use catamaran_message::Fields;
use http::{Method, StatusCode, Version};

use self::entropy::Entropy;

/// Reads packets, and runs every decoder on their content.
pub(crate) fn packet(input: &[u8]) {
    for size in [PacketSize::DEFAULT, PacketSize::MAX] {
        for magic in [packet::CLIENT_MAGIC, packet::SERVER_MAGIC] {
            let whole = packets(input, magic, size, input.len());
            assert_eq!(
                whole,
                packets(input, magic, size, 1),
                "splits change nothing"
            );
            for payload in whole.0 {
                decode_all(&payload);
            }
        }
    }
    decode_all(input);
}

/// Reads the packets of `input`, of which `step` bytes arrive at a time. Returns them, and whether the input was
/// refused.
fn packets(input: &[u8], magic: [u8; 2], size: PacketSize, step: usize) -> (Vec<Bytes>, bool) {
    let mut buffer = BytesMut::new();
    let mut packets = Vec::new();
    for piece in input.chunks(step.max(1)) {
        buffer.extend_from_slice(piece);
        loop {
            match packet::take(&mut buffer, magic, size) {
                Ok(Some(payload)) => {
                    assert!(payload.len() <= size.payload_max());
                    packets.push(payload);
                }
                Ok(None) => break,
                Err(_) => return (packets, true),
            }
        }
    }
    (packets, false)
}

/// Runs every decoder on `payload`; none may panic, and what they return must lie inside of it.
fn decode_all(payload: &[u8]) {
    let is_inside =
        |view: &[u8]| view.is_empty() || payload.as_ptr_range().contains(&view.as_ptr());
    if let Ok(mut request) = ForwardRequest::decode(payload) {
        // A field takes at least four bytes.
        assert!(request.fields.left() * 4 <= payload.len());
        for field in request.fields.by_ref().flatten() {
            assert!(field.value.is_none_or(is_inside));
        }
    }
    if let Ok(mut response) = SendHeaders::decode(payload) {
        for field in response.fields.by_ref().flatten() {
            assert!(field.value.is_none_or(is_inside));
        }
        let _ = response.finish();
    }
    for view in [data::decode(payload).ok(), body_chunk::decode(payload).ok()] {
        assert!(view.is_none_or(is_inside));
    }
    chunk_is_what_its_count_says(payload);
    let _ = get_body_chunk::decode(payload);
    let _ = end_response::decode(payload);
    let _ = ping::decode_pong(payload);
}

/// Checks that a chunk is as long as its count says, whatever byte is after it, or none.
fn chunk_is_what_its_count_says(payload: &[u8]) {
    let Ok(chunk) = body_chunk::decode(payload) else {
        return;
    };
    let end = body_chunk::PREFIX_BYTES + chunk.len();
    assert_eq!(payload[1..3], (chunk.len() as u16).to_be_bytes());
    assert_eq!(chunk, &payload[body_chunk::PREFIX_BYTES..end]);
    for last in [&[][..], b"\0", b"A", b"\xff"] {
        let other = [&payload[..end], last].concat();
        assert_eq!(body_chunk::decode(&other), Ok(chunk));
    }
    assert!(payload.len() <= end + 1, "more than one byte follows");
}

/// Reads a request head. If it is accepted, it must be harmless, and the same after being written and read again.
pub(crate) fn forward_request(input: &[u8]) {
    let payload = &input[..input.len().min(PacketSize::DEFAULT.payload_max())];
    let mut packet = BytesMut::new();
    packet.put_slice(&packet::CLIENT_MAGIC);
    packet.put_u16(payload.len() as u16);
    packet.put_slice(payload);
    let mut out = BytesMut::new();
    let mut server = Server::new(ServerConfig::default());
    match server.receive(&mut packet, &mut out) {
        Ok(Some(ServerEvent::Request(head))) => {
            assert_harmless(&head);
            assert_repeatable(&head);
        }
        Ok(Some(event)) => panic!("{event:?} before a request"),
        Ok(None) => assert!(packet.is_empty()),
        Err(fault) => assert_answered(fault, &mut server, &mut out),
    }
}

fn assert_harmless(head: &RequestHead) {
    let is_line = |text: &Bytes| !text.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
    assert!(head.path.starts_with(b"/") || head.path == b"*"[..]);
    assert!(is_line(&head.path) && is_line(&head.protocol) && is_line(&head.server_name));
    assert!(head.query.as_ref().is_none_or(is_line));
    assert!(head.headers.len() <= ServerConfig::default().fields_max);
    assert!(!head.headers.contains("content-length"));
    assert!(!head.headers.contains("transfer-encoding"));
    for (name, _) in &head.attributes.other {
        assert!(!name.is_empty() && is_line(name));
        // Such an attribute makes Tomcat serve a file of its choice (CVE-2020-1938).
        assert!(!name.starts_with(b"javax.servlet.include."));
    }
}

/// Writes `head` as a web server would send it, and reads it back.
fn assert_repeatable(head: &RequestHead) {
    let request = Request {
        method: &head.method,
        path: &head.path,
        query: head.query.as_deref(),
        host: &head.server_name,
        headers: &head.headers,
        body: head.body,
    };
    let facts = Facts {
        version: Version::HTTP_11,
        remote_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        server_name: &head.server_name,
        server_port: head.server_port,
        is_ssl: head.is_ssl,
        announce_chunked: false,
        attributes: &[],
    };
    let (mut up, mut down) = (BytesMut::new(), BytesMut::new());
    if Client::new(ClientConfig::default())
        .send_request(&request, &facts, &mut up)
        .is_err()
    {
        assert!(up.is_empty(), "an error writes nothing");
        return;
    }
    let mut server = Server::new(ServerConfig::default());
    let Ok(Some(ServerEvent::Request(again))) = server.receive(&mut up, &mut down) else {
        panic!("what was sent is not accepted");
    };
    assert_eq!(again.method, head.method);
    assert_eq!(again.path, head.path);
    assert_eq!(again.query, head.query);
    assert_eq!(
        (again.server_port, again.is_ssl),
        (head.server_port, head.is_ssl)
    );
    assert_eq!(again.body, head.body);
    assert_eq!(again.headers, head.headers);
}

/// Checks that a fault with a status is answered once, and one without is not answered.
fn assert_answered(fault: Fault, server: &mut Server, out: &mut BytesMut) {
    assert!(out.is_empty());
    if let Some(status) = fault.status() {
        assert!(status.is_client_error());
        server.refuse(status, out);
        assert!(out.ends_with(&end_response::CLOSE));
        let len = out.len();
        server.refuse(status, out);
        assert_eq!(out.len(), len, "one answer");
    }
}

/// Plays both roles against each other; see `duel`.
pub(crate) fn exchange(input: &[u8]) {
    duel::duel(input);
}

/// Reads a response: however its bytes are split, the events must be the same, and end once.
pub(crate) fn response(input: &[u8]) {
    let mut entropy = Entropy::new(input);
    let kind = entropy.byte();
    let config = ClientConfig {
        interim_max: kind >> 6,
        ..ClientConfig::default()
    };
    let bytes = entropy.rest();
    let whole = responses(kind, config, bytes, bytes.len());
    for step in [1, 2, 7] {
        assert_eq!(
            whole,
            responses(kind, config, bytes, step),
            "splits change nothing"
        );
    }
}

/// The events of a client that sent a request of `kind` and receives `bytes`, `step` at a time.
fn responses(kind: u8, config: ClientConfig, bytes: &[u8], step: usize) -> (String, Option<Fault>) {
    let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
    let mut client = Client::new(config);
    // The bits of `kind`: one for the method, two for the body, three for a ping in the place of the request.
    let method = if kind & 1 == 0 {
        Method::GET
    } else {
        Method::HEAD
    };
    let body = match kind >> 1 & 3 {
        0 => BodyLength::Known(0),
        1 => BodyLength::Known(10_000),
        _ => BodyLength::Unknown,
    };
    match kind >> 3 & 7 {
        0 => client.send_ping(&mut out),
        _ => send_plain(&mut client, &method, body, &mut out),
    }
    let mut log = String::new();
    let (mut declared, mut received, mut has_ended) = (None, 0, false);
    for piece in bytes.chunks(step.max(1)) {
        input.extend_from_slice(piece);
        loop {
            let event = match client.receive(&mut input, &mut out) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(fault) => {
                    assert!(!client.can_reuse() && client.body_credit() == 0);
                    return (log, Some(fault));
                }
            };
            assert!(!has_ended, "{event:?} after the end");
            log.push_str(&format!("{event:?};"));
            match event {
                ClientEvent::Head(head) => {
                    let may_have_body =
                        method != Method::HEAD && head.status != StatusCode::NOT_MODIFIED;
                    declared = head.content_length.filter(|_| may_have_body);
                    assert_clean(&head.headers);
                }
                ClientEvent::Body(body) => {
                    assert!(!body.is_empty() && method != Method::HEAD);
                    received += body.len() as u64;
                }
                ClientEvent::BodyWanted => {
                    let len = client.body_credit().min(100);
                    assert!(len > 0, "credit comes with the wish");
                    client.send_data(&[b'x'; 100][..len], &mut out);
                }
                ClientEvent::End => {
                    has_ended = true;
                    assert!(declared.is_none_or(|declared| declared == received));
                }
                ClientEvent::Pong => has_ended = true,
                ClientEvent::Interim(head) => assert!(head.status.is_informational()),
                ClientEvent::Flush => {}
            }
        }
    }
    (log, None)
}

fn send_plain(client: &mut Client, method: &Method, body: BodyLength, out: &mut BytesMut) {
    let request = Request {
        method,
        path: b"/",
        query: None,
        host: b"example.com",
        headers: &Fields::new(),
        body,
    };
    let facts = Facts {
        version: Version::HTTP_11,
        remote_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        server_name: b"example.com",
        server_port: 80,
        is_ssl: false,
        announce_chunked: false,
        attributes: &[],
    };
    client
        .send_request(&request, &facts, out)
        .expect("a plain request can be sent");
    client.send_data(&vec![b'x'; client.body_credit().min(100)], out);
}

/// Checks that no field frames the response or ends a line.
fn assert_clean(headers: &Fields) {
    for name in [
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "keep-alive",
    ] {
        assert!(!headers.contains(name), "{name} was passed on");
    }
    for field in headers.iter() {
        assert!(
            !field
                .value()
                .iter()
                .any(|byte| matches!(byte, b'\r' | b'\n' | 0))
        );
    }
}
