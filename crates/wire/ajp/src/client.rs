//! The client role: what a web server does.
//!
//! A [`Client`] is the web server's end of one connection. It sends a head, then the body as AJP13
//! allows: the first packet of a body of known length at once, every other only when the container
//! asks. What the container sends becomes [`ClientEvent`]s; [`Client::receive`] itself appends
//! answers that the protocol demands to the caller's output. Sockets, pools and timeouts are the
//! caller's.

mod facts;
mod head;
mod skim;

use bytes::{Buf, Bytes, BytesMut};
use catamaran_message::ResponseHead;
use http::Method;

pub use self::facts::{Attribute, Facts};
pub use self::skim::{AjpSkim, KnownHead, Outline};
use crate::error::{ResponseFault, Violation};
use crate::exchange::{Chunk, Exchange};
use crate::message::{body_chunk, data, end_response, forward_request, get_body_chunk, ping};
use crate::packet::{self, HEADER_BYTES, SERVER_MAGIC};
use crate::{BodyError, Fault, PacketSize, Request, RequestError, code};

/// Settings of the client role.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig {
    /// The largest packet sent; must not exceed the container's own (Tomcat's `packetSize`).
    /// Default 8192 bytes.
    pub packet_size: PacketSize,
    /// The largest packet accepted. Default 8192 bytes; more lets Undertow answer with larger
    /// heads than its requests have.
    pub reply_packet_size: PacketSize,
    /// The most header fields in a request, Content-Length included. Default 100, which is what
    /// Tomcat takes (`maxHeaderCount`); it refuses more with 500.
    pub fields_max: usize,
    /// The most header fields in a response. Default 200.
    pub response_fields_max: usize,
    /// The most 1xx heads before the final one. Default 0: AJP13 has no interim responses, and
    /// what looks like one is more likely a confused container. 101 is never accepted.
    pub interim_max: u8,
    /// How often the container may ask for body bytes after the end of the body and get an empty
    /// packet, before it is a fault. Default 3; Tomcat asks once.
    pub surplus_asks_max: u8,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            packet_size: PacketSize::DEFAULT,
            reply_packet_size: PacketSize::DEFAULT,
            fields_max: 100,
            response_fields_max: 200,
            interim_max: 0,
            surplus_asks_max: 3,
        }
    }
}

/// An event that the container's bytes contained.
#[derive(Clone, Debug)]
pub enum ClientEvent {
    /// A 1xx head; only with [`ClientConfig::interim_max`].
    Interim(Box<ResponseHead>),
    /// The response's head; comes once, before any [`ClientEvent::Body`]. Boxed, because it is large
    /// beside the other events.
    Head(Box<ResponseHead>),
    /// Bytes of the response's body; never empty.
    Body(Bytes),
    /// The application flushed: pass on the bytes received so far.
    Flush,
    /// The container asks for body bytes: [`Client::body_credit`] says how many in one packet,
    /// [`Client::body_wanted`] in all.
    BodyWanted,
    /// The response is complete. [`Client::can_reuse`] says whether another exchange may follow.
    End,
    /// The answer to [`Client::send_ping`].
    Pong,
}

/// The web server's end of one connection.
///
/// ```text
/// idle --send_request--> exchange --End, reusable--> idle
///   |                        |------End, otherwise--> over
///   '--send_ping--> ping --Pong--> idle           any fault --> over
/// ```
/// A clone has the state of the original: a request that was encoded once can be sent on any number
/// of connections, each with a clone of the client that encoded it.
#[derive(Clone, Debug)]
pub struct Client {
    config: ClientConfig,
    stage: Stage,
    /// A head whose memory the next one uses.
    spare: Option<Box<ResponseHead>>,
}

#[derive(Clone, Debug)]
enum Stage {
    Idle,
    Ping,
    Exchange(Exchange),
    Over,
}

impl Client {
    /// The state of a new connection, idle.
    pub fn new(config: ClientConfig) -> Self {
        Self {
            config,
            stage: Stage::Idle,
            spare: None,
        }
    }

    /// Appends the head of `request` to `out` and begins an exchange.
    ///
    /// # Errors
    /// [`RequestError`] if the request cannot be sent over AJP13, or not now. Then nothing is
    /// written, and the state of the connection does not change.
    pub fn send_request(
        &mut self,
        request: &Request<'_>,
        facts: &Facts<'_>,
        out: &mut BytesMut,
    ) -> Result<(), RequestError> {
        if !self.is_idle() {
            return Err(RequestError::Busy);
        }
        facts::check(request, facts)?;
        let start = out.len();
        let encoded = forward_request::encode(request, facts, &self.config, out);
        encoded.inspect_err(|_| out.truncate(start))?;
        self.stage = Stage::Exchange(Exchange::new(request.body, request.method == Method::HEAD));
        Ok(())
    }

    /// The most body bytes that may be sent now, in one packet.
    ///
    /// A body of known length has credit for its first packet at once: the container waits for it
    /// even if it has answered already. All other credit comes with [`ClientEvent::BodyWanted`].
    pub fn body_credit(&self) -> usize {
        match &self.stage {
            Stage::Exchange(exchange) => exchange.request.credit(self.config.packet_size),
            _ => 0,
        }
    }

    /// The most body bytes that may be sent now, in all the packets that the container has asked for.
    pub fn body_wanted(&self) -> usize {
        match &self.stage {
            Stage::Exchange(exchange) => exchange.request.wanted(self.config.packet_size),
            _ => 0,
        }
    }

    /// Appends the prefix of a packet with `len` body bytes; the caller then appends the bytes, or
    /// sends them after `out` from where they are. With a length of zero it writes nothing.
    ///
    /// # Panics
    /// If `len` exceeds [`Client::body_credit`]: a packet that was not asked for would be read as the
    /// next request.
    pub fn begin_data(&mut self, len: usize, out: &mut BytesMut) {
        let credit = self.body_credit();
        assert!(
            len <= credit,
            "{len} body bytes exceed the credit of {credit}"
        );
        if len == 0 {
            // An empty packet would end the body.
            return;
        }
        if let Stage::Exchange(exchange) = &mut self.stage {
            let passed = exchange.request.data(len);
            debug_assert_eq!(passed, Ok(()), "credit covers the packet");
            data::encode_prefix(len, out);
        }
    }

    /// Sends `bytes` as one packet; see [`Client::begin_data`].
    ///
    /// # Panics
    /// As [`Client::begin_data`].
    pub fn send_data(&mut self, bytes: &[u8], out: &mut BytesMut) {
        self.begin_data(bytes.len(), out);
        out.extend_from_slice(bytes);
    }

    /// Ends the request's body. Packets that the container has asked for, or asks for later, are
    /// answered as empty.
    ///
    /// # Errors
    /// [`BodyError::Short`] if a body of known length lacks bytes. The container still waits for
    /// them, so close the connection.
    pub fn finish_body(&mut self, out: &mut BytesMut) -> Result<(), BodyError> {
        let Stage::Exchange(exchange) = &mut self.stage else {
            return Ok(());
        };
        if exchange.request.finish().is_err() {
            let missing = exchange.request.missing();
            return Err(BodyError::Short { missing });
        }
        answer_asks(exchange, out);
        Ok(())
    }

    /// Appends a CPING, which [`ClientEvent::Pong`] answers.
    ///
    /// # Panics
    /// If the connection is not idle: a CPING amid an exchange would be read as a body packet.
    pub fn send_ping(&mut self, out: &mut BytesMut) {
        assert!(self.is_idle(), "a ping is legal between exchanges only");
        out.extend_from_slice(&ping::CPING);
        self.stage = Stage::Ping;
    }

    /// Takes the next event out of `input`; `None` asks for more bytes. Body bytes are slices of
    /// `input`, not copies. Empty body packets that the container asked for are appended to `out`.
    ///
    /// # Errors
    /// [`Fault`]: the exchange has failed and the connection must be closed.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<ClientEvent>, Fault> {
        let received = self.receive_message(input, out);
        if received.is_err() {
            self.stage = Stage::Over;
        }
        received
    }

    /// Takes back a head that is not needed any more; the next one uses its memory.
    pub fn recycle(&mut self, mut head: Box<ResponseHead>) {
        head.clear();
        self.spare = Some(head);
    }

    /// Handles the container's close of the connection.
    ///
    /// # Errors
    /// [`Fault::Eof`] in the middle of an exchange or ping: a response is complete only with
    /// END_RESPONSE.
    pub fn receive_eof(&self) -> Result<(), Fault> {
        match self.stage {
            Stage::Idle | Stage::Over => Ok(()),
            Stage::Ping | Stage::Exchange(_) => Err(Fault::Eof),
        }
    }

    /// Whether a request or ping may be sent.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Whether another exchange may follow: the container allowed it, the body was sent to its end,
    /// and no packet is owed. The caller must also check that its input is empty and its output sent.
    pub fn can_reuse(&self) -> bool {
        self.is_idle()
    }

    /// Takes messages out of `input` until one yields an event; `None` if more bytes are needed.
    fn receive_message(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<ClientEvent>, Fault> {
        loop {
            let exchange = match &mut self.stage {
                Stage::Exchange(exchange) => exchange,
                Stage::Ping => return self.receive_pong(input),
                Stage::Idle | Stage::Over if input.is_empty() => return Ok(None),
                Stage::Idle | Stage::Over => return Err(Fault::Unsolicited),
            };
            answer_asks(exchange, out);
            let size = self.config.reply_packet_size;
            let Some(len) = packet::complete(input, SERVER_MAGIC, size)? else {
                return Ok(None);
            };
            let payload = &input[HEADER_BYTES..len];
            let event = match payload.first() {
                Some(&code::SEND_BODY_CHUNK) => receive_chunk(exchange, len, input)?,
                Some(&code::SEND_HEADERS) => {
                    let payload = packet::take_payload(input, len);
                    let head = self.spare.take().unwrap_or_default();
                    Some(receive_head(exchange, &payload, &self.config, head)?)
                }
                Some(&code::GET_BODY_CHUNK) => {
                    let bytes = get_body_chunk::decode(payload).map_err(ResponseFault::from)?;
                    input.advance(len);
                    exchange.request.ask(bytes, self.config.surplus_asks_max)?;
                    (!exchange.request.has_ended()).then_some(ClientEvent::BodyWanted)
                }
                Some(&code::END_RESPONSE) => {
                    let reuse = end_response::decode(payload).map_err(ResponseFault::from)?;
                    input.advance(len);
                    self.stage = end(exchange, reuse)?;
                    return Ok(Some(ClientEvent::End));
                }
                Some(&other) => return Err(Fault::Message(other)),
                None => return Err(Fault::Empty),
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    fn receive_pong(&mut self, input: &mut BytesMut) -> Result<Option<ClientEvent>, Fault> {
        let size = self.config.reply_packet_size;
        let Some(payload) = packet::take(input, SERVER_MAGIC, size)? else {
            return Ok(None);
        };
        match payload.first() {
            Some(&code::CPONG) => ping::decode_pong(&payload).map_err(ResponseFault::from)?,
            Some(&other) => return Err(Fault::Message(other)),
            None => return Err(Fault::Empty),
        }
        self.stage = Stage::Idle;
        Ok(Some(ClientEvent::Pong))
    }
}

/// Appends an empty packet for each one that the container asked for after the end of the body.
#[inline]
fn answer_asks(exchange: &mut Exchange, out: &mut BytesMut) {
    let body = &mut exchange.request;
    while body.has_ended() && body.owed() > 0 && body.data(0).is_ok() {
        out.extend_from_slice(&data::EMPTY);
    }
}

/// Ends the response, and returns the stage that follows. `reuse`: the container allows another exchange.
#[inline]
fn end(exchange: &Exchange, reuse: bool) -> Result<Stage, Violation> {
    exchange.response.end()?;
    // Packets that were asked for after the body's end have been answered with empty ones.
    let may_go_on = reuse && exchange.request.has_ended();
    Ok(if may_go_on { Stage::Idle } else { Stage::Over })
}

/// Takes a chunk, which is the first `len` bytes of `input`.
fn receive_chunk(
    exchange: &mut Exchange,
    len: usize,
    input: &mut BytesMut,
) -> Result<Option<ClientEvent>, Fault> {
    let body = body_chunk::decode(&input[HEADER_BYTES..len]).map_err(ResponseFault::from)?;
    let body_len = body.len();
    let mut payload = packet::take_payload(input, len);
    Ok(match exchange.response.chunk(body_len)? {
        Chunk::Body => {
            payload.advance(body_chunk::PREFIX_BYTES);
            payload.truncate(body_len);
            Some(ClientEvent::Body(payload))
        }
        Chunk::Flush => Some(ClientEvent::Flush),
        Chunk::Nothing => None,
    })
}

/// Reads the head of a response into `head`, and records it in the exchange.
fn receive_head(
    exchange: &mut Exchange,
    payload: &Bytes,
    config: &ClientConfig,
    mut head: Box<ResponseHead>,
) -> Result<ClientEvent, Fault> {
    if exchange.response.has_head() {
        return Err(Violation::HeadTwice.into());
    }
    head::read(payload, config.response_fields_max, &mut head)?;
    if head.status.is_informational() {
        exchange.response.interim(config.interim_max)?;
        return Ok(ClientEvent::Interim(head));
    }
    exchange.response.head(head.status, head.content_length)?;
    Ok(ClientEvent::Head(head))
}
