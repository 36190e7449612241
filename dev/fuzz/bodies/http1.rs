//! Checks HTTP/1.1 with any bytes.
//!
//! These are plain functions that panic on a finding: the fuzz targets `http1_*` call them, and so do the property
//! tests and the replay of the committed corpus in the crate's own tests. The input itself decides where it is cut,
//! so that a corpus consists of plain messages, and every run is the same.

#[path = "http1/exchange.rs"]
mod exchange;
#[path = "http1/feed.rs"]
pub(crate) mod feed;

use bytes::BytesMut;
use catamaran_http1::{Authority, BodyLength, Client, Limits, Request, Response, Server};
use catamaran_message::Fields;
use http::Method;

use self::feed::{Ending, SeenRequest, SeenResponse, ask, serve};

/// Reads any bytes as requests: cuts must change nothing, and an accepted request must mean the same to the next
/// server after a client has written it again.
pub(crate) fn request(data: &[u8]) {
    let uncut = serve(Limits::request(), &[data], true);
    for pieces in [cut(data), data.chunks(1).collect()] {
        assert_eq!(serve(Limits::request(), &pieces, true), uncut);
    }
    for seen in uncut.0.iter().filter(|seen| seen.complete) {
        let (relayed, ending) = serve(ample(Limits::request()), &[&relayed_request(seen)], true);
        assert_eq!(ending, Ending::Open(0));
        let [again] = &relayed[..] else {
            panic!("one request became {relayed:?}")
        };
        assert_eq!(again.head.method, seen.head.method);
        assert_eq!(again.head.target.path, seen.head.target.path);
        assert_eq!(again.head.target.query, seen.head.target.query);
        assert_eq!(again.head.body == NO_BODY, seen.head.body == NO_BODY);
        assert_eq!(
            end_to_end(&again.head.headers),
            end_to_end(&seen.head.headers)
        );
        assert_eq!(again.body, seen.body);
        if let Some(authority) = &seen.head.authority {
            assert_eq!(again.head.authority.as_ref(), Some(authority));
        }
    }
}

/// Reads any bytes as responses: cuts must change nothing, and an accepted response must mean the same to the next
/// client after a server has written it again.
pub(crate) fn response(data: &[u8]) {
    for method in [Method::GET, Method::HEAD] {
        let uncut = ask(Limits::response(), &method, &[data], true);
        for pieces in [cut(data), data.chunks(1).collect()] {
            assert_eq!(ask(Limits::response(), &method, &pieces, true), uncut);
        }
        let (seen, _) = uncut;
        let Some(head) = seen.head.as_ref().filter(|_| seen.complete) else {
            continue;
        };
        let (again, ending) = ask(
            ample(Limits::response()),
            &method,
            &[&relayed_response(&seen, &method)],
            true,
        );
        assert_eq!(ending, Ending::Open(0));
        let again_head = again.head.as_ref().expect("a final response");
        assert!(again.complete);
        assert_eq!(again_head.status, head.status);
        assert_eq!(again_head.headers, head.headers);
        if head.reason.is_some() {
            assert_eq!(again_head.reason, head.reason);
        }
        assert_eq!(again.body, seen.body);
    }
}

/// Reads any bytes as a chunked body: cuts must change nothing, a second reader that knows only sizes must find the
/// same body and end, and the body must survive being written again.
pub(crate) fn chunked(data: &[u8]) {
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let message = [head, data].concat();
    let (requests, ending) = serve(Limits::request(), &[&message], true);
    for body in [cut(data), data.chunks(1).collect()] {
        let pieces = [vec![&head[..]], body].concat();
        let (cut_requests, cut_ending) = serve(Limits::request(), &pieces, true);
        assert_eq!((&cut_requests, &cut_ending), (&requests, &ending));
    }
    let (seen, further) = requests.split_first().expect("the head is good");
    if seen.complete {
        let (body, behind) = unchunk(data).expect("an accepted body is well-formed");
        assert_eq!(seen.body, body);
        let alone = serve(Limits::request(), &[behind], true);
        assert_eq!(
            (further, &ending),
            (&alone.0[..], &alone.1),
            "what follows the body"
        );
        let (again, _) = serve(Limits::request(), &[&relayed_request(seen)], true);
        assert_eq!((again[0].complete, &again[0].body), (true, &body));
    }
}

/// Plays both roles against each other on one connection. `data` chooses the messages and the cuts; each role must
/// receive exactly what the other sent.
pub(crate) fn exchange(data: &[u8]) {
    exchange::play(data);
}

/// `data` cut in up to eight places that depend on its content.
fn cut(data: &[u8]) -> Vec<&[u8]> {
    // The hash FNV-1a of the data begins a linear congruential generator.
    let mut state = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut rest = data;
    let mut pieces = Vec::new();
    for _ in 0..8 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // Its lower bits are hardly random.
        let length = (state >> 33) as usize % (rest.len() / 2 + 1);
        let (piece, tail) = rest.split_at(length);
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}

/// Limits with room for what writing again adds: escapes, CR, framing fields.
fn ample(limits: Limits) -> Limits {
    Limits {
        head_bytes: 4 * limits.head_bytes,
        target_bytes: 3 * limits.target_bytes,
        line_bytes: 2 * limits.line_bytes,
        fields: limits.fields + 2,
        ..limits
    }
}

fn end_to_end(headers: &Fields) -> Fields {
    const DROPPED: [&str; 9] = [
        "connection",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
    ];
    let mut headers = headers.clone();
    for name in DROPPED {
        headers.remove(name);
    }
    headers
}

/// The bytes that a client writes for a request that a server has read.
fn relayed_request(seen: &SeenRequest) -> BytesMut {
    let head = &seen.head;
    let host = head
        .authority
        .as_ref()
        .map_or_else(|| "nobody".into(), Authority::to_bytes);
    let request = Request {
        method: &head.method,
        path: &head.target.path,
        query: head.target.query.as_deref(),
        host: &host,
        headers: &head.headers,
        body: head.body,
    };
    let mut client = Client::new(Limits::response());
    let mut out = BytesMut::new();
    client
        .send_request(&request, &mut out)
        .expect("an accepted request can be sent");
    for piece in cut(&seen.body) {
        client.send_data(piece, &mut out);
    }
    client
        .finish_body(&mut out)
        .expect("the body is as announced");
    out
}

/// The bytes that a server writes for a response that a client has read.
fn relayed_response(seen: &SeenResponse, method: &Method) -> BytesMut {
    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::from(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    server.receive(&mut input).expect("a correct request");
    let head = seen.head.as_ref().expect("a final response");
    let response = Response {
        status: head.status,
        reason: head.reason.as_deref(),
        headers: &head.headers,
        body: match head.content_length {
            Some(length) => BodyLength::Known(length),
            None => BodyLength::Unknown,
        },
    };
    let mut out = BytesMut::new();
    server
        .send_head(&response, &mut out)
        .expect("an accepted response can be sent");
    for piece in cut(&seen.body) {
        server.send_data(piece, &mut out);
    }
    server.send_end(&mut out).expect("the body is as announced");
    out
}

/// A second reader of chunked bodies: the content, and the bytes after it. It looks only at sizes and line ends.
fn unchunk(mut data: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut body = Vec::new();
    loop {
        let (line, rest) = split_line(data)?;
        let digits = line.split(|byte| *byte == b';').next()?;
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        if size == 0 {
            data = rest;
            break;
        }
        body.extend_from_slice(rest.get(..size)?);
        data = rest[size..].strip_prefix(b"\r\n")?;
    }
    loop {
        let (line, rest) = split_line(data)?;
        data = rest;
        if line.is_empty() {
            return Some((body, data));
        }
    }
}

fn split_line(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = data.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&data[..end], &data[end + 2..]))
}

const NO_BODY: BodyLength = BodyLength::Known(0);
