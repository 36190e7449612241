//! What each message of a typical exchange costs both roles, in instructions.
//!
//! Every step is a function that is not inlined, so a profile names it. Run a bench build with
//! the number of exchanges under `valgrind --tool=callgrind`, read `callgrind_annotate
//! --inclusive=yes`, and divide. Wall time says nothing here. As a test it makes sure that the
//! exchange still is the one that is to be counted.

use std::hint::black_box;

use bytes::BytesMut;
use catamaran_http1::{
    BodyLength, Client, ClientEvent, Fault, Limits, Request, RequestError, Response, ResponseError,
    Server, ServerEvent,
};
use catamaran_message::Fields;
use http::{Method, StatusCode};

fn main() {
    let exchanges = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(EXCHANGES);
    let mut server = Server::new(Limits::request());
    serve(&mut server, exchanges);
    let mut client = Client::new(Limits::response());
    ask(&mut client, exchanges);
}

/// The server role: a request comes in, a response goes out.
fn serve(server: &mut Server, exchanges: u32) {
    let headers = response_fields();
    let response = Response {
        status: StatusCode::OK,
        reason: None,
        headers: &headers,
        body: BodyLength::Known(BODY.len() as u64),
    };
    let mut input = BytesMut::with_capacity(BUFFER_BYTES);
    let mut out = BytesMut::with_capacity(BUFFER_BYTES);
    for _ in 0..exchanges {
        out.clear();
        input.extend_from_slice(REQUEST);
        let head = server_receive(server, &mut input).expect("the request is well-formed");
        assert!(matches!(head, Some(ServerEvent::Head(_))), "{head:?}");
        drop_request(head);
        server_send_head(server, &response, &mut out).expect("a response is due");
        server_send_body(server, &mut out);
        assert!(out.ends_with(b"x"), "the body was sent");
        assert!(server.can_reuse(), "the exchange is over");
    }
}

#[inline(never)]
fn server_receive(server: &mut Server, input: &mut BytesMut) -> Result<Option<ServerEvent>, Fault> {
    server.receive(input)
}

/// Apart from [`server_receive`], which does not pay for what its caller does with the event.
#[inline(never)]
fn drop_request(event: Option<ServerEvent>) {
    drop(black_box(event));
}

#[inline(never)]
fn server_send_head(
    server: &mut Server,
    response: &Response<'_>,
    out: &mut BytesMut,
) -> Result<(), ResponseError> {
    server.send_head(black_box(response), out)
}

#[inline(never)]
fn server_send_body(server: &mut Server, out: &mut BytesMut) {
    server.send_data(BODY, out);
    server.send_end(out).expect("the body has its length");
}

/// The client role: a request goes out, a response comes in.
fn ask(client: &mut Client, exchanges: u32) {
    let headers = request_fields();
    let request = Request {
        method: &Method::GET,
        path: b"/app/hello",
        query: Some(b"name=world"),
        host: b"app.example.com",
        headers: &headers,
        body: BodyLength::Known(0),
    };
    let mut input = BytesMut::with_capacity(BUFFER_BYTES);
    let mut out = BytesMut::with_capacity(BUFFER_BYTES);
    for _ in 0..exchanges {
        out.clear();
        client_send_request(client, &request, &mut out).expect("a request may be sent");
        input.extend_from_slice(RESPONSE);
        input.extend_from_slice(BODY);
        let head = client_receive(client, &mut input).expect("the response is well-formed");
        assert!(matches!(head, Some(ClientEvent::Head(_))), "{head:?}");
        drop_response(head);
        let body = client_receive(client, &mut input).expect("the body is well-formed");
        assert!(
            matches!(&body, Some(ClientEvent::Body(bytes)) if bytes.len() == BODY.len()),
            "{body:?}"
        );
        drop_response(body);
        let end = client_receive(client, &mut input).expect("the body has its length");
        assert!(matches!(end, Some(ClientEvent::End)), "{end:?}");
        assert!(client.can_reuse(), "the exchange is over");
    }
}

#[inline(never)]
fn client_send_request(
    client: &mut Client,
    request: &Request<'_>,
    out: &mut BytesMut,
) -> Result<(), RequestError> {
    client.send_request(black_box(request), out)
}

#[inline(never)]
fn client_receive(client: &mut Client, input: &mut BytesMut) -> Result<Option<ClientEvent>, Fault> {
    client.receive(input)
}

#[inline(never)]
fn drop_response(event: Option<ClientEvent>) {
    drop(black_box(event));
}

/// The fields of [`REQUEST`], as a front passes them on.
fn request_fields() -> Fields {
    let event = Server::new(Limits::request()).receive(&mut BytesMut::from(REQUEST));
    match event {
        Ok(Some(ServerEvent::Head(head))) => head.headers,
        other => panic!("{other:?} of a request"),
    }
}

/// The fields of [`RESPONSE`], as a front passes them on.
fn response_fields() -> Fields {
    let lines = RESPONSE.split(|byte| *byte == b'\n').skip(1);
    let lines = lines.map(|line| std::str::from_utf8(line.trim_ascii()).expect("text"));
    lines.filter_map(|line| line.split_once(": ")).collect()
}

/// Room for one message of either kind.
const BUFFER_BYTES: usize = 8192;

/// Exchanges if no number is given, as when this runs as a test.
const EXCHANGES: u32 = 10;

/// What a browser sends: fifteen fields.
const REQUEST: &[u8] = b"GET /shop/item HTTP/1.1\r\n\
    Host: www.example.org\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,\
    image/svg+xml,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Referer: http://www.example.org/shop/list?page=2\r\n\
    DNT: 1\r\n\
    Cookie: JSESSIONID=0123456789ABCDEF0123456789ABCDEF.n1; theme=dark; \
    _ga=GA1.2.1234567890.1234567890\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Dest: document\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Sec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-User: ?1\r\n\
    Priority: u=0, i\r\n\
    Pragma: no-cache\r\n\r\n";

/// What an application answers: ten fields beside those of all responses.
const RESPONSE: &[u8] = b"HTTP/1.1 200 \r\n\
    Content-Type: text/html;charset=UTF-8\r\n\
    Content-Length: 347\r\n\
    Date: Sat, 21 Nov 2026 02:30:09 GMT\r\n\
    Cache-Control: private, max-age=0, must-revalidate\r\n\
    Set-Cookie: JSESSIONID=0123456789ABCDEF0123456789ABCDEF; Path=/shop; HttpOnly; SameSite=Lax\r\n\
    X-Content-Type-Options: nosniff\r\n\
    X-Frame-Options: DENY\r\n\
    Content-Security-Policy: default-src 'self'; img-src 'self' data: https:; \
    script-src 'self' 'nonce-abc123'\r\n\
    Vary: Accept-Encoding, Origin\r\n\
    Content-Language: en-US\r\n\
    Expires: 0\r\n\
    Pragma: no-cache\r\n\
    Referrer-Policy: strict-origin-when-cross-origin\r\n\r\n";

/// The body that it answers with.
const BODY: &[u8] = &[b'x'; 347];
