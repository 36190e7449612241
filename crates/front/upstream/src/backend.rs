//! One backend and its connections: decides which pooled connection an exchange gets, and when a new one
//! is opened.

mod abandoned;
mod findings;
mod group;
mod in_row;
mod lease;

use std::borrow::Borrow;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use catamaran_balance::Sessions;
use catamaran_balance::health::{Moment, Standing};
use catamaran_transport::{Count, PerWorker};
use findings::Findings;
pub use group::Group;
pub use lease::{Lease, LeftBehind};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::cap::{Cap, Grant, Permit, Place, QueueFull};
use crate::config::BackendConfig;
use crate::connection::Connection;
use crate::dial::dial;
use crate::error::LeaseError;
use crate::figures::{Figures, Traffic};
use crate::health::SharedHealth;
use crate::idle_closures::IdleClosures;
use crate::pool::{Pool, Reuse};
use crate::probe::LastProbe;
use crate::settings::Settings;

/// A backend: its settings, a pool for each worker, and one cap over all pools. All workers share it.
/// Its upstream, protocol and address never change.
#[derive(Debug)]
pub struct Backend {
    /// The unique number that [`Self::number`] returns.
    number: u64,
    upstream: String,
    /// The current settings, for dials and probes. An exchange uses the settings of its site instead.
    settings: ArcSwap<Settings>,
    /// The group of the upstream's backends, which the keeper reads; `None` before [`Self::configure`].
    group: ArcSwapOption<Group>,
    /// The generation of `settings`, with which the end of each exchange compares its connection's.
    generation: AtomicU32,
    cap: Arc<Cap<Box<Connection>>>,
    workers: PerWorker<Local>,
    /// Whether the upstream's policy reads `load`, so that it must be counted.
    has_load: AtomicBool,
    /// Exchanges in flight over all workers; only those are counted that began while `has_load` was set.
    load: AtomicUsize,
    abandoned: AtomicUsize,
    /// How many tunnels are open or being opened.
    tunnels: Arc<AtomicUsize>,
    abandoned_total: AtomicU64,
    idle_closures: IdleClosures,
    /// The sessions seen lately; empty if the upstream does not count sessions.
    sessions: ArcSwapOption<Sessions>,
    /// When the backend was created; `sessions` counts time from then.
    origin: Instant,
    health: SharedHealth,
    /// Whether the log already says that this backend's secret may be wrong.
    refusal_logged: AtomicBool,
    /// Whether the log already says that probes of this backend may begin sessions.
    sessions_logged: AtomicBool,
    findings: Mutex<Findings>,
    figures: Figures,
    /// The number of responses 5xx in a row, counted only under `eject_after_5xx`.
    server_errors: AtomicU32,
    /// Wakes the keeper, the task that probes the backend.
    attention: Arc<Notify>,
    last_probe: Mutex<Option<LastProbe>>,
    /// How many probes have begun.
    probes: AtomicU64,
    /// Whether regular probes have ended although the backend is up, because another process takes over,
    /// or this one is about to end.
    unwatched: AtomicBool,
    /// Whether the configuration no longer contains the backend.
    retired: AtomicBool,
    /// Whether an operator or the configuration stopped the backend: it gets no requests, but is still
    /// probed.
    stopped: AtomicBool,
}

/// The state that each worker has for a backend.
#[derive(Debug, Default)]
struct Local {
    pool: Pool<Box<Connection>>,
    in_flight: Count,
    dialled: Count,
    dials_failed: Count,
    reused: Count,
    stale: Count,
    sent: Count,
    received: Count,
}

/// A connection that an exchange took from a pool.
enum PooledConnection {
    /// The exchange can use the connection at once.
    Ready(Box<Connection>),
    /// The connection was idle for so long that it must first be tested with CPING.
    Untested(Box<Connection>),
}

/// The future of a lease that is not ready at once.
type Waiting<'b> = Pin<Box<dyn Future<Output = Result<Lease<'b>, LeaseError>> + Send + 'b>>;

/// A lease that is ready, or the wait for one.
#[must_use]
pub enum Leasing<'b> {
    /// The lease of a pooled connection, which nearly every exchange gets.
    Done(Lease<'b>),
    /// A future that dials a connection, tests one with CPING, or waits for one. Boxed, so that it adds
    /// nothing to the future of an exchange.
    ///
    /// # Errors
    /// [`LeaseError`]; nothing was sent in any case.
    ///
    /// # Cancel safety
    /// If the future is dropped, a connection being dialled or tested is closed, and the place in the
    /// queue is left.
    Waiting(Waiting<'b>),
}

impl<'b> IntoFuture for Leasing<'b> {
    type Output = Result<Lease<'b>, LeaseError>;
    type IntoFuture = Waiting<'b>;

    fn into_future(self) -> Waiting<'b> {
        match self {
            Self::Done(lease) => Box::pin(std::future::ready(Ok(lease))),
            Self::Waiting(leasing) => leasing,
        }
    }
}

/// Counts of a backend's connections, exchanges and bytes, and its health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendCounts {
    /// Exchanges in flight, including those that wait for a connection and those abandoned.
    pub in_flight: usize,
    /// Exchanges whose client left while the backend may still process them.
    pub abandoned: usize,
    /// Exchanges abandoned since the start.
    pub abandoned_total: u64,
    /// Open connections, including unused ones.
    pub open: usize,
    /// The most connections that may be open.
    pub connections_max: usize,
    /// Open connections that no exchange uses.
    pub idle: usize,
    /// Exchanges that wait for a connection.
    pub waiting: usize,
    /// The most exchanges that may wait for a connection.
    pub queue_max: usize,
    /// Connections dialled since the start.
    pub dialled: u64,
    /// Dials that failed since the start.
    pub dials_failed: u64,
    /// Leases served by a pooled connection since the start.
    pub reused: u64,
    /// Pooled connections found closed, with unexpected bytes, or without an answer to CPING, since
    /// the start.
    pub stale: u64,
    /// Bytes that exchanges sent to the backend since the start, including heads and framing.
    pub sent: u64,
    /// Bytes that exchanges received from the backend since the start, including heads and framing.
    pub received: u64,
    /// The percentage of its weight that the backend gets now; 0 while it is out.
    pub share: u8,
    /// Whether others are preferred: this backend is silent, or it is unwell but serves because too many others are
    /// out.
    pub suspect: bool,
    /// Whether the backend is out because it does not answer CPING or its probes fail.
    pub unwell: bool,
    /// Whether the backend's connections use TLS without verifying its certificate.
    pub unverified: bool,
    /// Whether more of the upstream's weight is unwell than `unwell_max` allows to be out, so that
    /// unwell backends serve where no other can.
    pub panic: bool,
    /// How often the backend became suspect since the start.
    pub suspicions: u64,
    /// How often the backend was put out since the start.
    pub ejections: u64,
    /// How often the backend came back since the start.
    pub returns: u64,
    /// The total time for which the backend was out since the start; a current outage counts up to now.
    pub down: Duration,
    /// Probes that the backend answered since the start.
    pub probes_answered: u64,
    /// Probes that the backend did not answer since the start.
    pub probes_failed: u64,
}

/// Counts an exchange as in flight until dropped. An exchange borrows its backend, because a reference
/// count would be one more cache line that all workers change; one left behind owns its backend.
#[derive(Debug)]
pub(crate) struct InFlight<B: Borrow<Arc<Backend>>> {
    backend: B,
    worker: usize,
    /// Whether [`Backend::load`] counts this exchange.
    in_load: bool,
}

impl Backend {
    /// Creates a backend of the upstream with this name; `workers` is the number of workers. Nothing is
    /// dialled before the first lease.
    #[must_use]
    pub fn new(upstream: &str, config: BackendConfig, workers: usize) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        Arc::new(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            upstream: upstream.to_owned(),
            cap: Cap::new(config.connections_max, config.queue_max),
            workers: PerWorker::new(workers, |_| Local::default()),
            has_load: AtomicBool::new(false),
            load: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            tunnels: Arc::default(),
            abandoned_total: AtomicU64::new(0),
            health: SharedHealth::new(config.slow_start),
            idle_closures: IdleClosures::default(),
            sessions: ArcSwapOption::empty(),
            origin: Instant::now(),
            retired: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            settings: ArcSwap::new(Settings::new(config)),
            group: ArcSwapOption::empty(),
            refusal_logged: AtomicBool::new(false),
            unwatched: AtomicBool::new(false),
            sessions_logged: AtomicBool::new(false),
            findings: Mutex::default(),
            figures: Figures::new(workers),
            server_errors: AtomicU32::new(0),
            attention: Arc::default(),
            last_probe: Mutex::default(),
            probes: AtomicU64::new(0),
        })
    }

    /// The number of this backend, from 1 on, which no other backend of this process has.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The name of the upstream that this backend is a member of.
    #[must_use]
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// The settings that dials and probes use now; an exchange keeps those of its site.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Whether `config` describes this backend: the same upstream, protocol and address, and TLS or not.
    /// Other settings may differ.
    #[must_use]
    pub fn is_at(&self, upstream: &str, config: &BackendConfig) -> bool {
        let settings = self.settings.load();
        self.upstream == upstream
            && settings.protocol == config.protocol
            && settings.address == config.address
            && settings.tls.is_some() == config.tls.is_some()
    }

    /// The current settings with the changes of `config`, to be passed to [`Self::configure`]; until
    /// then nothing changes.
    #[must_use]
    pub fn plan(&self, config: &BackendConfig) -> Arc<Settings> {
        self.settings.load().followed_by(config.clone())
    }

    /// Applies settings that [`Self::plan`] made, and the group of the upstream's backends. Pools,
    /// health and counters stay. Unused connections are closed only if the packet size or the secret
    /// changed, or the cap was lowered.
    pub fn configure(&self, settings: Arc<Settings>, group: Arc<Group>) {
        self.group.store(Some(group));
        self.cap
            .resize(settings.connections_max, settings.queue_max);
        self.health.set_slow_start(settings.slow_start);
        let generation = settings.generation();
        self.settings.store(settings);
        // A new generation: connections with the earlier packet size, secret or TLS are not used again.
        if self.generation.swap(generation, Ordering::SeqCst) != generation {
            self.refusal_logged.store(false, Ordering::Relaxed);
            self.close_unused();
        }
        self.close_excess();
    }

    /// Exchanges in flight over all workers, including those that wait for a connection.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let of_worker = |local: &Local| local.in_flight.read();
        usize::try_from(self.workers.iter().map(of_worker).sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// Exchanges in flight as one number that all workers change, for a policy that reads it at every
    /// pick; [`Self::in_flight`] computes a sum. 0 unless [`Self::keep_load`] has turned it on.
    #[must_use]
    pub fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Turns the count of [`Self::load`] on or off for exchanges that begin from now on.
    pub fn keep_load(&self, kept: bool) {
        self.has_load.store(kept, Ordering::Relaxed);
    }

    /// Bytes that exchanges sent to the backend and received from it since the start.
    #[must_use]
    pub fn traffic(&self) -> u64 {
        let of_worker = |local: &Local| local.sent.read() + local.received.read();
        self.workers.iter().map(of_worker).sum()
    }

    /// Counters and latencies of this backend's requests.
    #[must_use]
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Takes a sample of the counters, from which rates and percentiles are computed. Call it once a
    /// second; `at` is the time since any fixed moment.
    pub fn sample_figures(&self, at: Duration) {
        let sum = |count: fn(&Local) -> u64| self.workers.iter().map(count).sum();
        let moved = Traffic {
            sent: sum(|local| local.sent.read()),
            received: sum(|local| local.received.read()),
        };
        self.figures.sample(at, moved);
    }

    /// Adds bytes that an exchange on `worker` sent and received to the counts.
    pub(crate) fn count_moved(&self, worker: usize, moved: Traffic) {
        let local = &self.workers[worker];
        local.sent.add(moved.sent);
        local.received.add(moved.received);
    }

    /// The current counts.
    #[must_use]
    pub fn counts(&self) -> BackendCounts {
        let health = self.health.counts();
        let settings = self.settings.load();
        let sum =
            |count: fn(&Local) -> &Count| self.workers.iter().map(count).map(Count::read).sum();
        BackendCounts {
            in_flight: self.in_flight(),
            abandoned: self.abandoned.load(Ordering::Relaxed),
            abandoned_total: self.abandoned_total.load(Ordering::Relaxed),
            open: self.cap.open(),
            connections_max: settings.connections_max,
            idle: self.pools().map(Pool::len).sum(),
            waiting: self.cap.waiting(),
            queue_max: settings.queue_max,
            dialled: sum(|local| &local.dialled),
            dials_failed: sum(|local| &local.dials_failed),
            reused: sum(|local| &local.reused),
            stale: sum(|local| &local.stale),
            sent: sum(|local| &local.sent),
            received: sum(|local| &local.received),
            share: self.share(),
            suspect: self.is_suspect(),
            unwell: matches!(self.health.standing(), Standing::Out(cause) if cause.is_pardonable()),
            unverified: self.has_unverified_tls(),
            panic: self.is_in_panic(),
            suspicions: health.suspicions,
            ejections: health.ejections,
            returns: health.returns,
            down: health.down,
            probes_answered: health.probes_answered,
            probes_failed: health.probes_failed,
        }
    }

    /// The number of tunnels that are open or being opened.
    pub(crate) fn tunnels(&self) -> &Arc<AtomicUsize> {
        &self.tunnels
    }

    fn has_unverified_tls(&self) -> bool {
        let settings = self.settings.load();
        settings.tls.as_ref().is_some_and(|trust| !trust.verifies())
    }

    pub(crate) fn health(&self) -> &SharedHealth {
        &self.health
    }

    pub(crate) fn group(&self) -> Option<Arc<Group>> {
        self.group.load_full()
    }

    pub(crate) fn attention(&self) -> &Arc<Notify> {
        &self.attention
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::SeqCst)
    }

    /// Whether more of the upstream's weight is unwell than `unwell_max` allows to be out. Unwell
    /// backends then serve where no other can.
    #[must_use]
    pub fn is_in_panic(&self) -> bool {
        let group = self.group.load();
        group.as_ref().is_some_and(|group| group.panics())
    }

    /// Ends regular probes while the backend is up, because another process takes over or this one is
    /// about to end. The backend is still probed while it is out or suspect.
    pub fn unwatch(&self) {
        self.unwatched.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_watched(&self) -> bool {
        !self.unwatched.load(Ordering::Relaxed) && self.settings.load().probe.is_some()
    }

    /// The last probe; `None`: there was none.
    #[must_use]
    pub fn last_probe(&self) -> Option<LastProbe> {
        self.lock_last_probe().clone()
    }

    /// Stores `probe` as the last one, unless a probe that began later has already ended.
    pub(crate) fn set_last_probe(&self, probe: LastProbe) {
        let mut last = self.lock_last_probe();
        if last.as_ref().is_none_or(|last| last.number < probe.number) {
            *last = Some(probe);
        }
    }

    /// Returns the number for a probe that begins.
    pub(crate) fn next_probe(&self) -> u64 {
        self.probes.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn lock_last_probe(&self) -> MutexGuard<'_, Option<LastProbe>> {
        self.last_probe
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller has to log that probes begin sessions: `true` at the first call only.
    pub(crate) fn claim_sessions_warning(&self) -> bool {
        !self.sessions_logged.swap(true, Ordering::Relaxed)
    }

    /// Whether at least as many exchanges are in flight as the backend may have connections.
    pub(crate) fn is_saturated(&self) -> bool {
        self.in_flight() >= self.settings.load().connections_max
    }

    /// Whether the caller has to log that the secret may be wrong: `true` at the first call only.
    pub(crate) fn claim_refusal_warning(&self) -> bool {
        !self.refusal_logged.swap(true, Ordering::Relaxed)
    }

    /// Returns a connection for one exchange on `worker`: a pooled one that is still quiet, if `reuse`
    /// allows it, else a new one, else the first that becomes free. `settings` are those with which the
    /// exchange began. `now` is the time, coarse or exact.
    pub fn lease<'b>(
        self: &'b Arc<Self>,
        settings: &'b Settings,
        worker: usize,
        reuse: Reuse,
        now: Instant,
    ) -> Leasing<'b> {
        let in_flight = InFlight::begin(self, worker);
        let untested = match self.take_quiet(settings, worker, reuse, now) {
            Some(PooledConnection::Ready(conn)) => {
                return Leasing::Done(Lease::new(conn, in_flight, true));
            }
            Some(PooledConnection::Untested(conn)) => Some(conn),
            None => None,
        };
        Leasing::Waiting(Box::pin(self.lease_slowly(settings, untested, in_flight)))
    }

    /// Tests a pooled connection that was idle for long with CPING; dials another if that fails, or if
    /// there is none.
    async fn lease_slowly<'b>(
        self: &'b Arc<Self>,
        settings: &Settings,
        untested: Option<Box<Connection>>,
        in_flight: InFlight<&'b Arc<Self>>,
    ) -> Result<Lease<'b>, LeaseError> {
        let worker = in_flight.worker();
        if let Some(mut conn) = untested {
            if conn.ping(settings).await.is_ok() {
                self.note_pong();
                self.workers[worker].reused.increment();
                return Ok(Lease::new(conn, in_flight, true));
            }
            self.workers[worker].stale.increment();
            // Other pooled connections were idle for longer, and each CPING may take a
            // `ping_timeout`.
            self.verify();
        }
        self.lease_fresh(settings, in_flight).await
    }

    /// Dials a connection, or gets one that another exchange no longer needs.
    async fn lease_fresh<'b>(
        self: &'b Arc<Self>,
        settings: &Settings,
        in_flight: InFlight<&'b Arc<Self>>,
    ) -> Result<Lease<'b>, LeaseError> {
        let worker = in_flight.worker();
        match self.permit(settings, worker).await? {
            Grant::Connection(conn) => Ok(Lease::new(conn, in_flight, true)),
            Grant::Permit(permit) => {
                let began = Instant::now();
                let dialled = self.dial(settings, worker, permit).await;
                let conn = dialled.inspect_err(|error| self.note_failed_dial(error, began))?;
                Ok(Lease::new(conn, in_flight, false))
            }
        }
    }

    /// Takes the most recently used of the pooled connections that are quiet.
    fn take_quiet(
        &self,
        settings: &Settings,
        worker: usize,
        reuse: Reuse,
        now: Instant,
    ) -> Option<PooledConnection> {
        if reuse == Reuse::Never {
            return None;
        }
        let local = &self.workers[worker];
        loop {
            let (conn, idle) = local.pool.take(now, settings.idle_timeout)?;
            if self.is_outdated(&conn) {
                continue;
            }
            if !conn.is_quiet(reuse) {
                local.stale.increment();
                self.idle_closures.note(idle, now);
                continue;
            }
            if reuse == Reuse::Lasting && self.idle_closures.threaten(idle, now) {
                // The exchange opens a new connection, which is pooled later. This one is closed, or the pool would
                // grow with each such request.
                return None;
            }
            let limit = settings.ajp.ping_after_idle;
            let is_test_due = limit.is_some_and(|limit| idle >= limit);
            if is_test_due && conn.can_ping() && !self.ignores_cping() {
                return Some(PooledConnection::Untested(conn));
            }
            local.reused.increment();
            return Some(PooledConnection::Ready(conn));
        }
    }

    /// Returns a permit to open a connection. If there is none, closes an unused connection of another
    /// worker, or waits for a permit or a connection.
    async fn permit(
        &self,
        settings: &Settings,
        worker: usize,
    ) -> Result<Grant<Box<Connection>>, LeaseError> {
        loop {
            if let Some(permit) = self.cap.try_permit() {
                return Ok(Grant::Permit(permit));
            }
            // Closing an unused connection frees its permit, for which another exchange may be faster.
            if !self.evict_one() {
                break;
            }
        }
        let queue_full = |QueueFull| LeaseError::QueueFull {
            connections: settings.connections_max,
            queue: settings.queue_max,
        };
        let place = match self.cap.enqueue(worker).map_err(queue_full)? {
            Place::Granted(permit) => return Ok(Grant::Permit(permit)),
            Place::Queued(place) => place,
        };
        // A connection freed just before joining the queue went to its pool; its permit comes to this place.
        self.evict_one();
        let limit = settings.queue_timeout;
        let began = Instant::now();
        let granted = timeout(limit, place).await;
        self.figures.queued(worker, began.elapsed());
        match granted {
            Ok(Some(grant)) => Ok(grant),
            Ok(None) | Err(_) => Err(LeaseError::QueueTimeout { limit }),
        }
    }

    /// Closes an unused connection of any worker, so that its permit becomes free; `false` if there is
    /// none.
    fn evict_one(&self) -> bool {
        self.pools().find_map(Pool::evict).is_some()
    }

    /// Opens a connection with `permit`, and tests it with CPING if `ping_fresh` is set.
    async fn dial(
        &self,
        settings: &Settings,
        worker: usize,
        permit: Permit<Box<Connection>>,
    ) -> Result<Box<Connection>, LeaseError> {
        let local = &self.workers[worker];
        let (address, trust) = settings.end();
        let limit = settings.connect_timeout;
        let dialled = dial(address, trust, settings.name(), limit).await;
        let stream = dialled.inspect_err(|_| local.dials_failed.increment())?;
        local.dialled.increment();
        let conn = Connection::new(stream, settings, Some(permit));
        let mut conn = Box::new(conn.of_generation(settings.generation()));
        if settings.ajp.ping_fresh {
            conn.ping(settings)
                .await
                .map_err(|how| LeaseError::Ping { how })?;
        }
        Ok(conn)
    }

    /// Whether the connection was opened with settings of an earlier generation.
    fn is_outdated(&self, conn: &Connection) -> bool {
        conn.generation() != self.generation.load(Ordering::Relaxed)
    }

    /// Returns a connection whose exchange has ended to its pool, gives it to a waiting exchange, or
    /// closes it.
    pub(crate) fn restore(&self, mut conn: Box<Connection>, worker: usize, now: Instant) {
        if !conn.settle() || conn.is_for_tunnel() || self.is_outdated(&conn) {
            return; // Dropping the connection closes it, and passes its permit on.
        }
        // One atomic load; the queue's lock is taken only if an exchange waits.
        if self.cap.is_awaited() {
            match self.cap.hand_over(worker, conn) {
                Some(unwanted) => conn = unwanted,
                None => return,
            }
        }
        self.workers[worker].pool.put(conn, now);
        // Looked at after the connection is in the pool: a stop at the same time misses no connection.
        if self.is_retired() || self.stopped.load(Ordering::SeqCst) {
            self.close_unused();
        }
    }

    /// Retires the backend: closes unused connections, now and as exchanges end, and probes it no
    /// longer. Exchanges in flight, and those that still arrive, are served.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::SeqCst);
        self.close_unused();
    }

    /// Closes unused connections like [`Self::retire`], but goes on probing, so that its health is known
    /// when it serves again.
    pub fn stop(&self) {
        self.retired.store(false, Ordering::SeqCst);
        self.stopped.store(true, Ordering::SeqCst);
        // A stopped backend serves no requests, even if too many others are out.
        self.health.pardon(false);
        self.close_unused();
    }

    /// Turns the counting of sessions on: each counts until `timeout` has passed since it was last seen;
    /// `None` turns it off. Sessions that were counted before still count.
    pub fn count_sessions(&self, timeout: Option<Duration>) {
        let Some(timeout) = timeout else {
            self.sessions.store(None);
            return;
        };
        let now = self.origin.elapsed();
        let sessions = match self.sessions.load_full() {
            Some(counted) if counted.timeout() == timeout => return,
            Some(counted) => counted.with_timeout(timeout, now),
            None => Sessions::new(timeout, now),
        };
        self.sessions.store(Some(Arc::new(sessions)));
    }

    /// Counts a session that this backend began or holds; `now` may be coarse.
    pub fn note_session(&self, id: &[u8], now: Instant) {
        if let Some(sessions) = &*self.sessions.load() {
            sessions.note(id, now.saturating_duration_since(self.origin));
        }
    }

    /// Counts a session that a request names. [`Sessions::note_claim`] decides which ids count.
    pub fn note_claim(&self, id: &[u8], now: Instant) {
        if let Some(sessions) = &*self.sessions.load() {
            sessions.note_claim(id, now.saturating_duration_since(self.origin));
        }
    }

    /// The sessions seen lately and the current time on their clock; `None` if sessions are not counted.
    #[must_use]
    pub fn sessions(&self) -> Option<(Arc<Sessions>, Moment)> {
        Some((self.sessions.load_full()?, self.origin.elapsed()))
    }

    /// Reverses [`Self::retire`] and [`Self::stop`]: exchanges are expected again.
    pub fn resume(&self) {
        self.retired.store(false, Ordering::SeqCst);
        self.stopped.store(false, Ordering::SeqCst);
    }

    /// Closes the unused connections of all workers; returns how many.
    pub(crate) fn close_unused(&self) -> usize {
        let mut count = 0;
        while self.evict_one() {
            count += 1;
        }
        count
    }

    fn pools(&self) -> impl Iterator<Item = &Pool<Box<Connection>>> {
        self.workers.iter().map(|local| &local.pool)
    }

    /// Closes unused connections while more are open than the lowered cap allows.
    fn close_excess(&self) {
        while self.cap.is_exceeded() && self.evict_one() {}
    }

    /// Closes the worker's pooled connections that are too old or that the backend has closed, and
    /// starts a keeper if the backend needs one and has none. Must be called regularly.
    pub fn sweep(self: &Arc<Self>, worker: usize) {
        self.note_unresolved();
        // A backend needs a keeper if it is probed while it is up, or is out or suspect.
        if !self.is_retired() && (self.is_watched() || self.share() == 0 || self.is_suspect()) {
            self.keep();
        }
        self.close_excess();
        let settings = self.settings.load();
        let pool = &self.workers[worker].pool;
        let closed = pool.sweep(Instant::now(), settings.idle_timeout, |conn| {
            conn.is_quiet(Reuse::Lasting) && !self.is_outdated(conn)
        });
        if closed > 0 {
            let (upstream, backend) = (&self.upstream, &settings.name);
            tracing::debug!(upstream, backend, closed, "closed unused connections");
        }
    }
}

impl<B: Borrow<Arc<Backend>>> InFlight<B> {
    /// Counts an exchange in flight until the value is dropped. It counts for `load` only if balancing uses that; what
    /// was counted is remembered, since the setting may change meanwhile.
    pub(crate) fn begin(backend: B, worker: usize) -> Self {
        let shared = backend.borrow();
        let in_load = shared.has_load.load(Ordering::Relaxed);
        if in_load {
            shared.load.fetch_add(1, Ordering::Relaxed);
        }
        shared.workers[worker].in_flight.increment();
        Self {
            backend,
            worker,
            in_load,
        }
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        self.backend.borrow()
    }

    /// The index of the worker on which the exchange runs.
    pub(crate) fn worker(&self) -> usize {
        self.worker
    }

    /// Counts the exchange on through a value that owns the backend.
    pub(crate) fn into_owned(self) -> InFlight<Arc<Backend>> {
        InFlight::begin(Arc::clone(self.backend()), self.worker)
    }
}

impl<B: Borrow<Arc<Backend>>> Drop for InFlight<B> {
    fn drop(&mut self) {
        let backend = self.backend.borrow();
        backend.workers[self.worker].in_flight.decrement();
        if self.in_load {
            backend.load.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
