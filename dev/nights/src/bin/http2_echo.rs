//! A server of only the HTTP/2 codec, for h2spec: it answers each request without TLS with the request's body, until
//! it is ended. The second argument is the window of a stream in bytes.
//!
//! ```text
//! cargo run --release -p catamaran-nights --bin http2_echo -- 127.0.0.1:8080 256
//! h2spec -h 127.0.0.1 -p 8080
//! ```

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use catamaran_http2::{Code, Config, Event, Limits, Server};
use catamaran_message::{BodyLength, Fields, RequestHead, Response};
use http::StatusCode;

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1);
    let window = std::env::args().nth(2).and_then(|text| text.parse().ok());
    let mut config = Config::default();
    config.window = window.unwrap_or(config.window);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0"))?;
    for client in listener.incoming() {
        let client = client?;
        client.set_read_timeout(Some(Duration::from_secs(30)))?;
        thread::spawn(move || serve(client, config));
    }
    Ok(())
}

/// The bytes that wait to be sent on a stream, and whether they are all of its body.
type Queue = (BytesMut, bool);

/// Serves one connection until the client closes it, is silent for 30 s, or breaks the protocol.
fn serve(mut client: TcpStream, config: Config) -> std::io::Result<()> {
    let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
    let mut server = Server::new(Limits::request(), config, &mut out);
    let mut queues = BTreeMap::<u32, Queue>::new();
    loop {
        client.write_all(&out.split())?;
        let mut buffer = [0; 16 * 1024];
        let len = client.read(&mut buffer)?;
        if len == 0 {
            return Ok(());
        }
        input.extend_from_slice(&buffer[..len]);
        loop {
            match server.receive(&mut input, &mut out, || Box::new(RequestHead::empty())) {
                Ok(Some(event)) => handle(event, &mut server, &mut queues, &mut out),
                Ok(None) => break,
                Err(fault) => {
                    let is_final = true;
                    server.connection.go_away(fault.code(), is_final, &mut out);
                    return client.write_all(&out);
                }
            }
        }
        queues.retain(|stream, queue| !flush(*stream, queue, &mut server, &mut out));
    }
}

/// Answers what an event asks for. Bodies are queued, because the windows may not have room for them yet.
fn handle(
    event: Event<RequestHead>,
    server: &mut Server,
    queues: &mut BTreeMap<u32, Queue>,
    out: &mut BytesMut,
) {
    match event {
        Event::Head { stream, ends, .. } => {
            respond(server, stream, StatusCode::OK, out);
            // A request without a body has nothing to send back.
            let body = if ends { &b"hello"[..] } else { b"" };
            queues.insert(stream, (body.into(), ends));
        }
        Event::Refused { stream, fault, .. } => {
            let status = fault.status().unwrap_or(StatusCode::BAD_REQUEST);
            respond(server, stream, status, out);
            queues.insert(stream, (BytesMut::new(), true));
        }
        Event::Body { stream, data, ends } => echo(stream, &data, ends, server, queues, out),
        Event::Trailers { stream, .. } => echo(stream, &Bytes::new(), true, server, queues, out),
        Event::Reset { stream, .. } | Event::Failed { stream, .. } => drop(queues.remove(&stream)),
        Event::GoAway { .. } => {
            let is_final = true;
            server.connection.go_away(Code::NO_ERROR, is_final, out);
        }
        Event::Window { .. } | Event::Pong => {}
    }
}

/// Writes the head of a response, whose body follows. A stream that has ended meanwhile needs none.
fn respond(server: &mut Server, stream: u32, status: StatusCode, out: &mut BytesMut) {
    let response = Response {
        status,
        reason: None,
        headers: &Fields::from_iter([("content-type", "text/plain")]),
        body: BodyLength::Unknown,
    };
    let ends = false;
    server.send_head(stream, &response, ends, out).ok();
}

/// Queues a part of the request's body as a part of the response, and lets the client send as many bytes again.
/// With `ends` it is the last part.
fn echo(
    stream: u32,
    data: &Bytes,
    ends: bool,
    server: &mut Server,
    queues: &mut BTreeMap<u32, Queue>,
    out: &mut BytesMut,
) {
    let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    server.connection.credit(stream, bytes, out);
    if let Some((queue, is_whole)) = queues.get_mut(&stream) {
        queue.extend_from_slice(data);
        *is_whole |= ends;
    }
}

/// Sends as much as the windows allow. Returns whether the stream is done: its response is complete, or it has
/// ended.
fn flush(stream: u32, queue: &mut Queue, server: &mut Server, out: &mut BytesMut) -> bool {
    let (bytes, is_whole) = queue;
    loop {
        let Ok(taken) = server
            .connection
            .begin_data(stream, bytes.len(), *is_whole, out)
        else {
            return true;
        };
        out.extend_from_slice(&bytes.split_to(taken));
        if bytes.is_empty() {
            return *is_whole;
        }
        if taken == 0 {
            return false;
        }
    }
}
