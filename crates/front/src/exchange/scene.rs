//! Where an exchange takes place: the worker, the listener's settings, its deadline, and the client.

use std::net::SocketAddr;
use std::sync::Arc;

use catamaran_tls::Session;
use tokio::time::Instant;

use crate::config::ListenerConfig;
use crate::worker::Worker;
use crate::worker::deadlines::{Deadline, Tick};

/// What an exchange may know of its surroundings, whichever protocol the request came by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) worker: &'a Worker,
    /// The listener's settings when it accepted the connection.
    pub(crate) listener: &'a ListenerConfig,
    /// Wakes the task that runs the exchange. It belongs to the exchange, since a connection may carry
    /// several at a time.
    pub(crate) deadline: &'a Deadline,
    pub(crate) peer: &'a PeerFacts,
}

/// What is known of the client by its connection.
#[derive(Clone, Debug)]
pub(crate) struct PeerFacts {
    /// The client's address; for a Unix socket the loopback address and port 0.
    pub(crate) remote: SocketAddr,
    /// The address the client connected to; for a Unix socket as `remote`.
    pub(crate) local: SocketAddr,
    /// What the handshake agreed on; `None` without TLS.
    pub(crate) tls: Option<Arc<Session>>,
}

impl Scene<'_> {
    /// The coarse clock's time.
    pub(crate) fn now(&self) -> Tick {
        self.deadline.now()
    }

    /// The time at which an exchange begins or ends: exact if it is measured how long the exchange takes.
    pub(crate) fn measured(&self) -> Instant {
        match self.worker.keeps_times() {
            true => Instant::now(),
            false => self.clock(),
        }
    }

    /// The time: exact if it is written to the log, else that of the coarse clock, which is precise
    /// enough for the age of connections and costs next to nothing.
    pub(crate) fn clock(&self) -> Instant {
        match self.worker.access_log().is_on() {
            true => Instant::now(),
            false => self.deadline.instant(),
        }
    }
}
