//! Caches: what they hold and did, and purges.

use std::collections::BTreeMap;

objects! {
    /// Every cache of the configuration in force.
    pub struct CacheList {
        /// In the order of the file.
        pub caches: Vec<CacheStatus>,
    }

    /// A cache.
    pub struct CacheStatus {
        /// Its name.
        pub name: String,
        /// Bytes of memory that it may use.
        pub memory: u64,
        /// Bytes of memory that it uses.
        pub bytes: u64,
        /// Keys that it has responses of.
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
        /// Of these how many are so old: `under-10s`, `under-1m`, `under-10m`, `older`.
        pub fills_by_age: BTreeMap<String, usize>,
        /// Bytes that fetches under way hold.
        pub fill_bytes: u64,
        /// Clients that read what is being fetched.
        pub waiters: usize,
        /// Purges since the start.
        pub purges: u64,
    }

    /// Requests of one result for one reason.
    pub struct CacheReason {
        /// The result.
        pub result: String,
        /// The reason, in one word.
        pub reason: String,
        /// How many.
        pub count: u64,
    }

    /// The keys of a cache that were answered from memory most often.
    pub struct CacheKeyList {
        /// At most 20, the most frequent first.
        pub keys: Vec<CacheKey>,
    }

    /// A key.
    pub struct CacheKey {
        /// Its parts, with spaces between them; the first one is the URL.
        pub key: String,
        /// How often it was answered from memory; above 64 an estimate.
        pub hits: u64,
        /// Bytes of memory that its responses take.
        pub bytes: u64,
        /// How many responses it has.
        pub responses: usize,
    }

    /// The result of a purge.
    pub struct PurgeResult {
        /// Purges since the start, this one included.
        pub purges: u64,
    }
}
