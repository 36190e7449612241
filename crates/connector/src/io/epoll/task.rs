//! A connection on the event loop: its socket, its `Conn`, and its readiness.
//!
//! A step returns `true` if the connection can go on, `false` if it must wait for its socket or its deadline, and the
//! [`Reason`] as an error if it is over (`peer-gone` if the socket fails).

use std::io;
use std::time::Instant;

use mio::event::Event;
use mio::{Interest, Registry, Token};
use socket2::SockRef;

use super::super::agent::{Agent, Reason, Want};
use super::super::lent::Loan;
use super::super::reset_on_close;
use super::stream::Stream;
use crate::counters::Counters;

/// A connection with its socket, and the socket's state.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) stream: Stream,
    pub(super) agent: Agent,
    /// The events that the loop watches the socket for; `None`: it is not registered.
    watched: Option<Interest>,
    /// Whether the socket may have bytes.
    readable: bool,
    /// Whether the socket may take bytes.
    writable: bool,
    /// Whether the peer has closed its half, so that reads end in an end of stream.
    hung_up: bool,
    /// Whether the end of stream has been read.
    ended: bool,
    /// Whether the connection is broken in both directions.
    gone: bool,
    /// Whether the task is in the worker's list of unfinished tasks.
    pub(super) queued: bool,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The task waits for its socket, or for this instant.
    Waits { until: Option<Instant> },
    /// The task could go on, but has used up its turn.
    Unfinished,
    /// The connection is over, for this reason; see [`Reason`].
    Closed(Reason),
}

impl Task {
    /// The task of a connection just accepted.
    pub(super) fn new(stream: Stream, agent: Agent) -> Self {
        Self {
            stream,
            agent,
            watched: None,
            // Most clients have sent a request by the time they are accepted.
            readable: true,
            writable: true,
            hung_up: false,
            ended: false,
            gone: false,
            queued: false,
        }
    }

    /// Registers the socket for the events that it is not ready for, unless it is registered.
    /// Called only when the task has to wait: most connections that are served once never do, and
    /// few that are kept ever wait for room.
    pub(super) fn watch(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        if let Some(watched) = self.watched
            && (self.writable || watched.is_writable())
        {
            return Ok(());
        }
        let interest = if self.writable {
            Interest::READABLE
        } else {
            Interest::READABLE | Interest::WRITABLE
        };
        let is_watched = self.watched.replace(interest).is_some();
        self.stream.watch(registry, token, interest, is_watched)
    }

    /// Notes what the socket is ready for.
    pub(super) fn handle_readiness(&mut self, event: &Event) {
        self.hung_up |= event.is_read_closed();
        self.gone |= event.is_error() || (event.is_read_closed() && event.is_write_closed());
        self.readable |= event.is_readable() || self.hung_up;
        self.writable |= event.is_writable();
    }

    /// Advances the connection until it has to wait, or its turn is over.
    pub(super) fn advance(&mut self, lent: &mut Loan) -> Fate {
        lent.lend_input(&mut self.agent.input);
        lent.lend_output(&mut self.agent.out);
        let fate = self.run_turn(lent);
        lent.take_back_input(&mut self.agent.input);
        lent.take_back_output(&mut self.agent.out);
        fate
    }

    /// Makes steps until the task has to wait, is over, or has had its share of the worker's time.
    fn run_turn(&mut self, lent: &mut Loan) -> Fate {
        for _ in 0..STEPS_MAX {
            match self.step(lent) {
                Ok(true) => {}
                Ok(false) => {
                    return Fate::Waits {
                        until: self.agent.deadline(),
                    };
                }
                Err(reason) => return Fate::Closed(reason),
            }
        }
        Fate::Unfinished
    }

    /// Makes one step; `false` if the task has to wait.
    ///
    /// # Errors
    /// Why the connection is over.
    fn step(&mut self, lent: &mut Loan) -> Result<bool, Reason> {
        match self.agent.want {
            Want::Poll => {
                if self.readable && self.agent.input.is_empty() && self.agent.watches_input() {
                    self.receive_ahead(lent)?;
                }
                self.agent.poll(lent);
                Ok(true)
            }
            Want::Read => {
                self.flush(lent)?;
                self.fill(lent)
            }
            Want::Write => {
                self.flush(lent)?;
                let has_room = !self.agent.out.is_full();
                if has_room {
                    self.agent.want = Want::Poll;
                } else {
                    self.notice_hangup(lent)?;
                }
                Ok(has_room)
            }
            Want::Wait { .. } => {
                self.flush(lent)?;
                self.notice_hangup(lent)
            }
            Want::Park { read, write } => {
                self.flush(lent)?;
                if write && !self.agent.out.is_full() {
                    self.agent.want = Want::Poll;
                    return Ok(true);
                }
                if read {
                    self.fill(lent)
                } else {
                    self.notice_hangup(lent)
                }
            }
            Want::Close { linger, orderly } => self.finish(linger, orderly, lent),
            Want::Linger { left, .. } => self.discard(left, lent),
            Want::Nothing(reason) => Err(reason),
        }
    }

    /// Sends as much as the socket takes.
    fn flush(&mut self, lent: &Loan) -> Result<(), Reason> {
        self.send(false, lent)
    }

    /// Sends as much as the socket takes. With `last`, our end of stream follows at once.
    fn send(&mut self, last: bool, lent: &Loan) -> Result<(), Reason> {
        while !self.agent.out.is_empty() && self.writable {
            match self.stream.write(&self.agent.out, last) {
                Ok(0) => return Err(Some("peer-gone")),
                Ok(count) => {
                    self.agent.out.advance(count);
                    self.agent.end_stall();
                    Counters::add(&self.agent.counters().bytes_out, count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Some("peer-gone")),
            }
        }
        if !self.agent.out.is_empty() {
            self.agent.begin_stall(lent);
        }
        Ok(())
    }

    /// Reads once, and passes the bytes to the agent; `false` if there were none.
    fn fill(&mut self, lent: &mut Loan) -> Result<bool, Reason> {
        let Some(count) = self.read(lent)? else {
            return Ok(false);
        };
        if count == 0 {
            self.agent.handle_eof(lent);
            return Ok(true);
        }
        self.agent.input.extend_from_slice(&lent.scratch[..count]);
        self.agent.handle_input();
        Ok(true)
    }

    /// Reads bytes that arrived although the connection did not ask for any, so that it knows of them before it
    /// writes the end of a response.
    fn receive_ahead(&mut self, lent: &mut Loan) -> Result<(), Reason> {
        match self.read(lent)? {
            Some(0) => self.hung_up = true,
            Some(count) => self.agent.input.extend_from_slice(&lent.scratch[..count]),
            None => {}
        }
        Ok(())
    }

    /// Reads into the worker's scratch space: `None` if nothing has arrived, 0 at the end of the
    /// stream.
    fn read(&mut self, lent: &mut Loan) -> Result<Option<usize>, Reason> {
        while self.readable {
            match self.stream.read(&mut lent.scratch) {
                Ok(count) => {
                    // A short read has emptied the socket. Only an end of stream may still be behind the bytes.
                    self.readable = count == lent.scratch.len() || (self.hung_up && count > 0);
                    self.ended = count == 0;
                    Counters::add(&self.agent.counters().bytes_in, count as u64);
                    return Ok(Some(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Losing an idle connection is no fault.
                Err(_) if self.agent.is_idle() => return Err(None),
                Err(_) => return Err(Some("peer-gone")),
            }
        }
        Ok(None)
    }

    /// Tells the agent if the peer has left while nothing is read, which shows only in the socket's
    /// readiness.
    fn notice_hangup(&mut self, lent: &Loan) -> Result<bool, Reason> {
        if self.gone {
            return Err(Some("peer-gone"));
        }
        Ok(self.hung_up && self.agent.handle_hangup(lent))
    }

    /// Sends the remaining bytes and our end of stream; then lingers, or ends with an error that has the reason.
    /// `false` if the socket has no room.
    fn finish(&mut self, linger: bool, orderly: bool, lent: &Loan) -> Result<bool, Reason> {
        // A client that waits for the close would take an end of stream for the end of a response that was cut.
        let sends_end = !self.agent.awaits_close();
        if let Err(reason) = self.send(sends_end, lent) {
            // A close that is not orderly has been counted with its own reason.
            return Err(if orderly { reason } else { None });
        }
        if !self.agent.out.is_empty() && !self.gone {
            return Ok(false);
        }
        let is_end_sent = sends_end && !self.ended && !self.gone && self.stream.finish().is_ok();
        if !is_end_sent || !linger {
            return Err(None);
        }
        self.agent.linger(lent);
        Ok(true)
    }

    /// Reads and drops bytes of the peer, until its end of stream or `left` bytes; `false` if nothing has arrived.
    fn discard(&mut self, left: usize, lent: &mut Loan) -> Result<bool, Reason> {
        let count = match self.read(lent) {
            Ok(Some(count)) if count > 0 && count < left => count,
            Ok(None) if !self.gone => return Ok(false),
            // The peer is gone, has ended its stream, or sends more than is worth waiting for.
            _ => return Err(None),
        };
        if let Want::Linger { left, .. } = &mut self.agent.want {
            *left -= count;
        }
        Ok(true)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.agent.is_cut() {
            reset_on_close(SockRef::from(&self.stream));
        }
    }
}

// An idle connection is a task and nothing else; this is what ten thousand of them cost.
const _: () = assert!(size_of::<Task>() <= 608);

/// Steps of one turn: with 64 KiB each, about a megabyte before others are served.
const STEPS_MAX: usize = 32;
