//! One connection on the ring: its socket, its `Conn`, and the operations under way for it.
//!
//! Receiving goes on by itself once begun, whether or not anything is asked for: that is how the
//! peer's leaving is noticed. What arrives unasked waits in `inbox`, whose fullness ends receiving
//! until it has been read. At most one send is under way; what is produced meanwhile is the next.

use std::{
    io,
    net::Shutdown,
    os::fd::OwnedFd,
    rc::Rc,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use socket2::SockRef;

use super::{
    super::{FAR, now},
    Lent,
    ring::{OperationId, Received, Ring},
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
    /// What operations started for this task are known by.
    key: usize,
    socket: Rc<OwnedFd>,
    conn: Conn,
    /// Received and not yet consumed; without a buffer while idle.
    input: BytesMut,
    /// Received and not yet asked for.
    inbox: BytesMut,
    /// To be sent next; without a buffer while idle.
    out: Output,
    want: Want,
    /// The class of the read deadline that runs, and when it ends.
    patience: Option<(Awaiting, Option<Instant>)>,
    /// When to give up a peer that takes nothing; set while bytes are being sent.
    stalled: Option<Instant>,
    /// The receive under way.
    receiving: Option<OperationId>,
    /// The send under way, which holds the bytes that are being sent.
    sending: Option<OperationId>,
    /// The end of stream has been received.
    ended: bool,
    /// The socket does not work any more.
    gone: bool,
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
    /// The task waits for one of its operations, or for this instant.
    Waits { until: Option<Instant> },
    /// The connection is over, for this reason if not an orderly one.
    Closed(Option<&'static str>),
}

/// Bytes that may arrive unasked before receiving ends; what is on its way by then comes on top.
const INBOX_MAX: usize = 64 * 1024;
/// What a task may keep of a buffer in which less than that is left.
const KEPT_BYTES: usize = 4 * 1024;
/// How long to wait for the peer's end of stream after ours.
const LINGER: Duration = Duration::from_secs(2);
/// How much to throw away meanwhile.
const LINGER_BYTES: usize = 256 * 1024;

type Reason = Option<&'static str>;

impl Task {
    /// A connection just accepted, which the worker knows as `key`.
    pub(super) fn new(
        socket: OwnedFd,
        peer: Peer,
        (protocol, key): (Protocol, usize),
        lent: &Lent,
    ) -> Self {
        Self {
            key,
            socket: Rc::new(socket),
            conn: Conn::new(protocol, peer, lent.shared.config.clone()),
            input: BytesMut::new(),
            inbox: BytesMut::new(),
            out: Output::default(),
            want: Want::Poll,
            patience: None,
            stalled: None,
            receiving: None,
            sending: None,
            ended: false,
            gone: false,
        }
    }

    pub(super) fn peer(&self) -> &Peer {
        self.conn.peer()
    }

    /// Takes note of what the receive under way came to.
    pub(super) fn handle_received(
        &mut self,
        what: Received,
        last: bool,
        ring: &mut Ring,
        lent: &mut Lent,
    ) {
        if last {
            self.receiving = None;
        }
        match what {
            Received::Chunk(chunk) => {
                borrow(&mut self.inbox, &mut lent.input);
                let before = self.inbox.len();
                ring.take(chunk, &mut self.inbox);
                let count = self.inbox.len() - before;
                Counters::add(&lent.counters.bytes_in, count as u64);
            }
            Received::End => self.ended = true,
            Received::Nothing => {}
            Received::Failed => self.gone = true,
        }
    }

    /// Takes note of what the send under way came to; what is left of it is sent on.
    pub(super) fn handle_sent(
        &mut self,
        mut out: Output,
        sent: io::Result<usize>,
        ring: &mut Ring,
        lent: &mut Lent,
    ) {
        self.sending = None;
        self.stalled = None;
        match sent {
            Ok(count) => {
                Counters::add(&lent.counters.bytes_out, count as u64);
                out.advance(count);
                if out.is_empty() {
                    lent.keep(out);
                } else {
                    self.send(out, ring, lent);
                }
            }
            Err(_) => self.gone = true,
        }
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

    /// Goes on until there is nothing left to do but wait. That is soon: what is produced and not
    /// yet sent is bounded, and so is what has been received and can be consumed.
    pub(super) fn advance(&mut self, ring: &mut Ring, lent: &mut Lent) -> Fate {
        borrow(&mut self.input, &mut lent.input);
        if self.out.is_vacant() {
            std::mem::swap(&mut self.out, &mut lent.out);
        }
        let fate = loop {
            match self.step(ring, lent) {
                Ok(true) => {}
                Ok(false) => {
                    self.flush(ring, lent);
                    self.keep_receiving(ring);
                    break Fate::Waits {
                        until: self.deadline(),
                    };
                }
                Err(reason) => break Fate::Closed(reason),
            }
        };
        give_back(&mut self.inbox, &mut lent.input);
        give_back(&mut self.input, &mut lent.input);
        if self.out.is_empty() {
            lent.keep(std::mem::take(&mut self.out));
        }
        fate
    }

    /// Ends the operations under way, for the connection is over.
    pub(super) fn abandon(&mut self, ring: &mut Ring) {
        let under_way = [self.receiving.take(), self.sending.take()];
        for operation in under_way.into_iter().flatten() {
            ring.abandon(operation);
        }
    }

    /// One step; `false` if there is nothing to do but wait, an error if the connection is over.
    fn step(&mut self, ring: &mut Ring, lent: &Lent) -> Result<bool, Reason> {
        match self.want {
            Want::Poll => {
                if self.conn.watches_input() {
                    self.unpack();
                }
                let action = self
                    .conn
                    .poll(&mut io(&mut self.input, &mut self.out, lent));
                self.obey(action, lent);
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

    /// Sends what there is, unless a send is under way; then that is followed by the next.
    fn flush(&mut self, ring: &mut Ring, lent: &Lent) {
        if self.sending.is_none() && !self.out.is_empty() && !self.gone {
            let out = std::mem::take(&mut self.out);
            self.send(out, ring, lent);
        }
    }

    fn send(&mut self, out: Output, ring: &mut Ring, lent: &Lent) {
        self.sending = Some(ring.send(self.key, &self.socket, out));
        self.stalled = Some(lent.now + lent.shared.config.write_timeout.min(FAR));
    }

    /// Goes on if there is room for more to be sent.
    fn make_room(&mut self, ring: &mut Ring, lent: &Lent) -> Result<bool, Reason> {
        if self.out.is_full() {
            self.flush(ring, lent);
        }
        if self.out.is_full() {
            return self.notice_hangup(lent);
        }
        self.want = Want::Poll;
        Ok(true)
    }

    /// Begins to receive, if that has ended for another reason than the end itself.
    fn keep_receiving(&mut self, ring: &mut Ring) {
        let wanted = !self.ended && !self.gone;
        match self.receiving {
            None if wanted && self.inbox.is_empty() => {
                self.receiving = Some(ring.receive(self.key, &self.socket));
            }
            // Cancelling more than once does no harm, and hardly happens.
            Some(operation) if self.inbox.len() >= INBOX_MAX => ring.cancel(operation),
            _ => {}
        }
    }

    /// Hands over what has been received; `false` if there is nothing.
    fn fill(&mut self, lent: &Lent) -> Result<bool, Reason> {
        if self.unpack() {
            if self
                .patience
                .is_some_and(|(awaiting, _)| awaiting.restarts())
            {
                self.patience = None;
            }
            self.want = Want::Poll;
            return Ok(true);
        }
        if self.ended {
            let action = self
                .conn
                .handle_eof(&mut io(&mut self.input, &mut self.out, lent));
            self.obey(action, lent);
            return Ok(true);
        }
        match self.gone {
            true if self.conn.is_idle() => Err(None),
            true => Err(Some("peer-gone")),
            false => Ok(false),
        }
    }

    /// Moves what has been received to where the connection sees it; whether there was any.
    fn unpack(&mut self) -> bool {
        if self.inbox.is_empty() {
            return false;
        }
        if self.input.is_empty() {
            std::mem::swap(&mut self.input, &mut self.inbox);
        } else {
            self.input.extend_from_slice(&self.inbox);
        }
        self.inbox.clear();
        true
    }

    /// Looks for the peer's leaving while nothing is asked of it.
    fn notice_hangup(&mut self, lent: &Lent) -> Result<bool, Reason> {
        if self.gone {
            return Err(Some("peer-gone"));
        }
        if self.ended
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
        ring: &mut Ring,
        lent: &Lent,
    ) -> Result<bool, Reason> {
        if self.gone {
            let unsent = self.sending.is_some() || !self.out.is_empty();
            return Err(Some("peer-gone").filter(|_| orderly && unsent));
        }
        self.flush(ring, lent);
        if self.sending.is_some() {
            return Ok(false);
        }
        let socket = SockRef::from(&self.socket);
        if !linger || self.ended || socket.shutdown(Shutdown::Write).is_err() {
            return Err(None);
        }
        self.want = Want::Linger {
            deadline: lent.now + LINGER,
            left: LINGER_BYTES,
        };
        Ok(true)
    }

    /// Throws away what the peer still sends, up to its end or a limit.
    fn discard(&mut self, left: usize) -> Result<bool, Reason> {
        let count = self.inbox.len();
        self.inbox.clear();
        if self.ended || self.gone || count >= left {
            return Err(None);
        }
        if let Want::Linger { left, .. } = &mut self.want {
            *left -= count;
        }
        Ok(false)
    }

    /// When the worker has to look at this task again even if nothing completes.
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

// An idle connection is a task and its operation and nothing else; this is what ten thousand cost.
const _: () = assert!(size_of::<Task>() <= 640);
