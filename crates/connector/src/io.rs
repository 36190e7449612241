//! Drivers: they move bytes between sockets and `Conn`s.
//!
//! A driver is a whole event loop for one I/O model. This module has what drivers share: bound
//! listeners, the state that workers and [`Running`](crate::Running) use, and the deadline of each kind
//! of wait. Only here does the crate read the clock.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

mod agent;
pub(crate) mod epoll;
mod event_loop;
mod lent;
pub(crate) mod listen;
mod meter;
mod tasks;
#[cfg(feature = "threads")]
pub(crate) mod threads;
mod timers;
#[cfg(feature = "uring")]
pub(crate) mod uring;
mod wakeups;

use socket2::{SockRef, Socket};

use crate::application::{Caller, Runner};
use crate::config::{Config, Listener, Protocol};
use crate::conn::{Action, Conn, Io, WaitClass};
use crate::counters::{Counters, Snapshot};
use crate::handler::{Request, Response};
use crate::pool::Pool;
use crate::status::{self, Status, Threads};
use crate::{IoModel, StartError};

/// A running worker of any driver.
#[derive(Debug)]
pub(crate) enum Worker {
    Loop(event_loop::LoopHandle),
    #[cfg(feature = "threads")]
    Threads(threads::ThreadsHandle),
}

impl Worker {
    /// The number of workers that the configuration asks for; each has its own socket of every listener.
    pub(crate) fn count(config: &Config) -> usize {
        if config.io.has_thread_per_connection() {
            // One pool of threads serves all listeners.
            return 1;
        }
        config.workers.get()
    }

    /// The number of sets of counters; with several, cores rarely write the same ones.
    pub(crate) fn shards(config: &Config) -> usize {
        if config.io.has_thread_per_connection() {
            return 16;
        }
        Self::count(config)
    }

    /// Starts the worker `index` on threads of its own.
    pub(crate) fn spawn(
        index: usize,
        listeners: Vec<(Listener, Socket)>,
        shared: &Arc<ConnectorState>,
    ) -> Result<Self, StartError> {
        let counters = &shared.counters[index];
        match shared.config.io {
            IoModel::Epoll => epoll::spawn(index, listeners, shared, counters)
                .map(Self::Loop)
                .map_err(StartError::Worker),
            #[cfg(feature = "uring")]
            IoModel::Uring => uring::spawn(index, listeners, shared, counters)
                .map(Self::Loop)
                .map_err(uring::explain),
            #[cfg(feature = "threads")]
            IoModel::Threads => threads::spawn(listeners, shared)
                .map(Self::Threads)
                .map_err(StartError::Worker),
        }
    }

    /// Makes the worker check whether the connector is to stop.
    pub(crate) fn wake(&self) {
        match self {
            Self::Loop(worker) => worker.wake(),
            #[cfg(feature = "threads")]
            Self::Threads(worker) => worker.wake(),
        }
    }

    /// Waits for the worker to end.
    pub(crate) fn join(self) {
        match self {
            Self::Loop(worker) => worker.join(),
            #[cfg(feature = "threads")]
            Self::Threads(worker) => worker.join(),
        }
    }
}

/// The state that all workers of a connector share.
pub(crate) struct ConnectorState {
    pub(crate) config: Arc<Config>,
    pub(crate) runner: Runner,
    /// The listeners, with the ports that the system chose.
    pub(crate) listeners: Vec<Listener>,
    /// For each shard, the counters of each listener.
    pub(crate) counters: Vec<Vec<Arc<Counters>>>,
    /// The pool with a thread for each connection, on [`IoModel::Threads`].
    threads: OnceLock<Arc<Pool>>,
    /// The number of connections open now.
    open: AtomicUsize,
    /// When to cut what is still open; `None` until the connector is being stopped. A lock because there
    /// is no atomic instant; taken at the stop only.
    stop: Mutex<Option<Instant>>,
}

impl ConnectorState {
    /// The state of a connector about to start. A shard is a set of counters, one for each listener.
    pub(crate) fn new(config: Config, runner: Runner, listeners: Vec<Listener>) -> Self {
        let new_shard = |_| listeners.iter().map(|_| Arc::default()).collect();
        Self {
            counters: (0..Worker::shards(&config)).map(new_shard).collect(),
            listeners,
            threads: OnceLock::new(),
            config: Arc::new(config),
            runner,
            open: AtomicUsize::new(0),
            stop: Mutex::new(None),
        }
    }

    /// The state and counters of the connector.
    pub(crate) fn status(&self) -> Status {
        let mut listeners = Vec::with_capacity(self.listeners.len());
        for (listener_index, listener) in self.listeners.iter().enumerate() {
            let mut counts = Snapshot::default();
            for shard in &self.counters {
                shard[listener_index].add_to(&mut counts);
            }
            listeners.push((listener.clone(), counts));
        }
        // With a thread per connection, the application runs on those threads and its own pool is empty.
        let usage = match self.threads.get() {
            Some(pool) => Some(pool.usage()),
            None => self.runner.usage(),
        };
        let threads = usage.map(|usage| Threads {
            max: self.config.max_threads.get(),
            current: usage.threads,
            busy: usage.busy,
            queued: usage.queued,
        });
        Status {
            io: self.config.io,
            threads,
            listeners,
        }
    }

    /// Answers a request for the status page, and counts that request. `None`: the request is for another page, and
    /// goes to the application.
    fn view(&self, request: &Request, counters: &Counters) -> Option<Response> {
        let view = self.config.status.as_ref()?;
        if *request.path != *view.path.as_bytes() {
            return None;
        }
        Counters::add(&counters.requests, 1);
        Some(status::answer(request, view, || self.status()))
    }

    /// Passes a request to the status view or to the application.
    fn serve(
        &self,
        request: Box<Request>,
        conn: &mut Conn,
        io: &mut Io<'_>,
        caller: Caller<'_>,
    ) -> Action {
        match self.view(&request, caller.counters) {
            Some(answer) => conn.respond(answer, io),
            None => self.runner.serve(request, conn, io, caller),
        }
    }

    /// Stops the connector within `deadline` from now, or sooner if that was asked before.
    pub(crate) fn stop_within(&self, deadline: Duration) {
        let new_stop = now() + deadline.min(FAR);
        let mut stop = self.lock_stop();
        *stop = match *stop {
            Some(earlier) => Some(earlier.min(new_stop)),
            None => Some(new_stop),
        };
    }

    fn stops_at(&self) -> Option<Instant> {
        *self.lock_stop()
    }

    fn lock_stop(&self) -> MutexGuard<'_, Option<Instant>> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a place for one more open connection, which [`Self::dismiss`] gives back. `false` if there are as many
    /// as allowed.
    fn admit(&self) -> bool {
        let max = self.config.max_connections;
        let one_more = |open| (open < max).then_some(open + 1);
        self.open.try_update(Relaxed, Relaxed, one_more).is_ok()
    }

    /// Whether as many connections are open as allowed.
    fn is_full(&self) -> bool {
        self.open.load(Relaxed) >= self.config.max_connections
    }

    /// Gives back the place of a connection that was closed or could not be accepted.
    fn dismiss(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    /// How long a peer may keep a connection waiting; `None`: without limit.
    fn patience(&self, awaiting: WaitClass, protocol: Protocol) -> Option<Duration> {
        let limit = match (awaiting, protocol) {
            // Fronts keep AJP connections open for long, so AJP has a limit of its own, by default none.
            (WaitClass::NextRequest, Protocol::Http) => Some(self.config.http_keep_alive_timeout),
            (WaitClass::NextRequest, Protocol::Ajp) => self.config.ajp_keep_alive_timeout,
            _ => Some(self.config.connection_timeout),
        };
        limit.map(|limit| limit.min(FAR))
    }
}

impl fmt::Debug for ConnectorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorState")
            .field("config", &self.config)
            .field("runner", &self.runner)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// The longest wait: a century. Longer ones, which a configuration or an application may name, could
/// overflow the instant they are added to.
pub(crate) const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[expect(
    clippy::disallowed_methods,
    reason = "drivers own the clock of the connections they run"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The current `Date`; `None` if the clock shows a time before 1970 or after 9999, so that it was never
/// set: without a clock a server must not send `Date` (RFC 9110, section 6.6.1).
fn date() -> Option<String> {
    date_at(SystemTime::now())
}

fn date_at(time: SystemTime) -> Option<String> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (since.as_secs() < YEAR_10000).then(|| httpdate::fmt_http_date(time))
}

/// Makes the socket send a reset when it is closed, so that no peer takes an incomplete response for a
/// whole one.
fn reset_on_close(socket: SockRef<'_>) {
    // Refused only by a socket that is broken, which is a reset of its own.
    let _ = socket.set_linger(Some(Duration::ZERO));
}

/// The beginning of the year 10000 in seconds since 1970: a date's year has four digits.
const YEAR_10000: u64 = 253_402_300_800;
/// The most bytes read at once.
const READ_MAX: usize = 64 * 1024;
/// The pause before accepting again when no descriptor or no connection was left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long to wait for the peer's end of stream after our own.
const LINGER: Duration = Duration::from_secs(2);
/// The most bytes that are read and thrown away meanwhile.
const LINGER_BYTES: usize = 256 * 1024;
