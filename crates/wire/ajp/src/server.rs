//! The server role: what a container does.
//!
//! A [`Server`] is the container's end of one connection. Received bytes become [`ServerEvent`]s: a
//! head, then body bytes. It answers CPING by itself, discards the one body packet that may still be
//! on its way when a response ends early, and never takes bytes that were sent ahead of time for a
//! request, because that allows request smuggling. Sockets, timeouts, the secret and the application
//! are the caller's.

mod head;

use bytes::{BufMut, Bytes, BytesMut};
use catamaran_message::{BodyLength, Fields, Response};
use http::{Method, StatusCode};

pub use self::head::{Attributes, RequestHead, Ssl};
use crate::error::BodyFault;
use crate::exchange::Exchange;
use crate::message::{body_chunk, data, end_response, get_body_chunk, ping, send_headers};
use crate::packet::{self, CLIENT_MAGIC, HEADER_BYTES};
use crate::wire::TooLarge;
use crate::{Fault, PacketSize, ResponseError, code, field};

/// Settings of the server role.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// The largest packet accepted and sent; must be the web server's own (mod_jk's
    /// `max_packet_size`, httpd's `ProxyIOBufferSize`, Tomcat's `packetSize`). Default 8192 bytes.
    pub packet_size: PacketSize,
    /// The most header fields in a request; more are refused with 431. Default 100, as Tomcat's
    /// `maxHeaderCount`.
    pub fields_max: usize,
    /// Whether body packets are body bytes without a count in front of them, as lighttpd sends them;
    /// an empty packet ends a body. Default `false`: no other web server sends them so.
    pub bare_body: bool,
    /// The number of body packets to ask for ahead of the one that is awaited, at most 15. Used only for bodies of
    /// known length, so that no unneeded packet is asked for. Each saves a round trip. But a web server that answers
    /// one request for a packet after the other reads an early response only after it has answered all of them. Default
    /// 0: deployed containers ask for one at a time.
    pub body_ahead: u8,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            packet_size: PacketSize::DEFAULT,
            fields_max: 100,
            bare_body: false,
            body_ahead: 0,
        }
    }
}

/// An event that the web server's bytes contained.
#[derive(Clone, Debug)]
pub enum ServerEvent {
    /// The head of a request.
    Request(Box<RequestHead>),
    /// Bytes of the request's body; never empty.
    Body(Bytes),
    /// The body is complete; only after a head whose body is not `Known(0)`. After [`End::Owed`]: the
    /// owed packet has arrived.
    BodyEnd,
}

/// The result of [`Server::send_end`], which says what the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The response is complete and the connection idle again.
    Reuse,
    /// The response is complete: flush, then close the connection.
    Close,
    /// Nothing was written yet, because a body packet is still on its way. Flush, receive until
    /// [`ServerEvent::BodyEnd`] and call `send_end` again; when that takes too long, call
    /// [`Server::send_end_now`].
    Owed,
}

/// The container's end of one connection.
///
/// ```text
/// idle --Request--> exchange --send_end--> idle | over
///  |                   |          '--Owed--> draining --BodyEnd, send_end--> idle | over
///  '--------any fault--+--> failed --refuse--> over
/// ```
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    stage: Stage,
    /// Whether part of a packet has arrived while idle.
    is_midway: bool,
    /// Whether the web server may send one more empty packet than it should, as lighttpd does.
    may_stray: bool,
    /// Whether the body's last byte was returned, but not its end.
    body_end_due: bool,
    /// Whether the connection ends after the response.
    is_closing: bool,
    /// Whether the request's body came in chunks, so that a web server may wrongly send it unasked.
    is_chunked: bool,
}

#[derive(Debug)]
enum Stage {
    Idle,
    Exchange(Exchange),
    /// The response is complete except for its END_RESPONSE.
    Draining(Exchange),
    Failed {
        has_head: bool,
    },
    Over,
}

impl Server {
    /// The state of a new connection, idle.
    pub fn new(config: ServerConfig) -> Self {
        Self {
            config,
            stage: Stage::Idle,
            is_midway: false,
            may_stray: false,
            body_end_due: false,
            is_closing: false,
            is_chunked: false,
        }
    }

    /// Takes the next event out of `input`; `None` asks for more bytes, if
    /// [`Server::expects_input`]. Body bytes are slices of `input`, not copies. A CPING is answered
    /// in `out`.
    ///
    /// While no body packet is due, bytes are left in `input` as they are.
    ///
    /// # Errors
    /// [`Fault`]: if it has a status, answer it with [`Server::refuse`]; then close the connection.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<ServerEvent>, Fault> {
        let received = match &self.stage {
            Stage::Idle => self.receive_idle(input, out),
            Stage::Exchange(_) | Stage::Draining(_) => self.receive_body(input),
            Stage::Failed { .. } | Stage::Over => Ok(None),
        };
        if received.is_err() {
            let has_head = self.has_head();
            self.stage = Stage::Failed { has_head };
        }
        received
    }

    /// Whether [`Server::receive`] would accept bytes now. If not, there is no need to read from the
    /// connection.
    pub fn expects_input(&self) -> bool {
        match &self.stage {
            Stage::Idle => true,
            Stage::Exchange(exchange) | Stage::Draining(exchange) => exchange.request.owed() > 0,
            Stage::Failed { .. } | Stage::Over => false,
        }
    }

    /// Asks for body bytes, unless the body has ended or enough packets are on their way already;
    /// see [`ServerConfig::body_ahead`].
    pub fn want_body(&mut self, out: &mut BytesMut) {
        let Stage::Exchange(exchange) = &mut self.stage else {
            return;
        };
        let (packet_size, body_ahead) = (self.config.packet_size, self.config.body_ahead);
        loop {
            let demand = exchange.request.demand(packet_size, body_ahead);
            let bytes = u16::try_from(demand).unwrap_or(u16::MAX);
            if bytes == 0 || exchange.request.ask(bytes, 0).is_err() {
                return;
            }
            get_body_chunk::encode(bytes, out);
        }
    }

    /// Appends the head of the response.
    ///
    /// # Errors
    /// [`ResponseError`]; nothing is written then, so another head, such as a 500, may be sent.
    pub fn send_head(
        &mut self,
        head: &Response<'_>,
        out: &mut BytesMut,
    ) -> Result<(), ResponseError> {
        let response = match &mut self.stage {
            Stage::Exchange(exchange) if !exchange.response.has_head() => &mut exchange.response,
            _ => return Err(ResponseError::NotDue),
        };
        if head.status.is_informational() {
            return Err(ResponseError::Interim);
        }
        let content_length = match head.body {
            BodyLength::Known(length) if length > field::LENGTH_MAX => {
                return Err(ResponseError::ContentLength);
            }
            BodyLength::Known(length) => Some(length),
            BodyLength::Unknown => None,
        };
        if !head.reason.is_none_or(field::is_value_text) {
            return Err(ResponseError::Reason);
        }
        send_headers::encode(head, self.config.packet_size, out)
            .map_err(|TooLarge { bytes, max }| ResponseError::HeadTooLarge { bytes, max })?;
        response
            .head(head.status, content_length)
            .map_err(|_| ResponseError::NotDue)
    }

    /// The most body bytes that [`Server::begin_chunk`] may take now; 0 before the head, when the
    /// response has no body, and when its Content-Length is reached.
    pub fn chunk_room(&self) -> usize {
        match &self.stage {
            Stage::Exchange(exchange) => {
                let size = self.config.packet_size;
                exchange.response.room(size.chunk_max())
            }
            _ => 0,
        }
    }

    /// Appends the prefix of a chunk with `len` body bytes; the caller then appends the bytes, or
    /// sends them after `out` from where they are, and calls [`Server::finish_chunk`].
    ///
    /// # Panics
    /// If `len` is 0 or exceeds [`Server::chunk_room`]: the web server would misread what follows.
    pub fn begin_chunk(&mut self, len: usize, out: &mut BytesMut) {
        let room = self.chunk_room();
        assert!(
            (1..=room).contains(&len),
            "a chunk of {len} bytes where 1 to {room} fit"
        );
        if let Stage::Exchange(exchange) = &mut self.stage {
            let passed = exchange.response.chunk(len);
            debug_assert!(passed.is_ok(), "the room covers the chunk");
        }
        body_chunk::encode_prefix(len, out);
    }

    /// Appends the byte that follows the body bytes of a chunk.
    pub fn finish_chunk(&mut self, out: &mut BytesMut) {
        out.put_u8(body_chunk::TERMINATOR);
    }

    /// Sends `bytes` of the body, in as many chunks as they need. They are dropped if the response
    /// has no body. Bytes beyond the Content-Length are dropped as well, and the connection closes
    /// with the response.
    pub fn send_data(&mut self, mut bytes: &[u8], out: &mut BytesMut) {
        while !bytes.is_empty() {
            let len = bytes.len().min(self.chunk_room());
            if len == 0 {
                self.is_closing |= !self.is_bodiless();
                return;
            }
            let (chunk, rest) = bytes.split_at(len);
            self.begin_chunk(len, out);
            out.extend_from_slice(chunk);
            self.finish_chunk(out);
            bytes = rest;
        }
    }

    /// Asks the web server to pass on the bytes it has. Does nothing before the head, where lighttpd
    /// takes it for an error, or when there is no body.
    pub fn send_flush(&mut self, out: &mut BytesMut) {
        if self.has_head() && !self.is_bodiless() {
            out.extend_from_slice(&body_chunk::FLUSH);
        }
    }

    /// The number of bytes that the response lacks of its Content-Length. A web server may pass on a
    /// response that ends short as if it were whole, so close the connection instead of ending it.
    pub fn response_missing(&self) -> u64 {
        match &self.stage {
            Stage::Exchange(exchange) | Stage::Draining(exchange) => exchange.response.missing(),
            _ => 0,
        }
    }

    /// Makes the connection end after the response, for instance because the container shuts down.
    pub fn close_after(&mut self) {
        self.is_closing = true;
    }

    /// Ends the response. `input` holds the bytes received and not taken yet.
    ///
    /// The connection closes if the body is shorter than its Content-Length, and wherever a request
    /// could be smuggled: if `input` holds anything but one stray empty packet, for no web server
    /// sends its next request before it has seen the end of this response; and if a chunked body was
    /// not read to its end, for some web servers send it without being asked (CVE-2022-26377), and it
    /// may arrive later. Without a head, a 500 is sent.
    pub fn send_end(&mut self, input: &BytesMut, out: &mut BytesMut) -> End {
        let (Stage::Exchange(exchange) | Stage::Draining(exchange)) = &self.stage else {
            return End::Close;
        };
        if !exchange.response.has_head() {
            self.refuse(StatusCode::INTERNAL_SERVER_ERROR, out);
            return End::Close;
        }
        if exchange.response.end().is_err() || self.is_closing {
            self.send_end_now(out);
            return End::Close;
        }
        if exchange.request.owed() > 0 {
            self.drain();
            return End::Owed;
        }
        let may_come_unasked = self.is_chunked && !exchange.request.has_ended();
        if may_come_unasked || !is_quiet(input) {
            self.send_end_now(out);
            return End::Close;
        }
        out.extend_from_slice(&end_response::REUSE);
        self.stage = Stage::Idle;
        self.may_stray = true;
        // The application did not read up to it.
        self.body_end_due = false;
        End::Reuse
    }

    /// Ends the response at once, whatever packets are owed or bytes are missing: the connection
    /// closes.
    pub fn send_end_now(&mut self, out: &mut BytesMut) {
        if let Stage::Exchange(_) | Stage::Draining(_) = self.stage {
            out.extend_from_slice(&end_response::CLOSE);
        }
        self.stage = Stage::Over;
    }

    /// Answers with `status` alone, unless a head was sent already, and ends the connection.
    /// For faults that have a status, and for requests that are not worth reading.
    pub fn refuse(&mut self, status: StatusCode, out: &mut BytesMut) {
        let is_due = match &self.stage {
            Stage::Exchange(exchange) => !exchange.response.has_head(),
            Stage::Failed { has_head } => !has_head,
            Stage::Idle | Stage::Draining(_) | Stage::Over => false,
        };
        if is_due {
            let head = Response {
                status,
                reason: None,
                headers: &Fields::new(),
                body: BodyLength::Known(0),
            };
            let written = send_headers::encode(&head, self.config.packet_size, out);
            debug_assert_eq!(written, Ok(()), "a head without fields fits any packet");
            out.extend_from_slice(&end_response::CLOSE);
        }
        self.stage = Stage::Over;
    }

    /// Handles the web server's close of the connection.
    ///
    /// # Errors
    /// [`Fault::Eof`] in the middle of a head or a response; [`BodyFault::Eof`] in the middle of a
    /// request's body.
    pub fn receive_eof(&self) -> Result<(), Fault> {
        match &self.stage {
            Stage::Idle if self.is_midway => Err(Fault::Eof),
            Stage::Idle | Stage::Failed { .. } | Stage::Over => Ok(()),
            Stage::Exchange(exchange) | Stage::Draining(exchange)
                if !exchange.request.has_ended() =>
            {
                Err(BodyFault::Eof.into())
            }
            Stage::Exchange(_) | Stage::Draining(_) => Err(Fault::Eof),
        }
    }

    /// Whether no exchange is open and no part of a request has arrived.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle) && !self.is_midway
    }

    /// Takes packets between exchanges: a request, CPINGs, and the stray empty packet of lighttpd.
    fn receive_idle(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<ServerEvent>, Fault> {
        loop {
            let Some(payload) = packet::take(input, CLIENT_MAGIC, self.config.packet_size)? else {
                self.is_midway = !input.is_empty();
                return Ok(None);
            };
            self.is_midway = false;
            let may_stray = std::mem::take(&mut self.may_stray);
            match payload.first() {
                Some(&code::FORWARD_REQUEST) => {
                    let head = RequestHead::read(&payload, self.config.fields_max)?;
                    let is_head = head.method == Method::HEAD;
                    self.is_chunked = head.is_chunked;
                    self.stage = Stage::Exchange(Exchange::new(head.body, is_head));
                    return Ok(Some(ServerEvent::Request(Box::new(head))));
                }
                Some(&code::CPING) => out.extend_from_slice(&ping::CPONG),
                None | Some(0) if may_stray && data::is_end(&payload) => {}
                Some(&other) => return Err(Fault::Message(other)),
                None => return Err(Fault::Empty),
            }
        }
    }

    /// Takes the next packet of the request's body, if the web server owes one.
    fn receive_body(&mut self, input: &mut BytesMut) -> Result<Option<ServerEvent>, Fault> {
        if std::mem::take(&mut self.body_end_due) {
            return Ok(Some(ServerEvent::BodyEnd));
        }
        let is_draining = matches!(self.stage, Stage::Draining(_));
        let (Stage::Exchange(exchange) | Stage::Draining(exchange)) = &mut self.stage else {
            return Ok(None);
        };
        let body = &mut exchange.request;
        if body.owed() == 0 {
            return Ok(None);
        }
        let size = self.config.packet_size;
        let Some(payload) = packet::take(input, CLIENT_MAGIC, size).map_err(BodyFault::from)?
        else {
            return Ok(None);
        };
        let bytes = if self.config.bare_body {
            &payload[..]
        } else {
            data::decode(&payload)?
        };
        body.data(bytes.len())?;
        if is_draining || bytes.is_empty() {
            return Ok(Some(ServerEvent::BodyEnd));
        }
        self.body_end_due = body.has_ended();
        Ok(Some(ServerEvent::Body(payload.slice_ref(bytes))))
    }

    /// Keeps the response open until the owed packet has come.
    fn drain(&mut self) {
        self.body_end_due = false;
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Exchange(exchange) => Stage::Draining(exchange),
            unchanged => unchanged,
        };
    }

    fn has_head(&self) -> bool {
        match &self.stage {
            Stage::Exchange(exchange) | Stage::Draining(exchange) => exchange.response.has_head(),
            Stage::Failed { has_head } => *has_head,
            Stage::Idle | Stage::Over => false,
        }
    }

    fn is_bodiless(&self) -> bool {
        match &self.stage {
            Stage::Exchange(exchange) => exchange.response.is_bodiless(),
            _ => true,
        }
    }
}

/// Whether `input` holds nothing but, at most, the surplus empty packet of lighttpd.
fn is_quiet(input: &[u8]) -> bool {
    match input.split_at_checked(HEADER_BYTES) {
        Some((header, payload)) => {
            header[..2] == CLIENT_MAGIC
                && usize::from(u16::from_be_bytes([header[2], header[3]])) == payload.len()
                && data::is_end(payload)
        }
        None => input.is_empty(),
    }
}
