//! A worker: the state that the connections of one thread share.
//!
//! On the hot path workers share only atomics and the immutable site. Each is one thread with one event loop
//! ([`crate::serve::event_loop`]). `admission` decides which connections a worker accepts.

pub(crate) mod background;
pub(crate) mod encoders;
pub(crate) mod files;
pub(crate) mod handshakes;
pub(crate) mod in_flight;
pub(crate) mod passwords;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use arc_swap::cache::Cache;
use catamaran_tls::KeyLog;
use catamaran_transport::PerWorker;
use tokio::time::Instant;

use crate::access_log::AccessLog;
use crate::config::LiveCount;
use crate::control::Control;
use crate::control::events::{Events, Kind};
use crate::counters::{Counters, Culprit, Reason, WorkerCounters};
use crate::deadlines::{Deadlines, Tick};
use crate::limits::{Limit, Limits};
use crate::line_queue::LineQueue;
use crate::listener::admission::{Admission, ShedPolicy};
use crate::listener::drain::Drain;
use crate::lock::lock;
use crate::request_id::{RequestId, RequestIds};
use crate::site::Site;
use crate::site::retired::RetiredBackends;
use crate::tls::Profiles;
use crate::tls::acme::IssuanceFigures;
use crate::tls::acme::memory::MemoryFiles;
use crate::traces::Traces;
use crate::worker::background::Background;
use crate::worker::encoders::EncoderMemory;
use crate::worker::files::WorkerFiles;
use crate::worker::handshakes::{FailureLog, Handshakes};
use crate::worker::in_flight::InFlight;
use crate::worker::passwords::Passwords;

/// The state of the front that all workers share.
#[derive(Debug)]
pub(crate) struct FrontState {
    /// When the front started; all workers' coarse clocks count from then.
    pub(crate) began: Instant,
    /// When the first process of this front began, in seconds of the Unix epoch; upgrades keep it.
    pub(crate) since: u64,
    pub(crate) site: Arc<ArcSwap<Site>>,
    /// Backends that reloads removed and that still have exchanges.
    pub(crate) retired: RetiredBackends,
    /// The current TLS profiles, by name.
    pub(crate) profiles: ArcSwap<Profiles>,
    /// Writes the secrets of all TLS sessions (`tls_key_log`); `None`: they are not written.
    pub(crate) key_log: Option<Arc<KeyLog>>,
    /// The queue to which `key_log` writes.
    pub(crate) key_lines: Option<LineQueue>,
    /// The names that get certificates by ACME.
    pub(crate) issuance: IssuanceFigures,
    /// What of their certificates the disk does not take.
    pub(crate) issued_memory: Arc<MemoryFiles>,
    pub(crate) access_log: AccessLog,
    pub(crate) traces: Traces,
    /// The queue of this process's own log, if the program set one.
    pub(crate) own_log: OnceLock<LineQueue>,
    pub(crate) failure_log: FailureLog,
    /// The state that operators change while the front runs.
    pub(crate) control: Control,
    pub(crate) counters: Counters,
    pub(crate) admission: Admission,
    /// When clients were turned away at limits of the front.
    pub(crate) limits: Limits,
    /// The number of bytes that encoders of responses hold.
    pub(crate) encoder_memory: EncoderMemory,
    /// The passwords of users that are checked and that were right.
    pub(crate) passwords: Passwords,
    /// Figures that are kept only for administrators: times of responses, and requests in flight.
    pub(crate) figures: RequestFigures,
    /// Whether the drain is about to begin: the front still serves, but answers that it is not ready.
    pub(crate) leaving: AtomicBool,
    /// The drain of the whole front. Each listener has its own drain, which begins with this one at the
    /// latest.
    pub(crate) drain: Drain,
}

impl FrontState {
    /// Whether the front drains, or is about to, and so should get no new clients.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed) || self.drain.has_begun()
    }

    /// Counts a client that is turned away at a limit of the front; the first one and then one line every 10 s
    /// are logged.
    pub(crate) fn turn_away(&self, limit: Limit) {
        let reason = Reason::new(Culprit::Front, limit.token());
        self.counters.reason(reason);
        let Some(clients) = self.limits.turn_away(limit, self.began.elapsed()) else {
            return;
        };
        let words = limit.words();
        tracing::warn!(%reason, clients, "clients are turned away: {words}; told every 10 s while it lasts");
        if clients == 1 {
            let text = format!("clients are turned away ({reason}): {words}");
            self.control.events.push(Kind::Health, "", "", text);
        }
    }
}

/// Figures of requests besides the counters, which are kept only if there is an admin listener.
#[derive(Debug)]
pub(crate) struct RequestFigures {
    kept: AtomicBool,
    in_flight: PerWorker<InFlight>,
}

impl RequestFigures {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            kept: AtomicBool::new(false),
            in_flight: PerWorker::new(workers, |_| InFlight::default()),
        }
    }

    /// Turns the recording of figures on, because there is an admin listener that shows them.
    pub(crate) fn start_recording(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    fn are_kept(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    /// The requests in flight, worker by worker.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &InFlight> {
        self.in_flight.iter()
    }
}

/// A worker's own reference to the site. Requests count their references to this, not to the site itself,
/// whose count would be one more cache line that all workers change.
#[derive(Debug)]
pub(crate) struct OwnSite(Arc<Site>);

impl Deref for OwnSite {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.0
    }
}

/// The site that a worker loaded last, and the cache that tells whether it is still current.
#[derive(Debug)]
struct KnownSite {
    shared: Cache<Arc<ArcSwap<Site>>, Arc<Site>>,
    own: Arc<OwnSite>,
}

impl KnownSite {
    fn new(site: &Arc<ArcSwap<Site>>) -> Self {
        Self {
            shared: Cache::new(Arc::clone(site)),
            own: Arc::new(OwnSite(site.load_full())),
        }
    }

    /// The current site. A single atomic load shows whether it was replaced.
    fn current(&mut self) -> Arc<OwnSite> {
        let site = self.shared.load();
        if !Arc::ptr_eq(site, &self.own.0) {
            self.own = Arc::new(OwnSite(Arc::clone(site)));
        }
        Arc::clone(&self.own)
    }
}

#[derive(Debug)]
pub(crate) struct Worker {
    index: usize,
    /// The site that the worker loaded last. The mutex is never contended: only the worker's thread locks it.
    site: Mutex<KnownSite>,
    ids: RequestIds,
    deadlines: Arc<Deadlines>,
    shedding: ShedPolicy,
    handshakes: Handshakes,
    files: WorkerFiles,
    background: Background,
    shared: Arc<FrontState>,
}

impl Worker {
    pub(crate) fn new(index: usize, shared: Arc<FrontState>) -> Self {
        Self {
            index,
            site: Mutex::new(KnownSite::new(&shared.site)),
            ids: RequestIds::new(),
            deadlines: Deadlines::new(shared.began),
            shedding: ShedPolicy::default(),
            handshakes: Handshakes::default(),
            files: WorkerFiles::default(),
            background: Background::default(),
            shared,
        }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn next_id(&self) -> RequestId {
        self.ids.next()
    }

    /// The current site, which a request keeps until it ends.
    pub(crate) fn site(&self) -> Arc<OwnSite> {
        let mut known = lock(&self.site);
        known.current()
    }

    /// What of issued certificates, and of answers to challenges, the disk does not take.
    pub(crate) fn issued_memory(&self) -> &MemoryFiles {
        &self.shared.issued_memory
    }

    pub(crate) fn access_log(&self) -> &AccessLog {
        &self.shared.access_log
    }

    /// The state of traces that all workers share.
    pub(crate) fn traces(&self) -> &Traces {
        &self.shared.traces
    }

    /// The most recent events, for administrators.
    pub(crate) fn events(&self) -> &Events {
        &self.shared.control.events
    }

    /// The requests that this worker serves, recorded for administrators; `None` if there is no admin
    /// listener.
    pub(crate) fn in_flight(&self) -> Option<&InFlight> {
        let figures = &self.shared.figures;
        figures.are_kept().then(|| &figures.in_flight[self.index])
    }

    /// Whether the arrival time of responses' heads must be recorded.
    pub(crate) fn keeps_times(&self) -> bool {
        self.shared.figures.are_kept()
    }

    /// The counters of this worker.
    pub(crate) fn counters(&self) -> &WorkerCounters {
        self.shared.counters.of(self.index)
    }

    /// A count of the whole front. Requests in flight are counted only if there is an admin listener.
    pub(crate) fn live_count(&self, which: LiveCount) -> u64 {
        let shared = &self.shared;
        let open = shared.admission.open() as u64;
        let in_flight = || {
            let all = shared.figures.in_flight();
            all.map(|it| it.slowest(0).1 as u64).sum::<u64>()
        };
        match which {
            LiveCount::Open => open,
            LiveCount::Accepted => shared.counters.snapshot(0).accepted,
            LiveCount::Requests => shared.counters.snapshot(0).requests,
            LiveCount::InFlight => in_flight(),
            LiveCount::Idle => open.saturating_sub(in_flight()),
        }
    }

    /// The TLS handshakes that this worker has under way.
    pub(crate) fn handshakes(&self) -> &Handshakes {
        &self.handshakes
    }

    /// The files that this worker keeps open or in memory, and its threads for reading files.
    pub(crate) fn files(&self) -> &WorkerFiles {
        &self.files
    }

    /// The memory that the encoders of all workers hold.
    pub(crate) fn encoder_memory(&self) -> &EncoderMemory {
        &self.shared.encoder_memory
    }

    /// The passwords of users that are checked and that were right, for all workers.
    pub(crate) fn passwords(&self) -> &Passwords {
        &self.shared.passwords
    }

    /// The worker's tasks that belong to no connection.
    pub(crate) fn background(&self) -> &Background {
        &self.background
    }

    /// When failed connections were last logged, for all workers.
    pub(crate) fn failure_log(&self) -> &FailureLog {
        &self.shared.failure_log
    }

    /// Counts a client that is turned away at a limit of the front; the first one and then one line every 10 s
    /// are logged.
    pub(crate) fn turn_away(&self, limit: Limit) {
        self.shared.turn_away(limit);
    }

    /// Counts a refusal or a failure by its reason.
    pub(crate) fn count(&self, reason: Reason) {
        self.counters().reason(reason);
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.shared.admission
    }

    /// The drain of the whole front.
    pub(crate) fn drain(&self) -> &Drain {
        &self.shared.drain
    }

    /// The deadlines of this worker's connections.
    pub(crate) fn deadlines(&self) -> &Arc<Deadlines> {
        &self.deadlines
    }

    /// Whether a client that has been idle since this moment must be closed, because file descriptors run out.
    pub(crate) fn sheds(&self, since: Tick) -> bool {
        self.shedding.concerns(since)
    }

    /// Has clients closed that have been idle for a second, to free descriptors.
    pub(crate) fn shed_idle(&self) {
        self.shedding.begin(self.deadlines.now());
        self.deadlines.wake_all();
    }
}
