//! The state that both event loops, epoll and uring, keep for each connection.
//!
//! It consists of the sans-IO `Conn`, the connection's buffers, what it waits for, and the
//! deadline of that wait. An agent obeys the actions of `Conn` until one has to wait for the
//! socket. It does no input or output: the driver's task reads [`Agent::want`], moves bytes
//! accordingly, and reports the outcome to the agent.

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;

use super::lent::Loan;
use super::meter::Meter;
use super::{FAR, LINGER, LINGER_BYTES, now};
use crate::application::Caller;
use crate::config::Protocol;
use crate::conn::{Action, Close, Conn, Io, Peer, WaitClass};
use crate::counters::Counters;
use crate::handler::Request;
use crate::output::Output;

/// A connection without its socket, and what it waits for.
#[derive(Debug)]
pub(super) struct Agent {
    /// The worker's key for the connection.
    key: usize,
    conn: Conn,
    /// Bytes received and not yet consumed; without a buffer while idle.
    pub(super) input: BytesMut,
    /// Bytes to be sent; without a buffer while idle.
    pub(super) out: Output,
    pub(super) want: Want,
    /// The read deadline in force, and the kind of wait that it is for. A deadline of `None` means that the
    /// wait has no limit.
    patience: Option<(WaitClass, Option<Instant>)>,
    /// When to close because the peer takes no bytes; `None` while none wait to be sent.
    stalled: Option<Instant>,
    meter: Meter,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    /// The connection waits for its turn to be polled.
    Poll,
    /// Waits for bytes from the peer.
    Read,
    /// Waits until the socket has room to send.
    Write,
    /// Waits for a point in time.
    Wait { until: Instant },
    /// Waits for the application, and also for bytes from the peer (`read`) or for room to
    /// send (`write`).
    Park { read: bool, write: bool },
    /// Sends the remaining bytes, then ends. `linger`: waits for the peer's end of stream first. `orderly`: the
    /// connection does not end because of a fault, which would be counted already.
    Close { linger: bool, orderly: bool },
    /// The connection has sent its end of stream, and waits for the peer's.
    Linger { deadline: Instant, left: usize },
    /// Waits for nothing, because the connection is over.
    Nothing(Reason),
}

/// Why a connection is over; `None`: it ended in order.
pub(super) type Reason = Option<&'static str>;

impl Agent {
    /// Creates the agent of a connection just accepted. `listener_index` is that of its listener,
    /// `key` the worker's key.
    pub(super) fn new(
        protocol: Protocol,
        key: usize,
        peer: Peer,
        listener_index: usize,
        lent: &Loan,
    ) -> Self {
        // Only the status view shows the duration of requests.
        let timed = lent.shared.config.status.is_some();
        Self {
            key,
            conn: Conn::new(protocol, peer, Arc::clone(&lent.shared.config)),
            input: BytesMut::new(),
            out: Output::default(),
            want: Want::Poll,
            patience: None,
            stalled: None,
            meter: Meter::new(Arc::clone(lent.counters(listener_index)), timed),
        }
    }

    /// The counters of the connection's listener and worker.
    pub(super) fn counters(&self) -> &Counters {
        self.meter.counters()
    }

    /// Counts and logs a request or a connection that ended with a fault.
    pub(super) fn refuse(&self, reason: &'static str) {
        self.counters().refuse(reason);
        tracing::debug!(peer = ?self.peer(), reason, "given up");
    }

    pub(super) fn key(&self) -> usize {
        self.key
    }

    pub(super) fn peer(&self) -> &Peer {
        self.conn.peer()
    }

    /// Whether no request is being received or answered.
    pub(super) fn is_idle(&self) -> bool {
        self.conn.is_idle()
    }

    /// Whether the connection has to end with a reset, because part of a response is missing and
    /// the client must not take it for whole.
    pub(super) fn is_cut(&self) -> bool {
        !self.out.is_empty() || self.awaits_close()
    }

    /// Whether closing now would make an incomplete response look complete; see
    /// [`Conn::awaits_close`].
    pub(super) fn awaits_close(&self) -> bool {
        self.conn.awaits_close()
    }

    /// Whether input must be read before the next poll; see [`Conn::watches_input`].
    pub(super) fn watches_input(&self) -> bool {
        self.conn.watches_input()
    }

    /// Handles the connection's timer: finds which of its deadlines has passed, if any.
    pub(super) fn handle_time(&mut self, lent: &Loan) {
        let is_past = |deadline: Instant| deadline <= lent.now;
        if self.stalled.is_some_and(is_past) {
            self.want = Want::Nothing(Some("write-timeout"));
            return;
        }
        match self.want {
            Want::Wait { until } if is_past(until) => self.want = Want::Poll,
            Want::Linger { deadline, .. } if is_past(deadline) => self.want = Want::Nothing(None),
            Want::Read | Want::Park { .. } if self.read_deadline().is_some_and(is_past) => {
                self.patience = None;
                self.tell(Conn::handle_timeout, lent);
            }
            // The deadline was moved after the timer was set.
            _ => {}
        }
    }

    /// Notes that the application has something for the connection.
    pub(super) fn handle_wake(&mut self) {
        if matches!(self.want, Want::Park { .. }) {
            self.want = Want::Poll;
        }
    }

    /// Notes that bytes have been added to the input.
    pub(super) fn handle_input(&mut self) {
        if self
            .patience
            .is_some_and(|(awaiting, _)| awaiting.restarts())
        {
            self.patience = None;
        }
        self.want = Want::Poll;
    }

    /// Handles the end of the peer's stream, found by a read that was asked for.
    pub(super) fn handle_eof(&mut self, lent: &Loan) {
        self.tell(Conn::handle_eof, lent);
    }

    /// Handles the peer's end of stream while no bytes are wanted. Returns whether that changes
    /// anything.
    pub(super) fn handle_hangup(&mut self, lent: &Loan) -> bool {
        let io = &mut lent.io(&mut self.input, &mut self.out);
        match self.conn.handle_hangup(io) {
            Some(action) => {
                self.obey(action, lent);
                true
            }
            None => false,
        }
    }

    /// Makes the request under way the last one.
    pub(super) fn drain(&mut self) {
        self.conn.drain();
        if matches!(self.want, Want::Read) {
            self.want = Want::Poll;
        }
    }

    /// Polls the connection, and obeys the action that it returns.
    pub(super) fn poll(&mut self, lent: &Loan) {
        self.tell(Conn::poll, lent);
    }

    /// Starts the write timeout, unless it runs already: the peer takes no bytes.
    pub(super) fn begin_stall(&mut self, lent: &Loan) {
        if self.stalled.is_none() {
            self.stalled = Some(lent.now + lent.shared.config.write_timeout.min(FAR));
        }
    }

    /// Stops the write timeout: the peer has taken bytes.
    pub(super) fn end_stall(&mut self) {
        self.stalled = None;
    }

    /// Waits for the peer's end of stream, after ours was sent.
    pub(super) fn linger(&mut self, lent: &Loan) {
        self.want = Want::Linger {
            deadline: lent.now + LINGER,
            left: LINGER_BYTES,
        };
    }

    /// When the worker must look at this connection even if nothing happens; `None`: never.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let wanted = match self.want {
            Want::Read | Want::Park { .. } => self.read_deadline(),
            Want::Wait { until } => Some(until),
            Want::Linger { deadline, .. } => Some(deadline),
            Want::Poll | Want::Write | Want::Close { .. } | Want::Nothing(_) => None,
        };
        [wanted, self.stalled].into_iter().flatten().min()
    }

    fn read_deadline(&self) -> Option<Instant> {
        self.patience.and_then(|(_, deadline)| deadline)
    }

    /// Passes an event to the connection, and obeys the action that it returns.
    fn tell(&mut self, event: fn(&mut Conn, &mut Io<'_>) -> Action, lent: &Loan) {
        let io = &mut lent.io(&mut self.input, &mut self.out);
        let action = event(&mut self.conn, io);
        self.obey(action, lent);
    }

    /// Does what the connection's actions say, until one has to wait.
    fn obey(&mut self, mut action: Action, lent: &Loan) {
        self.meter.see(&action);
        while let Action::Serve(request) = action {
            self.patience = None;
            action = self.serve(request, lent);
            self.meter.see(&action);
        }
        self.want = match action {
            Action::Read(awaiting) => {
                self.wait_for(awaiting, lent);
                Want::Read
            }
            Action::Write => Want::Write,
            Action::Park { awaiting, write } => {
                match awaiting {
                    Some(awaiting) => self.wait_for(awaiting, lent),
                    None => self.patience = None,
                }
                let read = awaiting.is_some_and(WaitClass::reads);
                Want::Park { read, write }
            }
            // The clock is read again: the round may have begun a while ago, and the delay must not end early.
            Action::Wait(pause) => Want::Wait {
                until: now() + pause.min(FAR),
            },
            Action::Close(Close { linger, reason }) => {
                // Counted now, because lingering may delay the close of the socket.
                if let Some(reason) = reason {
                    self.refuse(reason);
                }
                Want::Close {
                    linger,
                    orderly: reason.is_none(),
                }
            }
            Action::Serve(_) => unreachable!("the loop above ends with another action"),
        };
    }

    /// Passes a request to the status page or to the application.
    fn serve(&mut self, request: Box<Request>, lent: &Loan) -> Action {
        let caller = Caller {
            counters: self.meter.counters(),
            driver: &lent.wakeups,
            key: self.key,
        };
        let io = &mut lent.io(&mut self.input, &mut self.out);
        lent.shared.serve(request, &mut self.conn, io, caller)
    }

    /// Starts the deadline of this kind of wait, unless it runs already.
    fn wait_for(&mut self, awaiting: WaitClass, lent: &Loan) {
        let running = self.patience.map(|(running, _)| running);
        if running != Some(awaiting) {
            let limit = lent.shared.patience(awaiting, self.conn.protocol());
            self.patience = Some((awaiting, limit.map(|limit| lent.now + limit)));
        }
    }
}
