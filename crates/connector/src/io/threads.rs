//! The driver of blocking threads: one accepts for each listener, one runs each connection.
//!
//! This is the model of Tomcat's BIO connector: a connection has a thread from a bounded pool for as
//! long as it is open, and that thread sleeps in the system calls that read and write. Deadlines are
//! the socket's own (SO_RCVTIMEO, SO_SNDTIMEO). Connections beyond the number of threads are not
//! accepted; they wait in the kernel's queue, in order.
//!
//! All threads share one [`Hub`]. A [`Place`] is the right to have a connection, at most as many as threads;
//! a [`Seat`] is what other threads may reach of a connection. The supervisor is the thread that ends a stop.
//!
//! A blocked thread cannot check a flag, so it is stopped through its socket: sockets of idle
//! connections are shut for reading when the connector is to stop, the remaining ones when the
//! deadline has passed. A thread of its own, the supervisor, waits for that deadline.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::net::Shutdown;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use slab::Slab;
use socket2::Socket;

mod acceptor;
mod connection;
mod parked;
mod stream;

use acceptor::Acceptor;

use super::{ConnectorState, FAR, now};
use crate::config::Listener;
use crate::pool::{Limits, Pool};

/// A handle to the driver's threads.
#[derive(Debug)]
pub(crate) struct ThreadsHandle {
    hub: Arc<Hub>,
    acceptors: Vec<JoinHandle<()>>,
    supervisor: JoinHandle<()>,
}

impl ThreadsHandle {
    /// Makes the threads check whether the connector is to stop.
    pub(crate) fn wake(&self) {
        self.hub.begin_or_renew_stop();
    }

    /// Waits for all threads to end.
    pub(crate) fn join(self) {
        for thread in self.acceptors.into_iter().chain([self.supervisor]) {
            if thread.join().is_err() {
                tracing::error!("a connector thread panicked");
            }
        }
    }
}

/// Starts the acceptors and the supervisor.
pub(crate) fn spawn(
    listeners: Vec<(Listener, Socket)>,
    shared: &Arc<ConnectorState>,
) -> io::Result<ThreadsHandle> {
    let hub = Hub::new(Arc::clone(shared))?;
    let threads = spawn_threads(listeners, &hub);
    if threads.is_err() {
        // The threads are not joined, but they end.
        hub.stop_now();
    }
    let (acceptors, supervisor) = threads?;
    Ok(ThreadsHandle {
        hub,
        acceptors,
        supervisor,
    })
}

type Threads = (Vec<JoinHandle<()>>, JoinHandle<()>);

/// Starts a thread for each listener's acceptor, and one for the supervisor.
fn spawn_threads(listeners: Vec<(Listener, Socket)>, hub: &Arc<Hub>) -> io::Result<Threads> {
    let mut acceptors = Vec::with_capacity(listeners.len());
    for (listener, socket) in listeners {
        let listener_index = acceptors.len();
        let acceptor = Acceptor::new(&listener, socket, listener_index, hub);
        let name = format!("accept-{listener_index}");
        hub.roster().acceptors += 1;
        let thread = thread::Builder::new().name(name);
        acceptors.push(thread.spawn(move || acceptor.run())?);
    }
    let supervised = Arc::clone(hub);
    let supervisor = thread::Builder::new()
        .name("connector-stop".to_owned())
        .spawn(move || supervised.supervise())?;
    Ok((acceptors, supervisor))
}

/// The state that all threads of the driver share.
#[derive(Debug)]
struct Hub {
    shared: Arc<ConnectorState>,
    pool: Arc<Pool>,
    /// The most connections at once.
    places: usize,
    roster: Mutex<Roster>,
    /// Signalled when a place is free again, or the connector is being stopped.
    freed: Condvar,
    /// Signalled when a connection or an acceptor has ended, or the stop's deadline changed.
    progress: Condvar,
    /// Whether the connector is being stopped, so that no further request is served.
    stopping: AtomicBool,
    /// Whether the stop's deadline has passed and open connections have been cut.
    cut: AtomicBool,
    /// Becomes readable once the connector is being stopped; nobody ever reads it.
    stop_seen: PipeReader,
    stop: PipeWriter,
}

/// The connections and acceptors that exist. A lock because a thread that waits for a place has to
/// sleep; taken twice in the life of a connection.
#[derive(Debug, Default)]
struct Roster {
    seats: Slab<Arc<Seat>>,
    /// The number of places in use, including those for connections about to be accepted.
    taken: usize,
    /// The number of acceptors that wait for a place.
    waiting: usize,
    /// The number of acceptors that have not ended.
    acceptors: usize,
}

/// The part of a connection that other threads may reach while its own thread sleeps.
#[derive(Debug)]
struct Seat {
    socket: Socket,
    /// Whether the connection waits for a request, of which nothing has come yet.
    idle: AtomicBool,
}

/// The right to have one connection, given back when dropped.
#[derive(Debug)]
struct Place {
    hub: Arc<Hub>,
    key: Option<usize>,
}

impl Hub {
    fn new(shared: Arc<ConnectorState>) -> io::Result<Arc<Self>> {
        let max_threads = shared.config.max_threads.get();
        let limits = Limits {
            // A place is given back a moment before its thread is free, so a new connection may wait for the thread.
            max_queue_size: max_threads,
            ..Limits::of(&shared.config)
        };
        let (stop_seen, stop) = io::pipe()?;
        let pool = Arc::new(Pool::start("connection", limits)?);
        // The cell is empty: only this sets it.
        let _ = shared.threads.set(Arc::clone(&pool));
        Ok(Arc::new(Self {
            places: shared.config.max_connections.min(max_threads),
            shared,
            pool,
            roster: Mutex::default(),
            freed: Condvar::new(),
            progress: Condvar::new(),
            stopping: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            stop_seen,
            stop,
        }))
    }

    fn roster(&self) -> MutexGuard<'_, Roster> {
        // Under the lock nothing panics half-way.
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }

    fn is_cut(&self) -> bool {
        self.cut.load(SeqCst)
    }

    /// Begins the stop; if it has begun, the supervisor reads its new deadline.
    fn begin_or_renew_stop(&self) {
        let roster = self.roster();
        if !self.stopping.swap(true, SeqCst) {
            // Cannot fail: there is a reader, and room for a byte.
            let _ = (&self.stop).write(&[0]);
            for (_, seat) in &roster.seats {
                seat.hush();
            }
            self.freed.notify_all();
        }
        self.progress.notify_all();
    }

    fn stop_now(&self) {
        self.cut.store(true, SeqCst);
        self.begin_or_renew_stop();
        self.pool.close();
    }

    /// Waits until all connections have ended or were cut, then ends the pool. Threads whose application does not end
    /// are left.
    fn supervise(&self) {
        self.wait_for_connections();
        self.pool.close();
        let left = self.pool.join(LEAVE_WITHIN);
        if left > 0 {
            tracing::warn!(
                threads = left,
                "the application does not end; its threads are left"
            );
        }
    }

    /// Waits for the stop, and then for all connections to end; cuts them at the deadline.
    fn wait_for_connections(&self) {
        let mut roster = self.roster();
        while !self.is_stopping() || roster.acceptors > 0 || !roster.seats.is_empty() {
            let remaining = match self.shared.stops_at() {
                Some(deadline) => deadline.saturating_duration_since(now()),
                None => FAR,
            };
            if remaining.is_zero() {
                self.cut.store(true, SeqCst);
                for (_, seat) in &roster.seats {
                    // An error means that the connection is closed already.
                    let _ = seat.socket.shutdown(Shutdown::Both);
                }
                return;
            }
            let woken = self.progress.wait_timeout(roster, remaining);
            (roster, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until one more connection is allowed. `None` if the connector stops meanwhile, or has been cut. During a
    /// stop a free place is still given: clients in the kernel's queue are served.
    fn take_place(self: &Arc<Self>) -> Option<Place> {
        let mut roster = self.roster();
        while roster.taken >= self.places {
            if self.is_stopping() {
                return None;
            }
            roster.waiting += 1;
            roster = self
                .freed
                .wait(roster)
                .unwrap_or_else(PoisonError::into_inner);
            roster.waiting -= 1;
        }
        if self.is_cut() {
            return None;
        }
        roster.taken += 1;
        Some(Place {
            hub: Arc::clone(self),
            key: None,
        })
    }

    /// Notes that an acceptor has ended.
    fn dismiss_acceptor(&self) {
        self.roster().acceptors -= 1;
        self.progress.notify_all();
    }
}

impl Seat {
    /// Wakes the connection's thread if it waits for a request, so that the connection closes.
    fn hush(&self) {
        if self.idle.load(SeqCst) {
            // An error means that the connection is closed already.
            let _ = self.socket.shutdown(Shutdown::Read);
        }
    }
}

impl Place {
    /// Adds an accepted connection; `None` if the connector has been cut already.
    fn seat(&mut self, socket: Socket) -> Option<Arc<Seat>> {
        let seat = Arc::new(Seat {
            socket,
            idle: AtomicBool::new(true),
        });
        let mut roster = self.hub.roster();
        if self.hub.is_cut() {
            return None;
        }
        self.key = Some(roster.seats.insert(Arc::clone(&seat)));
        Some(seat)
    }
}

impl Drop for Place {
    /// Gives the place back: wakes an acceptor that waits for one and, during a stop, the supervisor.
    fn drop(&mut self) {
        let mut roster = self.hub.roster();
        roster.taken -= 1;
        if let Some(key) = self.key {
            roster.seats.remove(key);
        }
        if roster.waiting > 0 {
            self.hub.freed.notify_one();
        }
        if self.hub.is_stopping() {
            self.hub.progress.notify_all();
        }
    }
}

/// How long threads may take to end once their sockets have been shut. A thread that is still in a
/// blocking application cannot be ended.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);
