//! The keys that were refused most, in bounded memory: the space-saving algorithm (Metwally, Agrawal, El Abbadi 2005).
//! Only refusals are noted, so that requests that pass cost nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The keys that were refused most.
#[derive(Debug, Default)]
pub struct Sketch(Mutex<Vec<RefusedKey>>);

/// A key that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedKey {
    /// The number of the limit that refused it.
    pub limit: u16,
    key: u64,
    /// The key in words.
    pub label: Box<str>,
    /// The upper bound of the number of its refusals. A key that was refused more often than every key outside the
    /// sketch is always in it.
    pub count: u64,
    /// By how much `count` may be too high: the refusals of keys that had this entry before.
    pub excess: u64,
}

impl Sketch {
    /// Notes a refusal of `key` by `limit`. `label` is called only for a key that is not in the sketch; at most 64
    /// bytes of its text are kept.
    pub fn note(&self, limit: u16, key: u64, label: impl FnOnce() -> String) {
        let mut entries = self.lock();
        let is_same = |entry: &&mut RefusedKey| entry.key == key && entry.limit == limit;
        if let Some(known) = entries.iter_mut().find(is_same) {
            known.count = known.count.saturating_add(1);
            return;
        }
        // A full sketch replaces its least entry. The new key may have been refused as often while it was not listed.
        let least = entries.iter().enumerate().min_by_key(|(_, it)| it.count);
        let excess = match least {
            Some((index, _)) if entries.len() >= ENTRIES_MAX => entries.swap_remove(index).count,
            _ => 0,
        };
        entries.push(RefusedKey {
            limit,
            key,
            label: shortened(label()).into(),
            count: excess.saturating_add(1),
            excess,
        });
    }

    /// At most `count` keys, the most often refused first.
    #[must_use]
    pub fn top(&self, count: usize) -> Vec<RefusedKey> {
        let mut entries = self.lock().clone();
        entries.sort_by_key(|it| std::cmp::Reverse(it.count));
        entries.truncate(count);
        entries
    }

    /// Forgets the refusals of a key.
    pub fn forget(&self, limit: u16, key: u64) {
        self.lock().retain(|it| it.key != key || it.limit != limit);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RefusedKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts a label that is too long, and marks the cut.
fn shortened(mut label: String) -> String {
    if label.len() > LABEL_MAX {
        label.truncate(label.floor_char_boundary(LABEL_MAX - '…'.len_utf8()));
        label.push('…');
    }
    label
}

const ENTRIES_MAX: usize = 64;

/// The longest label, in bytes.
const LABEL_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_refused_most_are_found_among_many_others() {
        let sketch = Sketch::default();
        for round in 0..1000_u64 {
            for key in 0..3 {
                sketch.note(7, key, || format!("key {key}"));
            }
            sketch.note(7, 1_000 + round, || "another".to_owned());
        }
        let top = sketch.top(3);
        let mut labels: Vec<&str> = top.iter().map(|it| &*it.label).collect();
        labels.sort_unstable();
        assert_eq!(labels, ["key 0", "key 1", "key 2"]);
        assert!(top.iter().all(|it| it.count == 1000 && it.excess == 0));
        assert_eq!(sketch.top(1000).len(), ENTRIES_MAX);
        sketch.forget(7, 0);
        assert!(sketch.top(1000).iter().all(|it| &*it.label != "key 0"));
    }

    #[test]
    fn a_key_counts_for_each_limit_and_its_label_is_short() {
        let sketch = Sketch::default();
        sketch.note(1, 5, || "é".repeat(8 << 10));
        sketch.note(2, 5, || "short".to_owned());
        sketch.note(2, 5, || unreachable!("it is known"));
        let top = sketch.top(10);
        assert_eq!(
            (&*top[0].label, top[0].count, top[0].limit),
            ("short", 2, 2)
        );
        assert!(top[1].label.len() <= LABEL_MAX && top[1].label.ends_with('…'));
    }
}
