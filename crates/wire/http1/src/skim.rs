//! The client role for load generators: it reads the outcome of a response and keeps no content.
//!
//! A [`Skimmer`] reads responses as strictly as [`Client`](crate::Client) does, by the same code, but
//! from a borrowed slice, and it keeps only the [`Outline`] of a head and the length of a body. A
//! load generator receives the same head a million times, so the last head is remembered with its
//! outline ([`KnownHead`]), and a head that is the same byte for byte is not parsed again. This is
//! correct because the meaning of a head depends on its bytes alone.

use bytes::BytesMut;
use catamaran_message::ResponseHead;
use http::StatusCode;

use crate::body::Decoder;
use crate::conn::Role;
use crate::error::Fault;
use crate::head::response::{self, RequestTraits};
use crate::head::scan::Scan;
use crate::limits::Limits;

/// Reads the responses of one connection.
///
/// ```text
/// Idle --expect--> Head --> Body --> Idle, or Over if the connection may not go on
/// any state --> Failed on a fault
/// ```
#[derive(Clone, Debug)]
pub struct Skimmer {
    limits: Limits,
    state: State,
    /// Whether the response awaited answers a HEAD.
    to_head: bool,
    keep_alive: bool,
    /// Whether an interim response to the current request has arrived.
    is_begun: bool,
}

#[derive(Clone, Debug)]
enum State {
    Idle,
    Head,
    Body(Decoder),
    Over,
    Failed(Fault),
}

/// What a load generator keeps of a response's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The status, never 101.
    pub status: StatusCode,
    /// The announced length of the body; see [`ResponseHead::content_length`].
    pub content_length: Option<u64>,
    /// The size of the head on the wire, in bytes.
    pub bytes: usize,
    /// Whether another exchange may follow this one.
    pub keep_alive: bool,
}

/// An event that [`Skimmer::receive`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http1Skim {
    /// An interim response (1xx) of this many bytes, before the final one.
    Interim(usize),
    /// The final response begins.
    Head(Outline),
    /// This many bytes of the response's body; zero if only framing was read.
    Body(usize),
    /// The response is complete; comes once after every [`Self::Head`].
    End,
}

/// The last head that was parsed, shared by all connections that get the same head.
#[derive(Clone, Debug, Default)]
pub struct KnownHead {
    bytes: Vec<u8>,
    to_head: bool,
    meaning: Option<(Outline, Decoder)>,
}

impl KnownHead {
    /// The head as received, up to the empty line; empty before the first one.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Skimmer {
    /// The state of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Idle,
            to_head: false,
            keep_alive: true,
            is_begun: false,
        }
    }

    /// Expects a response next, for a request that was sent; `to_head`: to a HEAD. Call it for
    /// pipelined requests one after the other, each when the response before is complete.
    pub fn expect(&mut self, to_head: bool) {
        debug_assert!(self.is_idle(), "one response after the other");
        self.state = State::Head;
        self.to_head = to_head;
        self.is_begun = false;
    }

    /// Takes the next event out of `input`. `None` asks for more bytes: call again with the bytes
    /// left in `input` and more after them.
    ///
    /// # Errors
    /// A [`Fault`] is final: drop the connection.
    pub fn receive(
        &mut self,
        input: &mut &[u8],
        known: &mut KnownHead,
    ) -> Result<Option<Http1Skim>, Fault> {
        self.receive_into(input, known, &mut |_| {})
    }

    /// As [`Skimmer::receive`], but also passes the bytes of the body to `sink`, in pieces of any
    /// length.
    ///
    /// # Errors
    /// A [`Fault`] is final: drop the connection.
    pub fn receive_into(
        &mut self,
        input: &mut &[u8],
        known: &mut KnownHead,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Option<Http1Skim>, Fault> {
        let received = match &mut self.state {
            State::Failed(fault) => return Err(*fault),
            State::Over => return Ok(None),
            State::Idle if input.is_empty() => return Ok(None),
            State::Idle => Err(Fault::Unsolicited),
            State::Head if input.is_empty() => return Ok(None),
            State::Head => self.receive_head(input, known),
            State::Body(decoder) => receive_body(decoder, input, &self.limits, sink),
        };
        match received {
            Ok(Some(Http1Skim::End)) => self.end(),
            Err(fault) => self.state = State::Failed(fault),
            Ok(_) => {}
        }
        received
    }

    /// Handles the server's close of its sending side; `has_left` says whether bytes are left that were
    /// not taken. Returns `Some(End)` for a body that ends with the connection, `None` between
    /// exchanges.
    ///
    /// # Errors
    /// The stream ended inside a head or body, or before a response.
    pub fn receive_eof(&mut self, has_left: bool) -> Result<Option<Http1Skim>, Fault> {
        let fault = match &self.state {
            State::Failed(fault) => return Err(*fault),
            State::Idle | State::Over => {
                self.state = State::Over;
                return Ok(None);
            }
            State::Body(decoder) if decoder.ends_here() => {
                self.keep_alive = false;
                self.end();
                return Ok(Some(Http1Skim::End));
            }
            State::Head if !self.is_begun && !has_left => Fault::ClosedUnanswered,
            State::Head => Fault::TruncatedHead,
            State::Body(_) => Fault::TruncatedBody,
        };
        self.state = State::Failed(fault);
        Err(fault)
    }

    /// Whether another request may be sent: no exchange is under way.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    fn end(&mut self) {
        self.state = if self.keep_alive {
            State::Idle
        } else {
            State::Over
        };
    }

    fn receive_head(
        &mut self,
        input: &mut &[u8],
        known: &mut KnownHead,
    ) -> Result<Option<Http1Skim>, Fault> {
        let (outline, decoder) = if let Some((outline, decoder)) = &known.meaning
            && known.to_head == self.to_head
            && input.starts_with(&known.bytes)
        {
            (*outline, decoder.clone())
        } else if let Some(meaning) = self.parse_head(input, known)? {
            meaning
        } else {
            return Ok(None);
        };
        *input = &input[outline.bytes..];
        if outline.status.is_informational() {
            self.is_begun = true;
            return Ok(Some(Http1Skim::Interim(outline.bytes)));
        }
        self.keep_alive &= outline.keep_alive;
        self.state = State::Body(decoder);
        Ok(Some(Http1Skim::Head(outline)))
    }

    /// Parses the head at the front of `input` and stores it in `known`; `None` if it is not
    /// complete.
    fn parse_head(
        &self,
        input: &[u8],
        known: &mut KnownHead,
    ) -> Result<Option<(Outline, Decoder)>, Fault> {
        // One byte more than the limit, so that the scan can find it exceeded.
        let copied_len = input.len().min(self.limits.head_bytes.saturating_add(1));
        let mut copy = BytesMut::from(&input[..copied_len]);
        let mut head = ResponseHead::default();
        let fields = &mut head.headers;
        let scanned = Scan::default().advance(Role::Client, &self.limits, &mut copy, fields)?;
        let Some(raw) = scanned else {
            return Ok(None);
        };
        let request = RequestTraits {
            is_head: self.to_head,
            upgrade: None,
        };
        let rest = response::decode(&raw, request, &mut head)?;
        let outline = Outline {
            status: head.status,
            content_length: head.content_length,
            bytes: raw.bytes.len(),
            keep_alive: rest.keep_alive,
        };
        let meaning = (outline, rest.decoder);
        // An interim head would displace the final one, which follows it each time.
        if !outline.status.is_informational() {
            known.bytes.clear();
            known.bytes.extend_from_slice(&raw.bytes);
            known.to_head = self.to_head;
            known.meaning = Some(meaning.clone());
        }
        Ok(Some(meaning))
    }
}

fn receive_body(
    decoder: &mut Decoder,
    input: &mut &[u8],
    limits: &Limits,
    sink: &mut impl FnMut(&[u8]),
) -> Result<Option<Http1Skim>, Fault> {
    if decoder.is_done() {
        return Ok(Some(Http1Skim::End));
    }
    if input.is_empty() {
        return Ok(None);
    }
    let skipped = decoder.skip(input, limits, sink)?;
    *input = &input[skipped.taken..];
    Ok(Some(Http1Skim::Body(skipped.data)))
}

#[cfg(test)]
mod tests;
