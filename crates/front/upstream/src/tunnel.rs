//! Tunnels: connections that carry another protocol once a backend has agreed to it.
//!
//! A tunnel has its own connection, which is dialled for it and never pooled. It does not count for
//! `connections_max`, since it holds no thread of a container, but for `tunnels_max`. Its bytes are not
//! parsed. Each direction ends separately.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use catamaran_transport::ByteQueue;
use tokio::time::Instant;

use crate::backend::{Backend, InFlight, Lease, Leasing};
use crate::cap::OpenTunnel;
use crate::connection::Connection;
use crate::dial::dial;
use crate::error::{Error, LeaseError};
use crate::settings::Settings;
use crate::wire::Event;

/// A tunnel to a backend. Dropping it closes its connection.
#[derive(Debug)]
pub struct Tunnel {
    conn: Box<Connection>,
    backend: Arc<Backend>,
    worker: usize,
}

impl Backend {
    /// Dials a connection for a request that asks for a tunnel: to the backend itself, or to the
    /// `upgrade_url` of an AJP backend. If the backend agrees, [`Lease::into_tunnel`] ends the lease.
    pub fn lease_for_tunnel<'b>(
        self: &'b Arc<Self>,
        settings: &'b Settings,
        worker: usize,
    ) -> Leasing<'b> {
        let in_flight = InFlight::begin(self, worker);
        Leasing::Waiting(Box::pin(self.dial_tunnel(settings, in_flight)))
    }

    /// Dials a connection for a tunnel, if fewer than `tunnels_max` are open.
    async fn dial_tunnel<'b>(
        self: &'b Arc<Self>,
        settings: &Settings,
        in_flight: InFlight<&'b Arc<Self>>,
    ) -> Result<Lease<'b>, LeaseError> {
        let open = OpenTunnel::begin(self.tunnels(), settings.tunnels_max);
        let open = open.ok_or(LeaseError::TunnelsMax {
            limit: settings.tunnels_max,
        })?;
        let began = Instant::now();
        let (address, trust) = settings.tunnel_end();
        let limit = settings.connect_timeout;
        let dialled = dial(address, trust, settings.tunnel_name(), limit).await;
        let stream = dialled.inspect_err(|error| {
            // A failure at `upgrade_url` is not one of the backend's own address.
            if settings.upgrade.is_none() {
                self.note_failed_dial(error, began);
            }
        })?;
        let conn = Box::new(Connection::for_tunnel(stream, open));
        Ok(Lease::new(conn, in_flight, false))
    }
}

impl Lease<'_> {
    /// Ends the exchange and returns the tunnel, which the backend has agreed to by [`Event::Upgraded`].
    #[must_use]
    pub fn into_tunnel(self) -> Tunnel {
        let (conn, in_flight) = self.into_connection();
        Tunnel {
            conn,
            backend: Arc::clone(in_flight.backend()),
            worker: in_flight.worker(),
        }
    }
}

impl Tunnel {
    /// Queues bytes to be sent to the backend by [`Self::poll_write`].
    pub fn send(&mut self, data: Bytes) {
        let mut pieces = ByteQueue::default();
        pieces.push(data);
        self.conn.send_body(&mut pieces);
    }

    /// Whether so many bytes wait to be written that no more should be queued.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.conn.body_credit() == 0
    }

    /// The number of bytes that are not yet written.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.conn.unwritten()
    }

    /// Writes the queued bytes; ready when all of them are written.
    ///
    /// # Errors
    /// The connection failed.
    pub fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let written = ready!(self.conn.poll_write(cx));
        self.count();
        // How many bytes were written does not matter: `count` counts them.
        Poll::Ready(written.map(|_| ()))
    }

    /// Writes the queued bytes, then closes the sending side.
    ///
    /// # Errors
    /// The connection failed.
    pub fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        ready!(self.conn.poll_write(cx))?;
        self.conn.poll_shutdown(cx)
    }

    /// The next bytes from the backend; `None` when it has closed its sending side.
    ///
    /// # Errors
    /// The connection failed.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        loop {
            match ready!(self.conn.poll_event(cx))? {
                Event::Body(data) => {
                    self.count();
                    return Poll::Ready(Ok(Some(data)));
                }
                Event::End => return Poll::Ready(Ok(None)),
                _ => {}
            }
        }
    }

    /// Frees the memory of empty buffers while no bytes move.
    pub fn release(&mut self) {
        self.conn.release();
    }

    /// Tries once, without waiting, to close the sending side in order (over TLS by close_notify), then closes the
    /// connection. Bytes that are not written yet are lost.
    pub async fn close(mut self) {
        // Whether this failed or would have to wait, the connection is closed next.
        let closing = poll_fn(|cx| {
            let _ = self.conn.poll_shutdown(cx);
            Poll::Ready(())
        });
        closing.await;
    }

    fn count(&mut self) {
        let moved = self.conn.take_uncounted();
        self.backend.count_moved(self.worker, moved);
    }
}
