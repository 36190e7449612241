//! Starts the front and stops it.

mod acme;
mod discovery;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use catamaran_tls::KeyLog;
use thiserror::Error;
use tokio::runtime::{self, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::access_log::{AccessLog, OpenedLog};
use crate::admin::Admin;
use crate::config::{AdminConfig, Config, ListenAddress, ListenerConfig};
use crate::control::discovered::record::MembersRecord;
use crate::control::discovered::{SourcedUpstream, own_addresses};
use crate::control::{self, Control, OperatorCommands};
use crate::counters::{Counters, CountersSnapshot};
use crate::inheritance::Inheritance;
use crate::limits::Limits;
use crate::line_queue::LineQueue;
use crate::listener::admission::Admission;
use crate::listener::drain::{Drain, Ending};
use crate::listener::{
    self, Acceptor, BindError, BoundAddress, BoundListener, Ipv4Ports, Listener,
};
use crate::lock::lock;
use crate::running::acme::IssuerThread;
use crate::running::discovery::Discovery;
use crate::serve::event_loop::{self, Assignment};
use crate::site::retired::RetiredBackends;
use crate::site::{BackendStatus, Site};
use crate::tls::acme::IssuanceFigures;
use crate::tls::acme::memory::MemoryFiles;
use crate::tls::{self, ProfileError, Profiles};
use crate::traces::Traces;
use crate::users::UsersError;
use crate::worker::encoders::EncoderMemory;
use crate::worker::handshakes::FailureLog;
use crate::worker::passwords::Passwords;
use crate::worker::{FrontState, RequestFigures, Worker};

/// Why the front did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A listener cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A route names an upstream that does not exist.
    #[error("a route names the upstream {name:?}, which does not exist")]
    UnknownUpstream {
        /// The name of the upstream.
        name: String,
    },
    /// The access log cannot be opened.
    #[error("cannot open the access log: {0}")]
    AccessLog(#[source] io::Error),
    /// The file for secrets of TLS sessions cannot be opened.
    #[error("cannot open the file of `--tls-key-log`: {0}")]
    KeyLog(#[source] io::Error),
    /// A TLS profile cannot be used.
    #[error(transparent)]
    Tls(#[from] ProfileError),
    /// The users of a sign-on cannot be read.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The system has no random bytes, which nobody else may know.
    #[error("the system has no random bytes; make /dev/urandom readable")]
    Random,
    /// A worker's thread or event loop cannot be created.
    #[error("cannot start a worker: {0}")]
    Worker(#[source] io::Error),
}

/// A running front. Dropping this does not stop it; see [`Running::drain`] and [`Running::join`].
#[derive(Debug)]
pub struct Running {
    pub(crate) shared: Arc<FrontState>,
    pub(crate) workers: Vec<RunningWorker>,
    /// The listeners in the configuration's order. The mutex is held by reloads, drains and handovers, so that they do
    /// not overlap.
    listeners: Mutex<Vec<Arc<Listener>>>,
    /// Sockets of listeners that reloads removed and that still drain; they close when their drain is over.
    pub(crate) leaving: Mutex<Vec<Weak<Acceptor>>>,
    pub(crate) admin: Option<Admin>,
    /// The thread that finds members of upstreams.
    pub(crate) discovery: Discovery,
    /// The thread that orders certificates; `None` until the start has come so far.
    issuer: Option<IssuerThread>,
}

/// A worker's thread, and the channel to it.
#[derive(Debug)]
pub(crate) struct RunningWorker {
    worker: Arc<Worker>,
    thread: JoinHandle<()>,
    runtime: Handle,
    assignments: mpsc::Sender<Vec<Assignment>>,
}

/// Binds every listener and starts the workers. When it returns, clients are served.
///
/// # Errors
/// [`StartError`]; then nothing listens.
pub fn start(config: Config) -> Result<Running, StartError> {
    start_inheriting(config, Inheritance::default(), OperatorCommands::default())
}

/// Starts like [`start`], but with the listening sockets of the previous process: a listener with the same address
/// takes its sockets over, others are bound. The previous process is told when clients are served. Administrators are
/// served from then on, too, so `commands` must be ready.
///
/// # Errors
/// [`StartError`]; the previous process keeps what it offered.
pub fn start_inheriting(
    config: Config,
    mut inheritance: Inheritance,
    commands: OperatorCommands,
) -> Result<Running, StartError> {
    let count = config.server.workers.get();
    let ports = Ipv4Ports::of(&config);
    let (sources, own) = (SourcedUpstream::all(&config), own_addresses(&config));
    // The backends of the site find these addresses as long as they are held.
    let _names = inheritance.names();
    let site = Site::new(&config, count, &mut Vec::new())
        .map_err(|name| StartError::UnknownUpstream { name })?;
    site.read_users()?;
    site.say_clients_max(None);
    let overrides = inheritance.overrides();
    let log = OpenedLog::new(&config.log).map_err(StartError::AccessLog)?;
    let (key_lines, key_log) = open_key_log(&config)?;
    let issued_memory = Arc::default();
    let profiles = first_profiles(&config, &inheritance, key_log.as_ref(), &issued_memory)?;
    let bound = bind_all(config.listeners, &ports, count, &mut inheritance)?;
    let admin_bound = bind_admin(config.admin.as_ref(), &ports, &mut inheritance)?;
    let control = Control::start(config.admin.as_ref(), overrides, commands);
    let settled = control.settle_at_start(&site);
    settled.configure();
    let shared = Arc::new(FrontState {
        began: Instant::now(),
        since: inheritance.since().unwrap_or_else(control::now),
        site: Arc::new(ArcSwap::from_pointee(settled)),
        retired: RetiredBackends::default(),
        profiles: ArcSwap::from_pointee(profiles),
        key_log,
        key_lines,
        issuance: IssuanceFigures::default(),
        issued_memory,
        access_log: AccessLog::new(count),
        traces: Traces::default(),
        own_log: OnceLock::new(),
        failure_log: FailureLog::default(),
        control,
        counters: Counters::new(count),
        admission: Admission::new(),
        limits: Limits::default(),
        encoder_memory: EncoderMemory::default(),
        passwords: Passwords::new().ok_or(StartError::Random)?,
        figures: RequestFigures::new(count),
        leaving: AtomicBool::new(false),
        drain: Drain::default(),
    });
    let mut running = Running::spawn(&shared, count).map_err(StartError::Worker)?;
    let prepare = || {
        running.find_members(sources, &own, inheritance.members())?;
        let adopted = running.adopt(bound, &shared.profiles.load())?;
        shared.access_log.switch(log)?;
        shared.traces.follow(config.trace.as_ref())?;
        watch::start(&shared)?;
        let issuer = acme::start(&shared)?;
        let start_admin = |admin| {
            let worker = Arc::clone(&running.workers[0].worker);
            Admin::start(admin, admin_bound, worker, Arc::clone(&shared))
        };
        let admin = config.admin.map(start_admin).transpose()?;
        Ok((adopted, admin, issuer))
    };
    match prepare() {
        Ok((adopted, admin, issuer)) => {
            *running.listeners() = running.assign(adopted);
            running.admin = admin;
            running.issuer = Some(issuer);
        }
        Err(error) => {
            running.drain();
            return Err(StartError::Worker(error));
        }
    }
    inheritance.say_ready();
    Ok(running)
}

/// The log of TLS secrets and its queue, if there is to be one.
fn open_key_log(config: &Config) -> Result<(Option<LineQueue>, Option<Arc<KeyLog>>), StartError> {
    let path = config.server.tls_key_log.as_deref();
    let lines = tls::open_key_log(path).map_err(StartError::KeyLog)?;
    let log = lines.clone().map(KeyLog::new);
    Ok((lines, log))
}

/// The TLS profiles of the configuration, with the ticket keys of the previous process.
fn first_profiles(
    config: &Config,
    inheritance: &Inheritance,
    key_log: Option<&Arc<KeyLog>>,
    issued_memory: &Arc<MemoryFiles>,
) -> Result<Profiles, ProfileError> {
    let known = |profile: &str| inheritance.ticket_keys(profile);
    let (profiles, listeners) = (&config.tls, &config.listeners);
    tls::profiles(profiles, listeners, known, key_log, issued_memory)
}

/// The listeners with their sockets, one for each worker.
fn bind_all(
    listeners: Vec<ListenerConfig>,
    ports: &Ipv4Ports,
    workers: usize,
    inheritance: &mut Inheritance,
) -> Result<Vec<(ListenerConfig, BoundListener)>, BindError> {
    let mut bound = Vec::with_capacity(listeners.len());
    for config in listeners {
        let listener = match inheritance.take(&config.address) {
            Some(sockets) => listener::inherit(&config.address, sockets, workers)?,
            None => listener::bind(&config.address, ports, workers)?,
        };
        bound.push((config, listener));
    }
    Ok(bound)
}

/// The sockets of the admin listener, if there is to be one.
fn bind_admin(
    admin: Option<&AdminConfig>,
    ports: &Ipv4Ports,
    inheritance: &mut Inheritance,
) -> Result<Vec<(ListenAddress, BoundListener)>, BindError> {
    let Some(admin) = admin else {
        return Ok(Vec::new());
    };
    let mut bound = Vec::with_capacity(admin.addresses.len());
    for address in &admin.addresses {
        let listener = match inheritance.take(address) {
            Some(sockets) => listener::inherit(address, sockets, 1)?,
            None => listener::bind_as(address, ports, 1, admin.socket_mode)?,
        };
        bound.push((address.clone(), listener));
    }
    Ok(bound)
}

impl Running {
    /// The addresses of the listeners, in the configuration's order, with the ports that the system chose.
    #[must_use]
    pub fn addresses(&self) -> Vec<BoundAddress> {
        let listeners = self.listeners();
        listeners.iter().map(|it| it.address().clone()).collect()
    }

    /// The URLs of the listeners, in the configuration's order. A URL's scheme is the current one: a reload may turn
    /// TLS on or off.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.listeners().iter().map(|it| it.url()).collect()
    }

    /// The addresses of the admin listener, with the ports that the system chose; empty if there is none.
    #[must_use]
    pub fn admin_addresses(&self) -> Vec<BoundAddress> {
        let listeners = self.admin.iter().flat_map(Admin::listeners);
        listeners.map(|it| it.address().clone()).collect()
    }

    /// Makes `/readyz` answer 503 from now on; everything else is served as before. Returns the configured
    /// `drain_delay`, after which the caller should call [`Running::drain`].
    pub fn leave(&self) -> Duration {
        self.shared.leaving.store(true, Ordering::Relaxed);
        self.shared.site.load().server.drain_delay
    }

    /// Begins to stop, and returns at once. Responses say `Connection: close`; after a grace period of half a second
    /// (at most a quarter of `drain_timeout`) no further connections are accepted and idle ones are closed; exchanges
    /// may finish until `drain_timeout`.
    pub fn drain(&self) {
        let listeners = self.listeners();
        for listener in listeners.iter() {
            listener.drain().begin(Ending::Closed);
        }
        self.shared.drain.begin(Ending::Closed);
    }

    /// Waits until all workers have stopped and the state of certificates is stored, then writes the rest of the access
    /// log and sends the last spans. If nobody takes them in time, the rest is lost.
    pub fn join(self) {
        for worker in self.workers {
            if worker.thread.join().is_err() {
                tracing::error!("a worker's thread panicked");
            }
        }
        if let Some(admin) = self.admin {
            admin.join();
        }
        if let Some(issuer) = self.issuer {
            issuer.join();
        }
        self.shared.access_log.finish();
        self.shared.traces.finish();
        let dropped = self.shared.access_log.dropped();
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "access-log lines were dropped: writing did not keep up"
            );
        }
        if let Some(key_lines) = &self.shared.key_lines {
            key_lines.finish();
        }
    }

    /// Opens the access log's file again, such as after it has been moved away.
    ///
    /// # Errors
    /// The file cannot be opened; lines still go to the previous one.
    pub fn reopen_logs(&self) -> io::Result<()> {
        self.shared.access_log.reopen()
    }

    /// Sets the queue of this process's own log, so that metrics count the lines that it lost. Only the first call has
    /// an effect.
    pub fn count_own_log(&self, log: Option<LineQueue>) {
        if let Some(log) = log {
            self.shared.own_log.get_or_init(|| log);
        }
    }

    /// When the first process of this front began, in seconds of the Unix epoch. A process that takes over keeps this
    /// time if [`Inheritance::serves_since`] was called.
    #[must_use]
    pub fn served_since(&self) -> u64 {
        self.shared.since
    }

    /// Counts an upgrade of the process that begins.
    pub fn note_upgrade(&self) {
        self.shared.control.note_upgrade();
    }

    /// Records why an upgrade failed, for administrators.
    pub fn note_failed_upgrade(&self, reason: &str) {
        self.shared.control.note_failed_upgrade(reason.to_owned());
    }

    /// The front's counters as they are now, such as connections and refusals.
    #[must_use]
    pub fn counters(&self) -> CountersSnapshot {
        self.shared.counters.snapshot(self.shared.admission.open())
    }

    /// The status of every backend of the current configuration.
    #[must_use]
    pub fn backends(&self) -> Vec<BackendStatus> {
        self.shared.site.load().status()
    }

    /// Uses the inherited members, begins to ask the sources, and waits up to [`FIRST_ANSWER_MAX`] for sources of which
    /// nothing was inherited. Addresses in `own`, the front's listeners, do not become members.
    fn find_members(
        &self,
        sources: Vec<SourcedUpstream>,
        own: &[SocketAddr],
        inherited: Vec<MembersRecord>,
    ) -> io::Result<()> {
        let FrontState {
            control,
            site,
            retired,
            ..
        } = &*self.shared;
        control.discovered.follow(&sources, own);
        if control.discovered.inherit(inherited) {
            control.publish(site, retired);
        }
        self.discovery.follow(&self.shared, sources)?;
        control.discovered.wait_for_first(FIRST_ANSWER_MAX);
        Ok(())
    }

    pub(crate) fn listeners(&self) -> MutexGuard<'_, Vec<Arc<Listener>>> {
        lock(&self.listeners)
    }

    /// Starts the workers, which do not accept yet.
    fn spawn(shared: &Arc<FrontState>, count: usize) -> io::Result<Self> {
        let mut running = Self {
            shared: Arc::clone(shared),
            workers: Vec::with_capacity(count),
            listeners: Mutex::default(),
            leaving: Mutex::default(),
            admin: None,
            discovery: Discovery::default(),
            issuer: None,
        };
        for index in 0..count {
            let worker = Arc::new(Worker::new(index, Arc::clone(shared)));
            match RunningWorker::spawn(worker) {
                Ok(worker) => running.workers.push(worker),
                Err(error) => {
                    running.drain();
                    return Err(error);
                }
            }
        }
        Ok(running)
    }

    /// Distributes the sockets of new listeners over the workers, each of which gets at least one of each listener.
    /// They do not accept yet.
    pub(crate) fn adopt(
        &self,
        bound: Vec<(ListenerConfig, BoundListener)>,
        profiles: &Profiles,
    ) -> io::Result<AdoptedListeners> {
        let mut adopted = AdoptedListeners {
            listeners: Vec::with_capacity(bound.len()),
            assignments: self.workers.iter().map(|_| Vec::new()).collect(),
        };
        for (config, bound) in bound {
            let address = bound.address.clone();
            let tls = tls::of_listener(profiles, &config);
            let listener = Arc::new(Listener::new(config, tls, bound.address, bound.file));
            for (index, socket) in bound.sockets.into_iter().enumerate() {
                let worker = index % self.workers.len();
                // Sockets join the event loop of the runtime they are adopted in.
                let _entered = self.workers[worker].runtime.enter();
                let acceptor = listener.add(Acceptor::adopt(socket, &address)?);
                adopted.assignments[worker].push((Arc::clone(&listener), acceptor));
            }
            adopted.listeners.push(listener);
        }
        Ok(adopted)
    }

    /// Gives the workers their sockets, from which they then accept.
    pub(crate) fn assign(&self, adopted: AdoptedListeners) -> Vec<Arc<Listener>> {
        for (worker, sockets) in self.workers.iter().zip(adopted.assignments) {
            if worker.assignments.blocking_send(sockets).is_err() {
                tracing::error!(
                    "a worker's thread has ended; new clients in its queue are not served"
                );
            }
        }
        adopted.listeners
    }
}

/// New listeners, and for each worker the sockets that it will accept from.
pub(crate) struct AdoptedListeners {
    listeners: Vec<Arc<Listener>>,
    assignments: Vec<Vec<Assignment>>,
}

impl RunningWorker {
    /// Starts the thread and the event loop of a worker.
    fn spawn(worker: Arc<Worker>) -> io::Result<Self> {
        let runtime: Runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        // One message for the start and one for each reload, each taken at once.
        let (assignments, assigned) = mpsc::channel(4);
        let running = Arc::clone(&worker);
        let thread = std::thread::Builder::new()
            .name(format!("worker-{}", worker.index()))
            .spawn(move || {
                runtime.block_on(event_loop::run(running, assigned));
                // A thread that reads, resolves or compresses is not waited for.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            worker,
            thread,
            runtime: handle,
            assignments,
        })
    }
}

/// How long the start waits for the first answers of sources of members.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::config::{ListenerConfig, TlsConfig, UpstreamConfig};
    use crate::tls::acme::owner::Rivals;
    use crate::tls::acme::store::Store;
    use crate::tls::acme::test_config;

    #[test]
    fn a_thread_that_waits_for_a_disk_does_not_hold_the_end_up() {
        let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        let upstream = UpstreamConfig::new("app", Vec::new());
        let config = Config::of_one(vec![ListenerConfig::new(address)], upstream);
        let running = start(config).unwrap();
        let (begin, begun) = sync_channel(1);
        let (release, released) = sync_channel::<()>(1);
        running.workers[0].runtime.spawn_blocking(move || {
            begin.send(()).ok();
            released.recv().ok();
        });
        begun.recv().unwrap();
        running.drain();
        let (end, ended) = sync_channel(1);
        std::thread::spawn(move || {
            running.join();
            end.send(()).ok();
        });
        ended.recv_timeout(DEADLINE).expect("the front ends");
        drop(release);
    }

    /// The authority accepts the connection and says nothing.
    #[test]
    fn the_end_waits_until_the_name_of_an_attempt_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut acme = test_config(folder.path());
        acme.directory = format!("https://{}/directory", silent.local_addr().unwrap());
        let store = Store::new(&acme, &Arc::default());
        let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        let upstream = UpstreamConfig::new("app", Vec::new());
        let mut config = Config::of_one(vec![ListenerConfig::new(address)], upstream);
        config.server.drain_timeout = Duration::ZERO;
        config.tls.push(TlsConfig {
            acme: Some(acme),
            ..TlsConfig::new("www", Vec::new())
        });
        let running = start(config).unwrap();
        let connection = silent.accept().unwrap();
        running.drain();
        running.join();
        assert!(
            store
                .lock("a.test", &mut Rivals::default())
                .unwrap()
                .is_some(),
            "another may order"
        );
        assert_eq!(store.state("a.test").unwrap().interruptions, 1);
        drop(connection);
    }

    const DEADLINE: Duration = Duration::from_secs(20);
}
