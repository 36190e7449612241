//! The session ids that a backend is known to have given out, as hashes in tables that grow, each with the
//! slice of time in which it was last seen.
//!
//! An id takes eight bytes, and a lookup reads one cache line of each table, without a lock. Ids are kept
//! for much longer than a session lasts, but those whose session is over make room when all tables are
//! full. If there is still no room, [`KnownIds::is_incomplete`] says so, since a missing id then proves
//! nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hashes of the session ids that the backend gave out, each with the number of the slice of time in which
/// it was last seen. An id is forgotten [`KEPT_MAX`] slices after it was seen, or after [`KEPT_MIN`] if
/// room is needed.
#[derive(Debug, Default)]
pub(super) struct KnownIds {
    /// The tables: the first has 4096 places, each next one four times as many. They are allocated when
    /// needed.
    tables: [OnceLock<Box<[AtomicU64]>>; TABLES],
    /// The last slice in which an id found no place, plus one; 0: never.
    overflowed: AtomicU64,
}

impl KnownIds {
    /// Remembers an id as seen in `slice`; if no table has room, records that.
    pub(super) fn put(&self, hash: u64, slice: u64) {
        if self.renew(hash, slice) {
            return;
        }
        if !self.place(hash, slice, KEPT_MAX) && !self.place(hash, slice, KEPT_MIN) {
            self.overflowed.store(slice + 1, Ordering::Relaxed);
        }
    }

    /// Puts an id into a free place, or into the place of an id that was not seen for `old` slices; `false` if
    /// there is neither.
    fn place(&self, hash: u64, slice: u64, old: u64) -> bool {
        let ours = entry(hash, slice);
        for (index, table) in self.tables.iter().enumerate() {
            for place in bucket(table.get_or_init(|| empty(index)), hash) {
                let present = place.load(Ordering::Relaxed);
                let is_free = age(present, slice).is_none_or(|age| age >= old);
                if is_free && replace(place, present, ours) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether an id is known; if so, records that it was seen in `slice`.
    pub(super) fn renew(&self, hash: u64, slice: u64) -> bool {
        let tables = self.tables.iter().map_while(OnceLock::get);
        let mut places = tables.flat_map(|table| bucket(table, hash));
        let ours = entry(hash, slice);
        places.any(|place| {
            let present = place.load(Ordering::Relaxed);
            let has_same_id = present & MARK == ours & MARK;
            let is_known = has_same_id && age(present, slice).is_some_and(|age| age < KEPT_MAX);
            if is_known && present != ours {
                // Another worker may be doing the same.
                replace(place, present, ours);
            }
            is_known
        })
    }

    /// Whether ids may be missing because there was no room for them.
    pub(super) fn is_incomplete(&self, slice: u64) -> bool {
        match self.overflowed.load(Ordering::Relaxed).checked_sub(1) {
            Some(last) => slice.saturating_sub(last) < KEPT_MIN,
            None => false,
        }
    }
}

/// Replaces the entry in a place; `false` if another worker has changed it meanwhile.
fn replace(place: &AtomicU64, present: u64, ours: u64) -> bool {
    let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
    let replaced = place.compare_exchange(present, ours, success, failure);
    replaced.is_ok()
}

fn empty(index: usize) -> Box<[AtomicU64]> {
    let places = FIRST << (2 * index);
    (0..places).map(|_| AtomicU64::new(0)).collect()
}

/// The places of a table where an id may be stored.
fn bucket(table: &[AtomicU64], hash: u64) -> &[AtomicU64] {
    let buckets = table.len() / BUCKET;
    let index = usize::try_from(hash % buckets as u64).unwrap_or(0);
    &table[index * BUCKET..][..BUCKET]
}

/// The stored form of an id: the upper bits of its hash, and the number of its slice modulo [`RING`], plus
/// one.
fn entry(hash: u64, slice: u64) -> u64 {
    hash & MARK | (slice % RING + 1)
}

/// How many slices ago the id in an entry was last seen; `None` if the place is empty.
fn age(present: u64, slice: u64) -> Option<u64> {
    let seen_in = (present & !MARK).checked_sub(1)?;
    let age = (slice % RING + RING - seen_in) % RING;
    // Another worker's clock was a little ahead.
    Some(if age > RING / 2 { 0 } else { age })
}

/// The bits of a hash that are stored. The others choose the bucket.
const MARK: u64 = !0xFFFF;

/// Entries store slice numbers modulo this number.
const RING: u64 = 0xFFFF;

/// The number of slices after which an id that was not seen may be replaced: its session is over.
const KEPT_MIN: u64 = super::SLICES as u64;

/// The number of slices after which an id that was not seen is forgotten. It is long, because the
/// container's timeout may be longer than ours.
const KEPT_MAX: u64 = 16 * KEPT_MIN;

/// The number of places in the first table.
const FIRST: usize = 4096;

/// The number of places in a bucket, which is a cache line.
const BUCKET: usize = 8;

/// The number of tables: five have room for several hundred thousand ids, in 11 MiB.
const TABLES: usize = 5;

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, RandomState};

    use super::*;

    #[test]
    fn an_id_is_known_while_it_is_seen() {
        let hashes = RandomState::new();
        let known = KnownIds::default();
        for start in [0, 5, RING - 1, 10 * RING + 7] {
            let [id, other] = [(start, "id"), (start, "other")].map(|it| hashes.hash_one(it));
            assert!(!known.renew(id, start));
            known.put(id, start);
            assert!(!known.renew(other, start));
            assert!(known.renew(id, start + KEPT_MAX - 1), "{start}");
            assert!(known.renew(id, start + 2 * KEPT_MAX - 2), "it was renewed");
            assert!(!known.renew(id, start + 3 * KEPT_MAX - 2), "{start}");
        }
    }

    #[test]
    fn tables_grow_and_say_when_they_are_full() {
        let hashes = RandomState::new();
        let known = KnownIds::default();
        for id in 0..200_000_u32 {
            known.put(hashes.hash_one(id), 3);
        }
        assert!(!known.is_incomplete(3));
        let missing = (0..200_000_u32).filter(|id| !known.renew(hashes.hash_one(id), 4));
        assert_eq!(missing.count(), 0);
        let strangers = (200_000..400_000_u32).filter(|id| known.renew(hashes.hash_one(id), 4));
        assert_eq!(strangers.count(), 0);
        // More than the places of one bucket of each table.
        let beside = |id: u64| id << 20 | 7;
        for id in 0..=(BUCKET * TABLES) as u64 {
            known.put(beside(id), 4);
        }
        assert!(known.is_incomplete(4));
        // Once those are over there is room again.
        let later = 4 + KEPT_MIN;
        assert!(!known.is_incomplete(later));
        known.put(beside(99), later);
        assert!(known.renew(beside(99), later) && !known.is_incomplete(later));
    }
}
