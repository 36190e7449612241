//! A connection lent to one exchange.

use std::sync::Arc;
use std::task::{Context, Poll};

use catamaran_message::{Request, ResponseHead};
use catamaran_transport::ByteQueue;
use tokio::time::{Instant, timeout};

use super::abandoned::Abandoned;
use super::{Backend, InFlight};
use crate::client_facts::ClientFacts;
use crate::config::BackendConfig;
use crate::connection::Connection;
use crate::error::{Error, RequestError};
use crate::wire::Event;

/// The exclusive use of one connection for one exchange. Only [`Lease::finish`] can give the
/// connection back; dropping the lease closes it.
#[derive(Debug)]
pub struct Lease<'b> {
    conn: Box<Connection>,
    in_flight: InFlight<&'b Arc<Backend>>,
    reused: bool,
}

/// An exchange whose client left while the backend may still process it. Dropping it resets the
/// connection.
#[derive(Debug)]
pub struct LeftBehind {
    conn: Box<Connection>,
    in_flight: InFlight<Arc<Backend>>,
}

impl<'b> Lease<'b> {
    pub(crate) fn new(
        conn: Box<Connection>,
        in_flight: InFlight<&'b Arc<Backend>>,
        reused: bool,
    ) -> Self {
        Self {
            conn,
            in_flight,
            reused,
        }
    }

    /// The backend at the other end.
    #[must_use]
    pub fn backend(&self) -> &Arc<Backend> {
        self.in_flight.backend()
    }

    /// Whether the connection has carried an exchange before. If such a connection breaks before
    /// it answered, the backend may just have closed it for being idle.
    #[must_use]
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// Notes that bytes were read at `at`, in milliseconds of a clock that all workers share.
    pub fn note_heard(&mut self, at: u64) {
        self.backend().health().note_heard(at);
        if self.conn.uncounted().received >= UNCOUNTED_MAX {
            self.count_moved();
        }
    }

    /// Counts the bytes moved so far.
    fn count_moved(&mut self) {
        let moved = self.conn.take_uncounted();
        self.backend().count_moved(self.in_flight.worker(), moved);
    }

    /// When a byte was last read on any connection to the backend, by the same clock.
    #[must_use]
    pub fn last_heard(&self) -> u64 {
        self.backend().health().heard()
    }

    /// Whether the connection may carry another exchange.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.conn.is_reusable()
    }

    /// Whether any byte of a response arrived.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.conn.is_answered()
    }

    /// Whether the framing of the response that has begun tells where it ends. If not, one that was cut looks
    /// complete.
    #[must_use]
    pub fn is_framed(&self) -> bool {
        self.conn.is_framed()
    }

    /// Whether it is proved that no byte of the request reached the backend, although the
    /// connection was open. Asked of a connection that has failed; it may cost a system call.
    #[must_use]
    pub fn is_undelivered(&self) -> bool {
        self.conn.is_undelivered()
    }

    /// Encodes the request's head as `config` has it. It leaves with the next
    /// [`Lease::poll_write`].
    ///
    /// # Errors
    /// The request cannot be put into the backend's protocol. Nothing was written; the lease can
    /// be finished.
    pub fn send_request(
        &mut self,
        request: &Request<'_>,
        client: &ClientFacts<'_>,
        config: &BackendConfig,
    ) -> Result<(), RequestError> {
        self.conn.send_request(request, client, config)
    }

    /// As [`Self::send_request`] on a lease of [`Backend::lease_for_tunnel`]: asks the backend to change
    /// to the protocol `token`.
    ///
    /// # Errors
    /// As [`Self::send_request`].
    pub fn send_upgrade(&mut self, request: &Request<'_>, token: &str) -> Result<(), RequestError> {
        self.conn.send_upgrade(request, token.as_bytes())
    }

    /// The connection alone, of which all bytes are counted, and the count of the exchange.
    pub(crate) fn into_connection(mut self) -> (Box<Connection>, InFlight<&'b Arc<Backend>>) {
        self.count_moved();
        (self.conn, self.in_flight)
    }

    /// How many bytes of the request's body are wanted now; 0 while none are, or while enough wait
    /// to be written.
    #[must_use]
    pub fn body_credit(&self) -> usize {
        self.conn.body_credit()
    }

    /// Takes what is wanted of `body` off its front: at least as much as [`Lease::body_credit`]
    /// says, if there is so much. The more there is, the fewer are the writes.
    pub fn send_body(&mut self, body: &mut ByteQueue) {
        self.conn.send_body(body);
    }

    /// Says that the request's body is complete. `false` means that it is shorter than announced,
    /// and the lease must be dropped.
    #[must_use]
    pub fn finish_body(&mut self) -> bool {
        self.conn.finish_body()
    }

    /// Bytes encoded and not yet written.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.conn.unwritten()
    }

    /// Writes what was encoded; ready when all of it is written.
    ///
    /// # Errors
    /// The connection failed.
    pub fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        self.conn.poll_write(cx)
    }

    /// The next event of the response. After [`Event::End`] there is none. Answers that the
    /// protocol demands may be encoded on the way: write before waiting.
    ///
    /// # Errors
    /// The connection failed or the backend broke its protocol; the lease must be dropped.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        self.conn.poll_event(cx)
    }

    /// Takes back a head that is not needed any more, for the next response to use its memory.
    pub fn recycle(&mut self, head: Box<ResponseHead>) {
        self.conn.recycle(head);
    }

    /// Ends the exchange: the connection goes back to its pool if both messages ended where their
    /// framing said, the backend allows it and nothing is left over; otherwise it is closed.
    /// `now` is the time it is unused from.
    pub fn finish(mut self, now: Instant) {
        self.count_moved();
        let Self {
            conn, in_flight, ..
        } = self;
        in_flight.backend().restore(conn, in_flight.worker(), now);
    }

    /// Gives the exchange up with a reset of the connection, so that the backend notices.
    pub fn abort(mut self) {
        self.count_moved();
        self.conn.abort();
    }

    /// Gives up an exchange whose client left while the backend may still process it; see
    /// [`LeftBehind::abandon`].
    #[must_use]
    pub fn leave_behind(mut self) -> LeftBehind {
        self.count_moved();
        // A `LeftBehind` that is dropped closes the connection by a reset.
        self.conn.abort();
        LeftBehind {
            conn: self.conn,
            in_flight: self.in_flight.into_owned(),
        }
    }
}

impl LeftBehind {
    /// Closes the sending side of the connection, and returns when the backend has closed its own,
    /// after `first_byte_timeout` at most. Until then the backend's thread is busy; so the exchange is
    /// counted as in flight and as abandoned, and its connection counts for `connections_max`. The
    /// connection is not used again.
    ///
    /// # Cancel safety
    /// The connection is reset.
    pub async fn abandon(mut self) {
        let backend = self.in_flight.backend();
        let _abandoned = Abandoned::begin(backend);
        let limit = backend.settings().first_byte_timeout;
        timeout(limit, self.conn.wind_up()).await.ok();
    }
}

/// Bytes of a long response after which they are counted before its end.
const UNCOUNTED_MAX: u64 = 1 << 20;
