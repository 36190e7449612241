//! The connections of a worker, by key.
//!
//! They are stored in chunks, each of which is one allocation. Adding a connection moves no other,
//! and chunks share no page of the allocator with short-lived memory of requests. If they did and
//! filled their pages, each request would get a page from the allocator and return it, which took a
//! quarter of its instructions.

use slab::Slab;

/// Tasks by key. Keys are small and dense, and are reused.
#[derive(Debug)]
pub(super) struct Tasks<T> {
    /// The chunks, of at most [`CHUNK`] tasks each; a chunk has no memory before it is needed.
    chunks: Vec<Slab<T>>,
    /// Indices of the chunks with room; the last one is used next.
    roomy: Vec<usize>,
    len: usize,
}

impl<T> Default for Tasks<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            roomy: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Tasks<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the task that `make` creates for its key, and returns the key.
    pub(super) fn insert(&mut self, make: impl FnOnce(usize) -> T) -> usize {
        let chunk = match self.roomy.last() {
            Some(chunk) => *chunk,
            None => {
                self.roomy.push(self.chunks.len());
                self.chunks.push(Slab::new());
                self.chunks.len() - 1
            }
        };
        let tasks = &mut self.chunks[chunk];
        // The chunk is new, or gave its memory back when it was empty.
        if tasks.capacity() == 0 {
            *tasks = Slab::with_capacity(CHUNK);
        }
        let entry = tasks.vacant_entry();
        let key = chunk * CHUNK + entry.key();
        entry.insert(make(key));
        if tasks.len() == CHUNK {
            self.roomy.pop();
        }
        self.len += 1;
        key
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut T> {
        self.chunks.get_mut(key / CHUNK)?.get_mut(key % CHUNK)
    }

    pub(super) fn remove(&mut self, key: usize) -> Option<T> {
        let chunk = key / CHUNK;
        let tasks = self.chunks.get_mut(chunk)?;
        let was_full = tasks.len() == CHUNK;
        let task = tasks.try_remove(key % CHUNK)?;
        self.len -= 1;
        if was_full {
            self.roomy.push(chunk);
        } else if tasks.is_empty() && self.roomy.len() > 1 {
            // Another chunk has room, so this one gives its memory back and is used last.
            *tasks = Slab::new();
            self.roomy.retain(|roomy| *roomy != chunk);
            self.roomy.insert(0, chunk);
        }
        Some(task)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = usize> {
        let chunks = self.chunks.iter().enumerate();
        chunks.flat_map(|(chunk, tasks)| tasks.iter().map(move |(key, _)| chunk * CHUNK + key))
    }

    pub(super) fn into_tasks(self) -> impl Iterator<Item = T> {
        let tasks = self.chunks.into_iter().flatten();
        tasks.map(|(_, task)| task)
    }
}

/// The most tasks in a chunk, which takes about 40 KB.
const CHUNK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_its_key_until_it_is_removed() {
        let mut tasks = Tasks::default();
        let count = 3 * CHUNK + 1;
        for expected in 0..count {
            assert_eq!(tasks.insert(|key| key), expected);
        }
        let (odd, even): (Vec<usize>, Vec<usize>) = (0..count).partition(|key| key % 2 == 1);
        for key in &odd {
            assert_eq!(tasks.remove(*key), Some(*key));
            assert_eq!((tasks.remove(*key), tasks.get_mut(*key)), (None, None));
        }
        assert_eq!(tasks.keys().collect::<Vec<_>>(), even);
        let mut again: Vec<usize> = odd.iter().map(|_| tasks.insert(|key| key)).collect();
        again.sort_unstable();
        assert_eq!(again, odd, "places are used again");
        assert_eq!(tasks.into_tasks().count(), count);
    }

    #[test]
    fn chunks_that_are_not_needed_give_their_memory_back() {
        let mut tasks = Tasks::default();
        for _ in 0..4 * CHUNK {
            tasks.insert(|key| key);
        }
        for key in 0..4 * CHUNK {
            assert!(!tasks.is_empty());
            assert_eq!(tasks.remove(key), Some(key));
        }
        assert!(tasks.is_empty());
        let kept = tasks.chunks.iter().filter(|tasks| tasks.capacity() > 0);
        assert_eq!(kept.count(), 1);
        let mut keys: Vec<usize> = (0..4 * CHUNK).map(|_| tasks.insert(|key| key)).collect();
        keys.sort_unstable();
        assert_eq!(keys, (0..4 * CHUNK).collect::<Vec<_>>());
    }
}
