//! The entries that one worker is asked for most: a small table of each worker, in front of the store that all
//! workers share.
//!
//! To share an object, a reference counter in it is written; workers that send the same page would wait for each
//! other's writes. A [`WorkerEntry`] is a worker's own reference to an entry, and references to it are counted in
//! memory of that worker alone. An entry that was replaced or removed is marked so, so the table need not be told in
//! time. The table is small, and holds no large entries.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use catamaran_message::Fields;

use crate::cache::object::Object;
use crate::cache::store::Entry;

/// A worker's own reference to the entry of a key.
#[derive(Debug)]
pub(crate) struct WorkerEntry {
    entry: Arc<Entry>,
    /// The fields of the newest response, and the first block of its body. All bytes are those of the store; only the
    /// references to them are counted here.
    fields: OnceLock<Fields>,
    block: OnceLock<Bytes>,
}

impl WorkerEntry {
    pub(super) fn new(entry: Arc<Entry>) -> Self {
        Self {
            entry,
            fields: OnceLock::new(),
            block: OnceLock::new(),
        }
    }

    /// The fields of `newest`, which must be the entry's newest response.
    fn fields(&self, newest: &Object) -> &Fields {
        self.fields
            .get_or_init(|| newest.head.fields.counted_anew())
    }

    /// The first block of the body of `newest`, which must be the entry's newest response.
    fn first_block(&self, newest: &Object) -> Option<Bytes> {
        if let Some(block) = self.block.get() {
            return Some(block.clone());
        }
        let shared = newest.block(0)?;
        // The bytes stay where they are, but references to them are counted in this entry.
        let own = || Bytes::from_owner(shared);
        Some(self.block.get_or_init(own).clone())
    }
}

impl Deref for WorkerEntry {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}

/// A response as it is sent: found in the store, or just received.
#[derive(Clone, Debug)]
pub(crate) enum StoredResponse {
    /// A response of an entry, by its index in [`Entry::variants`].
    Found(Arc<WorkerEntry>, usize),
    Received(Arc<Object>),
}

impl StoredResponse {
    /// The stored response.
    pub(crate) fn object(&self) -> &Arc<Object> {
        match self {
            Self::Found(entry, index) => entry.variant(*index).expect("it was found there"),
            Self::Received(object) => object,
        }
    }

    /// The fields of the response.
    pub(crate) fn fields(&self) -> &Fields {
        match self {
            Self::Found(entry, 0) => entry.fields(self.object()),
            _ => &self.object().head.fields,
        }
    }

    /// The block of the body at this index; `None` beyond the end.
    pub(crate) fn block(&self, index: usize) -> Option<Bytes> {
        match self {
            Self::Found(entry, 0) if index == 0 => entry.first_block(self.object()),
            _ => self.object().block(index),
        }
    }
}

/// The table of a worker's most used entries.
#[derive(Debug, Default)]
pub(super) struct HotTable {
    /// The slots of the table; none until the first entry is kept.
    slots: Box<[Option<HotSlot>]>,
    /// The number of purges when the slots were filled. The first look-up after a further purge empties all slots.
    purges: u64,
}

#[derive(Debug)]
struct HotSlot {
    key: Box<[u8]>,
    entry: Arc<WorkerEntry>,
    /// How often the slot was looked up with success.
    uses: u32,
}

impl HotTable {
    /// The entry of a key, if this table has it. Every [`USES`]th time it returns `None`, so that the store, which
    /// evicts unused keys, sees that the key is in use.
    pub(super) fn find(&mut self, key: &[u8], purges: u64) -> Option<Arc<WorkerEntry>> {
        if self.purges != purges {
            self.slots = Box::default();
            self.purges = purges;
        }
        let slot = self.slots.get_mut(slot_of(key))?.as_mut()?;
        if *slot.key != *key || slot.entry.is_over() {
            return None;
        }
        slot.uses = slot.uses.wrapping_add(1);
        if slot.uses.is_multiple_of(USES) {
            return None;
        }
        Some(Arc::clone(&slot.entry))
    }

    /// Makes an entry of the store this worker's own, and puts it into the table unless it is too large.
    pub(super) fn keep(&mut self, key: &[u8], entry: Arc<Entry>) -> Arc<WorkerEntry> {
        if let Some(Some(slot)) = self.slots.get(slot_of(key))
            && Arc::ptr_eq(&slot.entry.entry, &entry)
        {
            return Arc::clone(&slot.entry);
        }
        let is_small = entry.weight() <= WEIGHT_MAX;
        let entry = Arc::new(WorkerEntry::new(entry));
        if is_small {
            if self.slots.is_empty() {
                self.slots = (0..SLOTS).map(|_| None).collect();
            }
            self.slots[slot_of(key)] = Some(HotSlot {
                key: key.into(),
                entry: Arc::clone(&entry),
                uses: 0,
            });
        }
        entry
    }

    /// Drops entries that the store has replaced or removed.
    pub(super) fn sweep(&mut self) {
        for slot in &mut self.slots {
            if let Some(filled) = slot
                && filled.entry.is_over()
            {
                *slot = None;
            }
        }
    }
}

/// The slot of a key. Keys of the same slot replace each other, so a client that chooses keys gains nothing.
fn slot_of(key: &[u8]) -> usize {
    let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(FACTOR).rotate_left(23);
    let (words, last_bytes) = key.as_chunks();
    let mut hash = key.len() as u64;
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    for byte in last_bytes {
        hash = mix(hash, u64::from(*byte));
    }
    (hash >> 32) as usize % SLOTS
}

/// The number of slots in a table.
const SLOTS: usize = 512;

/// One in this number of look-ups of a slot goes to the store instead.
const USES: u32 = 64;

/// The largest entry that is kept, in bytes. With a long body the cost of a shared counter hardly matters.
const WEIGHT_MAX: u64 = 64 * 1024;

/// The multiplier of the hash of keys: any odd number with many ones and zeros.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_until_it_is_over_or_purged() {
        let mut table = HotTable::default();
        assert!(table.find(b"a", 0).is_none());
        let entry = Arc::new(Entry::default());
        let kept = table.keep(b"a", Arc::clone(&entry));
        assert!(Arc::ptr_eq(&table.find(b"a", 0).unwrap(), &kept));
        assert!(table.find(b"b", 0).is_none());
        assert!(
            table.find(b"a", 1).is_none(),
            "it is looked up after a purge"
        );
        assert!(table.find(b"a", 1).is_none());
        drop(kept);
        let kept = table.keep(b"a", Arc::clone(&entry));
        assert!(Arc::ptr_eq(&table.find(b"a", 1).unwrap(), &kept));
        kept.end();
        assert!(table.find(b"a", 1).is_none());
        drop(kept);
        assert_eq!(Arc::strong_count(&entry), 2);
        table.sweep();
        assert_eq!(Arc::strong_count(&entry), 1, "nothing of it is held");
    }

    #[test]
    fn the_store_hears_of_a_key_that_is_in_use() {
        let mut table = HotTable::default();
        let entry = Arc::new(Entry::default());
        let kept = table.keep(b"a", Arc::clone(&entry));
        let found = (0..4 * USES)
            .filter(|_| table.find(b"a", 0).is_some())
            .count();
        assert_eq!(found, 4 * (USES as usize - 1));
        assert!(
            Arc::ptr_eq(&table.keep(b"a", entry), &kept),
            "the same again"
        );
    }

    #[test]
    fn keys_are_spread() {
        let mut places = std::collections::BTreeSet::new();
        for at in 0..SLOTS {
            places.insert(slot_of(format!("http://a/page-{at}\n=app\n").as_bytes()));
        }
        assert!(places.len() > SLOTS / 2, "{}", places.len());
    }
}
