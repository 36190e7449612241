//! `/api/v1/caches`: the contents and counts of caches, the keys that are asked for most, and purges.

use bytes::Bytes;
use catamaran_admin_api::{
    CacheKey, CacheKeyList, CacheList, CacheReason, CacheStatus, PurgeResult,
};
use catamaran_cache::bans::Purge;
use http::StatusCode;
use serde_json::{Map, Value};

use super::reply::Reply;
use super::request::segments;
use crate::cache::Cache;
use crate::cache::counts::CacheResult;
use crate::cache::store::FETCH_AGES;
use crate::site::Site;

/// Every cache of the configuration in force.
pub(super) fn all(site: &Site) -> CacheList {
    let caches = site.caches.iter();
    CacheList {
        caches: caches.map(cache_status).collect(),
    }
}

fn cache_status(cache: &Cache) -> CacheStatus {
    let (bytes, objects) = cache.store.size();
    let fetches = cache.store.fetches();
    let results = cache.store.counts.results();
    let sum: u64 = results.iter().sum();
    let hits: u64 = CacheResult::ALL
        .iter()
        .zip(results)
        .filter(|(result, _)| result.is_from_memory())
        .map(|(_, count)| count)
        .sum();
    let named = CacheResult::ALL.iter().zip(results);
    let reasons = cache.store.counts.reasons().into_iter();
    CacheStatus {
        name: cache.config.name.clone(),
        memory: cache.config.memory,
        bytes,
        objects,
        evictions: cache.store.evicted(),
        hit_ratio: (sum > 0).then(|| hits as f64 / sum as f64),
        requests: named
            .map(|(result, count)| (result.name().to_owned(), count))
            .collect(),
        reasons: reasons
            .map(|((result, reason), count)| CacheReason {
                result: result.name().to_owned(),
                reason: reason.to_owned(),
                count,
            })
            .collect(),
        fills_open: fetches.iter().sum(),
        fills_by_age: FETCH_AGES
            .iter()
            .zip(fetches)
            .map(|((age, _), count)| ((*age).to_owned(), count))
            .collect(),
        fill_bytes: cache.store.room().taken(),
        waiters: cache.store.waiters(),
        purges: cache.store.purge_count(),
    }
}

/// The keys of a cache that were most often answered from memory.
pub(super) fn keys(site: &Site, name: &str) -> Reply {
    let Some(cache) = site.cache(name) else {
        return no_cache(name);
    };
    let frequent = cache.store.frequent(KEYS_MAX).into_iter();
    let keys = frequent.map(|used| {
        // Line feeds separate the parts of a key; they are shown as blanks. The first part is the URL.
        let key = String::from_utf8_lossy(&used.key).replace('\n', " ");
        CacheKey {
            key,
            hits: used.uses.into(),
            bytes: used.bytes,
            responses: used.variants,
        }
    });
    Reply::json(&CacheKeyList {
        keys: keys.collect(),
    })
}

/// Whether a path lists keys, of a cache or of limits. Keys tell what clients have asked for and who they are, so over
/// TCP such a path needs the token.
pub(super) fn is_keys(path: &Bytes) -> bool {
    let owned = segments(path).unwrap_or_default();
    let segments: Vec<&str> = owned.iter().map(String::as_str).collect();
    matches!(
        segments[..],
        ["api", "v1", "caches", _, "keys"] | ["api", "v1", "limits"]
    )
}

fn no_cache(name: &str) -> Reply {
    let detail = format!("there is no cache {name:?}");
    Reply::problem(StatusCode::NOT_FOUND, "no-cache", &detail)
}

/// Purges what the body names: `{"url": …}`, `{"prefix": …}`, `{"tag": …}` or `{"all": true}`. With `"soft":
/// true` the responses become stale instead.
pub(super) fn purge(site: &Site, name: &str, body: &Map<String, Value>) -> Reply {
    let Some(cache) = site.cache(name) else {
        return no_cache(name);
    };
    match read_purge(cache, body) {
        Ok((purge, is_soft)) => {
            cache.store.purge(purge, is_soft);
            tracing::info!(cache = name, wish = ?body, "purged");
            Reply::json(&PurgeResult {
                purges: cache.store.purge_count(),
            })
        }
        Err(detail) => Reply::problem(StatusCode::BAD_REQUEST, "syntax", &detail),
    }
}

/// Reads what to purge from a request's body, and whether it only becomes stale. The error is a fault, in words.
fn read_purge(cache: &Cache, body: &Map<String, Value>) -> Result<(Purge, bool), String> {
    let is_soft = match body.get("soft") {
        None => false,
        Some(soft) => soft.as_bool().ok_or("`soft` must be true or false")?,
    };
    let mut wishes = body.iter().filter(|(key, _)| *key != "soft");
    let (Some((key, value)), None) = (wishes.next(), wishes.next()) else {
        return Err("say one of `url`, `prefix`, `tag` and `all`".to_owned());
    };
    let text = || {
        let text = value.as_str().filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("`{key}` must be a text"))
    };
    let purge = match &key[..] {
        "url" => Purge::Url(cache.url(text()?)?.into()),
        "prefix" => Purge::Prefix(cache.prefix(text()?)?.into()),
        "tag" => Purge::Tag(text()?.as_bytes().into()),
        "all" if *value == Value::Bool(true) => Purge::All,
        "all" => return Err("`all` must be true".to_owned()),
        other => return Err(format!("there is no purge by {other:?}")),
    };
    Ok((purge, is_soft))
}

/// The most keys that [`keys`] names.
const KEYS_MAX: usize = 20;
