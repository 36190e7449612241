//! The client role for load generators: it reads the outcome of a response and keeps no content.
//!
//! [`Client::skim`] is [`Client::receive`] on a borrowed slice, with the same state and the same
//! faults, but it keeps only the [`Outline`] of a head and the length of a body. A load generator
//! receives the same head a million times, so the last SEND_HEADERS is remembered with its outline
//! ([`KnownHead`]), and one that is the same byte for byte is not decoded again.

use bytes::{Bytes, BytesMut};
use catamaran_message::ResponseHead;
use http::StatusCode;

use super::{Client, ClientConfig, Stage, answer_asks, end, head};
use crate::error::{ResponseFault, Violation};
use crate::exchange::{Chunk, Exchange};
use crate::message::{body_chunk, end_response, get_body_chunk};
use crate::packet::{self, HEADER_BYTES, SERVER_MAGIC};
use crate::{Fault, code};

/// What a load generator keeps of a response's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The status, 100 to 999.
    pub status: StatusCode,
    /// The announced length of the body; see [`ResponseHead::content_length`].
    pub content_length: Option<u64>,
    /// The size of the head's packet on the wire, in bytes.
    pub bytes: usize,
}

/// An event that [`Client::skim`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AjpSkim {
    /// A 1xx head, in a packet of this many bytes.
    Interim(usize),
    /// The response's head.
    Head(Outline),
    /// This many bytes of the response's body; zero for packets that carry none.
    Body(usize),
    /// The container asks for body bytes: [`Client::body_credit`] says how many may be sent.
    BodyWanted,
    /// The response is complete. [`Client::can_reuse`] says whether another exchange may follow.
    End,
}

/// The last head that was decoded, shared by all connections that get the same head.
#[derive(Clone, Debug, Default)]
pub struct KnownHead {
    payload: Bytes,
    head: Option<ResponseHead>,
}

impl KnownHead {
    /// The last head decoded; `None` before the first one.
    pub fn head(&self) -> Option<&ResponseHead> {
        self.head.as_ref()
    }
}

impl Client {
    /// Takes the next event out of `input`. `None` asks for more bytes: call again with the bytes
    /// left in `input` and more after them. Empty body packets that the container asked for are
    /// appended to `out`.
    ///
    /// # Errors
    /// As [`Client::receive`].
    pub fn skim(
        &mut self,
        input: &mut &[u8],
        known: &mut KnownHead,
        out: &mut BytesMut,
    ) -> Result<Option<AjpSkim>, Fault> {
        let skimmed = self.skim_message(input, known, out);
        if skimmed.is_err() {
            self.stage = Stage::Over;
        }
        skimmed
    }

    /// Takes one message out of `input`, and records it in the exchange; `None` if it is not complete.
    fn skim_message(
        &mut self,
        input: &mut &[u8],
        known: &mut KnownHead,
        out: &mut BytesMut,
    ) -> Result<Option<AjpSkim>, Fault> {
        let exchange = match &mut self.stage {
            Stage::Exchange(exchange) => exchange,
            Stage::Idle | Stage::Over if input.is_empty() => return Ok(None),
            Stage::Ping | Stage::Idle | Stage::Over => return Err(Fault::Unsolicited),
        };
        answer_asks(exchange, out);
        let size = self.config.reply_packet_size;
        let payload = match packet::payload_length(input, SERVER_MAGIC, size)? {
            Some(len) if input.len() >= HEADER_BYTES + len => {
                let (packet, rest) = input.split_at(HEADER_BYTES + len);
                *input = rest;
                &packet[HEADER_BYTES..]
            }
            _ => return Ok(None),
        };
        Ok(Some(match payload.first() {
            Some(&code::SEND_BODY_CHUNK) => {
                let body = body_chunk::decode(payload).map_err(ResponseFault::from)?;
                match exchange.response.chunk(body.len())? {
                    Chunk::Body => AjpSkim::Body(body.len()),
                    // An empty chunk, or bytes of a response that has no body.
                    Chunk::Flush | Chunk::Nothing => AjpSkim::Body(0),
                }
            }
            Some(&code::SEND_HEADERS) => skim_head(exchange, payload, known, &self.config)?,
            Some(&code::GET_BODY_CHUNK) => {
                let bytes = get_body_chunk::decode(payload).map_err(ResponseFault::from)?;
                exchange.request.ask(bytes, self.config.surplus_asks_max)?;
                if exchange.request.has_ended() {
                    answer_asks(exchange, out);
                    AjpSkim::Body(0)
                } else {
                    AjpSkim::BodyWanted
                }
            }
            Some(&code::END_RESPONSE) => {
                let reuse = end_response::decode(payload).map_err(ResponseFault::from)?;
                self.stage = end(exchange, reuse)?;
                AjpSkim::End
            }
            Some(&other) => return Err(Fault::Message(other)),
            None => return Err(Fault::Empty),
        }))
    }
}

/// Outlines the head of a response, and records it in the exchange.
fn skim_head(
    exchange: &mut Exchange,
    payload: &[u8],
    known: &mut KnownHead,
    config: &ClientConfig,
) -> Result<AjpSkim, Fault> {
    if exchange.response.has_head() {
        return Err(Violation::HeadTwice.into());
    }
    let outline = known.outline(payload, config.response_fields_max)?;
    if outline.status.is_informational() {
        exchange.response.interim(config.interim_max)?;
        return Ok(AjpSkim::Interim(outline.bytes));
    }
    exchange
        .response
        .head(outline.status, outline.content_length)?;
    Ok(AjpSkim::Head(outline))
}

impl KnownHead {
    /// The outline of `payload`, a SEND_HEADERS; decodes it only if it differs from the last one.
    fn outline(&mut self, payload: &[u8], fields_max: usize) -> Result<Outline, ResponseFault> {
        let head = match &self.head {
            Some(head) if self.payload == payload => head,
            _ => {
                let payload = Bytes::copy_from_slice(payload);
                let mut head = ResponseHead::default();
                head::read(&payload, fields_max, &mut head)?;
                self.payload = payload;
                self.head.insert(head)
            }
        };
        Ok(Outline {
            status: head.status,
            content_length: head.content_length,
            bytes: HEADER_BYTES + payload.len(),
        })
    }
}
