//! Bad input to the server role: one table, every row fed whole, byte by byte, and cut at every
//! offset.
//!
//! A row says what the container does: refuse with a status and one END_RESPONSE(0), drop the
//! connection without a byte, abort a response that has begun, or serve. The fault's token is part
//! of the row, so that a row cannot pass for the wrong reason.

use bytes::{Buf, BytesMut};
use catamaran_ajp::{BodyLength, End, Fault, Server, ServerConfig, ServerEvent};
use http::{HeaderMap, StatusCode};

use crate::raw::{self, attribute, coded, data, data_of, field, get, named, null, post, text};

/// What the application does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum App {
    /// Reads the body to its end, then answers.
    Reads,
    /// Answers at once and reads nothing.
    Early,
    /// Reads nothing and answers when all bytes have arrived.
    Late,
}

#[derive(Debug)]
enum Expect {
    /// SEND_HEADERS with this status and END_RESPONSE(0), because of this fault.
    Refuse(u16, &'static str),
    /// The connection is closed without a byte, because of this fault.
    Drop(&'static str),
    /// The fault strikes when the response has begun: it stays without its end.
    Abort(&'static str),
    /// These events, and this many CPONGs.
    Serve(&'static [&'static str], usize),
}

struct Row {
    number: &'static str,
    what: &'static str,
    app: App,
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
    end: Option<End>,
}

/// A connector in small: feeds `pieces` to a server and runs `app`.
struct Connector {
    server: Server,
    app: App,
    input: BytesMut,
    out: BytesMut,
    outcome: Outcome,
}

impl Connector {
    fn run<'a>(app: App, pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
        let mut connector = Self {
            server: Server::new(ServerConfig::default()),
            app,
            input: BytesMut::new(),
            out: BytesMut::new(),
            outcome: Outcome::default(),
        };
        for piece in pieces {
            connector.input.extend_from_slice(piece);
            connector.pump();
        }
        if app == App::Late && connector.outcome.fault.is_none() {
            connector.respond();
            connector.pump();
        }
        connector.outcome.at_eof = connector.server.receive_eof().err();
        connector.outcome.out = connector.out.to_vec();
        connector.outcome
    }

    fn pump(&mut self) {
        while self.outcome.fault.is_none() {
            match self.server.receive(&mut self.input, &mut self.out) {
                Ok(Some(ServerEvent::Request(head))) => {
                    self.outcome
                        .events
                        .push(format!("{} {:?}", head.method, head.path));
                    let has_body = head.body != BodyLength::Known(0);
                    if self.app == App::Early || (self.app == App::Reads && !has_body) {
                        self.respond();
                    }
                }
                Ok(Some(ServerEvent::Body(body))) => {
                    self.outcome.events.push(format!("body {}", body.len()));
                }
                Ok(Some(ServerEvent::BodyEnd)) => {
                    self.outcome.events.push("end".into());
                    self.respond();
                }
                Ok(None) => {
                    let was_waiting = self.server.expects_input();
                    if self.app == App::Reads {
                        self.server.want_body(&mut self.out);
                    }
                    if was_waiting || !self.server.expects_input() {
                        return;
                    }
                }
                Err(fault) => {
                    self.outcome.fault = Some(fault);
                    if let Some(status) = fault.status() {
                        self.server.refuse(status, &mut self.out);
                    }
                }
            }
        }
    }

    /// Answers 200 without a body.
    fn respond(&mut self) {
        let headers = HeaderMap::new();
        // The head is out already when the owed packet has come.
        let _ = self
            .server
            .send_head(StatusCode::OK, None, &headers, &mut self.out);
        self.outcome.end = Some(self.server.send_end(&self.input, &mut self.out));
    }
}

fn rows() -> Vec<Row> {
    [
        framing(),
        head_shape(),
        head_meaning(),
        lengths(),
        attributes(),
        bodies(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn row(number: &'static str, what: &'static str, input: Vec<u8>, expect: Expect) -> Row {
    row_with(App::Reads, number, what, input, expect)
}

fn row_with(
    app: App,
    number: &'static str,
    what: &'static str,
    input: Vec<u8>,
    expect: Expect,
) -> Row {
    Row {
        number,
        what,
        app,
        input,
        expect,
    }
}

/// A row whose request is served at once.
fn served(number: &'static str, what: &'static str, input: Vec<u8>) -> Row {
    row_with(App::Early, number, what, input, Serve(&["*"], 0))
}

use Expect::{Abort, Drop, Refuse, Serve};

#[rustfmt::skip]
fn framing() -> Vec<Row> {
    let cping = raw::to_container(&[0x0A]);
    let mut rows = vec![
        row("S01", "magic 12 35", raw::packet(*b"\x12\x35", &[0x10]), Drop("ajp-magic")),
        row("S01", "zeros", vec![0, 0, 0, 0], Drop("ajp-magic")),
        row("S01", "HTTP", b"GET / HTTP/1.1\r\n".to_vec(), Drop("ajp-magic")),
        row("S02", "magic of the container", raw::to_web_server(&[9]), Drop("ajp-magic")),
        row("S03", "TLS", b"\x16\x03\x01\x02".to_vec(), Drop("ajp-magic")),
        row("S04", "payload 8189", vec![0x12, 0x34, 0x1F, 0xFD],
            Refuse(400, "ajp-packet-too-large")),
        row("S04", "payload FFFF", vec![0x12, 0x34, 0xFF, 0xFF],
            Refuse(400, "ajp-packet-too-large")),
        row("S06", "empty packet first", raw::to_container(&[]), Drop("ajp-empty-packet")),
        row("S07", "CPING", cping.clone(), Serve(&[], 1)),
        row("S07", "3 CPINGs", cping.repeat(3), Serve(&[], 3)),
    ];
    for code in (0..=1).chain(3..=9).chain(11..=255) {
        let input = raw::to_container(&[code, 0, 0]);
        rows.push(row("S05", "idle code", input, Drop("ajp-unexpected-message")));
    }
    for tail in [1, 3, 100] {
        let input = raw::to_container(&[&[0x0A][..], &vec![0xFF; tail]].concat());
        rows.push(row("S07", "CPING with a tail", input, Serve(&[], 1)));
    }
    rows
}

#[rustfmt::skip]
fn head_shape() -> Vec<Row> {
    let full = get().attribute(attribute(5, "q")).payload();
    let mut rows: Vec<Row> = (1..full.len())
        .map(|len| {
            let input = raw::to_container(&full[..len]);
            row("S08", "head ends early", input, Refuse(400, "ajp-malformed-request"))
        })
        .collect();
    let malformed = |number, what, head: raw::Forward| {
        row(number, what, head.packet(), Refuse(400, "ajp-malformed-request"))
    };
    let mut no_end = get();
    no_end.end.clear();
    rows.push(malformed("S09", "attributes without end", no_end));
    for tail in [1, 2, 100] {
        let mut head = get();
        head.end.extend(vec![0; tail]);
        rows.push(malformed("S10", "bytes behind the end", head));
    }
    let payload_end = {
        let mut head = get();
        head.end.clear();
        head.attributes = vec![5, 0, 3, b'a', b'b', b'c'];
        head
    };
    rows.extend([
        malformed("S11", "string passes the end by its zero byte", payload_end),
        malformed("S11", "string of FFFE", get().uri(vec![0xFF, 0xFE, b'/'])),
        malformed("S12", "string without zero byte", get().uri(b"\0\x01/x".to_vec())),
        row("S13", "zero byte in uri", get().uri(text("/a\0b")).packet(),
            Refuse(400, "ajp-control-character")),
        row("S13", "zero byte in name", get().field(field("a\0b", "v")).packet(),
            Refuse(400, "ajp-field-name")),
        row("S13", "zero byte in value", get().field(field("a", "v\0v")).packet(),
            Refuse(400, "ajp-field-value")),
        row("S13", "zero byte in attribute", get().attribute(named("a", "v\0v")).packet(),
            Refuse(400, "ajp-control-character")),
    ]);
    for code in [0, 28, 127, 128, 254] {
        rows.push(malformed("S14", "method code", get().method(code)));
    }
    rows
}

#[rustfmt::skip]
fn head_meaning() -> Vec<Row> {
    let refused = |number, what, head: raw::Forward, token| {
        row(number, what, head.packet(), Refuse(400, token))
    };
    let many = |count: usize| {
        (0..count).fold(get(), |head, index| {
            head.field(field(format!("x-{index}"), "v"))
        })
    };
    let mut null_protocol = get();
    null_protocol.protocol = null();
    null_protocol.remote_addr = null();
    null_protocol.server_name = null();
    let mut lying = get();
    lying.count = Some(2);
    let mut lying_more = get();
    lying_more.count = Some(0xFFFF);
    let stored = |name: &str| get().method(255).attribute(attribute(0x0D, name));
    vec![
        refused("S15", "stored method missing", get().method(255), "ajp-stored-method"),
        refused("S15", "stored method empty", stored(""), "ajp-stored-method"),
        refused("S15", "stored method no token", stored("G T"), "ajp-stored-method"),
        refused("S15", "stored method with line break", stored("GET\r\nX:"), "ajp-stored-method"),
        refused("S15", "stored method null", get().method(255).attribute(vec![0x0D, 0xFF, 0xFF]),
            "ajp-stored-method"),
        refused("S16", "GET and stored DELETE", get().attribute(attribute(0x0D, "DELETE")),
            "ajp-stored-method"),
        refused("S17", "uri null", get().uri(null()), "ajp-path"),
        refused("S17", "uri empty", get().uri(text("")), "ajp-path"),
        refused("S17", "uri relative", get().uri(text("foo")), "ajp-path"),
        refused("S17", "uri absolute form", get().uri(text("http://h/x")), "ajp-path"),
        refused("S17", "uri with line break", get().uri(text("/a\r\nb")), "ajp-control-character"),
        refused("S17", "query with line break", get().attribute(attribute(5, "a\nb")),
            "ajp-control-character"),
        refused("S18", "* with GET", get().uri(text("*")), "ajp-path"),
        served("S18", "* with OPTIONS", get().method(1).uri(text("*")).packet()),
        // Which of these paths are acceptable is the connector's policy, the same as for HTTP.
        served("S19", "%00", get().uri(text("/%00")).packet()),
        served("S19", "%zz %2f %5c", get().uri(text("/%zz%2f%5c")).packet()),
        served("S19", "/..;/x", get().uri(text("/..;/x")).packet()),
        served("S19", "raw 80 to FF", get().uri(text(b"/\x80\xFF")).packet()),
        refused("S20", "count one too high", lying, "ajp-malformed-request"),
        refused("S21", "count FFFF", lying_more, "ajp-malformed-request"),
        refused("S22", "name code A000", get().field(coded(0x00, "v")), "ajp-malformed-request"),
        refused("S22", "name code A00F", get().field(coded(0x0F, "v")), "ajp-malformed-request"),
        refused("S22", "name code A0FF", get().field(coded(0xFF, "v")), "ajp-malformed-request"),
        refused("S22", "name length A100", get().field([vec![0xA1, 0], text("v")].concat()),
            "ajp-malformed-request"),
        refused("S23", "name null", get().field([null(), text("v")].concat()),
            "ajp-malformed-request"),
        refused("S23", "name empty", get().field(field("", "v")), "ajp-field-name"),
        refused("S23", "name with space", get().field(field("a b", "v")), "ajp-field-name"),
        refused("S23", "name with colon", get().field(field("a:", "v")), "ajp-field-name"),
        refused("S23", "name with control", get().field(field("a\rb", "v")), "ajp-field-name"),
        refused("S24", "name not ASCII", get().field(field("n\u{39A}", "v")), "ajp-field-name"),
        refused("S24", "value with line break", get().field(field("a", "v\r\nb: c")),
            "ajp-field-value"),
        served("S24", "value null", get().field([text("a"), null()].concat()).packet()),
        served("S24", "protocol, address, server null", null_protocol.packet()),
        served("S25", "100 fields", many(99).packet()),
        row("S25", "101 fields", many(100).packet(), Refuse(431, "ajp-too-many-fields")),
    ]
}

#[rustfmt::skip]
fn lengths() -> Vec<Row> {
    let length = |value: &str| field("content-length", value);
    let refused = |what, head: raw::Forward| {
        row("S26", what, head.packet(), Refuse(400, "ajp-content-length"))
    };
    let encoded = |what, head: raw::Forward| {
        row("S27", what, head.packet(), Refuse(400, "ajp-transfer-encoding"))
    };
    let chunked = |value: &str| get().method(4).field(field("Transfer-Encoding", value));
    vec![
        refused("twice, equal", post(5).field(length("5"))),
        refused("twice, different", post(5).field(length("6"))),
        refused("coded twice", post(5).field(coded(raw::LENGTH, "5"))),
        refused("spelt out twice", get().field(length("5")).field(field("CONTENT-LENGTH", "5"))),
        refused("+5", post("+5")),
        refused("-1", post("-1")),
        refused("5x", post("5x")),
        refused("leading space", post(" 5")),
        refused("empty", post("")),
        refused("null", get().field([vec![0xA0, raw::LENGTH], null()].concat())),
        refused("2^63", post("9223372036854775808")),
        refused("2^64 + 5", post("18446744073709551621")),
        refused("list", post("5, 5")),
        encoded("chunked and a length", chunked("chunked").field(length("5"))),
        encoded("chunked and length 0", chunked("chunked").field(length("0"))),
        encoded("chunked, chunked", chunked("chunked, chunked")),
        encoded("chunked twice", chunked("chunked").field(field("transfer-encoding", "chunked"))),
        encoded("identity", chunked("identity")),
        encoded("gzip, chunked", chunked("gzip, chunked")),
        encoded("empty", chunked("")),
        row("S27", "chunked in any case", [chunked("Chunked").packet(), data(b"")].concat(),
            Serve(&["POST", "end"], 0)),
        served("S27", "length 0", post(0).packet()),
    ]
}

#[rustfmt::skip]
fn attributes() -> Vec<Row> {
    let refused = |number, what, bytes: Vec<u8>, token| {
        row(number, what, get().attribute(bytes).packet(), Refuse(400, token))
    };
    let forbidden = |name: &str| {
        let input = get().attribute(named(name, "/WEB-INF/web.xml")).packet();
        row("S30", "CVE-2020-1938", input, Refuse(403, "ajp-forbidden-attribute"))
    };
    let ok = |number, what, bytes: Vec<u8>| served(number, what, get().attribute(bytes).packet());
    let mut rows = vec![
        ok("S28", "key size as integer", vec![0x0B, 0, 128]),
        ok("S28", "key size 8 as integer", vec![0x0B, 0, 8]),
        ok("S28", "key size as digits", attribute(0x0B, "256")),
        refused("S28", "key size of 16 digits", attribute(0x0B, "0000000000000128"),
            "ajp-malformed-request"),
        refused("S28", "key size of 15 nines", attribute(0x0B, "9".repeat(15)),
            "ajp-malformed-request"),
        refused("S28", "key size 12x", attribute(0x0B, "12x"), "ajp-malformed-request"),
        ok("S29", "unknown name: the connector's policy", named("anything", "v")),
        ok("S29", "value null", [vec![0x0A], text("a"), null()].concat()),
        refused("S29", "name null", [vec![0x0A], null(), text("v")].concat(), "ajp-attribute-name"),
        refused("S29", "name empty", named("", "v"), "ajp-attribute-name"),
        refused("S29", "name with control", named("a\nb", "v"), "ajp-control-character"),
        ok("S30", "context and servlet path are not heeded",
            [attribute(1, "/x"), attribute(2, "/y")].concat()),
    ];
    for code in [0x00, 0x0E, 0x20, 0xFE] {
        rows.push(refused("S28", "attribute code", attribute(code, "v"), "ajp-malformed-request"));
    }
    for name in ["request_uri", "path_info", "servlet_path"] {
        rows.push(forbidden(&format!("javax.servlet.include.{name}")));
        rows.push(forbidden(&format!("jakarta.servlet.include.{name}")));
    }
    rows
}

/// A DATA packet of which the first bytes look like a request: inner length 0x0202.
fn disguised() -> Vec<u8> {
    let mut inside = get().payload()[2..].to_vec();
    inside.resize(0x0202, 0);
    data(&inside)
}

#[rustfmt::skip]
fn bodies() -> Vec<Row> {
    let after = |head: raw::Forward, rest: &[u8]| [&head.packet()[..], rest].concat();
    let body = |number, what, rest: &[u8], token| {
        row(number, what, after(post(5), rest), Refuse(400, token))
    };
    let early = |number, what, rest: &[u8], token| {
        row_with(App::Early, number, what, after(post(5), rest), Abort(token))
    };
    let whole = |number, what, rest: &[u8]| {
        row(number, what, after(post(5), rest), Serve(&["POST", "body 5", "end"], 0))
    };
    vec![
        body("S31", "wrong magic", &raw::to_web_server(b"\0\x05hello"), "ajp-magic"),
        body("S31", "payload of one byte", &raw::to_container(&[0]), "ajp-body-shape"),
        body("S31", "CPING as body", &raw::to_container(&[0x0A]), "ajp-body-shape"),
        body("S31", "inner length too long", &data_of(6, b"hello"), "ajp-body-shape"),
        body("S31", "inner length FFFF", &data_of(0xFFFF, b"hello"), "ajp-body-shape"),
        body("S31", "payload too large", &[0x12, 0x34, 0x1F, 0xFD], "ajp-packet-too-large"),
        body("S31", "5 bytes of slack", &data_of(5, b"hello\0\0\0\0\xFF"), "ajp-body-shape"),
        whole("S31", "4 bytes of slack", &data_of(5, b"hello\0\0\0\xFF")),
        whole("S31", "whole", &data(b"hello")),
        body("S32", "more than the length", &data(b"hello!"), "ajp-request-body-too-long"),
        body("S32", "end before the length", &[data(b"he"), data(b"")].concat(),
            "ajp-request-body-too-short"),
        body("S32", "aborted before the first byte", &data(b""), "ajp-request-body-too-short"),
        body("S32", "aborted, other form", &raw::to_container(&[]), "ajp-request-body-too-short"),
        row("S32", "in pieces", after(post(5), &[data(b"he"), data(b"l"), data(b"lo")].concat()),
            Serve(&["POST", "body 2", "body 1", "body 2", "end"], 0)),
        early("S34", "owed packet of one byte", &raw::to_container(&[0]), "ajp-body-shape"),
        early("S34", "owed packet is a request", &get().packet(), "ajp-body-shape"),
        early("S34", "owed packet is a CPING", &raw::to_container(&[0x0A]), "ajp-body-shape"),
        early("S34", "owed packet has wrong magic", b"GET /", "ajp-magic"),
        row_with(App::Early, "S34", "owed packet is swallowed", after(post(5), &data(b"hello")),
            Serve(&["POST", "end"], 0)),
        // CVE-2011-3190: a refused request's body must not become the next request.
        row_with(App::Early, "S34", "body in disguise is swallowed",
            after(post(0x0202), &disguised()), Serve(&["POST", "end"], 0)),
        // CVE-2022-26377: a body that nobody announced must not become a request.
        row_with(App::Late, "S35", "body in disguise, no length",
            after(get().method(4), &disguised()), Serve(&["POST"], 0)),
        row_with(App::Late, "S35", "body in disguise, chunked",
            after(get().method(4).field(field("Transfer-Encoding", "chunked")), &disguised()),
            Serve(&["POST"], 0)),
        row_with(App::Late, "S35", "pipelined request", after(get(), &get().packet()),
            Serve(&["GET"], 0)),
        row("S35", "read, it answers the first ask",
            [get().method(4).packet(), disguised(), data(b"")].concat(), Serve(&["POST", "body 514",
            "end"], 0)),
    ]
}

/// The bytes behind `out`'s CPONGs and GET_BODY_CHUNKs, and how many CPONGs there were.
fn replies(mut out: &[u8]) -> (usize, Vec<u8>) {
    let (mut pongs, mut rest) = (0, Vec::new());
    while !out.is_empty() {
        assert_eq!(out[..2], *b"AB");
        let packet = out.copy_to_bytes(4 + usize::from(u16::from_be_bytes([out[2], out[3]])));
        match packet[4] {
            9 => pongs += 1,
            6 => {}
            _ => rest.extend_from_slice(&packet),
        }
    }
    (pongs, rest)
}

/// A refusal as the reference spells it.
fn refusal(status: u16) -> Vec<u8> {
    let reason = StatusCode::from_u16(status)
        .unwrap()
        .canonical_reason()
        .unwrap();
    let head = raw::send_headers_of(status, &text(reason), 1, &coded(0x03, "0"));
    [head, raw::end_response(0)].concat()
}

fn check(row: &Row, outcome: &Outcome) {
    let name = format!("{} {}", row.number, row.what);
    let (pongs, replies) = replies(&outcome.out);
    let token = outcome.fault.map(|fault| fault.token());
    match row.expect {
        Refuse(status, expected) => {
            assert_eq!(token, Some(expected), "{name}");
            assert_eq!(replies, refusal(status), "{name}");
        }
        Drop(expected) => {
            assert_eq!(token, Some(expected), "{name}");
            assert_eq!(outcome.out, b"", "{name}");
            assert_eq!(outcome.events, [""; 0], "{name}");
        }
        Abort(expected) => {
            assert_eq!(token, Some(expected), "{name}");
            assert_eq!(replies, raw::send_headers(200, &[]), "{name}");
        }
        Serve(events, expected_pongs) => {
            assert_eq!(outcome.fault, None, "{name}");
            assert_eq!(pongs, expected_pongs, "{name}");
            let seen: Vec<&str> = outcome.events.iter().map(String::as_str).collect();
            let is_as_expected = match events {
                ["*"] => seen.len() == 1,
                events => {
                    seen.len() == events.len()
                        && seen
                            .iter()
                            .zip(events)
                            .all(|(seen, event)| seen.starts_with(event))
                }
            };
            assert!(is_as_expected, "{name}: {seen:?}");
            if !events.is_empty() {
                let end = outcome.end.expect("a request is answered");
                let reuse = u8::from(row.app != App::Late);
                assert_eq!(
                    end,
                    if reuse == 1 { End::Reuse } else { End::Close },
                    "{name}"
                );
                let response = [raw::send_headers(200, &[]), raw::end_response(reuse)].concat();
                assert_eq!(replies, response, "{name}");
            }
        }
    }
}

#[test]
fn every_row_whole() {
    for row in rows() {
        let outcome = Connector::run(row.app, [&row.input[..]].into_iter());
        check(&row, &outcome);
    }
}

#[test]
fn every_row_byte_by_byte() {
    for row in rows() {
        let outcome = Connector::run(row.app, row.input.chunks(1));
        check(&row, &outcome);
    }
}

#[test]
fn every_row_cut_at_every_offset() {
    for row in rows() {
        let name = format!("{} {}", row.number, row.what);
        let whole = Connector::run(row.app, [&row.input[..]].into_iter());
        for cut in 0..row.input.len() {
            let outcome = Connector::run(row.app, [&row.input[..cut]].into_iter());
            if outcome.fault.is_some() {
                assert_eq!(outcome.fault, whole.fault, "{name} cut at {cut}");
                assert_eq!(outcome.out, whole.out, "{name} cut at {cut}");
                continue;
            }
            let so_far = &whole.events[..outcome.events.len().min(whole.events.len())];
            assert_eq!(outcome.events, so_far, "{name} cut at {cut}");
            let is_untouched = outcome.events.is_empty() && outcome.out.is_empty();
            if is_untouched && cut > 0 {
                assert_eq!(outcome.at_eof, Some(Fault::Eof), "{name} cut at {cut}");
            }
        }
    }
}

/// S33, and the other half of every cut: a body that stops is a fault that can be answered.
#[test]
fn a_body_cut_short_by_the_end_of_the_connection_is_told() {
    let input = [post(5).packet(), data(b"hell")].concat();
    let head_len = post(5).packet().len();
    for cut in head_len..input.len() {
        let outcome = Connector::run(App::Reads, [&input[..cut]].into_iter());
        let fault = outcome.at_eof.expect("the body is not complete");
        assert_eq!(fault.token(), "ajp-request-body-eof");
        assert_eq!(fault.status(), Some(StatusCode::BAD_REQUEST));
    }
}

/// The largest payload is size - 4, in heads and in bodies.
#[test]
fn a_packet_of_exactly_the_maximum_is_taken() {
    let room = 8188 - get().attribute(named("a", "")).payload().len();
    let fits = get().attribute(named("a", "v".repeat(room)));
    assert_eq!(fits.packet().len(), 8192);
    let outcome = Connector::run(App::Early, [&fits.packet()[..]].into_iter());
    assert_eq!((outcome.fault, outcome.end), (None, Some(End::Reuse)));
    let over = get().attribute(named("a", "v".repeat(room + 1))).packet();
    let outcome = Connector::run(App::Early, [&over[..4]].into_iter());
    assert_eq!(outcome.fault.unwrap().token(), "ajp-packet-too-large");

    let input = [post(8186).packet(), data(&[b'x'; 8186])].concat();
    let outcome = Connector::run(App::Reads, input.chunks(1000));
    assert_eq!(outcome.events[1..], ["body 8186", "end"]);
}
