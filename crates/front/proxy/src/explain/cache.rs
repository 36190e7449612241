//! Explains what a cache would do with a request.

use catamaran_admin_api::CacheOutlook;
use catamaran_cache::verdict::Verdict;

use super::text;
use crate::cache;
use crate::exchange::cache_request::CacheRequest;
use crate::exchange::outgoing::Outgoing;

/// Looks up the request in its route's cache, and returns what is stored, its age and the time
/// left, in seconds.
pub(super) fn outlook(request: &CacheRequest<'_>, outgoing: &Outgoing<'_>) -> CacheOutlook {
    let (store, now) = (&request.cache.store, cache::now());
    let entry = store.peek(&request.key);
    let found = entry.and_then(|entry| store.find(&request.key, &entry, outgoing));
    let stored = found
        .as_ref()
        .map(|found| found.object().head.stored(found.is_purged));
    let verdict = stored.map(|stored| stored.judge(&request.demand, now));

    let word = match verdict {
        Some(Verdict::Fresh(_)) => "fresh",
        Some(Verdict::Stale(_)) => "stale",
        Some(Verdict::Foreign) => "foreign",
        None => "nothing",
    };
    CacheOutlook {
        name: request.cache.config.name.clone(),
        key: text(request.key.as_bytes()).replace('\n', " "),
        bypass: request.bypass.map(str::to_owned),
        stored: word.to_owned(),
        ttl: stored.map(|stored| i64::from(stored.terms.lifetime) - i64::from(stored.age(now))),
        age: stored.map(|stored| stored.age(now)),
    }
}

/// Describes an [`outlook`] in a sentence.
pub(super) fn sentence(cache: &CacheOutlook) -> String {
    let name = &cache.name;
    match (&cache.bypass, &cache.stored[..]) {
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
