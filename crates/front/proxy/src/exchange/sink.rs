//! Who takes a backend's response besides the client: a cache, or the front itself, which has asked for it.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use catamaran_message::{Fields, ResponseHead};
use http::StatusCode;

use crate::cache::fill::{FetchFacts, FillFailure};
use crate::deadlines::Tick;
use crate::exchange::cache_hook::{CacheHook, HeadFacts};

/// Who takes a response as it passes.
#[derive(Debug)]
pub(crate) enum Sink {
    /// A cache.
    Cache(CacheHook),
    /// The front itself, which keeps the response in memory.
    Collect(Collector),
}

/// A response in memory.
#[derive(Debug)]
pub(crate) struct Collector {
    head: Option<ResponseHead>,
    body: Vec<u8>,
    /// The most bytes of the body.
    body_max: usize,
    /// The longest time for the whole response.
    time_max: Duration,
    /// Whether the body is larger; then no more of it is taken.
    is_too_large: bool,
}

impl Collector {
    pub(crate) fn new(body_max: usize, time_max: Duration) -> Self {
        Self {
            head: None,
            body: Vec::new(),
            body_max,
            time_max,
            is_too_large: false,
        }
    }

    fn take_head(&mut self, head: &ResponseHead) {
        let max = u64::try_from(self.body_max).unwrap_or(u64::MAX);
        self.is_too_large = head.content_length.is_some_and(|length| length > max);
        self.head = Some(head.clone());
    }

    fn take_body(&mut self, data: &Bytes) {
        if self.body.len() + data.len() > self.body_max {
            self.is_too_large = true;
        } else {
            self.body.extend_from_slice(data);
        }
    }

    /// Whether the body is as long as announced. A 304 announces the length of another response.
    fn is_whole(&self) -> bool {
        let head = self.head.as_ref();
        let with_body = head.filter(|head| head.status != StatusCode::NOT_MODIFIED);
        let announced = with_body.and_then(|head| head.content_length);
        announced.is_none_or(|length| length == self.body.len() as u64)
    }
}

impl Sink {
    /// Takes the head of a response, before it is changed for this client alone.
    pub(crate) fn head(&mut self, head: &mut ResponseHead, facts: HeadFacts<'_>) {
        match self {
            Self::Cache(hook) => hook.head(head, facts),
            Self::Collect(collector) => collector.take_head(head),
        }
    }

    /// Takes an interim response.
    pub(crate) fn interim(&self, status: StatusCode, headers: &Fields) {
        match self {
            Self::Cache(hook) => hook.interim(status, headers),
            Self::Collect(_) => {}
        }
    }

    /// Takes a piece of the body.
    pub(crate) fn body(&mut self, data: &Bytes) {
        match self {
            Self::Cache(hook) => hook.body(data),
            Self::Collect(collector) => collector.take_body(data),
        }
    }

    /// Takes the end of the body. `false`: the response is not as long as announced.
    #[must_use]
    pub(crate) fn end(&mut self) -> bool {
        match self {
            Self::Cache(hook) => hook.end(),
            Self::Collect(collector) => collector.is_whole(),
        }
    }

    /// Ready if more of the body may be passed. While pending, the task is woken when that changes, or when
    /// [`Self::is_abandoned`] may have changed.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        match self {
            Self::Cache(hook) => hook.poll_room(cx),
            // It is abandoned by then, which the relay asks before it waits.
            Self::Collect(collector) if collector.is_too_large => Poll::Pending,
            Self::Collect(_) => Poll::Ready(()),
        }
    }

    /// Whether more of the body may be passed now.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::Cache(hook) => hook.has_room(),
            Self::Collect(collector) => !collector.is_too_large,
        }
    }

    /// The time at which the response is given up because nobody takes it; `None`: no such limit runs.
    pub(crate) fn idle_ends(&self, now: Tick) -> Option<Tick> {
        match self {
            Self::Cache(hook) => hook.idle_ends(now),
            Self::Collect(_) => None,
        }
    }

    /// The longest time for the whole response; `None`: as the route and the backend say.
    pub(crate) fn time_max(&self) -> Option<Duration> {
        match self {
            Self::Cache(_) => None,
            Self::Collect(collector) => Some(collector.time_max),
        }
    }

    /// Whether nobody wants the rest of the response.
    pub(crate) fn is_abandoned(&self) -> bool {
        match self {
            Self::Cache(hook) => hook.is_abandoned(),
            Self::Collect(collector) => collector.is_too_large,
        }
    }

    /// Ready once nobody wants the response any more.
    pub(crate) fn poll_abandoned(&self, cx: &Context<'_>) -> Poll<()> {
        match self {
            Self::Cache(hook) => hook.poll_abandoned(cx),
            // The front waits for what it collects, within the sign-on's timeout.
            Self::Collect(_) => Poll::Pending,
        }
    }

    /// The reason why a cache did not store the response; `None`: it did, or there is no cache.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match self {
            Self::Cache(hook) => hook.refusal(),
            Self::Collect(_) => None,
        }
    }

    /// Ends the copy, because the response did not come.
    pub(crate) fn fail(&mut self, failure: FillFailure) {
        match self {
            Self::Cache(hook) => hook.fail(failure),
            Self::Collect(_) => {}
        }
    }

    /// Notes how the response was fetched, for the access log.
    pub(crate) fn note_facts(&self, facts: FetchFacts) {
        match self {
            Self::Cache(hook) => hook.note_facts(facts),
            Self::Collect(_) => {}
        }
    }

    /// The response that was collected. `None`: it has not come whole, it is too large, or a cache took it.
    pub(crate) fn into_collected(self) -> Option<(ResponseHead, Bytes)> {
        match self {
            Self::Cache(_) => None,
            Self::Collect(collector) if collector.is_too_large => None,
            Self::Collect(collector) => Some((collector.head?, collector.body.into())),
        }
    }
}
