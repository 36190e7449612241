//! The client's side of one exchange, whichever protocol the request came by.
//!
//! The set of protocols is closed, so it is an enum. Bytes of the request's body come in and a
//! response goes out. The type in each arm knows its connection, and what happens to it between
//! requests. An exchange may have no client.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use catamaran_files::FilePart;
use catamaran_message::{BodyLength, Fields, RequestHead, Response, ResponseHead};
use catamaran_upstream::LeftBehind;
use http::StatusCode;

use crate::client::http2::line;
use crate::client::http2::stream::H2Stream;
use crate::client::pace::{Pace, Turn, Turns, Waits};
use crate::client::{BodyPart, ClientConnection, ClientError, ResponseError};
use crate::deadlines::{Deadline, Tick};

/// What happens to the client's connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The response was sent. The next request may follow if framing allows it; part of this
    /// one's body may have to be discarded first.
    Done,
    /// As [`After::Done`], but the client was too slow: the front waits only a short time for it.
    Late,
    /// It is closed at once, so that the client notices that something is missing.
    Cut,
}

/// The client of one exchange.
#[derive(Debug)]
pub(crate) enum Downstream<'c> {
    /// An HTTP/1.x connection, which carries one exchange at a time.
    Http1(&'c mut ClientConnection),
    /// A stream of an HTTP/2 connection.
    Http2(&'c mut H2Stream),
    /// There is no client: the front itself wants the response. It takes everything at once, is never full and never
    /// leaves.
    Nobody,
}

impl Downstream<'_> {
    /// What the connection speaks, as ALPN names it.
    pub(crate) fn protocol(&self) -> &'static str {
        match self {
            Self::Http1(_) => "http/1.1",
            Self::Http2(_) => "h2",
            Self::Nobody => "-",
        }
    }

    /// The number of the request's stream, if the connection has several.
    pub(crate) fn stream(&self) -> Option<u32> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(stream) => Some(stream.id()),
            Self::Nobody => None,
        }
    }

    /// Reports to `writing` the bytes that the connection has written since the last call, and returns the allowances
    /// of this exchange for others on its connection.
    pub(crate) fn share_pace(&mut self, waits: Waits, writing: &mut Pace) -> Turns {
        match self {
            Self::Http1(_) | Self::Nobody => Turns {
                writing: Turn::ALONE,
                reading: Turn::ALONE,
            },
            Self::Http2(stream) => stream.share_pace(waits, writing),
        }
    }

    /// Gives the share of an exchange that is cut for its client's pace to others on the connection.
    pub(crate) fn leave_shares(&mut self) {
        match self {
            Self::Http1(_) | Self::Nobody => {}
            Self::Http2(stream) => stream.leave_shares(),
        }
    }

    /// The next piece of the request's body.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BodyPart, ClientError>> {
        match self {
            Self::Http1(client) => client.poll_body(cx),
            Self::Http2(stream) => stream.poll_body(cx),
            Self::Nobody => Poll::Ready(Ok(BodyPart::End)),
        }
    }

    /// Whether bytes were received that have not been decoded.
    pub(crate) fn has_input(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.has_input(),
            Self::Http2(stream) => stream.has_input(),
            Self::Nobody => false,
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
            Self::Http2(stream) => stream.poll_left(cx).map(|()| None),
            Self::Nobody => Ok(None),
        }
    }

    /// Sends 100 (Continue): the client may send the body (RFC 9110, section 10.1.1).
    pub(crate) fn send_continue(&mut self) {
        match self {
            Self::Http1(client) => client.send_continue(),
            Self::Http2(stream) => stream.send_continue(),
            Self::Nobody => {}
        }
    }

    /// Passes an interim response on.
    pub(crate) fn send_interim(&mut self, status: StatusCode, headers: &Fields) {
        match self {
            Self::Http1(client) => client.send_interim(status, headers),
            Self::Http2(stream) => stream.send_interim(status, headers),
            Self::Nobody => {}
        }
    }

    /// Begins the response with `head`.
    ///
    /// # Errors
    /// The head cannot be put into the client's protocol; nothing was sent.
    pub(crate) fn send_head(&mut self, head: &ResponseHead) -> Result<(), ResponseError> {
        match self {
            Self::Http1(client) => client.send_head(&response(head)),
            Self::Http2(stream) => stream.send_head(&response(head)),
            Self::Nobody => Ok(()),
        }
    }

    /// Whether a status of 2xx would open a tunnel for the client, so that none may be sent unless the
    /// backend has agreed to one.
    pub(crate) fn opens_by_success(&self) -> bool {
        match self {
            Self::Http1(_) | Self::Nobody => false,
            Self::Http2(stream) => stream.asks_for_tunnel(),
        }
    }

    /// Whether the backend's 101 agrees to what the front asked for. For a WebSocket over HTTP/2 the
    /// front made the request's `Sec-WebSocket-Key`, and checks the answer to it.
    pub(crate) fn is_agreement(&self, headers: &Fields) -> bool {
        match self {
            // The client made the key and checks the answer itself.
            Self::Http1(_) => true,
            Self::Http2(stream) => stream.is_agreement(headers),
            // Nobody asked for a tunnel.
            Self::Nobody => false,
        }
    }

    /// Begins a tunnel with the head of a 101; returns the status that the client gets. From then on
    /// [`Self::poll_body`] yields the client's bytes, and [`Self::send_data`] takes those for the client.
    ///
    /// # Errors
    /// The head cannot be put into the client's protocol; nothing was sent.
    pub(crate) fn send_upgrade(
        &mut self,
        head: &mut ResponseHead,
    ) -> Result<StatusCode, ResponseError> {
        match self {
            Self::Http1(client) => client.send_upgrade(&response(head)).map(|()| head.status),
            Self::Http2(stream) => stream.send_upgrade(&mut head.headers),
            Self::Nobody => Err(ResponseError::OutOfTurn),
        }
    }

    /// Ends the tunnel towards the client, once everything is written.
    ///
    /// # Errors
    /// The client left.
    pub(crate) fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        match self {
            Self::Http1(client) => client.poll_finish(cx).map_err(ClientError::Io),
            Self::Http2(stream) => stream.poll_finish(cx),
            Self::Nobody => Poll::Ready(Ok(())),
        }
    }

    /// Fails if the client broke a tunnel whose bytes are not wanted now. Over HTTP/1.1 that is known
    /// only by reading or writing.
    pub(crate) fn poll_broken(&mut self, cx: &Context<'_>) -> Result<(), ClientError> {
        match self {
            Self::Http1(_) | Self::Nobody => Ok(()),
            Self::Http2(stream) => stream.poll_left(cx),
        }
    }

    /// The time from which the silence of a tunnel's client counts, which may last for `idle`: `at`, or the time at
    /// which the client last took bytes if that is later. It is up to `idle` later while the whole connection is held
    /// up and carries bytes of other exchanges.
    pub(crate) fn silent_since(&mut self, at: Tick, idle: Duration) -> Tick {
        match self {
            Self::Http1(_) | Self::Nobody => at,
            Self::Http2(stream) => stream.silent_since(at, idle),
        }
    }

    /// Frees memory that a tunnel does not need while nothing moves.
    pub(crate) fn release_input(&mut self) {
        match self {
            Self::Http1(client) => client.release_input(),
            // A stream holds nothing that was taken.
            Self::Http2(_) | Self::Nobody => {}
        }
    }

    /// Whether tunnels are to be closed now, since a drain's time is over.
    pub(crate) fn must_end_tunnel(&self) -> bool {
        match self {
            Self::Http1(client) => client.must_end_tunnel(),
            Self::Http2(stream) => stream.must_end_tunnel(),
            Self::Nobody => true,
        }
    }

    /// Makes the client see that its tunnel failed, when the connection is closed or the stream reset.
    pub(crate) fn fail_tunnel(&mut self) {
        match self {
            Self::Http1(client) => client.reset_on_close(),
            Self::Http2(stream) => stream.fail_tunnel(),
            Self::Nobody => {}
        }
    }

    /// Whether the kernel can send bytes of a file to the client.
    pub(crate) fn takes_files(&self) -> bool {
        match self {
            Self::Http1(client) => client.takes_files(),
            Self::Http2(_) | Self::Nobody => false,
        }
    }

    /// Takes a part of a file as some of the response's body, whose length was announced. Only if
    /// [`Self::takes_files`] says so.
    pub(crate) fn send_file(&mut self, part: FilePart) {
        match self {
            Self::Http1(client) => client.send_file(part),
            Self::Http2(_) | Self::Nobody => {
                debug_assert!(false, "only clients in clear take parts");
            }
        }
    }

    /// Takes some of the response's body.
    pub(crate) fn send_data(&mut self, data: Bytes) {
        match self {
            Self::Http1(client) => client.send_data(data),
            Self::Http2(stream) => stream.send_data(data),
            Self::Nobody => {}
        }
    }

    /// Ends the response. `false` if it is shorter than announced: it must be cut.
    #[must_use]
    pub(crate) fn send_end(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.send_end().is_ok(),
            Self::Http2(stream) => stream.send_end(),
            Self::Nobody => true,
        }
    }

    /// Whether the output is full: add nothing until some of it is written.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Http1(client) => client.is_full(),
            Self::Http2(stream) => stream.is_full(),
            Self::Nobody => false,
        }
    }

    /// Bytes not yet written.
    #[inline]
    pub(crate) fn unwritten(&self) -> usize {
        match self {
            Self::Http1(client) => client.unwritten(),
            Self::Http2(stream) => stream.unwritten(),
            Self::Nobody => 0,
        }
    }

    /// Writes the output; ready when all of it is written.
    ///
    /// # Errors
    /// The client left.
    #[inline]
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, ClientError>> {
        match self {
            Self::Http1(client) => client.poll_write(cx).map_err(ClientError::Io),
            Self::Http2(stream) => stream.poll_write(cx),
            Self::Nobody => Poll::Ready(Ok(0)),
        }
    }

    /// Bytes of the response's body taken so far.
    pub(crate) fn sent(&self) -> u64 {
        match self {
            Self::Http1(client) => client.sent(),
            Self::Http2(stream) => stream.sent(),
            Self::Nobody => 0,
        }
    }

    /// Whether the client can know that it has the whole response.
    pub(crate) fn has_response(&self) -> bool {
        match self {
            Self::Http1(client) => client.has_response(),
            Self::Http2(stream) => stream.has_response(),
            Self::Nobody => true,
        }
    }

    /// Gives up the rest of the request's body, which is not read. A response over HTTP/1.1 then says that the
    /// connection closes; over HTTP/2 the stream is reset after the response.
    pub(crate) fn abandon_upload(&mut self) {
        match self {
            Self::Http1(client) => client.close_after(),
            Self::Http2(_) | Self::Nobody => {}
        }
    }

    /// Sends the rest of a response that will not be completed, for at most `limit`, and makes visible that it is
    /// incomplete.
    pub(crate) async fn cut(&mut self, deadline: &Deadline, limit: Duration) {
        match self {
            Self::Http1(client) => client.give_up(deadline, limit).await,
            Self::Http2(stream) => stream.give_up(deadline, limit).await,
            Self::Nobody => {}
        }
    }

    /// Keeps an exchange whose client left, until the connection is closed.
    pub(crate) fn leave_behind(&mut self, exchange: LeftBehind) {
        match self {
            Self::Http1(client) => client.leave_behind(exchange),
            Self::Http2(stream) => stream.leave_behind(exchange),
            // There is no client that could have left: the backend's connection is closed.
            Self::Nobody => drop(exchange),
        }
    }

    /// Takes back a request's head, for the next one to use its memory.
    pub(crate) fn recycle(&mut self, head: Box<RequestHead>) {
        match self {
            Self::Http1(client) => client.recycle(head),
            Self::Http2(_) => line::recycle(head),
            Self::Nobody => {}
        }
    }
}

/// A backend's head as it is sent to a client.
fn response(head: &ResponseHead) -> Response<'_> {
    Response {
        status: head.status,
        reason: head.reason.as_deref(),
        headers: &head.headers,
        body: match head.content_length {
            Some(length) => BodyLength::Known(length),
            None => BodyLength::Unknown,
        },
    }
}
