//! A client's connection that speaks HTTP/2.
//!
//! One task drives the connection: it moves bytes, begins a task for each request, and closes the connection. Each
//! stream's task runs one exchange, as a connection of HTTP/1.1 does. The tasks of streams belong to the driver's, so
//! that they end with it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use catamaran_http2::{Code, Fault, PREFACE, StreamFault};
use catamaran_message::RequestHead;
use catamaran_upstream::Culprit;
use http::StatusCode;
use tokio::task::coop::poll_proceed;
use tokio::task::{JoinError, JoinSet};

use crate::client::http2::flood::{Flood, RESET_FLOOD};
use crate::client::http2::line::Received;
use crate::client::http2::session::Session;
use crate::client::http2::stream::H2Stream;
use crate::client::{ClientConnection, linger};
use crate::counters::Reason;
use crate::deadlines::{Deadline, Tick};
use crate::exchange;
use crate::exchange::downstream::{After, Downstream};
use crate::exchange::failure::Failure;
use crate::exchange::scene::Scene;
use crate::worker::Worker;

/// Whether what was received may be the beginning of HTTP/2; `None` if more has to be received.
pub(crate) fn begins(input: &[u8]) -> Option<bool> {
    let len = input.len().min(PREFACE.len());
    if input[..len] != PREFACE[..len] {
        Some(false)
    } else if len < PREFACE.len() {
        None
    } else {
        Some(true)
    }
}

/// Serves a client that speaks HTTP/2 until its connection is closed.
pub(crate) async fn serve(worker: Arc<Worker>, client: ClientConnection, deadline: Deadline) {
    let session = Arc::new(Session::new(Arc::clone(&worker), client));
    let mut driver = Box::new(Driver::new(session, deadline.now()));
    let ended = poll_fn(|cx| driver.poll(cx, &deadline)).await;
    // The tasks of streams notice that the client is gone. None is aborted: one may wait for a backend that its client
    // left, or receive a response that others want. The client's socket is closed below all the same.
    let client = driver.session.line().take_client();
    if let Some(mut client) = client
        && ended == End::InOrder
    {
        Box::pin(linger::close(&worker, &mut client, &deadline)).await;
    }
    while let Some(joined) = driver.streams.join_next().await {
        note_panic(&worker, &joined);
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Everything for the client is written. The client may still be sending.
    InOrder,
    /// Nothing more can be written.
    Cut,
}

/// The task of a connection.
struct Driver {
    streams: JoinSet<()>,
    flood: Flood,
    /// The number of requests so far.
    served: u64,
    /// Since when there has been no stream; `None` while there is one.
    idle_since: Option<Tick>,
    /// Since when a part of the connection's preface or of a head has been there without the rest.
    head_since: Option<Tick>,
    /// When the connection is cut, if it has been told to end. Nothing is read any more.
    closing: Option<Tick>,
    /// When the client was told that no further requests are taken.
    said_last: Option<Tick>,
    /// Either side takes no further streams: the connection ends with the last of those that are open.
    is_last: bool,
    /// When the connection is ended, if its client has reset too many streams and the others may finish.
    finishing: Option<Tick>,
    session: Arc<Session>,
}

impl Driver {
    fn new(session: Arc<Session>, now: Tick) -> Self {
        Self {
            streams: JoinSet::new(),
            flood: Flood::new(now, session.resets),
            served: 0,
            idle_since: Some(now),
            head_since: Some(now),
            closing: None,
            said_last: None,
            is_last: false,
            finishing: None,
            session,
        }
    }

    /// Drives the connection and its streams; ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>, deadline: &Deadline) -> Poll<End> {
        self.session.line().watch(cx);
        let now = deadline.now();
        if let Poll::Ready(end) = self.poll_receive(cx, now) {
            return Poll::Ready(end);
        }
        while let Poll::Ready(Some(ended)) = self.streams.poll_join_next(cx) {
            note_panic(&self.session.worker, &ended);
        }
        self.decide(now);
        let session = Arc::clone(&self.session);
        let mut line = session.line();
        // All that the connection's tasks had to write since this one was woken leaves together.
        if let Poll::Ready(Err(_)) = line.poll_flush(cx, now) {
            return Poll::Ready(End::Cut);
        }
        // The task of a response ends before its last bytes are written.
        if self.streams.is_empty() && line.is_idle() {
            self.idle_since.get_or_insert(now);
            line.release();
        }
        let is_over = self.closing.is_some() || self.is_last && line.is_idle();
        if is_over && line.is_written() {
            return Poll::Ready(End::InOrder);
        }
        match self.next_deadline(now, line.blocked_since()) {
            Some(next) => {
                deadline.set(next);
                Poll::Pending
            }
            None => Poll::Ready(End::Cut),
        }
    }

    /// Reads what the client sends, and acts on it. Ready if nothing can be read or written any more.
    fn poll_receive(&mut self, cx: &mut Context<'_>, now: Tick) -> Poll<End> {
        while self.closing.is_none() {
            let mut line = self.session.line();
            let received = line.receive(now);
            self.flood.count(line.take_tally(), now);
            drop(line);
            if let Some(token) = self.flood.verdict() {
                self.session.count(token);
                self.close(Code::ENHANCE_YOUR_CALM, now);
                break;
            }
            match received {
                Ok(Some(received)) => self.act(received, now),
                Ok(None) => {
                    if self.session.line().is_amid_head() {
                        self.head_since.get_or_insert(now);
                    } else {
                        self.head_since = None;
                    }
                    let progress = ready!(poll_proceed(cx));
                    // The lock is not held while its result is looked at.
                    let read = self.session.line().poll_read(cx);
                    match ready!(read) {
                        Ok(1..) => progress.made_progress(),
                        Ok(0) => return Poll::Ready(self.end_by_client(cx, now)),
                        Err(_) => return Poll::Ready(End::Cut),
                    }
                }
                Err(fault) => {
                    self.session.count(fault.token());
                    if fault == Fault::Preface {
                        return Poll::Ready(End::Cut);
                    }
                    let remote = self.session.peer.remote;
                    tracing::debug!(%remote, %fault, "a connection of HTTP/2 is closed");
                    self.close(fault.code(), now);
                }
            }
        }
        Poll::Pending
    }

    /// Ends a connection whose client has closed its sending side: writes what waits, as far as the socket takes it at
    /// once.
    fn end_by_client(&self, cx: &mut Context<'_>, now: Tick) -> End {
        let mut line = self.session.line();
        line.end_streams();
        match line.poll_flush(cx, now) {
            Poll::Ready(Ok(())) => End::InOrder,
            Poll::Ready(Err(_)) | Poll::Pending => End::Cut,
        }
    }

    /// Acts on an event of the connection.
    fn act(&mut self, received: Received, now: Tick) {
        match received {
            Received::Request { stream, head, ends } => {
                self.head_since = None;
                self.accept(stream, head, ends, now);
            }
            Received::Refused(fault) => self.session.count(fault.token()),
            Received::GoAway => self.is_last = true,
            // The client has read that no further requests are taken: none is on its way any more.
            Received::Pong if self.said_last.is_some() && !self.is_last => {
                self.is_last = true;
                self.session.line().go_away(Code::NO_ERROR, true);
            }
            Received::Pong => {}
        }
    }

    /// Begins the task of a request.
    fn accept(
        &mut self,
        stream: u32,
        head: Result<Box<RequestHead>, StreamFault>,
        ends: bool,
        now: Tick,
    ) {
        self.served += 1;
        if let Some(reason) = self.refusal() {
            self.session.count(reason);
            self.flood.reset(now);
            let mut line = self.session.line();
            line.reset(stream, Code::REFUSED_STREAM);
            return line.leave(stream);
        }
        self.idle_since = None;
        let session = Arc::clone(&self.session);
        let down = H2Stream::new(Arc::clone(&session), stream);
        // Boxed, since tokio moves a task's future several times until it runs, and when it ends.
        self.streams.spawn(Box::pin(run(session, down, head, ends)));
    }

    /// The reason why a further request is not taken; `None`: it is taken.
    fn refusal(&self) -> Option<&'static str> {
        // A trusted proxy's requests come from users who did nothing wrong, and it may send some until it knows that
        // the connection ends. Exchanges that go on after a reset are limited by the backends' connections.
        if self.session.is_trusted {
            return None;
        }
        if self.flood.is_over() {
            return Some(RESET_FLOOD);
        }
        // Streams that were reset are not open any more to the codec, but their exchanges may go on.
        if self.streams.len() >= self.session.listener.http2.streams_max as usize {
            return Some("h2-streams-max");
        }
        None
    }

    /// Begins the end of the connection if there is a reason for it.
    fn decide(&mut self, now: Tick) {
        if self.closing.is_some() {
            return;
        }
        // After too many resets no further request is taken. The connection ends with its last request, or when
        // `drain_timeout` is over.
        if self.flood.is_over() && self.finishing.is_none() {
            self.session.count(RESET_FLOOD);
            self.finishing = Some(now + self.session.worker.site().server.drain_timeout);
            self.say_last(now);
        }
        if self.finishing.is_some_and(|end| now >= end) {
            return self.close(Code::ENHANCE_YOUR_CALM, now);
        }
        if self.head_deadline().is_some_and(|end| now >= end) {
            self.session.count("head-timeout");
            return self.close(Code::ENHANCE_YOUR_CALM, now);
        }
        if let Some(since) = self.idle_since {
            let is_idle_too_long = now >= self.idle_end(since);
            let was_asked = self.said_last.is_some();
            if self.session.worker.sheds(since) || is_idle_too_long && was_asked {
                return self.close(Code::NO_ERROR, now);
            }
            // A request may be on its way: the client is asked first (RFC 9113, section 6.8).
            if is_idle_too_long {
                self.say_last(now);
            }
        }
        if self.served >= self.session.listener.keep_alive_requests
            || self.session.acceptor.drain().has_begun()
        {
            self.say_last(now);
        }
    }

    /// Tells the client, once, that no further requests are taken.
    fn say_last(&mut self, now: Tick) {
        if self.said_last.is_none() {
            self.said_last = Some(now);
            self.session.line().go_away(Code::NO_ERROR, false);
        }
    }

    /// Ends the connection, whatever it carries.
    fn close(&mut self, code: Code, now: Tick) {
        self.closing = Some(now + CLOSE_TIME);
        let mut line = self.session.line();
        line.go_away(code, true);
        line.end_streams();
    }

    /// Until when a connection without streams stays open.
    fn idle_end(&self, since: Tick) -> Tick {
        match self.said_last {
            // The client was asked to close it.
            Some(asked_at) => since.max(asked_at) + LAST_TIME,
            None => since + self.session.listener.keep_alive_timeout,
        }
    }

    /// Until when the rest of a head must arrive; `None`: no part of one has.
    fn head_deadline(&self) -> Option<Tick> {
        Some(self.head_since? + self.session.listener.head_timeout)
    }

    /// The time at which the first of the connection's timeouts ends, when [`Self::poll`] must run again;
    /// [`Tick::NEVER`] if none runs. `None` if the connection is to be cut: the client took no bytes for
    /// `write_timeout`, or the time for closing is over.
    fn next_deadline(&self, now: Tick, blocked: Option<Tick>) -> Option<Tick> {
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

/// Serves one request; `ended` if it has no body.
async fn run(
    session: Arc<Session>,
    mut stream: H2Stream,
    head: Result<Box<RequestHead>, StreamFault>,
    ended: bool,
) {
    let _open = session.worker.counters().count_h2_stream();
    let deadline = session.worker.deadlines().join();
    deadline.attach().await;
    let scene = Scene {
        worker: &session.worker,
        listener: &session.listener,
        deadline: &deadline,
        peer: &session.peer,
    };
    let after = match head {
        Ok(mut head) => {
            stream.expect(&mut head);
            exchange::serve(scene, &mut Downstream::Http2(&mut stream), head).await
        }
        Err(fault) => {
            let failure = failure(fault);
            let mut down = Downstream::Http2(&mut stream);
            Box::pin(exchange::refuse(scene, &mut down, failure)).await
        }
    };
    match after {
        After::Cut => stream.cut_off(),
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

/// The answer to a request whose head is refused.
pub(crate) fn failure(fault: StreamFault) -> Failure {
    let status = fault.status().unwrap_or(StatusCode::BAD_REQUEST);
    Failure::new(Culprit::Client, status, fault.token())
}

/// Counts and logs a panic of a stream's task, which ends only that stream.
fn note_panic(worker: &Worker, ended: &Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        worker.count(Reason::new(Culprit::Front, "panic"));
        tracing::error!(%error, "a stream's task panicked");
    }
}

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

    /// Beside the connection's state an idle one is made of these two.
    #[test]
    fn an_idle_connection_is_small() {
        let task = size_of_future(serve);
        assert!(task <= 768, "{task} bytes");
        let driver = size_of::<Driver>();
        assert!(driver <= 256, "{driver} bytes");
    }
}
