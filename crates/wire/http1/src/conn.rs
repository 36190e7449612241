//! The state of one connection, the same for both roles.
//!
//! It holds the state of both directions, and whether the connection may be used again.
//! [`server`](crate::server) and [`client`](crate::client) interpret heads and drive it. An exchange
//! is over when both its messages have ended. Only then does the next one begin, and only if both
//! sides allow it.

use bytes::BytesMut;
use catamaran_message::Fields;

use crate::body::{Decoder, Encoder, Piece};
use crate::error::{BodyError, Fault};
use crate::head::scan::{RawHead, Scan};
use crate::limits::Limits;

/// The role of this end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Conn {
    role: Role,
    persistent: bool,
    limits: Limits,
    inbound: Inbound,
    outbound: Outbound,
}

/// The state of the message being received.
///
/// ```text
/// server:          Head ─► Body ─► Done ─┐ both done: Head again, or Closed
/// client: Idle ─►  Head ─► Body ─► Done ─┘ both done: Idle again, or Closed
/// any state ─► Failed on a fault
/// ```
#[derive(Debug)]
enum Inbound {
    /// No message is expected.
    Idle,
    Head(Scan),
    Body(Decoder),
    Done,
    /// Bytes that may still come are ignored.
    Closed,
    Failed(Fault),
}

/// The state of the message being sent.
#[derive(Debug)]
enum Outbound {
    Idle,
    Body(Encoder),
    Done,
    /// The message was cut short: the connection must close, so that the peer notices.
    Cut(BodyError),
}

impl Conn {
    pub(crate) fn new(role: Role, limits: Limits) -> Self {
        let inbound = Inbound::start(role);
        Self {
            role,
            persistent: true,
            limits,
            inbound,
            outbound: Outbound::Idle,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether a head is expected next.
    pub(crate) fn awaits_head(&self) -> bool {
        matches!(self.inbound, Inbound::Head(_))
    }

    /// Takes a whole head out of `input` and reads its fields into `fields`; `None` if it is not complete, or none
    /// is expected. The role then calls `expect_body` or `expect_head`, or `fail`.
    pub(crate) fn receive_head(
        &mut self,
        input: &mut BytesMut,
        fields: &mut Fields,
    ) -> Result<Option<RawHead>, Fault> {
        let Inbound::Head(scan) = &mut self.inbound else {
            return Ok(None);
        };
        let head = scan.advance(self.role, &self.limits, input, fields);
        head.map_err(|fault| self.fail(fault))
    }

    /// The next piece of a body in `input`; `None` if more bytes are needed or none is expected.
    pub(crate) fn receive(&mut self, input: &mut BytesMut) -> Result<Option<Piece>, Fault> {
        let received = match &mut self.inbound {
            Inbound::Failed(fault) => return Err(*fault),
            Inbound::Head(_) | Inbound::Done | Inbound::Closed => return Ok(None),
            Inbound::Idle if input.is_empty() => return Ok(None),
            Inbound::Idle => Err(Fault::Unsolicited),
            Inbound::Body(decoder) => decoder.decode(input, &self.limits),
        };
        match received {
            Ok(Some(Piece::End)) => self.end_inbound(),
            Ok(_) => {}
            Err(fault) => {
                self.fail(fault);
            }
        }
        received
    }

    /// Records a fault: this connection is never used again.
    pub(crate) fn fail(&mut self, fault: Fault) -> Fault {
        self.inbound = Inbound::Failed(fault);
        self.persistent = false;
        fault
    }

    /// Whether the framing of the body that is being received shows its end.
    pub(crate) fn is_framed(&self) -> bool {
        !matches!(self.inbound, Inbound::Body(Decoder::UntilClose))
    }

    /// Expects a head next.
    pub(crate) fn expect_head(&mut self) {
        self.inbound = Inbound::Head(Scan::default());
    }

    /// Expects the body of the head just received.
    pub(crate) fn expect_body(&mut self, decoder: Decoder) {
        self.inbound = Inbound::Body(decoder);
    }

    /// Ends the message being received.
    pub(crate) fn end_inbound(&mut self) {
        self.inbound = Inbound::Done;
        self.settle();
    }

    /// Handles the peer's close of its sending side; `has_left` says whether bytes are left that were not taken, or
    /// whether a part of the message was taken before. Returns `true` if that ended a body.
    pub(crate) fn receive_eof(&mut self, has_left: bool) -> Result<bool, Fault> {
        let fault = match &self.inbound {
            Inbound::Failed(fault) => return Err(*fault),
            // Requests that came before the end are still to be answered.
            Inbound::Done | Inbound::Closed => return Ok(false),
            Inbound::Head(scan) if scan.is_untouched() && !has_left => match self.role {
                Role::Client => Fault::ClosedUnanswered,
                Role::Server => {
                    self.close();
                    return Ok(false);
                }
            },
            Inbound::Idle => {
                self.close();
                return Ok(false);
            }
            Inbound::Head(_) => Fault::TruncatedHead,
            Inbound::Body(decoder) if decoder.ends_here() => {
                self.persistent = false;
                self.end_inbound();
                return Ok(true);
            }
            Inbound::Body(_) => Fault::TruncatedBody,
        };
        Err(self.fail(fault))
    }

    /// Makes the current exchange the last one.
    pub(crate) fn close_after(&mut self) {
        self.persistent = false;
    }

    /// Ignores all bytes that may still come.
    pub(crate) fn close(&mut self) {
        self.persistent = false;
        if !matches!(self.inbound, Inbound::Failed(_)) {
            self.inbound = Inbound::Closed;
        }
    }

    /// Whether another exchange may follow the current one.
    pub(crate) fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Whether no exchange is under way, also after the last one.
    pub(crate) fn is_idle(&self) -> bool {
        match &self.inbound {
            Inbound::Idle | Inbound::Closed => !self.is_sending(),
            Inbound::Head(scan) => scan.is_untouched() && self.may_send_head(),
            Inbound::Body(_) | Inbound::Done | Inbound::Failed(_) => false,
        }
    }

    /// Whether the connection is ready for another exchange.
    pub(crate) fn can_reuse(&self) -> bool {
        self.persistent && self.is_idle() && self.may_send_head()
    }

    /// Whether the whole message being received has arrived.
    pub(crate) fn is_received(&self) -> bool {
        !matches!(self.inbound, Inbound::Body(_) | Inbound::Failed(_))
    }

    /// Whether a client may send a request: no exchange is under way and the connection is not closed.
    pub(crate) fn may_begin(&self) -> bool {
        matches!(
            (&self.inbound, &self.outbound),
            (Inbound::Idle, Outbound::Idle)
        )
    }

    pub(crate) fn may_send_head(&self) -> bool {
        matches!(self.outbound, Outbound::Idle)
    }

    pub(crate) fn begin_outbound(&mut self, encoder: Encoder) {
        self.outbound = Outbound::Body(encoder);
    }

    /// Turns the connection into a tunnel, after the heads that ended both messages. From now on bytes go both
    /// ways as they are, each way up to its close.
    pub(crate) fn open_tunnel(&mut self) {
        self.persistent = false;
        self.inbound = Inbound::Body(Decoder::UntilClose);
        self.outbound = Outbound::Body(Encoder::UntilClose);
    }

    pub(crate) fn awaits_close(&self) -> bool {
        matches!(self.outbound, Outbound::Body(Encoder::UntilClose))
    }

    /// Whether the peer has every byte of the message that the head announced.
    pub(crate) fn is_sent(&self) -> bool {
        match &self.outbound {
            Outbound::Body(encoder) => encoder.is_filled(),
            Outbound::Done => true,
            Outbound::Idle | Outbound::Cut(_) => false,
        }
    }

    fn is_sending(&self) -> bool {
        matches!(self.outbound, Outbound::Body(_))
    }

    pub(crate) fn begin_data(&mut self, len: usize, out: &mut BytesMut) -> usize {
        match &mut self.outbound {
            Outbound::Body(encoder) => encoder.begin(len, out),
            _ => 0,
        }
    }

    pub(crate) fn finish_data(&mut self, out: &mut BytesMut) {
        if let Outbound::Body(encoder) = &mut self.outbound {
            encoder.finish(out);
        }
    }

    pub(crate) fn send_data(&mut self, data: &[u8], out: &mut BytesMut) {
        let allowed = self.begin_data(data.len(), out);
        out.extend_from_slice(&data[..allowed]);
        self.finish_data(out);
    }

    /// Ends the message being sent.
    pub(crate) fn end_outbound(&mut self, out: &mut BytesMut) -> Result<(), BodyError> {
        let result = match self.outbound {
            Outbound::Body(encoder) => encoder.end(out),
            Outbound::Cut(error) => Err(error),
            Outbound::Idle | Outbound::Done => return Err(BodyError::OutOfTurn),
        };
        if let Err(error) = result {
            self.outbound = Outbound::Cut(error);
            self.persistent = false;
        } else {
            self.outbound = Outbound::Done;
            self.settle();
        }
        result
    }

    /// Begins the next exchange if the present one is over.
    fn settle(&mut self) {
        if !matches!(
            (&self.inbound, &self.outbound),
            (Inbound::Done, Outbound::Done)
        ) {
            return;
        }
        if self.persistent {
            self.inbound = Inbound::start(self.role);
            self.outbound = Outbound::Idle;
        } else {
            self.inbound = Inbound::Closed;
        }
    }
}

impl Inbound {
    fn start(role: Role) -> Self {
        match role {
            Role::Client => Self::Idle,
            Role::Server => Self::Head(Scan::default()),
        }
    }
}
