//! HTTP/2 on a connection, polled by hand: no task, no runtime.
//!
//! The crate `h2` has the protocol. It wants a socket that wakes its reader and a task for the
//! connection; here the worker's poll says when the socket has something to say, and [`Http2::turn`]
//! then advances the connection and those streams that it has woken. What came is told as [`Event`]s.
//! Nothing of a body is kept: its bytes are counted and its window is opened again at once.

mod wire;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::{io, mem};

use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{Request, response};
use slab::Slab;

use self::wire::{Traffic, Wire};
use crate::report::FailureKind;
use crate::stream::Stream;

/// A connection and its streams.
pub(crate) struct Http2 {
    state: StreamState,
    streams: Slab<Exchange>,
    /// Keys of streams that may have something new.
    woken: Arc<Mutex<Vec<usize>>>,
    /// The waker of each key that was ever in use.
    wakers: Vec<Waker>,
    traffic: Arc<Traffic>,
    /// Why the preface could not be written.
    failed: Option<StreamFailure>,
}

enum StreamState {
    /// The preface is being written.
    Beginning(Pin<Box<Handshake>>),
    Open {
        requests: SendRequest<Bytes>,
        connection: Box<Connection<Wire, Bytes>>,
        /// The server takes no more requests: it sent GOAWAY.
        is_leaving: bool,
    },
    Ended,
}

type Handshake =
    dyn Future<Output = Result<(SendRequest<Bytes>, Connection<Wire, Bytes>), h2::Error>> + Send;

/// A request and its response.
struct Exchange {
    /// Kept, since a stream whose handles are gone is reset.
    _request: SendStream<Bytes>,
    answer: Answer,
}

enum Answer {
    Awaited(ResponseFuture),
    Begun(RecvStream),
}

/// An event on the stream of a key.
#[derive(Debug)]
pub(crate) enum Event {
    /// The head of the answer.
    Head {
        key: usize,
        head: Box<response::Parts>,
        /// The head announced the body's length, or that there is no body.
        has_length: bool,
    },
    /// Bytes of the body.
    Body { key: usize, data: Bytes },
    /// The answer is complete; the key is free.
    End { key: usize },
    /// The stream ended before its answer was complete; the key is free.
    Broken { key: usize, why: StreamFailure },
}

/// Why a stream, or the connection, ended before its time.
#[derive(Debug)]
pub(crate) enum StreamFailure {
    /// The server says that it has not looked at the request (RFC 9113, section 8.7).
    Unprocessed,
    /// The server closed the connection, or said that it does.
    Closed,
    /// Anything else, with the error where the system has one.
    Failed(FailureKind, Option<io::Error>),
}

/// The stream that a waker belongs to.
struct StreamWaker {
    key: usize,
    woken: Arc<Mutex<Vec<usize>>>,
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Never contended: all of a connection is polled by one thread.
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.push(self.key);
    }
}

impl Http2 {
    /// Begins on a stream that is connected and on which, if there is TLS, HTTP/2 was agreed on.
    pub(crate) fn begin(stream: Stream) -> Self {
        let traffic = Arc::<Traffic>::default();
        let wire = Wire::new(stream, Arc::clone(&traffic));
        let handshake = Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADER_LIST_MAX)
            .handshake(wire);
        let mut http2 = Self {
            state: StreamState::Beginning(Box::pin(handshake)),
            streams: Slab::new(),
            woken: Arc::default(),
            wakers: Vec::new(),
            traffic,
            failed: None,
        };
        // The first requests go out with the preface. If it fails, the first turn tells.
        http2.failed = http2.poll_handshake();
        http2
    }

    /// The streams that the server allows at once; 0: no request can be sent, now or any more.
    pub(crate) fn streams_max(&mut self) -> usize {
        let StreamState::Open {
            requests,
            connection,
            is_leaving,
        } = &mut self.state
        else {
            return 0;
        };
        let mut context = Context::from_waker(Waker::noop());
        match requests.poll_ready(&mut context) {
            _ if *is_leaving => 0,
            Poll::Ready(Ok(())) => connection.max_concurrent_send_streams(),
            Poll::Ready(Err(_)) => {
                *is_leaving = true;
                0
            }
            Poll::Pending => 0,
        }
    }

    /// Whether no further request will be sent on this connection, because the server wants none.
    pub(crate) fn is_leaving(&self) -> bool {
        match self.state {
            StreamState::Open { is_leaving, .. } => is_leaving,
            StreamState::Beginning(_) => false,
            StreamState::Ended => true,
        }
    }

    /// Whether the preface is not written yet.
    pub(crate) fn is_beginning(&self) -> bool {
        matches!(self.state, StreamState::Beginning(_))
    }

    /// Sends a request on a stream of its own; gives the stream's key. `None`: the server takes no
    /// more.
    pub(crate) fn send(&mut self, head: Request<()>, body: &Bytes) -> Option<usize> {
        let StreamState::Open {
            requests,
            is_leaving,
            ..
        } = &mut self.state
        else {
            return None;
        };
        let Ok((answer, mut request)) = requests.send_request(head, body.is_empty()) else {
            *is_leaving = true;
            return None;
        };
        if !body.is_empty() {
            // It goes out as the windows allow. If the stream is gone already, the answer says why.
            let _ = request.send_data(body.clone(), true);
        }
        let entry = self.streams.vacant_entry();
        let key = entry.key();
        entry.insert(Exchange {
            _request: request,
            answer: Answer::Awaited(answer),
        });
        while self.wakers.len() <= key {
            let (key, woken) = (self.wakers.len(), Arc::clone(&self.woken));
            self.wakers
                .push(Waker::from(Arc::new(StreamWaker { key, woken })));
        }
        // Its first poll is what makes it known to the waker.
        self.wakers[key].wake_by_ref();
        Some(key)
    }

    /// Resets a stream: the server is told to stop.
    pub(crate) fn reset(&mut self, key: usize) {
        self.streams.try_remove(key);
    }

    /// Reads, writes and advances whatever can be; appends to `events` what came. The connection's
    /// end is the result: then every stream has had its end among the events.
    pub(crate) fn turn(&mut self, events: &mut Vec<Event>) -> Option<StreamFailure> {
        loop {
            let ended = self.poll_connection();
            let is_quiet = !self.poll_streams(events);
            if let Some(why) = ended {
                self.state = StreamState::Ended;
                self.drain(events);
                return Some(why);
            }
            if is_quiet {
                return None;
            }
        }
    }

    /// Bytes received and sent since the last call.
    pub(crate) fn take_traffic(&self) -> (u64, u64) {
        self.traffic.take()
    }

    fn poll_connection(&mut self) -> Option<StreamFailure> {
        if let Some(why) = self.failed.take().or_else(|| self.poll_handshake()) {
            return Some(why);
        }
        let mut context = Context::from_waker(Waker::noop());
        let connection = match &mut self.state {
            StreamState::Open { connection, .. } => connection,
            StreamState::Beginning(_) => return None,
            StreamState::Ended => return Some(StreamFailure::Closed),
        };
        match Pin::new(&mut **connection).poll(&mut context) {
            Poll::Pending => None,
            Poll::Ready(Ok(())) => Some(StreamFailure::Closed),
            Poll::Ready(Err(error)) => Some(why(&error, false)),
        }
    }

    /// Writes the preface, if that is not done; why it cannot be.
    fn poll_handshake(&mut self) -> Option<StreamFailure> {
        let StreamState::Beginning(handshake) = &mut self.state else {
            return None;
        };
        let mut context = Context::from_waker(Waker::noop());
        match handshake.as_mut().poll(&mut context) {
            Poll::Pending => None,
            Poll::Ready(Err(error)) => Some(why(&error, false)),
            Poll::Ready(Ok((requests, connection))) => {
                let connection = Box::new(connection);
                self.state = StreamState::Open {
                    requests,
                    connection,
                    is_leaving: false,
                };
                None
            }
        }
    }

    /// Polls those streams that were woken; whether there were any.
    fn poll_streams(&mut self, events: &mut Vec<Event>) -> bool {
        let lock = || self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut woken = mem::take(&mut *lock());
        let were_any = !woken.is_empty();
        for key in woken.drain(..) {
            // One that has ended may have been woken before, or the key is another's now.
            if let Some(exchange) = self.streams.get_mut(key)
                && exchange.advance(key, &self.wakers[key], events)
            {
                self.streams.remove(key);
            }
        }
        let mut kept = lock();
        if kept.is_empty() {
            // Its memory serves again.
            *kept = woken;
        }
        were_any
    }

    /// The connection has ended, and all streams with it.
    fn drain(&mut self, events: &mut Vec<Event>) {
        for (key, mut exchange) in mem::take(&mut self.streams) {
            if !exchange.advance(key, Waker::noop(), events) {
                let why = StreamFailure::Closed;
                events.push(Event::Broken { key, why });
            }
        }
    }
}

impl Event {
    /// The bytes of the body in this event; 0 of other events.
    pub(crate) fn body_bytes(&self) -> u64 {
        match self {
            Self::Body { data, .. } => data.len() as u64,
            _ => 0,
        }
    }
}

impl std::fmt::Debug for Http2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let streams = self.streams.len();
        f.debug_struct("Http2")
            .field("streams", &streams)
            .finish_non_exhaustive()
    }
}

impl Exchange {
    /// Moves what has come on this stream to `events`; returns whether the stream has ended.
    fn advance(&mut self, key: usize, waker: &Waker, events: &mut Vec<Event>) -> bool {
        let mut context = Context::from_waker(waker);
        if let Answer::Awaited(answer) = &mut self.answer {
            match Pin::new(answer).poll(&mut context) {
                Poll::Pending => return false,
                Poll::Ready(Err(error)) => {
                    let why = why(&error, false);
                    events.push(Event::Broken { key, why });
                    return true;
                }
                Poll::Ready(Ok(response)) => {
                    let (head, body) = response.into_parts();
                    let has_field = head.headers.contains_key(http::header::CONTENT_LENGTH);
                    let has_length = has_field || body.is_end_stream();
                    let head = Box::new(head);
                    events.push(Event::Head {
                        key,
                        head,
                        has_length,
                    });
                    self.answer = Answer::Begun(body);
                }
            }
        }
        let Answer::Begun(body) = &mut self.answer else {
            return false;
        };
        loop {
            match body.poll_data(&mut context) {
                Poll::Pending => return false,
                Poll::Ready(None) => {
                    events.push(Event::End { key });
                    return true;
                }
                Poll::Ready(Some(Ok(data))) => {
                    // It fails for a stream that has ended, whose window matters no more.
                    let _ = body.flow_control().release_capacity(data.len());
                    events.push(Event::Body { key, data });
                }
                Poll::Ready(Some(Err(error))) => {
                    let why = why(&error, true);
                    events.push(Event::Broken { key, why });
                    return true;
                }
            }
        }
    }
}

/// The failure that an error of `h2` means. `has_head`: the answer had begun.
fn why(error: &h2::Error, has_head: bool) -> StreamFailure {
    let is_no_error = error.reason() == Some(Reason::NO_ERROR);
    if error.is_remote() && error.is_go_away() {
        return if is_no_error && !has_head {
            StreamFailure::Unprocessed
        } else {
            StreamFailure::Closed
        };
    }
    if error.is_remote() {
        return match error.reason() {
            Some(Reason::REFUSED_STREAM) if !has_head => StreamFailure::Unprocessed,
            _ => StreamFailure::Failed(FailureKind::Reset, None),
        };
    }
    match error.get_io().map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionReset) => StreamFailure::Failed(FailureKind::Reset, None),
        Some(io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof) => StreamFailure::Closed,
        Some(kind) => {
            let io = io::Error::new(kind, error.to_string());
            let kind = crate::stream::receive_failure(&io);
            StreamFailure::Failed(kind, Some(io))
        }
        // What the server sent breaks the protocol.
        None if has_head => StreamFailure::Failed(FailureKind::BadBody, None),
        None => StreamFailure::Failed(FailureKind::BadHead, None),
    }
}

/// Bytes of a body that a server may send before it hears that they were taken.
const STREAM_WINDOW: u32 = 1 << 20;

/// Bytes of bodies that a server may send on all streams of a connection before it hears that they
/// were taken.
const CONNECTION_WINDOW: u32 = 1 << 24;

/// The longest head that is taken, as HTTP/2 counts it (RFC 9113, section 6.5.2).
const HEADER_LIST_MAX: u32 = 64 * 1024;
