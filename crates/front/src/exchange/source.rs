//! Where a response comes from: a backend, or the front itself.
//!
//! The set is closed, so it is an enum. The relay asks for events and offers the request's body in
//! the same way for both. Only a backend has timeouts.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use catamaran_message::ResponseHead;
use catamaran_transport::ByteQueue;
use catamaran_upstream::{Error, Event, Lease};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;

use crate::config::BackendConfig;
use crate::exchange::elsewhere::Elsewhere;
use crate::exchange::id::RequestId;
use crate::exchange::pages::Pages;
use crate::exchange::passage::Passage;
use crate::exchange::respond;
use crate::worker::in_flight::{Phase, Seen};

/// The source of a response.
#[derive(Debug)]
pub(crate) enum Source<'a, 'b> {
    /// A backend, which has been sent the request's head.
    Backend(Leased<'a, 'b>),
    /// A page of the front. It takes nothing of the request's body.
    Answer(Answer),
}

/// A backend's connection for this exchange, and the backend's timeouts.
#[derive(Debug)]
pub(crate) struct Leased<'a, 'b> {
    pub(crate) lease: &'a mut Lease<'b>,
    pub(crate) config: &'a BackendConfig,
    /// Whether another backend may serve the request if this one is put out.
    pub(crate) elsewhere: Elsewhere<'a>,
    /// A cookie for the client. It is left out if a shared cache could store it for others.
    pub(crate) cookie: Option<&'a HeaderValue>,
    /// What administrators see of the request.
    pub(crate) seen: Option<&'a Seen<'a>>,
    /// What the route changes, if it changes anything.
    pub(crate) passage: Option<&'a Passage<'a>>,
    /// Pages in the place of its error responses, if that is wanted.
    pub(crate) pages: Option<Pages<'a>>,
}

impl Leased<'_, '_> {
    /// How long the first byte of the response may take.
    pub(crate) fn first_byte_timeout(&self) -> Duration {
        let of_route = self.passage.and_then(|it| it.rules.first_byte_timeout());
        of_route.unwrap_or(self.config.first_byte_timeout)
    }

    /// How long the backend may be silent within a body.
    pub(crate) fn idle_body_timeout(&self) -> Duration {
        let of_route = self.passage.and_then(|it| it.rules.idle_body_timeout());
        of_route.unwrap_or(self.config.idle_body_timeout)
    }
}

/// A response of the front's own.
#[derive(Debug)]
pub(crate) struct Answer {
    head: Box<ResponseHead>,
    body: Bytes,
    head_taken: bool,
}

impl Answer {
    /// An answer with these fields and this body.
    pub(crate) fn new(status: StatusCode, (headers, body): (HeaderMap, Bytes)) -> Self {
        let head = ResponseHead {
            status,
            reason: None,
            headers,
            content_length: Some(body.len() as u64),
        };
        Self {
            head: Box::new(head),
            body,
            head_taken: false,
        }
    }

    /// A redirect.
    pub(crate) fn redirect(status: StatusCode, location: HeaderValue, id: RequestId) -> Self {
        let body = Bytes::from(respond::page(status, id));
        let mut answer = Self::new(status, (respond::fields(status, id), body));
        let headers = answer.headers_mut();
        // The status decides whether a cache may keep it (RFC 9110, section 15.1).
        headers.remove(CACHE_CONTROL);
        headers.insert(LOCATION, location);
        answer
    }

    /// A text.
    pub(crate) fn text(body: Bytes) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Self::new(StatusCode::OK, (headers, body))
    }

    /// Its fields.
    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.head.headers
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    fn next(&mut self) -> Event {
        if !std::mem::replace(&mut self.head_taken, true) {
            return Event::Head(std::mem::take(&mut self.head));
        }
        match std::mem::take(&mut self.body) {
            body if body.is_empty() => Event::End,
            body => Event::Body(body),
        }
    }
}

impl<'a> Source<'a, '_> {
    /// A cookie for the client, if the front has one.
    pub(crate) fn cookie(&self) -> Option<&'a HeaderValue> {
        match self {
            Self::Backend(leased) => leased.cookie,
            Self::Answer(_) => None,
        }
    }

    /// Lets administrators see how far the request is.
    pub(crate) fn enter(&self, phase: Phase) {
        if let Self::Backend(Leased {
            seen: Some(seen), ..
        }) = self
        {
            seen.enter(phase);
        }
    }

    /// Takes note of the sessions that a response begins.
    pub(crate) fn note_sessions(&self, headers: &HeaderMap, now: impl Fn() -> Instant) {
        if let Self::Backend(leased) = self
            && let Some(sticky) = &leased.elsewhere.upstream.sticky
        {
            for id in sticky.response_cookies.begun(headers) {
                leased.lease.backend().note_session(id, now());
            }
        }
    }

    /// The next event of the response; see [`Lease::poll_event`].
    ///
    /// # Errors
    /// The backend's connection failed, or the backend broke its protocol.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        match self {
            Self::Backend(leased) => leased.lease.poll_event(cx),
            Self::Answer(answer) => Poll::Ready(Ok(answer.next())),
        }
    }

    /// How many bytes of the request's body are wanted now.
    pub(crate) fn body_credit(&self) -> usize {
        match self {
            Self::Backend(leased) => leased.lease.body_credit(),
            Self::Answer(_) => 0,
        }
    }

    /// Takes what is wanted of the request's body off its front.
    pub(crate) fn send_body(&mut self, body: &mut ByteQueue) {
        match self {
            Self::Backend(leased) => leased.lease.send_body(body),
            Self::Answer(_) => {}
        }
    }

    /// Says that the request's body is complete. `false` if it is shorter than announced.
    #[must_use]
    pub(crate) fn finish_body(&mut self) -> bool {
        match self {
            Self::Backend(leased) => leased.lease.finish_body(),
            Self::Answer(_) => true,
        }
    }

    /// Bytes encoded for a backend and not yet written.
    pub(crate) fn unwritten(&self) -> usize {
        match self {
            Self::Backend(leased) => leased.lease.unwritten(),
            Self::Answer(_) => 0,
        }
    }

    /// Writes what was encoded; ready when all of it is written.
    ///
    /// # Errors
    /// The backend's connection failed.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        match self {
            Self::Backend(leased) => leased.lease.poll_write(cx),
            Self::Answer(_) => Poll::Ready(Ok(0)),
        }
    }

    /// Whether any byte of a response arrived.
    pub(crate) fn is_answered(&self) -> bool {
        match self {
            Self::Backend(leased) => leased.lease.is_answered(),
            Self::Answer(_) => true,
        }
    }

    /// Takes back a head that is not needed any more.
    pub(crate) fn recycle(&mut self, head: Box<ResponseHead>) {
        match self {
            Self::Backend(leased) => leased.lease.recycle(head),
            Self::Answer(_) => {}
        }
    }
}
