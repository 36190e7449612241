//! What the front counted, and the reasons it gives.
//!
//! Counters are plain atomics, shared by all workers and read as one snapshot. Each refusal and
//! failure is counted under its [`Reason`], the same that the access log shows.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use catamaran_upstream::Culprit;
use http::StatusCode;

/// Why something was refused or failed: whose doing, and one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    culprit: Culprit,
    token: &'static str,
}

impl Reason {
    pub(crate) fn new(culprit: Culprit, token: &'static str) -> Self {
        Self { culprit, token }
    }

    /// Whether the client, or what it asked for, is to blame.
    pub(crate) fn is_client(self) -> bool {
        self.culprit == Culprit::Client
    }

    /// Whose doing it was.
    #[must_use]
    pub fn culprit(self) -> Culprit {
        self.culprit
    }

    /// What happened, in one word.
    #[must_use]
    pub fn token(self) -> &'static str {
        self.token
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.culprit, self.token)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    accepted: AtomicU64,
    open: Arc<AtomicUsize>,
    requests: AtomicU64,
    /// By the status' first digit; 0 is a response that never got a head.
    responses: [AtomicU64; 10],
    retries: AtomicU64,
    reloads_applied: AtomicU64,
    reloads_refused: AtomicU64,
    /// Rarely touched: only where something went wrong.
    reasons: Mutex<BTreeMap<Reason, u64>>,
}

/// The front's counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountersSnapshot {
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Connections open now.
    pub open: usize,
    /// Requests whose head was understood, since the start.
    pub requests: u64,
    /// Responses by the first digit of their status; 0 counts exchanges that ended without one.
    pub responses: [u64; 10],
    /// Attempts after a first failed one.
    pub retries: u64,
    /// Configurations put in force in place of another.
    pub reloads_applied: u64,
    /// Configurations that were to be put in force and had faults.
    pub reloads_refused: u64,
    /// Refusals and failures, such as `client:bare-lf`.
    pub reasons: BTreeMap<Reason, u64>,
}

impl Counters {
    /// Counts a connection, until the guard is dropped. `None` if there are `max` already.
    pub(crate) fn connect(&self, max: usize) -> Option<OpenConnection> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        if self.open.fetch_add(1, Ordering::Relaxed) >= max {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(OpenConnection(Arc::clone(&self.open)))
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn response(&self, status: Option<StatusCode>) {
        let digit = status.map_or(0, |status| usize::from(status.as_u16() / 100));
        if let Some(counter) = self.responses.get(digit) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reload(&self, applied: bool) {
        let counter = if applied {
            &self.reloads_applied
        } else {
            &self.reloads_refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reason(&self, reason: Reason) {
        // Nothing panics under the lock, so poison carries no news.
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        *reasons.entry(reason).or_default() += 1;
    }

    pub(crate) fn snapshot(&self) -> CountersSnapshot {
        CountersSnapshot {
            accepted: self.accepted.load(Ordering::Relaxed),
            open: self.open(),
            requests: self.requests.load(Ordering::Relaxed),
            responses: std::array::from_fn(|digit| self.responses[digit].load(Ordering::Relaxed)),
            retries: self.retries.load(Ordering::Relaxed),
            reloads_applied: self.reloads_applied.load(Ordering::Relaxed),
            reloads_refused: self.reloads_refused.load(Ordering::Relaxed),
            reasons: self
                .reasons
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        }
    }
}

/// A connection counted as open.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<AtomicUsize>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
