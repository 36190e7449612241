//! The pipe between a connection and an application that runs on a thread of a pool or in a task.
//!
//! The request's body goes to the application, the response comes back; each stream buffers up to a
//! fixed limit. Three handles share the memory: the connection has [`ConnEnd`], the application has
//! [`BodyEnd`] and [`ResponseEnd`]. The module uses no socket, clock or thread of its own. An
//! application that has to wait stores a [`Waker`], which wakes a task or unparks a thread. The
//! driver is told through [`Wake`] and then polls the connection.
//!
//! ```text
//!   peer ─► Conn ─ ConnEnd ══ body, at most BODY_MARK ═══► BodyEnd ──┐
//!                     ▲                                              ├ application
//!   peer ◄────────────╘══ head and parts, at most PARTS_MARK ◄═ ResponseEnd
//! ```
//!
//! Each handle may be dropped at any time. When the connection's end is dropped, the application's
//! reads fail, and what it writes is thrown away. When the application drops the response before
//! its end, the client can see that the response was cut. When the application drops the body, the
//! connection reads the rest and throws it away. One mutex guards everything, since both sides
//! change all of it; it is held for short times only.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;
use catamaran_message::Fields;
use catamaran_transport::ByteQueue;
use http::StatusCode;

use crate::handler::BodyLength;

/// How an application tells a driver that a connection has something to do.
pub(crate) trait Wake: fmt::Debug + Send + Sync {
    /// Makes the driver poll the connection with this key soon. Any thread may call it, also for
    /// connections that are gone, and more often than needed.
    fn wake(&self, key: usize);
}

/// A connection to be woken: its driver and its key.
#[derive(Debug)]
pub(crate) struct Wakeup {
    /// The driver to wake.
    pub(crate) driver: Arc<dyn Wake>,
    /// The driver's key for the connection.
    pub(crate) key: usize,
}

/// The most bytes of a request's body that are buffered before the application takes them.
pub(crate) const BODY_MARK: usize = 64 * 1024;
/// The most bytes of a response that are buffered before the connection takes them; a single piece
/// may exceed it.
pub(crate) const PARTS_MARK: usize = 64 * 1024;
/// The number of buffered bytes from which on they are sent without waiting for more. Below it, an
/// application that waited for room is woken.
pub(crate) const PARTS_DUE: usize = PARTS_MARK / 2;

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    /// The status, 200 to 999.
    pub(crate) status: StatusCode,
    /// The header fields, without those for length and framing.
    pub(crate) headers: Fields,
    /// The length of the body, if the application has set it.
    pub(crate) length: BodyLength,
}

/// Why a request's body, or the rest of it, cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request's body cannot be read to its end: {reason}")]
pub struct BodyError {
    reason: &'static str,
}

impl BodyError {
    /// The reason token, as counted and logged.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

/// The error of writing to a pipe whose peer has left or whose response is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClosedPipe;

/// Whether more of a response follows the bytes that the connection took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The response is not complete. With `flush`, the bytes so far must not be held back on their way to the
    /// client.
    Open { flush: bool },
    /// The response is complete.
    Complete,
    /// The application failed for this reason; the response has no more bytes.
    Failed(&'static str),
}

/// The connection's end of the pipe.
#[derive(Debug)]
pub(crate) struct ConnEnd(Arc<Pipe>);

/// The application's end for reading the request's body.
#[derive(Debug)]
pub(crate) struct BodyEnd(Arc<Pipe>);

/// The application's end for writing the response.
#[derive(Debug)]
pub(crate) struct ResponseEnd(Arc<Pipe>);

#[derive(Debug)]
struct Pipe {
    wakeup: Wakeup,
    state: Mutex<PipeState>,
}

#[derive(Debug)]
struct PipeState {
    inflow: Inflow,
    body: ByteQueue,
    head: Option<Head>,
    parts: ByteQueue,
    /// Whether the connection may take the bytes of the response that the application has written so far. They
    /// are kept back until then, so that a small response leaves in one write even if something else wakes the
    /// connection.
    due: bool,
    flush: bool,
    outcome: Option<Outcome>,
    /// Whether the connection has dropped its end of the pipe.
    gone: bool,
    /// Whether the driver has been woken and has not polled yet.
    woken: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// The waker to wake when the connection drops its end.
    witness: Option<Waker>,
}

/// The state of the request's body on its way to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inflow {
    /// The application has not asked for the body.
    Unasked,
    /// The application reads the body, and more is to come.
    Open,
    /// The whole rest of the body is queued.
    Ended,
    Failed(BodyError),
    /// The application will not read any more of the body.
    Unwanted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Complete,
    Failed(&'static str),
}

/// Creates the pipe of one exchange; `body` is the length of the request's body.
pub(crate) fn pipe(wakeup: Wakeup, body: BodyLength) -> (ConnEnd, BodyEnd, ResponseEnd) {
    let state = PipeState {
        inflow: match body {
            BodyLength::Known(0) => Inflow::Ended,
            _ => Inflow::Unasked,
        },
        body: ByteQueue::default(),
        head: None,
        parts: ByteQueue::default(),
        due: false,
        flush: false,
        outcome: None,
        gone: false,
        woken: false,
        reader: None,
        writer: None,
        witness: None,
    };
    let pipe = Arc::new(Pipe {
        wakeup,
        state: Mutex::new(state),
    });
    (
        ConnEnd(Arc::clone(&pipe)),
        BodyEnd(Arc::clone(&pipe)),
        ResponseEnd(pipe),
    )
}

impl ConnEnd {
    /// Whether to receive more of the body. The connection calls this first each time it polls the
    /// pipe.
    pub(crate) fn wants_body(&self) -> bool {
        let mut state = self.0.lock();
        state.woken = false;
        state.inflow == Inflow::Open && state.body.len() < BODY_MARK
    }

    /// Whether the application waits for more of the request's body.
    pub(crate) fn awaits_body(&self) -> bool {
        self.0.lock().reader.is_some()
    }

    /// Whether the application has begun to read the body and has not dropped it.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self.0.lock().inflow, Inflow::Open | Inflow::Ended)
    }

    /// Passes a piece of the body to the application.
    pub(crate) fn push_body(&self, data: Bytes) {
        let mut state = self.0.lock();
        if state.inflow == Inflow::Open {
            state.body.push(data);
            wake(state.reader.take(), state);
        }
    }

    /// Tells the application that the body is complete.
    pub(crate) fn end_body(&self) {
        self.end_inflow(Inflow::Ended);
    }

    /// Gives up the exchange: once the application has read the pieces that are queued, its reads fail with this
    /// reason. Does nothing if the body is complete, or is not read any more.
    pub(crate) fn fail(&self, reason: &'static str) {
        self.end_inflow(Inflow::Failed(BodyError { reason }));
    }

    /// Takes the response's head; `None` if it is not written yet or must not be sent yet.
    pub(crate) fn take_head(&self) -> Option<Head> {
        let mut state = self.0.lock();
        if state.due { state.head.take() } else { None }
    }

    /// Lets `take_parts` take as much of the response's body as it can, and returns what is to be
    /// expected next.
    pub(crate) fn send(&self, take_parts: impl FnOnce(&mut ByteQueue)) -> Progress {
        let mut state = self.0.lock();
        // A head written since [`take_head`](Self::take_head) has to be sent first; its writer has woken the driver.
        if !state.due || state.head.is_some() {
            return Progress::Open { flush: false };
        }
        take_parts(&mut state.parts);
        let progress = state.progress();
        if state.parts.len() < PARTS_DUE {
            wake(state.writer.take(), state);
        }
        progress
    }

    /// Ends the body's flow to the application in the state `inflow`, unless it has ended already.
    fn end_inflow(&self, inflow: Inflow) {
        let mut state = self.0.lock();
        if matches!(state.inflow, Inflow::Unasked | Inflow::Open) {
            state.inflow = inflow;
            wake(state.reader.take(), state);
        }
    }
}

impl PipeState {
    /// What follows the bytes that the connection has taken.
    fn progress(&mut self) -> Progress {
        if !self.parts.is_empty() {
            return Progress::Open { flush: false };
        }
        match self.outcome {
            None => {
                // Bytes that are written from here on wait until they are due.
                self.due = false;
                let flush = std::mem::take(&mut self.flush);
                Progress::Open { flush }
            }
            Some(Outcome::Complete) => Progress::Complete,
            Some(Outcome::Failed(reason)) => Progress::Failed(reason),
        }
    }
}

impl Drop for ConnEnd {
    /// Makes the application's reads fail, drops what it has written, and wakes it.
    fn drop(&mut self) {
        self.fail("exchange-over");
        let mut state = self.0.lock();
        state.gone = true;
        state.parts.clear();
        let witness = state.witness.take();
        wake(state.writer.take(), state);
        if let Some(witness) = witness {
            witness.wake();
        }
    }
}

impl BodyEnd {
    /// The next piece of the body; `None` at its end. If there is none yet, stores `waker`, and
    /// sends what has been added to the response. The first call sends 100 (Continue) to a client
    /// that waits for it.
    pub(crate) fn poll_read(&self, waker: &Waker) -> Poll<Option<Result<Bytes, BodyError>>> {
        let mut state = self.0.lock();
        let was_full = state.body.len() >= BODY_MARK;
        if let Some(piece) = state.body.pop(usize::MAX) {
            // The connection stopped receiving at the mark, so it must be told that there is room again.
            if was_full && state.body.len() < BODY_MARK && state.inflow == Inflow::Open {
                self.0.ring(state);
            }
            return Poll::Ready(Some(Ok(piece)));
        }
        match state.inflow {
            Inflow::Ended | Inflow::Unwanted => Poll::Ready(None),
            Inflow::Failed(error) => Poll::Ready(Some(Err(error))),
            before @ (Inflow::Unasked | Inflow::Open) => {
                state.reader = Some(waker.clone());
                state.inflow = Inflow::Open;
                // The peer may want to see what has been answered before it sends more.
                let has_news = !state.due && !state.parts.is_empty();
                state.due |= has_news;
                if has_news || before == Inflow::Unasked {
                    self.0.ring(state);
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for BodyEnd {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.reader = None;
        state.body.clear();
        // A body that has ended needs no reading; of any other the connection throws the rest away.
        if state.inflow != Inflow::Ended {
            state.inflow = Inflow::Unwanted;
        }
    }
}

impl ResponseEnd {
    /// Sets the head, which is sent with the first bytes of the body. Until then another one
    /// replaces it.
    pub(crate) fn set_head(&self, head: Head) {
        self.0.lock().head = Some(head);
    }

    /// Adds a piece of the body. To respect the bound, ask [`poll_room`](Self::poll_room)
    /// first.
    ///
    /// # Errors
    /// [`ClosedPipe`]; the piece is dropped.
    pub(crate) fn push(&self, data: Bytes) -> Result<(), ClosedPipe> {
        self.append(|parts| parts.push(data))
    }

    /// Adds a copy of as much of `data` as there is room for, and says how much that is.
    ///
    /// # Errors
    /// [`ClosedPipe`]; nothing was added.
    pub(crate) fn copy(&self, data: &[u8]) -> Result<usize, ClosedPipe> {
        let mut count = 0;
        self.append(|parts| {
            count = data.len().min(PARTS_MARK.saturating_sub(parts.len()));
            parts.tail().extend_from_slice(&data[..count]);
        })?;
        Ok(count)
    }

    /// Ready if more may be added to the response. If not, `waker` is woken when there is room.
    pub(crate) fn poll_room(&self, waker: &Waker) -> Poll<Result<(), ClosedPipe>> {
        let mut state = self.0.lock();
        if state.gone {
            return Poll::Ready(Err(ClosedPipe));
        }
        if state.parts.len() < PARTS_MARK {
            return Poll::Ready(Ok(()));
        }
        state.writer = Some(waker.clone());
        Poll::Pending
    }

    /// Ready if the connection has given up the exchange. If not, `waker` is woken when it does.
    pub(crate) fn poll_gone(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.0.lock();
        if state.gone {
            return Poll::Ready(());
        }
        let kept = state.witness.as_ref();
        if kept.is_none_or(|kept| !kept.will_wake(waker)) {
            state.witness = Some(waker.clone());
        }
        Poll::Pending
    }

    /// Sends everything added so far, and asks a front not to hold it back.
    ///
    /// # Errors
    /// [`ClosedPipe`] if the peer has left.
    pub(crate) fn flush(&self) -> Result<(), ClosedPipe> {
        let mut state = self.0.lock();
        if state.gone {
            return Err(ClosedPipe);
        }
        state.flush = true;
        self.0.release(state);
        Ok(())
    }

    /// Completes the response. If the connection has taken no byte of it (nothing was `due`), all of it is here, and
    /// its length is announced.
    pub(crate) fn end(self) {
        let mut state = self.0.lock();
        let is_unsent = !state.due;
        let length = state.parts.len() as u64;
        if is_unsent
            && let Some(head) = &mut state.head
            && head.length == BodyLength::Unknown
        {
            head.length = BodyLength::Known(length);
        }
        self.0.finish(state, Outcome::Complete);
    }

    /// Fails the response: the client gets 500 if nothing was sent, else the response is cut.
    pub(crate) fn fail(self, reason: &'static str) {
        self.0.finish(self.0.lock(), Outcome::Failed(reason));
    }

    /// Lets `add` add to the response, and wakes the driver if enough bytes wait.
    fn append(&self, add: impl FnOnce(&mut ByteQueue)) -> Result<(), ClosedPipe> {
        let mut state = self.0.lock();
        if state.gone {
            return Err(ClosedPipe);
        }
        add(&mut state.parts);
        if state.parts.len() >= PARTS_DUE {
            self.0.release(state);
        }
        Ok(())
    }
}

impl Drop for ResponseEnd {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() {
            "handler-panic"
        } else {
            "handler-gave-up"
        };
        // Without effect after `end` and `fail`, which set the outcome.
        self.0.finish(self.0.lock(), Outcome::Failed(reason));
    }
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        // Nothing in here panics half-way; what an application does runs outside the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the driver, unless it has been woken since it last polled.
    fn ring(&self, mut state: MutexGuard<'_, PipeState>) {
        let was_woken = std::mem::replace(&mut state.woken, true);
        drop(state);
        if !was_woken {
            self.wakeup.driver.wake(self.wakeup.key);
        }
    }

    /// Lets the connection take the bytes of the response that are written so far, and wakes its driver.
    fn release(&self, mut state: MutexGuard<'_, PipeState>) {
        state.due = true;
        self.ring(state);
    }

    /// Sets how the response ends, unless that is set already, and wakes the driver.
    fn finish(&self, mut state: MutexGuard<'_, PipeState>, outcome: Outcome) {
        if state.outcome.is_some() {
            return;
        }
        state.outcome = Some(outcome);
        state.writer = None;
        state.witness = None;
        if matches!(outcome, Outcome::Failed(_)) {
            // What the connection has not taken is not sent: it answers with 500, or cuts the response.
            state.head = None;
            state.parts.clear();
        }
        self.release(state);
    }
}

/// Unlocks, then wakes: a waker may run any code.
fn wake(waker: Option<Waker>, state: MutexGuard<'_, PipeState>) {
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
