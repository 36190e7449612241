//! One connection on the ring: its socket, its agent, and the operations under way for it.
//!
//! Once begun, receiving goes on whether or not bytes are wanted, so that the peer's close is
//! noticed. Bytes that are not wanted yet wait in `inbox`. When it is full, receiving stops until it
//! has been read; meanwhile the socket is polled for the peer's close only. At most one send is under
//! way; bytes produced meanwhile form the next one.
//!
//! A step returns `true` if the connection can go on, `false` if it must wait for a completion or its deadline, and the
//! [`Reason`] as an error if it is over (`peer-gone` if the socket fails).

use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use bytes::BytesMut;
use socket2::SockRef;

use super::super::agent::{Agent, Reason, Want};
use super::super::lent::Loan;
use super::super::reset_on_close;
use super::ring::{OperationId, ReceiveResult, Ring};
use crate::counters::Counters;
use crate::output::Output;

/// A connection with its socket, and the socket's state.
#[derive(Debug)]
pub(super) struct Task {
    socket: Rc<OwnedFd>,
    pub(super) agent: Agent,
    /// Bytes received and not yet asked for; without a buffer while empty.
    inbox: BytesMut,
    /// The receive operation under way.
    receiving: Option<OperationId>,
    /// The watch for the peer's close, while nothing is received.
    watching: Option<OperationId>,
    /// The send operation under way, which holds the bytes being sent.
    sending: Option<OperationId>,
    /// Whether the peer has closed its sending side.
    hung_up: bool,
    /// Whether the end of stream has been received.
    ended: bool,
    /// Whether the connection is broken.
    gone: bool,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The task waits for one of its operations, or for this instant.
    Waits { until: Option<Instant> },
    /// The connection is over, for this reason; see [`Reason`].
    Closed(Reason),
}

impl Task {
    /// The task of a connection just accepted.
    pub(super) fn new(socket: OwnedFd, agent: Agent) -> Self {
        Self {
            socket: Rc::new(socket),
            agent,
            inbox: BytesMut::new(),
            receiving: None,
            watching: None,
            sending: None,
            hung_up: false,
            ended: false,
            gone: false,
        }
    }

    /// Handles a result of the receive operation.
    pub(super) fn handle_received(
        &mut self,
        result: ReceiveResult,
        last: bool,
        ring: &mut Ring,
        lent: &mut Loan,
    ) {
        if last {
            self.receiving = None;
        }
        match result {
            ReceiveResult::Chunk(chunk) => {
                lent.lend_input(&mut self.inbox);
                let before = self.inbox.len();
                ring.take(chunk, &mut self.inbox);
                let count = self.inbox.len() - before;
                Counters::add(&self.agent.counters().bytes_in, count as u64);
            }
            ReceiveResult::End => {
                self.hung_up = true;
                self.ended = true;
            }
            ReceiveResult::Nothing => {}
            ReceiveResult::Failed => self.gone = true,
        }
    }

    /// Handles the peer's close while nothing is received.
    pub(super) fn handle_hangup(&mut self, gone: bool) {
        self.watching = None;
        self.hung_up = true;
        self.gone |= gone;
    }

    /// Handles the result of the send operation; sends what is left.
    pub(super) fn handle_sent(
        &mut self,
        mut out: Output,
        sent: io::Result<usize>,
        ring: &mut Ring,
        lent: &mut Loan,
    ) {
        self.sending = None;
        self.agent.end_stall();
        match sent {
            Ok(count) => {
                Counters::add(&self.agent.counters().bytes_out, count as u64);
                out.advance(count);
                if out.is_empty() {
                    lent.take_back_output(&mut out);
                } else {
                    self.send(out, ring, lent);
                }
            }
            Err(_) => self.gone = true,
        }
    }

    /// Advances the connection until it has to wait. That comes soon: what is produced and not yet
    /// sent is bounded, and so is what has been received and can be consumed.
    pub(super) fn advance(&mut self, ring: &mut Ring, lent: &mut Loan) -> Fate {
        lent.lend_input(&mut self.agent.input);
        lent.lend_output(&mut self.agent.out);
        let fate = loop {
            match self.step(ring, lent) {
                Ok(true) => {}
                Ok(false) => {
                    self.flush(ring, lent);
                    self.keep_receiving(ring);
                    break Fate::Waits {
                        until: self.agent.deadline(),
                    };
                }
                Err(reason) => break Fate::Closed(reason),
            }
        };
        lent.take_back_input(&mut self.inbox);
        lent.take_back_input(&mut self.agent.input);
        lent.take_back_output(&mut self.agent.out);
        fate
    }

    /// Cancels the operations under way, because the connection is over.
    pub(super) fn abandon(&mut self, ring: &mut Ring) {
        let under_way = [
            self.receiving.take(),
            self.watching.take(),
            self.sending.take(),
        ];
        for operation in under_way.into_iter().flatten() {
            ring.abandon(operation);
        }
    }

    /// Makes one step; `false` if the task has to wait.
    ///
    /// # Errors
    /// Why the connection is over.
    fn step(&mut self, ring: &mut Ring, lent: &Loan) -> Result<bool, Reason> {
        match self.agent.want {
            Want::Poll => {
                if self.agent.watches_input() {
                    self.unpack();
                }
                self.agent.poll(lent);
                Ok(true)
            }
            Want::Read => self.fill(lent),
            Want::Write => self.make_room(ring, lent),
            Want::Wait { .. } => self.notice_hangup(lent),
            Want::Park { read, write } => {
                if write && self.make_room(ring, lent)? {
                    return Ok(true);
                }
                if read {
                    self.fill(lent)
                } else {
                    self.notice_hangup(lent)
                }
            }
            Want::Close { linger, orderly } => self.finish(linger, orderly, ring, lent),
            Want::Linger { left, .. } => self.discard(left),
            Want::Nothing(reason) => Err(reason),
        }
    }

    /// Sends the output, unless a send is under way; the next one follows it.
    fn flush(&mut self, ring: &mut Ring, lent: &Loan) {
        if self.sending.is_none() && !self.agent.out.is_empty() && !self.gone {
            let out = std::mem::take(&mut self.agent.out);
            self.send(out, ring, lent);
        }
    }

    fn send(&mut self, out: Output, ring: &mut Ring, lent: &Loan) {
        self.sending = Some(ring.send(self.agent.key(), &self.socket, out));
        self.agent.begin_stall(lent);
    }

    /// Sends output, and polls the connection if there is room for more; `false` if there is not.
    fn make_room(&mut self, ring: &mut Ring, lent: &Loan) -> Result<bool, Reason> {
        if self.agent.out.is_full() {
            self.flush(ring, lent);
        }
        if self.agent.out.is_full() {
            return self.notice_hangup(lent);
        }
        self.agent.want = Want::Poll;
        Ok(true)
    }

    /// Starts to receive if the inbox has room, and cancels the receive if it has none. While nothing is received,
    /// watches for the peer's close.
    fn keep_receiving(&mut self, ring: &mut Ring) {
        if self.ended || self.gone {
            return;
        }
        match self.receiving {
            None if self.inbox.is_empty() => {
                // A receive notices the peer's close itself.
                if let Some(watch) = self.watching.take() {
                    ring.abandon(watch);
                }
                self.receiving = Some(ring.receive(self.agent.key(), &self.socket));
            }
            None if self.watching.is_none() && !self.hung_up => {
                let watch = ring.watch_for_hangup(self.agent.key(), &self.socket);
                self.watching = Some(watch);
            }
            // Cancelling more than once does no harm, and hardly happens.
            Some(operation) if self.inbox.len() >= INBOX_MAX => ring.cancel(operation),
            _ => {}
        }
    }

    /// Passes received bytes, or the end of the stream, to the agent; `false` if there is neither.
    fn fill(&mut self, lent: &Loan) -> Result<bool, Reason> {
        if self.unpack() {
            self.agent.handle_input();
            return Ok(true);
        }
        if self.ended {
            self.agent.handle_eof(lent);
            return Ok(true);
        }
        if self.gone {
            // Losing an idle connection is no fault.
            let is_idle = self.agent.is_idle();
            return Err(if is_idle { None } else { Some("peer-gone") });
        }
        Ok(false)
    }

    /// Moves received bytes to the agent's input; returns whether there were any.
    fn unpack(&mut self) -> bool {
        if self.inbox.is_empty() {
            return false;
        }
        if self.agent.input.is_empty() {
            std::mem::swap(&mut self.agent.input, &mut self.inbox);
        } else {
            self.agent.input.extend_from_slice(&self.inbox);
        }
        self.inbox.clear();
        true
    }

    /// Tells the agent if the peer has left while the connection reads nothing.
    fn notice_hangup(&mut self, lent: &Loan) -> Result<bool, Reason> {
        if self.gone {
            return Err(Some("peer-gone"));
        }
        Ok(self.hung_up && self.agent.handle_hangup(lent))
    }

    /// Sends the remaining bytes and our end of stream; then lingers, or ends with an error that has the reason.
    /// `false` while a send is under way.
    fn finish(
        &mut self,
        linger: bool,
        orderly: bool,
        ring: &mut Ring,
        lent: &Loan,
    ) -> Result<bool, Reason> {
        if self.gone {
            let is_unsent = self.sending.is_some() || !self.agent.out.is_empty();
            // A close that is not orderly has been counted with its own reason.
            let is_fault = is_unsent && orderly;
            return Err(if is_fault { Some("peer-gone") } else { None });
        }
        self.flush(ring, lent);
        if self.sending.is_some() {
            return Ok(false);
        }
        let socket = SockRef::from(&self.socket);
        if !linger || self.ended || socket.shutdown(Shutdown::Write).is_err() {
            return Err(None);
        }
        self.agent.linger(lent);
        Ok(true)
    }

    /// Throws away what the peer still sends, and waits for more, up to its end or `left` bytes.
    fn discard(&mut self, left: usize) -> Result<bool, Reason> {
        let count = self.inbox.len();
        self.inbox.clear();
        if self.ended || self.gone || count >= left {
            return Err(None);
        }
        if let Want::Linger { left, .. } = &mut self.agent.want {
            *left -= count;
        }
        Ok(false)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.sending.is_some() || self.agent.is_cut() {
            reset_on_close(SockRef::from(&self.socket));
        }
    }
}

// An idle connection is a task and its operation and nothing else; this is what ten thousand cost.
const _: () = assert!(size_of::<Task>() <= 672);

/// The bytes that may arrive before they are wanted; then receiving is cancelled, and bytes under way
/// come in addition.
const INBOX_MAX: usize = 64 * 1024;
