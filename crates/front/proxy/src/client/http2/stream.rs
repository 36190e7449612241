//! One stream of a connection: a request's body that comes in and a response that goes out.
//!
//! What is written is queued here until the client's windows take it, then with the `h2` crate. The
//! client may send more of a body only for bytes that the relay has taken.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use catamaran_http1::ResponseError;
use catamaran_message::{BodyLength, Fields, RequestHead};
use catamaran_transport::ByteQueue;
use catamaran_upstream::LeftBehind;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::CONTENT_LENGTH;
use http::{Method, StatusCode};
use tokio::task::yield_now;

use crate::client::http2::piece::{Outflow, Piece};
use crate::client::http2::session::{PIECE_MAX, Session};
use crate::client::http2::share::Share;
use crate::client::http2::websocket::{self, Handshake};
use crate::client::pace::{Pace, Turn, Turns, Waits};
use crate::client::{BodyPart, ClientError};
use crate::deadlines::{Deadline, Tick};

/// The client's side of one exchange.
#[derive(Debug)]
pub(crate) struct H2Stream {
    session: Arc<Session>,
    body: RecvStream,
    respond: SendResponse<Piece>,
    /// The sending side of the response; `None` until its head is handed to the connection.
    sending: Option<SendStream<Piece>>,
    outflow: Arc<Outflow>,
    /// The request is HEAD, whose response has no body.
    is_head: bool,
    response: StreamState,
    /// The response has no body, whatever its head announces.
    is_bodiless: bool,
    /// Bytes that the body of the response may still have. `None`: its length was not announced.
    left: Option<u64>,
    /// More of a body came than the head announced.
    is_overlong: bool,
    /// Bytes of the response's body that wait for the client's windows.
    queue: ByteQueue,
    /// Bytes of the response's body taken so far.
    sent: u64,
    /// Bytes of the response's body that were written and have been reported to the client's [`Pace`].
    paced: u64,
    /// Bytes of the request's body taken so far.
    received: u64,
    /// The announced length of the request's body; `None`: unknown.
    announced: Option<u64>,
    /// The stream's share of the bytes that the connection moves: of responses, and of requests.
    downloads: Share,
    uploads: Share,
    /// An exchange with a backend whose client left before the response.
    abandoned: Option<LeftBehind>,
    tunnel: Tunnel,
}

/// Whether the stream is, or is to become, a tunnel.
#[derive(Debug)]
enum Tunnel {
    /// It carries one request and no tunnel.
    None,
    /// The client asks for a tunnel. For WebSocket, with the answer that the backend must give.
    Asked(Option<Box<Handshake>>),
    Open,
}

/// How far the response is.
#[derive(Debug)]
enum StreamState {
    Awaited,
    /// The head waits, so that it is written together with the first bytes of the body, or with the end.
    Head(http::Response<()>),
    Body,
    /// All of the body is queued, and the head with it if that has not been handed over.
    Ended(Option<http::Response<()>>),
    /// All was handed to the connection.
    Sent,
}

impl H2Stream {
    pub(crate) fn new(
        session: Arc<Session>,
        method: &Method,
        body: RecvStream,
        respond: SendResponse<Piece>,
    ) -> Self {
        Self {
            outflow: Arc::new(Outflow::new(Arc::clone(&session))),
            session,
            body,
            respond,
            sending: None,
            is_head: *method == Method::HEAD,
            response: StreamState::Awaited,
            is_bodiless: false,
            left: None,
            is_overlong: false,
            queue: ByteQueue::default(),
            sent: 0,
            paced: 0,
            received: 0,
            announced: None,
            downloads: Share::default(),
            uploads: Share::default(),
            abandoned: None,
            tunnel: Tunnel::None,
        }
    }

    /// Notes the announced length of the request's body, and whether the request asks for a tunnel. If that is a
    /// WebSocket without a key, adds a key to its fields.
    pub(crate) fn expect(&mut self, head: &mut RequestHead) {
        if let BodyLength::Known(length) = head.body {
            self.announced = Some(length);
        }
        if head.method == Method::CONNECT {
            let handshake = Handshake::begin(&mut head.headers);
            self.tunnel = Tunnel::Asked(handshake.map(Box::new));
        }
    }

    /// Whether the client asks for a tunnel and has none.
    pub(crate) fn asks_for_tunnel(&self) -> bool {
        matches!(self.tunnel, Tunnel::Asked(_))
    }

    /// Whether a 101 with these fields agrees to what the client asks for.
    pub(crate) fn is_agreement(&self, headers: &Fields) -> bool {
        match &self.tunnel {
            Tunnel::Asked(Some(handshake)) => handshake.is_answered(headers),
            Tunnel::Asked(None) => true,
            Tunnel::None | Tunnel::Open => false,
        }
    }

    /// Begins a tunnel with the fields of a 101, which a client of HTTP/2 is told as 200.
    pub(crate) fn send_upgrade(
        &mut self,
        headers: &mut Fields,
    ) -> Result<StatusCode, ResponseError> {
        let handshake = match &self.tunnel {
            Tunnel::Asked(handshake) => handshake.as_deref(),
            Tunnel::None | Tunnel::Open => None,
        };
        websocket::clean_answer(headers, handshake);
        self.send_head(StatusCode::OK, headers, BodyLength::Unknown)?;
        self.tunnel = Tunnel::Open;
        Ok(StatusCode::OK)
    }

    /// Ends the tunnel's way to the client; ready when the end was handed to the connection.
    pub(crate) fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        self.send_end();
        self.poll_write(cx).map_ok(|_| ())
    }

    /// Whether tunnels are to be closed now.
    pub(crate) fn must_end_tunnel(&self) -> bool {
        self.session.acceptor.drain().must_end_tunnels()
    }

    /// The client is to see that its tunnel failed (RFC 8441, section 5).
    pub(crate) fn fail_tunnel(&mut self) {
        self.reset(Reason::CANCEL);
    }

    /// When the silence of the client of a tunnel began: at `at`, or when it last took bytes if that was later; see
    /// [`Turn::silence_since`].
    pub(crate) fn silent_since(&mut self, at: Tick, idle: Duration) -> Tick {
        // The exchange that made the tunnel is over.
        self.downloads.wait(&self.session.downloads, false);
        self.uploads.wait(&self.session.uploads, false);
        let turn = Turn {
            due: 0,
            others: self.session.limited_since(),
        };
        let (_, written_at) = self.outflow.written();
        turn.silence_since(written_at.max(at), idle)
    }

    /// Its number on the connection.
    pub(crate) fn id(&self) -> u32 {
        self.respond.stream_id().as_u32()
    }

    /// Reports the bytes that the client took of this response to `writing`, and returns the allowances of this stream
    /// for others on its connection; see [`Share`]. Only bytes of bodies are progress.
    pub(crate) fn share_pace(&mut self, waits: Waits, writing: &mut Pace) -> Turns {
        let (written, written_at) = self.outflow.written();
        if written > self.paced {
            writing.moved(written_at, written - self.paced);
            self.paced = written;
        }
        self.downloads.wait(&self.session.downloads, waits.writing);
        self.uploads.wait(&self.session.uploads, waits.reading);
        let others = self.session.limited_since();
        Turns {
            writing: self.downloads.turn(written, others),
            reading: self.uploads.turn(self.received, None),
        }
    }

    /// Gives the share of an exchange that is cut for its pace to the other streams.
    pub(crate) fn leave_shares(&mut self) {
        self.downloads.leave(&self.session.downloads);
        self.uploads.leave(&self.session.uploads);
    }

    /// The next piece of the request's body. The client may send as much more.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BodyPart, ClientError>> {
        loop {
            let Some(data) = ready!(self.body.poll_data(cx)) else {
                return Poll::Ready(Ok(BodyPart::End));
            };
            let data = data.map_err(|error| body_error(&error))?;
            // An error means that the stream is over, which the next call tells.
            self.body.flow_control().release_capacity(data.len()).ok();
            if !data.is_empty() {
                self.received += data.len() as u64;
                return Poll::Ready(Ok(BodyPart::Data(data)));
            }
        }
    }

    /// Whether bytes of the body were received that have not been taken.
    pub(crate) fn has_input(&mut self) -> bool {
        self.body.flow_control().used_capacity() > 0
    }

    /// Fails if the client has reset the stream, or its connection broke.
    pub(crate) fn poll_left(&mut self, cx: &mut Context<'_>) -> Result<(), ClientError> {
        let reset = match &mut self.sending {
            Some(sending) => sending.poll_reset(cx),
            None => self.respond.poll_reset(cx),
        };
        match reset {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(_)) => Err(ClientError::Reset),
            Poll::Ready(Err(_)) => Err(ClientError::Left),
        }
    }

    /// Sends 100 (Continue).
    pub(crate) fn send_continue(&mut self) {
        self.send_informational(StatusCode::CONTINUE, &Fields::new());
    }

    /// Passes an interim response on, unless the client takes nothing: no window holds such heads back, so they would
    /// wait in memory.
    pub(crate) fn send_interim(&mut self, status: StatusCode, headers: &Fields) {
        if !self.session.is_blocked() {
            self.send_informational(status, headers);
        }
    }

    fn send_informational(&mut self, status: StatusCode, headers: &Fields) {
        if !matches!(self.response, StreamState::Awaited) {
            return;
        }
        let mut response = http::Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers.to_map();
        // A client that has left is noticed elsewhere.
        self.respond.send_informational(response).ok();
    }

    /// Takes the head of the response.
    pub(crate) fn send_head(
        &mut self,
        status: StatusCode,
        headers: &Fields,
        body: BodyLength,
    ) -> Result<(), ResponseError> {
        if !matches!(self.response, StreamState::Awaited) {
            return Err(ResponseError::OutOfTurn);
        }
        if status.is_informational() {
            return Err(ResponseError::InterimStatus);
        }
        let mut response = http::Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers.to_map();
        let has_none = status == StatusCode::NO_CONTENT;
        if let BodyLength::Known(length) = body
            && !has_none
        {
            response.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        self.is_bodiless = has_none || self.is_head || status == StatusCode::NOT_MODIFIED;
        self.left = match body {
            _ if self.is_bodiless => Some(0),
            BodyLength::Known(length) => Some(length),
            BodyLength::Unknown => None,
        };
        self.response = StreamState::Head(response);
        Ok(())
    }

    /// Takes some of the response's body. Bytes that the response may not have are left out.
    pub(crate) fn send_data(&mut self, mut data: Bytes) {
        if let Some(left) = &mut self.left {
            let allowed = usize::try_from(*left).unwrap_or(usize::MAX);
            self.is_overlong |= data.len() > allowed;
            data.truncate(allowed);
            *left -= data.len() as u64;
        }
        self.sent += data.len() as u64;
        self.session.enqueue(data.len());
        self.queue.push(data);
    }

    /// Ends the response. `false` if it is not as long as announced.
    pub(crate) fn send_end(&mut self) -> bool {
        let is_whole =
            self.is_bodiless || (!self.is_overlong && self.left.is_none_or(|it| it == 0));
        if is_whole {
            self.response = match std::mem::replace(&mut self.response, StreamState::Sent) {
                StreamState::Head(head) => StreamState::Ended(Some(head)),
                StreamState::Body => StreamState::Ended(None),
                other => other,
            };
        }
        is_whole
    }

    /// Whether the queue is full: add nothing until some of it is written.
    pub(crate) fn is_full(&self) -> bool {
        self.unwritten() >= self.session.room()
    }

    /// Bytes of the response not yet written. A head alone counts as one. A short end that was handed
    /// to the connection counts as written unless the socket refuses bytes: the exchange is over, and
    /// its task need not be woken once more.
    pub(crate) fn unwritten(&self) -> usize {
        let head = matches!(self.response, StreamState::Head(_) | StreamState::Ended(_));
        let handed = match self.outflow.unwritten() {
            ..=END_MAX
                if matches!(self.response, StreamState::Sent) && !self.session.is_blocked() =>
            {
                0
            }
            handed => handed,
        };
        self.queue.len() + handed + usize::from(head)
    }

    /// Hands the response to the connection, as far as the client's windows take it; ready when all of
    /// it is written.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, ClientError>> {
        let before = self.unwritten();
        if self.hand_over(cx).is_err() {
            let left = self.poll_left(cx).err();
            return Poll::Ready(Err(left.unwrap_or(ClientError::Left)));
        }
        match self.unwritten() {
            0 => Poll::Ready(Ok(before)),
            _ => {
                self.outflow.watch(cx);
                Poll::Pending
            }
        }
    }

    fn hand_over(&mut self, cx: &mut Context<'_>) -> Result<(), h2::Error> {
        self.hand_over_head()?;
        let Some(sending) = &mut self.sending else {
            return Ok(());
        };
        while !self.queue.is_empty() {
            // A piece at a time, so that responses which wait for the connection take turns.
            let piece_max = self.session.piece_max();
            sending.reserve_capacity(self.queue.len().min(piece_max));
            let mut capacity = sending.capacity();
            if capacity == 0 {
                capacity = match sending.poll_capacity(cx) {
                    Poll::Ready(Some(capacity)) => capacity?,
                    Poll::Ready(None) => return Err(Reason::CANCEL.into()),
                    Poll::Pending => return Ok(()),
                };
            }
            let Some(bytes) = self.queue.pop(capacity.min(piece_max)) else {
                return Ok(());
            };
            let piece = Piece::new(bytes, &self.outflow);
            let is_last = self.queue.is_empty() && matches!(self.response, StreamState::Ended(_));
            sending.send_data(piece, is_last)?;
            if is_last {
                self.response = StreamState::Sent;
            }
        }
        if matches!(self.response, StreamState::Ended(_)) {
            sending.send_data(Piece::end(), true)?;
            self.response = StreamState::Sent;
        }
        Ok(())
    }

    /// Hands over the head, if it waits: with the end, if no body follows.
    fn hand_over_head(&mut self) -> Result<(), h2::Error> {
        let (head, after) = match std::mem::replace(&mut self.response, StreamState::Body) {
            StreamState::Head(head) => (head, StreamState::Body),
            StreamState::Ended(Some(head)) if self.queue.is_empty() => (head, StreamState::Sent),
            StreamState::Ended(Some(head)) => (head, StreamState::Ended(None)),
            other => {
                self.response = other;
                return Ok(());
            }
        };
        let ends = matches!(after, StreamState::Sent);
        self.response = after;
        self.sending = Some(self.respond.send_response(head, ends)?);
        Ok(())
    }

    /// Bytes of the response's body taken so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether the client can know that it has the whole response.
    pub(crate) fn has_response(&self) -> bool {
        match self.response {
            StreamState::Awaited => false,
            StreamState::Head(_) | StreamState::Body => self.left == Some(0),
            StreamState::Ended(_) | StreamState::Sent => true,
        }
    }

    /// Sends the rest of a response that will not be completed, for so long, and resets the stream.
    pub(crate) async fn give_up(&mut self, deadline: &Deadline, limit: Duration) {
        let end = deadline.now() + limit;
        deadline.set(end);
        poll_fn(|cx| match self.poll_write(cx) {
            Poll::Pending if deadline.now() < end => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
        // A reset takes back what the connection has not written: it has its turn.
        yield_now().await;
        self.reset(Reason::INTERNAL_ERROR);
    }

    /// Waits for the end of a request whose response is sent and of which only the end is missing, so that the
    /// stream ends in order: some clients send it in a frame of its own, and take the reset that follows a
    /// response for a failure (RFC 9113, section 8.1). The wait has the time of lingering, and no drain waits for
    /// it.
    pub(crate) async fn await_end(&mut self, deadline: &Deadline) {
        let end = deadline.now() + self.session.listener.linger_timeout;
        deadline.set(end);
        poll_fn(|cx| {
            while let Poll::Ready(part) = self.body.poll_data(cx) {
                let Some(Ok(data)) = part else {
                    return Poll::Ready(());
                };
                // Of bytes that came beyond the announced length the crate makes an error.
                self.received += data.len() as u64;
                self.body.flow_control().release_capacity(data.len()).ok();
            }
            let is_whole = self.announced == Some(self.received);
            let ends = deadline.now() >= end || self.session.acceptor.drain().has_begun();
            if is_whole && !ends {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    /// Ends a stream whose exchange was cut off, or whose tunnel has ended.
    pub(crate) async fn cut_off(&mut self) {
        if !matches!(self.tunnel, Tunnel::Open) {
            return self.reset(Reason::INTERNAL_ERROR);
        }
        let has_ended = self.body.is_end_stream() && matches!(self.response, StreamState::Sent);
        if !has_ended {
            // A reset takes back what the connection has not written: it has its turn.
            yield_now().await;
            self.reset(Reason::CANCEL);
        }
    }

    /// Ends the stream, whatever of it is missing, unless it is over.
    pub(crate) fn reset(&mut self, reason: Reason) {
        self.respond.send_reset(reason);
    }

    /// Keeps an exchange whose client left.
    pub(crate) fn leave_behind(&mut self, exchange: LeftBehind) {
        self.abandoned = Some(exchange);
    }

    /// Takes the exchange whose client left, if there is one.
    pub(crate) fn take_abandoned(&mut self) -> Option<LeftBehind> {
        self.abandoned.take()
    }
}

impl Drop for H2Stream {
    fn drop(&mut self) {
        self.session.dequeue(self.queue.len());
        self.downloads.wait(&self.session.downloads, false);
        self.uploads.wait(&self.session.uploads, false);
    }
}

/// The error that a broken-off body of the request stands for.
fn body_error(error: &h2::Error) -> ClientError {
    match (error.is_reset(), error.is_remote()) {
        (true, true) => ClientError::Reset,
        // The crate compares the body with its announced length.
        (true, false) if error.reason() == Some(Reason::PROTOCOL_ERROR) => {
            ClientError::Malformed("h2-length-mismatch")
        }
        (true, false) => ClientError::Malformed("h2-refused"),
        (false, _) => ClientError::Left,
    }
}

/// The end of a response that is left to the connection: a piece.
const END_MAX: usize = PIECE_MAX;
