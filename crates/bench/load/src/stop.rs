//! The number of requests that may still begin: exactly as many as the plan has, over all threads.
//!
//! Threads take requests from a common [`Budget`] in small blocks, so that sending one touches no
//! shared memory. Each thread reserves one for each of its connections beforehand, so that all
//! connections are used even by short runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The requests that are left, for all threads together.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The number left; `None`: unlimited.
    left: Option<AtomicU64>,
    threads: u64,
}

/// The requests that one thread has taken from the budget.
#[derive(Debug)]
pub(crate) struct Share {
    /// The number of requests taken and not yet begun.
    own: u64,
    budget: Arc<Budget>,
}

impl Budget {
    /// A budget of `requests` requests for `threads` threads; `None`: unlimited.
    pub(crate) fn new(requests: Option<u64>, threads: usize) -> Self {
        Self {
            left: requests.map(AtomicU64::new),
            threads: threads.max(1) as u64,
        }
    }

    /// The share of a thread with this number of connections; it begins with one request for each.
    pub(crate) fn share(self: &Arc<Self>, connections: usize) -> Share {
        Share {
            own: self.take(|left| left.min(connections as u64)),
            budget: Arc::clone(self),
        }
    }

    /// Takes requests out of the budget; `size` returns how many, given the number left.
    fn take(&self, size: impl Fn(u64) -> u64) -> u64 {
        let Some(left) = &self.left else {
            return BLOCK_MAX;
        };
        let update = |left: u64| Some(left - size(left).min(left));
        // The update never fails, as it always returns a value.
        let (Ok(before) | Err(before)) =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        size(before).min(before)
    }
}

impl Share {
    /// Takes one request; `false`: the budget is used up.
    pub(crate) fn claim(&mut self) -> bool {
        if self.own == 0 {
            let threads = self.budget.threads;
            // Smaller blocks towards the end, so that no thread sits on what others could send.
            self.own = self
                .budget
                .take(|left| left.div_ceil(threads * 8).clamp(1, BLOCK_MAX));
        }
        if self.own == 0 {
            return false;
        }
        self.own -= 1;
        true
    }
}

/// The most requests that are taken from the budget at once.
const BLOCK_MAX: u64 = 64;

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_claim_exactly_what_there_is() {
        for total in [0, 1, 7, 100, 10_007] {
            let budget = Arc::new(Budget::new(Some(total), 4));
            let claimed: u64 = thread::scope(|scope| {
                let count = || {
                    let mut share = budget.share(5);
                    std::iter::from_fn(|| share.claim().then_some(())).count() as u64
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
                threads.into_iter().map(|t| t.join().unwrap()).sum()
            });
            assert_eq!(claimed, total);
        }
    }

    #[test]
    fn each_thread_has_one_for_each_of_its_connections() {
        let budget = Arc::new(Budget::new(Some(10), 2));
        let (mut first, mut second) = (budget.share(5), budget.share(5));
        assert_eq!((0..9).filter(|_| first.claim()).count(), 5);
        assert_eq!((0..9).filter(|_| second.claim()).count(), 5);
    }

    #[test]
    fn without_a_number_there_is_no_end() {
        let mut share = Arc::new(Budget::new(None, 1)).share(1);
        assert!((0..100_000).all(|_| share.claim()));
    }
}
