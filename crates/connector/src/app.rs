//! The built-in application: pages, byte ranges, delays and mirrors for demos, tests and the lab.
//!
//! | path | answer |
//! |---|---|
//! | `/` | a page of exactly 347 bytes |
//! | `/bytes/N` | `N` bytes, any 64-bit number; byte `i` depends on `i` only (see [`App`]) |
//! | `/delay/MS` | a line of text after `MS` milliseconds |
//! | `/delay/exp:MS` | the same after a random time, exponentially distributed around `MS` milliseconds |
//! | `/echo` | the request's head as text, then its body |
//! | `/status/CODE` | that status, 200 to 599 |
//! | `/stream/N/MS` | `N` lines, `MS` milliseconds apart, each sent when it is due |
//! | `/sink` | a line of text once the request's body has been read and thrown away |
//! | `/snoop` | what the container sees of the request, as JSON |
//!
//! Any other path is answered 404, and 400 if a number in it is malformed. Path parameters
//! (`;jsessionid=…`) and the query are ignored for choosing the answer. Any method will do; HEAD gets the
//! head alone.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use catamaran_message::Traits;
use catamaran_message::name::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::StatusCode;

use crate::handler::{Body, BodyLength, Handler, Request, Response};

mod snoop;

/// The built-in application.
///
/// The bytes of `/bytes/N` repeat every 65,521 (a prime, so that no packet size divides it and a
/// lost, doubled or swapped piece shows): byte `i` of the period is the exclusive or of the two
/// lowest bytes of `i * 0x9e3779b1` (modulo 2^64) rotated right by 13 bits.
#[derive(Clone, Debug)]
pub struct App {
    pattern: Bytes,
}

// Measurements of the project are made with this page; its size is part of the contract.
const _: () = assert!(PAGE.len() == 347);

impl App {
    /// Creates the application. It has no settings.
    #[must_use]
    pub fn new() -> Self {
        let pattern = (0..PATTERN_BYTES).map(pattern_byte).collect();
        Self { pattern }
    }

    /// The response to a request; `None` if a number in the path is malformed.
    fn answer(&self, request: &Request) -> Option<Response> {
        let without_parameters = request.path.split(|byte| *byte == b';').next();
        let mut segments = without_parameters
            .unwrap_or_default()
            .split(|byte| *byte == b'/');
        let mut segment = || segments.next().unwrap_or_default();
        if !segment().is_empty() {
            // `OPTIONS *` asks about the whole server, for which there is no page.
            return Some(not_found());
        }
        let response = match (segment(), segment(), segment(), segment()) {
            (b"", b"", b"", b"") => page(),
            (b"bytes", length, b"", b"") => self.bytes(number(length)?),
            (b"delay", pause, b"", b"") => delay(pause)?,
            (b"status", code, b"", b"") => status(number(code)?)?,
            (b"stream", count, pause, b"") => stream(number(count)?, number(pause)?),
            (b"echo", b"", b"", b"") => echo(request),
            (b"sink", b"", b"", b"") => sink(),
            (b"snoop", b"", b"", b"") => snoop::answer(request),
            _ => not_found(),
        };
        Some(response)
    }

    fn bytes(&self, length: u64) -> Response {
        let body = Body::Repeat {
            pattern: self.pattern.clone(),
            length,
        };
        Response::new(StatusCode::OK, body).with_header(CONTENT_TYPE, "application/octet-stream")
    }
}

impl Default for App {
    fn default() -> Self {
        Self::new()
    }
}

impl Handler for App {
    fn handle(&self, request: &Request) -> Response {
        self.answer(request).unwrap_or_else(|| {
            let text = "the number in this path is malformed or out of range\n";
            Response::text(StatusCode::BAD_REQUEST, text)
        })
    }
}

fn not_found() -> Response {
    Response::text(StatusCode::NOT_FOUND, "there is nothing here; try /snoop\n")
}

fn page() -> Response {
    Response::new(
        StatusCode::OK,
        Body::Full(Bytes::from_static(PAGE.as_bytes())),
    )
    .with_header(CONTENT_TYPE, "text/html; charset=utf-8")
}

/// A response after `MS` milliseconds, or after a random time if `pause` is `exp:MS`; `None` if `MS` is malformed.
fn delay(pause: &[u8]) -> Option<Response> {
    let (is_random, digits) = match pause.strip_prefix(b"exp:") {
        Some(digits) => (true, digits),
        None => (false, pause),
    };
    let millis = number(digits)?;
    let mut response = Response::text(StatusCode::OK, format!("waited {millis} ms\n"));
    response.delay = Duration::from_millis(millis);
    if is_random {
        // Exponentially distributed with mean 1. The difference is never 0, which has no logarithm.
        let times_mean = -(1.0 - fastrand::f64()).ln();
        response.delay = Duration::from_millis((millis as f64 * times_mean) as u64);
    }
    Some(response)
}

/// A response of this status; `None` if it is not 200 to 599: a final response has no 1xx.
fn status(code: u64) -> Option<Response> {
    let code = u16::try_from(code)
        .ok()
        .filter(|code| (200..600).contains(code))?;
    let status = StatusCode::from_u16(code).ok()?;
    Some(Response::text(status, format!("{status}\n")))
}

/// A response of `count` chunks, with `pause` milliseconds between two of them.
fn stream(count: u64, pause: u64) -> Response {
    let chunk = Bytes::from_static(b"one more line, sent as soon as it was due\n");
    let every = Duration::from_millis(pause);
    let mut response = Response::text(StatusCode::OK, "");
    response.body = Body::Stream {
        chunk,
        count,
        every,
    };
    response
}

/// A response that repeats the request: its head as text, then its body as it arrives.
fn echo(request: &Request) -> Response {
    let mut head = BytesMut::with_capacity(512);
    head.put_slice(request.method.as_str().as_bytes());
    head.put_slice(b" ");
    head.put_slice(&request.path);
    if let Some(query) = &request.query {
        head.put_slice(b"?");
        head.put_slice(query);
    }
    head.put_slice(b" ");
    head.put_slice(&request.version);
    head.put_slice(b"\r\n");
    request.headers.write_lines(Traits::NONE, &mut head);
    if let BodyLength::Known(length @ 1..) = request.body {
        head.put_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    head.put_slice(b"\r\n");
    let mut response = Response::text(StatusCode::OK, "")
        // The body repeats text of the client, which no browser may take for a page.
        .with_header(X_CONTENT_TYPE_OPTIONS, "nosniff");
    response.body = Body::Echo {
        prefix: head.freeze(),
    };
    response
}

fn sink() -> Response {
    let mut response = Response::text(StatusCode::OK, "all of it read\n");
    response.after_body = true;
    response
}

/// A byte that differs from its neighbours, so that lost or moved bytes of a body show. A body can be checked from any
/// position on.
fn pattern_byte(position: u64) -> u8 {
    let [low, high, ..] = position
        .wrapping_mul(0x9e37_79b1)
        .rotate_right(13)
        .to_le_bytes();
    low ^ high
}

/// Parses a decimal number that consists of digits. A sign is refused, unlike by `parse`.
fn number(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

const PATTERN_BYTES: u64 = 65_521;

const PAGE: &str = "<!doctype html>
<html lang=\"en\">
<head><meta charset=\"utf-8\"><title>Catamaran</title></head>
<body>
<h1>Catamaran</h1>
<p>The front accepts HTTP from clients; the connector passes it on to an application.
This page is served by the connector's own application.</p>
<p>Visit <a href=\"/snoop\">/snoop</a> to see what it is given.</p>
</body>
</html>
";

#[cfg(test)]
mod tests;
