//! A connection on its own thread: reads, answers and writes in order.
//!
//! All waiting is in blocking system calls. Output is written before the thread waits for anything
//! else, so a peer never waits for bytes that are ready. Buffers belong to the connection; they are
//! small beside the thread's stack.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rustix::event::PollFlags;
use socket2::SockRef;

use super::parked::Bell;
use super::stream::{Reason, Stream};
use super::{Place, Seat};
use crate::application::Caller;
use crate::blocking::BlockingHandler;
use crate::config::Protocol;
use crate::conn::{Action, Close, Conn, Io, Peer, WaitClass};
use crate::counters::Counters;
use crate::handler::Request;
use crate::io::meter::Meter;
use crate::io::{FAR, date, now, reset_on_close};
use crate::output::Output;
use crate::pipe::Wake;

/// A connection and the state of its thread.
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) conn: Conn,
    input: BytesMut,
    pub(super) out: Output,
    pub(super) now: Instant,
    date: Option<String>,
    date_until: Instant,
    /// The read deadline in force, and the kind of wait that it is for. A deadline of `None` means that the
    /// wait has no limit.
    pub(super) patience: Option<(WaitClass, Option<Instant>)>,
    /// When to close because the peer takes no bytes; `None` while bytes can be sent at once.
    pub(super) stalled: Option<Instant>,
    /// Whether the reason for the connection's end has been counted.
    accounted: bool,
    /// Whether the end of stream has been read.
    ended: bool,
    /// Whether the peer has closed its half while the connection goes on.
    pub(super) hung_up: bool,
    /// Rung by an application that answers from another thread.
    pub(super) bell: Arc<Bell>,
    /// The blocking application to run on this thread; `None` while it runs, or for other kinds.
    handler: Option<Arc<dyn BlockingHandler>>,
    pub(super) meter: Meter,
    pub(super) place: Place,
}

impl Connection {
    /// The state of a connection just accepted.
    ///
    /// # Errors
    /// The system has no descriptor left for the bell.
    pub(super) fn new(
        place: Place,
        seat: Arc<Seat>,
        protocol: Protocol,
        peer: Peer,
        counters: &Arc<Counters>,
    ) -> io::Result<Self> {
        let hub = &place.hub;
        let now = now();
        let write_timeout = hub.shared.config.write_timeout;
        Ok(Self {
            stream: Stream::new(seat, Arc::clone(counters), write_timeout),
            conn: Conn::new(protocol, peer, Arc::clone(&hub.shared.config)),
            input: BytesMut::new(),
            out: Output::default(),
            now,
            date: date(),
            date_until: now + Duration::from_secs(1),
            patience: None,
            stalled: None,
            accounted: false,
            ended: false,
            hung_up: false,
            bell: Arc::new(Bell::new(hub.shared.runner.answers_later())?),
            handler: hub.shared.runner.blocking_handler().cloned(),
            meter: Meter::new(Arc::clone(counters), hub.shared.config.status.is_some()),
            place,
        })
    }

    /// Runs the connection to its end.
    pub(super) fn run(mut self) {
        let mut action = self.poll();
        let reason = loop {
            match self.obey(action) {
                Ok(next) => action = next,
                Err(reason) => break reason,
            }
        };
        // A cut shows as any error of the socket, which is not the reason.
        let is_cut = self.place.hub.is_cut();
        if let Some(reason) = if is_cut { Some("stopped") } else { reason } {
            self.refuse(reason);
        }
        // Part of a response is missing, which a reset tells the client; see `Conn::awaits_close`.
        if !self.out.is_empty() || self.conn.awaits_close() {
            reset_on_close(SockRef::from(&self.stream.seat.socket));
        }
        Counters::add(&self.meter.counters().closed, 1);
    }

    /// Does what an action says, and returns the connection's next action.
    ///
    /// # Errors
    /// Why the connection is over.
    pub(super) fn obey(&mut self, action: Action) -> Result<Action, Reason> {
        match action {
            Action::Read(awaiting) => {
                self.stream.send(&mut self.out)?;
                self.read(awaiting)
            }
            Action::Write => {
                self.stream.send(&mut self.out)?;
                self.go_on()
            }
            Action::Serve(request) => self.serve(request),
            Action::Wait(pause) => {
                self.stream.send(&mut self.out)?;
                self.sleep(now() + pause.min(FAR))
            }
            // Without a time to wake.
            Action::Park { awaiting, write } => self.park(awaiting, write, None),
            Action::Close(close) => Err(self.close(close)),
        }
    }

    pub(super) fn poll(&mut self) -> Action {
        self.tell_and_see(Conn::poll)
    }

    /// Passes an event to the connection, after updating the clock and checking whether the
    /// connector is being stopped.
    pub(super) fn tell<T>(&mut self, event: impl FnOnce(&mut Conn, &mut Io<'_>) -> T) -> T {
        self.now = now();
        if self.now >= self.date_until {
            self.date = date();
            self.date_until = self.now + Duration::from_secs(1);
        }
        if self.place.hub.is_stopping() {
            self.conn.drain();
        }
        let io = &mut Io {
            input: &mut self.input,
            out: &mut self.out,
            date: self.date.as_deref(),
        };
        event(&mut self.conn, io)
    }

    /// Like [`Self::tell`], for an event that yields an action. The gauges are updated by the action.
    pub(super) fn tell_and_see(
        &mut self,
        event: impl FnOnce(&mut Conn, &mut Io<'_>) -> Action,
    ) -> Action {
        let action = self.tell(event);
        self.meter.see(&action);
        action
    }

    /// Passes a request to the status page or to the application. A blocking application runs on this thread.
    fn serve(&mut self, request: Box<Request>) -> Result<Action, Reason> {
        self.patience = None;
        let hub = Arc::clone(&self.place.hub);
        // For other kinds of applications, `ConnectorState::serve` looks for the status page.
        if self.handler.is_some()
            && let Some(answer) = hub.shared.view(&request, self.meter.counters())
        {
            return Ok(self.tell_and_see(|conn, io| conn.respond(answer, io)));
        }
        if let Some(handler) = self.handler.take() {
            let action = self.host(&*handler, &request);
            self.handler = Some(handler);
            return action;
        }
        let driver: Arc<dyn Wake> = Arc::<Bell>::clone(&self.bell);
        let counters = Arc::clone(self.meter.counters());
        let caller = Caller {
            counters: &counters,
            driver: &driver,
            // A bell serves one connection, so it ignores the key.
            key: 0,
        };
        Ok(self.tell_and_see(|conn, io| hub.shared.serve(request, conn, io, caller)))
    }

    /// Reads for `awaiting`, within its deadline.
    pub(super) fn read(&mut self, awaiting: WaitClass) -> Result<Action, Reason> {
        let timeout = self.allowance(awaiting);
        let is_idle = matches!(awaiting, WaitClass::FirstByte | WaitClass::NextRequest);
        let received = if timeout == Some(Duration::ZERO) {
            // The deadline has passed while the connection was busy.
            Ok(None)
        } else if is_idle {
            self.receive_idle(timeout)
        } else {
            self.stream.receive(timeout)
        };
        match received.map_err(|_| self.broken())? {
            Some(count) => Ok(self.take(count, awaiting)),
            None => {
                self.patience = None;
                Ok(self.tell_and_see(Conn::handle_timeout))
            }
        }
    }

    /// Waits for a request, unless the connector is being stopped; then it only takes what has
    /// arrived.
    fn receive_idle(&mut self, timeout: Option<Duration>) -> io::Result<Option<usize>> {
        // Either the stop sees that this connection is idle, or this sees the stop.
        self.stream.seat.idle.store(true, SeqCst);
        let received = if self.place.hub.is_stopping() {
            // A request that has arrived already is still served; otherwise the connection ends.
            self.stream.receive_now().map(|count| count.or(Some(0)))
        } else {
            self.stream.receive(timeout)
        };
        self.stream.seat.idle.store(false, SeqCst);
        received
    }

    /// Passes `count` bytes that were read to the connection; 0 is the end of the stream.
    pub(super) fn take(&mut self, count: usize, awaiting: WaitClass) -> Action {
        if count == 0 {
            self.ended = true;
            return self.tell_and_see(Conn::handle_eof);
        }
        self.input.extend_from_slice(self.stream.received());
        if awaiting.restarts() {
            self.patience = None;
        }
        self.poll()
    }

    /// The reason for closing a connection that cannot be read: none if it was idle.
    pub(super) fn broken(&self) -> Reason {
        (!self.conn.is_idle()).then_some("peer-gone")
    }

    /// How long the peer may keep the connection waiting from now on; `None`: without limit.
    fn allowance(&mut self, awaiting: WaitClass) -> Option<Duration> {
        if awaiting.restarts() {
            // Each read may take the whole time, so the socket's timeout need not change.
            let shared = &self.place.hub.shared;
            return shared.patience(awaiting, self.conn.protocol());
        }
        let until = self.deadline(awaiting);
        until.map(|until| until.saturating_duration_since(now()))
    }

    /// When the wait for `awaiting` times out; starts that deadline unless it runs already.
    pub(super) fn deadline(&mut self, awaiting: WaitClass) -> Option<Instant> {
        if let Some((running, until)) = self.patience
            && running == awaiting
        {
            return until;
        }
        let shared = &self.place.hub.shared;
        let limit = shared.patience(awaiting, self.conn.protocol());
        let until = limit.map(|limit| self.now + limit);
        self.patience = Some((awaiting, until));
        until
    }

    /// Polls the connection again. Before that, reads what the peer sent meanwhile, if that
    /// matters.
    pub(super) fn go_on(&mut self) -> Result<Action, Reason> {
        if self.conn.watches_input() && self.input.is_empty() && !self.hung_up {
            match self.stream.receive_now().map_err(|_| self.broken())? {
                Some(0) => {
                    if let Some(action) = self.hang_up() {
                        return Ok(action);
                    }
                }
                Some(_) => self.input.extend_from_slice(self.stream.received()),
                None => {}
            }
        }
        Ok(self.poll())
    }

    /// Handles the peer's close of its half while nothing is read; `None`: the connection goes on
    /// as before.
    pub(super) fn hang_up(&mut self) -> Option<Action> {
        self.hung_up = true;
        let action = self.tell(Conn::handle_hangup);
        if let Some(action) = &action {
            self.meter.see(action);
        }
        action
    }

    /// Sleeps until this instant, unless the peer leaves, and goes on.
    fn sleep(&mut self, until: Instant) -> Result<Action, Reason> {
        loop {
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                return self.go_on();
            }
            // No bell is watched: the application has answered.
            let watched = self.stream.watch(self.unless_hung_up(), None, Some(left));
            if watched.flags.intersects(PollFlags::HUP | PollFlags::ERR) {
                return Err(Some("peer-gone"));
            }
            if watched.flags.intersects(PollFlags::RDHUP)
                && let Some(action) = self.hang_up()
            {
                return Ok(action);
            }
        }
    }

    /// The events to poll for so that the peer's close is noticed; none once it is known.
    pub(super) fn unless_hung_up(&self) -> PollFlags {
        if self.hung_up {
            PollFlags::empty()
        } else {
            PollFlags::RDHUP
        }
    }

    /// Counts the reason for the connection's end at once, since sending the rest and lingering may
    /// delay the close.
    pub(super) fn account_for(&mut self, close: Close) {
        if let Some(reason) = close.reason
            && !self.accounted
        {
            self.accounted = true;
            self.refuse(reason);
        }
    }

    /// Sends the remaining bytes and lingers if that is due; returns why the connection is over, if nothing has
    /// counted that yet.
    fn close(&mut self, close: Close) -> Reason {
        self.account_for(close);
        if let Err(send_error) = self.stream.send(&mut self.out) {
            let is_orderly = close.reason.is_none();
            return if is_orderly { send_error } else { None };
        }
        if close.linger && !self.ended {
            self.stream.linger();
        }
        None
    }

    fn refuse(&self, reason: &'static str) {
        self.meter.counters().refuse(reason);
        tracing::debug!(peer = ?self.conn.peer(), reason, "given up");
    }
}
