//! `Conn`: one connection of either protocol, without its socket and without a clock.
//!
//! A driver owns the socket and two buffers. It calls [`Conn::poll`], which consumes received bytes
//! and appends bytes to be sent, and obeys the [`Action`] it returns: read, write, wait, call the
//! application, close. Deadlines are data ([`WaitClass`]), and the driver's clock turns them into
//! time. The results do not depend on how many bytes arrive at once, so every driver gives the same
//! answers.
//!
//! ```text
//!             request              respond            source ends          nothing owed
//!   Idle ───────────────► Serving ─────────► Sending ─────────────► Leftover ────────► Idle
//!                            │ delay            ▲            ▲ (rest of the request is read
//!                            ├────► Delayed ────┘            │  and dropped)
//!                            └────► Piped ───────────────────┘
//!                          attach         application ends
//!   any state ── fault, end of stream, deadline, last request ──► Closing
//! ```
//!
//! Back-pressure: `poll` stops producing when the output [is full](Output::is_full), and consumes
//! body bytes only to pass them on, so both buffers stay bounded if the driver reads only when told
//! to.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use catamaran_message::Fields;
use http::StatusCode;

mod peer;
mod piped;
mod request;
mod wire;

pub(crate) use peer::Peer;
use wire::{Event, Leaves, Wire};

use crate::config::{Config, Protocol};
use crate::handler::{Body, BodyLength, Request, Response};
use crate::output::Output;
use crate::pipe::ConnEnd;
use crate::source::{Piece, Source};

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Conn {
    wire: Wire,
    state: ConnState,
    exchange: Exchange,
    peer: Peer,
    config: Arc<Config>,
    /// The number of requests passed to the application so far.
    served: u64,
    /// Whether the peer has completed a message; until then the first-byte deadline applies to it.
    heard: bool,
    /// Whether the connection closes after the present request.
    draining: bool,
}

/// Buffers that a driver lends to a connection for one call.
#[derive(Debug)]
pub(crate) struct Io<'a> {
    /// Bytes received and not yet consumed.
    pub(crate) input: &'a mut BytesMut,
    /// Bytes to be sent, in order.
    pub(crate) out: &'a mut Output,
    /// The value for the `Date` field; `None` if there is no usable clock.
    pub(crate) date: Option<&'a str>,
}

/// What the driver has to do next. In any case it has to send the bytes in [`Io::out`] meanwhile.
#[derive(Debug)]
pub(crate) enum Action {
    /// Read more, then poll again; if the peer lets the deadline of [`WaitClass`] pass, call
    /// [`Conn::handle_timeout`], at the end of the stream [`Conn::handle_eof`].
    Read(WaitClass),
    /// Poll again when the output is no longer [full](Output::is_full).
    Write,
    /// Hand the request to the application and its answer to [`Conn::respond`], or the other end of
    /// its pipe to [`Conn::attach`].
    Serve(Box<Request>),
    /// Poll again after this time, not before.
    Wait(Duration),
    /// Poll again when the application wakes the connection. Meanwhile wait for the peer as for
    /// [`Action::Read`], but read only if `awaiting` [`reads`](WaitClass::reads). With `write`, also poll again
    /// when there is room, as for [`Action::Write`].
    Park {
        awaiting: Option<WaitClass>,
        write: bool,
    },
    /// Send the remaining bytes, then close.
    Close(Close),
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Close {
    /// Whether to send FIN and read on for a moment: bytes of the peer may be under way, and closing at once
    /// would answer them with a reset, which can destroy the response before it is read.
    pub(crate) linger: bool,
    /// The reason token of a close that is not orderly; `None`: orderly.
    pub(crate) reason: Option<&'static str>,
}

impl Close {
    const PEER_GONE: Self = Self {
        linger: false,
        reason: Some("peer-gone"),
    };

    /// An orderly close without lingering, as no bytes of the peer are expected.
    const ORDERLY: Self = Self::orderly(false);

    const fn orderly(linger: bool) -> Self {
        Self {
            linger,
            reason: None,
        }
    }
}

/// What the connection waits for from its peer, which determines the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitClass {
    /// The first byte after connecting.
    FirstByte,
    /// The next request.
    NextRequest,
    /// The rest of a head. The deadline counts from the first byte, so that single bytes do not prolong it.
    Head,
    /// The connection waits for more of a body that the application reads. The deadline counts from the last
    /// byte.
    Body,
    /// The rest of the request's body after the response was sent. The deadline counts from the response's end.
    Leftover,
    /// Nothing from the peer, which has closed its half and may be gone. The deadline counts from the
    /// application's last output.
    Answer,
}

impl WaitClass {
    /// Whether bytes from the peer restart the deadline.
    pub(crate) fn restarts(self) -> bool {
        matches!(self, Self::FirstByte | Self::NextRequest | Self::Body)
    }

    /// Whether the driver has to read from the peer.
    pub(crate) fn reads(self) -> bool {
        self != Self::Answer
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnState {
    Idle,
    Serving,
    Receiving,
    Delayed,
    Piped,
    Sending,
    Leftover,
    Closing(Close),
}

/// The request being answered. Kept small, because idle connections have one too.
#[derive(Debug, Default)]
struct Exchange {
    source: Source,
    /// The pipe to an application that answers later; `None` if it answers at once.
    port: Option<ConnEnd>,
    /// The response to be sent after the request's body or its delay.
    delayed: Option<Box<Response>>,
    /// Whether the request is HEAD.
    head_only: bool,
    /// The length of the request's body.
    length: BodyLength,
    /// Whether the peer has closed its half, and nothing has been produced for it since.
    hung_up: bool,
    /// Whether the client waits for 100 (Continue).
    expects_continue: bool,
    /// Whether the final head has been written, so that a fault cannot be answered any more.
    head_sent: bool,
    /// The number of body bytes received while the application was reading.
    received: u64,
    /// The number of bytes of unread body thrown away.
    swallowed: u64,
}

/// Why a request or a connection is refused, and with which answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status to answer with; `None`: close without an answer.
    status: Option<StatusCode>,
    reason: &'static str,
}

impl Conn {
    /// The state of a connection just accepted.
    pub(crate) fn new(protocol: Protocol, peer: Peer, config: Arc<Config>) -> Self {
        Self {
            wire: Wire::new(protocol, &config),
            state: ConnState::Idle,
            exchange: Exchange::default(),
            peer,
            config,
            served: 0,
            heard: false,
            draining: false,
        }
    }

    /// Consumes and produces as many bytes as possible, and returns what the driver has to do next.
    pub(crate) fn poll(&mut self, io: &mut Io<'_>) -> Action {
        let action = match self.state {
            ConnState::Idle => self.poll_head(io),
            // Nothing to do before `respond`; a driver that polls all the same just waits.
            ConnState::Serving => Ok(Action::Write),
            ConnState::Receiving => self.poll_receiving(io),
            ConnState::Delayed => self.poll_delayed(io),
            ConnState::Piped => self.poll_piped(io),
            ConnState::Sending => self.poll_source(io),
            ConnState::Leftover => self.poll_leftover(io),
            ConnState::Closing(close) => Ok(Action::Close(close)),
        };
        action.unwrap_or_else(|refusal| self.refuse(refusal, io))
    }

    /// Takes the application's response to the request that [`Action::Serve`] delivered. If the response asks for it
    /// (`after_body`), the request's body is received first.
    pub(crate) fn respond(&mut self, response: Response, io: &mut Io<'_>) -> Action {
        debug_assert_eq!(self.state, ConnState::Serving);
        if response.after_body && self.exchange.length != BodyLength::Known(0) {
            self.wire.send_continue(io.out);
            self.exchange.delayed = Some(Box::new(response));
            self.state = ConnState::Receiving;
            return self.poll(io);
        }
        self.answer(response, io)
    }

    /// Begins the response at once, or returns [`Action::Wait`] for its delay.
    fn answer(&mut self, response: Response, io: &mut Io<'_>) -> Action {
        if response.delay.is_zero() {
            return match self.begin(response, io) {
                Ok(()) => self.poll(io),
                Err(refusal) => self.refuse(refusal, io),
            };
        }
        let delay = response.delay;
        self.exchange.delayed = Some(Box::new(response));
        self.state = ConnState::Delayed;
        Action::Wait(delay)
    }

    /// Handles the failure of the application to answer: 500, or a cut response.
    pub(crate) fn fail(&mut self, reason: &'static str, io: &mut Io<'_>) -> Action {
        self.refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason), io)
    }

    /// Handles the end of the peer's stream. To be called when a read that [`Action::Read`] asked for finds it.
    pub(crate) fn handle_eof(&mut self, io: &mut Io<'_>) -> Action {
        match self.wire.receive_eof(io.input) {
            Ok(()) => self.close(Close::ORDERLY),
            Err(refusal) => self.refuse(refusal, io),
        }
    }

    /// Handles the end of the deadline of [`Action::Read`] or [`Action::Park`].
    pub(crate) fn handle_timeout(&mut self, io: &mut Io<'_>) -> Action {
        match self.state {
            // The peer sent no request, which is no fault.
            ConnState::Idle if io.input.is_empty() => self.close(Close::ORDERLY),
            ConnState::Idle => {
                // AJP has no answer to a part of a head.
                let status = self.wire.is_http().then_some(StatusCode::REQUEST_TIMEOUT);
                let reason = "head-timeout";
                self.refuse(Refusal { status, reason }, io)
            }
            ConnState::Leftover => {
                self.wire.end_now(io.out);
                self.close(Close {
                    linger: true,
                    reason: Some("leftover-timeout"),
                })
            }
            // The application took too long for a client that may be gone.
            ConnState::Piped if self.exchange.hung_up => self.close(Close::PEER_GONE),
            // The peer is late with the body only if the application waits for it.
            ConnState::Piped if !self.awaits_body() => self.poll(io),
            _ => self.refuse(
                Refusal::new(StatusCode::REQUEST_TIMEOUT, "body-timeout"),
                io,
            ),
        }
    }

    /// Handles the peer's close of its half while the driver does not read; `None`: nothing changes. A front
    /// that closes an AJP connection has given up the request. An HTTP client may only have finished sending:
    /// it is answered, but the application may not take longer than the deadline.
    pub(crate) fn handle_hangup(&mut self, io: &mut Io<'_>) -> Option<Action> {
        if self.is_answering() && !self.wire.is_http() {
            return Some(self.close(Close::PEER_GONE));
        }
        if self.state == ConnState::Piped && !self.exchange.hung_up {
            self.exchange.hung_up = true;
            // The next action has the deadline for the application.
            return Some(self.poll(io));
        }
        None
    }

    /// Whether the driver must read what has arrived before the next [`poll`](Self::poll), although no action
    /// asked for it. Over AJP no front sends its next request before the response has ended; if bytes arrive
    /// earlier, that response is the last one of the connection.
    pub(crate) fn watches_input(&self) -> bool {
        self.is_answering() && !self.wire.is_http()
    }

    /// Whether the application has a request whose response has not ended.
    fn is_answering(&self) -> bool {
        matches!(
            self.state,
            ConnState::Delayed | ConnState::Piped | ConnState::Sending
        )
    }

    /// Makes the request under way the last; an idle connection closes at the next [`poll`](Self::poll).
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether no request is being received or answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.state == ConnState::Idle
    }

    /// Whether closing now would make an incomplete response look complete, as for HTTP/1.0 without a length:
    /// only a reset tells the client that it was cut.
    pub(crate) fn awaits_close(&self) -> bool {
        self.wire.awaits_close()
    }

    /// The addresses of the connection's ends.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The protocol of the connection.
    pub(crate) fn protocol(&self) -> Protocol {
        if self.wire.is_http() {
            Protocol::Http
        } else {
            Protocol::Ajp
        }
    }

    /// Receives the head of the next request, and returns the request to be served.
    fn poll_head(&mut self, io: &mut Io<'_>) -> Result<Action, Refusal> {
        if io.out.is_full() {
            return Ok(Action::Write);
        }
        let had_input = !io.input.is_empty();
        while let Some(event) = self.wire.receive(io)? {
            let request = match event {
                Event::Ajp(head) => request::from_ajp(head, &self.peer, &self.config)?,
                Event::Http(head) => {
                    self.exchange.expects_continue = head.expect_continue;
                    request::from_http(head, &self.peer, &self.config)?
                }
                // An empty packet after the last request, as lighttpd sends it.
                Event::Body(_) | Event::BodyEnd => continue,
            };
            return Ok(self.begin_exchange(request, io));
        }
        if !io.input.is_empty() {
            return Ok(Action::Read(WaitClass::Head));
        }
        // Input that was consumed without a request was a complete message, such as CPing of AJP.
        self.heard |= had_input;
        Ok(if self.draining {
            self.close(Close::ORDERLY)
        } else if self.heard {
            Action::Read(WaitClass::NextRequest)
        } else {
            Action::Read(WaitClass::FirstByte)
        })
    }

    /// Returns a request to be served by the application, or answers it with a redirect to TLS.
    fn begin_exchange(&mut self, request: Box<Request>, io: &mut Io<'_>) -> Action {
        self.exchange.head_only = request.method == http::Method::HEAD;
        self.exchange.length = request.body;
        self.heard = true;
        self.served += 1;
        self.state = ConnState::Serving;
        match request::redirect(&request, &self.config) {
            Some(redirect) => self.respond(redirect, io),
            None => Action::Serve(request),
        }
    }

    /// Receives the next event of the request's body. Refuses the request with 413 once the body is longer than
    /// `max_post_size`.
    fn receive_body(&mut self, io: &mut Io<'_>) -> Result<Option<Event>, Refusal> {
        let event = self.wire.receive_body(io)?;
        if let Some(Event::Body(data)) = &event {
            self.exchange.received += data.len() as u64;
            request::check_length(self.exchange.received, &self.config)?;
        }
        Ok(event)
    }

    /// Reads the request's body and throws it away; begins the response at its end.
    fn poll_receiving(&mut self, io: &mut Io<'_>) -> Result<Action, Refusal> {
        while self.exchange.length != BodyLength::Known(0) {
            match self.receive_body(io)? {
                Some(Event::Body(_)) => {}
                // The body has ended. A length of 0 says that nothing is left to receive.
                Some(_) => self.exchange.length = BodyLength::Known(0),
                None => return Ok(Action::Read(WaitClass::Body)),
            }
        }
        self.exchange.expects_continue = false;
        Ok(match self.exchange.delayed.take() {
            Some(response) => self.answer(*response, io),
            None => Action::Write,
        })
    }

    fn poll_delayed(&mut self, io: &mut Io<'_>) -> Result<Action, Refusal> {
        if let Some(response) = self.exchange.delayed.take() {
            self.begin(*response, io)?;
        }
        self.poll_source(io)
    }

    /// Writes the response's head, and keeps its body as the source of what follows.
    fn begin(&mut self, response: Response, io: &mut Io<'_>) -> Result<(), Refusal> {
        let silent = self.is_silent(response.status);
        let reads_body = matches!(response.body, Body::Echo { .. }) && !silent;
        if reads_body {
            // First, for it changes whether the connection can be kept.
            self.send_continue(io);
        }
        let length = response.body.length(self.exchange.length);
        self.send_head(response.status, response.headers, length, reads_body, io)?;
        self.exchange.source = if silent {
            Source::Done
        } else {
            Source::new(response.body)
        };
        self.state = ConnState::Sending;
        Ok(())
    }

    /// Whether a response of this status to this request has no body.
    fn is_silent(&self, status: StatusCode) -> bool {
        self.exchange.head_only
            || matches!(
                status,
                StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
            )
    }

    /// Sends 100 (Continue) if the client waits for it.
    fn send_continue(&mut self, io: &mut Io<'_>) {
        self.wire.send_continue(io.out);
        self.exchange.expects_continue = false;
    }

    /// Writes the head of the final response, and decides whether the connection closes after it. `reads_body`: the
    /// request's body is read while the response is sent.
    fn send_head(
        &mut self,
        status: StatusCode,
        headers: Fields,
        length: BodyLength,
        reads_body: bool,
        io: &mut Io<'_>,
    ) -> Result<(), Refusal> {
        if self.is_last(reads_body, io.input) {
            self.wire.close_after();
        }
        let body_length = match status {
            // 205 has no body, whatever length the application states (RFC 9110, section 15.3.6).
            StatusCode::RESET_CONTENT => BodyLength::Known(0),
            _ => length,
        };
        self.wire.send_head(status, headers, body_length, io)?;
        self.exchange.head_sent = true;
        Ok(())
    }

    /// Whether the connection closes after this response. `reads_body`: the request's body is read meanwhile.
    fn is_last(&self, reads_body: bool, input: &[u8]) -> bool {
        if self.draining || !self.wire.is_http() {
            // Over AJP no unread body and no number of requests ends a connection.
            return self.draining;
        }
        if !reads_body {
            // A client that was not told to continue may or may not send its body, so the next request could not be
            // told from it.
            let is_ambiguous = self.exchange.expects_continue && input.is_empty();
            // A body of unknown length is limited when it is thrown away.
            let is_too_long = matches!(
                self.exchange.length,
                BodyLength::Known(unread) if unread > self.config.max_swallow_size
            );
            if is_ambiguous || is_too_long {
                return true;
            }
        }
        let limit = self.config.max_keep_alive_requests;
        limit.is_some_and(|limit| self.served >= limit.get())
    }

    /// Sends the body from its source until the output is full, or bytes of the request are missing.
    fn poll_source(&mut self, io: &mut Io<'_>) -> Result<Action, Refusal> {
        while !io.out.is_full() {
            match self.exchange.source.next() {
                Piece::Data(data) => self.wire.send_data(data, io.out),
                Piece::Pause(pause) => {
                    self.wire.send_flush(io.out);
                    return Ok(Action::Wait(pause));
                }
                Piece::Request if self.exchange.length == BodyLength::Known(0) => {
                    self.exchange.source = Source::Done;
                }
                Piece::Request => match self.receive_body(io)? {
                    Some(Event::Body(data)) => self.wire.send_data(data, io.out),
                    Some(_) => self.exchange.source = Source::Done,
                    None => return Ok(Action::Read(WaitClass::Body)),
                },
                Piece::End => return self.finish(io),
            }
        }
        Ok(Action::Write)
    }

    /// Ends the response; then reads the rest of the request if there is one, or the next request.
    fn finish(&mut self, io: &mut Io<'_>) -> Result<Action, Refusal> {
        match self.wire.end(io)? {
            Leaves::Idle => self.become_idle(io),
            Leaves::Closed { linger } => Ok(self.close(Close::orderly(linger))),
            Leaves::Leftover => {
                self.state = ConnState::Leftover;
                self.poll_leftover(io)
            }
        }
    }

    /// Reads and drops the rest of the request after its response, at most `max_swallow_size` bytes.
    fn poll_leftover(&mut self, io: &mut Io<'_>) -> Result<Action, Refusal> {
        loop {
            match self.wire.receive(io)? {
                Some(Event::Body(data)) => self.exchange.swallowed += data.len() as u64,
                Some(_) => match self.wire.end_leftover(io) {
                    Leaves::Idle => return self.become_idle(io),
                    Leaves::Closed { linger } => return Ok(self.close(Close::orderly(linger))),
                    // One of several packets that were asked for.
                    Leaves::Leftover => {}
                },
                None => return Ok(Action::Read(WaitClass::Leftover)),
            }
            if self.exchange.swallowed > self.config.max_swallow_size {
                return Ok(self.close(Close {
                    linger: true,
                    reason: Some("body-unread"),
                }));
            }
        }
    }

    /// Ends the exchange, and receives the next request unless the connector is being stopped.
    fn become_idle(&mut self, io: &mut Io<'_>) -> Result<Action, Refusal> {
        self.exchange = Exchange::default();
        self.state = ConnState::Idle;
        if self.draining {
            return Ok(self.close(Close::orderly(!io.input.is_empty())));
        }
        self.poll_head(io)
    }

    /// Answers a refusal if no head has been sent, and closes: after refused bytes the beginning of the next message is
    /// not known.
    fn refuse(&mut self, refusal: Refusal, io: &mut Io<'_>) -> Action {
        if let Some(port) = &self.exchange.port {
            port.fail(refusal.reason);
        }
        let mut is_answered = false;
        if let Some(status) = refusal.status
            && !self.exchange.head_sent
        {
            self.wire.refuse(status, io);
            is_answered = true;
        }
        self.close(Close {
            linger: is_answered,
            reason: Some(refusal.reason),
        })
    }

    /// Ends the exchange, which drops the application's pipe, and closes the connection.
    fn close(&mut self, close: Close) -> Action {
        self.exchange = Exchange::default();
        // A refusal after this is not answered.
        self.exchange.head_sent = true;
        self.state = ConnState::Closing(close);
        Action::Close(close)
    }
}

impl Refusal {
    fn new(status: StatusCode, reason: &'static str) -> Self {
        Self {
            status: Some(status),
            reason,
        }
    }
}

#[cfg(test)]
mod tests;
