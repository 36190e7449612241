//! A backend's health, shared by all workers.
//!
//! [`catamaran_balance::health`] has the rules. This module has the clock, the lock around the state machine, and
//! the state that is read without the lock: a pick loads one atomic while the backend is well. The lock is taken
//! when something has failed, and by the keeper, and never held across an await.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_balance::health::{
    Condition, Health, Moment, Outcome, SHARE_FULL, Standing, Task, Watch, share,
};
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct SharedHealth {
    /// [`WELL`], [`SUSPECT`], [`UNWELL`], [`OUT`], or the time in milliseconds when the backend came back, plus one.
    view: AtomicU64,
    /// When a byte last arrived on any connection, by the readers' coarse clock.
    heard: AtomicU64,
    /// The value of `heard` when the backend became suspect; a later byte ends the suspicion.
    heard_before: AtomicU64,
    /// Whether the backend serves although it is unwell, because too many others are out.
    pardoned: AtomicBool,
    /// Whether its last probe failed but did not put it out, because too many others are out.
    spared: AtomicBool,
    state: Mutex<Health>,
    /// When this was created; all moments count from then.
    origin: Instant,
    /// How long the share of the backend grows after it was out, in milliseconds.
    slow_start: AtomicU64,
    /// Whether requests found no other backend since the last probe.
    wanted: AtomicBool,
    ejections: AtomicU64,
    returns: AtomicU64,
    suspicions: AtomicU64,
    /// When the backend was put out, in milliseconds after `origin`, plus one; 0 if it is not out.
    out_since: AtomicU64,
    /// The total time for which the backend was out, in milliseconds, without the current outage.
    down: AtomicU64,
    probes_answered: AtomicU64,
    probes_failed: AtomicU64,
}

/// Counts of the changes of a backend's health, and of its probes, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HealthCounts {
    pub(crate) ejections: u64,
    pub(crate) returns: u64,
    pub(crate) suspicions: u64,
    /// The total time for which the backend was out, including the current outage.
    pub(crate) down: Duration,
    pub(crate) probes_answered: u64,
    pub(crate) probes_failed: u64,
}

impl SharedHealth {
    pub(crate) fn new(slow_start: Duration) -> Self {
        Self {
            view: AtomicU64::new(WELL),
            heard: AtomicU64::new(0),
            heard_before: AtomicU64::new(0),
            pardoned: AtomicBool::new(false),
            spared: AtomicBool::new(false),
            state: Mutex::default(),
            origin: Instant::now(),
            slow_start: AtomicU64::new(millis(slow_start)),
            wanted: AtomicBool::new(false),
            ejections: AtomicU64::new(0),
            returns: AtomicU64::new(0),
            suspicions: AtomicU64::new(0),
            out_since: AtomicU64::new(0),
            down: AtomicU64::new(0),
            probes_answered: AtomicU64::new(0),
            probes_failed: AtomicU64::new(0),
        }
    }

    pub(crate) fn set_slow_start(&self, slow_start: Duration) {
        self.slow_start.store(millis(slow_start), Ordering::Relaxed);
    }

    /// The percentage of its weight that the backend gets now; 0 while it is out.
    pub(crate) fn share(&self) -> u8 {
        match self.view.load(Ordering::Relaxed) {
            WELL | SUSPECT => SHARE_FULL,
            UNWELL if self.is_pardoned() => SHARE_FULL,
            UNWELL | OUT => 0,
            returned => self.ramping(returned),
        }
    }

    /// Whether other backends are preferred: this one is suspect and no byte has arrived since, or it is out but
    /// serves because too many others are out.
    pub(crate) fn is_suspect(&self) -> bool {
        match self.view.load(Ordering::Relaxed) {
            SUSPECT => !self.is_heard(),
            UNWELL => self.is_pardoned(),
            _ => false,
        }
    }

    /// Whether the backend is out, even if it serves because too many others are out.
    pub(crate) fn is_out(&self) -> bool {
        matches!(self.view.load(Ordering::Relaxed), UNWELL | OUT)
    }

    /// Whether the backend is unwell: it is out because of missing or wrong answers, or it is not put out only
    /// because too many others are out.
    pub(crate) fn is_unwell(&self) -> bool {
        match self.view.load(Ordering::Relaxed) {
            UNWELL => true,
            SUSPECT => self.spared.load(Ordering::Relaxed),
            _ => false,
        }
    }

    pub(crate) fn is_pardoned(&self) -> bool {
        self.pardoned.load(Ordering::Relaxed)
    }

    pub(crate) fn pardon(&self, pardoned: bool) {
        self.pardoned.store(pardoned, Ordering::Relaxed);
    }

    /// Records whether the last probe failed without putting the backend out, only because too many others are out.
    pub(crate) fn spare(&self, spared: bool) {
        self.spared.store(spared, Ordering::Relaxed);
    }

    /// The backend's condition (see [`Health::condition`]), and the current moment by the clock that it uses.
    pub(crate) fn condition(&self) -> (Condition, Moment) {
        (self.lock().condition(), self.now())
    }

    /// Sets how the backend is probed while it is up, unless it is set already.
    pub(crate) fn begin_watch(&self, watch: impl FnOnce() -> Option<Watch>) {
        let mut health = self.lock();
        if !health.is_watched() {
            health.watch(watch());
        }
    }

    /// Sets how the backend is probed while it is up; `None`: it is not.
    pub(crate) fn watch(&self, watch: Option<Watch>) {
        self.lock().watch(watch);
    }

    /// Whether a byte has arrived since the backend became suspect.
    pub(crate) fn is_heard(&self) -> bool {
        self.heard() != self.heard_before.load(Ordering::Relaxed)
    }

    /// Records that bytes were read at `at`, by a coarse clock that all workers share. It is called with each read,
    /// and costs one load, and one store for each step of the clock.
    pub(crate) fn note_heard(&self, at: u64) {
        if at > self.heard() {
            self.heard.store(at, Ordering::Relaxed);
        }
    }

    /// When a byte last arrived on any connection, by the clock of [`Self::note_heard`].
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    pub(crate) fn standing(&self) -> Standing {
        self.lock().standing()
    }

    /// Records that requests find no backend but this one, which is out, so that it is probed sooner.
    pub(crate) fn want(&self) {
        // Loaded before it is stored: many requests at once must not contend for the cache line.
        if !self.wanted.load(Ordering::Relaxed) {
            self.wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Records that a dial begun at `began` failed; `true` if that puts the backend out.
    pub(crate) fn connect_failed(&self, began: Instant) -> bool {
        let began = began.saturating_duration_since(self.origin);
        let now = self.now();
        self.change(|health| health.connect_failed(began, now))
    }

    /// Records that too many responses in a row were 5xx; `true` if that puts the backend out.
    pub(crate) fn erring(&self) -> bool {
        let now = self.now();
        self.change(|health| health.erring(now))
    }

    /// Records that an exchange failed after its request was sent; `true` if a probe must be made now.
    pub(crate) fn verify(&self) -> bool {
        let now = self.now();
        self.change(|health| health.verify(now))
    }

    /// Records that no byte arrived for too long while an exchange awaits its answer; `true` if that changes the
    /// state.
    pub(crate) fn silent(&self) -> bool {
        self.change(|health| {
            // If the backend is suspect already, a byte has arrived since: the suspicion begins anew.
            self.heard_before.store(self.heard(), Ordering::Relaxed);
            health.silent()
        })
    }

    /// Whether a keeper must be started; see [`Health::needs_keeper`].
    pub(crate) fn needs_keeper(&self) -> bool {
        self.change(Health::needs_keeper)
    }

    /// Records that the keeper has ended; see [`Health::resign`].
    pub(crate) fn resign(&self) {
        self.change(Health::resign);
    }

    /// The keeper's next task. `in_use`: the backend has exchanges in flight. A byte that arrived since the backend
    /// became suspect ends the suspicion first.
    pub(crate) fn next(&self, in_use: bool) -> Task {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let now = self.now();
        let task = self.change(|health| {
            if self.is_heard() {
                health.heard();
            }
            health.next(now, wanted, in_use)
        });
        if task == Task::Probe {
            // The probe answers the requests that wanted it.
            self.wanted.store(false, Ordering::Relaxed);
        }
        task
    }

    /// Records the outcome of a probe by the keeper.
    pub(crate) fn probed(&self, outcome: Outcome) {
        self.count(outcome);
        let now = self.now();
        self.change(|health| health.probed(now, outcome));
    }

    /// Records the outcome of a probe that an operator asked for.
    pub(crate) fn probed_for_operator(&self, outcome: Outcome) {
        self.count(outcome);
        let now = self.now();
        self.change(|health| health.probed_for_operator(now, outcome));
    }

    /// Whether a probe must find out if the backend is well: an exchange failed, or the backend is silent.
    pub(crate) fn is_doubted(&self) -> bool {
        match self.standing() {
            Standing::Suspect => !self.is_heard(),
            _ => self.condition().0 == Condition::Verifying,
        }
    }

    fn count(&self, outcome: Outcome) {
        match outcome {
            Outcome::Answered | Outcome::Connected => {
                self.probes_answered.fetch_add(1, Ordering::Relaxed)
            }
            Outcome::Failed | Outcome::Silent { .. } | Outcome::Wrong { .. } => {
                self.probes_failed.fetch_add(1, Ordering::Relaxed)
            }
            Outcome::NotMade => 0,
        };
    }

    pub(crate) fn counts(&self) -> HealthCounts {
        HealthCounts {
            ejections: self.ejections.load(Ordering::Relaxed),
            returns: self.returns.load(Ordering::Relaxed),
            suspicions: self.suspicions.load(Ordering::Relaxed),
            down: self.down(),
            probes_answered: self.probes_answered.load(Ordering::Relaxed),
            probes_failed: self.probes_failed.load(Ordering::Relaxed),
        }
    }

    /// The total time for which the backend was out, including the current outage.
    fn down(&self) -> Duration {
        let past_outages = Duration::from_millis(self.down.load(Ordering::Relaxed));
        match self.out_since.load(Ordering::Relaxed) {
            0 => past_outages,
            since_plus_one => {
                let since = Duration::from_millis(since_plus_one - 1);
                past_outages + self.now().saturating_sub(since)
            }
        }
    }

    /// The share of a backend that came back at the time in `view`. Sets `view` to [`WELL`] once the share is full.
    fn ramping(&self, view: u64) -> u8 {
        // `view` is that time plus one, because 0 is `WELL`.
        let returned = Duration::from_millis(view - 1);
        let slow_start = Duration::from_millis(self.slow_start.load(Ordering::Relaxed));
        let share = share(self.now().saturating_sub(returned), slow_start);
        if share == SHARE_FULL {
            // Another worker was faster: it has put the backend out, or done the same.
            let _ = self
                .view
                .compare_exchange(view, WELL, Ordering::Relaxed, Ordering::Relaxed);
        }
        share
    }

    /// Applies `change` to the state machine and returns its result. If the standing is another then, also updates the
    /// counts, and `view`, which picks read without the lock.
    fn change<T>(&self, change: impl FnOnce(&mut Health) -> T) -> T {
        let mut health = self.lock();
        let before = health.standing();
        let value = change(&mut health);
        let after = health.standing();
        if before == after {
            return value;
        }
        let was_out = matches!(before, Standing::Out(_));
        let is_out = matches!(after, Standing::Out(_));
        if is_out && !was_out {
            self.ejections.fetch_add(1, Ordering::Relaxed);
            // Plus one, because 0 stands for a backend that is not out.
            self.out_since
                .store(millis(self.now()) + 1, Ordering::Relaxed);
        }
        if was_out && !is_out {
            let since = self.out_since.swap(0, Ordering::Relaxed);
            let outage = (millis(self.now()) + 1).saturating_sub(since);
            self.down.fetch_add(outage, Ordering::Relaxed);
        }
        // From out to suspect is no return: the backend has not proved that it is well.
        if was_out && matches!(after, Standing::Up(_)) {
            self.returns.fetch_add(1, Ordering::Relaxed);
        }
        if after == Standing::Suspect {
            self.suspicions.fetch_add(1, Ordering::Relaxed);
            self.heard_before.store(self.heard(), Ordering::Relaxed);
        }
        self.view.store(view_of(after), Ordering::Relaxed);
        value
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Moment {
        self.origin.elapsed()
    }
}

/// The value of `view` for a standing. If the backend came back, it is that time plus one ms, below all special values.
fn view_of(standing: Standing) -> u64 {
    match standing {
        Standing::Up(None) => WELL,
        Standing::Up(Some(returned)) => millis(returned).saturating_add(1).min(UNWELL - 1),
        Standing::Suspect => SUSPECT,
        Standing::Out(cause) if cause.is_pardonable() => UNWELL,
        Standing::Out(_) => OUT,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The value of `view` for a backend that is up and gets its full share.
const WELL: u64 = 0;

/// The value of `view` for a backend that is picked only if no other can be, unless a byte has arrived since.
const SUSPECT: u64 = OUT - 1;

/// The value of `view` for a backend that is not picked, unless too many others are out.
const UNWELL: u64 = SUSPECT - 1;

/// The value of `view` for a backend that is not picked.
const OUT: u64 = u64::MAX;
