//! The counters of a cache: the results of requests, and the reasons for not using or storing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use catamaran_transport::{Count, PerWorker};

use crate::lock::lock;

/// The result of a request on a route with a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CacheResult {
    /// The request was answered from memory.
    Hit,
    /// The request was answered with a stale response.
    Stale,
    /// The request was answered from memory after the backend had confirmed that the response is
    /// still valid.
    Revalidated,
    /// The request was sent to a backend.
    Miss,
    /// The request was answered with a response that was being fetched for another request.
    Collapsed,
    /// The cache was not used.
    Bypass,
    /// The request was sent to a backend, and the response could not be stored.
    Uncacheable,
}

impl CacheResult {
    /// All results, in the order of metrics.
    pub(crate) const ALL: [Self; 7] = [
        Self::Hit,
        Self::Stale,
        Self::Revalidated,
        Self::Miss,
        Self::Collapsed,
        Self::Bypass,
        Self::Uncacheable,
    ];

    /// Whether no backend had to send a whole response for this request.
    pub(crate) fn is_from_memory(self) -> bool {
        matches!(
            self,
            Self::Hit | Self::Stale | Self::Revalidated | Self::Collapsed
        )
    }

    /// The name of the result in logs and metrics.
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
    /// The number of each reason why requests bypassed the cache, or responses were not stored.
    reasons: Mutex<BTreeMap<(CacheResult, &'static str), u64>>,
}

impl CacheCounts {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            results: PerWorker::new(workers, |_| Default::default()),
            reasons: Mutex::default(),
        }
    }

    /// Counts the result of a request; `worker` is that of the calling thread.
    pub(crate) fn result(&self, worker: usize, result: CacheResult) {
        // `ALL` has the results in the order of their declaration.
        self.results[worker][result as usize].increment();
    }

    /// Counts the reason why a request bypassed the cache, or a response was not stored.
    pub(crate) fn reason(&self, result: CacheResult, token: &'static str) {
        *self.lock().entry((result, token)).or_default() += 1;
    }

    /// The number of requests with each result, in the order of [`CacheResult::ALL`].
    pub(crate) fn results(&self) -> [u64; CacheResult::ALL.len()] {
        let mut sums = [0; CacheResult::ALL.len()];
        for counters in self.results.iter() {
            for (sum, counter) in sums.iter_mut().zip(counters) {
                *sum += counter.read();
            }
        }
        sums
    }

    /// The number of times that each reason occurred.
    pub(crate) fn reasons(&self) -> BTreeMap<(CacheResult, &'static str), u64> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(CacheResult, &'static str), u64>> {
        lock(&self.reasons)
    }
}
