//! Relays the request's body to the source of a response, and the response to the client, for all protocols.
//!
//! The relay handles bytes and deadlines. The [`ResponsePolicy`] decides how a head is changed on its way; only
//! [`Source`] knows which kind of source it is.
//!
//! One task runs both directions at the same time and waits for whichever socket is ready. Each direction buffers no
//! more than a few socket writes, so a slow reader also slows down the sender. The relay ends when the response is
//! complete and written, or when one side fails. `retry` and `exchange` decide what to do after a failure.
//!
//! Timeouts of a side run only while something is expected of it. The backend's do not run while the client uploads or
//! reads too slowly; the client's do not run while the backend works.
//!
//! The front notices that a client leaves while the request waits for a lease, and while nothing moves here
//! ([`Downstream::poll_left`]): late if unread bytes fill the socket's buffer, at once if the client resets. A backend
//! whose response has begun then gets a reset. A backend whose response is awaited gets a half-close, and the task
//! waits for its close, a drain, or `first_byte_timeout` ([`catamaran_upstream::LeftBehind::abandon`]).

mod error;
mod hooked;
mod interims;

use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use catamaran_http1::Fault;
use catamaran_message::{BodyLength, ResponseHead};
use catamaran_transport::ByteQueue;
use catamaran_upstream::Event;
pub(crate) use error::RelayError;
use http::StatusCode;
use tokio::time::Instant;

use crate::client::pace::{Demand, Pace, Waits};
use crate::client::{BodyPart, ClientError};
use crate::deadlines::Tick;
use crate::exchange::compression::CompressionOffer;
use crate::exchange::downstream::Downstream;
use crate::exchange::fields::body::FieldScope;
use crate::exchange::progress::Progress;
use crate::exchange::relay::interims::Interims;
use crate::exchange::response_policy::ResponsePolicy;
use crate::exchange::scene::Scene;
use crate::exchange::source::Source;
use crate::exchange::source_error::SourceError;
use crate::worker::in_flight::Phase;

/// The facts about the request and its exchange that the relay needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// The policy by which the response is changed.
    pub(crate) policy: &'a ResponsePolicy<'a>,
    /// Whether the client accepts interim responses.
    pub(crate) takes_interims: bool,
    /// The length of the body that the client is to send.
    pub(crate) body: BodyLength,
    /// The most bytes that this body may have.
    pub(crate) body_max: u64,
    /// Whether the client waits for 100 (Continue) before it sends its body.
    pub(crate) expect_continue: bool,
    /// The time by which the attempt must be over.
    pub(crate) end: AttemptEnd,
    /// Whether the time of the response's first byte is logged.
    pub(crate) timed: bool,
}

/// The time by which an attempt must be over: the end of its own time or of that of the exchange, whichever is first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptEnd {
    pub(crate) at: Tick,
    /// The timeout that passes then.
    pub(crate) timeout: Timeout,
}

impl AttemptEnd {
    /// No limit.
    pub(crate) const NEVER: Self = Self {
        at: Tick::NEVER,
        timeout: Timeout::Exchange,
    };
}

/// The relay of one attempt: the client, the source, and the state of both directions.
pub(crate) struct Relay<'a, 'b, 'c> {
    scene: Scene<'a>,
    down: &'a mut Downstream<'c>,
    source: Source<'a, 'b>,
    terms: Terms<'a>,
    progress: &'a mut Progress,
    upload: Upload,
    download: Download,
    /// Bytes received from the client that the backend does not take yet. Boxed, since most requests have no
    /// body.
    held: Option<Box<ByteQueue>>,
    /// Bytes of the request's body that this attempt has taken, from an earlier attempt or from the
    /// client.
    taken: usize,
    /// The time until which a response head is held back, so that it is written together with the first bytes of its
    /// body.
    head_held: Option<Tick>,
    /// The time at which the backend last sent or took bytes, or last had nothing to do.
    backend_moved: Tick,
    /// The client's pace in sending its body.
    reading: Pace,
    /// The client's pace in taking the response.
    writing: Pace,
    interims: Interims,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upload {
    /// The client waits for 100 (Continue).
    Expected,
    Streaming,
    /// The body was received whole; some of it may still be held.
    Received,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Download {
    Head,
    Body,
    /// The client gets a page instead. The rest of the backend's response is read and dropped, so that its connection
    /// can be used again.
    Discard(DiscardLimits),
    Ended,
}

/// A timeout of the relay that has passed. It is not a [`RelayError`] yet, because making one allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    Exchange,
    Attempt,
    FirstByte,
    IdleBody,
    Body,
    Write,
}

impl From<Timeout> for RelayError {
    fn from(timeout: Timeout) -> Self {
        match timeout {
            Timeout::Exchange => Self::ExchangeTimeout,
            Timeout::Attempt => Self::AttemptTimeout,
            Timeout::FirstByte => Self::FirstByteTimeout,
            Timeout::IdleBody => Self::IdleBodyTimeout,
            Timeout::Body => Self::BodyTimeout,
            Timeout::Write => Self::WriteTimeout,
        }
    }
}

/// The most bytes of a replaced response that may still be discarded, and the time limit for it. Beyond them the
/// backend's connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DiscardLimits {
    bytes: usize,
    until: Tick,
}

impl<'a, 'b, 'c> Relay<'a, 'b, 'c> {
    /// A relay for a request whose head has been encoded.
    pub(crate) fn new(
        scene: Scene<'a>,
        down: &'a mut Downstream<'c>,
        source: Source<'a, 'b>,
        terms: Terms<'a>,
        progress: &'a mut Progress,
    ) -> Self {
        let now = scene.now();
        let upload = if terms.body == BodyLength::Known(0) || !source.takes_upload() {
            Upload::Done
        } else if terms.expect_continue && !progress.continued {
            Upload::Expected
        } else {
            Upload::Streaming
        };
        Self {
            upload,
            download: Download::Head,
            held: None,
            taken: 0,
            head_held: None,
            backend_moved: now,
            reading: Pace::default(),
            writing: Pace::default(),
            interims: Interims::default(),
            scene,
            down,
            source,
            terms,
            progress,
        }
    }

    /// Leaves only the writing to do: the client's side has the whole response already.
    pub(crate) fn end_download(&mut self) {
        self.download = Download::Ended;
    }

    /// Runs until the response is complete and written, or something failed.
    ///
    /// # Errors
    /// The failure. It is boxed, because callers that wait for the end of a relay move the result several times.
    ///
    /// # Cancel safety
    /// Both connections are left in the middle of messages and must be closed.
    pub(crate) async fn run(&mut self) -> Result<(), Box<RelayError>> {
        std::future::poll_fn(|cx| self.poll(cx).map_err(Box::new)).await
    }

    /// Moves bytes both ways as long as anything moves; then waits for sockets and timeouts. Ready when the response is
    /// complete and written.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RelayError>> {
        loop {
            self.poll_upload(cx)?;
            // A write to the backend is progress only while more of the body is wanted: it makes room for more.
            let mut moved = self.poll_backend_write(cx)? && self.takes_body();
            moved |= self.poll_download(cx)?;
            // While the AJP codec receives, it may have queued an answer of its own: the empty packet
            // for a GET_BODY_CHUNK beyond the body's end. Tomcat waits for it.
            moved |= self.poll_backend_write(cx)?;
            if !self.holds_head() {
                moved |= self.poll_client_write(cx)?;
            }
            if self.download == Download::Ended && self.down.unwritten() == 0 {
                return Poll::Ready(Ok(()));
            }
            if moved {
                continue;
            }
            if let Download::Discard(limits) = self.download
                && self.now() >= limits.until
            {
                // The next turn ends the relay, unless the client's output still waits.
                self.download = Download::Ended;
                continue;
            }
            let look_again = self.poll_left(cx)?;
            return self.poll_deadlines(look_again);
        }
    }

    /// Moves bytes of the request's body from the client to the backend's output, as far as both sides allow.
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), RelayError> {
        while self.upload != Upload::Done && self.download != Download::Ended {
            // First takes everything that has arrived: a packet of AJP13 with few bytes costs a round trip like a full
            // one.
            while self.poll_client_body(cx)? {}
            if self.held_len() == 0 && self.upload == Upload::Received {
                return self.finish_upload();
            }
            if !self.takes_body() {
                break;
            }
            let Some(held) = self.held.as_mut().filter(|held| !held.is_empty()) else {
                break;
            };
            self.source.send_body(held);
            self.backend_moved = self.now();
        }
        Ok(())
    }

    /// Whether the backend takes more of the request's body now.
    fn takes_body(&self) -> bool {
        self.upload != Upload::Done && self.source.body_credit() > 0
    }

    /// The number of bytes received from the client that the backend has not taken yet.
    fn held_len(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.len())
    }

    fn hold(&mut self, piece: Bytes) {
        self.held.get_or_insert_default().push(piece);
    }

    /// Tells the source that the whole body of the request was sent.
    fn finish_upload(&mut self) -> Result<(), RelayError> {
        self.upload = Upload::Done;
        if self.download == Download::Head {
            self.source.enter(Phase::Waiting);
        }
        if !self.source.finish_body() {
            // Not expected: the client's codec has already checked the body against its announced length.
            let error = ClientError::Fault(Fault::TruncatedBody);
            return Err(RelayError::Client(error));
        }
        self.backend_moved = self.now();
        Ok(())
    }

    /// Receives more of the request's body if the backend wants more than is held. `true` if anything
    /// was received.
    fn poll_client_body(&mut self, cx: &mut Context<'_>) -> Result<bool, RelayError> {
        if self.upload == Upload::Received {
            return Ok(false);
        }
        // Nothing is read that the backend does not want yet: that is the back-pressure. The end
        // of a body whose last byte is here needs no reading.
        let at_end = self.terms.body == BodyLength::Known(self.progress.received);
        if self.held_len() >= self.source.body_credit() && !at_end {
            return Ok(false);
        }
        // An earlier attempt has already received this piece from the client.
        if let Some(piece) = self.progress.replay.at(self.taken) {
            self.taken += piece.len();
            self.hold(piece);
            return Ok(true);
        }
        if self.progress.body_complete {
            self.upload = Upload::Received;
            return Ok(true);
        }
        if self.upload == Upload::Expected {
            self.upload = Upload::Streaming;
            self.progress.continued = true;
            // 100 (Continue) is not sent once the final response is known or bytes of the body have arrived.
            if self.download == Download::Head && !self.down.has_input() {
                self.down.send_continue();
            }
        }
        let part = match self.down.poll_body(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(part) => part.map_err(RelayError::Client)?,
        };
        match part {
            BodyPart::End => {
                self.upload = Upload::Received;
                self.progress.body_complete = true;
                self.progress.uploaded_at = self.terms.timed.then(Instant::now);
            }
            BodyPart::Data(data) => self.take_body(data)?,
        }
        Ok(true)
    }

    /// Takes a piece of the body from the client, and keeps it for a further attempt.
    fn take_body(&mut self, data: Bytes) -> Result<(), RelayError> {
        let bytes = data.len() as u64;
        self.reading.moved(self.now(), bytes);
        self.progress.received += bytes;
        if self.progress.received > self.terms.body_max {
            return Err(RelayError::BodyTooLarge);
        }
        self.progress.replay.keep(&data);
        self.taken += data.len();
        self.hold(data);
        Ok(())
    }

    /// Writes the bytes that wait for the backend. `true` if there is room again. Called twice in each turn, mostly
    /// with nothing to write.
    #[inline(always)]
    fn poll_backend_write(&mut self, cx: &mut Context<'_>) -> Result<bool, RelayError> {
        match self.source.unwritten() {
            0 => Ok(false),
            waiting => self.write_to_backend(cx, waiting),
        }
    }

    /// [`Self::poll_backend_write`] for when there are bytes to write; `waiting` is their number.
    #[inline(never)]
    fn write_to_backend(
        &mut self,
        cx: &mut Context<'_>,
        waiting: usize,
    ) -> Result<bool, RelayError> {
        match self.source.poll_write(cx) {
            Poll::Ready(Ok(_)) => {
                self.backend_moved = self.now();
                Ok(true)
            }
            Poll::Ready(Err(error)) => {
                // A backend may answer and close before it has read everything. What it sent until
                // then is read before the failure is judged.
                let moved = self.poll_download(cx)?;
                if self.source.is_answered() {
                    return Ok(moved);
                }
                Err(RelayError::Source(error))
            }
            Poll::Pending => {
                if self.source.unwritten() < waiting {
                    self.backend_moved = self.now();
                }
                Ok(false)
            }
        }
    }

    /// Receives the response while the client's output has room. `true` if anything moved.
    fn poll_download(&mut self, cx: &mut Context<'_>) -> Result<bool, RelayError> {
        let mut moved = false;
        while self.takes_events() {
            let polled = self.poll_source(cx);
            // By reference: moving the event out for each test would cost time.
            let Poll::Ready(event) = &polled else {
                break;
            };
            // Once for all events that arrive together.
            if !moved {
                moved = true;
                self.backend_moved = self.now();
                if event.is_ok() {
                    self.source.note_heard(self.backend_moved);
                }
            }
            if let Download::Discard(limits) = self.download {
                self.download = limits.after(event);
                continue;
            }
            // A flush ends the turn, so that the client is sent what has arrived. Requests of the backend for more of
            // the body do not: they are collected, so that the answers leave in one write.
            let is_flush = matches!(event, Ok(Event::Flush));
            if let Poll::Ready(event) = polled {
                self.handle(event.map_err(RelayError::Source)?)?;
            }
            if is_flush {
                break;
            }
        }
        Ok(moved)
    }

    /// The next event of the response, in the form for the client. Pending while a cache has no room for it.
    #[inline]
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, SourceError>> {
        match (&self.progress.compression, &self.progress.sink) {
            (None, None) => self.source.poll_event(cx),
            _ => self.poll_hooked(cx),
        }
    }

    /// [`Self::poll_source`] for when a cache sees the body, or it is compressed. The cache sees it as the source sends
    /// it, before compression.
    #[inline(never)]
    fn poll_hooked(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, SourceError>> {
        ready!(self.poll_room(cx));
        let Self {
            source,
            progress,
            download,
            ..
        } = self;
        let Progress {
            compression, sink, ..
        } = &mut **progress;
        // The cache does not get a body that the client does not get either.
        let is_discarded = matches!(download, Download::Discard(_));
        let mut sink = sink.as_mut().filter(|_| !is_discarded);
        let mut poll_plain = |cx: &mut Context<'_>| {
            let event = source.poll_event(cx);
            if let (Some(sink), Poll::Ready(Ok(Event::Body(data)))) = (&mut sink, &event) {
                sink.body(data);
            }
            event
        };
        match compression {
            None => poll_plain(cx),
            Some(compression) => compression.poll_event(cx, poll_plain),
        }
    }

    /// Whether the next event of the response can be handled now.
    fn takes_events(&self) -> bool {
        match self.download {
            Download::Head | Download::Body => !self.down.is_full(),
            Download::Discard(_) => true,
            Download::Ended => false,
        }
    }

    /// Sends a page as the body, after its head was sent instead of the head of the backend's response.
    #[inline(never)]
    fn send_page(&mut self, page: Bytes) -> Result<(), RelayError> {
        self.head_held = None;
        if !page.is_empty() {
            self.send_own_body(page);
        }
        self.send_end()?;
        self.download = Download::Discard(DiscardLimits {
            bytes: DISCARD_BYTES_MAX,
            until: self.now() + DISCARD_TIME_MAX,
        });
        Ok(())
    }

    /// Handles an event of the source.
    #[inline]
    fn handle(&mut self, event: Event) -> Result<(), RelayError> {
        if !matches!(event, Event::BodyWanted) {
            self.head_held = None;
        }
        match event {
            Event::Interim(head) => self.handle_interim(&head)?,
            Event::Head(mut head) => {
                let policy = self.terms.policy;
                let judged = policy.judge(&mut head, self.scene, self.progress);
                // The body of the page that replaces the response; `None`: the response is passed on.
                let page = judged.map_err(|declined| RelayError::Declined(declined.0))?;
                policy.turn_back(&mut head, self.scene);
                self.progress.replaced = page.is_some();
                self.show_head(&mut head, page.is_some());
                self.handle_head(&mut head, page.is_none())?;
                self.source.recycle(head);
                if let Some(page) = page {
                    self.send_page(page)?;
                }
            }
            Event::Upgraded(mut head) => self.handle_upgrade(&mut head)?,
            Event::Body(data) => {
                if data.is_empty() {
                    // The source is a file, which the kernel sends.
                    self.send_part();
                } else {
                    self.down.send_data(data);
                }
            }
            Event::End => {
                self.send_end()?;
                self.download = Download::Ended;
            }
            Event::Flush | Event::BodyWanted => {}
        }
        Ok(())
    }

    /// Begins a tunnel with the head of a 101.
    #[inline(never)]
    fn handle_upgrade(&mut self, head: &mut ResponseHead) -> Result<(), RelayError> {
        if !self.down.is_agreement(&head.headers) {
            return Err(RelayError::WebSocketAccept);
        }
        self.terms.policy.turn_back(head, self.scene);
        self.handle_head(head, false)?;
        // The tunnel begins once this head is written.
        self.head_held = None;
        self.progress.upgraded = true;
        self.download = Download::Ended;
        Ok(())
    }

    /// Compresses the response, if both the client and the source allow it.
    #[inline(never)]
    fn compress(&mut self, offer: &CompressionOffer<'_>, head: &mut ResponseHead) {
        if !self.source.may_be_compressed() {
            return;
        }
        let kept = self.source.kept_coding(offer, head, self.scene);
        self.progress.compression = kept.or_else(|| offer.begin(head, self.scene));
        if self.progress.compression.is_some() {
            self.source.read_all();
        }
    }

    /// Hands a part of a file to the kernel, which sends it.
    #[cold]
    fn send_part(&mut self) {
        if let Some(part) = self.source.take_part() {
            self.down.send_file(part);
        }
    }

    /// Sends a head as the policy edits it. `has_body`: the body comes from the source, not from a page.
    fn handle_head(&mut self, head: &mut ResponseHead, has_body: bool) -> Result<(), RelayError> {
        if head.status.is_success() && self.down.opens_by_success() {
            return Err(RelayError::NotUpgraded(head.status));
        }
        self.progress.head_at = self.terms.timed.then(Instant::now);
        if !self.progress.body_complete && !head.status.is_success() {
            // The backend has refused the request and does not need the rest of its body.
            self.down.abandon_upload();
        }
        let source_scope = || {
            if self.progress.replaced {
                FieldScope::OwnPage
            } else {
                self.source.field_scope()
            }
        };
        self.terms.policy.edit(head, self.scene, source_scope);
        if has_body && let Some(offer) = self.terms.policy.compression() {
            self.compress(offer, head);
        }
        let sent = match head.status {
            StatusCode::SWITCHING_PROTOCOLS => self.down.send_upgrade(head),
            status => self.down.send_head(head).map(|()| status),
        };
        self.progress.status = Some(sent.map_err(RelayError::Response)?);
        self.download = Download::Body;
        self.source.enter(Phase::Responding);
        self.head_held = Some(self.now() + HEAD_HOLD);
        Ok(())
    }

    /// Writes to the client. `true`: all of the output is written, and there was some.
    fn poll_client_write(&mut self, cx: &mut Context<'_>) -> Result<bool, RelayError> {
        let waiting = self.down.unwritten();
        if waiting == 0 {
            return Ok(false);
        }
        let was_full = self.down.is_full();
        let written = self.down.poll_write(cx).map_err(RelayError::from_write)?;
        let taken = waiting - self.down.unwritten();
        if taken > 0 {
            self.writing.moved(self.now(), taken as u64);
            if was_full {
                // The backend was not waited for while the client was slow.
                self.backend_moved = self.now();
            }
        }
        Ok(written.is_ready())
    }

    /// Fails if the client has left before it had its response. The result is that of [`Downstream::poll_left`].
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Result<Option<Tick>, RelayError> {
        if self.is_abandoned() {
            return Err(RelayError::Client(ClientError::Left));
        }
        if self.down.has_response() {
            // A client that has the whole response may close. A write shows whether it takes what is left.
            return Ok(None);
        }
        self.down
            .poll_left(cx, self.now())
            .map_err(RelayError::Client)
    }

    /// Waits for the earliest timeout, or for the next check of the client, because nothing moves.
    fn poll_deadlines(&mut self, look_again: Option<Tick>) -> Poll<Result<(), RelayError>> {
        let (deadline, timeout) = self.first_deadline();
        if self.now() >= deadline {
            if matches!(timeout, Timeout::Write | Timeout::Body) {
                // The client is given up. The other streams of its connection share its pace without this one.
                self.down.leave_shares();
            }
            return Poll::Ready(Err(timeout.into()));
        }
        let mut wake_at = deadline.min(self.check_silence()?);
        if let Some(until) = self.head_held {
            wake_at = wake_at.min(until);
        } else if let Download::Discard(limits) = self.download {
            wake_at = wake_at.min(limits.until);
        }
        if let Some(next_check) = look_again {
            wake_at = wake_at.min(next_check);
        }
        self.scene.deadline.set(wake_at);
        Poll::Pending
    }

    /// Has the source check whether the backend has sent nothing for too long while its answer is awaited. Returns when
    /// to check again.
    fn check_silence(&self) -> Result<Tick, RelayError> {
        if self.download != Download::Head || self.wants_body() {
            return Ok(Tick::NEVER);
        }
        let (moved, now) = (self.backend_moved, self.now());
        let next_check = self.source.check_silence(moved, now, self.progress);
        next_check.ok_or(RelayError::BackendOut)
    }

    /// Whether a head waits alone to be written because its body may follow at once. Tomcat writes head, body and end
    /// separately; a segment for each would cost more than the wait.
    fn holds_head(&self) -> bool {
        self.head_held.is_some_and(|until| self.now() < until)
    }

    fn now(&self) -> Tick {
        self.scene.now()
    }

    /// Whether the front waits for the next bytes of the client's body.
    fn wants_body(&self) -> bool {
        matches!(self.upload, Upload::Streaming)
            && self.held_len() == 0
            && self.source.body_credit() > 0
    }

    /// The earliest of the running timeouts, and which one it is.
    fn first_deadline(&mut self) -> (Tick, Timeout) {
        let now = self.now();
        let client_blocks = self.down.unwritten() > 0;
        let wants_body = self.wants_body();
        let waits = Waits {
            writing: client_blocks,
            reading: wants_body,
        };
        let turns = self.down.share_pace(waits, &mut self.writing);
        let listener = self.scene.listener;
        let write_demand = Demand {
            idle: listener.write_timeout,
            rate_min: listener.write_rate_min,
            turn: turns.writing,
        };
        let write_ends = client_deadline(&mut self.writing, client_blocks, now, write_demand);
        let body_demand = Demand {
            idle: listener.body_timeout,
            rate_min: listener.body_rate_min,
            turn: turns.reading,
        };
        let body_ends = client_deadline(&mut self.reading, wants_body, now, body_demand);
        let AttemptEnd { at, timeout } = self.terms.end;
        let mut first = (at, timeout);
        let mut consider = |ends: Tick, timeout| {
            if ends < first.0 {
                first = (ends, timeout);
            }
        };
        if let Some(ends) = write_ends {
            consider(ends, Timeout::Write);
        }
        if let Some(ends) = body_ends {
            consider(ends, Timeout::Body);
        }
        if self.download == Download::Body
            && let Some(ends) = self.idle_ends()
        {
            consider(ends, Timeout::Write);
        }
        // The backend is not blamed while the client uploads or reads too slowly, nor while a cache has no room.
        if !self.down.is_full()
            && !wants_body
            && self.has_room()
            && let Some((limit, timeout)) = self.silence_limit()
        {
            consider(self.backend_moved + limit, timeout);
        }
        first
    }

    /// How long the backend may be silent now, and the timeout that passes then; `None`: nothing is expected of it.
    fn silence_limit(&self) -> Option<(Duration, Timeout)> {
        match self.download {
            Download::Head => Some((self.source.first_byte_timeout()?, Timeout::FirstByte)),
            Download::Body => Some((self.source.idle_body_timeout()?, Timeout::IdleBody)),
            Download::Discard(_) | Download::Ended => None,
        }
    }
}

impl DiscardLimits {
    /// The state after an event of a response that is discarded.
    fn after(self, event: &Result<Event, SourceError>) -> Download {
        match event {
            Ok(Event::Body(data)) if data.len() <= self.bytes => Download::Discard(Self {
                bytes: self.bytes - data.len(),
                ..self
            }),
            // The client has its whole response: a failure only costs the backend's connection.
            Ok(Event::Body(_) | Event::End) | Err(_) => Download::Ended,
            Ok(_) => Download::Discard(self),
        }
    }
}

/// The time at which the client is too slow; `None` if the front does not wait for it.
fn client_deadline(pace: &mut Pace, is_awaited: bool, now: Tick, demand: Demand) -> Option<Tick> {
    if !is_awaited {
        pace.rest(now);
        return None;
    }
    Some(pace.wait(now, demand))
}

/// The most bytes of a replaced response that are read so that its connection can be reused: far more than error pages
/// of containers have.
const DISCARD_BYTES_MAX: usize = 256 * 1024;

/// The longest time for reading and discarding a replaced response. The client's next request waits meanwhile.
const DISCARD_TIME_MAX: Duration = Duration::from_millis(200);

/// The longest time that a head waits for its body: one tick of the coarse clock.
const HEAD_HOLD: Duration = Duration::from_millis(20);
