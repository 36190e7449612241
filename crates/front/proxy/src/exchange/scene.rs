//! Where an exchange takes place: the worker, the listener's settings, its deadline, and the client.

use tokio::time::Instant;

use crate::config::ListenerConfig;
use crate::deadlines::{Deadline, Tick};
use crate::peer::PeerFacts;
use crate::worker::Worker;

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

impl Scene<'_> {
    /// The coarse clock's time.
    pub(crate) fn now(&self) -> Tick {
        self.deadline.now()
    }

    /// The time at which an exchange begins or ends: exact if it is measured how long the exchange takes.
    pub(crate) fn measured(&self) -> Instant {
        if self.worker.keeps_times() {
            Instant::now()
        } else {
            self.clock()
        }
    }

    /// The time: exact if it is written to the log, else that of the coarse clock, which is precise
    /// enough for the age of connections and costs next to nothing.
    pub(crate) fn clock(&self) -> Instant {
        if self.worker.access_log().is_on() {
            Instant::now()
        } else {
            self.deadline.instant()
        }
    }
}
