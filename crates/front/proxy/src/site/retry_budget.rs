//! The retry budget of an upstream, shared by all workers.
//!
//! [`catamaran_balance::RetryBudget`] has the rule. Each worker counts its own requests. Only when a
//! request is to be retried is the lock taken and are the counts summed up.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use catamaran_balance::RetryBudget;
use catamaran_transport::{Count, PerWorker};
use tokio::time::Instant;

use crate::lock::lock;

#[derive(Debug)]
pub(crate) struct SharedRetryBudget {
    requests: PerWorker<Count>,
    origin: Instant,
    budget: Mutex<RetryBudget>,
}

impl SharedRetryBudget {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            requests: PerWorker::new(workers, |_| Count::default()),
            origin: Instant::now(),
            budget: Mutex::new(RetryBudget::new(Duration::ZERO)),
        }
    }

    /// Counts a request, which earns a part of a retry.
    pub(crate) fn request(&self, worker: usize) {
        self.requests[worker].increment();
    }

    /// Whether at least one retry may be taken now.
    pub(crate) fn has_retry(&self) -> bool {
        self.left() > 0
    }

    /// How many retries may be taken now.
    pub(crate) fn left(&self) -> u64 {
        let requests = self.requests.sum();
        self.budget().left(self.origin.elapsed(), requests)
    }

    /// Takes one retry; `false` if none is left.
    pub(crate) fn retry(&self) -> bool {
        self.budget()
            .spend(self.origin.elapsed(), self.requests.sum())
    }

    fn budget(&self) -> MutexGuard<'_, RetryBudget> {
        lock(&self.budget)
    }
}
