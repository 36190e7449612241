//! The source of a response: a backend, a file, a cache, or the front itself.
//!
//! The relay asks every source for events and offers it the request's body in the same way. Only this file
//! distinguishes sources. They are an enum and each function matches all of them, so that a new source does not
//! compile until every question has its answer.

pub(crate) mod cached;
pub(crate) mod file;

use std::hint::cold_path;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use catamaran_files::FilePart;
use catamaran_message::name::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use catamaran_message::{Fields, Id, ResponseHead};
use catamaran_transport::ByteQueue;
use catamaran_upstream::{Event, Lease};
use http::StatusCode;

use crate::boxed::in_box;
use crate::config::BackendConfig;
use crate::deadlines::Tick;
use crate::exchange::compression::{Compression, CompressionOffer};
use crate::exchange::fields::body::FieldScope;
use crate::exchange::other_backends::OtherBackends;
use crate::exchange::progress::Progress;
use crate::exchange::respond;
use crate::exchange::scene::Scene;
use crate::exchange::source::cached::CachedSource;
use crate::exchange::source::file::FileSource;
use crate::exchange::source_error::SourceError;
use crate::request_id::RequestId;
use crate::site::rules::Rules;
use crate::worker::in_flight::{Phase, Seen};

/// The source of a response.
#[derive(Debug)]
pub(crate) enum Source<'a, 'b> {
    /// A backend, which has been sent the request's head.
    Backend(Leased<'a, 'b>),
    /// A page of the front, which takes nothing of the request's body.
    Answer(Answer),
    /// A file, which takes nothing of the request's body.
    File(Box<FileSource<'a>>),
    /// A response of a cache, which takes nothing of the request's body.
    Cached(Box<CachedSource<'a>>),
}

/// A backend's connection for this exchange, and the backend's timeouts.
#[derive(Debug)]
pub(crate) struct Leased<'a, 'b> {
    pub(crate) lease: &'a mut Lease<'b>,
    pub(crate) config: &'a BackendConfig,
    /// The rules of the route, if it has any.
    pub(crate) rules: Option<&'a Rules>,
    /// Decides whether another backend may serve the request if this one is put out.
    pub(crate) other_backends: &'a OtherBackends<'a>,
    /// The entry that administrators see while the request is in flight.
    pub(crate) in_flight: Option<&'a Seen<'a>>,
}

impl Leased<'_, '_> {
    fn first_byte_timeout(&self) -> Duration {
        let rules = self.rules.map(Rules::config);
        let of_route = rules.and_then(|rules| rules.first_byte_timeout);
        of_route.unwrap_or(self.config.first_byte_timeout)
    }

    fn idle_body_timeout(&self) -> Duration {
        let rules = self.rules.map(Rules::config);
        let of_route = rules.and_then(|rules| rules.idle_body_timeout);
        of_route.unwrap_or(self.config.idle_body_timeout)
    }

    /// See [`Source::check_silence`].
    fn check_silence(&self, moved: Tick, now: Tick, progress: &Progress) -> Option<Tick> {
        let Some(limit) = self.config.suspect_after else {
            return Some(Tick::NEVER);
        };
        let due = moved.max(self.lease.last_heard().into()) + limit;
        if now < due {
            return Some(due);
        }
        let backend = self.lease.backend();
        backend.note_silence();
        // A backend that was put out has no share of the requests.
        let is_out = backend.share() == 0;
        if is_out && !self.lease.is_answered() && self.other_backends.may_serve(progress) {
            return None;
        }
        Some(now + SILENCE_CHECK)
    }
}

/// A response that the front makes itself.
#[derive(Debug)]
pub(crate) struct Answer {
    head: Box<ResponseHead>,
    body: Bytes,
    head_taken: bool,
    /// Which of a route's rules for fields apply to the answer.
    scope: FieldScope,
}

impl Answer {
    /// An answer with these fields and this body.
    pub(crate) fn new(status: StatusCode, headers: Fields, body: Bytes) -> Self {
        let head = in_box(|| ResponseHead {
            status,
            headers,
            content_length: Some(body.len() as u64),
            ..ResponseHead::default()
        });
        Self {
            head,
            body,
            head_taken: false,
            scope: FieldScope::OwnPage,
        }
    }

    /// A redirect to `location`.
    pub(crate) fn redirect(status: StatusCode, location: impl AsRef<[u8]>, id: RequestId) -> Self {
        let body = respond::page(status, id);
        let mut answer = Self::new(status, respond::fields(status, id), body);
        let headers = &mut answer.head.headers;
        // The status decides whether a cache may keep it (RFC 9110, section 15.1).
        headers.remove(CACHE_CONTROL);
        headers.insert(LOCATION, location);
        answer
    }

    /// A text of this media type, the route's content.
    pub(crate) fn text(status: StatusCode, media_type: &[u8], body: Bytes) -> Self {
        let mut headers = Fields::new();
        headers.insert(CONTENT_TYPE, media_type);
        Self {
            scope: FieldScope::OwnText,
            ..Self::new(status, headers, body)
        }
    }

    /// The answer as the content of its route, rather than a page in the place of it.
    pub(crate) fn of_route(mut self) -> Self {
        self.scope = FieldScope::OwnText;
        self
    }

    /// A 304: the client's copy of a file is still valid.
    pub(crate) fn not_modified(headers: Fields) -> Self {
        let mut answer = Self::new(StatusCode::NOT_MODIFIED, headers, Bytes::new());
        answer.head.content_length = None;
        answer
    }

    /// Adds a field.
    pub(crate) fn add(&mut self, name: Id, value: impl AsRef<[u8]>) {
        self.head.headers.append(name, value);
    }

    /// Adds or replaces these fields.
    pub(crate) fn with(mut self, fields: Fields) -> Self {
        for field in fields.iter() {
            self.head.headers.insert(field.name_ref(), field.value());
        }
        self
    }

    /// The head, the body, and which of a route's rules for fields apply.
    pub(crate) fn into_parts(self) -> (Box<ResponseHead>, Bytes, FieldScope) {
        (self.head, self.body, self.scope)
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The next event: the head, then the body if there is one, then the end.
    fn next(&mut self) -> Event {
        if !self.head_taken {
            self.head_taken = true;
            return Event::Head(std::mem::take(&mut self.head));
        }
        if self.body.is_empty() {
            return Event::End;
        }
        Event::Body(std::mem::take(&mut self.body))
    }
}

impl Source<'_, '_> {
    /// Whether the source takes the request's body.
    pub(crate) fn takes_upload(&self) -> bool {
        match self {
            Self::Backend(_) => true,
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => false,
        }
    }

    /// Whether the response may be compressed for the client. The front's own pages are not, since they are
    /// short.
    pub(crate) fn may_be_compressed(&self) -> bool {
        match self {
            Self::Backend(_) | Self::Cached(_) => true,
            Self::File(file) => !file.is_compressed,
            Self::Answer(_) => false,
        }
    }

    /// Which of a route's rules for fields apply to the response.
    pub(crate) fn field_scope(&self) -> FieldScope {
        match self {
            Self::Backend(_) | Self::File(_) => FieldScope::Served,
            Self::Answer(answer) => answer.scope,
            Self::Cached(cached) if cached.is_own_page => FieldScope::OwnPage,
            Self::Cached(_) => FieldScope::Served,
        }
    }

    /// Sends a kept compressed copy instead of the body, and adapts the head. `None` if there is no such copy,
    /// or no body is sent.
    pub(crate) fn kept_coding(
        &mut self,
        offer: &CompressionOffer<'_>,
        head: &mut ResponseHead,
        scene: Scene<'_>,
    ) -> Option<Box<Compression>> {
        match self {
            Self::Cached(cached) => cached.kept_coding(offer, head, scene),
            Self::Backend(_) | Self::Answer(_) | Self::File(_) => None,
        }
    }

    /// The time limit for the first byte of the response; `None` for a source that is never silent.
    pub(crate) fn first_byte_timeout(&self) -> Option<Duration> {
        match self {
            Self::Backend(leased) => Some(leased.first_byte_timeout()),
            Self::Answer(_) | Self::File(_) => None,
            Self::Cached(cached) => cached.patience(),
        }
    }

    /// The time limit for silence within a body; `None` for a source that is never silent.
    pub(crate) fn idle_body_timeout(&self) -> Option<Duration> {
        match self {
            Self::Backend(leased) => Some(leased.idle_body_timeout()),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => None,
        }
    }

    /// Notes that bytes arrived from a backend.
    pub(crate) fn note_heard(&mut self, at: Tick) {
        match self {
            Self::Backend(leased) => leased.lease.note_heard(at.into()),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => {}
        }
    }

    /// Makes a backend suspect if it has sent nothing for too long while its head is awaited.
    ///
    /// It has had all that it needs since `moved`. Returns when to check again; `None`: give the exchange up,
    /// because the backend is out and another may serve it.
    pub(crate) fn check_silence(
        &self,
        moved: Tick,
        now: Tick,
        progress: &Progress,
    ) -> Option<Tick> {
        match self {
            Self::Backend(leased) => leased.check_silence(moved, now, progress),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => Some(Tick::NEVER),
        }
    }

    /// Shows administrators the phase that the request has reached.
    pub(crate) fn enter(&self, phase: Phase) {
        match self {
            Self::Backend(leased) => {
                if let Some(in_flight) = leased.in_flight {
                    in_flight.enter(phase);
                }
            }
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => {}
        }
    }

    /// The next event of the response; see [`Lease::poll_event`]. An empty piece of the body stands for a part
    /// of a file: see [`Self::take_part`].
    ///
    /// # Errors
    /// The rest of the response will not come.
    // Always inlined: compressed responses call it from a second place, for which the compiler would make it a call.
    #[inline(always)]
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, SourceError>> {
        match self {
            Self::Backend(leased) => leased.lease.poll_event(cx).map_err(SourceError::from),
            // Most responses come from a backend: the other sources are marked cold.
            Self::Answer(answer) => {
                cold_path();
                Poll::Ready(Ok(answer.next()))
            }
            Self::File(file) => {
                cold_path();
                file.poll_event(cx).map_err(SourceError::File)
            }
            Self::Cached(cached) => {
                cold_path();
                cached.poll_event(cx).map_err(SourceError::from)
            }
        }
    }

    /// The part of a file that the kernel is to send, after a piece of the body without bytes.
    #[cold]
    pub(crate) fn take_part(&mut self) -> Option<FilePart> {
        match self {
            Self::File(file) => file.part.take(),
            Self::Backend(_) | Self::Answer(_) | Self::Cached(_) => None,
        }
    }

    /// From now on yields the bytes of a file, not parts for the kernel to send, because they are to be changed.
    pub(crate) fn read_all(&mut self) {
        match self {
            Self::File(file) => file.by_parts = false,
            Self::Backend(_) | Self::Answer(_) | Self::Cached(_) => {}
        }
    }

    /// The bytes of the request's body that are wanted now.
    pub(crate) fn body_credit(&self) -> usize {
        match self {
            Self::Backend(leased) => leased.lease.body_credit(),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => 0,
        }
    }

    /// Takes as many bytes from the front of `body` as are wanted.
    pub(crate) fn send_body(&mut self, body: &mut ByteQueue) {
        match self {
            Self::Backend(leased) => leased.lease.send_body(body),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => {}
        }
    }

    /// Ends the request's body. `false`: it is shorter than announced.
    #[must_use]
    pub(crate) fn finish_body(&mut self) -> bool {
        match self {
            Self::Backend(leased) => leased.lease.finish_body(),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => true,
        }
    }

    /// The bytes that were encoded for a backend and are not written yet.
    pub(crate) fn unwritten(&self) -> usize {
        match self {
            Self::Backend(leased) => leased.lease.unwritten(),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => 0,
        }
    }

    /// Writes what was encoded; ready when all of it is written.
    ///
    /// # Errors
    /// The backend's connection failed.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, SourceError>> {
        match self {
            Self::Backend(leased) => leased.lease.poll_write(cx).map_err(SourceError::from),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => Poll::Ready(Ok(0)),
        }
    }

    /// Whether framing marks the end of the response that has begun; `false`: the close of the connection does.
    pub(crate) fn is_framed(&self) -> bool {
        match self {
            Self::Backend(leased) => leased.lease.is_framed(),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => true,
        }
    }

    /// Whether any byte of a response arrived.
    pub(crate) fn is_answered(&self) -> bool {
        match self {
            Self::Backend(leased) => leased.lease.is_answered(),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => true,
        }
    }

    /// Takes back a head that is not needed any more.
    pub(crate) fn recycle(&mut self, head: Box<ResponseHead>) {
        match self {
            Self::Backend(leased) => leased.lease.recycle(head),
            Self::Answer(_) | Self::File(_) | Self::Cached(_) => {}
        }
    }
}

/// The interval at which an exchange checks whether its suspect backend was put out.
const SILENCE_CHECK: Duration = Duration::from_millis(100);
