//! The settings of caches of responses.

use std::ops::RangeInclusive;
use std::time::Duration;

pub use catamaran_cache::freshness::FreshnessRules;
pub use catamaran_cache::key::QueryRule;
pub use catamaran_cache::storable::SetCookie;
use catamaran_message::FieldName;

/// A cache, which routes use by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// The unique name of the cache.
    pub name: String,
    /// Memory for stored responses, in bytes. Default 256 MiB. nginx: `max_size`; Varnish: `malloc`.
    pub memory: u64,
    /// The longest body that is stored, in bytes. Default 8 MiB. httpd: `CacheMaxFileSize`.
    pub object_max: u64,
    /// The rules by which a response counts as fresh, and for how long.
    pub freshness: FreshnessRules,
    /// Statuses of a backend for which a stale response is sent instead, as if the backend had failed.
    /// Default 500, 502 to 504. nginx: `proxy_cache_use_stale`.
    pub stale_status: Vec<RangeInclusive<u16>>,
    /// The time that the front waits for a backend's response before it sends a stale one. Default 2 s.
    pub stale_wait: Duration,
    /// How long after a failure the backend is not asked again, while a stale response may be used.
    /// Default 1 s.
    pub stale_retry: Duration,
    /// The part of a query that belongs to the key; the rest is not sent to the backend, either. Default
    /// all. nginx: `proxy_cache_key`; httpd: `CacheIgnoreQueryString`.
    pub query: QueryRule,
    /// Cookies whose values belong to the key. Default: none.
    pub key_cookies: Vec<String>,
    /// Request fields whose values belong to the key. Default: none.
    pub key_fields: Vec<FieldName>,
    /// The codings, in this order, that the front names in `Accept-Encoding` to a backend if the client
    /// accepts them. Default `br`, `gzip`.
    pub encodings: Vec<String>,
    /// The rule for responses that set cookies. Default: they are not stored. nginx:
    /// `proxy_ignore_headers`; httpd: `CacheIgnoreHeaders`.
    pub set_cookie: SetCookie,
    /// Cookies that mark a request as one of a session, besides the cookies of the upstream's `sticky`. A
    /// name may end in `*`. Default `JSESSIONID`.
    pub session_cookies: Vec<String>,
    /// The time that a request waits for another one's response of the same key to begin. Default 5 s.
    /// nginx: `proxy_cache_lock_timeout`.
    pub collapse_wait: Duration,
    /// The most requests that wait for one response; 0: none waits. Default 10000.
    pub collapse_max: usize,
    /// How long requests of a key do not wait for each other after its last response could not be stored.
    /// Default 2 min. Varnish: hit-for-miss.
    pub uncacheable_for: Duration,
    /// The most responses of one key that differ by `Vary`; the oldest are dropped. Default 16.
    pub variants_max: usize,
    /// Whether responses tell in `Cache-Status` what the cache did. Default on. httpd: `CacheHeader`.
    pub cache_status: bool,
}

impl CacheConfig {
    /// A cache with every default.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            memory: 256 << 20,
            object_max: 8 << 20,
            freshness: FreshnessRules::default(),
            stale_status: vec![500..=500, 502..=504],
            stale_wait: Duration::from_secs(2),
            stale_retry: Duration::from_secs(1),
            query: QueryRule::All,
            key_cookies: Vec::new(),
            key_fields: Vec::new(),
            encodings: vec!["br".to_owned(), "gzip".to_owned()],
            set_cookie: SetCookie::Refuse,
            session_cookies: vec!["JSESSIONID".to_owned()],
            collapse_wait: Duration::from_secs(5),
            collapse_max: 10_000,
            uncacheable_for: Duration::from_secs(120),
            variants_max: 16,
            cache_status: true,
        }
    }
}
