//! A backend's health as all workers share it.
//!
//! The rules are [`catamaran_balance::health`]'s; here is the clock, the lock around the state
//! machine, and what is read without it: whoever picks a backend loads one atomic while all is
//! well. The lock is taken when something failed and by the keeper, and never across an await.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_balance::health::{Health, Moment, Outcome, SHARE_FULL, Standing, Task, share};
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct SharedHealth {
    /// [`WELL`], [`OUT`], or one more than the milliseconds at which the backend came back.
    view: AtomicU64,
    state: Mutex<Health>,
    /// What moments are counted from.
    origin: Instant,
    /// In milliseconds.
    slow_start: AtomicU64,
    /// Requests found no other backend since the last probe.
    wanted: AtomicBool,
    ejections: AtomicU64,
    probes_answered: AtomicU64,
    probes_failed: AtomicU64,
}

/// What happened to a backend's health since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HealthCounts {
    pub(crate) ejections: u64,
    pub(crate) probes_answered: u64,
    pub(crate) probes_failed: u64,
}

impl SharedHealth {
    pub(crate) fn new(slow_start: Duration) -> Self {
        Self {
            view: AtomicU64::new(WELL),
            state: Mutex::default(),
            origin: Instant::now(),
            slow_start: AtomicU64::new(millis(slow_start)),
            wanted: AtomicBool::new(false),
            ejections: AtomicU64::new(0),
            probes_answered: AtomicU64::new(0),
            probes_failed: AtomicU64::new(0),
        }
    }

    pub(crate) fn set_slow_start(&self, slow_start: Duration) {
        self.slow_start.store(millis(slow_start), Ordering::Relaxed);
    }

    /// The share of its weight in percent; 0 while the backend is out.
    pub(crate) fn share(&self) -> u8 {
        match self.view.load(Ordering::Relaxed) {
            WELL => SHARE_FULL,
            OUT => 0,
            returned => self.ramping(returned),
        }
    }

    /// Says that requests find no backend but this one, which is out.
    pub(crate) fn want(&self) {
        // Looked at first: a storm of requests must not fight for the cache line.
        if !self.wanted.load(Ordering::Relaxed) {
            self.wanted.store(true, Ordering::Relaxed);
        }
    }

    /// A dial begun at `began` failed; `true` if that puts the backend out.
    pub(crate) fn connect_failed(&self, began: Instant) -> bool {
        let began = began.saturating_duration_since(self.origin);
        let now = self.now();
        self.change(|health| health.connect_failed(began, now))
    }

    /// An exchange failed after its request was sent.
    pub(crate) fn suspect(&self) -> bool {
        let now = self.now();
        self.change(|health| health.suspect(now))
    }

    /// See [`Health::needs_keeper`].
    pub(crate) fn needs_keeper(&self) -> bool {
        self.change(Health::needs_keeper)
    }

    /// See [`Health::resign`].
    pub(crate) fn resign(&self) {
        self.change(Health::resign);
    }

    /// What the keeper has to do.
    pub(crate) fn next(&self) -> Task {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let now = self.now();
        let task = self.change(|health| health.next(now, wanted));
        if task == Task::Probe {
            self.wanted.store(false, Ordering::Relaxed);
        }
        task
    }

    /// A probe ended.
    pub(crate) fn probed(&self, outcome: Outcome) {
        match outcome {
            Outcome::Answered => self.probes_answered.fetch_add(1, Ordering::Relaxed),
            Outcome::Failed => self.probes_failed.fetch_add(1, Ordering::Relaxed),
            Outcome::NotMade => 0,
        };
        let now = self.now();
        self.change(|health| health.probed(now, outcome));
    }

    pub(crate) fn counts(&self) -> HealthCounts {
        HealthCounts {
            ejections: self.ejections.load(Ordering::Relaxed),
            probes_answered: self.probes_answered.load(Ordering::Relaxed),
            probes_failed: self.probes_failed.load(Ordering::Relaxed),
        }
    }

    fn ramping(&self, view: u64) -> u8 {
        let returned = Duration::from_millis(view - 1);
        let slow_start = Duration::from_millis(self.slow_start.load(Ordering::Relaxed));
        let share = share(self.now().saturating_sub(returned), slow_start);
        if share == SHARE_FULL {
            // Whoever was faster has put the backend out, or done the same.
            let _ = self
                .view
                .compare_exchange(view, WELL, Ordering::Relaxed, Ordering::Relaxed);
        }
        share
    }

    /// Changes the state, and what the pickers see with it.
    fn change<T>(&self, change: impl FnOnce(&mut Health) -> T) -> T {
        let mut health = self.lock();
        let before = health.standing();
        let value = change(&mut health);
        let after = health.standing();
        if before != after {
            self.view.store(view_of(after), Ordering::Relaxed);
            if after == Standing::Out {
                self.ejections.fetch_add(1, Ordering::Relaxed);
            }
        }
        value
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Moment {
        self.origin.elapsed()
    }
}

fn view_of(standing: Standing) -> u64 {
    match standing {
        Standing::Up(None) => WELL,
        Standing::Up(Some(returned)) => millis(returned).saturating_add(1).min(OUT - 1),
        Standing::Out => OUT,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Up, and not ramping.
const WELL: u64 = 0;

/// Not to be picked.
const OUT: u64 = u64::MAX;
