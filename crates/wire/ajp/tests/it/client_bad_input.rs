//! Bad input to the client role: one table, every row fed whole, byte by byte, and cut at every
//! offset.
//!
//! A row says what the web server does: fail before a head was passed on, abort a response that
//! has begun, close a connection that misbehaves between exchanges, or take the response. The
//! fault's token is part of the row, so that a row cannot pass for the wrong reason.

use bytes::BytesMut;
use catamaran_ajp::client::{AjpSkim, KnownHead};
use catamaran_ajp::{BodyLength, Client, ClientConfig, ClientEvent, Fault, Request};
use catamaran_message::Fields;
use http::Method;

use crate::FACTS;
use crate::raw::{
    self, chunk, coded, end_response, field, get_body_chunk, null, send_headers, send_headers_of,
    text, to_web_server,
};

/// What the web server had sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sent {
    /// A CPING.
    Ping,
    /// A GET without body.
    Get,
    /// A HEAD without body.
    Head,
    /// A POST of five bytes.
    Post,
    /// A POST of five bytes whose length it did not know.
    Upload,
}

#[derive(Debug)]
enum Expect {
    /// The fault strikes before a head: 502.
    Fail(&'static str),
    /// The fault strikes after the head: the response is cut off visibly.
    Abort(&'static str),
    /// The response is complete; what follows it is a fault, so the connection is closed.
    Close(&'static str),
    /// These events, and whether the connection lives on.
    Take(&'static [&'static str], bool),
}

struct Row {
    number: &'static str,
    what: &'static str,
    sent: Sent,
    input: Vec<u8>,
    expect: Expect,
}

/// What became of a connection.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    events: Vec<String>,
    out: Vec<u8>,
    fault: Option<Fault>,
    at_eof: Option<Fault>,
    can_reuse: bool,
}

/// A web server in small: sends its request, feeds `pieces` to the client, answers asks.
struct WebServer {
    client: Client,
    input: BytesMut,
    out: BytesMut,
    /// Body bytes not sent yet.
    source: &'static [u8],
    outcome: Outcome,
}

impl WebServer {
    fn run<'a>(sent: Sent, pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
        Self::run_with(sent, pieces, Self::pump)
    }

    /// The same, of a web server that wants to know how the response went, not what it said.
    fn run_skimming<'a>(sent: Sent, pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
        Self::run_with(sent, pieces, Self::pump_skimming)
    }

    fn run_with<'a>(
        sent: Sent,
        pieces: impl Iterator<Item = &'a [u8]>,
        pump: impl Fn(&mut Self),
    ) -> Outcome {
        let mut server = Self {
            client: Client::new(ClientConfig::default()),
            input: BytesMut::new(),
            out: BytesMut::new(),
            source: match sent {
                Sent::Post | Sent::Upload => b"hello",
                _ => b"",
            },
            outcome: Outcome::default(),
        };
        server.send(sent);
        for piece in pieces {
            server.input.extend_from_slice(piece);
            pump(&mut server);
        }
        server.outcome.at_eof = server.client.receive_eof().err();
        server.outcome.can_reuse = server.client.can_reuse() && server.input.is_empty();
        server.outcome.out = server.out.to_vec();
        server.outcome
    }

    fn send(&mut self, sent: Sent) {
        let (method, body) = match sent {
            Sent::Ping => return self.client.send_ping(&mut self.out),
            Sent::Get => (Method::GET, BodyLength::Known(0)),
            Sent::Head => (Method::HEAD, BodyLength::Known(0)),
            Sent::Post => (Method::POST, BodyLength::Known(5)),
            Sent::Upload => (Method::POST, BodyLength::Unknown),
        };
        let request = Request {
            method: &method,
            path: b"/",
            query: None,
            host: b"localhost",
            headers: &Fields::new(),
            body,
        };
        self.client
            .send_request(&request, &FACTS, &mut self.out)
            .unwrap();
        self.out.clear();
        self.send_body();
    }

    /// Sends what may be sent; ends the body when there is no more.
    fn send_body(&mut self) {
        let len = self.client.body_credit().min(self.source.len());
        let (now, later) = self.source.split_at(len);
        self.client.send_data(now, &mut self.out);
        self.source = later;
        if later.is_empty() {
            self.client.finish_body(&mut self.out).unwrap();
        }
    }

    fn pump(&mut self) {
        while self.outcome.fault.is_none() {
            let event = match self.client.receive(&mut self.input, &mut self.out) {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(fault) => {
                    self.outcome.fault = Some(fault);
                    return;
                }
            };
            let name = match event {
                ClientEvent::Interim(head) => format!("interim {}", head.status.as_u16()),
                ClientEvent::Head(head) => format!("head {}", head.status.as_u16()),
                ClientEvent::Body(body) => format!("body {}", body.len()),
                ClientEvent::Flush => "flush".into(),
                ClientEvent::BodyWanted => {
                    self.send_body();
                    "wanted".into()
                }
                ClientEvent::End => "end".into(),
                ClientEvent::Pong => "pong".into(),
            };
            self.outcome.events.push(name);
        }
    }

    fn pump_skimming(&mut self) {
        let bytes = self.input.split();
        let mut input = &bytes[..];
        let mut known = KnownHead::default();
        while self.outcome.fault.is_none() {
            let name = match self.client.skim(&mut input, &mut known, &mut self.out) {
                Ok(Some(AjpSkim::Interim(_))) => "interim".into(),
                Ok(Some(AjpSkim::Head(head))) => format!("head {}", head.status.as_u16()),
                Ok(Some(AjpSkim::Body(0))) => continue,
                Ok(Some(AjpSkim::Body(len))) => format!("body {len}"),
                Ok(Some(AjpSkim::BodyWanted)) => {
                    self.send_body();
                    "wanted".into()
                }
                Ok(Some(AjpSkim::End)) => "end".into(),
                Ok(None) => break,
                Err(fault) => {
                    self.outcome.fault = Some(fault);
                    break;
                }
            };
            self.outcome.events.push(name);
        }
        self.input.extend_from_slice(input);
    }
}

use Expect::{Abort, Close, Fail, Take};

fn row(
    number: &'static str,
    what: &'static str,
    sent: Sent,
    input: Vec<u8>,
    expect: Expect,
) -> Row {
    Row {
        number,
        what,
        sent,
        input,
        expect,
    }
}

fn rows() -> Vec<Row> {
    [
        framing(),
        heads(),
        fields(),
        order(),
        bodies(),
        asks(),
        pings(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Packets that follow one another.
fn all<const N: usize>(packets: [Vec<u8>; N]) -> Vec<u8> {
    packets.concat()
}

fn ok() -> Vec<u8> {
    send_headers(200, &[])
}

fn ok_of(length: &str) -> Vec<u8> {
    send_headers(200, &[coded(0x03, length)])
}

fn end() -> Vec<u8> {
    end_response(1)
}

#[rustfmt::skip]
fn framing() -> Vec<Row> {
    let get = |number, what, input, token| row(number, what, Sent::Get, input, Fail(token));
    let mut rows = vec![
        get("C01", "magic of the web server", raw::to_container(&[5, 1]), "ajp-magic"),
        get("C01", "HTTP", b"HTTP/1.1 200 OK\r\n".to_vec(), "ajp-magic"),
        get("C02", "payload 8189", vec![b'A', b'B', 0x1F, 0xFD], "ajp-packet-too-large"),
        get("C02", "payload 8190", vec![b'A', b'B', 0x1F, 0xFE], "ajp-packet-too-large"),
        get("C02", "payload 8191", vec![b'A', b'B', 0x1F, 0xFF], "ajp-packet-too-large"),
        get("C02", "payload 8192", vec![b'A', b'B', 0x20, 0x00], "ajp-packet-too-large"),
        get("C02", "payload FFFF", vec![b'A', b'B', 0xFF, 0xFF], "ajp-packet-too-large"),
        get("C03", "empty packet", to_web_server(&[]), "ajp-empty-packet"),
        get("C05", "CPONG amid a request", to_web_server(&[9]), "ajp-unexpected-message"),
    ];
    for code in [0, 1, 2, 7, 8, 10, 255] {
        rows.push(get("C04", "code", to_web_server(&[code, 0, 0]), "ajp-unexpected-message"));
        let input = all([ok(), to_web_server(&[code, 0, 0])]);
        rows.push(row("C06", "code", Sent::Get, input, Abort("ajp-unexpected-message")));
    }
    rows
}

#[rustfmt::skip]
fn heads() -> Vec<Row> {
    let head = |number, what, packet: Vec<u8>, expect| {
        row(number, what, Sent::Get, all([packet, end()]), expect)
    };
    let reason = |what, reason: Vec<u8>, expect| {
        head("C08", what, send_headers_of(200, &reason, 0, &[]), expect)
    };
    let taken = || Take(&["head 200", "end"], true);
    let mut rows = vec![
        head("C07", "status 599", send_headers(599, &[]), Take(&["head 599", "end"], true)),
        head("C07", "status 999", send_headers(999, &[]), Take(&["head 999", "end"], true)),
        reason("null", null(), taken()),
        reason("empty", text(""), taken()),
        reason("equal to status", text("200"), taken()),
        reason("with line break", text("OK\r\nX: y"), Fail("ajp-reason")),
        reason("with zero byte", text("O\0K"), Fail("ajp-reason")),
        reason("not terminated", b"\0\x01OK".to_vec(), Fail("ajp-malformed-response")),
        reason("longer than the packet", b"\x7F\xFFOK\0".to_vec(), Fail("ajp-malformed-response")),
    ];
    for status in [0, 99, 101, 1000, 65535] {
        rows.push(head("C07", "status", send_headers(status, &[]), Fail("ajp-status")));
    }
    let full = send_headers(200, &[coded(0x01, "text/html"), field("a", "b")]);
    for len in 1..full.len() - 4 {
        let cut = to_web_server(&full[4..4 + len]);
        rows.push(head("C09", "head ends early", cut, Fail("ajp-malformed-response")));
    }
    rows
}

#[rustfmt::skip]
fn fields() -> Vec<Row> {
    let of = |number, what, fields: &[Vec<u8>], expect| {
        row(number, what, Sent::Get, all([send_headers(200, fields), end()]), expect)
    };
    let counted = |number, what, count, fields: &[u8], token| {
        let packet = send_headers_of(200, &text("OK"), count, fields);
        row(number, what, Sent::Get, packet, Fail(token))
    };
    let taken = || Take(&["head 200", "end"], true);
    let one = coded(0x01, "text/html");
    let many = |count: usize| vec![field("a", "b"); count];
    vec![
        counted("C10", "count FFFF", 0xFFFF, &one, "ajp-malformed-response"),
        counted("C10", "count one too high", 2, &one, "ajp-malformed-response"),
        counted("C10", "count five too high", 5, &[], "ajp-malformed-response"),
        counted("C11", "count too low", 0, &one, "ajp-malformed-response"),
        counted("C11", "slack", 1, &[&one[..], b"\0"].concat(), "ajp-malformed-response"),
        of("C12", "200 fields", &many(200), taken()),
        of("C12", "201 fields", &many(201), Fail("ajp-too-many-fields")),
        of("C13", "name null", &[[null(), text("v")].concat()], Fail("ajp-malformed-response")),
        of("C13", "name code A000", &[coded(0x00, "v")], Fail("ajp-malformed-response")),
        of("C13", "name code A00C", &[coded(0x0C, "v")], Fail("ajp-malformed-response")),
        of("C13", "name code A0FF", &[coded(0xFF, "v")], Fail("ajp-malformed-response")),
        of("C13", "name empty", &[field("", "v")], Fail("ajp-field-name")),
        of("C13", "name with space", &[field("a b", "v")], Fail("ajp-field-name")),
        of("C13", "name with colon", &[field("a:", "v")], Fail("ajp-field-name")),
        of("C13", "name with line break", &[field("a\r\nb", "v")], Fail("ajp-field-name")),
        of("C14", "value null", &[[text("a"), null()].concat()], taken()),
        of("C14", "value with CR", &[field("a", "v\rb")], Fail("ajp-field-value")),
        of("C14", "value with LF", &[field("a", "v\nb: c")], Fail("ajp-field-value")),
        of("C14", "value with zero byte", &[field("a", "v\0")], Fail("ajp-field-value")),
        of("C14", "value with other control", &[field("a", "v\x7F")], Fail("ajp-field-value")),
        of("C15", "value not terminated", &[[text("a"), b"\0\x01vv".to_vec()].concat()],
            Fail("ajp-malformed-response")),
        of("C16", "one connection's fields", &[field("Transfer-Encoding", "chunked"),
            field("Connection", "x-a"), field("Upgrade", "h2c"), field("x-a", "b")], taken()),
        of("C16", "lengths that differ", &[coded(0x03, "0"), field("content-length", "1")],
            Fail("ajp-content-length")),
        of("C16", "lengths that agree", &[coded(0x03, "0"), coded(0x03, "0")], taken()),
        of("C16", "length +0", &[coded(0x03, "+0")], Fail("ajp-content-length")),
        of("C16", "length empty", &[coded(0x03, "")], Fail("ajp-content-length")),
        of("C16", "length 2^63", &[coded(0x03, "9223372036854775808")], Fail("ajp-content-length")),
    ]
}

#[rustfmt::skip]
fn order() -> Vec<Row> {
    let get = |number, what, input, expect| row(number, what, Sent::Get, input, expect);
    vec![
        get("C17", "two heads", all([ok(), ok(), end()]), Abort("ajp-second-head")),
        get("C17", "head after body", all([ok(), chunk(b"x"), ok()]), Abort("ajp-second-head")),
        get("C17", "interim head", all([send_headers(103, &[]), ok()]), Fail("ajp-interim-head")),
        get("C18", "interim head after head", all([ok(), send_headers(100, &[])]),
            Abort("ajp-second-head")),
        get("C19", "chunk before head", all([chunk(b"x"), ok()]), Fail("ajp-chunk-before-head")),
        get("C19", "flush before head", all([chunk(b""), ok(), end()]),
            Take(&["head 200", "end"], true)),
        get("C19", "flush after head", all([ok(), chunk(b""), end()]),
            Take(&["head 200", "flush", "end"], true)),
        get("C26", "end without head", end(), Fail("ajp-end-before-head")),
        get("C27", "END(0)", all([ok(), end_response(0)]), Take(&["head 200", "end"], false)),
        get("C27", "END(2)", all([ok(), end_response(2)]), Take(&["head 200", "end"], false)),
        get("C28", "bytes after the end", all([ok(), end(), ok()]), Close("ajp-unsolicited-bytes")),
        get("C28", "one byte after the end", all([ok(), end(), b"A".to_vec()]),
            Close("ajp-unsolicited-bytes")),
        get("C28", "bytes after END(0)", all([ok(), end_response(0), end()]),
            Close("ajp-unsolicited-bytes")),
    ]
}

#[rustfmt::skip]
fn bodies() -> Vec<Row> {
    let shape = |number, what, payload: &[u8]| {
        let input = all([ok(), to_web_server(payload), end()]);
        row(number, what, Sent::Get, input, Abort("ajp-malformed-response"))
    };
    let taken = |number, what, payload: &[u8], events| {
        let input = all([ok(), to_web_server(payload), end()]);
        row(number, what, Sent::Get, input, Take(events, true))
    };
    let whole = |number, what, payload| taken(number, what, payload, &["head 200", "body 5", "end"]);
    let flush = |number, what, payload| taken(number, what, payload, &["head 200", "flush", "end"]);
    let early = |number, what, payload: &[u8]| {
        row(number, what, Sent::Get, to_web_server(payload), Fail("ajp-malformed-response"))
    };
    let of = |number, what, sent, input, expect| row(number, what, sent, input, expect);
    let not_modified = || send_headers(304, &[coded(0x03, "100")]);
    vec![
        shape("C20", "chunk longer than the packet", b"\x03\0\x07hello\0"),
        shape("C20", "chunk of FFFF", b"\x03\xFF\xFFhello\0"),
        whole("C21", "no zero byte", b"\x03\0\x05hello"),
        whole("C21", "41 in its place", b"\x03\0\x05helloA"),
        whole("C21", "FF in its place", b"\x03\0\x05hello\xFF"),
        taken("C21", "a body that ends with a zero byte", b"\x03\0\x05hell\0",
            &["head 200", "body 5", "end"]),
        flush("C21", "flush without zero byte", b"\x03\0\0"),
        flush("C21", "flush with FF in its place", b"\x03\0\0\xFF"),
        shape("C22", "slack behind the zero byte", b"\x03\0\x05hello\0\0"),
        shape("C22", "flush with slack", b"\x03\0\0\0\0"),
        shape("C23", "03", b"\x03"),
        shape("C23", "03 00", b"\x03\0"),
        shape("C23", "03 00 05", b"\x03\0\x05"),
        shape("C23", "06", b"\x06"),
        shape("C23", "06 1F", b"\x06\x1F"),
        shape("C23", "05", b"\x05"),
        of("C24", "END with slack", Sent::Get, all([ok(), to_web_server(b"\x05\x01\0\xFF")]),
            Take(&["head 200", "end"], true)),
        taken("C24", "GET with slack", b"\x06\x1F\xFA\0\xFF", &["head 200", "end"]),
        early("C23", "03 first", b"\x03"),
        early("C23", "06 first", b"\x06"),
        early("C23", "05 first", b"\x05"),
        early("C23", "04 first", b"\x04"),
        of("C25", "exactly the length", Sent::Get, all([ok_of("5"), chunk(b"he"), chunk(b"llo"),
            end()]),
            Take(&["head 200", "body 2", "body 3", "end"], true)),
        of("C25", "more than the length", Sent::Get, all([ok_of("5"), chunk(b"hello!"), end()]),
            Abort("ajp-response-body-too-long")),
        of("C25", "one chunk too many", Sent::Get, all([ok_of("5"), chunk(b"hello"), chunk(b"!")]),
            Abort("ajp-response-body-too-long")),
        of("C25", "less than the length", Sent::Get, all([ok_of("5"), chunk(b"hell"), end()]),
            Abort("ajp-response-body-too-short")),
        of("C25", "nothing at all", Sent::Get, all([ok_of("5"), end()]),
            Abort("ajp-response-body-too-short")),
        of("C25", "body of a HEAD", Sent::Head, all([ok_of("5"), chunk(b"hello!"), end()]),
            Take(&["head 200", "end"], true)),
        of("C25", "no body of a HEAD", Sent::Head, all([ok_of("5"), end()]),
            Take(&["head 200", "end"], true)),
        of("C25", "body of a 304", Sent::Get, all([not_modified(), chunk(b"x"), end()]),
            Take(&["head 304", "end"], true)),
        of("C25", "body of a 204", Sent::Get, all([send_headers(204, &[]), chunk(b"x"), end()]),
            Take(&["head 204", "end"], true)),
    ]
}

#[rustfmt::skip]
fn asks() -> Vec<Row> {
    let ask = || get_body_chunk(8186);
    let repeated = |count: usize| ask().repeat(count);
    let taken = || Take(&["head 200", "end"], true);
    vec![
        row("C29", "ask without a body", Sent::Get, all([ask(), ok(), end()]), taken()),
        row("C29", "3 asks without a body", Sent::Get, all([repeated(3), ok(), end()]), taken()),
        row("C29", "4 asks without a body", Sent::Get, repeated(4), Fail("ajp-too-many-asks")),
        row("C29", "1000 asks without a body", Sent::Get, repeated(1000),
            Fail("ajp-too-many-asks")),
        row("C29", "1000 asks after the head", Sent::Get, all([ok(), repeated(1000)]),
            Abort("ajp-too-many-asks")),
        row("C29", "3 asks after the length", Sent::Post, all([repeated(3), ok(), end()]), taken()),
        row("C29", "asks after the end", Sent::Upload, all([repeated(3), ok(), end()]),
            Take(&["wanted", "head 200", "end"], true)),
        row("C29", "1000 asks after the end", Sent::Upload, repeated(1000),
            Fail("ajp-too-many-asks")),
        row("C30", "ask for nothing", Sent::Upload, get_body_chunk(0),
            Fail("ajp-malformed-response")),
        row("C30", "ask for two bytes", Sent::Upload, all([get_body_chunk(2).repeat(3), ok(),
            end()]),
            Take(&["wanted", "wanted", "wanted", "head 200", "end"], true)),
        row("C30", "ask for FFFF", Sent::Upload, all([get_body_chunk(0xFFFF), ok(), end()]),
            Take(&["wanted", "head 200", "end"], true)),
        row("C31", "response before the body is read", Sent::Post, all([ok(), end()]), taken()),
        row("C31", "response before the body is sent", Sent::Upload, all([ok(), end()]),
            Take(&["head 200", "end"], false)),
        row("C33", "part of the body is read", Sent::Upload, all([get_body_chunk(2), ok(), end()]),
            Take(&["wanted", "head 200", "end"], false)),
    ]
}

#[rustfmt::skip]
fn pings() -> Vec<Row> {
    let ping = |what, input, expect| row("C34", what, Sent::Ping, input, expect);
    vec![
        ping("CPONG", to_web_server(&[9]), Take(&["pong"], true)),
        ping("chunk", chunk(b"x"), Fail("ajp-unexpected-message")),
        ping("head", ok(), Fail("ajp-unexpected-message")),
        ping("END", end(), Fail("ajp-unexpected-message")),
        ping("CPONG with a tail", to_web_server(&[9, 0, 0xFF]), Take(&["pong"], true)),
        ping("empty packet", to_web_server(&[]), Fail("ajp-empty-packet")),
        ping("two CPONGs", to_web_server(&[9]).repeat(2), Close("ajp-unsolicited-bytes")),
    ]
}

fn check(row: &Row, outcome: &Outcome) {
    let name = format!("{} {}", row.number, row.what);
    let token = outcome.fault.map(|fault| fault.token());
    let has = |event: &str| outcome.events.iter().any(|seen| seen.starts_with(event));
    match row.expect {
        Fail(expected) => {
            assert_eq!(token, Some(expected), "{name}");
            assert!(!has("head") && !has("end") && !outcome.can_reuse, "{name}");
        }
        Abort(expected) => {
            assert_eq!(token, Some(expected), "{name}");
            assert!(has("head") && !has("end") && !outcome.can_reuse, "{name}");
        }
        Close(expected) => {
            assert_eq!(token, Some(expected), "{name}");
            assert!((has("end") || has("pong")) && !outcome.can_reuse, "{name}");
        }
        Take(events, can_reuse) => {
            assert_eq!(outcome.fault, None, "{name}");
            assert_eq!(outcome.events, events, "{name}");
            assert_eq!(outcome.can_reuse, can_reuse, "{name}");
        }
    }
}

#[test]
fn every_row_whole() {
    for row in rows() {
        let outcome = WebServer::run(row.sent, [&row.input[..]].into_iter());
        check(&row, &outcome);
    }
}

#[test]
fn every_row_byte_by_byte() {
    for row in rows() {
        let outcome = WebServer::run(row.sent, row.input.chunks(1));
        check(&row, &outcome);
    }
}

/// A skimmed response is judged as a received one.
#[test]
fn every_row_skimmed() {
    for row in rows().iter().filter(|row| row.sent != Sent::Ping) {
        let name = format!("{} {}", row.number, row.what);
        let mut received = WebServer::run(row.sent, [&row.input[..]].into_iter());
        received.events.retain(|event| event != "flush");
        for piece in [1, row.input.len().max(1)] {
            let skimmed = WebServer::run_skimming(row.sent, row.input.chunks(piece));
            assert_eq!(skimmed, received, "{name} in pieces of {piece}");
        }
    }
}

/// C32: whatever the backend was saying, without an END_RESPONSE it is no success.
#[test]
fn every_row_cut_at_every_offset() {
    for row in rows() {
        let name = format!("{} {}", row.number, row.what);
        let whole = WebServer::run(row.sent, [&row.input[..]].into_iter());
        for cut in 0..row.input.len() {
            let outcome = WebServer::run(row.sent, [&row.input[..cut]].into_iter());
            let so_far = &whole.events[..outcome.events.len().min(whole.events.len())];
            assert_eq!(outcome.events, so_far, "{name} cut at {cut}");
            let is_done = matches!(
                outcome.events.last().map(String::as_str),
                Some("end" | "pong")
            );
            match outcome.fault {
                Some(_) => assert_eq!(outcome.fault, whole.fault, "{name} cut at {cut}"),
                None if is_done => assert_eq!(outcome.at_eof, None, "{name} cut at {cut}"),
                None => assert_eq!(outcome.at_eof, Some(Fault::Eof), "{name} cut at {cut}"),
            }
        }
    }
}

/// C29 in bytes: every ask after the end gets one empty packet, in order.
#[test]
fn asks_after_the_end_are_answered_with_empty_packets() {
    let empty = raw::data(b"");
    let ask = get_body_chunk(8186);
    let outcome = WebServer::run(Sent::Get, [&ask.repeat(3)[..]].into_iter());
    assert_eq!(outcome.out, empty.repeat(3));
    let outcome = WebServer::run(Sent::Post, [&ask[..]].into_iter());
    assert_eq!(outcome.out, [raw::data(b"hello"), empty.clone()].concat());
    let outcome = WebServer::run(Sent::Upload, [&ask.repeat(2)[..]].into_iter());
    assert_eq!(outcome.out, [raw::data(b"hello"), empty.clone()].concat());
    let outcome = WebServer::run(Sent::Upload, [&ask.repeat(100)[..]].into_iter());
    assert_eq!(outcome.out, [raw::data(b"hello"), empty.repeat(3)].concat());
}

/// C35: a million packets of nothing cost no memory.
#[test]
fn endless_small_packets_leave_nothing_behind() {
    let mut server = WebServer {
        client: Client::new(ClientConfig::default()),
        input: BytesMut::new(),
        out: BytesMut::new(),
        source: b"",
        outcome: Outcome::default(),
    };
    server.send(Sent::Get);
    let mut client = server.client;
    let (mut input, mut out) = (BytesMut::from(&ok()[..]), BytesMut::new());
    assert!(client.receive(&mut input, &mut out).unwrap().is_some());
    let packets = [chunk(b"x"), chunk(b"")].concat().repeat(100);
    let mut bytes = 0;
    for _ in 0..1000 {
        input.extend_from_slice(&packets);
        while let Some(event) = client.receive(&mut input, &mut out).unwrap() {
            if let ClientEvent::Body(body) = event {
                bytes += body.len();
            }
        }
        assert!(input.is_empty() && out.is_empty());
        assert!(input.capacity() < 1 << 20, "{}", input.capacity());
    }
    assert_eq!(bytes, 100_000);
}
