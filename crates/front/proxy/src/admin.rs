//! The admin listener: health, metrics, and the API by which operators steer the front.
//!
//! It has a thread and an event loop of its own, so it answers when the workers are busy, and it answers until they
//! have stopped, so that a drain can be watched. [`Admin::join`] stops the thread. After a handover to another process
//! it accepts no more connections. Each connection gets one answer in a limited time. At the limit of connections, the
//! oldest that waits for its client is closed. The thread also ends drains of backends that are due.

mod access;
mod api;
mod caches;
pub(crate) mod exposition;
mod figures;
mod health;
mod health_events;
mod limits;
pub(crate) mod metrics;
mod page;
mod reply;
mod request;
mod sign_on;
mod site;
mod status;
mod tls;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::error::Elapsed;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use self::health_events::HealthWatch;
use crate::config::{AdminConfig, ListenAddress, ListenerConfig};
use crate::control::events::Kind;
use crate::limits::Limit;
use crate::listener::{Acceptor, BoundAddress, BoundListener, Listener};
use crate::worker::{FrontState, Worker};

/// The admin listener of a running front.
#[derive(Debug)]
pub(crate) struct Admin {
    /// The admin sockets, kept as listeners so that an upgrade hands them over like all others.
    listeners: Vec<Arc<Listener>>,
    desk: Arc<Desk>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// The front's state and the settings, from which requests of administrators are answered.
#[derive(Debug)]
struct Desk {
    shared: Arc<FrontState>,
    /// The worker that asks services whether a client has signed on.
    worker: Arc<Worker>,
    config: ArcSwap<AdminConfig>,
}

impl Admin {
    /// Starts the thread, which serves the addresses in `bound`; each of them has one socket.
    pub(crate) fn start(
        config: AdminConfig,
        bound: Vec<(ListenAddress, BoundListener)>,
        worker: Arc<Worker>,
        shared: Arc<FrontState>,
    ) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        shared.figures.start_recording();
        let desk = Arc::new(Desk {
            shared,
            worker,
            config: ArcSwap::from_pointee(config),
        });
        let mut listeners = Vec::new();
        let mut acceptors = Vec::new();
        for (address, bound) in bound {
            let settings = ListenerConfig::new(address);
            let own = Listener::new(settings, None, bound.address.clone(), bound.file);
            let listener = Arc::new(own);
            let _entered = runtime.enter();
            for socket in bound.sockets {
                let acceptor = listener.add(Acceptor::adopt(socket, &bound.address)?);
                acceptors.push((Arc::clone(&listener), acceptor));
            }
            listeners.push(listener);
        }
        let (stop, stopped) = oneshot::channel();
        let task = run(Arc::clone(&desk), acceptors, stopped);
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || runtime.block_on(task))?;
        Ok(Self {
            listeners,
            desk,
            stop,
            thread,
        })
    }

    pub(crate) fn listeners(&self) -> &[Arc<Listener>] {
        &self.listeners
    }

    /// Whether [`Self::configure`] can put `config` in force. Otherwise the listener must be started anew.
    pub(crate) fn stays(&self, config: &AdminConfig) -> bool {
        let present = self.desk.config.load();
        if self.listeners.len() != config.addresses.len()
            || present.socket_mode != config.socket_mode
            || present.state_file != config.state_file
        {
            return false;
        }
        let mut pairs = self.listeners.iter().zip(&config.addresses);
        pairs.all(|(listener, address)| listener.is_at(address))
    }

    /// Replaces the settings: the token, the hosts, and who may change what.
    pub(crate) fn configure(&self, config: AdminConfig) {
        self.desk.config.store(Arc::new(config));
    }

    /// Stops the thread, waits for its end, and removes the files of Unix sockets that were not handed over.
    pub(crate) fn join(self) {
        // An error means that the thread has ended already, as it does after its sockets were handed over.
        self.stop.send(()).ok();
        if self.thread.join().is_err() {
            tracing::error!("the admin listener's thread panicked");
        }
        for listener in &self.listeners {
            let is_handed_over = listener.drain().has_begun();
            if !is_handed_over {
                listener.remove_file();
            }
        }
    }
}

/// Serves all addresses and runs [`tick`], until `stopped` is sent or all sockets were handed over.
async fn run(
    desk: Arc<Desk>,
    acceptors: Vec<(Arc<Listener>, Arc<Acceptor>)>,
    stopped: oneshot::Receiver<()>,
) {
    let mut accepting = JoinSet::new();
    for (listener, acceptor) in acceptors {
        accepting.spawn(accept_until_drain(Arc::clone(&desk), listener, acceptor));
    }
    let all_handed_over = async { while accepting.join_next().await.is_some() {} };
    tokio::select! {
        () = all_handed_over => {}
        () = tick(&desk.shared) => {}
        // An error means that the sender was dropped without a stop: then the listener goes on.
        Ok(()) = stopped => {}
    }
}

/// Runs the tasks that are due each second, for ever: ends of drains, samples of figures, health events.
async fn tick(shared: &FrontState) {
    let mut seconds = interval(TICK);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut watch = HealthWatch::default();
    loop {
        seconds.tick().await;
        shared.control.tick(&shared.site);
        sample_figures(shared);
        let site = shared.site.load_full();
        watch.check(site.backends(), &shared.control.events);
        log_limits_with_room(shared);
    }
}

/// Logs each limit at which no client was turned away for the last minute, after some were.
fn log_limits_with_room(shared: &FrontState) {
    for (limit, spell) in shared.limits.take_over(shared.began.elapsed()) {
        let token = limit.token();
        let clients = spell.clients;
        let text = format!(
            "no client was turned away for a minute (front:{token}); {clients} were in all"
        );
        tracing::info!("{text}");
        shared.control.events.push(Kind::Health, "", "", text);
    }
}

/// Samples the counters of all backends, for rates and percentiles.
fn sample_figures(shared: &FrontState) {
    let now = shared.began.elapsed();
    for backend in shared.site.load().backends() {
        backend.sample_figures(now);
    }
    for backend in shared.retired.in_use() {
        backend.sample_figures(now);
    }
}

/// Accepts connections until the listener drains, which it does when another process takes it over.
async fn accept_until_drain(desk: Arc<Desk>, listener: Arc<Listener>, acceptor: Arc<Acceptor>) {
    let address = listener.address().clone();
    tokio::select! {
        _ = listener.drain().begun() => {}
        () = accept(desk, address, acceptor) => {}
    }
}

/// Accepts connections for ever. When this future is dropped, its connections are dropped, too.
async fn accept(desk: Arc<Desk>, address: BoundAddress, acceptor: Arc<Acceptor>) {
    let mut connections = Connections::default();
    loop {
        let accepted = tokio::select! {
            accepted = acceptor.accept() => accepted,
            // Frees what is left of a task that has ended.
            Some(_) = connections.tasks.join_next() => continue,
        };
        let incoming = match accepted {
            Ok(incoming) => incoming,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of an administrator");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let room = connections.make_room();
        if matches!(room, Room::Made | Room::Refused) {
            desk.shared.turn_away(Limit::Administrators);
        }
        if room == Room::Refused {
            // The new connection is closed here.
            continue;
        }
        let work = Work::default();
        let serving = request::serve(Arc::clone(&desk), address.clone(), incoming, work.clone());
        let task = connections.tasks.spawn(timeout(TIMEOUT, serving));
        connections.open.push_back(OpenClient { task, work });
    }
}

/// The connections of administrators that were accepted at one address of the admin listener.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<Result<io::Result<()>, Elapsed>>,
    /// Open connections, and some that have ended; the oldest first.
    open: VecDeque<OpenClient>,
}

struct OpenClient {
    task: AbortHandle,
    work: Work,
}

/// Whether the answer to a request that was received whole is being made. If not, the connection waits for its client.
#[derive(Clone, Debug, Default)]
struct Work(Arc<AtomicBool>);

impl Work {
    fn set(&self, is_under_way: bool) {
        self.0.store(is_under_way, Ordering::Relaxed);
    }

    fn is_under_way(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a new connection may be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    There,
    /// There was no room, so another connection was closed.
    Made,
    Refused,
}

impl Connections {
    /// At the limit of connections, closes the oldest that waits for its client. Otherwise a few silent
    /// clients would leave probes of `/healthz` unanswered.
    fn make_room(&mut self) -> Room {
        self.open.retain(|open| !open.task.is_finished());
        if self.open.len() < CONNECTIONS_MAX {
            return Room::There;
        }
        let waits = |open: &OpenClient| !open.work.is_under_way();
        match self.open.iter().position(waits) {
            Some(oldest) => {
                if let Some(closed) = self.open.remove(oldest) {
                    closed.task.abort();
                }
                Room::Made
            }
            None => Room::Refused,
        }
    }
}

/// The most connections at one address at a time. Scrapes are short, and there are few at a time.
const CONNECTIONS_MAX: usize = 32;

/// The longest time that one connection may take, from the accept to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The interval of [`tick`].
const TICK: Duration = Duration::from_secs(1);
