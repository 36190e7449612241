//! The memory that bodies take while they are received, for all fills of a cache together.
//!
//! A fill that its own task feeds goes as fast as the backend. One beside a response to a client goes as fast as
//! that client reads, so it makes room for others: nobody that reads slowly keeps them from being stored.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use crate::cache::fill::Fill;

/// Bytes of bodies that are being received.
#[derive(Debug, Default)]
pub(crate) struct FillRoom {
    taken: AtomicU64,
    yielding: Mutex<Yielding>,
}

/// Fills that make room for others, by when they began.
#[derive(Debug, Default)]
struct Yielding {
    fills: BTreeMap<u64, Weak<Fill>>,
    next: u64,
}

impl FillRoom {
    /// Bytes that are taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes some, unless more than `most` would be taken though the others have made room.
    pub(super) fn take(&self, bytes: u64, most: u64) -> bool {
        if bytes > most {
            return false;
        }
        loop {
            let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
            if before.saturating_add(bytes) <= most {
                return true;
            }
            self.release(bytes);
            // The lock is not held meanwhile: that fill may be about to leave.
            let Some((_, oldest)) = self.lock().fills.pop_first() else {
                return false;
            };
            if let Some(fill) = oldest.upgrade() {
                fill.give_up();
            }
        }
    }

    /// Gives back what was taken.
    pub(super) fn release(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A fill makes room for others until it leaves.
    pub(super) fn join(&self, fill: Weak<Fill>) -> u64 {
        let mut yielding = self.lock();
        let place = yielding.next;
        yielding.next += 1;
        yielding.fills.insert(place, fill);
        place
    }

    /// The fill at a place makes no more room.
    pub(super) fn leave(&self, place: u64) {
        self.lock().fills.remove(&place);
    }

    fn lock(&self) -> MutexGuard<'_, Yielding> {
        // Nothing panics under the lock.
        self.yielding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
