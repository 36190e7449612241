//! What each message of a typical exchange costs the client role, in instructions.
//!
//! Every step is a function that is not inlined, so a profile names it. Run a bench build with
//! the number of exchanges under `valgrind --tool=callgrind`, read `callgrind_annotate
//! --inclusive=yes`, and divide. Wall time says nothing here. As a test it makes sure that the
//! exchange still is the one that is to be counted.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use bytes::BytesMut;
use catamaran_ajp::error::Fault;
use catamaran_ajp::message::{body_chunk, end_response, send_headers};
use catamaran_ajp::{
    BodyLength, Client, ClientConfig, ClientEvent, Facts, PacketSize, Request, RequestError,
    Response,
};
use catamaran_message::Fields;
use http::{Method, StatusCode, Version};

fn main() {
    let exchanges = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(EXCHANGES);
    let headers = request_fields();
    let request = Request {
        method: &Method::GET,
        path: b"/app/hello",
        query: Some(b"name=world"),
        host: b"app.example.com",
        headers: &headers,
        body: BodyLength::Known(0),
    };
    let facts = Facts {
        version: Version::HTTP_11,
        remote_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        server_name: b"app.example.com",
        server_port: 80,
        is_ssl: false,
        announce_chunked: false,
        attributes: &[],
    };
    let response = response();
    let mut client = Client::new(ClientConfig::default());
    let mut input = BytesMut::with_capacity(PacketSize::DEFAULT.bytes());
    let mut out = BytesMut::with_capacity(PacketSize::DEFAULT.bytes());
    for _ in 0..exchanges {
        out.clear();
        send_request(&mut client, (&request, &facts), &mut out).expect("the request fits a packet");
        input.extend_from_slice(&response);
        let head = receive(&mut client, &mut input, &mut out).expect("the head is well-formed");
        assert!(matches!(head, Some(ClientEvent::Head(_))), "{head:?}");
        drop_event(head);
        let body = receive(&mut client, &mut input, &mut out).expect("the chunk is well-formed");
        assert!(
            matches!(&body, Some(ClientEvent::Body(bytes)) if bytes.len() == BODY_BYTES),
            "{body:?}"
        );
        drop_event(body);
        let end = receive(&mut client, &mut input, &mut out).expect("the end is well-formed");
        assert!(matches!(end, Some(ClientEvent::End)), "{end:?}");
        assert!(client.can_reuse(), "the exchange is over");
    }
}

#[inline(never)]
fn send_request(
    client: &mut Client,
    (request, facts): (&Request<'_>, &Facts<'_>),
    out: &mut BytesMut,
) -> Result<(), RequestError> {
    client.send_request(black_box(request), black_box(facts), out)
}

#[inline(never)]
fn receive(
    client: &mut Client,
    input: &mut BytesMut,
    out: &mut BytesMut,
) -> Result<Option<ClientEvent>, Fault> {
    client.receive(input, out)
}

/// Apart from [`receive`], which does not pay for what its caller does with the event.
#[inline(never)]
fn drop_event(event: Option<ClientEvent>) {
    drop(black_box(event));
}

/// What a browser sends, as a front passes it on.
fn request_fields() -> Fields {
    Fields::from_iter([
        ("Host", "www.example.org"),
        (
            "User-Agent",
            "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        ),
        (
            "Accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8",
        ),
        ("Accept-Language", "en-US,en;q=0.5"),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ("Referer", "http://www.example.org/shop/list?page=2"),
        ("DNT", "1"),
        (
            "Cookie",
            "JSESSIONID=0123456789ABCDEF0123456789ABCDEF.n1; theme=dark; _ga=GA1.2.1234567890.1234567890",
        ),
        ("Upgrade-Insecure-Requests", "1"),
        ("Sec-Fetch-Dest", "document"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Site", "same-origin"),
        ("Sec-Fetch-User", "?1"),
        ("Priority", "u=0, i"),
        ("Pragma", "no-cache"),
    ])
}

/// Three packets as a container sends them: head, one chunk, end.
fn response() -> BytesMut {
    let headers = Fields::from_iter([
        ("Content-Type", "text/html;charset=UTF-8"),
        ("Date", "Sat, 21 Nov 2026 02:30:09 GMT"),
        ("Cache-Control", "private, no-cache"),
        ("X-Request-ID", "0123456789abcdef"),
    ]);
    let mut packets = BytesMut::new();
    let head = Response {
        status: StatusCode::OK,
        reason: Some(b"200"),
        headers: &headers,
        body: BodyLength::Known(BODY_BYTES as u64),
    };
    send_headers::encode(&head, PacketSize::DEFAULT, &mut packets).expect("the head fits a packet");
    body_chunk::encode_prefix(BODY_BYTES, &mut packets);
    packets.resize(packets.len() + BODY_BYTES, b'x');
    packets.extend_from_slice(&[body_chunk::TERMINATOR]);
    packets.extend_from_slice(&end_response::REUSE);
    packets
}

/// Exchanges if no number is given, as when this runs as a test.
const EXCHANGES: u32 = 10;

/// Bytes of the response's body.
const BODY_BYTES: usize = 347;
