//! Objects that a thread keeps for reuse.
//!
//! Objects that every request needs are taken from a free list and returned, not created and
//! destroyed. A free list belongs to one thread, so it has no lock. It is last in, first out, because
//! the object returned last is still in the processor's caches. Its owner calls [`FreeList::trim`]
//! regularly, which drops the objects that were not needed since the previous call.

/// A stack of up to [`FreeList::MAX`] objects for reuse.
#[derive(Debug)]
pub struct FreeList<T> {
    items: Vec<T>,
    /// The smallest number of objects in the list since the last trim: that many were not needed.
    unneeded: usize,
}

impl<T> FreeList<T> {
    /// The most objects that are kept.
    pub const MAX: usize = 1024;

    /// An empty free list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            items: Vec::new(),
            unneeded: 0,
        }
    }

    /// Takes the object that was returned last; `None` if the list is empty.
    #[must_use]
    pub fn take(&mut self) -> Option<T> {
        let item = self.items.pop();
        self.unneeded = self.unneeded.min(self.items.len());
        item
    }

    /// Takes an object back, or drops it if the list is full.
    pub fn give(&mut self, item: T) {
        if self.items.len() < Self::MAX {
            self.items.push(item);
        }
    }

    /// Drops the objects that were not needed since the last call.
    pub fn trim(&mut self) {
        // The objects at the bottom were unused for longest.
        self.items.drain(..self.unneeded);
        self.unneeded = self.items.len();
    }
}

impl<T> Default for FreeList<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_last_is_taken_first() {
        let mut list = FreeList::new();
        list.give(1);
        list.give(2);
        assert_eq!(
            [list.take(), list.take(), list.take()],
            [Some(2), Some(1), None]
        );
    }

    #[test]
    fn there_is_a_limit() {
        let mut list = FreeList::new();
        for item in 0..=FreeList::<usize>::MAX {
            list.give(item);
        }
        assert_eq!(list.take(), Some(FreeList::<usize>::MAX - 1));
    }

    #[test]
    fn what_nobody_needed_since_the_last_trim_goes() {
        let mut list = FreeList::new();
        for item in 0..10 {
            list.give(item);
        }
        list.trim();
        let taken: Vec<_> = std::iter::from_fn(|| list.take()).take(4).collect();
        taken.into_iter().rev().for_each(|item| list.give(item));
        list.trim();
        let left: Vec<_> = std::iter::from_fn(|| list.take()).collect();
        assert_eq!(left, [9, 8, 7, 6]);
    }
}
