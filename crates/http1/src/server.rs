//! The server role: requests come in, responses go out.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};

use crate::error::{BodyError, Fault, ResponseError};
use crate::head::{RequestHead, ResponseHead};
use crate::limits::Limits;

/// One connection as its server sees it.
#[derive(Debug)]
pub struct Server {
    #[expect(dead_code, reason = "skeleton")]
    limits: Limits,
}

/// What [`Server::receive`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A request begins.
    Head(Box<RequestHead>),
    /// A piece of its body, never empty.
    Body(Bytes),
    /// Its body is complete. Only after a head whose body was not `Known(0)`.
    BodyEnd,
}

impl Server {
    /// A fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// Takes the next event out of `input`; `None` means: more bytes, please.
    ///
    /// The next request is not looked at before the response to the last one has ended, so
    /// pipelined requests stay in `input` until then.
    ///
    /// # Errors
    /// A [`Fault`] is final: answer with [`Fault::status`] if no head was sent, then close. The
    /// same fault is returned again by further calls.
    pub fn receive(&mut self, _input: &mut BytesMut) -> Result<Option<ServerEvent>, Fault> {
        Ok(None)
    }

    /// The client closed its sending side, with `input` left over. Call it after `receive` has
    /// returned `None`. `Ok` means that it did so between requests; one may still wait for its
    /// response.
    ///
    /// # Errors
    /// The stream ended inside a head or a body.
    pub fn receive_eof(&mut self, _input: &BytesMut) -> Result<(), Fault> {
        Ok(())
    }

    /// Writes 100 (Continue) if the client waits for it, else nothing.
    pub fn send_continue(&mut self, _out: &mut BytesMut) {}

    /// Writes an interim response (1xx but 101). Nothing is written to HTTP/1.0 clients, after
    /// the final head, or for another status.
    pub fn send_interim(&mut self, _status: StatusCode, _headers: &HeaderMap, _out: &mut BytesMut) {
    }

    /// Writes the final head.
    ///
    /// # Errors
    /// See [`ResponseError`]; nothing was written.
    pub fn send_head(
        &mut self,
        _head: &ResponseHead<'_>,
        _out: &mut BytesMut,
    ) -> Result<(), ResponseError> {
        Ok(())
    }

    /// Announces `len` bytes of body. Returns how many of them the caller must write to the
    /// connection next, before [`finish_data`](Self::finish_data): all, or none where the
    /// response has no body (HEAD, 204, 304), or only as many as Content-Length still allows.
    #[must_use = "exactly that many bytes have to follow"]
    pub fn begin_data(&mut self, len: usize, _out: &mut BytesMut) -> usize {
        len
    }

    /// Ends what [`begin_data`](Self::begin_data) announced.
    pub fn finish_data(&mut self, _out: &mut BytesMut) {}

    /// Writes a piece of the body: begin, copy, finish.
    pub fn send_data(&mut self, _data: &[u8], _out: &mut BytesMut) {}

    /// Ends the response.
    ///
    /// # Errors
    /// The body is not what the head announced: cut the connection.
    pub fn send_end(&mut self, _out: &mut BytesMut) -> Result<(), BodyError> {
        Ok(())
    }

    /// The connection is to close after this exchange; a head sent later says so.
    pub fn close_after(&mut self) {}

    /// Between requests, nothing owed. The caller also looks whether its buffer is empty.
    pub fn is_idle(&self) -> bool {
        true
    }

    /// Both messages ended where their framing said and both sides allow another exchange.
    pub fn can_reuse(&self) -> bool {
        true
    }

    /// Nothing of the current request is still to come.
    pub fn request_body_done(&self) -> bool {
        true
    }
}
