//! What the tasks of one connection share: who the client is, and how far its bytes have moved.
//!
//! All of them run on the worker's thread. The numbers are atomic only because tasks must be `Send`.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use crate::client::ClientConnection;
use crate::client::http2::flood::{Flood, ResetLimit};
use crate::client::http2::frames::{Frame, Kind};
use crate::client::http2::share::{SharedWay, TURN_MAX};
use crate::client::http2::wire::Line;
use crate::config::ListenerConfig;
use crate::counters::{Culprit, Reason};
use crate::deadlines::Tick;
use crate::listener::Listener;
use crate::lock::lock;
use crate::peer::PeerFacts;
use crate::trust::is_trusted;
use crate::worker::Worker;

/// One client's connection, for its driver and the tasks of its streams.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) worker: Arc<Worker>,
    /// The listener's settings when it accepted the connection.
    pub(crate) listener: Arc<ListenerConfig>,
    /// The listener itself.
    pub(crate) acceptor: Arc<Listener>,
    pub(crate) peer: PeerFacts,
    /// Whether the peer was one of `trusted_proxies` when it connected: its requests are those of many
    /// users.
    pub(crate) is_trusted: bool,
    /// How many streams may be reset.
    pub(crate) resets: ResetLimit,
    /// Bytes of responses that were taken and are not written, over all streams.
    queued: AtomicUsize,
    /// How exchanges share the bytes of requests' bodies that the client sends, and of responses' bodies that it takes.
    pub(crate) uploads: SharedWay,
    pub(crate) downloads: SharedWay,
    /// When the client last took bytes of a body. Nothing else is progress: PINGs, settings and heads
    /// would keep all responses alive that the client does not take.
    body_written_at: AtomicU64,
    /// When the socket last took bytes of any kind.
    written_at: AtomicU64,
    /// Whether the socket last refused bytes.
    is_blocked: AtomicBool,
    /// The client's flow-control window of the connection: bytes of bodies that it still takes, over all streams.
    window: AtomicI64,
    /// Resets for malformed requests that the front asked for and that were not written yet.
    own_resets: AtomicUsize,
    /// Whether the front closes the connection for a reason that it has counted itself.
    is_closing: AtomicBool,
    flood: Mutex<Flood>,
    line: Mutex<Line>,
}

impl Session {
    pub(crate) fn new(worker: Arc<Worker>, client: ClientConnection) -> Self {
        let now = worker.deadlines().now();
        worker.counters().h2_connections().increment();
        let listener = Arc::clone(client.config());
        let peer = client.peer();
        let is_trusted = is_trusted(&worker.site().server.trusted_proxies, peer.remote.ip());
        let resets = ResetLimit::per_second(if is_trusted {
            listener.http2.resets_per_second_trusted
        } else {
            listener.http2.resets_per_second
        });
        Self {
            worker,
            listener,
            acceptor: Arc::clone(&client.listener),
            peer,
            is_trusted,
            resets,
            queued: AtomicUsize::new(0),
            uploads: SharedWay::default(),
            downloads: SharedWay::default(),
            body_written_at: AtomicU64::new(now.into()),
            written_at: AtomicU64::new(now.into()),
            is_blocked: AtomicBool::new(false),
            window: AtomicI64::new(FIRST_WINDOW),
            own_resets: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            flood: Mutex::new(Flood::new(now, resets)),
            line: Mutex::new(Line::new(client)),
        }
    }

    pub(crate) fn now(&self) -> Tick {
        self.worker.deadlines().now()
    }

    /// Counts what a client did.
    pub(crate) fn count(&self, token: &'static str) {
        self.worker.count(Reason::new(Culprit::Client, token));
    }

    pub(crate) fn enqueue(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn dequeue(&self, bytes: usize) {
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The most bytes of one response that are handed to the connection at a time.
    pub(crate) fn piece_max(&self) -> usize {
        match self.limited_since() {
            Some(_) if self.downloads.is_shared() => TURN_MAX as usize,
            _ => PIECE_MAX,
        }
    }

    /// Whether all that was taken of responses is written.
    pub(crate) fn is_written(&self) -> bool {
        self.queued.load(Ordering::Relaxed) == 0
    }

    /// The most bytes of one response that may be queued.
    pub(crate) fn room(&self) -> usize {
        if self.queued.load(Ordering::Relaxed) > QUEUED_MAX {
            STREAM_QUEUED_MIN
        } else {
            STREAM_QUEUED_MAX
        }
    }

    /// Writes to the client's socket with `write`, which adds what the socket took to the number it is
    /// given.
    pub(crate) fn write<T>(
        &self,
        write: impl FnOnce(&mut Line, &mut usize) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut written = 0;
        let wrote = write(&mut self.line(), &mut written);
        if written > 0 {
            self.written_at.store(self.now().into(), Ordering::Relaxed);
        }
        if written > 0 || wrote.is_pending() {
            self.is_blocked.store(wrote.is_pending(), Ordering::Relaxed);
        }
        wrote
    }

    /// Writes the bytes of the `h2` crate that are held.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(|line, written| line.poll_flush(cx, written))
    }

    pub(crate) fn line(&self) -> MutexGuard<'_, Line> {
        lock(&self.line)
    }

    /// Whether the socket last refused bytes.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }

    /// Since when the socket has taken nothing, if it refuses bytes.
    pub(crate) fn blocked_since(&self) -> Option<Tick> {
        self.is_blocked()
            .then(|| Tick::from(self.written_at.load(Ordering::Relaxed)))
    }

    /// Notes bytes of a response's body that were written at `now`.
    pub(crate) fn note_body_written(&self, bytes: usize, now: Tick) {
        self.body_written_at.store(now.into(), Ordering::Relaxed);
        self.downloads.moved(bytes);
    }

    /// When the client last took bytes of a body, if it is the socket or the window of the connection
    /// that holds responses up, not that of one stream.
    pub(crate) fn limited_since(&self) -> Option<Tick> {
        let is_limited = self.is_blocked() || self.window.load(Ordering::Relaxed) <= 0;
        is_limited.then(|| Tick::from(self.body_written_at.load(Ordering::Relaxed)))
    }

    /// Notes a received frame: its bytes of a body, a wider window, and for the limits of floods.
    pub(crate) fn received(&self, frame: Frame) {
        if frame.kind == Kind::Data {
            self.uploads.moved(frame.len as usize);
        }
        if frame.kind == Kind::WindowUpdate && frame.stream == 0 {
            let increment = i64::from(frame.word & 0x7fff_ffff);
            self.window.fetch_add(increment, Ordering::Relaxed);
        }
        self.flood().received(frame, self.now());
    }

    /// Notes a written frame: its bytes of a body, and resets and errors of the crate, which are counted here.
    pub(crate) fn sent(&self, frame: Frame) {
        match frame.kind {
            Kind::Data => {
                self.window
                    .fetch_sub(i64::from(frame.len), Ordering::Relaxed);
            }
            Kind::Reset if BLAMING.contains(&frame.word) => {
                self.flood().reset(self.now());
                if self.own_resets.load(Ordering::Relaxed) > 0 {
                    self.own_resets.fetch_sub(1, Ordering::Relaxed);
                } else {
                    self.count("h2-refused");
                }
            }
            Kind::GoAway if frame.word != 0 && !self.is_closing.load(Ordering::Relaxed) => {
                self.count(goaway_token(frame));
            }
            _ => {}
        }
    }

    /// Notes that the front closes the connection for a reason that it counts itself.
    pub(crate) fn note_closing(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// Notes that the front resets a stream for a reason that it counts itself.
    pub(crate) fn note_own_reset(&self) {
        self.own_resets.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts of frames by which floods are recognised.
    pub(crate) fn flood(&self) -> MutexGuard<'_, Flood> {
        lock(&self.flood)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.worker.counters().h2_connections().decrement();
    }
}

/// The token under which a GOAWAY of the `h2` crate is counted.
fn goaway_token(goaway: Frame) -> &'static str {
    match (goaway.word, &goaway.debug) {
        (1, _) => "h2-protocol-error",
        (3, _) => "h2-flow-control-error",
        (5, _) => "h2-stream-closed",
        (6, _) => "h2-frame-size-error",
        (9, _) => "h2-compression-error",
        // What was too much, the crate says in words.
        (11, b"header_lis") => "h2-head-flood",
        (11, b"too_many_c") => "h2-continuation-flood",
        (11, b"too_many_r" | b"too_many_i") => "h2-reset-flood",
        (11, _) => "h2-frame-flood",
        _ => "h2-error",
    }
}

/// What both directions of a connection may carry before it is widened (RFC 9113, section 6.9.2).
const FIRST_WINDOW: i64 = 65_535;

/// Codes of resets that the client has given cause for: all but NO_ERROR, INTERNAL_ERROR and CANCEL.
const BLAMING: [u32; 6] = [1, 3, 5, 6, 7, 11];

/// The largest piece handed over: with its head it fills one record of TLS.
pub(crate) const PIECE_MAX: usize = 16 * 1024 - 9;

/// The most bytes of a response that are queued while its connection has little queued.
const STREAM_QUEUED_MAX: usize = 64 * 1024;

/// The most bytes of a response that are queued while its connection has more than [`QUEUED_MAX`] queued.
const STREAM_QUEUED_MIN: usize = 16 * 1024;

/// Bytes queued for one connection from which on each response may queue less.
const QUEUED_MAX: usize = 512 * 1024;
