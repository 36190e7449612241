//! Caches: their contents and counters, and purges.

use std::collections::BTreeMap;

objects! {
    /// Every cache of the configuration in force.
    pub struct CacheList {
        /// The caches, in the order of the configuration file.
        pub caches: Vec<CacheStatus>,
    }

    /// A cache.
    pub struct CacheStatus {
        /// The cache's name.
        pub name: String,
        /// The memory that the cache may use, in bytes.
        pub memory: u64,
        /// The memory that the cache uses, in bytes.
        pub bytes: u64,
        /// Keys for which the cache has responses.
        pub objects: usize,
        /// Keys that were dropped to make room, since the start.
        pub evictions: u64,
        /// The share of requests that were answered from memory, 0 to 1; `null` without requests.
        pub hit_ratio: Option<f64>,
        /// Requests by result, as `cache=` in the log.
        pub requests: BTreeMap<String, u64>,
        /// Requests by result and reason.
        pub reasons: Vec<CacheReason>,
        /// Fetches under way.
        pub fills_open: usize,
        /// Fills under way by their age: `under-10s`, `under-1m`, `under-10m`, `older`.
        pub fills_by_age: BTreeMap<String, usize>,
        /// Bytes that fetches under way hold.
        pub fill_bytes: u64,
        /// Clients that wait for a fetch under way, or read what it has fetched so far.
        pub waiters: usize,
        /// Purges since the start.
        pub purges: u64,
    }

    /// The number of requests that had one result for one reason.
    pub struct CacheReason {
        /// The result of the requests.
        pub result: String,
        /// The reason as a token.
        pub reason: String,
        /// The number of requests.
        pub count: u64,
    }

    /// The keys of a cache that were answered from memory most often.
    pub struct CacheKeyList {
        /// At most 20 keys, the most frequent first.
        pub keys: Vec<CacheKey>,
    }

    /// A key of a cache.
    pub struct CacheKey {
        /// The parts of the key, separated by spaces; the first part is the URL.
        pub key: String,
        /// How often this key was answered from memory; an estimate above 64.
        pub hits: u64,
        /// The memory that the key's responses take, in bytes.
        pub bytes: u64,
        /// How many responses are stored for this key.
        pub responses: usize,
    }

    /// The result of a purge.
    pub struct PurgeResult {
        /// Purges of this cache since the start, including this one.
        pub purges: u64,
    }
}
