//! The surroundings of an exchange: the worker, the listener's settings, the deadline, and the client.

use tokio::time::Instant;

use crate::config::ListenerConfig;
use crate::deadlines::{Deadline, Tick};
use crate::peer::PeerFacts;
use crate::worker::Worker;

/// The surroundings that an exchange may use, whatever protocol the request came by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) worker: &'a Worker,
    /// The listener's settings when it accepted the connection.
    pub(crate) listener: &'a ListenerConfig,
    /// Wakes the task that runs the exchange. Each exchange has its own, since a connection may carry
    /// several at a time.
    pub(crate) deadline: &'a Deadline,
    pub(crate) peer: &'a PeerFacts,
}

impl Scene<'_> {
    /// The time of the coarse clock.
    pub(crate) fn now(&self) -> Tick {
        self.deadline.now()
    }

    /// The present time, for the beginning or end of an exchange. It is exact if durations are measured.
    pub(crate) fn measured(&self) -> Instant {
        if self.worker.keeps_times() {
            Instant::now()
        } else {
            self.clock()
        }
    }

    /// The present time. It is exact if the access log is on. Otherwise it is that of the coarse clock,
    /// which is precise enough for the age of connections and costs almost nothing.
    pub(crate) fn clock(&self) -> Instant {
        if self.worker.access_log().is_on() {
            Instant::now()
        } else {
            self.deadline.instant()
        }
    }
}
