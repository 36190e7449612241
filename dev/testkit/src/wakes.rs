//! A waker that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

/// A counter of how often a task was woken.
#[derive(Debug, Default)]
pub struct Wakes(AtomicUsize);

impl Wakes {
    /// A waker, and the counter of its calls.
    #[must_use]
    pub fn counted() -> (Waker, Arc<Self>) {
        let wakes = Arc::<Self>::default();
        (Waker::from(Arc::clone(&wakes)), wakes)
    }

    /// The number of calls so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// The number of calls since the last call of this method.
    pub fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
