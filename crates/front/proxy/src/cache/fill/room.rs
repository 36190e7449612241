//! The limit on memory for bodies that are being received, for all fills of a cache together.
//!
//! A fill that has a task of its own runs as fast as the backend. A fill beside a response to a client runs as fast
//! as that client reads, so it gives up its memory to others: a slow client cannot keep other responses from being
//! stored.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::cache::fill::Fill;
use crate::lock::lock;

/// Counts the bytes of bodies that are being received, and finds memory for more.
#[derive(Debug, Default)]
pub(crate) struct FillRoom {
    taken: AtomicU64,
    /// Of `taken`, the bytes of fills that give way to others.
    yielded: AtomicU64,
    yielding: Mutex<YieldingFills>,
}

/// One fill's use of the room.
#[derive(Debug)]
pub(super) struct FillShare {
    pub(super) room: Arc<FillRoom>,
    /// Whether the fill is as slow as the client of its response, so that it gives up its bytes if others need them.
    pub(super) yields: bool,
}

/// The fills that make room for others, in the order in which they began.
#[derive(Debug, Default)]
struct YieldingFills {
    fills: BTreeMap<u64, Weak<Fill>>,
    next: u64,
}

impl FillRoom {
    /// The number of bytes that are taken now.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, YieldingFills> {
        lock(&self.yielding)
    }
}

impl FillShare {
    /// Reserves bytes, if need be by giving up fills that yield, the oldest first. `false`: more than `most` bytes
    /// would be taken even then.
    pub(super) fn take(&self, bytes: u64, most: u64) -> bool {
        let FillRoom { taken, yielded, .. } = &*self.room;
        loop {
            let taken_before = taken.fetch_add(bytes, Ordering::Relaxed);
            if taken_before.saturating_add(bytes) <= most {
                if self.yields {
                    yielded.fetch_add(bytes, Ordering::Relaxed);
                }
                return true;
            }
            taken.fetch_sub(bytes, Ordering::Relaxed);
            // The bytes that would still be taken if all fills that yield gave up theirs.
            let unyielding = taken_before.saturating_sub(yielded.load(Ordering::Relaxed));
            if unyielding.saturating_add(bytes) > most {
                return false;
            }
            // The list is unlocked before the fill gives up its bytes: the fill may be about to leave the list, which
            // needs the lock.
            let Some((_, oldest)) = self.room.lock().fills.pop_first() else {
                return false;
            };
            if let Some(fill) = oldest.upgrade() {
                fill.give_up();
            }
        }
    }

    /// Gives back reserved bytes.
    pub(super) fn release(&self, bytes: u64) {
        self.room.taken.fetch_sub(bytes, Ordering::Relaxed);
        if self.yields {
            self.room.yielded.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Lists a fill that yields, and returns its place for [`Self::leave`]; `None` for a fill that does not yield.
    pub(super) fn join(&self, fill: Weak<Fill>) -> Option<u64> {
        if !self.yields {
            return None;
        }
        let mut yielding = self.room.lock();
        let place = yielding.next;
        yielding.next += 1;
        yielding.fills.insert(place, fill);
        Some(place)
    }

    /// Removes a fill from the list of those that yield.
    pub(super) fn leave(&self, place: u64) {
        self.room.lock().fills.remove(&place);
    }
}
