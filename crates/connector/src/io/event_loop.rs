//! The common part of the event loops: connections by key, their timers, and the stop.
//!
//! A loop waits in its own way, for readiness (`epoll`) or for completions (`uring`), and advances a
//! connection in its own way. This module decides which connections are advanced because an
//! application woke them, because a deadline passed, or because the connector stops.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ACCEPT_PAUSE;
use super::agent::Agent;
use super::lent::Loan;
use super::tasks::Tasks;
use super::timers::Timers;
use super::wakeups::Wakeups;

/// A handle to an event loop that runs on a thread of its own.
#[derive(Debug)]
pub(crate) struct LoopHandle {
    pub(super) thread: JoinHandle<()>,
    pub(super) wakeups: Arc<Wakeups>,
}

impl LoopHandle {
    /// Makes the loop check whether the connector is to stop.
    pub(crate) fn wake(&self) {
        self.wakeups.rouse();
    }

    /// Waits for the loop to end.
    pub(crate) fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("a connector worker panicked");
        }
    }
}

/// The state that every event loop keeps.
#[derive(Debug)]
pub(super) struct Core<T> {
    pub(super) tasks: Tasks<T>,
    pub(super) timers: Timers,
    pub(super) lent: Loan,
    /// When to try accepting again, after the system refused or the limit was reached; `None`: at
    /// once.
    pub(super) accept_again: Option<Instant>,
    /// Whether the last attempt to accept failed for lack of descriptors, which has been logged.
    starved: bool,
    /// When to cut what is open; `None` unless the connector is being stopped.
    pub(super) stop: Option<Instant>,
    wakeups: Arc<Wakeups>,
    /// The keys being handled; kept to reuse its memory.
    woken: Vec<usize>,
}

impl<T> Core<T> {
    pub(super) fn new(lent: Loan, wakeups: Arc<Wakeups>) -> Self {
        Self {
            tasks: Tasks::default(),
            timers: Timers::default(),
            lent,
            accept_again: None,
            starved: false,
            stop: None,
            wakeups,
            woken: Vec::new(),
        }
    }

    /// The longest time that the loop may wait for events; `None`: without limit.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let next = [self.timers.next(), self.accept_again, self.stop]
            .into_iter()
            .flatten()
            .min();
        next.map(|at| at.saturating_duration_since(self.lent.now))
    }

    /// Whether no connections are accepted for the moment.
    pub(super) fn pauses_accepting(&self) -> bool {
        self.accept_again.is_some_and(|at| at > self.lent.now)
    }

    /// Accepts no connections for [`ACCEPT_PAUSE`].
    pub(super) fn pause_accepting(&mut self) {
        self.accept_again = Some(self.lent.now + ACCEPT_PAUSE);
    }

    /// Notes that a connection was accepted, so that the next failure is logged again.
    pub(super) fn note_accepted(&mut self) {
        self.starved = false;
    }

    /// Handles an accept that the system refused: counts it, logs it once, and pauses.
    pub(super) fn handle_refused(&mut self, listener_index: usize, error: &io::Error) {
        self.lent.counters(listener_index).refuse("accept");
        self.pause_accepting();
        if !std::mem::replace(&mut self.starved, true) {
            tracing::warn!(%error, "cannot accept connections; trying again until it works");
        }
    }

    /// Removes a closed connection and its timer.
    pub(super) fn remove(&mut self, key: usize) -> Option<T> {
        let task = self.tasks.remove(key)?;
        self.timers.clear(key);
        // There is room now, so waiting connections need not wait for the pause to end.
        self.accept_again = None;
        Some(task)
    }

    /// Checks whether the connector is being stopped; `true` only the first time that it is.
    pub(super) fn sees_stop(&mut self) -> bool {
        let first = self.stop.is_none();
        self.stop = self.lent.shared.stops_at();
        first && self.stop.is_some()
    }
}

/// The parts of an event loop that differ between epoll and io_uring.
pub(super) trait EventLoop {
    /// A connection, with what this kind of loop needs for it.
    type Task;

    fn core(&mut self) -> &mut Core<Self::Task>;

    fn agent(task: &mut Self::Task) -> &mut Agent;

    /// Gives a connection its turn.
    fn advance(&mut self, key: usize);

    /// Gives a turn to the connections that applications have something for.
    fn handle_wakeups(&mut self) {
        let core = self.core();
        // The vector is put back in the end, so that its memory is used again.
        let mut keys = std::mem::take(&mut core.woken);
        core.wakeups.take(&mut keys);
        for key in keys.drain(..) {
            // The key may belong to a later connection by now, which loses nothing by a turn.
            if let Some(task) = self.core().tasks.get_mut(key) {
                Self::agent(task).handle_wake();
                self.advance(key);
            }
        }
        self.core().woken = keys;
    }

    /// Gives a turn to the connections whose timer is due. `handle_time` finds out whether a deadline has passed: a
    /// timer that was set for an earlier one fires too soon.
    fn fire_timers(&mut self) {
        loop {
            let core = self.core();
            let Some(key) = core.timers.pop_due(core.lent.now) else {
                break;
            };
            if let Some(task) = core.tasks.get_mut(key) {
                Self::agent(task).handle_time(&core.lent);
                self.advance(key);
            }
        }
    }

    /// Tells all connections that the connector is being stopped.
    fn drain_all(&mut self) {
        let keys: Vec<usize> = self.core().tasks.keys().collect();
        for key in keys {
            if let Some(task) = self.core().tasks.get_mut(key) {
                Self::agent(task).drain();
                self.advance(key);
            }
        }
    }
}
