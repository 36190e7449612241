//! The key of a stored response, and the part of a query that belongs to it.
//!
//! Keys are compared as a whole. A line feed separates their parts; no part can contain one, since paths
//! and fields have no control characters.

use std::borrow::Cow;

/// The key under which a response is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    bytes: Vec<u8>,
    /// The length of the URL at the beginning of `bytes`.
    url: usize,
}

/// A key that is being built, part by part.
#[derive(Debug)]
pub struct KeyBuilder {
    bytes: Vec<u8>,
    url: usize,
}

impl KeyBuilder {
    /// Begins a key with the URL that the client sees.
    #[must_use]
    pub fn new(scheme: &[u8], host: &[u8], path: &[u8], query: Option<&[u8]>) -> Self {
        let mut bytes = Vec::with_capacity(BYTES_USUAL);
        bytes.extend_from_slice(scheme);
        bytes.extend_from_slice(b"://");
        let host_start = bytes.len();
        bytes.extend_from_slice(host);
        bytes[host_start..].make_ascii_lowercase();
        bytes.extend_from_slice(path);
        if let Some(query) = query {
            bytes.push(b'?');
            bytes.extend_from_slice(query);
        }
        let url = bytes.len();
        Self { bytes, url }
    }

    /// Adds a part; `None`: it is missing, which differs from an empty part.
    #[inline]
    pub fn part(&mut self, part: Option<&[u8]>) {
        self.bytes.push(b'\n');
        if let Some(part) = part {
            self.bytes.push(b'=');
            self.bytes.extend_from_slice(part);
        }
    }

    /// Adds this number of missing parts, as [`Self::part`] does with `None`.
    pub fn missing(&mut self, parts: usize) {
        self.bytes.resize(self.bytes.len() + parts, b'\n');
    }

    /// Returns the finished key.
    #[must_use]
    pub fn finish(self) -> CacheKey {
        CacheKey {
            bytes: self.bytes,
            url: self.url,
        }
    }
}

impl CacheKey {
    /// All bytes of the key, URL and parts.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The URL at the beginning of the key.
    #[must_use]
    pub fn url(&self) -> &[u8] {
        &self.bytes[..self.url]
    }

    /// The key of the same request with another URL.
    #[must_use]
    pub fn of_url(&self, url: &[u8]) -> Self {
        Self {
            bytes: [url, &self.bytes[self.url..]].concat(),
            url: url.len(),
        }
    }
}

/// The part of a query that belongs to the key and is sent to the backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueryRule {
    /// The whole query.
    #[default]
    All,
    /// Nothing of the query.
    None,
    /// Only parameters with these names.
    Keep(Vec<String>),
    /// All parameters except those with these names, which may end in `*`.
    Drop(Vec<String>),
}

impl QueryRule {
    /// The part of a query that the rule keeps; `None`: nothing of it.
    #[must_use]
    pub fn apply<'q>(&self, query: &'q [u8]) -> Option<Cow<'q, [u8]>> {
        let keeps = |parameter: &[u8]| {
            let before_equals = parameter.split(|byte| *byte == b'=').next();
            let name = before_equals.unwrap_or_default();
            let is_named = |rules: &[String]| rules.iter().any(|rule| matches(rule, name));
            match self {
                Self::All => true,
                Self::None => false,
                Self::Keep(names) => is_named(names),
                Self::Drop(names) => !is_named(names),
            }
        };
        let parameters = || query.split(|byte| *byte == b'&');
        // Most queries are kept whole, and so are not copied.
        if *self == Self::All || parameters().all(keeps) {
            return Some(Cow::Borrowed(query));
        }
        let kept: Vec<&[u8]> = parameters().filter(|it| keeps(it)).collect();
        (!kept.is_empty()).then(|| Cow::Owned(kept.join(&b'&')))
    }
}

/// Whether a name equals that of a rule, or, if the rule ends in `*`, begins with the text before it.
#[must_use]
pub fn matches(rule: &str, name: &[u8]) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == rule.as_bytes(),
    }
}

/// The initial capacity of a key in bytes; most keys are shorter.
const BYTES_USUAL: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(url: (&str, &str, Option<&str>), parts: &[Option<&str>]) -> CacheKey {
        let (host, path, query) = url;
        let query = query.map(str::as_bytes);
        let mut key = KeyBuilder::new(b"http", host.as_bytes(), path.as_bytes(), query);
        for part in parts {
            key.part(part.map(str::as_bytes));
        }
        key.finish()
    }

    #[test]
    fn keys_differ_where_requests_do() {
        let keys = [
            key(("h", "/", None), &[None, None]),
            key(("h", "/", Some("")), &[None, None]),
            key(("h", "/", Some("a")), &[None, None]),
            key(("h", "/", None), &[Some(""), None]),
            key(("h", "/", None), &[None, Some("")]),
            key(("h", "/", None), &[Some("a"), None]),
            key(("h", "/", None), &[None]),
        ];
        for (at, one) in keys.iter().enumerate() {
            for other in &keys[at + 1..] {
                assert_ne!(one, other);
            }
        }
        assert_eq!(key(("H", "/", None), &[]), key(("h", "/", None), &[]));
        assert_eq!(keys[2].url(), b"http://h/?a");
        assert_eq!(keys[0].of_url(b"http://h/?a"), keys[2]);
    }

    #[test]
    fn what_is_dropped_of_a_query_is_dropped_whole() {
        let names = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect();
        let drop = QueryRule::Drop(names(&["utm_*", "fbclid"]));
        let keep = QueryRule::Keep(names(&["page"]));
        for (rule, query, expected) in [
            (&QueryRule::All, "a&b=1", Some("a&b=1")),
            (&QueryRule::None, "a", None),
            (&drop, "utm_source=x&a=1&fbclid", Some("a=1")),
            (&drop, "utm_source=x", None),
            (&drop, "a=utm_x", Some("a=utm_x")),
            (&keep, "x=1&page=2&pages=3", Some("page=2")),
            (&keep, "page&page=2", Some("page&page=2")),
            (&QueryRule::All, "", Some("")),
        ] {
            let left = rule.apply(query.as_bytes());
            assert_eq!(
                left.as_deref(),
                expected.map(str::as_bytes),
                "{rule:?} {query}"
            );
        }
    }
}
