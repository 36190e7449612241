//! One connection on the event loop: its socket, its `Conn`, and what each of them is ready for.

use std::{
    io,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use mio::event::Event;

use super::{
    super::{FAR, now},
    Lent,
    stream::Stream,
};
use crate::{
    application::Caller,
    config::Protocol,
    conn::{Action, Awaiting, Close, Conn, Io, Peer},
    counters::Counters,
    handler::Request,
    output::Output,
};

/// A connection and where it stands.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) stream: Stream,
    /// The worker's name for this task.
    key: usize,
    conn: Conn,
    /// Received and not yet consumed; without a buffer while idle.
    input: BytesMut,
    /// To be sent; without a buffer while idle.
    out: Output,
    want: Want,
    /// The class of the read deadline that runs, and when it ends.
    patience: Option<(Awaiting, Option<Instant>)>,
    /// When to give up a peer that takes nothing; set while bytes cannot be sent.
    stalled: Option<Instant>,
    /// The socket may have bytes.
    readable: bool,
    /// The socket may take bytes.
    writable: bool,
    /// The peer has closed its half, so reads end in an end of stream.
    hung_up: bool,
    /// The end of stream has been read.
    ended: bool,
    /// Neither direction works any more.
    gone: bool,
    /// In the worker's list of unfinished tasks.
    pub(super) queued: bool,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug)]
enum Want {
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
    Nothing(Option<&'static str>),
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The task waits for its socket, or for this instant.
    Waits { until: Option<Instant> },
    /// The task could go on but has had its share.
    Unfinished,
    /// The connection is over, for this reason if not an orderly one.
    Closed(Option<&'static str>),
}

/// Steps of one turn: with 64 KiB each, about a megabyte before others are served.
const STEPS_MAX: usize = 32;
/// What a task may keep of a buffer in which less than that is left.
const KEPT_BYTES: usize = 4 * 1024;
/// How long to wait for the peer's end of stream after ours.
const LINGER: Duration = Duration::from_secs(2);
/// How much to throw away meanwhile.
const LINGER_BYTES: usize = 256 * 1024;

impl Task {
    /// A connection just accepted, which the worker knows as `key`.
    pub(super) fn new(
        stream: Stream,
        peer: Peer,
        (protocol, key): (Protocol, usize),
        lent: &Lent,
    ) -> Self {
        Self {
            stream,
            key,
            conn: Conn::new(protocol, peer, lent.shared.config.clone()),
            input: BytesMut::new(),
            out: Output::default(),
            want: Want::Poll,
            patience: None,
            stalled: None,
            // The event that says so comes with the registration.
            readable: false,
            writable: false,
            hung_up: false,
            ended: false,
            gone: false,
            queued: false,
        }
    }

    pub(super) fn peer(&self) -> &Peer {
        self.conn.peer()
    }

    /// Takes note of what the socket is ready for.
    pub(super) fn handle_readiness(&mut self, event: &Event) {
        self.hung_up |= event.is_read_closed();
        self.gone |= event.is_error() || (event.is_read_closed() && event.is_write_closed());
        self.readable |= event.is_readable() || self.hung_up;
        self.writable |= event.is_writable();
    }

    /// The task's timer fired; which of its deadlines has passed, if any, is seen here.
    pub(super) fn handle_time(&mut self, lent: &Lent) {
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
                let action =
                    self.conn
                        .handle_timeout(&mut io(&mut self.input, &mut self.out, lent));
                self.obey(action, lent);
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

    /// No further request is to be served.
    pub(super) fn drain(&mut self) {
        self.conn.drain();
        if matches!(self.want, Want::Read) {
            self.want = Want::Poll;
        }
    }

    /// Goes on until there is nothing left to do but wait, or the turn is over.
    pub(super) fn advance(&mut self, lent: &mut Lent) -> Fate {
        borrow(&mut self.input, &mut lent.input);
        if self.out.is_vacant() {
            std::mem::swap(&mut self.out, &mut lent.out);
        }
        let fate = self.run_turn(lent);
        give_back(&mut self.input, &mut lent.input);
        if self.out.is_empty() {
            let out = std::mem::take(&mut self.out);
            if lent.out.is_vacant() {
                lent.out = out;
            }
        }
        fate
    }

    fn run_turn(&mut self, lent: &mut Lent) -> Fate {
        for _ in 0..STEPS_MAX {
            match self.step(lent) {
                Ok(true) => {}
                Ok(false) => {
                    return Fate::Waits {
                        until: self.deadline(),
                    };
                }
                Err(reason) => return Fate::Closed(reason),
            }
        }
        Fate::Unfinished
    }

    /// One step; `false` if there is nothing to do but wait, an error if the connection is over.
    fn step(&mut self, lent: &mut Lent) -> Result<bool, Option<&'static str>> {
        match self.want {
            Want::Poll => {
                if self.readable && self.input.is_empty() && self.conn.watches_input() {
                    self.receive_ahead(lent)?;
                }
                let action = self
                    .conn
                    .poll(&mut io(&mut self.input, &mut self.out, lent));
                self.obey(action, lent);
                Ok(true)
            }
            Want::Read => {
                self.flush(lent)?;
                self.fill(lent)
            }
            Want::Write => {
                self.flush(lent)?;
                let room = !self.out.is_full();
                if room {
                    self.want = Want::Poll;
                } else {
                    self.notice_hangup(lent)?;
                }
                Ok(room)
            }
            Want::Wait { .. } => {
                self.flush(lent)?;
                self.notice_hangup(lent)
            }
            Want::Park { read, write } => {
                self.flush(lent)?;
                if write && !self.out.is_full() {
                    self.want = Want::Poll;
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

    /// Does what the connection says, up to where that has to wait.
    fn obey(&mut self, mut action: Action, lent: &Lent) {
        while let Action::Serve(request) = action {
            self.patience = None;
            action = self.serve(request, lent);
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
                let read = awaiting.is_some_and(Awaiting::reads);
                Want::Park { read, write }
            }
            // Read anew: the round may have begun a while ago, and no delay is to end early.
            Action::Wait(pause) => Want::Wait {
                until: now() + pause.min(FAR),
            },
            Action::Close(Close { linger, reason }) => {
                // Accounted for now and not when the socket closes, which lingering may put off.
                if let Some(reason) = reason {
                    lent.refuse(self.conn.peer(), reason);
                }
                Want::Close {
                    linger,
                    orderly: reason.is_none(),
                }
            }
            Action::Serve(_) => unreachable!("the loop above ends with another action"),
        };
    }

    fn serve(&mut self, request: Box<Request>, lent: &Lent) -> Action {
        let caller = Caller {
            counters: &lent.counters,
            driver: &lent.wakeups,
            key: self.key,
        };
        let io = &mut io(&mut self.input, &mut self.out, lent);
        let runner = &lent.shared.runner;
        runner.serve(request, &mut self.conn, io, caller)
    }

    fn wait_for(&mut self, awaiting: Awaiting, lent: &Lent) {
        if self.patience.is_none_or(|(running, _)| running != awaiting) {
            let patience = lent.shared.patience(awaiting, self.conn.protocol());
            self.patience = Some((awaiting, patience.map(|patience| lent.now + patience)));
        }
    }

    /// Sends as much as the socket takes.
    fn flush(&mut self, lent: &Lent) -> Result<(), Option<&'static str>> {
        while !self.out.is_empty() && self.writable {
            match self.stream.write(&self.out) {
                Ok(0) => return Err(Some("peer-gone")),
                Ok(count) => {
                    self.out.advance(count);
                    self.stalled = None;
                    Counters::add(&lent.counters.bytes_out, count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Some("peer-gone")),
            }
        }
        if !self.out.is_empty() && self.stalled.is_none() {
            self.stalled = Some(lent.now + lent.shared.config.write_timeout.min(FAR));
        }
        Ok(())
    }

    /// Reads once; `false` if there was nothing.
    fn fill(&mut self, lent: &mut Lent) -> Result<bool, Option<&'static str>> {
        let Some(count) = self.read(lent)? else {
            return Ok(false);
        };
        if count == 0 {
            let action = self
                .conn
                .handle_eof(&mut io(&mut self.input, &mut self.out, lent));
            self.obey(action, lent);
            return Ok(true);
        }
        self.input.extend_from_slice(&lent.scratch[..count]);
        if self
            .patience
            .is_some_and(|(awaiting, _)| awaiting.restarts())
        {
            self.patience = None;
        }
        self.want = Want::Poll;
        Ok(true)
    }

    /// Reads what arrived while nothing was asked for, so that the connection knows of it before it
    /// writes the end of a response.
    fn receive_ahead(&mut self, lent: &mut Lent) -> Result<(), Option<&'static str>> {
        match self.read(lent)? {
            Some(0) => self.hung_up = true,
            Some(count) => self.input.extend_from_slice(&lent.scratch[..count]),
            None => {}
        }
        Ok(())
    }

    /// Reads into the worker's scratch space: `None` if there was nothing, 0 at the end.
    fn read(&mut self, lent: &mut Lent) -> Result<Option<usize>, Option<&'static str>> {
        while self.readable {
            match self.stream.read(&mut lent.scratch) {
                Ok(count) => {
                    // A short read has emptied the socket, unless the end of stream is behind it.
                    self.readable = count == lent.scratch.len() || (self.hung_up && count > 0);
                    self.ended = count == 0;
                    Counters::add(&lent.counters.bytes_in, count as u64);
                    return Ok(Some(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if self.conn.is_idle() => return Err(None),
                Err(_) => return Err(Some("peer-gone")),
            }
        }
        Ok(None)
    }

    /// While nothing is read, the peer's leaving shows only in what the system said of the socket.
    fn notice_hangup(&mut self, lent: &Lent) -> Result<bool, Option<&'static str>> {
        if self.gone {
            return Err(Some("peer-gone"));
        }
        if self.hung_up
            && let Some(action) =
                self.conn
                    .handle_hangup(&mut io(&mut self.input, &mut self.out, lent))
        {
            self.obey(action, lent);
            return Ok(true);
        }
        Ok(false)
    }

    fn finish(
        &mut self,
        linger: bool,
        orderly: bool,
        lent: &Lent,
    ) -> Result<bool, Option<&'static str>> {
        self.flush(lent)
            .map_err(|reason| reason.filter(|_| orderly))?;
        if !self.out.is_empty() && !self.gone {
            return Ok(false);
        }
        if !linger || self.ended || self.gone || self.stream.finish().is_err() {
            return Err(None);
        }
        self.want = Want::Linger {
            deadline: lent.now + LINGER,
            left: LINGER_BYTES,
        };
        Ok(true)
    }

    fn discard(&mut self, left: usize, lent: &mut Lent) -> Result<bool, Option<&'static str>> {
        let count = match self.read(lent) {
            Ok(Some(count)) if count > 0 && count < left => count,
            Ok(None) if !self.gone => return Ok(false),
            _ => return Err(None),
        };
        if let Want::Linger { left, .. } = &mut self.want {
            *left -= count;
        }
        Ok(true)
    }

    /// When the worker has to look at this task again even if its socket is silent.
    fn deadline(&self) -> Option<Instant> {
        let wanted = match self.want {
            Want::Read | Want::Park { .. } => self.patience.and_then(|(_, at)| at),
            Want::Wait { until } => Some(until),
            Want::Linger { deadline, .. } => Some(deadline),
            Want::Poll | Want::Write | Want::Close { .. } | Want::Nothing(_) => None,
        };
        [wanted, self.stalled].into_iter().flatten().min()
    }
}

fn io<'a>(input: &'a mut BytesMut, out: &'a mut Output, lent: &'a Lent) -> Io<'a> {
    Io {
        input,
        out,
        date: &lent.date,
    }
}

/// Lends a buffer to a task that has none.
fn borrow(own: &mut BytesMut, lent: &mut BytesMut) {
    if own.capacity() == 0 {
        std::mem::swap(own, lent);
    }
}

/// Takes an empty buffer away from a task: it goes back to the worker, or to the allocator.
fn give_back(own: &mut BytesMut, lent: &mut BytesMut) {
    if own.is_empty() {
        let mut buffer = std::mem::take(own);
        if lent.capacity() == 0 {
            buffer.clear();
            *lent = buffer;
        }
    } else if own.len() < KEPT_BYTES && own.capacity() > 2 * KEPT_BYTES {
        // Part of a head: a peer that is slow with the rest is not to hold the space of a large
        // one.
        let mut buffer = std::mem::replace(own, BytesMut::from(&own[..]));
        buffer.clear();
        *lent = buffer;
    }
}

// An idle connection is a task and nothing else; this is what ten thousand of them cost.
const _: () = assert!(size_of::<Task>() <= 576);
