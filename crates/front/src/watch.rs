//! Deadlines of many connections, cheaply.
//!
//! A connection's deadline changes several times with each request and almost never passes. So
//! setting one is a store and a look at the earliest; a ticker sees some times a second whether that
//! has come, and only then looks at all of them, to wake the tasks whose turn it is. Time is counted
//! in ticks of a coarse clock: a deadline passes up to [`PERIOD`] late, which does not matter for
//! timeouts, and reading the clock is a load.
//!
//! The mutex guards only joining, leaving and the ticker's round; all three happen on one worker's
//! thread, so nobody waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use slab::Slab;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// A moment of the coarse clock, in milliseconds since the watch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(u64);

impl Tick {
    /// A moment that never comes.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// The moment the watch began.
    #[cfg(test)]
    pub(crate) const START: Self = Self(0);

    /// The time from an earlier moment to this one.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The moment so long before, or the first one.
    pub(crate) fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }
}

impl From<Tick> for u64 {
    fn from(tick: Tick) -> Self {
        tick.0
    }
}

impl std::ops::Add<Duration> for Tick {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }
}

/// Whole milliseconds. A request asks several times, which is too often for the division of 128 bits
/// in [`Duration::as_millis`].
fn millis(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1000);
    seconds.saturating_add(duration.subsec_millis().into())
}

/// The deadlines of one worker's connections.
#[derive(Debug)]
pub(crate) struct Watch {
    began: Instant,
    now: AtomicU64,
    /// No deadline is before this one. May be too early: whoever puts a deadline off leaves it.
    earliest: AtomicU64,
    entries: Mutex<Slab<Arc<Entry>>>,
}

#[derive(Debug)]
struct Entry {
    deadline: AtomicU64,
    /// Known once the task runs.
    waker: OnceLock<Waker>,
    /// Its place in the watch.
    key: usize,
}

impl Entry {
    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }
}

/// One connection's place in the watch; dropping it leaves.
#[derive(Debug)]
pub(crate) struct Watched {
    watch: Arc<Watch>,
    entry: Arc<Entry>,
}

impl Watch {
    pub(crate) fn new() -> Arc<Self> {
        let entries = Mutex::new(Slab::new());
        Arc::new(Self {
            began: Instant::now(),
            now: AtomicU64::new(0),
            earliest: AtomicU64::new(u64::MAX),
            entries,
        })
    }

    /// Takes a place, for a task that says who it is by [`Watched::attach`].
    pub(crate) fn join(self: &Arc<Self>) -> Watched {
        let mut entries = self.lock();
        let place = entries.vacant_entry();
        let entry = Arc::new(Entry {
            deadline: AtomicU64::new(u64::MAX),
            waker: OnceLock::new(),
            key: place.key(),
        });
        place.insert(Arc::clone(&entry));
        Watched {
            watch: Arc::clone(self),
            entry,
        }
    }

    /// The coarse clock's time.
    pub(crate) fn now(&self) -> Tick {
        Tick(self.now.load(Ordering::Relaxed))
    }

    /// Ticks until dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.tick(ticks.tick().await);
        }
    }

    /// Wakes every task, whatever its deadline: something it waits for beside has happened.
    pub(crate) fn wake_all(&self) {
        for (_, entry) in self.lock().iter() {
            entry.wake();
        }
    }

    fn tick(&self, at: Instant) {
        let now = millis(at.saturating_duration_since(self.began));
        self.now.store(now, Ordering::Relaxed);
        if self.earliest.load(Ordering::Relaxed) > now {
            return;
        }
        let mut earliest = u64::MAX;
        for (_, entry) in self.lock().iter() {
            let deadline = entry.deadline.load(Ordering::Relaxed);
            if deadline <= now {
                entry.wake();
            }
            earliest = earliest.min(deadline);
        }
        // Nothing is lost: deadlines are set on the thread that ticks.
        self.earliest.store(earliest, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// Lets the task that awaits this be woken; it must stay the same.
    pub(crate) async fn attach(&self) {
        std::future::poll_fn(|cx| {
            // Attaching again changes nothing: a task's waker is always the same.
            self.entry.waker.set(cx.waker().clone()).ok();
            Poll::Ready(())
        })
        .await;
    }

    /// The coarse clock's time.
    pub(crate) fn now(&self) -> Tick {
        self.watch.now()
    }

    /// The coarse clock's time, for those who know no ticks.
    pub(crate) fn instant(&self) -> Instant {
        self.watch.began + Duration::from_millis(self.now().0)
    }

    /// The task is woken at `deadline`, and on each tick after it until another is set.
    pub(crate) fn set(&self, deadline: Tick) {
        self.entry.deadline.store(deadline.0, Ordering::Relaxed);
        let earliest = &self.watch.earliest;
        if deadline.0 < earliest.load(Ordering::Relaxed) {
            earliest.store(deadline.0, Ordering::Relaxed);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watch.lock().try_remove(self.entry.key);
    }
}

/// How often deadlines are looked at.
const PERIOD: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn joined(watch: &Arc<Watch>, count: Arc<Count>) -> Watched {
        let watched = watch.join();
        watched
            .entry
            .waker
            .set(count.into())
            .expect("a fresh place");
        watched
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[tokio::test]
    async fn only_those_whose_time_has_come_are_woken() {
        let watch = Watch::new();
        let counts: [Arc<Count>; 3] = Default::default();
        let watched = counts.clone().map(|count| joined(&watch, count));
        watched[0].set(watched[0].now() + ms(100));
        watched[1].set(watched[1].now() + ms(300));
        watch.tick(watch.began + ms(99));
        let woken = || {
            counts
                .each_ref()
                .map(|count| count.0.load(Ordering::Relaxed))
        };
        assert_eq!(woken(), [0, 0, 0]);
        watch.tick(watch.began + ms(100));
        assert_eq!(woken(), [1, 0, 0]);
        watched[0].set(Tick::NEVER);
        watch.tick(watch.began + ms(500));
        assert_eq!(woken(), [1, 1, 0]);
        watch.wake_all();
        assert_eq!(woken(), [2, 2, 1]);
    }

    #[tokio::test]
    async fn a_deadline_may_be_brought_forward_and_put_off() {
        let watch = Watch::new();
        let count = Arc::new(Count::default());
        let watched = joined(&watch, Arc::clone(&count));
        let woken = |at| {
            watch.tick(watch.began + ms(at));
            count.0.swap(0, Ordering::Relaxed)
        };
        watched.set(Tick(100));
        watched.set(Tick(1000));
        assert_eq!(woken(100), 0);
        watched.set(Tick(200));
        assert_eq!([woken(199), woken(200), woken(220)], [0, 1, 1]);
        watched.set(Tick(300));
        assert_eq!([woken(240), woken(300)], [0, 1]);
        watched.set(Tick(900));
        assert_eq!(woken(320), 0);
        watched.set(Tick(400));
        assert_eq!(woken(400), 1);
    }

    #[tokio::test]
    async fn whoever_left_is_not_woken() {
        let watch = Watch::new();
        let count = Arc::new(Count::default());
        let watched = joined(&watch, Arc::clone(&count));
        watched.set(watched.now());
        drop(watched);
        watch.tick(watch.began + ms(1000));
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }
}
