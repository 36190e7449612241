//! A backend connection that one exchange uses.

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
    /// A lease of `conn`. `reused`: the connection has served another exchange, so the backend may have closed it.
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

    /// The backend at the other end of the connection.
    #[must_use]
    pub fn backend(&self) -> &Arc<Backend> {
        self.in_flight.backend()
    }

    /// Whether the connection has carried an exchange before. If such a connection breaks before the backend
    /// answers, the backend may just have closed it for being idle.
    #[must_use]
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// Records that bytes were read at `at`, in milliseconds of a clock that all workers share.
    pub fn note_heard(&mut self, at: u64) {
        self.backend().health().note_heard(at);
        if self.conn.uncounted().received >= UNCOUNTED_MAX {
            self.count_moved();
        }
    }

    /// Adds the bytes moved since the last call to the backend's counts.
    fn count_moved(&mut self) {
        let moved = self.conn.take_uncounted();
        self.backend().count_moved(self.in_flight.worker(), moved);
    }

    /// When a byte was last read on any connection to the backend, in milliseconds of the clock of
    /// [`Self::note_heard`].
    #[must_use]
    pub fn last_heard(&self) -> u64 {
        self.backend().health().heard()
    }

    /// Whether the connection may carry another exchange.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.conn.is_reusable()
    }

    /// Whether any byte of the response has arrived.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.conn.is_answered()
    }

    /// Whether the framing of the current response says where it ends. If not, a response that was cut looks
    /// complete.
    #[must_use]
    pub fn is_framed(&self) -> bool {
        self.conn.is_framed()
    }

    /// Whether it is proved that no byte of the request reached the backend, although the connection was
    /// open. To be called after the connection has failed; it may cost a system call.
    #[must_use]
    pub fn is_undelivered(&self) -> bool {
        self.conn.is_undelivered()
    }

    /// Encodes the request's head with the settings in `config`. It is sent by the next
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

    /// Encodes a request that asks the backend to change to the protocol `token`. The lease must come from
    /// [`Backend::lease_for_tunnel`].
    ///
    /// # Errors
    /// The errors of [`Self::send_request`].
    pub fn send_upgrade(&mut self, request: &Request<'_>, token: &str) -> Result<(), RequestError> {
        self.conn.send_upgrade(request, token.as_bytes())
    }

    /// Ends the lease and returns its connection, of which all bytes are counted, and the count of the
    /// exchange.
    pub(crate) fn into_connection(mut self) -> (Box<Connection>, InFlight<&'b Arc<Backend>>) {
        self.count_moved();
        (self.conn, self.in_flight)
    }

    /// How many bytes of the request's body should be passed to [`Self::send_body`] now; 0 if none are
    /// wanted, or if enough wait to be written.
    #[must_use]
    pub fn body_credit(&self) -> usize {
        self.conn.body_credit()
    }

    /// Takes bytes off the front of `body` and encodes them: at least [`Lease::body_credit`] bytes, if there
    /// are as many. The more bytes there are, the fewer writes are needed.
    pub fn send_body(&mut self, body: &mut ByteQueue) {
        self.conn.send_body(body);
    }

    /// Ends the request's body. `false`: it is shorter than announced, and the lease must be dropped.
    #[must_use]
    pub fn finish_body(&mut self) -> bool {
        self.conn.finish_body()
    }

    /// The number of bytes that are encoded but not yet written.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.conn.unwritten()
    }

    /// Writes the encoded bytes to the socket; ready when all of them are written.
    ///
    /// # Errors
    /// The connection failed.
    pub fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        self.conn.poll_write(cx)
    }

    /// The next event of the response. After [`Event::End`] there is none. This may also encode answers that
    /// the protocol demands, so call [`Self::poll_write`] before waiting.
    ///
    /// # Errors
    /// The connection failed or the backend broke its protocol; the lease must be dropped.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        self.conn.poll_event(cx)
    }

    /// Takes back the memory of a head that is no longer needed, for the next response.
    pub fn recycle(&mut self, head: Box<ResponseHead>) {
        self.conn.recycle(head);
    }

    /// Ends the exchange. The connection goes back to its pool if both messages ended where their framing
    /// said, the backend allows it and no bytes are left over; otherwise it is closed. `now` is the time from
    /// which it is unused.
    pub fn finish(mut self, now: Instant) {
        self.count_moved();
        let Self {
            conn, in_flight, ..
        } = self;
        in_flight.backend().restore(conn, in_flight.worker(), now);
    }

    /// Gives up the exchange and resets the connection, so that the backend notices.
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
    /// If the future is dropped, the connection is reset.
    pub async fn abandon(mut self) {
        let backend = self.in_flight.backend();
        let _abandoned = Abandoned::begin(backend);
        let limit = backend.settings().first_byte_timeout;
        timeout(limit, self.conn.wind_up()).await.ok();
    }
}

/// Bytes of a long response that are added to the counts before it ends.
const UNCOUNTED_MAX: u64 = 1 << 20;
