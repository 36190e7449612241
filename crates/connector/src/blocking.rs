//! Applications that may block: a request, a reader and a writer, on a thread of their own.
//!
//! [`Wait`] is what a thread does while the peer is slow: a thread of the executor sleeps until its
//! pipe changes; a driver that runs the handler on the connection's own thread moves the connection's
//! bytes meanwhile. For a handler both are alike.

use std::io::{self, BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use catamaran_message::Fields;
use http::StatusCode;

use crate::handler::{BodyLength, Request};
use crate::io::{FAR, now};
use crate::pipe::{BodyEnd, ClosedPipe, Head, ResponseEnd};

/// A handler that may block: on its reader, its writer, or anything else.
///
/// Several threads may call it at the same time.
pub trait BlockingHandler: Send + Sync + 'static {
    /// Answers one request. The response is complete when this returns `Ok`. An error, a panic, or a
    /// response that was not begun is answered with 500; a response that was partly sent is cut.
    ///
    /// # Errors
    /// Whatever keeps the response from being complete; those of `body` and of the writer may be
    /// passed on as they are. They are logged, and counted as `handler-error`.
    fn handle(
        &self,
        request: &Request,
        body: &mut BodyReader<'_>,
        responder: Responder<'_>,
    ) -> io::Result<()>;
}

impl<F> BlockingHandler for F
where
    F: Fn(&Request, &mut BodyReader<'_>, Responder<'_>) -> io::Result<()> + Send + Sync + 'static,
{
    fn handle(
        &self,
        request: &Request,
        body: &mut BodyReader<'_>,
        responder: Responder<'_>,
    ) -> io::Result<()> {
        self(request, body, responder)
    }
}

/// Reads the request's body up to its end. The client is asked for the body only at the first read.
///
/// A read fails, with a [`BodyError`](crate::BodyError) inside, if the peer leaves, if it sends
/// nothing for longer than the connection timeout, or if its bytes are not a valid body.
pub struct BodyReader<'a> {
    end: &'a BodyEnd,
    wait: &'a dyn Wait,
    piece: Bytes,
}

/// Begins the response to a request: sets header fields and the length, then [`begin`](Self::begin)s.
pub struct Responder<'a> {
    end: &'a ResponseEnd,
    wait: &'a dyn Wait,
    headers: Fields,
    length: BodyLength,
}

/// Writes the response's body.
///
/// Writes are buffered; [`flush`](Write::flush) sends them at once. A response that ends before
/// anything was sent gets its length announced. Writing waits while the peer takes nothing, and fails
/// with [`BrokenPipe`](io::ErrorKind::BrokenPipe) when it has left or the response cannot have more
/// body.
pub struct ResponseWriter<'a> {
    end: &'a ResponseEnd,
    wait: &'a dyn Wait,
}

/// A way in which a thread waits for a change of its pipe.
pub(crate) trait Wait {
    /// The waker that the pipe wakes at a change.
    fn waker(&self) -> &Waker;

    /// Waits until the pipe may have changed: until the waker was woken after the last return, or
    /// this thread did something that may have changed it.
    fn wait(&self);

    /// As [`Self::wait`], but returns at `until` at the latest.
    fn wait_until(&self, until: Instant);

    /// Tells that something was added to the pipe. A driver on this thread may send it; the thread
    /// does not sleep.
    fn nudge(&self) {}
}

/// Sleeps until the waker is woken: the [`Wait`] of a thread of the executor.
pub(crate) struct Sleep {
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<bool>,
    ring: Condvar,
}

/// Calls `handler` for one request on this thread, and ends the response.
pub(crate) fn run(
    handler: &dyn BlockingHandler,
    request: &Request,
    body: BodyEnd,
    response: ResponseEnd,
    wait: &dyn Wait,
) {
    if is_gone(&response) {
        // The peer left while the request waited for a thread.
        return;
    }
    let mut reader = BodyReader {
        end: &body,
        wait,
        piece: Bytes::new(),
    };
    let responder = Responder {
        end: &response,
        wait,
        headers: Fields::new(),
        length: BodyLength::Unknown,
    };
    // Unwind safety is up to the handler: it takes `&self`, so a panic leaves only the handler's own state as it was.
    let handled = catch_unwind(AssertUnwindSafe(|| {
        handler.handle(request, &mut reader, responder)
    }));
    match handled {
        Ok(Ok(())) => response.end(),
        // A handler is expected to fail if its client has left.
        Ok(Err(error)) if is_gone(&response) => {
            tracing::debug!(%error, "an application gave up a request whose client has left");
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "an application failed");
            response.fail("handler-error");
        }
        Err(_) => response.fail("handler-panic"),
    }
}

fn is_gone(response: &ResponseEnd) -> bool {
    response.poll_gone(Waker::noop()).is_ready()
}

impl BodyReader<'_> {
    /// The next piece of the body as it came, without copying; `None` at its end.
    ///
    /// # Errors
    /// Those of reading; see [`BodyReader`].
    pub fn read_bytes(&mut self) -> io::Result<Option<Bytes>> {
        if self.fill()? {
            Ok(Some(std::mem::take(&mut self.piece)))
        } else {
            Ok(None)
        }
    }

    /// Waits until `piece` has bytes; `false` at the end of the body.
    fn fill(&mut self) -> io::Result<bool> {
        while self.piece.is_empty() {
            match self.end.poll_read(self.wait.waker()) {
                Poll::Ready(Some(piece)) => self.piece = piece.map_err(io::Error::other)?,
                Poll::Ready(None) => return Ok(false),
                Poll::Pending => self.wait.wait(),
            }
        }
        Ok(true)
    }
}

impl Read for BodyReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        let count = self.piece.len().min(buffer.len());
        self.piece.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

impl BufRead for BodyReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fill()?;
        Ok(&self.piece)
    }

    fn consume(&mut self, count: usize) {
        self.piece.advance(count);
    }
}

impl<'a> Responder<'a> {
    /// The response's header fields. Fields for length and framing are ignored: the connector writes
    /// its own.
    pub fn headers_mut(&mut self) -> &mut Fields {
        &mut self.headers
    }

    /// Announces the length of the body in bytes. If the writer is not given exactly that many, the
    /// response is cut.
    pub fn set_length(&mut self, length: u64) {
        self.set_body_length(BodyLength::Known(length));
    }

    pub(crate) fn set_body_length(&mut self, length: BodyLength) {
        self.length = length;
    }

    /// Sleeps for `pause`, or fails early once the peer has left.
    pub(crate) fn hold(&self, pause: Duration) -> io::Result<()> {
        hold(self.end, self.wait, pause)
    }

    /// Sets the response's status and head, and returns the writer for its body. Nothing is sent yet.
    #[must_use]
    pub fn begin(self, status: StatusCode) -> ResponseWriter<'a> {
        self.end.set_head(Head {
            status,
            headers: self.headers,
            length: self.length,
        });
        ResponseWriter {
            end: self.end,
            wait: self.wait,
        }
    }
}

impl ResponseWriter<'_> {
    /// Writes all of `data`, without copying it if it is large.
    ///
    /// # Errors
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe), as for other writes.
    pub fn write_bytes(&mut self, data: Bytes) -> io::Result<()> {
        self.wait_for_room()?;
        self.end.push(data).map_err(broken)?;
        self.wait.nudge();
        Ok(())
    }

    /// Sleeps for `pause`, or fails early once the peer has left.
    pub(crate) fn hold(&self, pause: Duration) -> io::Result<()> {
        hold(self.end, self.wait, pause)
    }

    /// Waits until more bytes may be added to the response; fails if the peer has left.
    fn wait_for_room(&self) -> io::Result<()> {
        loop {
            match self.end.poll_room(self.wait.waker()) {
                Poll::Ready(room) => return room.map_err(broken),
                Poll::Pending => self.wait.wait(),
            }
        }
    }
}

impl Write for ResponseWriter<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.wait_for_room()?;
        let count = self.end.copy(data).map_err(broken)?;
        self.wait.nudge();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end.flush().map_err(broken)?;
        self.wait.nudge();
        Ok(())
    }
}

/// Sleeps for `pause`, or fails early once the peer has left.
fn hold(end: &ResponseEnd, wait: &dyn Wait, pause: Duration) -> io::Result<()> {
    let until = now() + pause.min(FAR);
    while until > now() {
        if end.poll_gone(wait.waker()).is_ready() {
            return Err(broken(ClosedPipe));
        }
        wait.wait_until(until);
    }
    Ok(())
}

fn broken(ClosedPipe: ClosedPipe) -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl Sleep {
    pub(crate) fn new() -> Self {
        let bell = Arc::new(Bell::default());
        let waker = Arc::clone(&bell).into();
        Self { bell, waker }
    }
}

impl Wait for Sleep {
    fn waker(&self) -> &Waker {
        &self.waker
    }

    fn wait(&self) {
        let woken = self.bell.ring.wait_while(self.bell.lock(), |rung| !*rung);
        *woken.unwrap_or_else(PoisonError::into_inner) = false;
    }

    fn wait_until(&self, until: Instant) {
        let limit = until.saturating_duration_since(now());
        let ring = &self.bell.ring;
        let woken = ring.wait_timeout_while(self.bell.lock(), limit, |rung| !*rung);
        *woken.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, bool> {
        // A poisoned flag is still a valid flag.
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.lock() = true;
        self.ring.notify_one();
    }
}

impl std::fmt::Debug for BodyReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyReader").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Responder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder")
            .field("headers", &self.headers)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ResponseWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseWriter").finish_non_exhaustive()
    }
}
