//! The signal to stop in order.
//!
//! A drain begins once and is never taken back. Connections wait for it beside their client's next
//! request; whoever is in the middle of an exchange finishes it first.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Drain {
    begun: AtomicBool,
    notify: Notify,
}

impl Drain {
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// Waits until the drain begins.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn begun(&self) {
        let mut notified = pin!(self.notify.notified());
        // Listening before looking, so that a beginning in between is not missed.
        notified.as_mut().enable();
        if !self.has_begun() {
            notified.await;
        }
    }
}
