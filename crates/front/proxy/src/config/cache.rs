//! Caches of responses.

use std::ops::RangeInclusive;
use std::time::Duration;

pub use catamaran_cache::freshness::FreshnessRules;
pub use catamaran_cache::key::QueryRule;
pub use catamaran_cache::storable::SetCookie;
use catamaran_message::FieldName;

/// A cache, which routes name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Unique name.
    pub name: String,
    /// Bytes of memory for stored responses. Default 256 MiB. nginx: `max_size`; Varnish: `-s malloc`.
    pub memory: u64,
    /// The longest body that is stored, in bytes. Default 8 MiB. httpd: `CacheMaxFileSize`.
    pub object_max: u64,
    /// How long responses are fresh.
    pub freshness: FreshnessRules,
    /// Statuses of a backend in whose place a stale response is used, as if the backend had failed.
    /// Default 500, 502 to 504. nginx: `proxy_cache_use_stale`.
    pub stale_status: Vec<RangeInclusive<u16>>,
    /// How long a backend may be silent before a stale response is used in the place of its own. Default
    /// 2 s.
    pub stale_wait: Duration,
    /// For how long a backend is not asked again for a response after it failed, while a stale one may be
    /// used. Default 1 s.
    pub stale_retry: Duration,
    /// What of a query belongs to the key; the rest is not sent to the backend, either. Default all.
    /// nginx: `proxy_cache_key`; httpd: `CacheIgnoreQueryString`.
    pub query: QueryRule,
    /// Cookies whose values belong to the key. Default: none.
    pub key_cookies: Vec<String>,
    /// Fields whose values belong to the key. Default: none.
    pub key_fields: Vec<FieldName>,
    /// Codings that a backend is told the client takes, if it does, in this order. Default `br`, `gzip`.
    pub encodings: Vec<String>,
    /// What is done with responses that set cookies. Default: they are not stored. nginx:
    /// `proxy_ignore_headers`; httpd: `CacheIgnoreHeaders`.
    pub set_cookie: SetCookie,
    /// Cookies that make a request one of a session, besides those of the upstream's `sticky`; a name may
    /// end in `*`. Default `JSESSIONID`.
    pub session_cookies: Vec<String>,
    /// How long a request waits for another one's response of the same key to begin. Default 5 s.
    /// nginx: `proxy_cache_lock_timeout`.
    pub collapse_wait: Duration,
    /// How many requests wait for one response; 0 lets none. Default 10000.
    pub collapse_max: usize,
    /// For how long nobody waits for a response of a key whose last one could not be stored. Default
    /// 2 min. Varnish: hit-for-miss.
    pub uncacheable_for: Duration,
    /// Responses of one key that differ by `Vary`; the oldest go first. Default 16.
    pub variants_max: usize,
    /// Whether responses tell by `Cache-Status` what the cache did. Default on. httpd: `CacheHeader`.
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
