//! The client's side of one exchange, whichever protocol the request came by.
//!
//! A closed set, so it is an enum. Bytes of the request's body come in, a response goes out; what a
//! connection is, and what happens to it between requests, is known to the arm's own type.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use catamaran_message::{RequestHead, Response};
use catamaran_upstream::Lease;
use http::{HeaderMap, StatusCode};

use crate::client::{BodyPart, ClientConnection, ClientError, ResponseError};
use crate::worker::deadlines::{Deadline, Tick};

/// Who asked, and is answered.
#[derive(Debug)]
pub(crate) enum Downstream<'c> {
    /// An HTTP/1.x connection, which carries one exchange at a time.
    Http1(&'c mut ClientConnection),
}

impl Downstream<'_> {
    /// The next piece of the request's body.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BodyPart, ClientError>> {
        match self {
            Self::Http1(client) => client.poll_body(cx),
        }
    }

    /// Whether bytes were received that have not been looked at.
    pub(crate) fn has_input(&self) -> bool {
        match self {
            Self::Http1(client) => client.has_input(),
        }
    }

    /// Fails if the client has left; see [`ClientConnection::poll_left`].
    pub(crate) fn poll_left(
        &mut self,
        cx: &mut Context<'_>,
        now: Tick,
    ) -> Result<Option<Tick>, ClientError> {
        match self {
            Self::Http1(client) => client.poll_left(cx, now),
        }
    }

    /// Says that the body may come (RFC 9110, section 10.1.1).
    pub(crate) fn send_continue(&mut self) {
        match self {
            Self::Http1(client) => client.send_continue(),
        }
    }

    /// Passes an interim response on.
    pub(crate) fn send_interim(&mut self, status: StatusCode, headers: &HeaderMap) {
        match self {
            Self::Http1(client) => client.send_interim(status, headers),
        }
    }

    /// Begins the response.
    ///
    /// # Errors
    /// The head cannot be put into the client's protocol; nothing was sent.
    pub(crate) fn send_head(&mut self, head: &Response<'_>) -> Result<(), ResponseError> {
        match self {
            Self::Http1(client) => client.send_head(head),
        }
    }

    /// Hands over some of the response's body.
    pub(crate) fn send_data(&mut self, data: Bytes) {
        match self {
            Self::Http1(client) => client.send_data(data),
        }
    }

    /// Ends the response. `false` if it is shorter than announced: it must be cut.
    #[must_use]
    pub(crate) fn send_end(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.send_end().is_ok(),
        }
    }

    /// Whether enough waits to be written that nothing should be added.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Http1(client) => client.is_full(),
        }
    }

    /// Bytes not yet written.
    pub(crate) fn unwritten(&self) -> usize {
        match self {
            Self::Http1(client) => client.unwritten(),
        }
    }

    /// Writes what was handed over; ready when all of it is written.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self {
            Self::Http1(client) => client.poll_write(cx),
        }
    }

    /// Bytes of the response's body handed over.
    pub(crate) fn sent(&self) -> u64 {
        match self {
            Self::Http1(client) => client.sent(),
        }
    }

    /// Whether the client can tell by itself that it was given the whole response.
    pub(crate) fn has_response(&self) -> bool {
        match self {
            Self::Http1(client) => client.has_response(),
        }
    }

    /// The rest of the request's body is not wanted: the response says that nothing follows it.
    pub(crate) fn abandon_upload(&mut self) {
        match self {
            Self::Http1(client) => client.close_after(),
        }
    }

    /// Sends what was handed over of a response that will not be completed, for so long, and makes
    /// visible that the rest is missing.
    pub(crate) async fn cut(&mut self, deadline: &Deadline, limit: Duration) {
        match self {
            Self::Http1(client) => client.give_up(deadline, limit).await,
        }
    }

    /// Keeps an exchange that the client did not wait for until its connection is closed.
    pub(crate) fn leave_behind(&mut self, lease: Lease) {
        match self {
            Self::Http1(client) => client.leave_behind(lease),
        }
    }

    /// Takes back a request's head, for the next one to use its memory.
    pub(crate) fn recycle(&mut self, head: Box<RequestHead>) {
        match self {
            Self::Http1(client) => client.recycle(head),
        }
    }
}
