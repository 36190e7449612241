//! A request as the cache of its route sees it: its key, its demands, or the reason to bypass the cache.
//!
//! It is made from the request as the backend gets it. So nothing that a client sends reaches a backend without being
//! part of the key, except fields that responses must name in `Vary`. A request that a cache and a backend may read
//! differently bypasses the cache.

use std::borrow::Cow;

use bytes::Bytes;
use catamaran_cache::directives::Directives;
use catamaran_cache::key::{CacheKey, KeyBuilder, matches};
use catamaran_cache::storable::Credentials;
use catamaran_cache::vary::{RequestFields, accepted_codings};
use catamaran_cache::verdict::Demand;
use catamaran_message::name::{
    ACCEPT_ENCODING, AUTHORIZATION, COOKIE, FORWARDED, IF_MATCH, IF_UNMODIFIED_SINCE,
    X_FORWARDED_HOST, X_FORWARDED_PORT, X_FORWARDED_PREFIX, X_FORWARDED_PROTO,
};
use catamaran_message::{BodyLength, FieldName, Fields, Id, Traits, pairs};
use catamaran_upstream::IpText;
use http::Method;
use memchr::memchr2_iter;

use crate::cache::Cache;
use crate::config::CacheConfig;
use crate::exchange::fields::passage::scheme;
use crate::exchange::outgoing::{BesideFields, Outgoing};
use crate::site::Upstream;

/// A request on a route with a cache.
#[derive(Debug)]
pub(crate) struct CacheRequest<'s> {
    pub(crate) cache: &'s Cache,
    pub(crate) key: CacheKey,
    /// The keys of the request at the other upstreams of its route, if the method changes something.
    pub(crate) sibling_keys: Vec<CacheKey>,
    pub(crate) demand: Demand,
    /// The reason, in one word, why the cache is bypassed; `None`: it is used.
    pub(crate) bypass: Option<&'static str>,
    /// Whether a successful response makes stored responses invalid, because the method changes something.
    pub(crate) changes: bool,
    /// The query for the backend; `None`: it stays as it is, `Some(None)`: all of it is dropped.
    query: Option<Option<Bytes>>,
}

/// The facts besides the request on which the cache key depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyGrounds<'s> {
    pub(crate) upstream: &'s Upstream,
    /// A digest of the route's rules that change requests.
    pub(crate) digest: &'s [u8],
    /// The path that the client sent, if the route changes it; else `None`.
    pub(crate) sent: Option<&'s [u8]>,
}

/// A request as another upstream of its split route would get it.
#[derive(Debug)]
pub(crate) struct SiblingRequest<'s> {
    pub(crate) upstream: &'s Upstream,
    pub(crate) outgoing: Box<Outgoing<'s>>,
}

impl<'s> CacheRequest<'s> {
    /// Makes the key, the demands, and the reason to bypass the cache if there is one, for `request`. `siblings` are the
    /// same request at the other upstreams of its route, if it changes something.
    pub(crate) fn new(
        cache: &'s Cache,
        grounds: KeyGrounds<'_>,
        siblings: &[SiblingRequest<'_>],
        request: &Outgoing<'_>,
    ) -> Self {
        let head = &request.head;
        let query = head.target.query.as_deref();
        // The part of the query that the rule of the cache keeps; borrowed if that is all of it.
        let kept = query.and_then(|query| cache.config.query.apply(query));
        let changed_query = match &kept {
            Some(Cow::Borrowed(_)) => None,
            Some(Cow::Owned(kept)) => Some(Some(Bytes::copy_from_slice(kept))),
            None if query.is_some() => Some(None),
            None => None,
        };
        let beside = request.beside_fields();
        let key_at_sibling = |sibling: &SiblingRequest<'_>| {
            let grounds = KeyGrounds {
                upstream: sibling.upstream,
                ..grounds
            };
            let beside = sibling.outgoing.beside_fields();
            let config = &cache.config;
            key(config, grounds, &sibling.outgoing, beside, kept.as_deref())
        };
        Self {
            key: key(&cache.config, grounds, request, beside, kept.as_deref()),
            sibling_keys: siblings.iter().map(key_at_sibling).collect(),
            demand: Demand {
                directives: Directives::of_request(&head.headers),
                credentials: Credentials {
                    authorization: request.sent(AUTHORIZATION).next().is_some(),
                    session: has_session(&cache.config, grounds.upstream, request)
                        || beside.names_client,
                },
            },
            bypass: bypass(request),
            changes: changes(&head.method),
            query: changed_query,
            cache,
        }
    }

    /// Makes requests with the same key equal for the backend: drops parts of the query, and reduces `Accept-Encoding`
    /// to the configured codings.
    #[inline(never)]
    pub(crate) fn settle(&self, request: &mut Outgoing<'_>) {
        if self.bypass.is_some() {
            return;
        }
        let head = &mut request.head;
        if let Some(query) = &self.query {
            head.target.query.clone_from(query);
        }
        if head.headers.contains(ACCEPT_ENCODING) {
            match accepted_codings(&head.headers, &self.cache.config.encodings) {
                Some(codings) => head.headers.insert(ACCEPT_ENCODING, codings),
                None => drop(head.headers.remove(ACCEPT_ENCODING)),
            }
        }
    }
}

/// Whether requests of this method change something.
pub(crate) fn changes(method: &Method) -> bool {
    !matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE
    )
}

/// Makes the cache key of everything on which the backend's response may depend, besides fields that it names in
/// `Vary`.
fn key(
    config: &CacheConfig,
    grounds: KeyGrounds<'_>,
    request: &Outgoing<'_>,
    beside: BesideFields<'_>,
    query: Option<&[u8]>,
) -> CacheKey {
    let (headers, forwarded) = (&request.head.headers, &request.path.forward[..]);
    let BesideFields {
        is_secure,
        host,
        port,
        local,
        attributes,
        filled,
        // It counts among the credentials of the request, which are not in the key.
        names_client: _,
    } = beside;
    let path = grounds.sent.unwrap_or(forwarded);
    let mut key = KeyBuilder::new(scheme(is_secure), host, path, query);
    key.part(Some(grounds.upstream.name.as_bytes()));
    key.part(Some(grounds.digest));
    key.part(grounds.sent.map(|_| forwarded));
    key.part(port.map(u16::to_be_bytes).as_ref().map(|port| &port[..]));
    if grounds.upstream.tells_local_address() {
        key.part(Some(IpText::new(local).as_bytes()));
    }
    if let Some(attributes) = attributes {
        for (name, value) in attributes.told_of_all() {
            key.part(Some(name.as_bytes()));
            key.part(value);
        }
    }
    for value in filled {
        key.part(Some(value));
    }
    for name in &config.key_cookies {
        let mut cookies = cookies(request);
        let cookie = cookies.find(|(cookie_name, _)| *cookie_name == name.as_bytes());
        key.part(cookie.map(|(_, value)| value));
    }
    for name in &config.key_fields {
        key.part(lines(request, name).as_deref());
    }
    add_claims(&mut key, headers, port.is_some());
    key.finish()
}

/// Adds what a trusted proxy claims to a key; claims of anybody else were removed. `tells_port`: the front is going to
/// write scheme and port in the place of those that were claimed, and the key has them.
fn add_claims(key: &mut KeyBuilder, headers: &Fields, tells_port: bool) {
    if !headers.may_have(Traits::CLAIM) {
        return key.missing(CLAIMED.len());
    }
    for name in CLAIMED {
        let is_replaced = tells_port && [X_FORWARDED_PROTO, X_FORWARDED_PORT].contains(&name);
        let claimed = joined(headers.get_all(name));
        key.part(claimed.filter(|_| !is_replaced).as_deref());
    }
}

/// All lines of a field, joined by commas; `None` if there is no line.
fn joined<'l>(mut lines: impl Iterator<Item = &'l [u8]>) -> Option<Cow<'l, [u8]>> {
    let first = lines.next()?;
    let others: Vec<&[u8]> = lines.collect();
    Some(match &others[..] {
        [] => Cow::Borrowed(first),
        others => [&[first], others].concat().join(&b", "[..]).into(),
    })
}

/// All lines of a field of the request in one, as [`RequestFields::lines`] yields them; `None` if there is none.
fn lines(request: &dyn RequestFields, name: &FieldName) -> Option<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    request.lines(name, &mut |line| lines.push(line.to_vec()));
    joined(lines.iter().map(|line| &line[..])).map(Cow::into_owned)
}

/// The cookies that the client sent, as names and values; of a cookie without `=` the value is empty.
fn cookies<'r>(request: &'r Outgoing<'_>) -> impl Iterator<Item = (&'r [u8], &'r [u8])> {
    let pieces = request.sent(COOKIE).flat_map(pairs::pieces);
    pieces.map(|(name, value)| (name, value.unwrap_or_default()))
}

/// Whether a request has a cookie that marks a session.
fn has_session(config: &CacheConfig, upstream: &Upstream, request: &Outgoing<'_>) -> bool {
    let sticky_cookies = match &upstream.sticky {
        Some(sticky) => &sticky.config.cookies[..],
        None => &[],
    };
    cookies(request).any(|(name, _)| {
        let mut patterns = config.session_cookies.iter();
        let mut sticky_names = sticky_cookies.iter();
        patterns.any(|pattern| matches(pattern, name))
            || sticky_names.any(|sticky| sticky.as_bytes() == name)
    })
}

/// The reason why a request bypasses the cache; `None`: it does not.
fn bypass(request: &Outgoing<'_>) -> Option<&'static str> {
    let head = &request.head;
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return Some("method");
    }
    if request.upgrade.is_some() {
        return Some("tunnel");
    }
    if head.expect_continue {
        return Some("expect");
    }
    if head.body != BodyLength::Known(0) {
        return Some("fat-get");
    }
    if has_parameters(&request.path.forward) {
        return Some("path-parameters");
    }
    let headers = &head.headers;
    // None of the other names is in the table of known names.
    let has_others = headers.may_have(Traits::UNKNOWN);
    if has_others && UNKEYED.iter().any(|name| headers.contains(*name)) {
        return Some("unkeyed-field");
    }
    let has_condition = headers.contains(IF_MATCH)
        || headers.contains(IF_UNMODIFIED_SINCE)
        || has_others && headers.contains("if");
    has_condition.then_some("precondition")
}

/// Whether a path has parameters (`;`), plain or escaped, or an escaped slash or backslash, which only some servers
/// take as a separator.
fn has_parameters(path: &[u8]) -> bool {
    memchr2_iter(b';', b'%', path).any(|index| {
        if path[index] == b';' {
            return true;
        }
        let digits = path.get(index + 1..index + 3).unwrap_or_default();
        let mut separators = [b"2f", b"5c", b"3b"].into_iter();
        separators.any(|separator| digits.eq_ignore_ascii_case(separator))
    })
}

/// Fields that make some applications use another path or method than the request's.
const UNKEYED: &[&str] = &[
    "x-original-url",
    "x-rewrite-url",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// The fields by which trusted proxies report the URL that the client asked for.
const CLAIMED: [Id; 5] = [
    FORWARDED,
    X_FORWARDED_HOST,
    X_FORWARDED_PROTO,
    X_FORWARDED_PORT,
    X_FORWARDED_PREFIX,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_parameters_in_any_form() {
        for path in ["/a;b", "/a%3bb", "/a%3Bb", "/a%2Fb", "/a%5cb", "/;"] {
            assert!(has_parameters(path.as_bytes()), "{path}");
        }
        for path in ["/", "/a%20b", "/a%2", "/a%", "/a.b,c=d"] {
            assert!(!has_parameters(path.as_bytes()), "{path}");
        }
    }
}
