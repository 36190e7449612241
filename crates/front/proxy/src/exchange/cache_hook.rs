//! The hook of a cache on the response of a backend: it stores the response, passes it to readers, drops stored
//! responses that became invalid, or only tells the client why the cache is not used.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use catamaran_cache::key::CacheKey;
use catamaran_cache::object::{ObjectDetails, ObjectHead};
use catamaran_cache::storable::{self, Credentials, RequestFacts, RequestScope, ResponseFacts};
use catamaran_cache::vary::{self, Selection};
use catamaran_cache::{Millis, freshness, merge, object, tags};
use catamaran_message::name::{CONTENT_LOCATION, ETAG, LOCATION};
use catamaran_message::{Fields, ResponseHead};
use catamaran_upstream::Culprit;
use http::{Method, StatusCode};

use crate::cache::fill::{Audience, FetchFacts, Fill, FillFailure, FillHead, FillLimits};
use crate::cache::object::{Body, Object};
use crate::cache::store::OpenFetch;
use crate::cache::{self, Cache};
use crate::config::CacheConfig;
use crate::counters::Reason;
use crate::deadlines::Tick;
use crate::exchange::outgoing::Outgoing;

/// The action of a cache on a response that passes.
#[derive(Debug)]
pub(crate) enum CacheHook {
    /// Copies the response, to store it or for readers.
    Tee(Tee),
    /// Drops stored responses that a successful change has made invalid.
    Invalidate(Invalidation),
    /// Only tells the client, in `Cache-Status`, why the cache is not used.
    Tell(Cache, &'static str),
}

/// A copy of a response that is made while it passes, and that is stored if this is allowed.
#[derive(Debug)]
pub(crate) struct Tee {
    cache: Cache,
    key: CacheKey,
    /// The name of the fetch, if other requests may join it: the response then goes to readers only. `None`: it
    /// goes to a client.
    name: Option<Bytes>,
    fill: Arc<Fill>,
    /// Counts the fetch as open; `None` if the response goes to a client.
    _fetch: Option<OpenFetch>,
    request: TeeRequest,
    /// The time at which this was made, before the request was sent: the response's age is computed from it.
    requested_at: Millis,
    /// The number of purges at the time `requested_at`.
    began: u64,
    /// The stored responses that the backend may confirm by a 304.
    validating: Vec<Arc<Object>>,
    /// Whether there is a stale response that may be sent if the backend fails.
    has_stale: bool,
    /// The time at which the response's head arrived.
    arrived_at: Millis,
    tags: Box<[u8]>,
    /// The reason why the response is not stored; `None`: it is, or that is not decided yet.
    refusal: Option<&'static str>,
    is_over: bool,
}

/// The parts of a request on which storing the response depends.
#[derive(Clone, Debug)]
pub(crate) struct TeeRequest {
    pub(crate) method: Method,
    pub(crate) path: Bytes,
    pub(crate) has_query: bool,
    pub(crate) no_store: bool,
    pub(crate) scope: RequestScope,
    pub(crate) credentials: Credentials,
}

/// The facts about a response when its head is passed to the hook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadFacts<'h> {
    /// The request that the backend got; `None` if the response comes from another source.
    pub(crate) request: Option<&'h Outgoing<'h>>,
    /// Whether a page of the operator has replaced the response.
    pub(crate) is_replaced: bool,
    /// Whether framing marks the end of the response; `false`: the close of the connection does.
    pub(crate) is_framed: bool,
    /// The front's own cookie for the client; `None`: there is none.
    pub(crate) cookie: Option<&'h Bytes>,
}

/// A successful change, and the keys of the stored responses that it makes invalid.
#[derive(Debug)]
pub(crate) struct Invalidation {
    pub(crate) cache: Cache,
    pub(crate) key: CacheKey,
    /// The keys of the same responses from other upstreams of the route.
    pub(crate) sibling_keys: Vec<CacheKey>,
}

impl CacheHook {
    /// Takes the head of a response, before it is changed for this client alone.
    #[inline(never)]
    pub(crate) fn head(&mut self, head: &mut ResponseHead, facts: HeadFacts<'_>) {
        match self {
            Self::Tee(tee) => tee.handle_head(head, facts),
            Self::Invalidate(invalidation) => {
                invalidation.apply(head);
                let cache = &invalidation.cache;
                cache.tell(&mut head.headers, "fwd=bypass; detail=method");
            }
            Self::Tell(cache, reason) => {
                cache.tell(&mut head.headers, &format!("fwd=bypass; detail={reason}"));
            }
        }
        tags::remove(&mut head.headers);
    }

    /// Takes an interim response.
    #[inline(never)]
    pub(crate) fn interim(&self, status: StatusCode, headers: &Fields) {
        if let Some(fetch) = self.fetch() {
            fetch.fill.interim(status, headers.clone());
        }
    }

    /// Takes a piece of the body.
    #[inline(never)]
    pub(crate) fn body(&mut self, data: &Bytes) {
        if let Self::Tee(tee) = self {
            tee.body(data);
        }
    }

    /// Takes the end of the body. `false`: the response is not as long as announced.
    #[must_use]
    #[inline(never)]
    pub(crate) fn end(&mut self) -> bool {
        match self {
            Self::Tee(tee) => tee.end(),
            Self::Invalidate(_) | Self::Tell(..) => true,
        }
    }

    /// Ready if more of the body may be passed. While pending, the task is woken when that changes, or when nobody
    /// reads any more.
    #[inline(never)]
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let fetch = self.fetch();
        fetch.map_or(Poll::Ready(()), |fetch| fetch.fill.poll_room(cx))
    }

    /// Whether more of the body may be passed now.
    #[inline(never)]
    pub(crate) fn has_room(&self) -> bool {
        self.fetch().is_none_or(|fetch| fetch.fill.has_room())
    }

    /// The time at which a fetch is given up because its readers take nothing; `None`: no such limit runs.
    #[inline(never)]
    pub(crate) fn idle_ends(&self, now: Tick) -> Option<Tick> {
        let open = self.fetch().filter(|fetch| !fetch.is_over)?;
        open.fill.idle_ends(now)
    }

    /// Whether the response is fetched for readers, but none is left and it need not be fetched to its end.
    #[inline(never)]
    pub(crate) fn is_abandoned(&self) -> bool {
        let open = self.fetch().filter(|fetch| !fetch.is_over);
        open.is_some_and(|fetch| fetch.fill.is_abandoned())
    }

    /// Ready once [`Self::is_abandoned`]; else the task is woken when a reader leaves.
    pub(crate) fn poll_abandoned(&self, cx: &Context<'_>) -> Poll<()> {
        match (self.poll_room(cx), self.is_abandoned()) {
            (_, true) => Poll::Ready(()),
            (_, false) => Poll::Pending,
        }
    }

    /// The copy, if it is made for readers: they may slow it down, and may all leave.
    fn fetch(&self) -> Option<&Tee> {
        match self {
            Self::Tee(tee) => Some(tee).filter(|tee| tee.name.is_some()),
            Self::Invalidate(_) | Self::Tell(..) => None,
        }
    }

    /// The reason why the response was not stored; `None`: it was, or that is not decided.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match self {
            Self::Tee(tee) => tee.refusal,
            Self::Invalidate(_) | Self::Tell(..) => None,
        }
    }

    /// Ends the copy, because the response did not come.
    pub(crate) fn fail(&mut self, failure: FillFailure) {
        if let Self::Tee(tee) = self {
            tee.fail(failure);
        }
    }

    /// Notes how the response was fetched, for the access log.
    pub(crate) fn note_facts(&self, facts: FetchFacts) {
        if let Self::Tee(tee) = self {
            tee.fill.note_facts(facts);
        }
    }
}

impl Tee {
    /// A tee that copies a response on its way to its client.
    pub(crate) fn beside(cache: &Cache, key: CacheKey, request: TeeRequest) -> Self {
        let fill = Arc::new(Fill::beside(Arc::clone(cache.store.room())));
        Self::new(cache, key, None, fill, request)
    }

    /// A tee that copies a response fetched for readers, who join the fetch by `name`; `None`: see [`Self::beside`].
    pub(crate) fn new(
        cache: &Cache,
        key: CacheKey,
        name: Option<Bytes>,
        fill: Arc<Fill>,
        request: TeeRequest,
    ) -> Self {
        Self {
            began: cache.store.purge_count(),
            requested_at: cache::now(),
            cache: cache.clone(),
            key,
            _fetch: name.is_some().then(|| cache.store.begin_fetch()),
            name,
            fill,
            request,
            validating: Vec::new(),
            has_stale: false,
            arrived_at: 0,
            tags: Box::default(),
            refusal: None,
            is_over: false,
        }
    }

    /// Sets the stored responses that the backend is asked to confirm. `has_stale`: one of them may be sent if it
    /// fails.
    pub(crate) fn validate(&mut self, objects: Vec<Arc<Object>>, has_stale: bool) {
        self.validating = objects;
        self.has_stale = has_stale;
    }

    /// The stored responses that the backend is asked to confirm.
    pub(crate) fn validating(&self) -> &[Arc<Object>] {
        &self.validating
    }

    /// Decides whether the response is stored, and starts the fill that readers wait for. A 304 updates the stored
    /// response instead.
    fn handle_head(&mut self, head: &mut ResponseHead, facts: HeadFacts<'_>) {
        let now = cache::now();
        self.arrived_at = now;
        if head.status == StatusCode::NOT_MODIFIED && !self.validating.is_empty() {
            return self.renew(head, facts.request, now);
        }
        let storing = self.judge(head, facts, now);
        if let Err(refusal) = &storing {
            self.refuse(head.status, refusal, now);
        }
        let mut headers = head.headers.clone();
        let age = freshness::initial_age(&headers, self.requested_at, now);
        let set_cookie = if storing.is_ok() {
            self.cache.config.set_cookie
        } else {
            // The response goes to its own client only, which gets its cookies.
            storable::SetCookie::Store
        };
        let now_text = crate::date::now();
        let date = now_text.as_ref().map(|date| &date[..]);
        object::clean(&mut headers, set_cookie, date);
        let is_kept = self.fill.begin(
            FillHead {
                status: head.status,
                reason: own_reason(head),
                headers,
                content_length: head.content_length,
                age,
                storing,
                cookie: facts.cookie.cloned(),
            },
            self.fills_max(),
        );
        if !is_kept && self.refusal.is_none() {
            self.refuse(head.status, "fills-max", now);
        }
        // Readers of a fetch get the result from their own source.
        if self.name.is_none() {
            let status = head.status.as_u16();
            let text = match self.refusal {
                None => format!("fwd=miss; fwd-status={status}; stored"),
                Some(reason) => format!("fwd=miss; fwd-status={status}; detail={reason}"),
            };
            self.cache.tell(&mut head.headers, &text);
        }
    }

    /// Decides whether the response may be stored. Returns the requests that it may answer, or the reason against
    /// storing.
    fn judge(
        &mut self,
        head: &ResponseHead,
        facts: HeadFacts<'_>,
        now: Millis,
    ) -> Result<Audience, &'static str> {
        let request = facts.request.ok_or("no-request")?;
        if facts.is_replaced {
            return Err(REPLACED);
        }
        let config = &self.cache.config;
        if self.has_stale && is_stale_status(config, head.status) {
            return Err("stale-status");
        }
        let length = head.content_length;
        if length.is_some_and(|length| length > config.object_max) {
            return Err("object-max");
        }
        let response = ResponseFacts {
            status: head.status,
            headers: &head.headers,
            is_framed: facts.is_framed,
            arrived: now,
        };
        let judged = storable::judge(
            &self.request.facts(),
            &response,
            &config.freshness,
            config.set_cookie,
        );
        let terms = judged.map_err(storable::Refusal::token)?;
        self.tags = tags::read(&head.headers).unwrap_or_default();
        let names = vary::names(&head.headers).map_err(|_| "vary")?;
        Ok(Audience {
            selection: Selection::new(names, request),
            terms,
        })
    }

    /// Notes that the response is not stored, so that the requests that wait for it fetch their own.
    fn refuse(&mut self, status: StatusCode, refusal: &'static str, now: Millis) {
        self.refusal = Some(refusal);
        if self.name.is_none() {
            return;
        }
        self.land();
        // These reasons say nothing of the next response for this key, nor does an error.
        let is_passing = matches!(
            refusal,
            REPLACED
                | "stale-status"
                | "fills-max"
                | "session"
                | "authorization"
                | "request-no-store"
        );
        if !is_passing && !status.is_server_error() {
            let until = now + millis(self.cache.config.uncacheable_for);
            self.cache.store.note_uncacheable(&self.key, until);
        }
    }

    /// Renews the stored response that the backend has confirmed by a 304, and ends the fetch.
    fn renew(&mut self, head: &ResponseHead, request: Option<&Outgoing<'_>>, now: Millis) {
        self.is_over = true;
        self.land();
        let Some(stored) = self.confirmed(head, request) else {
            return self.fill.finish(None, false);
        };
        let store = &self.cache.store;
        match self.renewed(&stored, head, now) {
            Some(object) => {
                let object = Arc::new(object);
                store.insert(&self.key, Arc::clone(&object), &self.cache.config);
                self.fill.finish(Some(object), true);
            }
            None => {
                store.remove(&self.key, &stored);
                self.fill.finish(None, false);
            }
        }
    }

    /// The stored response that a 304 confirms. If there is none, those that answer the request are dropped.
    fn confirmed(
        &self,
        head: &ResponseHead,
        request: Option<&Outgoing<'_>>,
    ) -> Option<Arc<Object>> {
        // A 304 says nothing of responses for other requests, although it may name them: some backends give all
        // variants one tag.
        let request = request?;
        let answers = |object: &&Arc<Object>| object.head.answers(request);
        let answering = self.validating.iter().filter(answers);
        let is_about =
            |object: &&Arc<Object>| merge::is_about(&head.headers, object.head.fields.get(ETAG));
        // A 304 without a tag confirms a response only if no other was asked about.
        if (head.headers.contains(ETAG) || self.validating.len() == 1)
            && let Some(stored) = answering.clone().find(is_about)
        {
            return Some(Arc::clone(stored));
        }
        answering.for_each(|object| self.cache.store.remove(&self.key, object));
        None
    }

    /// A confirmed response with the fields of the 304; `None`: these forbid to store it.
    fn renewed(&self, stored: &Object, head: &ResponseHead, now: Millis) -> Option<Object> {
        let mut headers = stored.head.fields.clone();
        merge::update(&mut headers, &head.headers);
        let config = &self.cache.config;
        let response = ResponseFacts {
            status: stored.head.status,
            headers: &headers,
            is_framed: true,
            arrived: now,
        };
        let request = self.request.facts();
        let judged = storable::judge(&request, &response, &config.freshness, config.set_cookie);
        let terms = judged.ok()?;
        let age = freshness::initial_age(&headers, self.requested_at, now);
        object::clean(&mut headers, config.set_cookie, None);
        let stored_details = stored.head.details.as_deref();
        let details = match tags::read(&head.headers) {
            Some(tags) if !tags.is_empty() => ObjectDetails::with_tags(stored_details, tags),
            _ => stored_details.cloned().map(Box::new),
        };
        let (fields, body) = stored.with_fields(&headers);
        let renewed_head = ObjectHead {
            status: stored.head.status,
            fields,
            terms,
            made: now.saturating_sub(u64::from(age) * 1000),
            validated: now,
            began: self.began,
            details,
        };
        Some(Object::new(renewed_head, body).with_codings_of(stored))
    }

    /// Copies a piece of the body. If there is no room for it, the response is not stored.
    fn body(&mut self, data: &Bytes) {
        // Without readers, a response that is not stored is not copied.
        if self.is_over || self.name.is_none() && self.refusal.is_some() {
            return;
        }
        let limits = FillLimits {
            object_max: self.cache.config.object_max,
            fills_max: self.fills_max(),
        };
        let pushed = self.fill.push(data.clone(), limits);
        if let (Err(refusal), None) = (pushed, self.refusal) {
            let status = self.fill.head().map(|head| head.status);
            self.refuse(status.unwrap_or_default(), refusal, cache::now());
        }
    }

    /// Stores the response, if that is allowed. `false`: it is not as long as announced.
    fn end(&mut self) -> bool {
        if self.is_over {
            return true;
        }
        self.is_over = true;
        let head = self.fill.head();
        let blocks = self.fill.collect_body();
        if blocks.is_none() {
            self.refusal.get_or_insert("fills-max");
        }
        let (Some(head), Some(blocks), None) = (head, blocks, self.refusal) else {
            // The response is not stored; its readers have all of it.
            self.land();
            self.fill.finish(None, false);
            return true;
        };
        let received: u64 = blocks.iter().map(|block| block.len() as u64).sum();
        let is_whole = head.content_length.is_none_or(|length| length == received)
            || head.status == StatusCode::NO_CONTENT;
        let (Ok(Audience { selection, terms }), true) = (&head.storing, is_whole) else {
            self.land();
            self.fill.fail(FillFailure {
                status: StatusCode::BAD_GATEWAY,
                reason: Reason::new(Culprit::Backend, "response-length"),
            });
            return false;
        };
        let tags = std::mem::take(&mut self.tags);
        let (fields, body) = Body::store(&head.headers, blocks);
        let stored = ObjectHead {
            status: head.status,
            fields,
            terms: *terms,
            // The age counts from the arrival of the head, however long the body took.
            made: self.arrived_at.saturating_sub(u64::from(head.age) * 1000),
            validated: self.arrived_at,
            began: self.began,
            details: ObjectDetails::new(head.reason.clone(), selection.clone(), tags),
        };
        let object = Arc::new(Object::new(stored, body));
        let config = &self.cache.config;
        self.cache
            .store
            .insert(&self.key, Arc::clone(&object), config);
        self.land();
        self.fill.finish(Some(object), false);
        true
    }

    fn fail(&mut self, failure: FillFailure) {
        if !self.is_over {
            self.is_over = true;
            self.land();
            self.fill.fail(failure);
        }
    }

    /// Lets no further request join this fetch.
    fn land(&self) {
        if let Some(name) = &self.name {
            self.cache.store.land(name, &self.fill);
        }
    }

    /// The most bytes of bodies that this cache may be receiving at a time.
    fn fills_max(&self) -> u64 {
        self.cache.config.memory / 8
    }
}

impl TeeRequest {
    fn facts(&self) -> RequestFacts<'_> {
        RequestFacts {
            method: &self.method,
            path: &self.path,
            has_query: self.has_query,
            no_store: self.no_store,
            scope: self.scope,
            credentials: self.credentials,
        }
    }
}

impl Invalidation {
    /// Drops the stored responses that the change has made invalid: those of its URL, and of URLs on the same host
    /// that the response names (RFC 9111, section 4.4). A failed change drops nothing.
    fn apply(&self, head: &ResponseHead) {
        if head.status.is_client_error() || head.status.is_server_error() {
            return;
        }
        let store = &self.cache.store;
        let url_in = |name| resolve(self.key.url(), head.headers.get(name)?);
        let named_urls = [url_in(LOCATION), url_in(CONTENT_LOCATION)];
        for key in self.sibling_keys.iter().chain([&self.key]) {
            store.remove_all(key);
            for url in named_urls.iter().flatten() {
                store.remove_all(&key.of_url(url));
            }
        }
    }
}

/// Resolves a reference against the URL `base`; `None` if the result is on another host, or the reference is not
/// understood.
fn resolve(base: &[u8], reference: &[u8]) -> Option<Vec<u8>> {
    let end = reference.iter().position(|byte| *byte == b'#');
    let reference = &reference[..end.unwrap_or(reference.len())];
    // Behind `scheme://`.
    let host = base.iter().position(|byte| *byte == b':')? + 3;
    let path = host + base.get(host..)?.iter().position(|byte| *byte == b'/')?;
    let origin = &base[..path];
    if let Some(path_and_query) = reference.strip_prefix(origin) {
        // Without the slash, the origin may be the beginning of a longer host or port.
        return path_and_query.starts_with(b"/").then(|| reference.to_vec());
    }
    // Another host.
    if reference.starts_with(b"//") {
        return None;
    }
    if reference.starts_with(b"/") {
        return Some([origin, reference].concat());
    }
    // A scheme, or no reference.
    if reference.contains(&b':') || reference.is_empty() {
        return None;
    }
    let query = base.iter().position(|byte| *byte == b'?');
    let base_path = &base[..query.unwrap_or(base.len())];
    let slash = base_path.iter().rposition(|byte| *byte == b'/')?;
    Some([&base[..=slash], reference].concat())
}

/// The reason phrase of a head, if it is an unusual one. It is copied, because the head's own would keep the whole
/// read buffer in memory.
fn own_reason(head: &ResponseHead) -> Option<Bytes> {
    let usual = head.status.canonical_reason().map(str::as_bytes);
    let reason = head.reason.as_deref();
    let unusual = reason.filter(|reason| Some(*reason) != usual);
    unusual.map(Bytes::copy_from_slice)
}

/// Whether a stale response is sent instead of one with this status.
pub(crate) fn is_stale_status(config: &CacheConfig, status: StatusCode) -> bool {
    let mut statuses = config.stale_status.iter();
    statuses.any(|it| it.contains(&status.as_u16()))
}

/// A duration in milliseconds.
pub(crate) fn millis(duration: std::time::Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Drop for Tee {
    /// Tells the requests that wait for the response that it will not come.
    fn drop(&mut self) {
        self.fail(FillFailure {
            status: StatusCode::BAD_GATEWAY,
            reason: Reason::new(Culprit::Front, "fetch-lost"),
        });
    }
}

/// The reason why a response is not stored: the front sends an error page of the operator in its place.
pub(crate) const REPLACED: &str = "replaced";

#[cfg(test)]
mod tests {
    use super::*;

    /// A stored response must not keep the buffer of the connection from which it was read.
    #[test]
    fn the_reason_is_kept_if_it_is_unusual_and_then_a_copy() {
        let buffer = Bytes::from_static(b"HTTP/1.1 200 OK then");
        let of = |reason: Bytes| {
            own_reason(&ResponseHead {
                reason: Some(reason),
                ..ResponseHead::default()
            })
        };
        assert_eq!(of(buffer.slice(13..15)), None);
        let unusual = of(buffer.slice(13..)).unwrap();
        assert_eq!(unusual, "OK then");
        assert_ne!(unusual.as_ptr(), buffer[13..].as_ptr());
        assert_eq!(own_reason(&ResponseHead::default()), None);
    }

    #[test]
    fn references_are_resolved_on_the_same_host() {
        let base = b"http://h:80/a/b?q=/x";
        for (reference, expected) in [
            ("/c", Some("http://h:80/c")),
            ("/c?d#e", Some("http://h:80/c?d")),
            ("http://h:80/c", Some("http://h:80/c")),
            ("c", Some("http://h:80/a/c")),
            ("http://h:8080/c", None),
            ("http://h:80", None),
            ("//h:80/c", None),
            ("https://h:80/c", None),
            ("", None),
        ] {
            let resolved = resolve(base, reference.as_bytes());
            assert_eq!(
                resolved.as_deref(),
                expected.map(str::as_bytes),
                "{reference}"
            );
        }
    }
}
