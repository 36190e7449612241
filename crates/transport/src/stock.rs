//! Things that a thread keeps to use them again.
//!
//! What is needed with every request is taken from a stock and given back, not made and destroyed.
//! A stock belongs to one thread, so there is nothing to lock. It is last in, first out: what was
//! given back last is still in the processor's caches. It follows the demand: whoever owns it calls
//! [`Stock::trim`] now and then, which lets go of what was not needed since the last time.

/// Up to [`Stock::MAX`] things of one kind.
#[derive(Debug)]
pub struct Stock<T> {
    items: Vec<T>,
    /// The fewest there were since the last trim: so many nobody needed.
    unneeded: usize,
}

impl<T> Stock<T> {
    /// What is given back beyond this number is not kept.
    pub const MAX: usize = 1024;

    /// An empty stock.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            items: Vec::new(),
            unneeded: 0,
        }
    }

    /// The thing given back last, if there is any.
    #[must_use]
    pub fn take(&mut self) -> Option<T> {
        let item = self.items.pop();
        self.unneeded = self.unneeded.min(self.items.len());
        item
    }

    /// Takes a thing back, or drops it if there are enough.
    pub fn give(&mut self, item: T) {
        if self.items.len() < Self::MAX {
            self.items.push(item);
        }
    }

    /// Drops what was not needed since the last call.
    pub fn trim(&mut self) {
        // At the bottom is what was not used for longest.
        self.items.drain(..self.unneeded);
        self.unneeded = self.items.len();
    }
}

impl<T> Default for Stock<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_last_is_taken_first() {
        let mut stock = Stock::new();
        stock.give(1);
        stock.give(2);
        assert_eq!(
            [stock.take(), stock.take(), stock.take()],
            [Some(2), Some(1), None]
        );
    }

    #[test]
    fn there_is_a_limit() {
        let mut stock = Stock::new();
        for item in 0..=Stock::<usize>::MAX {
            stock.give(item);
        }
        assert_eq!(stock.take(), Some(Stock::<usize>::MAX - 1));
    }

    #[test]
    fn what_nobody_needed_since_the_last_trim_goes() {
        let mut stock = Stock::new();
        for item in 0..10 {
            stock.give(item);
        }
        stock.trim();
        let taken: Vec<_> = std::iter::from_fn(|| stock.take()).take(4).collect();
        taken.into_iter().rev().for_each(|item| stock.give(item));
        stock.trim();
        let left: Vec<_> = std::iter::from_fn(|| stock.take()).collect();
        assert_eq!(left, [9, 8, 7, 6]);
    }
}
