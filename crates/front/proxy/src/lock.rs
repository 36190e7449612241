//! Locks whose holder cannot leave half a change behind.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, also after a thread has panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
