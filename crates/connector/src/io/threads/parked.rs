//! Exchanges that are connected to their application by a pipe.
//!
//! A blocking application runs on the connection's own thread ([`Connection::host`]): when it waits
//! for its body or for room to write, the thread moves the connection's bytes meanwhile. An
//! asynchronous one runs elsewhere and signals the connection's [`Bell`]; the thread waits for the
//! bell and the socket together. In both cases neither direction blocks the other.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::task::Waker;
use std::time::Instant;
use std::{fmt, io};

use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::connection::Connection;
use super::stream::{Reason, WatchResult};
use crate::blocking::{self, BlockingHandler, Wait};
use crate::conn::{Action, Conn, WaitClass};
use crate::counters::Counters;
use crate::handler::Request;
use crate::io::{FAR, now};
use crate::pipe::{Wake, Wakeup, pipe};

/// Rung by the application when the connection has something to do.
#[derive(Debug)]
pub(super) struct Bell {
    rung: AtomicBool,
    /// An eventfd that is readable while rung; `None` if only this thread rings.
    signal: Option<OwnedFd>,
}

impl Bell {
    /// Creates a bell. With `has_signal`, a thread can sleep until it is rung.
    pub(super) fn new(has_signal: bool) -> io::Result<Self> {
        let signal = if has_signal {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            Some(eventfd(0, flags)?)
        } else {
            None
        };
        Ok(Self {
            rung: AtomicBool::new(false),
            signal,
        })
    }

    /// Whether the bell was rung since the last call.
    fn take(&self) -> bool {
        let was_rung = self.rung.swap(false, AcqRel);
        if was_rung {
            self.clear_signal();
        }
        was_rung
    }

    /// Clears a signal whose ring was taken before [`Wake::wake`] had written it. Left readable, it
    /// would end every wait at once.
    fn clear_late_signal(&self) {
        if !self.rung.load(Acquire) {
            self.clear_signal();
        }
    }

    fn clear_signal(&self) {
        if let Some(signal) = &self.signal {
            // Fails only if there is no signal. This may also clear the signal of a newer ring. Nothing is lost: `rung`
            // stays set, and `take` looks at it ahead of each wait.
            let _ = rustix::io::read(signal, &mut [0; 8]);
        }
    }

    fn signal(&self) -> Option<BorrowedFd<'_>> {
        self.signal.as_ref().map(AsFd::as_fd)
    }
}

impl Wake for Bell {
    fn wake(&self, _: usize) {
        if !self.rung.swap(true, AcqRel)
            && let Some(signal) = &self.signal
        {
            // Cannot fail: a counter at its limit is readable already.
            let _ = rustix::io::write(signal, &1_u64.to_ne_bytes());
        }
    }
}

impl Connection {
    /// Waits for the application and for the peer, as [`Action::Park`] says, until `wake_at` at the
    /// latest.
    pub(super) fn park(
        &mut self,
        awaiting: Option<WaitClass>,
        write: bool,
        wake_at: Option<Instant>,
    ) -> Result<Action, Reason> {
        let deadline = match awaiting {
            Some(awaiting) => self.deadline(awaiting),
            None => {
                self.patience = None;
                None
            }
        };
        let reading = awaiting.filter(|awaiting| awaiting.reads());
        loop {
            self.send_now()?;
            if (write && !self.out.is_full()) || self.bell.take() {
                return self.go_on();
            }
            let waits_for_peer_only =
                self.out.is_empty() && self.bell.signal().is_none() && wake_at.is_none();
            if let Some(awaiting) = reading
                && waits_for_peer_only
            {
                // A blocking read is one system call, where `park_once` takes two.
                return self.read(awaiting);
            }
            if let Some(action) = self.park_once(reading, deadline, wake_at)? {
                return Ok(action);
            }
            if wake_at.is_some_and(|at| at <= now()) {
                return Ok(Action::Park { awaiting, write });
            }
        }
    }

    /// Sends what the socket takes. Starts the write timeout if bytes are left, stops it if some
    /// were taken.
    fn send_now(&mut self) -> Result<(), Reason> {
        let before = self.out.len();
        self.stream.send_now(&mut self.out)?;
        if self.out.len() < before || before == 0 {
            self.stalled = None;
        }
        if !self.out.is_empty() && self.stalled.is_none() {
            let write_timeout = self.place.hub.shared.config.write_timeout;
            self.stalled = Some(now() + write_timeout.min(FAR));
        }
        Ok(())
    }

    /// Waits once for the socket and the bell; `None` if the connection has no new action yet. Reads bytes of the
    /// peer if `reading`, which is late at `deadline`.
    fn park_once(
        &mut self,
        reading: Option<WaitClass>,
        deadline: Option<Instant>,
        wake_at: Option<Instant>,
    ) -> Result<Option<Action>, Reason> {
        let mut asked = match reading {
            Some(_) => PollFlags::IN,
            None => self.unless_hung_up(),
        };
        if self.stalled.is_some() {
            asked |= PollFlags::OUT;
        }
        let earliest = [deadline, self.stalled, wake_at]
            .into_iter()
            .flatten()
            .min();
        let limit = earliest.map(|earliest| earliest.saturating_duration_since(now()));
        let bell = Arc::<Bell>::clone(&self.bell);
        let WatchResult { flags, rung } = self.stream.watch(asked, bell.signal(), limit);
        if rung {
            self.bell.clear_late_signal();
        }

        let is_gone = flags.intersects(PollFlags::HUP | PollFlags::ERR);
        if let Some(awaiting) = reading
            && (is_gone || flags.intersects(PollFlags::IN))
        {
            // Bytes that came before the end are read first.
            let received = self.stream.receive_now().map_err(|_| self.broken())?;
            return Ok(received.map(|count| self.take(count, awaiting)));
        }
        if is_gone {
            return Err(Some("peer-gone"));
        }
        if flags.intersects(PollFlags::RDHUP) {
            return Ok(self.hang_up());
        }
        if !flags.is_empty() || rung {
            // There is room to send, or the bell was rung.
            return Ok(None);
        }

        let is_past = |at: Option<Instant>| at.is_some_and(|at| at <= now());
        if is_past(self.stalled) {
            return Err(Some("write-timeout"));
        }
        if is_past(deadline) {
            self.patience = None;
            return Ok(Some(self.tell_and_see(Conn::handle_timeout)));
        }
        Ok(None)
    }

    /// Runs the application on this thread, and moves the connection's bytes whenever the
    /// application waits.
    pub(super) fn host(
        &mut self,
        handler: &dyn BlockingHandler,
        request: &Request,
    ) -> Result<Action, Reason> {
        Counters::add(&self.meter.counters().requests, 1);
        let wakeup = Wakeup {
            driver: Arc::<Bell>::clone(&self.bell),
            // A bell serves one connection, so it ignores the key.
            key: 0,
        };
        let (conn_end, body, response) = pipe(wakeup, request.body);
        let parked = self.tell_and_see(|conn, io| conn.attach(conn_end, io));
        let host = Host::new(self, parked);
        blocking::run(handler, request, body, response, &host);
        match host.outcome() {
            Some(outcome) => outcome,
            // The connection is still parked; the application has ended, so the pipe has something for it.
            None => self.go_on(),
        }
    }
}

/// The [`Wait`] of an application on the connection's own thread.
struct Host<'a> {
    state: RefCell<ParkedState<'a>>,
    news: Arc<News>,
    waker: Waker,
}

struct ParkedState<'a> {
    connection: &'a mut Connection,
    /// The connection's last action; an error once it is over.
    last: Result<Action, Reason>,
}

/// Set when the pipe has changed for the application.
#[derive(Debug, Default)]
struct News(AtomicBool);

impl std::task::Wake for News {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Release);
    }
}

impl<'a> Host<'a> {
    fn new(connection: &'a mut Connection, parked: Action) -> Self {
        let news = Arc::new(News::default());
        Self {
            state: RefCell::new(ParkedState {
                connection,
                last: Ok(parked),
            }),
            waker: Arc::clone(&news).into(),
            news,
        }
    }

    /// The connection's next action; `None` if it has to be polled for the end of the response.
    fn outcome(self) -> Option<Result<Action, Reason>> {
        match self.state.into_inner().last {
            Ok(Action::Park { .. }) => None,
            other => Some(other),
        }
    }
}

impl Wait for Host<'_> {
    fn waker(&self) -> &Waker {
        &self.waker
    }

    fn wait(&self) {
        let mut state = self.state.borrow_mut();
        while !self.news.0.swap(false, AcqRel) && state.is_parked() {
            state.step(None);
        }
    }

    fn wait_until(&self, until: Instant) {
        let mut state = self.state.borrow_mut();
        if !self.news.0.swap(false, AcqRel) && state.is_parked() {
            state.step(Some(until));
        }
    }

    fn nudge(&self) {
        let mut state = self.state.borrow_mut();
        if state.is_parked() && state.connection.bell.take() {
            let last = state.connection.go_on();
            state.set_last(last);
        }
    }
}

impl ParkedState<'_> {
    /// Whether the exchange goes on. If not, the pipe tells the application.
    fn is_parked(&self) -> bool {
        matches!(self.last, Ok(Action::Park { .. }))
    }

    fn step(&mut self, wake_at: Option<Instant>) {
        if let Ok(Action::Park { awaiting, write }) = self.last {
            let last = self.connection.park(awaiting, write, wake_at);
            self.set_last(last);
        }
    }

    /// Stores the connection's next action, after sending what the socket takes. Tells the application if the
    /// connection is over.
    fn set_last(&mut self, last: Result<Action, Reason>) {
        let connection = &mut *self.connection;
        self.last = last.and_then(|action| {
            if let Action::Close(close) = &action {
                connection.account_for(*close);
            }
            // The application may be busy for long before the thread reaches this again.
            connection.send_now()?;
            Ok(action)
        });
        if let Err(reason) = self.last {
            connection.conn.abandon(reason.unwrap_or("peer-gone"));
        }
    }
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, Timespec, poll};

    use super::*;

    fn is_readable(bell: &Bell) -> bool {
        let signal = bell.signal().expect("the bell has a signal");
        let mut asked = [PollFd::from_borrowed_fd(signal, PollFlags::IN)];
        poll(&mut asked, Some(&Timespec::default())) == Ok(1)
    }

    #[test]
    fn a_signal_written_after_its_ring_was_taken_is_cleared() {
        let bell = Bell::new(true).expect("an eventfd");
        // `wake` stops after its first step, and goes on when the ring was taken.
        bell.rung.store(true, Release);
        assert!(bell.take());
        let signal = bell.signal().expect("the bell has a signal");
        rustix::io::write(signal, &1_u64.to_ne_bytes()).expect("room in the eventfd");
        assert!(is_readable(&bell) && !bell.take());
        bell.clear_late_signal();
        assert!(!is_readable(&bell));
    }

    #[test]
    fn a_ring_is_not_lost_to_the_clearing() {
        let bell = Bell::new(true).expect("an eventfd");
        bell.wake(0);
        bell.clear_late_signal();
        assert!(is_readable(&bell) && bell.take() && !is_readable(&bell));
        assert!(!bell.take());
    }
}
