//! Deadlines of a worker's connections: a list that is sorted by time and checked by one ticker.
//!
//! A deadline changes several times with each request and almost never passes, so changing it has
//! to be cheap. A later deadline is one store; only a deadline that is earlier than the entry in
//! the list needs a new entry. The ticker runs several times a second and takes the entries whose
//! time has come. It wakes the task if the deadline has passed, and otherwise lists the
//! connection again under its later deadline. Time is counted in ticks of a coarse clock, so
//! reading it is one load, and a deadline passes up to [`PERIOD`] late. Timeouts do not need more
//! precision.
//!
//! Many deadlines may pass at once, for example in an attack of slow clients. The ticker then
//! wakes a few tasks at a time, and the event loop polls its sockets in between, so that other
//! connections do not wait for all of them.
//!
//! The mutex guards the list. Only the worker's own thread locks it, so there is no contention.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::Duration;

use slab::Slab;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::lock::lock;

/// A moment of the coarse clock, in milliseconds since the front began. The clocks of all workers are nearly equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(u64);

impl Tick {
    /// A moment that never comes.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// The moment the clock began.
    #[cfg(test)]
    pub(crate) const START: Self = Self(0);

    /// The period of this moment, in units of [`PERIOD`].
    fn period(self) -> u32 {
        u32::try_from(self.0 / millis(PERIOD)).unwrap_or(UNLISTED)
    }

    /// The time from an earlier moment to this one.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The moment that is `duration` before this one, at least the start of the clock.
    pub(crate) fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }
}

impl From<u64> for Tick {
    fn from(millis: u64) -> Self {
        Self(millis)
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

/// The duration in whole milliseconds. Each request needs it several times, so the division of 128 bits in
/// [`Duration::as_millis`] would cost too much.
fn millis(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1000);
    seconds.saturating_add(duration.subsec_millis().into())
}

/// The deadlines of one worker's connections.
#[derive(Debug)]
pub(crate) struct Deadlines {
    began: Instant,
    now: AtomicU64,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    entries: Slab<Arc<DeadlineEntry>>,
    /// The listed entries, by the period in which each is to be checked, and by key.
    due: BTreeSet<(u32, u32)>,
    /// Entries without a task, for the next tasks. They may still be listed in `due`.
    spare: Vec<Arc<DeadlineEntry>>,
}

#[derive(Debug)]
struct DeadlineEntry {
    deadline: AtomicU64,
    /// The period in which the entry is checked, which is not after that of its deadline. [`UNLISTED`]: it is not
    /// listed.
    listed: AtomicU32,
    /// The key of the entry in [`Places::entries`].
    key: u32,
    /// The waker of the task; `None` until [`Deadline::attach`].
    waker: Mutex<Option<Waker>>,
}

impl DeadlineEntry {
    fn wake(&self) {
        if let Some(waker) = &*self.waker() {
            waker.wake_by_ref();
        }
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        lock(&self.waker)
    }
}

/// The deadline of one task. After it is dropped, the task is not woken any more.
#[derive(Debug)]
pub(crate) struct Deadline {
    deadlines: Arc<Deadlines>,
    entry: Arc<DeadlineEntry>,
}

impl Deadlines {
    /// Deadlines whose clock counts from `began`.
    pub(crate) fn new(began: Instant) -> Arc<Self> {
        Arc::new(Self {
            began,
            now: AtomicU64::new(0),
            places: Mutex::new(Places::default()),
        })
    }

    /// Makes a deadline that is not yet set. Its task must then call [`Deadline::attach`].
    pub(crate) fn join(self: &Arc<Self>) -> Deadline {
        let mut places = self.lock();
        let spare = places.spare.pop();
        Deadline {
            deadlines: Arc::clone(self),
            entry: spare.unwrap_or_else(|| places.enter()),
        }
    }

    /// The time of the coarse clock.
    pub(crate) fn now(&self) -> Tick {
        Tick(self.now.load(Ordering::Relaxed))
    }

    /// Runs the clock and wakes tasks whose deadline has passed. Ends only when it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut portion = self.advance(ticks.tick().await);
            for _ in 0..PORTIONS {
                portion = self.look_at(portion);
                if portion == 0 {
                    break;
                }
                sleep(PERIOD / (PORTIONS as u32 + 2)).await;
            }
        }
    }

    /// Wakes every task, whatever its deadline, because something else that tasks wait for has happened.
    pub(crate) fn wake_all(&self) {
        for (_, entry) in &self.lock().entries {
            entry.wake();
        }
    }

    /// Sets the clock to `instant`. Returns the number of entries to check in each portion of this period.
    fn advance(&self, instant: Instant) -> usize {
        let now = Tick(millis(instant.saturating_duration_since(self.began)));
        self.now.store(now.0, Ordering::Relaxed);
        let due = self.lock().due.range(..(now.period() + 1, 0)).count();
        due.div_ceil(PORTIONS).min(PORTION_MAX)
    }

    /// Checks up to `portion` due entries and wakes the tasks whose deadline has passed. Returns the size of the next
    /// portion: 0 if no entry is left.
    fn look_at(&self, portion: usize) -> usize {
        let now = self.now();
        let mut places = self.lock();
        for _ in 0..portion {
            let Some(key) = places.next_due(now) else {
                return 0;
            };
            let Some(entry) = places.entries.get(key as usize).map(Arc::clone) else {
                debug_assert!(false, "an entry that was removed is not listed");
                continue;
            };
            let deadline = Tick(entry.deadline.load(Ordering::Relaxed));
            if deadline <= now {
                entry.deadline.store(Tick::NEVER.0, Ordering::Relaxed);
                entry.listed.store(UNLISTED, Ordering::Relaxed);
                entry.wake();
            } else {
                // In the next period at the earliest: in the present one, this loop would find the entry again and
                // never end.
                places.list(&entry, deadline.period().max(now.period() + 1));
            }
        }
        portion
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        lock(&self.places)
    }
}

impl Places {
    /// Adds an entry that is not listed.
    fn enter(&mut self) -> Arc<DeadlineEntry> {
        let place = self.entries.vacant_entry();
        let key = u32::try_from(place.key()).expect("fewer connections than file descriptors");
        let entry = Arc::new(DeadlineEntry {
            deadline: AtomicU64::new(Tick::NEVER.0),
            listed: AtomicU32::new(UNLISTED),
            key,
            waker: Mutex::new(None),
        });
        place.insert(Arc::clone(&entry));
        entry
    }

    /// Takes the next due entry off the list and returns its key; `None` if none is due.
    fn next_due(&mut self, now: Tick) -> Option<u32> {
        let (period, key) = *self.due.first()?;
        if period > now.period() {
            return None;
        }
        self.due.pop_first();
        Some(key)
    }

    /// Lists an entry, which must not be listed, under a period.
    fn list(&mut self, entry: &DeadlineEntry, period: u32) {
        entry.listed.store(period, Ordering::Relaxed);
        if period != UNLISTED {
            self.due.insert((period, entry.key));
        }
    }

    fn unlist(&mut self, entry: &DeadlineEntry) {
        let listed = entry.listed.load(Ordering::Relaxed);
        self.due.remove(&(listed, entry.key));
    }
}

impl Deadline {
    /// Makes the calling task the one that is woken. Later calls must come from the same task.
    pub(crate) async fn attach(&self) {
        std::future::poll_fn(|cx| {
            // Attaching again changes nothing: a task's waker is always the same.
            self.entry.waker().get_or_insert_with(|| cx.waker().clone());
            Poll::Ready(())
        })
        .await;
    }

    /// The time of the coarse clock.
    pub(crate) fn now(&self) -> Tick {
        self.deadlines.now()
    }

    /// The time of the coarse clock, as an `Instant`.
    pub(crate) fn instant(&self) -> Instant {
        self.deadlines.began + Duration::from_millis(self.now().0)
    }

    /// Wakes the task once at `deadline`, unless another deadline is set before.
    pub(crate) fn set(&self, deadline: Tick) {
        self.entry.deadline.store(deadline.0, Ordering::Relaxed);
        // A later deadline needs no change of the list: the ticker finds it when it checks the entry.
        if deadline.period() < self.entry.listed.load(Ordering::Relaxed) {
            let mut places = self.deadlines.lock();
            places.unlist(&self.entry);
            places.list(&self.entry, deadline.period());
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        // Taken before the lock, and dropped after it: the task's memory may be freed with its last waker.
        let _waker = self.entry.waker().take();
        self.entry.deadline.store(Tick::NEVER.0, Ordering::Relaxed);
        let mut places = self.deadlines.lock();
        if places.spare.len() < SPARE_MAX {
            // It may stay listed: the next task that gets the entry would list it again.
            return places.spare.push(Arc::clone(&self.entry));
        }
        places.unlist(&self.entry);
        places.entries.try_remove(self.entry.key as usize);
    }
}

/// The interval at which deadlines are checked: the precision of the coarse clock.
const PERIOD: Duration = Duration::from_millis(20);

/// The period of an entry without a deadline, or with one beyond the range of periods (2.7 years).
const UNLISTED: u32 = u32::MAX;

/// The most spare entries that are kept: about the number of requests that one worker has at a time.
const SPARE_MAX: usize = 256;

/// The number of portions into which the checks of one period are divided.
const PORTIONS: usize = 8;

/// The most entries in a portion. Answering a client that was too slow takes some 30 us, so this is half a worker's
/// time.
const PORTION_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use catamaran_testkit::Wakes;

    use super::*;

    fn joined(deadlines: &Arc<Deadlines>, wakes: Arc<Wakes>) -> Deadline {
        let deadline = deadlines.join();
        *deadline.entry.waker() = Some(wakes.into());
        deadline
    }

    fn tick(deadlines: &Deadlines, at: u64) {
        let portion = deadlines.advance(deadlines.began + ms(at));
        while deadlines.look_at(portion) > 0 {}
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[tokio::test]
    async fn only_those_whose_time_has_come_are_woken() {
        let deadlines = Deadlines::new(Instant::now());
        let counts: [Arc<Wakes>; 3] = Default::default();
        let deadline = counts.clone().map(|count| joined(&deadlines, count));
        deadline[0].set(deadline[0].now() + ms(100));
        deadline[1].set(deadline[1].now() + ms(300));
        tick(&deadlines, 99);
        let woken = || counts.each_ref().map(|count| count.count());
        assert_eq!(woken(), [0, 0, 0]);
        tick(&deadlines, 100);
        assert_eq!(woken(), [1, 0, 0]);
        deadline[0].set(Tick::NEVER);
        tick(&deadlines, 500);
        assert_eq!(woken(), [1, 1, 0]);
        deadlines.wake_all();
        assert_eq!(woken(), [2, 2, 1]);
    }

    #[tokio::test]
    async fn a_deadline_may_be_brought_forward_and_put_off() {
        let deadlines = Deadlines::new(Instant::now());
        let count = Arc::<Wakes>::default();
        let deadline = joined(&deadlines, Arc::clone(&count));
        let woken = |at| {
            tick(&deadlines, at);
            count.take()
        };
        deadline.set(Tick(100));
        deadline.set(Tick(1000));
        assert_eq!(woken(100), 0);
        deadline.set(Tick(200));
        assert_eq!([woken(199), woken(200), woken(220)], [0, 1, 0]);
        deadline.set(Tick(300));
        assert_eq!([woken(240), woken(300)], [0, 1]);
        deadline.set(Tick(900));
        assert_eq!(woken(320), 0);
        deadline.set(Tick(400));
        assert_eq!(woken(400), 1);
    }

    #[tokio::test]
    async fn many_at_once_are_woken_in_portions() {
        let deadlines = Deadlines::new(Instant::now());
        let count = Arc::<Wakes>::default();
        let mut deadline = Vec::new();
        for _ in 0..100 {
            let one = joined(&deadlines, Arc::clone(&count));
            one.set(Tick(100));
            deadline.push(one);
        }
        deadline[0].set(Tick(5000));
        let portion = deadlines.advance(deadlines.began + ms(105));
        assert_eq!(portion, 13, "an eighth of those listed");
        assert_eq!(deadlines.look_at(portion), portion);
        let woken = || count.count();
        assert!((12..=13).contains(&woken()), "{}", woken());
        while deadlines.look_at(portion) > 0 {}
        assert_eq!(woken(), 99);
        tick(&deadlines, 5000);
        assert_eq!(woken(), 100);
    }

    #[tokio::test]
    async fn whoever_left_is_not_woken() {
        let deadlines = Deadlines::new(Instant::now());
        let count = Arc::<Wakes>::default();
        let deadline = joined(&deadlines, Arc::clone(&count));
        deadline.set(deadline.now());
        drop(deadline);
        tick(&deadlines, 1000);
        assert_eq!(count.count(), 0);
    }

    #[tokio::test]
    async fn a_place_that_was_left_is_taken_again_without_its_past() {
        let deadlines = Deadlines::new(Instant::now());
        let [first, second]: [Arc<Wakes>; 2] = Default::default();
        let left = joined(&deadlines, Arc::clone(&first));
        left.set(Tick(100));
        drop(left);
        let next = joined(&deadlines, Arc::clone(&second));
        assert_eq!(deadlines.lock().entries.len(), 1);
        tick(&deadlines, 100);
        next.set(Tick(300));
        next.set(Tick(200));
        tick(&deadlines, 199);
        assert_eq!(second.count(), 0);
        tick(&deadlines, 200);
        assert_eq!(second.count(), 1);
        assert_eq!(first.count(), 0);
    }

    #[test]
    fn places_that_many_have_left_are_not_all_kept() {
        let deadlines = Deadlines::new(Instant::now());
        let many: Vec<_> = (0..2 * SPARE_MAX).map(|_| deadlines.join()).collect();
        many.iter().for_each(|deadline| deadline.set(Tick(100)));
        drop(many);
        tick(&deadlines, 100);
        let places = deadlines.lock();
        let kept = (places.entries.len(), places.spare.len(), places.due.len());
        assert_eq!(kept, (SPARE_MAX, SPARE_MAX, 0));
    }
}
