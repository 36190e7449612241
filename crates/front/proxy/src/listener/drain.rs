//! The orderly end of a listener and of the connections it accepted.
//!
//! A drain begins once and is never undone. After it has begun, every response says `Connection:
//! close`. Idle connections stay open for a grace period, because their next request may be on its
//! way, and are closed after it. A connection in an exchange finishes it first. Reading the state is
//! one atomic load; only the few tasks that accept connections are woken.

use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Drain {
    /// 0 until the drain begins, then the [`Ending`] as a number, with the bits [`GRACE_OVER`] and
    /// [`TUNNELS_OVER`].
    state: AtomicU8,
    notify: Notify,
}

/// What happens to a draining listener's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Another process accepts from the socket.
    HandedOver,
    /// The socket is closed, and nobody listens there any more.
    Closed,
}

impl Drain {
    /// Begins the drain. If it has begun, nothing changes: the first ending holds.
    pub(crate) fn begin(&self, ending: Ending) {
        let state = match ending {
            Ending::HandedOver => HANDED_OVER,
            Ending::Closed => CLOSED,
        };
        self.state
            .compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Acquire)
            .ok();
        self.notify.notify_waiters();
    }

    /// Ends the grace period: connections that wait for a request are to be closed.
    pub(crate) fn end_grace(&self) {
        self.state.fetch_or(GRACE_OVER, Ordering::AcqRel);
    }

    /// Ends the time of tunnels: connections with one are to be closed.
    pub(crate) fn end_tunnels(&self) {
        self.state.fetch_or(TUNNELS_OVER, Ordering::AcqRel);
    }

    pub(crate) fn must_end_tunnels(&self) -> bool {
        self.state() & TUNNELS_OVER != 0
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.state() != OPEN
    }

    pub(crate) fn is_grace_over(&self) -> bool {
        self.state() & GRACE_OVER != 0
    }

    /// Waits until the drain begins, and returns how it ends.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn begun(&self) -> Ending {
        let mut notified = pin!(self.notify.notified());
        // Listening before looking, so that a beginning in between is not missed.
        notified.as_mut().enable();
        if !self.has_begun() {
            notified.await;
        }
        // Others may have ended the grace before this one was told of the drain.
        match self.state() & !(GRACE_OVER | TUNNELS_OVER) {
            HANDED_OVER => Ending::HandedOver,
            _ => Ending::Closed,
        }
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }
}

const OPEN: u8 = 0;
const HANDED_OVER: u8 = 1;
const CLOSED: u8 = 2;
/// The bit of `state` that says that the grace period is over.
const GRACE_OVER: u8 = 4;
/// The bit of `state` that says that tunnels must be closed.
const TUNNELS_OVER: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn begins_once_and_goes_on() {
        let drain = Drain::default();
        assert!(!drain.has_begun());
        drain.begin(Ending::HandedOver);
        drain.begin(Ending::Closed);
        assert_eq!(drain.begun().await, Ending::HandedOver);
        assert!(drain.has_begun() && !drain.is_grace_over());
        drain.end_grace();
        drain.begin(Ending::HandedOver);
        assert!(drain.is_grace_over());
        assert_eq!(drain.begun().await, Ending::HandedOver);
    }

    #[tokio::test]
    async fn whoever_waits_is_told() {
        let drain = Drain::default();
        let (ending, ()) = tokio::join!(drain.begun(), async { drain.begin(Ending::Closed) });
        assert_eq!(ending, Ending::Closed);
    }
}
