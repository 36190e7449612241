//! A response from the cache as the source of an exchange: stored, or being received for several requests.
//!
//! The client's conditions and ranges are evaluated here, on the response at hand, because the backend was asked for
//! the whole of it.

mod coded;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use catamaran_cache::{Millis, date, freshness};
use catamaran_message::ResponseHead;
use catamaran_message::condition::{self, ConditionOutcome, Validators};
use catamaran_message::name::{
    AGE, CACHE_STATUS, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, RANGE, SET_COOKIE,
};
use catamaran_message::range::{self, RangeSelection};
use catamaran_upstream::Event;
use http::{Method, StatusCode};

use crate::boxed::in_box;
use crate::cache::counts::CacheResult;
use crate::cache::fill::{FillHead, FillNews, FillReader};
use crate::cache::hot::StoredResponse;
use crate::cache::store::Found;
use crate::cache::{self, CACHE_NAME};
use crate::exchange::cache_hook::{REPLACED, is_stale_status};
use crate::exchange::cache_request::CacheRequest;
use crate::exchange::fields::body;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::source_error::CachedError;

/// The cache's result for a request, known once the source has its head.
#[derive(Debug)]
pub(crate) struct CacheOutcome {
    /// The result, as an index in [`CacheResult::ALL`]; `u8::MAX`: not yet known.
    result: AtomicU8,
    age: AtomicU32,
    /// The reason why the response is not stored; unset if it is stored or not decided yet.
    refusal: OnceLock<&'static str>,
}

impl Default for CacheOutcome {
    fn default() -> Self {
        Self {
            result: AtomicU8::new(u8::MAX),
            age: AtomicU32::new(0),
            refusal: OnceLock::new(),
        }
    }
}

impl CacheOutcome {
    fn set(&self, result: CacheResult, age: u32) {
        self.result.store(result as u8, Ordering::Relaxed);
        self.age.store(age, Ordering::Relaxed);
    }

    /// The cache's result, and the age of the response in seconds; `None` until the head is known.
    pub(crate) fn get(&self) -> Option<(CacheResult, u32)> {
        let index = usize::from(self.result.load(Ordering::Relaxed));
        let result = CacheResult::ALL.get(index)?;
        Some((*result, self.age.load(Ordering::Relaxed)))
    }

    /// The reason why the response is not stored; `None`: it is, or is from memory.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        self.refusal.get().copied()
    }
}

/// The request to answer from the cache, and where the source writes the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheJob<'a> {
    pub(crate) request: &'a CacheRequest<'a>,
    pub(crate) outgoing: &'a Outgoing<'a>,
    pub(crate) outcome: &'a CacheOutcome,
}

/// A stored response, or one that is being received, as a source.
#[derive(Debug)]
pub(crate) struct CachedSource<'a> {
    job: CacheJob<'a>,
    from: From,
    /// The time for which the age of the stored response is computed.
    now: Millis,
    /// How long to wait for the head; `None`: without limit.
    patience: Option<Duration>,
    /// Whether a stale response is there if the backend fails.
    has_stale: bool,
    /// The part of the body that is still to be sent; `None`: nothing is left to send.
    window: Option<BodyWindow>,
    has_head: bool,
    /// Whether the body is not the response's: a page of the front has replaced it, or it is empty because of a 416.
    pub(super) is_own_page: bool,
}

/// A part of a body, beginning at the next byte of the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BodyWindow {
    /// The bytes to skip first.
    skip: u64,
    /// The bytes to send then.
    left: u64,
}

impl BodyWindow {
    const WHOLE: Self = Self {
        skip: 0,
        left: u64::MAX,
    };

    /// Cuts a piece of the stored body to the bytes that are to be sent, and moves the window behind it.
    fn cut(&mut self, piece: &mut Bytes) {
        let skipped = saturated(self.skip).min(piece.len());
        self.skip -= skipped as u64;
        piece.advance(skipped);
        piece.truncate(saturated(self.left));
        self.left -= piece.len() as u64;
    }
}

#[derive(Debug)]
enum From {
    /// A stored response, the cache's result, and the index of the next block of its body.
    Stored(StoredResponse, CacheResult, usize),
    /// A compressed copy of the whole body; `None` once it was sent.
    Coded(Option<Bytes>),
    Fill(FillReader),
}

impl<'a> CachedSource<'a> {
    /// A source that sends the stored response `found`. `result` is the cache's result.
    pub(crate) fn stored(
        job: CacheJob<'a>,
        found: &Found,
        result: CacheResult,
        now: Millis,
    ) -> Self {
        let from = From::Stored(found.response.clone(), result, 0);
        Self {
            now,
            ..Self::new(job, from)
        }
    }

    /// A source that sends a response being received, whose head is waited for `patience` at most. With `has_stale`,
    /// a response with a status of `stale_status` is an error, so that the stale one is sent instead.
    pub(crate) fn awaited(
        job: CacheJob<'a>,
        reader: FillReader,
        patience: Option<Duration>,
        has_stale: bool,
    ) -> Self {
        Self {
            patience,
            has_stale,
            ..Self::new(job, From::Fill(reader))
        }
    }

    fn new(job: CacheJob<'a>, from: From) -> Self {
        Self {
            job,
            from,
            now: 0,
            patience: None,
            has_stale: false,
            window: None,
            has_head: false,
            is_own_page: false,
        }
    }

    pub(super) fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// The next event of the response: its head, then the part of its body that the client wants.
    pub(super) fn poll_event(&mut self, cx: &Context<'_>) -> Poll<Result<Event, CachedError>> {
        if !self.has_head {
            return self.poll_head(cx);
        }
        loop {
            let Some(window) = &mut self.window else {
                return Poll::Ready(Ok(Event::End));
            };
            let piece = match &mut self.from {
                From::Stored(response, _, next_block) => {
                    let block = response.block(*next_block);
                    *next_block += 1;
                    block
                }
                From::Coded(coded) => coded.take(),
                From::Fill(reader) => match reader.poll_body(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(piece) => piece.map_err(CachedError::Failed)?,
                },
            };
            let Some(mut piece) = piece else {
                return Poll::Ready(Ok(Event::End));
            };
            window.cut(&mut piece);
            if window.left == 0 {
                self.window = None;
            }
            if !piece.is_empty() {
                return Poll::Ready(Ok(Event::Body(piece)));
            }
        }
    }

    /// The head of the response; pending while it is being fetched.
    fn poll_head(&mut self, cx: &Context<'_>) -> Poll<Result<Event, CachedError>> {
        let reader = match &mut self.from {
            From::Stored(response, result, _) => {
                let tells = self.job.request.cache.config.cache_status;
                let cached = CachedHead::stored(response, *result, self.now, tells);
                return Poll::Ready(Ok(Event::Head(self.begin(cached))));
            }
            From::Fill(reader) => reader,
            // A compressed copy takes the place of the stored body only after the head.
            From::Coded(_) => return Poll::Ready(Ok(Event::End)),
        };
        let leads = reader.leads;
        reader.poll_news(cx).map(|news| self.head_of(news, leads))
    }

    /// Turns the news of a fetch into an event for this request, or into an error. `leads`: this request caused the
    /// fetch.
    fn head_of(&mut self, news: FillNews, leads: bool) -> Result<Event, CachedError> {
        let credentials = self.job.request.demand.credentials;
        match news {
            FillNews::Interim(status, headers) => Ok(Event::Interim(Box::new(ResponseHead {
                status,
                headers: *headers,
                ..ResponseHead::default()
            }))),
            FillNews::Head(head) => {
                if self.prefers_stale(head.status) {
                    return Err(CachedError::StaleStatus(head.status));
                }
                if let Ok(audience) = &head.storing
                    && !leads
                    && !audience.has(self.job.outgoing, credentials)
                {
                    return Err(CachedError::NotShared);
                }
                self.is_own_page = matches!(head.storing, Err(REPLACED));
                let cached = self.fill_head(&head, leads);
                Ok(Event::Head(self.begin(cached)))
            }
            FillNews::Whole(object, is_validated) => {
                let stored = &object.head;
                if !stored.answers(self.job.outgoing) || !stored.terms.admit(credentials) {
                    return Err(CachedError::NotShared);
                }
                let result = if is_validated {
                    CacheResult::Revalidated
                } else if leads {
                    CacheResult::Miss
                } else {
                    CacheResult::Collapsed
                };
                let tells = self.job.request.cache.config.cache_status;
                let response = StoredResponse::Received(object);
                let cached = CachedHead::stored(&response, result, cache::now(), tells);
                self.from = From::Stored(response, result, 0);
                Ok(Event::Head(self.begin(cached)))
            }
            FillNews::NotShared(Some(status)) if self.prefers_stale(status) => {
                Err(CachedError::StaleStatus(status))
            }
            FillNews::NotShared(_) => Err(CachedError::NotShared),
            FillNews::Failed(failure) => Err(CachedError::Failed(failure)),
        }
    }

    /// Whether a stale response is sent instead of one with this status.
    fn prefers_stale(&self, status: StatusCode) -> bool {
        self.has_stale && is_stale_status(&self.job.request.cache.config, status)
    }

    /// The head of a response that is being received. `leads`: this request caused the fetch.
    fn fill_head(&self, fill: &FillHead, leads: bool) -> CachedHead {
        let mut headers = fill.headers.clone();
        let status = fill.status.as_u16();
        // Only the request that caused the fetch gets a new response of the backend, without an age.
        if fill.age > 0 || !leads {
            headers.insert(AGE, itoa::Buffer::new().format(fill.age));
        }
        let (result, cache_status) = match fill.storing {
            Ok(_) if leads => (
                CacheResult::Miss,
                format!("fwd=miss; fwd-status={status}; stored"),
            ),
            Ok(_) => (CacheResult::Collapsed, "hit; collapsed".to_owned()),
            Err(reason) => {
                self.job.outcome.refusal.get_or_init(|| reason);
                let cache_status = format!("fwd=miss; fwd-status={status}; detail={reason}");
                (CacheResult::Uncacheable, cache_status)
            }
        };
        self.job.request.cache.tell(&mut headers, &cache_status);
        // The front's own cookie is for the client of that request.
        if let Some(cookie) = fill.cookie.as_ref().filter(|_| leads) {
            headers.append(SET_COOKIE, cookie);
        }
        CachedHead {
            head: Box::new(ResponseHead {
                status: fill.status,
                reason: fill.reason.clone(),
                headers,
                content_length: fill.content_length,
            }),
            result,
            age: fill.age,
        }
    }

    /// Begins the response: applies the client's conditions and ranges to the head.
    fn begin(&mut self, cached: CachedHead) -> Box<ResponseHead> {
        let CachedHead {
            mut head,
            result,
            age,
        } = cached;
        self.job.outcome.set(result, age);
        self.has_head = true;
        let client_head = &self.job.outgoing.head;
        let (method, conditions) = (&client_head.method, &client_head.headers);
        let is_bodiless = *method == Method::HEAD || matches!(head.status.as_u16(), 204 | 304);
        self.window = (!is_bodiless).then_some(BodyWindow::WHOLE);
        // Most requests want the whole body; the fields of the others are read next.
        if head.status == StatusCode::OK
            && [IF_NONE_MATCH, IF_MODIFIED_SINCE, RANGE]
                .iter()
                .any(|name| conditions.contains(*name))
        {
            self.judge(&mut head);
        }
        head
    }

    /// Applies the client's conditions and range to a head of 200: it may become a 304, 206 or 416.
    fn judge(&mut self, head: &mut ResponseHead) {
        let client_head = &self.job.outgoing.head;
        let (method, conditions) = (&client_head.method, &client_head.headers);
        let etag = head.headers.get(ETAG).map(<[u8]>::to_vec);
        let sent_at = freshness::date_of(&head.headers);
        let last_modified = head.headers.get(LAST_MODIFIED).and_then(date::parse);
        let validators = Validators {
            etag: etag.as_deref(),
            modified: last_modified.or(sent_at).map(|millis| millis / 1000),
            // In the second of the response the content may have changed again (RFC 9110, section 8.8.2.2).
            is_modified_strong: last_modified.is_some() && last_modified < sent_at,
        };
        if condition::evaluate(method, conditions, &validators) == ConditionOutcome::NotModified {
            self.window = None;
            head.status = StatusCode::NOT_MODIFIED;
            head.reason = None;
            head.content_length = None;
            for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE] {
                head.headers.remove(name);
            }
            return;
        }
        let Some(length) = head.content_length else {
            return;
        };
        match range::select(method, conditions, &validators, length, 1) {
            RangeSelection::Part(part) => {
                head.status = StatusCode::PARTIAL_CONTENT;
                head.reason = None;
                head.content_length = Some(part.len());
                head.headers
                    .insert(CONTENT_RANGE, part.content_range(length));
                self.window = Some(BodyWindow {
                    skip: part.first(),
                    left: part.len(),
                });
            }
            RangeSelection::Unsatisfiable => {
                head.status = StatusCode::RANGE_NOT_SATISFIABLE;
                head.reason = None;
                head.content_length = Some(0);
                body::remove(&mut head.headers);
                head.headers
                    .insert(CONTENT_RANGE, range::unsatisfied(length));
                self.window = None;
                self.is_own_page = true;
            }
            RangeSelection::Whole | RangeSelection::Parts(_) => {}
        }
    }
}

/// A response's head before the client's conditions and ranges are applied.
struct CachedHead {
    head: Box<ResponseHead>,
    result: CacheResult,
    age: u32,
}

impl CachedHead {
    /// The head of a stored response with its `Age` at `now`, and with `Cache-Status` if `tells`.
    fn stored(response: &StoredResponse, result: CacheResult, now: Millis, tells: bool) -> Self {
        let object = response.object();
        let stored = &object.head;
        let age = stored.stored(false).age(now);
        let mut headers = response.fields().with_room(TOLD_FIELDS, TOLD_BYTES);
        headers.append(AGE, itoa::Buffer::new().format(age));
        if tells {
            let left = i64::from(stored.terms.lifetime) - i64::from(age);
            let mut digits = itoa::Buffer::new();
            let mut cache_status = String::with_capacity(TOLD_BYTES);
            cache_status.push_str(CACHE_NAME);
            for part in status_parts(result, left, stored.status, &mut digits) {
                cache_status.push_str(part);
            }
            headers.append(CACHE_STATUS, cache_status);
        }
        Self {
            head: in_box(|| ResponseHead {
                status: stored.status,
                reason: stored.reason().cloned(),
                headers,
                content_length: Some(object.len()),
            }),
            result,
            age,
        }
    }
}

/// The cache's result, in the form that `Cache-Status` has after the front's name. `left`: the seconds of freshness
/// left, negative if stale.
fn status_parts(
    result: CacheResult,
    left: i64,
    status: StatusCode,
    digits: &mut itoa::Buffer,
) -> [&str; 3] {
    match result {
        CacheResult::Revalidated => ["fwd=stale; fwd-status=304; ttl=", digits.format(left), ""],
        CacheResult::Collapsed => ["hit; ttl=", digits.format(left), "; collapsed"],
        CacheResult::Miss => [
            "fwd=miss; fwd-status=",
            digits.format(status.as_u16()),
            "; stored",
        ],
        _ => ["hit; ttl=", digits.format(left), ""],
    }
}

/// The number, or the greatest `usize` if it is beyond: no piece of a body is as long.
fn saturated(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The fields that a stored response gets: `Age` and `Cache-Status`.
const TOLD_FIELDS: usize = 2;

/// Room for the lines of these fields, in bytes.
const TOLD_BYTES: usize = 96;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told() {
        for (result, left, expected) in [
            (CacheResult::Hit, 5, "hit; ttl=5"),
            (CacheResult::Stale, -7, "hit; ttl=-7"),
            (CacheResult::Collapsed, 0, "hit; ttl=0; collapsed"),
            (CacheResult::Miss, 5, "fwd=miss; fwd-status=200; stored"),
            (
                CacheResult::Revalidated,
                i64::MIN,
                "fwd=stale; fwd-status=304; ttl=-9223372036854775808",
            ),
        ] {
            let mut digits = itoa::Buffer::new();
            let parts = status_parts(result, left, StatusCode::OK, &mut digits);
            assert_eq!(parts.concat(), expected, "{result:?}");
        }
    }
}
