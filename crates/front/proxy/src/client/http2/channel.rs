//! What the tasks of a connection and of one of its streams have to tell each other.

use std::task::{Context, Waker};

use bytes::Bytes;
use catamaran_transport::ByteQueue;

use crate::client::ClientError;
use crate::client::http2::line::CHUNK;
use crate::deadlines::Tick;

/// One stream, from the head of its request until its task has let go of it.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) id: u32,
    /// Bytes of the request's body that were received and not taken.
    pub(super) body: ByteQueue,
    /// Whether the client has ended its message.
    pub(super) has_ended: bool,
    /// Why nothing more moves on the stream; `None` while it is open.
    pub(super) over: Option<Over>,
    /// Bytes of the response's body that wait for the client's windows, and for their turn.
    pub(super) queue: ByteQueue,
    /// Whether the response ends after `queue`.
    pub(super) ends: bool,
    /// Whether the end of the response was moved into the connection's output.
    pub(super) is_sent: bool,
    /// Whether the head of the response waits in the output for what follows it.
    pub(super) has_head: bool,
    /// Whether the stream is in `Line::listed`, because it has something to send.
    pub(super) is_listed: bool,
    /// Bytes of the response's body that were moved into the output and that the socket has not taken.
    pub(super) unwritten: usize,
    /// Bytes of the response's body that the socket has taken, and when it last took some.
    pub(super) written: u64,
    pub(super) written_at: Tick,
    waker: Option<Waker>,
}

/// Why nothing more moves on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The client has reset the stream.
    Reset,
    /// The front has reset the stream, because the client's message is malformed; with the token of the fault.
    Malformed(&'static str),
    /// The connection is over, or the front has reset the stream.
    Left,
}

impl From<Over> for ClientError {
    fn from(over: Over) -> Self {
        match over {
            Over::Reset => Self::Reset,
            Over::Malformed(token) => Self::Malformed(token),
            Over::Left => Self::Left,
        }
    }
}

impl Channel {
    /// A stream whose request has just begun; `has_ended` if it has no body.
    pub(super) fn new(id: u32, has_ended: bool, now: Tick) -> Self {
        Self {
            id,
            body: ByteQueue::default(),
            has_ended,
            over: None,
            queue: ByteQueue::default(),
            ends: false,
            is_sent: false,
            has_head: false,
            is_listed: false,
            unwritten: 0,
            written: 0,
            written_at: now,
            waker: None,
        }
    }

    /// Has the task of `cx` woken at the next change: bytes of the body, the end, or room for the response.
    pub(super) fn watch(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            empty => *empty = Some(cx.waker().clone()),
        }
    }

    /// Wakes the task of the stream.
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Takes bytes of the request's body, and wakes the task.
    pub(super) fn receive(&mut self, data: Bytes, ends: bool) {
        // A small piece would keep the whole buffer that it was read into.
        if data.len() < CHUNK / 4 {
            self.body.tail().extend_from_slice(&data);
        } else {
            self.body.push(data);
        }
        self.has_ended |= ends;
        self.wake();
    }

    /// Ends the stream, whatever of it is missing, and wakes the task. The first reason stays.
    pub(super) fn end(&mut self, over: Over) {
        self.over.get_or_insert(over);
        self.body.clear();
        self.wake();
    }

    /// Whether something waits to be moved into the output.
    pub(super) fn has_output(&self) -> bool {
        self.over.is_none() && !self.is_sent && (self.ends || !self.queue.is_empty())
    }

    /// Bytes of the response's body that are not written yet; a head or an end without bytes counts as one. The last
    /// bytes of a response that was handed over, at most [`END_MAX`], count as written unless the socket refuses bytes
    /// (`is_blocked`): the exchange is over, and its task need not be woken once more.
    pub(super) fn unwritten(&self, is_blocked: bool) -> usize {
        if self.is_sent && self.unwritten <= END_MAX && !is_blocked {
            return 0;
        }
        let has_end = self.ends && !self.is_sent;
        self.queue.len() + self.unwritten + usize::from(has_end || self.has_head)
    }

    /// The socket has taken bytes of the response's body. Wakes the task when all is written, or when at most
    /// [`LOW_WATER`] bytes are left.
    pub(super) fn wrote(&mut self, bytes: usize, now: Tick) {
        let before = self.queue.len() + self.unwritten;
        self.unwritten -= bytes;
        self.written += bytes as u64;
        self.written_at = now;
        let after = before - bytes;
        if after == 0 || (before > LOW_WATER && after <= LOW_WATER) {
            self.wake();
        }
    }
}

/// A stream's task is woken to send more when at most this number of bytes is left to be written.
const LOW_WATER: usize = 32 * 1024;

/// The most bytes at the end of a response for whose writing its task does not wait: one frame.
const END_MAX: usize = super::line::PIECE_MAX;
