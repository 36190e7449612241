//! Accepting: a thread for each listener, which hands connections to the pool.
//!
//! A place in the pool is taken before `accept`, so a connection that cannot be served stays in the
//! kernel's queue. If the system has no descriptors left, the thread pauses before it tries again.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use socket2::Socket;

use super::connection::Connection;
use super::stream::timespec;
use super::{Hub, Place};
use crate::config::{Listener, Protocol};
use crate::conn::Peer;
use crate::counters::Counters;
use crate::io::ACCEPT_PAUSE;
use crate::io::listen::LocalAddress;

/// A listening socket and the state of its accepting thread.
#[derive(Debug)]
pub(super) struct Acceptor {
    hub: Arc<Hub>,
    protocol: Protocol,
    socket: Socket,
    local: LocalAddress,
    /// Sets of counters, which connections use in turn.
    counters: Vec<Arc<Counters>>,
    turn: usize,
    /// Whether the last attempt failed for lack of descriptors, which has been logged.
    starved: bool,
}

/// When to accept again, after an attempt.
enum Next {
    /// At once: there may be more connections.
    Now,
    /// When the socket is readable.
    Readable,
    /// Accept again after a pause, because the system refused to accept.
    Later,
    Never,
}

impl Acceptor {
    pub(super) fn new(
        listener: &Listener,
        socket: Socket,
        listener_index: usize,
        hub: &Arc<Hub>,
    ) -> Self {
        let shards = hub.shared.counters.iter();
        Self {
            hub: Arc::clone(hub),
            protocol: listener.protocol,
            socket,
            local: LocalAddress::of(listener),
            counters: shards
                .map(|shard| Arc::clone(&shard[listener_index]))
                .collect(),
            turn: 0,
            starved: false,
        }
    }

    /// Accepts until the connector is stopped and the kernel's queue is empty: a client accepted into it
    /// before the stop is still served.
    pub(super) fn run(mut self) {
        loop {
            let waited = match self.accept() {
                Next::Now => Ok(()),
                Next::Never => break,
                // The queue is empty, or nothing in it can be accepted.
                Next::Readable | Next::Later if self.hub.is_stopping() => break,
                Next::Readable => wait(&self.hub, Some(&self.socket), None),
                Next::Later => wait(&self.hub, None, Some(ACCEPT_PAUSE)),
            };
            if let Err(error) = waited {
                tracing::error!(%error, "a connector thread cannot wait for connections and ends");
                break;
            }
        }
        // The socket is closed first, so that no client is accepted while the stop goes on.
        drop(self.socket);
        self.hub.dismiss_acceptor();
    }

    /// Tries to accept one connection, and returns when to try the next time.
    fn accept(&mut self) -> Next {
        let Some(place) = self.hub.take_place() else {
            return Next::Never;
        };
        let accepted = self.socket.accept().and_then(|(socket, remote)| {
            let peer = self.local.peer(&socket, Some(remote))?;
            Ok((socket, peer))
        });
        match accepted {
            Ok((socket, peer)) => {
                self.starved = false;
                self.open(socket, peer, place);
                Next::Now
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Next::Readable,
                io::ErrorKind::Interrupted => Next::Now,
                // The peer gave up while it waited in the queue.
                io::ErrorKind::ConnectionAborted | io::ErrorKind::NotConnected => Next::Now,
                // The system lacks descriptors or memory.
                _ => {
                    self.counters[0].refuse("accept");
                    if !std::mem::replace(&mut self.starved, true) {
                        tracing::warn!(
                            %error,
                            "cannot accept connections; trying again until it works"
                        );
                    }
                    Next::Later
                }
            },
        }
    }

    /// Counts an accepted connection, and runs it on a thread of the pool.
    fn open(&mut self, socket: Socket, peer: Peer, mut place: Place) {
        // Connections take the shards of counters in turn, so that few threads share one.
        self.turn = (self.turn + 1) % self.counters.len();
        let counters = &self.counters[self.turn];
        Counters::add(&counters.accepted, 1);
        let Some(seat) = place.seat(socket) else {
            return self.give_up("stopped");
        };
        let Ok(connection) = Connection::new(place, seat, self.protocol, peer, counters) else {
            return self.give_up("accept");
        };
        if self.hub.pool.run(Box::new(|| connection.run())).is_err() {
            tracing::warn!("no thread for a connection; it is closed");
            self.give_up("no-thread");
        }
    }

    fn give_up(&self, reason: &'static str) {
        let counters = &self.counters[self.turn];
        Counters::add(&counters.closed, 1);
        counters.refuse(reason);
    }
}

/// Sleeps until `socket` is readable, `pause` is over or the connector is being stopped.
fn wait(hub: &Hub, socket: Option<&Socket>, pause: Option<Duration>) -> io::Result<()> {
    let timeout = pause.map(timespec);
    let stop = PollFd::new(&hub.stop_seen, PollFlags::IN);
    let polled = match socket {
        Some(socket) => poll(
            &mut [stop, PollFd::new(socket, PollFlags::IN)],
            timeout.as_ref(),
        ),
        None => poll(&mut [stop], timeout.as_ref()),
    };
    match polled {
        // An interrupted wait is followed by one more attempt to accept, which does no harm.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
