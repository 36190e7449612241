//! The unused connections of one backend on one worker.
//!
//! Last in, first out: the connection used last is the least likely to have been closed by the backend,
//! and the oldest ones stay unused and expire. The pool only stores: it is generic over connections, and
//! the clock is an argument.
//!
//! Only its own worker takes connections from a pool. The mutex is for rare cases: another worker needs
//! a connection closed because the backend's cap is reached, or a reload closes some.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Pool<C> {
    /// The unused connections, the oldest first.
    idle: Mutex<VecDeque<Idle<C>>>,
}

impl<C> Default for Pool<C> {
    fn default() -> Self {
        Self {
            idle: Mutex::default(),
        }
    }
}

#[derive(Debug)]
struct Idle<C> {
    conn: C,
    since: Instant,
}

/// Whether an exchange may use a pooled connection, which the backend may be closing at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// A pooled connection may be used that was quiet when the event loop last looked. For requests that
    /// may be sent again.
    Any,
    /// A pooled connection may be used that is quiet now, which costs a system call, and that has been
    /// idle for less time than connections that the backend was recently found to have closed. For
    /// requests that must not run twice.
    Lasting,
    /// No pooled connection may be used: one has just failed, and the others may be closed as well.
    Never,
}

impl<C> Pool<C> {
    pub(crate) fn put(&self, conn: C, now: Instant) {
        self.lock().push_back(Idle { conn, since: now });
    }

    /// Takes the connection used last, with its idle time. `None` if there is none, or if it was idle for
    /// `idle_timeout`; then this closes all connections.
    pub(crate) fn take(&self, now: Instant, idle_timeout: Duration) -> Option<(C, Duration)> {
        let mut idle = self.lock();
        let Idle { conn, since } = idle.pop_back()?;
        // Under load `since` is mostly equal to `now`, and this comparison is cheaper than the subtraction.
        let age = if now > since {
            now.saturating_duration_since(since)
        } else {
            Duration::ZERO
        };
        if age < idle_timeout {
            return Some((conn, age));
        }
        // All others have been idle for longer. They are closed without the lock.
        let expired = std::mem::take(&mut *idle);
        drop(idle);
        drop((conn, expired));
        None
    }

    /// Takes the connection that was idle for longest, so that it is closed in favour of another worker.
    pub(crate) fn evict(&self) -> Option<C> {
        self.lock().pop_front().map(|idle| idle.conn)
    }

    /// Closes connections that are too old or for which `keep` is false; returns how many.
    pub(crate) fn sweep(
        &self,
        now: Instant,
        idle_timeout: Duration,
        keep: impl Fn(&C) -> bool,
    ) -> usize {
        let mut idle = self.lock();
        let unused = std::mem::take(&mut *idle);
        let (kept, swept): (VecDeque<_>, VecDeque<_>) = unused.into_iter().partition(|idle| {
            now.saturating_duration_since(idle.since) < idle_timeout && keep(&idle.conn)
        });
        *idle = kept;
        // Unlocked before the swept connections are closed.
        drop(idle);
        swept.len()
    }

    /// The number of unused connections.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Idle<C>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn pool_of(ages: &[u64]) -> (Pool<u64>, Instant) {
        let pool = Pool::default();
        let now = Instant::now() + Duration::from_secs(3600);
        for &age in ages {
            pool.put(age, now - Duration::from_secs(age));
        }
        (pool, now)
    }

    #[test]
    fn last_in_first_out() {
        let (pool, now) = pool_of(&[20, 10, 5]);
        assert_eq!(pool.take(now, TIMEOUT), Some((5, Duration::from_secs(5))));
        assert_eq!(pool.take(now, TIMEOUT), Some((10, Duration::from_secs(10))));
        assert_eq!(pool.evict(), Some(20));
        assert_eq!(pool.take(now, TIMEOUT), None);
    }

    #[test]
    fn the_old_go_together() {
        let (pool, now) = pool_of(&[50, 40, 30]);
        assert_eq!(pool.take(now, TIMEOUT), None);
        assert_eq!(pool.len(), 0);
    }

    #[test]
    fn eviction_takes_the_oldest() {
        let (pool, _) = pool_of(&[20, 10]);
        assert_eq!(pool.evict(), Some(20));
        assert_eq!(pool.len(), 1);
    }

    #[test]
    fn a_sweep_closes_the_old_and_the_loud_and_keeps_the_order() {
        let (pool, now) = pool_of(&[40, 20, 15, 10]);
        assert_eq!(pool.sweep(now, TIMEOUT, |&age| age != 15), 2);
        assert_eq!(pool.take(now, TIMEOUT), Some((10, Duration::from_secs(10))));
        assert_eq!(pool.take(now, TIMEOUT), Some((20, Duration::from_secs(20))));
    }
}
