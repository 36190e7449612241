//! A client's connection that speaks HTTP/2.
//!
//! The `h2` crate knows the protocol. One task drives the connection: it moves bytes, begins a task
//! for each request, and closes the connection. Each stream's task runs one exchange, as a connection
//! of HTTP/1.1 does. The tasks of streams belong to the driver's, so that they end with it.

pub(crate) mod head;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use catamaran_upstream::Culprit;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason as Code, RecvStream};
use http::Request;
use tokio::task::{JoinError, JoinSet};

use crate::client::http2::flood::RESET_FLOOD;
use crate::client::http2::piece::Piece;
use crate::client::http2::session::Session;
use crate::client::http2::stream::H2Stream;
use crate::client::http2::wire::{PREFACE, Wire};
use crate::client::{ClientConnection, linger};
use crate::counters::Reason;
use crate::deadlines::{Deadline, Tick};
use crate::exchange;
use crate::exchange::downstream::{After, Downstream};
use crate::exchange::scene::Scene;
use crate::serve::http2::head::Refusal;
use crate::worker::Worker;

/// Whether what was received may be the beginning of HTTP/2; `None` if more has to be received.
pub(crate) fn begins(input: &[u8]) -> Option<bool> {
    let len = input.len().min(PREFACE.len());
    match input[..len] == PREFACE[..len] {
        true if len < PREFACE.len() => None,
        same => Some(same),
    }
}

/// Serves a client that speaks HTTP/2 until its connection is closed.
pub(crate) async fn serve(worker: Arc<Worker>, client: ClientConnection, deadline: Deadline) {
    let session = Arc::new(Session::new(Arc::clone(&worker), client));
    // Boxed, since an idle connection keeps this future, and its parts would lie in it twice.
    let begun = Box::pin(begin(session, &deadline)).await;
    let Some(mut driver) = begun else {
        return;
    };
    let end = poll_fn(|cx| driver.poll(cx, &deadline)).await;
    // The streams notice. None is aborted: one that left a backend behind waits for it, and one whose
    // response others want receives it to its end. Its client's socket is closed below all the same.
    driver.connection = None;
    let client = driver.session.line().take_client();
    if let Some(mut client) = client
        && end == End::Told
    {
        Box::pin(linger::close(&worker, &mut client, &deadline)).await;
    }
    while let Some(ended) = driver.streams.join_next().await {
        note_panic(&worker, &ended);
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All that the client is told is written. The client may still be sending.
    Told,
    /// Nothing more can be written.
    Cut,
}

/// Exchanges the first frames. `None` if the connection is to be closed.
async fn begin(session: Arc<Session>, deadline: &Deadline) -> Option<Box<Driver>> {
    let mut builder = builder(&session);
    if session.worker.site().routes.has_tunnels() {
        builder.enable_connect_protocol();
    }
    let mut handshake = pin!(builder.handshake(Wire::new(Arc::clone(&session))));
    let end = deadline.now() + session.listener.head_timeout;
    deadline.set(end);
    let begun = poll_fn(|cx| {
        let begun = handshake.as_mut().poll(cx);
        // The settings, as far as the socket takes them; a failure shows in the next write.
        let _ = session.poll_flush(cx);
        match begun {
            Poll::Pending if deadline.now() >= end => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
            Poll::Ready(begun) => Poll::Ready(Some(begun)),
        }
    });
    match begun.await {
        Some(Ok(connection)) => Some(Box::new(Driver {
            connection: Some(connection),
            streams: JoinSet::new(),
            served: 0,
            idle_since: Some(deadline.now()),
            closing: None,
            said_last: None,
            finishing: None,
            session,
        })),
        Some(Err(error)) if error.is_io() => None,
        Some(Err(_)) => {
            session.count("h2-preface");
            None
        }
        None => {
            session.count("head-timeout");
            None
        }
    }
}

/// The settings that a client is told, and the crate's own limits.
fn builder(session: &Session) -> Builder {
    let listener = &session.listener;
    let settings = &listener.http2;
    // The crate's own limits close a connection at once: the front's come first.
    let unseen = session.resets.at_once.saturating_mul(2);
    let (errors, remembered) = if session.is_trusted {
        (
            ERROR_RESETS_MAX.max(listener.keep_alive_requests),
            RESET_STREAMS_TRUSTED_MAX,
        )
    } else {
        (ERROR_RESETS_MAX, RESET_STREAMS_MAX)
    };
    let whole = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let head_max = u32::try_from(listener.limits.head_bytes).unwrap_or(u32::MAX);
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(settings.streams_max)
        .initial_window_size(settings.window)
        .initial_connection_window_size(settings.connection_window)
        .max_frame_size(FRAME_MAX)
        .max_header_list_size(head_max)
        .header_table_size(TABLE_MAX)
        .max_send_buffer_size(SEND_BUFFER_MAX)
        .max_concurrent_reset_streams(remembered)
        .reset_stream_duration(RESET_STREAM_TIME)
        .max_pending_accept_reset_streams(whole(unseen))
        .max_local_error_reset_streams(Some(whole(errors)))
        .data_frame_budget(DATA_FRAME_BUDGET);
    builder
}

/// A request, and how it is answered.
type Accepted = (Request<RecvStream>, SendResponse<Piece>);

/// The task of a connection.
struct Driver {
    /// `None` once it is over.
    connection: Option<Connection<Wire, Piece>>,
    streams: JoinSet<()>,
    /// Requests so far.
    served: u64,
    /// Since when there has been no stream; `None` while there is one.
    idle_since: Option<Tick>,
    /// When the connection is cut, if it has been told to end.
    closing: Option<Tick>,
    /// When the client was told that no further requests are taken.
    said_last: Option<Tick>,
    /// When the connection is ended, if its client has reset too many streams and the others may finish.
    finishing: Option<Tick>,
    session: Arc<Session>,
}

impl Driver {
    /// Drives the connection and its streams; ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>, deadline: &Deadline) -> Poll<End> {
        loop {
            while let Poll::Ready(accepted) = self.poll_accept(cx) {
                match accepted {
                    Some(Ok((request, respond))) => self.accept(request, respond),
                    Some(Err(error)) if error.is_io() => return Poll::Ready(End::Cut),
                    // The crate has told the client, and the session has counted it.
                    Some(Err(error)) => {
                        let remote = self.session.peer.remote;
                        tracing::debug!(%remote, %error, "a connection of HTTP/2 is closed");
                        return Poll::Ready(End::Told);
                    }
                    None => return Poll::Ready(End::Told),
                }
            }
            while let Poll::Ready(Some(ended)) = self.streams.poll_join_next(cx) {
                note_panic(&self.session.worker, &ended);
            }
            // What the connection is told is to be written: it is polled again.
            if !self.decide(deadline.now()) {
                break;
            }
        }
        // All that the crate had to write since the task was woken leaves together.
        if let Poll::Ready(Err(_)) = self.session.poll_flush(cx) {
            return Poll::Ready(End::Cut);
        }
        match self.next_deadline(deadline.now()) {
            Some(next) => {
                deadline.set(next);
                Poll::Pending
            }
            None => Poll::Ready(End::Cut),
        }
    }

    /// Moves bytes; ready with the next request, or when the connection is over.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Accepted, h2::Error>>> {
        match &mut self.connection {
            Some(connection) => connection.poll_accept(cx),
            None => Poll::Ready(None),
        }
    }

    /// Begins the task of a request.
    fn accept(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Piece>) {
        self.served += 1;
        if let Some(reason) = self.refusal() {
            self.session.count(reason);
            self.session.note_own_reset();
            respond.send_reset(Code::REFUSED_STREAM);
            return;
        }
        self.idle_since = None;
        let session = Arc::clone(&self.session);
        // Boxed, since tokio moves a task's future several times until it runs, and when it ends.
        self.streams.spawn(Box::pin(run(session, request, respond)));
    }

    /// Why a further request is not taken, if it is not.
    fn refusal(&self) -> Option<&'static str> {
        // A trusted proxy's requests are those of users who did nothing. Until it knows that the connection
        // ends it may send some, and what others gave up is limited by their backends' connections.
        if self.session.is_trusted {
            return None;
        }
        let max = self.session.listener.http2.streams_max as usize;
        if self.session.flood().is_over() {
            return Some(RESET_FLOOD);
        }
        // The crate counts no stream that was reset; its exchange may go on.
        (self.streams.len() >= max).then_some("h2-streams-max")
    }

    /// Begins the end of the connection if there is a reason for it. `true` if the `h2` crate has something to write.
    fn decide(&mut self, now: Tick) -> bool {
        // The task of a response ends before its last bytes are written.
        if self.streams.is_empty() && self.session.is_written() {
            self.idle_since.get_or_insert(now);
        }
        if self.closing.is_some() {
            return false;
        }
        if let Some(told) = self.judge(now) {
            return told;
        }
        if self.head_deadline().is_some_and(|end| now >= end) {
            self.session.count("head-timeout");
            return self.close(Code::ENHANCE_YOUR_CALM, now);
        }
        let is_over = self
            .idle_since
            .is_some_and(|since| now >= self.idle_end(since));
        let sheds = self
            .idle_since
            .is_some_and(|since| self.session.worker.sheds(since));
        if sheds || is_over && self.said_last.is_some() {
            return self.close(Code::NO_ERROR, now);
        }
        // A request may be on its way: the client is asked first (RFC 9113, section 6.8).
        let is_last = is_over
            || self.served >= self.session.listener.keep_alive_requests
            || self.session.acceptor.drain().has_begun();
        if is_last && self.said_last.is_none() {
            self.said_last = Some(now);
            if let Some(connection) = &mut self.connection {
                connection.graceful_shutdown();
            }
            return true;
        }
        false
    }

    /// Acts on a flood of frames; `None` if nothing is to be done now. A flood ends the connection at once, except too
    /// many resets: then no further request is taken, and the connection ends with its last request, or when
    /// `drain_timeout` is over.
    fn judge(&mut self, now: Tick) -> Option<bool> {
        let (verdict, is_over) = {
            let flood = self.session.flood();
            (flood.verdict(), flood.is_over())
        };
        if let Some(token) = verdict {
            self.session.count(token);
            return Some(self.close(Code::ENHANCE_YOUR_CALM, now));
        }
        if !is_over {
            return None;
        }
        let Some(end) = self.finishing else {
            self.session.count(RESET_FLOOD);
            self.finishing = Some(now + self.session.worker.site().server.drain_timeout);
            self.said_last.get_or_insert(now);
            if let Some(connection) = &mut self.connection {
                connection.graceful_shutdown();
            }
            return Some(true);
        };
        (now >= end).then(|| self.close(Code::ENHANCE_YOUR_CALM, now))
    }

    /// Ends the connection, whatever it carries.
    fn close(&mut self, code: Code, now: Tick) -> bool {
        self.closing = Some(now + CLOSE_TIME);
        self.session.note_closing();
        if let Some(connection) = &mut self.connection {
            connection.abrupt_shutdown(code);
        }
        true
    }

    /// Until when a connection without streams stays open.
    fn idle_end(&self, since: Tick) -> Tick {
        match self.said_last {
            // The client was asked to close it.
            Some(said) => since.max(said) + LAST_TIME,
            None => since + self.session.listener.keep_alive_timeout,
        }
    }

    fn head_deadline(&self) -> Option<Tick> {
        let since = self.session.flood().head_since()?;
        Some(since + self.session.listener.head_timeout)
    }

    /// When to look again. `None` if the connection is to be cut.
    fn next_deadline(&self, now: Tick) -> Option<Tick> {
        let blocked = self.session.blocked_since();
        let write = blocked.map(|since| since + self.session.listener.write_timeout);
        if write.is_some_and(|end| now >= end) {
            self.session.count("write-timeout");
            return None;
        }
        if self.closing.is_some_and(|end| now >= end) {
            return None;
        }
        let idle = self.idle_since.map(|since| self.idle_end(since));
        let finishing = self.finishing.filter(|_| self.closing.is_none());
        let ends = [write, self.closing, self.head_deadline(), idle, finishing];
        let next = ends.into_iter().flatten().min();
        Some(next.unwrap_or(Tick::NEVER))
    }
}

/// Serves one request.
async fn run(session: Arc<Session>, request: Request<RecvStream>, respond: SendResponse<Piece>) {
    let _open = Open::begin(&session);
    let deadline = session.worker.deadlines().join();
    deadline.attach().await;
    let (parts, body) = request.into_parts();
    let ended = body.is_end_stream();
    let mut stream = H2Stream::new(Arc::clone(&session), &parts.method, body, respond);
    let scene = Scene {
        worker: &session.worker,
        listener: &session.listener,
        deadline: &deadline,
        peer: &session.peer,
    };
    let mut down = Downstream::Http2(&mut stream);
    let after = match head::read(parts, ended, &session.listener.limits) {
        Ok(mut head) => {
            if let Downstream::Http2(stream) = &mut down {
                stream.expect(&mut head);
            }
            exchange::serve(scene, &mut down, head).await
        }
        Err(Refusal::Answer(failure)) => {
            Box::pin(exchange::refuse(scene, &mut down, failure)).await
        }
        Err(Refusal::Reset(token)) => {
            session.count(token);
            session.note_own_reset();
            return stream.reset(Code::PROTOCOL_ERROR);
        }
    };
    match after {
        After::Cut => stream.cut_off().await,
        After::Done if !ended => stream.await_end(&deadline).await,
        After::Done | After::Late => {}
    }
    let abandoned = stream.take_abandoned();
    drop(stream);
    if let Some(exchange) = abandoned {
        tokio::select! {
            () = exchange.abandon() => {}
            _ = session.worker.drain().begun() => {}
        }
    }
}

/// A stream counted as open.
struct Open(Arc<Session>);

impl Open {
    fn begin(session: &Arc<Session>) -> Self {
        session.worker.counters().h2_streams().increment();
        Self(Arc::clone(session))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.worker.counters().h2_streams().decrement();
    }
}

/// A panic ends its own stream only. It is counted and logged.
fn note_panic(worker: &Worker, ended: &Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        worker.count(Reason::new(Culprit::Front, "panic"));
        tracing::error!(%error, "a stream's task panicked");
    }
}

/// The largest frame that clients may send; also what every peer may send before it is told.
const FRAME_MAX: u32 = 16 * 1024;

/// The table of fields that a client may refer to.
const TABLE_MAX: u32 = 4096;

/// The most bytes of one response that the crate holds.
const SEND_BUFFER_MAX: usize = 64 * 1024;

/// Streams that were reset and are remembered, so that frames on their way to them are no error.
const RESET_STREAMS_MAX: usize = 128;

/// [`RESET_STREAMS_MAX`] for a trusted proxy, whose connection many users share.
const RESET_STREAMS_TRUSTED_MAX: usize = 1024;

/// How long a stream that was reset is remembered.
const RESET_STREAM_TIME: Duration = Duration::from_secs(5);

/// Malformed requests on one connection, in all; a trusted proxy's may all be.
const ERROR_RESETS_MAX: u64 = 1024;

/// How many small pieces of bodies may wait to be taken, in units of the crate: each piece costs what
/// it is below 256 bytes.
const DATA_FRAME_BUDGET: usize = 512 * 1024;

/// How long the client may take to read the reason for which its connection is closed.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// How long a client without requests may take to close the connection when it was asked to.
const LAST_TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<A, B, C, F>(_: fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    /// Beside the library's buffers an idle connection is made of these two.
    #[test]
    fn an_idle_connection_is_small() {
        let task = size_of_future(serve);
        assert!(task <= 768, "{task} bytes");
        let driver = size_of::<Driver>();
        assert!(driver <= 1472, "{driver} bytes");
    }
}
