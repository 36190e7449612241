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
    /// The worker's name for the connection.
    key: usize,
    conn: Conn,
    /// Received and not yet consumed; without a buffer while idle.
    pub(super) input: BytesMut,
    /// To be sent; without a buffer while idle.
    pub(super) out: Output,
    pub(super) want: Want,
    /// The class of the read deadline that runs, and when it ends.
    patience: Option<(WaitClass, Option<Instant>)>,
    /// When to give up a peer that takes nothing; `None` unless bytes wait to be sent.
    stalled: Option<Instant>,
    meter: Meter,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    /// Its turn.
    Poll,
    /// Bytes from the peer.
    Read,
    /// Room to send.
    Write,
    /// A point in time.
    Wait { until: Instant },
    /// The application; as well as bytes from the peer, or room to send.
    Park { read: bool, write: bool },
    /// All bytes sent; then the end, which has been accounted for unless it is an orderly one.
    Close { linger: bool, orderly: bool },
    /// The peer's end of stream, after ours.
    Linger { deadline: Instant, left: usize },
    /// The end.
    Nothing(Reason),
}

/// Why a connection is over; `None` if that is how it should be.
pub(super) type Reason = Option<&'static str>;

impl Agent {
    /// The agent of a connection just accepted at the listener in this `place`, which the worker
    /// knows as `key`.
    pub(super) fn new(
        protocol: Protocol,
        key: usize,
        peer: Peer,
        place: usize,
        lent: &Loan,
    ) -> Self {
        let timed = lent.shared.config.status.is_some();
        Self {
            key,
            conn: Conn::new(protocol, peer, Arc::clone(&lent.shared.config)),
            input: BytesMut::new(),
            out: Output::default(),
            want: Want::Poll,
            patience: None,
            stalled: None,
            meter: Meter::new(Arc::clone(lent.counters(place)), timed),
        }
    }

    /// The counters that this connection counts in.
    pub(super) fn counters(&self) -> &Counters {
        self.meter.counters()
    }

    /// Accounts for a request or a connection that ended badly.
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

    /// Whether the end of the connection is to be a reset: something of a response is missing, and
    /// its end must not look like that of a whole one.
    pub(super) fn is_cut(&self) -> bool {
        !self.out.is_empty() || self.awaits_close()
    }

    /// See [`Conn::awaits_close`].
    pub(super) fn awaits_close(&self) -> bool {
        self.conn.awaits_close()
    }

    /// See [`Conn::watches_input`].
    pub(super) fn watches_input(&self) -> bool {
        self.conn.watches_input()
    }

    /// Handles the connection's timer: finds which of its deadlines has passed, if any.
    pub(super) fn handle_time(&mut self, lent: &Loan) {
        let passed = |at: Instant| at <= lent.now;
        if self.stalled.is_some_and(passed) {
            self.want = Want::Nothing(Some("write-timeout"));
            return;
        }
        match self.want {
            Want::Wait { until } if passed(until) => self.want = Want::Poll,
            Want::Linger { deadline, .. } if passed(deadline) => self.want = Want::Nothing(None),
            Want::Read | Want::Park { .. }
                if self.patience.and_then(|(_, at)| at).is_some_and(passed) =>
            {
                self.patience = None;
                self.tell(Conn::handle_timeout, lent);
            }
            _ => {}
        }
    }

    /// The application has something for the connection.
    pub(super) fn handle_wake(&mut self) {
        if matches!(self.want, Want::Park { .. }) {
            self.want = Want::Poll;
        }
    }

    /// Bytes have been added to the input.
    pub(super) fn handle_input(&mut self) {
        if self
            .patience
            .is_some_and(|(awaiting, _)| awaiting.restarts())
        {
            self.patience = None;
        }
        self.want = Want::Poll;
    }

    /// Bytes were wanted and the stream has ended.
    pub(super) fn handle_eof(&mut self, lent: &Loan) {
        self.tell(Conn::handle_eof, lent);
    }

    /// Handles the peer's end of stream, read or not, while no bytes are wanted. Whether that
    /// changes anything.
    pub(super) fn handle_hangup(&mut self, lent: &Loan) -> bool {
        let action = self.conn.handle_hangup(&mut Io {
            input: &mut self.input,
            out: &mut self.out,
            date: lent.date.as_deref(),
        });
        let heeded = action.is_some();
        if let Some(action) = action {
            self.obey(action, lent);
        }
        heeded
    }

    /// Makes the request under way the last one.
    pub(super) fn drain(&mut self) {
        self.conn.drain();
        if matches!(self.want, Want::Read) {
            self.want = Want::Poll;
        }
    }

    /// Has the connection go on with the bytes at hand.
    pub(super) fn poll(&mut self, lent: &Loan) {
        self.tell(Conn::poll, lent);
    }

    /// The peer takes no bytes from now on, or none since it was last said.
    pub(super) fn begin_stall(&mut self, lent: &Loan) {
        if self.stalled.is_none() {
            self.stalled = Some(lent.now + lent.shared.config.write_timeout.min(FAR));
        }
    }

    /// The peer has taken bytes.
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

    /// The next deadline at which the worker must look at this connection even if nothing happens
    /// to it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let wanted = match self.want {
            Want::Read | Want::Park { .. } => self.patience.and_then(|(_, at)| at),
            Want::Wait { until } => Some(until),
            Want::Linger { deadline, .. } => Some(deadline),
            Want::Poll | Want::Write | Want::Close { .. } | Want::Nothing(_) => None,
        };
        [wanted, self.stalled].into_iter().flatten().min()
    }

    fn tell(&mut self, event: fn(&mut Conn, &mut Io<'_>) -> Action, lent: &Loan) {
        let action = event(
            &mut self.conn,
            &mut Io {
                input: &mut self.input,
                out: &mut self.out,
                date: lent.date.as_deref(),
            },
        );
        self.obey(action, lent);
    }

    /// Does what the connection says, until that has to wait.
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
            // Read anew: the round may have begun a while ago, and no delay is to end early.
            Action::Wait(pause) => Want::Wait {
                until: now() + pause.min(FAR),
            },
            Action::Close(Close { linger, reason }) => {
                // Accounted for now and not when the socket closes, which lingering may put off.
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

    fn serve(&mut self, request: Box<Request>, lent: &Loan) -> Action {
        let caller = Caller {
            counters: self.meter.counters(),
            driver: &lent.wakeups,
            key: self.key,
        };
        let io = &mut Io {
            input: &mut self.input,
            out: &mut self.out,
            date: lent.date.as_deref(),
        };
        lent.shared.serve(request, &mut self.conn, io, caller)
    }

    fn wait_for(&mut self, awaiting: WaitClass, lent: &Loan) {
        if self.patience.is_none_or(|(running, _)| running != awaiting) {
            let patience = lent.shared.patience(awaiting, self.conn.protocol());
            self.patience = Some((awaiting, patience.map(|patience| lent.now + patience)));
        }
    }
}
