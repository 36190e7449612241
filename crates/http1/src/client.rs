//! The client role: requests go out, responses come in.

use bytes::{Bytes, BytesMut};

use crate::error::{BodyError, Fault, RequestError};
use crate::head::{ReceivedHead, Request};
use crate::limits::Limits;

/// One connection as its client sees it.
#[derive(Debug)]
pub struct Client {
    #[expect(dead_code, reason = "skeleton")]
    limits: Limits,
}

/// What [`Client::receive`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// An interim response (1xx), before the final one.
    Interim(ReceivedHead),
    /// The final response begins.
    Head(ReceivedHead),
    /// A piece of its body, never empty.
    Body(Bytes),
    /// The response is complete; follows every head.
    End,
}

impl Client {
    /// A fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// Writes a request head.
    ///
    /// # Errors
    /// See [`RequestError`]; nothing was written.
    pub fn send_request(
        &mut self,
        _request: &Request<'_>,
        _out: &mut BytesMut,
    ) -> Result<(), RequestError> {
        Ok(())
    }

    /// Announces `len` bytes of body. Returns how many of them the caller must write to the
    /// connection next, before [`finish_data`](Self::finish_data): all, or only as many as
    /// Content-Length still allows.
    #[must_use = "exactly that many bytes have to follow"]
    pub fn begin_data(&mut self, len: usize, _out: &mut BytesMut) -> usize {
        len
    }

    /// Ends what [`begin_data`](Self::begin_data) announced.
    pub fn finish_data(&mut self, _out: &mut BytesMut) {}

    /// Writes a piece of the body: begin, copy, finish.
    pub fn send_data(&mut self, _data: &[u8], _out: &mut BytesMut) {}

    /// Ends the request body; to be called after every request, also one without a body.
    ///
    /// # Errors
    /// The body is not what the head announced: cut the connection.
    pub fn finish_body(&mut self, _out: &mut BytesMut) -> Result<(), BodyError> {
        Ok(())
    }

    /// Takes the next event out of `input`; `None` means: more bytes, please.
    ///
    /// # Errors
    /// A [`Fault`] is final: drop the connection. The same fault is returned again by further
    /// calls.
    pub fn receive(&mut self, _input: &mut BytesMut) -> Result<Option<ClientEvent>, Fault> {
        Ok(None)
    }

    /// The server closed its sending side. Call it after `receive` has returned `None`.
    /// `Some(End)` for a body that ends with the connection, `None` between exchanges.
    ///
    /// # Errors
    /// The stream ended inside a head or body, or before a response.
    pub fn receive_eof(&mut self) -> Result<Option<ClientEvent>, Fault> {
        Ok(None)
    }

    /// Between exchanges, nothing owed.
    pub fn is_idle(&self) -> bool {
        true
    }

    /// Both messages ended where their framing said and the server allows another exchange. The
    /// caller also checks that its input buffer is empty.
    pub fn can_reuse(&self) -> bool {
        true
    }
}
