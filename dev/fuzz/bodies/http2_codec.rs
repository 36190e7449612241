//! Checks the codec of HTTP/2 with any bytes of a peer.
//!
//! Plain functions that panic on a finding: the fuzz targets call them, and so does the replay of the
//! committed corpora in the crate's own tests.

use bytes::BytesMut;
use catamaran_http2::{Client, Code, Config, Event, Fault, Limits, Server};
use catamaran_message::{BodyLength, Fields, Request, RequestHead, Response, Scheme};
use http::{Method, StatusCode};

/// The events of a connection, what it wrote, and the fault that ended it.
type Course = (Vec<String>, BytesMut, Option<Fault>);

/// Gives any bytes of a client to a server that answers each request. The first byte says how the others are cut,
/// which must change nothing.
pub(crate) fn server(input: &[u8]) {
    judge(input, |pieces| {
        let (mut read, mut out, mut events) = (BytesMut::new(), BytesMut::new(), Vec::new());
        let mut server = Server::new(Limits::request(), CONFIG, &mut out);
        read.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        for piece in pieces {
            read.extend_from_slice(piece);
            loop {
                let event =
                    match server.receive(&mut read, &mut out, || Box::new(RequestHead::empty())) {
                        Ok(Some(event)) => event,
                        Ok(None) => break,
                        Err(fault) => return (events, out, Some(fault)),
                    };
                events.push(format!("{event:?}"));
                if let Event::Head { stream, head, .. } = &event {
                    let response = Response {
                        status: StatusCode::OK,
                        reason: None,
                        headers: &head.headers,
                        body: BodyLength::Known(4),
                    };
                    server.send_head(*stream, &response, false, &mut out).ok();
                    let sent = server.connection.begin_data(*stream, 4, true, &mut out);
                    out.extend_from_slice(&b"body"[..sent.unwrap_or(0)]);
                }
                if let Event::Body { stream, data, .. } = &event {
                    server
                        .connection
                        .credit(*stream, data.len() as u32, &mut out);
                }
                assert!(server.connection.open_streams() <= CONFIG.streams_max as usize);
            }
        }
        (events, out, None)
    });
}

/// As [`server`], with bytes of a server, for a client with three requests. The body of the last is larger than the
/// first windows. The client resets the stream of a 404.
pub(crate) fn client(input: &[u8]) {
    judge(input, |pieces| {
        let (mut read, mut out, mut events) = (BytesMut::new(), BytesMut::new(), Vec::new());
        let mut client = Client::new(Limits::response(), CONFIG, &mut out);
        let mut unsent = 0;
        for (method, body) in [(Method::GET, 0), (Method::HEAD, 0), (Method::POST, 70_000)] {
            let request = Request {
                method: &method,
                path: b"/",
                query: None,
                host: b"example.org",
                headers: &Fields::new(),
                body: BodyLength::Known(body),
            };
            client.send_request(&request, Scheme::Http, &mut out).ok();
            unsent = body as usize;
        }
        send_body(&mut client, &mut unsent, &mut out);
        let mut ended_streams = Vec::new();
        for piece in pieces {
            read.extend_from_slice(piece);
            loop {
                let event = match client.receive(&mut read, &mut out) {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(fault) => return (events, out, Some(fault)),
                };
                events.push(format!("{event:?}"));
                let (stream, ends) = match &event {
                    Event::Head { stream, ends, .. } | Event::Body { stream, ends, .. } => {
                        (*stream, *ends)
                    }
                    Event::Trailers { stream, .. } => (*stream, true),
                    _ => (0, false),
                };
                assert!(!ended_streams.contains(&stream), "{stream} was over");
                if let Event::Head { head, .. } = &event
                    && head.status == StatusCode::NOT_FOUND
                {
                    client.connection.reset(stream, Code::CANCEL, &mut out);
                    ended_streams.push(stream);
                }
                if let Event::Body { data, .. } = &event {
                    client
                        .connection
                        .credit(stream, data.len() as u32, &mut out);
                }
                if ends {
                    ended_streams.push(stream);
                }
                send_body(&mut client, &mut unsent, &mut out);
                assert!(client.connection.open_streams() <= 3);
            }
        }
        (events, out, None)
    });
}

/// Sends as much of the third request's body as the windows allow.
fn send_body(client: &mut Client, unsent: &mut usize, out: &mut BytesMut) {
    while *unsent > 0
        && let Ok(taken @ 1..) = client.connection.begin_data(5, *unsent, true, out)
    {
        out.resize(out.len() + taken, b'x');
        *unsent -= taken;
    }
}

fn judge(input: &[u8], course: impl Fn(&mut dyn Iterator<Item = &[u8]>) -> Course) {
    let Some((&size, bytes)) = input.split_first() else {
        return;
    };
    let uncut = course(&mut std::iter::once(bytes));
    let cut = course(&mut bytes.chunks(usize::from(size) + 1));
    assert_eq!(uncut, cut);
}

const CONFIG: Config = Config {
    streams_max: 3,
    window: 100,
    connection_window: 65_535,
    takes_tunnels: true,
    resets_remembered: 2,
};
