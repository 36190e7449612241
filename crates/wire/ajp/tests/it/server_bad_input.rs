//! Bad input to the server role: every row of testkit's table fed whole, byte by byte, and cut at
//! every offset.
//!
//! The connector runs the same rows over real sockets; here nothing but the codec is in the way.

use bytes::{Buf, BytesMut};
use catamaran_ajp::{BodyLength, End, Fault, Response, Server, ServerConfig, ServerEvent};
use catamaran_message::Fields;
use http::StatusCode;

use crate::raw::Expect::{Abort, Drop, Refuse, Serve};
use crate::raw::{self, App, Row, coded, data, get, named, post, server_rows, text};

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
        let head = Response {
            status: StatusCode::OK,
            reason: None,
            headers: &Fields::new(),
            body: BodyLength::Unknown,
        };
        // The head is out already when the owed packet has come.
        let _ = self.server.send_head(&head, &mut self.out);
        self.outcome.end = Some(self.server.send_end(&self.input, &mut self.out));
    }
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
    for row in server_rows() {
        let outcome = Connector::run(row.app, [&row.input[..]].into_iter());
        check(&row, &outcome);
    }
}

#[test]
fn every_row_byte_by_byte() {
    for row in server_rows() {
        let outcome = Connector::run(row.app, row.input.chunks(1));
        check(&row, &outcome);
    }
}

#[test]
fn every_row_cut_at_every_offset() {
    for row in server_rows() {
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
