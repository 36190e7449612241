//! The table of the debts of each key to each limit.
//!
//! Its memory is fixed when it is made. It has sets of [`SLOTS`] slots; a hash with a secret seed chooses the set of a
//! key, so that nobody can fill the set of a certain key on purpose. A slot whose key has no debt is free. If all slots
//! of a set are in use, either the key with the smallest debt, as a part of its burst, is evicted, or the new key is not
//! kept ([`Set::vacate`]): the one that is forgotten may send more than its limit, but no new key is refused because the
//! table is full.
//!
//! Each set has a mutex of its own, which is held for one decision and across no other call. A decision about several
//! keys holds the mutexes of all their sets, taken in the order of the sets: so the decision is exact although threads
//! decide at the same time, and there is no deadlock.

use std::hash::{Hash, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arrayvec::ArrayVec;
use siphasher::sip::SipHasher13;

use crate::quota::{Judgement, Quota};

/// The debts of each key to each limit, shared by all threads.
#[derive(Debug)]
pub struct Table {
    /// The sets, allocated when the first key is judged.
    sets: OnceLock<Box<[Mutex<Set>]>>,
    /// The number of sets.
    count: usize,
    seed: (u64, u64),
    evicted: AtomicU64,
}

/// One limit that applies to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The number of the limit: the index of its quota.
    pub limit: u16,
    /// The key, as [`Table::key`] made it for this limit.
    pub key: u64,
    /// Whether the limit refuses requests; otherwise its judgement is only reported.
    pub enforced: bool,
}

/// What the limits say of a request: a judgement for each, in the order in which they were asked.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    judgements: ArrayVec<Judgement, ASKS_MAX>,
    refused: bool,
    wait: Duration,
}

/// The slots of the keys with the same set.
#[derive(Debug, Default)]
struct Set([Slot; SLOTS]);

/// The state of one key for one limit.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// A part of the key's hash, and in the lower 16 bits the number of the limit.
    tag: u64,
    /// The state, as [`Quota::judge`] gives and takes it.
    state: u64,
}

impl Table {
    /// A table that takes at most `bytes` of memory, and at least one set. `seed` should be random and secret.
    #[must_use]
    pub fn new(bytes: usize, seed: (u64, u64)) -> Self {
        Self {
            sets: OnceLock::new(),
            count: (bytes / size_of::<Mutex<Set>>()).clamp(1, u32::MAX as usize),
            seed,
            evicted: AtomicU64::new(0),
        }
    }

    #[inline]
    fn sets(&self) -> &[Mutex<Set>] {
        let make = || (0..self.count).map(|_| Mutex::default()).collect();
        self.sets.get_or_init(make)
    }

    /// The key of `subject`, such as a client's network, for a limit.
    #[must_use]
    #[inline]
    pub fn key(&self, limit: u16, subject: &(impl Hash + ?Sized)) -> u64 {
        let (first, second) = self.seed;
        let mut hasher = SipHasher13::new_with_keys(first ^ u64::from(limit), second);
        subject.hash(&mut hasher);
        hasher.finish()
    }

    /// Judges a request by all limits at `now`. If no enforced limit refuses it, each limit that lets it pass is
    /// charged. `quotas` has the quota of each limit by its number; a limit without one lets everything pass.
    ///
    /// # Panics
    /// If more than [`ASKS_MAX`] limits are asked.
    #[must_use]
    pub fn take(&self, asks: &[Ask], quotas: &[Quota], now: u64) -> Outcome {
        if let [ask] = asks {
            return Outcome::of(ask, self.take_one(ask, quotas, now));
        }
        let mut sets = LockedSets::new(self, asks);
        let outcome = sets.judge(asks, quotas, now);
        if outcome.passes() {
            for (ask, judgement) in asks.iter().zip(&outcome.judgements) {
                let set = sets.of(ask);
                // Found again, since the charge of another key may have taken its slot.
                let known = set.find(ask);
                set.charge(known, ask, *judgement, quotas, now, &self.evicted);
            }
        }
        outcome
    }

    /// As [`Self::take`], for a request that is subject to one limit. Most are, and one needs no order of sets.
    #[must_use]
    #[inline]
    pub fn take_one(&self, ask: &Ask, quotas: &[Quota], now: u64) -> Judgement {
        let mut set = lock(&self.sets()[self.index(ask.key)]);
        let known = set.find(ask);
        let judgement = set.judge(known, ask, quotas, now);
        set.charge(known, ask, judgement, quotas, now, &self.evicted);
        judgement
    }

    /// As [`Self::take`], but charges nothing.
    #[must_use]
    pub fn look(&self, asks: &[Ask], quotas: &[Quota], now: u64) -> Outcome {
        LockedSets::new(self, asks).judge(asks, quotas, now)
    }

    /// Gives back the place of a request in flight, which [`Self::take`] took from a limit of [`Quota::InFlight`].
    pub fn give_back(&self, limit: u16, key: u64) {
        self.change(limit, key, |state| state.saturating_sub(1));
    }

    /// Gives back the charge of one request, because it was none of those that the limit is against: for a rate the time
    /// that it cost, for requests in flight the place.
    pub fn refund(&self, limit: u16, key: u64, quota: Quota) {
        self.change(limit, key, |state| state.saturating_sub(quota.cost()));
    }

    /// Forgets the debt of a key to a limit. Returns whether the key was known.
    pub fn forget(&self, limit: u16, key: u64) -> bool {
        self.change(limit, key, |_| 0)
    }

    /// For each limit, the number of keys with a debt, and for a limit of [`Quota::InFlight`] the number of requests in
    /// flight. Looks at the whole table, which takes milliseconds.
    #[must_use]
    pub fn counts(&self, quotas: &[Quota], now: u64) -> Vec<(u64, u64)> {
        let mut counts = vec![(0, 0); quotas.len()];
        for set in self.sets() {
            for slot in &lock(set).0 {
                let limit = slot.limit();
                if let (Some(quota), Some((keys, sum))) = (quotas.get(limit), counts.get_mut(limit))
                    && !quota.is_free(slot.state, now)
                {
                    *keys += 1;
                    if matches!(quota, Quota::InFlight(_)) {
                        *sum += slot.state;
                    }
                }
            }
        }
        counts
    }

    /// The number of keys that were forgotten while they had a debt: evicted, or new and not kept.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// The number of keys for which the table has room.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.count * SLOTS
    }

    /// The memory of the table in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.count * size_of::<Mutex<Set>>()
    }

    /// Changes the state of a key; `false`: the table does not have the key.
    fn change(&self, limit: u16, key: u64, change: impl FnOnce(u64) -> u64) -> bool {
        let ask = Ask {
            limit,
            key,
            enforced: true,
        };
        let mut set = lock(&self.sets()[self.index(key)]);
        let Some(index) = set.find(&ask) else {
            return false;
        };
        let slot = &mut set.0[index];
        slot.state = change(slot.state);
        true
    }

    /// The index of a key's set, from the upper half of the key. The tag has other bits of it.
    #[inline]
    fn index(&self, key: u64) -> usize {
        (((key >> 32) * self.count as u64) >> 32) as usize
    }
}

impl Ask {
    #[inline]
    fn tag(&self) -> u64 {
        (self.key << 16) | u64::from(self.limit)
    }
}

impl Outcome {
    /// What the only limit says of a request.
    #[must_use]
    pub fn of(ask: &Ask, judgement: Judgement) -> Self {
        let mut outcome = Self::default();
        outcome.add(ask, judgement);
        outcome
    }

    #[inline]
    fn add(&mut self, ask: &Ask, judgement: Judgement) {
        if ask.enforced && !judgement.passes() {
            self.refused = true;
            self.wait = self.wait.max(judgement.wait());
        }
        self.judgements.push(judgement);
    }

    /// Whether all enforced limits let the request pass.
    #[must_use]
    pub fn passes(&self) -> bool {
        !self.refused
    }

    /// The judgement of each limit, in the order in which they were asked.
    #[must_use]
    pub fn judgements(&self) -> &[Judgement] {
        &self.judgements
    }

    /// The time until every enforced limit would let the request pass.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.wait
    }
}

/// The sets of a decision's keys, each locked once.
struct LockedSets<'t> {
    table: &'t Table,
    /// The sets with their indices, in the order of the indices.
    sets: ArrayVec<(usize, MutexGuard<'t, Set>), ASKS_MAX>,
}

impl<'t> LockedSets<'t> {
    /// Locks the set of each key.
    #[inline]
    fn new(table: &'t Table, asks: &[Ask]) -> Self {
        let mut indices: ArrayVec<usize, ASKS_MAX> = ArrayVec::new();
        indices.extend(asks.iter().map(|ask| table.index(ask.key)));
        // All threads lock in this order, so none waits for another in a circle.
        indices.sort_unstable();
        let mut sets: ArrayVec<(usize, MutexGuard<'t, Set>), ASKS_MAX> = ArrayVec::new();
        for index in indices {
            if sets.last().is_none_or(|(last, _)| *last != index) {
                sets.push((index, lock(&table.sets()[index])));
            }
        }
        Self { table, sets }
    }

    #[inline]
    fn of(&mut self, ask: &Ask) -> &mut Set {
        let index = self.table.index(ask.key);
        let locked = self.sets.iter_mut().find(|(own, _)| *own == index);
        &mut locked.expect("the sets of all keys are held").1
    }

    fn judge(&mut self, asks: &[Ask], quotas: &[Quota], now: u64) -> Outcome {
        let mut outcome = Outcome::default();
        for ask in asks {
            let set = self.of(ask);
            outcome.add(ask, set.judge(set.find(ask), ask, quotas, now));
        }
        outcome
    }
}

impl Set {
    /// The index of a key's slot; `None`: the table does not have the key.
    #[inline]
    fn find(&self, ask: &Ask) -> Option<usize> {
        self.0.iter().position(|slot| slot.tag == ask.tag())
    }

    /// Judges a request of a key, which has the slot `known`. A key that the table does not have has no debt.
    #[inline]
    fn judge(&self, known: Option<usize>, ask: &Ask, quotas: &[Quota], now: u64) -> Judgement {
        let state = known.map_or(0, |index| self.0[index].state);
        match quotas.get(usize::from(ask.limit)) {
            Some(quota) => quota.judge(state, now),
            // A limit without a quota lets everything pass.
            None => Quota::InFlight(u32::MAX).judge(state, now),
        }
    }

    /// Charges a request to a key, which has the slot `known`, if the limit lets it pass.
    #[inline]
    fn charge(
        &mut self,
        known: Option<usize>,
        ask: &Ask,
        judgement: Judgement,
        quotas: &[Quota],
        now: u64,
        evicted: &AtomicU64,
    ) {
        if let Ok(charged) = judgement.charged {
            let new = Slot {
                tag: ask.tag(),
                state: charged,
            };
            if let Some(index) = known.or_else(|| self.vacate(&new, quotas, now, evicted)) {
                self.0[index] = new;
            }
        }
    }

    /// The index of a slot for a new key: a free one, or that of the key with the smallest debt, which is evicted.
    /// `None`: the new key is not kept.
    ///
    /// Were each new key kept, a flood of them would evict a client with a small debt before it returns, so that it never
    /// comes to owe more. So in most cases those stay that owe something already; who keeps asking is kept soon.
    #[inline(never)]
    fn vacate(&self, new: &Slot, quotas: &[Quota], now: u64, evicted: &AtomicU64) -> Option<usize> {
        let is_free = |slot: &Slot| {
            let quota = quotas.get(slot.limit());
            quota.is_none_or(|quota| quota.is_free(slot.state, now))
        };
        self.0.iter().position(is_free).or_else(|| {
            let turn = evicted.fetch_add(1, Ordering::Relaxed);
            let (least, debt) = self.least(quotas, now);
            // The tag is a secret hash, so that nobody can choose a turn in which its own key is not kept.
            let lot = (new.tag ^ turn).wrapping_mul(SPREAD) >> 61;
            (lot == 0 || new.owed(quotas, now) > CLEARLY * debt).then_some(least)
        })
    }

    /// The index of the slot whose key has the least debt relative to its burst, and that debt (see [`Quota::owed`]).
    #[cold]
    fn least(&self, quotas: &[Quota], now: u64) -> (usize, f32) {
        let debts = self.0.iter().map(|slot| slot.owed(quotas, now)).enumerate();
        let least = debts.min_by(|(_, one), (_, other)| one.total_cmp(other));
        least.unwrap_or_default()
    }
}

impl Slot {
    fn limit(&self) -> usize {
        usize::from(self.tag as u16)
    }

    /// The debt of the key relative to its burst, as [`Quota::owed`] has it.
    fn owed(&self, quotas: &[Quota], now: u64) -> f32 {
        let quota = quotas.get(self.limit());
        quota.map_or(0.0, |quota| quota.owed(self.state, now))
    }
}

/// Locks a set, even if a thread panicked while it held the lock: slots are always written as a whole.
#[inline]
fn lock(set: &Mutex<Set>) -> MutexGuard<'_, Set> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most limits for one request.
pub const ASKS_MAX: usize = 8;

/// The slots of a set.
const SLOTS: usize = 8;

/// A new key that owes this many times as much as the least debt is always kept.
const CLEARLY: f32 = 4.0;

/// An odd number that spreads the bits of what it multiplies (2⁶⁴ divided by the golden ratio).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests;
