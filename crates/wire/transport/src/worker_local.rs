//! Values that each worker has for itself.
//!
//! Workers share nothing on the hot path. A value that changes with every request exists once for each
//! worker, on cache lines of its own, and is summed up when it is read. A worker is one thread, so a
//! value that only its worker changes needs no read-modify-write.

use std::ops::Index;
use std::sync::atomic::{AtomicU64, Ordering};

/// One value for each worker, by the worker's index.
#[derive(Debug)]
pub struct PerWorker<T>(Box<[Line<T>]>);

/// A value on two cache lines of its own, since processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

impl<T> PerWorker<T> {
    /// Makes a value for each of `workers` workers; `value` gets the worker's index.
    pub fn new(workers: usize, value: impl FnMut(usize) -> T) -> Self {
        Self((0..workers).map(value).map(Line).collect())
    }

    /// The values of all workers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|line| &line.0)
    }
}

impl<T> Index<usize> for PerWorker<T> {
    type Output = T;

    fn index(&self, worker: usize) -> &T {
        &self.0[worker].0
    }
}

/// A number that only its worker's thread changes, and that all threads may read.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds one to the count.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `number` to the count.
    pub fn add(&self, number: u64) {
        let sum = self.read().wrapping_add(number);
        self.0.store(sum, Ordering::Relaxed);
    }

    /// Sets the count to `number`.
    pub fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// Subtracts one that was added before.
    pub fn decrement(&self) {
        self.0.store(self.read().wrapping_sub(1), Ordering::Relaxed);
    }

    /// The current value of the count.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl PerWorker<Count> {
    /// The sum of what all workers counted.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.iter().map(Count::read).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_counts_on_lines_of_its_own() {
        let counts = PerWorker::new(3, |_| Count::default());
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let count = &counts[worker];
                scope.spawn(move || (0..=worker).for_each(|_| count.increment()));
            }
        });
        assert_eq!((counts[2].read(), counts.sum()), (3, 6));
        let places: Vec<usize> = counts
            .iter()
            .map(|it| std::ptr::from_ref(it).addr())
            .collect();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 128));
    }
}
