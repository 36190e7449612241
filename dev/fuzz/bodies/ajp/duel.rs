//! Plays both roles against each other, over a wire that delivers bytes in any pieces.
//!
//! The input decides about requests, bodies, responses, how much of the body the application reads, and how many
//! bytes each step moves. It checks that every head and body arrives as it was sent, that no step faults, that no
//! exchange stalls, that a connection is reused only when both ends agree, and that DATA is sent unasked exactly
//! once, if Content-Length is above zero.

use std::net::{IpAddr, Ipv4Addr};

use bytes::BytesMut;
use catamaran_ajp::code::METHODS;
use catamaran_ajp::{
    BodyLength, Client, ClientConfig, ClientEvent, End, Facts, PacketSize, Request, Response,
    Server, ServerConfig, ServerEvent,
};
use catamaran_message::Fields;
use http::{Method, StatusCode, Version};

use super::entropy::Entropy;

/// Plays exchanges on one connection until the bytes are used up or one end closes.
pub(crate) fn duel(input: &[u8]) {
    let mut entropy = Entropy::new(input);
    let size = if entropy.flag() {
        PacketSize::MAX
    } else {
        PacketSize::DEFAULT
    };
    let client = ClientConfig {
        packet_size: size,
        reply_packet_size: size,
        ..ClientConfig::default()
    };
    let server = ServerConfig {
        packet_size: size,
        ..ServerConfig::default()
    };
    let mut wire = Wire {
        client: Client::new(client),
        server: Server::new(server),
        client_out: BytesMut::new(),
        server_in: BytesMut::new(),
        server_out: BytesMut::new(),
        client_in: BytesMut::new(),
    };
    for _ in 0..4 {
        let plan = Plan::new(&mut entropy);
        let can_go_on = Play::new(&plan, &mut wire).run(&mut entropy);
        if !can_go_on || entropy.is_empty() {
            return;
        }
        assert!(wire.client.can_reuse() && wire.server.is_idle());
    }
}

/// A connection with both its ends.
struct Wire {
    client: Client,
    server: Server,
    client_out: BytesMut,
    server_in: BytesMut,
    server_out: BytesMut,
    client_in: BytesMut,
}

/// The requests and responses of one exchange.
#[derive(Debug)]
struct Plan {
    method: Method,
    path: String,
    headers: Fields,
    body: Vec<u8>,
    is_length_known: bool,
    /// Body bytes that the application reads before it answers. If there are fewer, it reads all.
    reads: usize,
    status: StatusCode,
    response_headers: Fields,
    response_body: Vec<u8>,
    is_response_length_known: bool,
}

impl Plan {
    fn new(entropy: &mut Entropy<'_>) -> Self {
        let method = match entropy.below(METHODS.len() + 2) {
            index if index < METHODS.len() => METHODS[index],
            _ => "PATCH",
        };
        let body = match entropy.byte() % 3 {
            0 => Vec::new(),
            1 => vec![b'u'; entropy.below(20)],
            _ => vec![b'U'; entropy.below(BODY_MAX)],
        };
        let statuses = [200, 204, 205, 304, 404, 500, 599];
        let response_body = if entropy.flag() {
            vec![b'd'; entropy.below(BODY_MAX)]
        } else {
            Vec::new()
        };
        Self {
            method: Method::from_bytes(method.as_bytes()).expect("a token"),
            path: format!("/{}", "p".repeat(entropy.below(50))),
            headers: headers(entropy),
            is_length_known: entropy.flag(),
            reads: match entropy.byte() % 3 {
                0 => 0,
                1 => entropy.below(body.len() + 1),
                _ => usize::MAX,
            },
            body,
            status: StatusCode::from_u16(statuses[entropy.below(statuses.len())])
                .expect("a status"),
            response_headers: headers(entropy),
            response_body,
            is_response_length_known: entropy.flag(),
        }
    }

    /// Whether the head says that the body comes in chunks.
    fn is_chunked(&self) -> bool {
        !self.is_length_known && self.body.len().is_multiple_of(2)
    }

    fn has_response_body(&self) -> bool {
        self.method != Method::HEAD && !matches!(self.status.as_u16(), 204 | 205 | 304)
    }
}

/// A few fields, coded and spelt out, some repeated.
fn headers(entropy: &mut Entropy<'_>) -> Fields {
    let names = [
        "host",
        "accept",
        "set-cookie",
        "x-a",
        "x-b",
        "location",
        "x-a",
        "user-agent",
    ];
    let mut headers = Fields::new();
    for _ in 0..entropy.byte() % 8 {
        let name = names[entropy.below(names.len())];
        let value = "v".repeat(entropy.below(40));
        headers.append(name, value);
    }
    headers
}

/// One exchange while it is played.
struct Play<'a> {
    plan: &'a Plan,
    wire: &'a mut Wire,
    /// Body bytes that the client has sent.
    sent: usize,
    /// DATA packets that the client has sent.
    packets: usize,
    /// GET_BODY_CHUNKs that the client has received.
    asks: usize,
    has_request: bool,
    has_answered: bool,
    /// Body bytes that the application has read.
    read: usize,
    /// The application has seen the end of the body.
    has_body_end: bool,
    end: Option<End>,
    has_head: bool,
    response: usize,
    has_ended: bool,
}

impl<'a> Play<'a> {
    fn new(plan: &'a Plan, wire: &'a mut Wire) -> Self {
        Self {
            plan,
            wire,
            sent: 0,
            packets: 0,
            asks: 0,
            has_request: false,
            has_answered: false,
            read: 0,
            has_body_end: false,
            end: None,
            has_head: false,
            response: 0,
            has_ended: false,
        }
    }

    /// Plays the exchange; returns whether the connection can be reused.
    fn run(mut self, entropy: &mut Entropy<'_>) -> bool {
        self.send_request();
        for _ in 0..STEPS_MAX {
            let before = self.state();
            let moves_all = entropy.is_empty();
            self.send_body(entropy);
            let moved_up = deliver(&mut self.wire.client_out, &mut self.wire.server_in, entropy);
            self.serve();
            let moved_down = deliver(&mut self.wire.server_out, &mut self.wire.client_in, entropy);
            self.listen();
            if self.has_ended {
                return self.finish();
            }
            let is_stalled = !moved_up && !moved_down && before == self.state();
            assert!(!(is_stalled && moves_all), "stalled: {}", self.report());
        }
        panic!("endless: {}", self.report());
    }

    /// The state of the exchange, for the message of a finding.
    fn report(&self) -> String {
        let Plan {
            method,
            status,
            reads,
            ..
        } = self.plan;
        let (body, response) = (self.plan.body.len(), self.plan.response_body.len());
        format!(
            "{method} of {body} bytes, known {}, reads {reads}, {status} of {response} bytes: \
             sent {} in {} packets for {} asks, read {}, end {:?}, got {}; {:?}; {:?}",
            self.plan.is_length_known,
            self.sent,
            self.packets,
            self.asks,
            self.read,
            self.end,
            self.response,
            self.wire.client,
            self.wire.server,
        )
    }

    fn state(&self) -> (usize, usize, usize, bool, usize, usize) {
        let queued = self.wire.client_out.len() + self.wire.server_out.len();
        (
            self.sent,
            self.packets,
            self.read,
            self.has_head,
            self.response,
            queued,
        )
    }

    fn send_request(&mut self) {
        let plan = self.plan;
        let body = if plan.is_length_known {
            BodyLength::Known(plan.body.len() as u64)
        } else {
            BodyLength::Unknown
        };
        let request = Request {
            method: &plan.method,
            path: plan.path.as_bytes(),
            query: Some(b"a=b"),
            host: b"example.com",
            headers: &plan.headers,
            body,
        };
        let facts = Facts {
            version: Version::HTTP_11,
            remote_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            server_name: b"example.com",
            server_port: 8443,
            is_ssl: true,
            announce_chunked: plan.is_chunked(),
            attributes: &[],
        };
        let Wire {
            client, client_out, ..
        } = &mut *self.wire;
        client
            .send_request(&request, &facts, client_out)
            .expect("the request fits");
        let is_unasked = matches!(body, BodyLength::Known(1..));
        assert_eq!(
            client.body_credit() > 0,
            is_unasked,
            "unasked iff a length was sent"
        );
    }

    fn send_body(&mut self, entropy: &mut Entropy<'_>) {
        let Wire {
            client, client_out, ..
        } = &mut *self.wire;
        let unsent = &self.plan.body[self.sent..];
        let credit = client.body_credit().min(unsent.len());
        if credit > 0 {
            let len = if entropy.is_empty() {
                credit
            } else {
                1 + entropy.below(credit)
            };
            client.send_data(&unsent[..len], client_out);
            self.sent += len;
            self.packets += 1;
            // With a length, the first packet follows the request without being asked for.
            let unasked = usize::from(self.plan.is_length_known);
            assert!(
                self.packets <= self.asks + unasked,
                "a packet nobody asked for"
            );
        }
        if self.sent == self.plan.body.len() {
            client
                .finish_body(client_out)
                .expect("the body is complete");
        }
    }

    fn serve(&mut self) {
        loop {
            let Wire {
                server,
                server_in,
                server_out,
                ..
            } = &mut *self.wire;
            match server
                .receive(server_in, server_out)
                .expect("a fair client")
            {
                Some(ServerEvent::Request(head)) => {
                    assert!(!self.has_request, "one request");
                    self.has_request = true;
                    assert_eq!(head.method, self.plan.method);
                    assert_eq!(head.path, self.plan.path);
                    assert_eq!(head.headers, self.plan.headers);
                }
                Some(ServerEvent::Body(bytes)) => {
                    let unread = &self.plan.body[self.read..];
                    assert!(unread.starts_with(&bytes), "body bytes in order");
                    self.read += bytes.len();
                }
                Some(ServerEvent::BodyEnd) if self.end == Some(End::Owed) => self.end_response(),
                Some(ServerEvent::BodyEnd) => {
                    assert_eq!(self.read, self.plan.body.len(), "the whole body");
                    self.has_body_end = true;
                    self.answer();
                }
                None => {
                    if !self.has_request || self.has_answered {
                        return;
                    }
                    let is_empty = self.plan.is_length_known && self.plan.body.is_empty();
                    if self.read >= self.plan.reads || is_empty {
                        self.answer();
                    } else {
                        server.want_body(server_out);
                        return;
                    }
                }
            }
        }
    }

    fn answer(&mut self) {
        if std::mem::replace(&mut self.has_answered, true) {
            return;
        }
        let plan = self.plan;
        let head = Response {
            status: plan.status,
            reason: None,
            headers: &plan.response_headers,
            body: if plan.is_response_length_known {
                BodyLength::Known(plan.response_body.len() as u64)
            } else {
                BodyLength::Unknown
            },
        };
        let Wire {
            server, server_out, ..
        } = &mut *self.wire;
        server.send_head(&head, server_out).expect("the head fits");
        server.send_flush(server_out);
        server.send_data(&plan.response_body, server_out);
        self.end_response();
    }

    fn end_response(&mut self) {
        let Wire {
            server,
            server_in,
            server_out,
            ..
        } = &mut *self.wire;
        let end = server.send_end(server_in, server_out);
        let may_close = self.plan.is_chunked() && !self.has_body_end;
        assert!(end != End::Close || may_close, "both ends were fair");
        self.end = Some(end);
    }

    fn listen(&mut self) {
        loop {
            let Wire {
                client,
                client_in,
                client_out,
                ..
            } = &mut *self.wire;
            match client
                .receive(client_in, client_out)
                .expect("a fair server")
            {
                Some(ClientEvent::Head(head)) => {
                    assert!(!self.has_head, "one head");
                    self.has_head = true;
                    assert_eq!(head.status, self.plan.status);
                    assert_eq!(head.headers, self.plan.response_headers);
                }
                Some(ClientEvent::Body(bytes)) => {
                    let unread = &self.plan.response_body[self.response..];
                    assert!(unread.starts_with(&bytes), "response bytes in order");
                    self.response += bytes.len();
                }
                Some(ClientEvent::BodyWanted) => self.asks += 1,
                Some(ClientEvent::Flush) => {}
                Some(ClientEvent::End) => self.has_ended = true,
                Some(event) => panic!("{event:?} was not sent"),
                None => return,
            }
        }
    }

    /// Checks what arrived; returns whether the connection can be reused.
    fn finish(self) -> bool {
        let expected = if self.plan.has_response_body() {
            self.plan.response_body.len()
        } else {
            0
        };
        assert_eq!(self.response, expected, "the whole response");
        assert!(self.has_head && self.wire.client_in.is_empty());
        if self.plan.reads == usize::MAX {
            assert_eq!(self.read, self.plan.body.len(), "the whole body");
        }
        assert!(matches!(self.end, Some(End::Reuse | End::Close)));
        let is_done = self.sent == self.plan.body.len() && self.end == Some(End::Reuse);
        if !is_done {
            assert!(!self.wire.client.can_reuse(), "the body was cut off");
        }
        self.wire.client.can_reuse() && self.wire.client_out.is_empty()
    }
}

/// Moves some bytes, or all if the input is used up; returns whether any were moved.
fn deliver(from: &mut BytesMut, to: &mut BytesMut, entropy: &mut Entropy<'_>) -> bool {
    let len = if entropy.is_empty() {
        from.len()
    } else {
        entropy.below(from.len() + 1)
    };
    to.unsplit(from.split_to(len));
    len > 0
}

/// The longest body, a few packets.
const BODY_MAX: usize = 30_000;

/// More steps than the longest exchange takes once bytes move freely.
const STEPS_MAX: usize = 200_000;
