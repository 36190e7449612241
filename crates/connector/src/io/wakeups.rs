//! The queue by which applications tell a worker which of its connections have something to
//! do.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::pipe::Wake;

/// Keys of connections to be polled, shared by a worker and all threads that may wake it.
pub(super) struct Wakeups {
    /// The keys; some may be of earlier connections. The lock is held for a push or a swap
    /// only.
    keys: Mutex<Vec<usize>>,
    /// Ends the worker's wait, or its next one.
    rouse: Box<dyn Fn() + Send + Sync>,
}

impl Wakeups {
    /// `rouse` ends the worker's wait, or the next one if it does not wait.
    pub(super) fn new(rouse: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            keys: Mutex::default(),
            rouse: Box::new(rouse),
        }
    }

    /// Ends the worker's wait without a key.
    pub(super) fn rouse(&self) {
        (self.rouse)();
    }

    /// Moves the keys to `keys`, which is empty.
    pub(super) fn take(&self, keys: &mut Vec<usize>) {
        let mut waiting = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *waiting, keys);
    }
}

impl Wake for Wakeups {
    fn wake(&self, key: usize) {
        let mut waiting = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(key);
        // The worker takes all keys at once, so the thread that added the first key has woken it.
        let first = waiting.len() == 1;
        drop(waiting);
        if first {
            self.rouse();
        }
    }
}

impl fmt::Debug for Wakeups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakeups")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
