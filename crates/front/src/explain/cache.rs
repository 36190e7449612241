//! What a cache would do with a request.

use catamaran_cache::verdict::Verdict;
use serde::Serialize;

use super::text;
use crate::cache;
use crate::exchange::cache_request::CacheRequest;
use crate::exchange::outgoing::Outgoing;

/// The cache of a route, as it stands to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheShown {
    /// Its name.
    pub name: String,
    /// The key, its parts separated by spaces. What is not text in it is replaced.
    pub key: String,
    /// Why the cache has no part in the request, in one word.
    pub bypass: Option<&'static str>,
    /// What is stored is to it: `fresh`, `stale`, `foreign` (it is for other clients), or `nothing`.
    pub stored: &'static str,
    /// The age of what is stored, in seconds.
    pub age: Option<u32>,
    /// For how many seconds it stays fresh; less than 0 if it is stale.
    pub ttl: Option<i64>,
}

impl CacheShown {
    /// What its cache would do with a request now.
    pub(super) fn new(request: &CacheRequest<'_>, outgoing: &Outgoing<'_>) -> Self {
        let (store, now) = (&request.cache.store, cache::now());
        let entry = store.entry(&request.key);
        let found = entry.and_then(|entry| store.find(&request.key, &entry, outgoing));
        let stored = found
            .as_ref()
            .map(|found| found.object.head.stored(found.is_purged));
        let verdict = stored.map(|stored| stored.judge(&request.demand, now));
        let age = stored.map(|stored| stored.age(now));
        Self {
            name: request.cache.config.name.clone(),
            key: text(request.key.as_bytes()).replace('\n', " "),
            bypass: request.bypass,
            stored: match verdict {
                Some(Verdict::Fresh(_)) => "fresh",
                Some(Verdict::Stale(_)) => "stale",
                Some(Verdict::Foreign) => "foreign",
                None => "nothing",
            },
            ttl: stored
                .zip(age)
                .map(|(stored, age)| i64::from(stored.terms.lifetime) - i64::from(age)),
            age,
        }
    }

    /// In words.
    pub(super) fn sentence(&self) -> String {
        let name = &self.name;
        match (self.bypass, self.stored) {
            (Some(reason), _) => format!("cache `{name}` has no part in it: {reason}"),
            (None, "fresh") => format!("cache `{name}` has the response, and no backend is asked"),
            (None, "stale") => {
                format!("cache `{name}` has a stale response, and a backend is asked for another")
            }
            (None, "foreign") => format!("cache `{name}` has a response for others alone"),
            (None, _) => format!(
                "cache `{name}` has nothing, and stores the response if it may; to have all of it, it may ask \
                 without the client's conditions and ranges"
            ),
        }
    }
}
