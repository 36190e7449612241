//! What a cache counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use catamaran_transport::{Count, PerWorker};

use crate::lock::lock;

/// What a cache did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CacheResult {
    /// It was answered from memory.
    Hit,
    /// It was answered with a stale response.
    Stale,
    /// It was answered from memory after the backend had said that the response is valid.
    Revalidated,
    /// A backend was asked.
    Miss,
    /// It was answered with a response that another request had asked for.
    Collapsed,
    /// The cache has no part in it.
    Bypass,
    /// A backend was asked for what cannot be stored.
    Uncacheable,
}

impl CacheResult {
    /// All results.
    pub(crate) const ALL: [Self; 7] = [
        Self::Hit,
        Self::Stale,
        Self::Revalidated,
        Self::Miss,
        Self::Collapsed,
        Self::Bypass,
        Self::Uncacheable,
    ];

    /// Whether no backend had to send the response for this request.
    pub(crate) fn is_from_memory(self) -> bool {
        matches!(
            self,
            Self::Hit | Self::Stale | Self::Revalidated | Self::Collapsed
        )
    }

    /// Its name in logs and metrics.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Stale => "stale",
            Self::Revalidated => "revalidated",
            Self::Miss => "miss",
            Self::Collapsed => "collapsed",
            Self::Bypass => "bypass",
            Self::Uncacheable => "uncacheable",
        }
    }
}

/// The counters of one cache.
#[derive(Debug)]
pub(crate) struct CacheCounts {
    results: PerWorker<[Count; CacheResult::ALL.len()]>,
    /// Why requests passed the cache by, and why responses were not stored.
    reasons: Mutex<BTreeMap<(CacheResult, &'static str), u64>>,
}

impl CacheCounts {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            results: PerWorker::new(workers, |_| Default::default()),
            reasons: Mutex::default(),
        }
    }

    /// Counts the result of a request, on the calling thread's worker.
    pub(crate) fn result(&self, worker: usize, result: CacheResult) {
        let mut counters = CacheResult::ALL.iter().zip(&self.results[worker]);
        if let Some((_, counter)) = counters.find(|(its, _)| **its == result) {
            counter.increment();
        }
    }

    /// Counts why a request passed the cache by, or why a response was not stored.
    pub(crate) fn reason(&self, result: CacheResult, token: &'static str) {
        *self.lock().entry((result, token)).or_default() += 1;
    }

    /// How often there was each result, in the order of [`CacheResult::ALL`].
    pub(crate) fn results(&self) -> [u64; CacheResult::ALL.len()] {
        let mut sums = [0; CacheResult::ALL.len()];
        for counters in self.results.iter() {
            for (sum, counter) in sums.iter_mut().zip(counters) {
                *sum += counter.read();
            }
        }
        sums
    }

    /// How often there was each reason.
    pub(crate) fn reasons(&self) -> BTreeMap<(CacheResult, &'static str), u64> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(CacheResult, &'static str), u64>> {
        lock(&self.reasons)
    }
}
