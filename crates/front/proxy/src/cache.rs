//! Caches of responses: what is stored, what is being fetched, and the counts.
//!
//! All workers share a cache. It outlives reloads as long as its name stays. Its rules (what may be stored,
//! and for how long) are in `catamaran-cache`; [`crate::exchange`] uses it for requests.

pub(crate) mod counts;
pub(crate) mod fill;
pub(crate) mod hot;
pub(crate) mod object;
pub(crate) mod store;

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use catamaran_cache::Millis;
use catamaran_message::Fields;
use catamaran_message::name::CACHE_STATUS;

use crate::cache::store::Store;
use crate::config::CacheConfig;
use crate::path;

/// A cache of a site: its settings and its contents.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    pub(crate) config: Arc<CacheConfig>,
    pub(crate) store: Arc<Store>,
}

impl Cache {
    /// An empty cache; `workers` is the number of threads that use it.
    pub(crate) fn new(config: &CacheConfig, workers: usize) -> Self {
        Self {
            store: Arc::new(Store::new(config, workers)),
            config: Arc::new(config.clone()),
        }
    }

    /// Takes over what the cache of the previous site has stored, and applies its own limit on memory.
    pub(crate) fn follow(&mut self, before: &Self) {
        self.store = Arc::clone(&before.store);
        self.store.resize(self.config.memory);
    }

    /// Normalises a URL to the form that it has in cache keys.
    ///
    /// # Errors
    /// The text is not a URL such as `https://www.example.org/a`.
    pub(crate) fn url(&self, text: &str) -> Result<Vec<u8>, String> {
        let (origin, target) = split_origin(text)?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let normalised = path::normalise(&Bytes::copy_from_slice(path.as_bytes()))
            .map_err(|fault| fault.to_string())?;
        let mut url = [origin.as_bytes(), &normalised.forward].concat();
        if let Some(query) = query
            && let Some(kept) = self.config.query.apply(query.as_bytes())
        {
            url.push(b'?');
            url.extend_from_slice(&kept);
        }
        Ok(url)
    }

    /// Normalises a prefix of URLs to the form that it has in cache keys. Only scheme and host are changed.
    ///
    /// # Errors
    /// The text has no scheme and host.
    pub(crate) fn prefix(&self, text: &str) -> Result<Vec<u8>, String> {
        let (origin, path) = split_origin(text)?;
        Ok([origin.as_bytes(), path.as_bytes()].concat())
    }

    /// Adds a `Cache-Status` field (RFC 9211) that says what the cache did, unless `cache_status` is off.
    pub(crate) fn tell(&self, headers: &mut Fields, parameters: &str) {
        if self.config.cache_status {
            headers.append(CACHE_STATUS, [CACHE_NAME, parameters].concat());
        }
    }
}

/// Splits a URL into its scheme and host, in the form of cache keys, and the rest, which begins with a slash.
fn split_origin(text: &str) -> Result<(String, &str), String> {
    let wrong = || format!("{text:?} is no URL such as https://www.example.org/a");
    let (scheme, after_scheme) = text.split_once("://").ok_or_else(wrong)?;
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return Err(wrong()),
    };
    let (authority, path) = match after_scheme.find('/') {
        Some(slash) => after_scheme.split_at(slash),
        None => (after_scheme, "/"),
    };
    let lower = authority.to_ascii_lowercase();
    let host = lower.strip_suffix(default_port).unwrap_or(&lower);
    if host.is_empty() {
        return Err(wrong());
    }
    Ok((format!("{scheme}://{host}"), path))
}

/// The present time in milliseconds, by which responses age. If the clock is set back, they are younger by
/// as much, but never younger than 0 s.
pub(crate) fn now() -> Millis {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    since_epoch.as_secs() * 1000 + u64::from(since_epoch.subsec_millis())
}

/// The beginning of the value that the front puts into `Cache-Status`: its name and a separator.
pub(crate) const CACHE_NAME: &str = "catamaran; ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_written_as_keys_have_them() {
        let cache = Cache::new(&CacheConfig::new("c"), 1);
        for (url, expected) in [
            ("http://A.example/b/../c?d=1", Ok("http://a.example/c?d=1")),
            ("https://a:443", Ok("https://a/")),
            ("http://a:8080/%7Eb", Ok("http://a:8080/~b")),
            ("ftp://a/", Err(())),
            ("/a", Err(())),
            ("http:///a", Err(())),
            ("http://a/..", Err(())),
        ] {
            let written = cache.url(url).map_err(|_| ());
            assert_eq!(
                written,
                expected.map(|url| url.as_bytes().to_vec()),
                "{url}"
            );
        }
        assert_eq!(cache.prefix("http://A/b").unwrap(), b"http://a/b");
        assert!(cache.prefix("/b").is_err());
    }
}
