//! The retries an upstream may still have, shared by all workers.
//!
//! The rule is [`catamaran_balance::RetryBudget`]'s. A request costs one atomic addition; the lock
//! is taken only when something is to be retried.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use catamaran_balance::RetryBudget;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Allowance {
    requests: AtomicU64,
    origin: Instant,
    budget: Mutex<RetryBudget>,
}

impl Allowance {
    pub(crate) fn new() -> Self {
        Self {
            requests: AtomicU64::new(0),
            origin: Instant::now(),
            budget: Mutex::new(RetryBudget::new(Duration::ZERO)),
        }
    }

    /// Counts a request, by which retries are earned.
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes one retry, if there is one.
    pub(crate) fn retry(&self) -> bool {
        let requests = self.requests.load(Ordering::Relaxed);
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.spend(self.origin.elapsed(), requests)
    }
}
