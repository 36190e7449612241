//! One stream of a connection: a request's body that comes in and a response that goes out.
//!
//! The client may send more of a body only for bytes that the relay has taken.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use catamaran_http1::ResponseError;
use catamaran_http2::{Code, SendError};
use catamaran_message::{BodyLength, Fields, RequestHead, Response};
use catamaran_upstream::LeftBehind;
use http::{Method, StatusCode};

use crate::client::http2::line::STREAM_QUEUED_MIN;
use crate::client::http2::session::Session;
use crate::client::http2::share::Share;
use crate::client::http2::websocket::{self, Handshake};
use crate::client::pace::{Pace, Turn, Turns, Waits};
use crate::client::{BodyPart, ClientError};
use crate::deadlines::{Deadline, Tick};

/// The client's side of one exchange.
#[derive(Debug)]
pub(crate) struct H2Stream {
    session: Arc<Session>,
    /// Its number on the connection.
    id: u32,
    response: ResponseStage,
    /// Bytes that the body of the response may still have. `None`: its length was not announced.
    left: Option<u64>,
    /// More of a body came than the head announced.
    is_overlong: bool,
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

/// How much of the response was passed to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseStage {
    Awaited,
    Body,
    /// The head was sent, and no body follows, whatever the head announces.
    Bodiless,
    /// The whole response was passed to the connection.
    Ended,
}

impl H2Stream {
    /// The stream of a request that has just begun.
    pub(crate) fn new(session: Arc<Session>, id: u32) -> Self {
        Self {
            session,
            id,
            response: ResponseStage::Awaited,
            left: None,
            is_overlong: false,
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

    /// Begins a tunnel with the fields of a backend's 101. Over HTTP/2 the client gets 200 instead.
    pub(crate) fn send_upgrade(
        &mut self,
        headers: &mut Fields,
    ) -> Result<StatusCode, ResponseError> {
        let handshake = match &self.tunnel {
            Tunnel::Asked(handshake) => handshake.as_deref(),
            Tunnel::None | Tunnel::Open => None,
        };
        websocket::clean_answer(headers, handshake);
        self.send_head(&Response {
            status: StatusCode::OK,
            reason: None,
            headers,
            body: BodyLength::Unknown,
        })?;
        self.tunnel = Tunnel::Open;
        Ok(StatusCode::OK)
    }

    /// Ends the tunnel towards the client; ready when everything that was taken for it is written.
    pub(crate) fn poll_finish(&mut self, cx: &Context<'_>) -> Poll<Result<(), ClientError>> {
        self.send_end();
        self.poll_write(cx).map_ok(|_| ())
    }

    /// Whether tunnels are to be closed now.
    pub(crate) fn must_end_tunnel(&self) -> bool {
        self.session.acceptor.drain().must_end_tunnels()
    }

    /// Resets the stream, so that the client sees that its tunnel failed (RFC 8441, section 5).
    pub(crate) fn fail_tunnel(&self) {
        self.session.line().reset(self.id, Code::CANCEL);
    }

    /// When the silence of the client of a tunnel began: at `at`, or when it last took bytes if that was later; see
    /// [`Turn::silence_since`].
    pub(crate) fn silent_since(&mut self, at: Tick, idle: Duration) -> Tick {
        // The exchange that made the tunnel is over.
        self.share(Waits::NONE);
        let mut line = self.session.line();
        let turn = Turn {
            due: 0,
            others: line.limited_since(),
        };
        let moved = match line.channel(self.id) {
            Some(channel) => channel.written_at.max(at),
            None => at,
        };
        turn.silence_since(moved, idle)
    }

    /// The number of the stream on the connection.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Notes what the exchange waits for, in its shares of the connection.
    fn share(&mut self, waits: Waits) {
        let line = self.session.line();
        self.downloads.wait(&line.downloads, waits.writing);
        self.uploads.wait(&line.uploads, waits.reading);
    }

    /// Reports the bytes that the client took of this response to `writing`, and returns the allowances of this stream
    /// for others on its connection; see [`Share`]. Only bytes of bodies are progress.
    pub(crate) fn share_pace(&mut self, waits: Waits, writing: &mut Pace) -> Turns {
        self.share(waits);
        let mut line = self.session.line();
        let others = line.limited_since();
        if let Some(channel) = line.channel(self.id)
            && channel.written > self.paced
        {
            writing.moved(channel.written_at, channel.written - self.paced);
            self.paced = channel.written;
        }
        Turns {
            writing: self.downloads.turn(self.paced, others),
            reading: self.uploads.turn(self.received, None),
        }
    }

    /// Gives the share of an exchange that is cut for its pace to the other streams.
    pub(crate) fn leave_shares(&mut self) {
        let line = self.session.line();
        self.downloads.leave(&line.downloads);
        self.uploads.leave(&line.uploads);
    }

    /// The next piece of the request's body. The client may then send as many more bytes.
    pub(crate) fn poll_body(&mut self, cx: &Context<'_>) -> Poll<Result<BodyPart, ClientError>> {
        let mut line = self.session.line();
        let Some(channel) = line.channel(self.id) else {
            return Poll::Ready(Err(ClientError::Left));
        };
        if let Some(over) = channel.over {
            return Poll::Ready(Err(over.into()));
        }
        if let Some(data) = channel.body.pop(usize::MAX) {
            self.received += data.len() as u64;
            line.credit(self.id, data.len());
            return Poll::Ready(Ok(BodyPart::Data(data)));
        }
        if channel.has_ended {
            return Poll::Ready(Ok(BodyPart::End));
        }
        channel.watch(cx);
        Poll::Pending
    }

    /// Whether bytes of the body were received that have not been taken.
    pub(crate) fn has_input(&self) -> bool {
        let mut line = self.session.line();
        line.channel(self.id)
            .is_some_and(|channel| !channel.body.is_empty())
    }

    /// Fails if the client has reset the stream, or its connection broke.
    pub(crate) fn poll_left(&self, cx: &Context<'_>) -> Result<(), ClientError> {
        let mut line = self.session.line();
        let channel = line.channel(self.id).ok_or(ClientError::Left)?;
        match channel.over {
            Some(over) => Err(over.into()),
            None => {
                channel.watch(cx);
                Ok(())
            }
        }
    }

    /// Sends 100 (Continue).
    pub(crate) fn send_continue(&self) {
        let mut line = self.session.line();
        line.send_interim(self.id, StatusCode::CONTINUE, &Fields::new());
    }

    /// Passes an interim response on, unless the client takes nothing: no window holds such heads back, so they would
    /// wait in memory.
    pub(crate) fn send_interim(&self, status: StatusCode, headers: &Fields) {
        let mut line = self.session.line();
        if !line.is_blocked() {
            line.send_interim(self.id, status, headers);
        }
    }

    /// Takes the head of the response.
    pub(crate) fn send_head(&mut self, head: &Response<'_>) -> Result<(), ResponseError> {
        if self.response != ResponseStage::Awaited {
            return Err(ResponseError::OutOfTurn);
        }
        if head.status.is_informational() {
            return Err(ResponseError::InterimStatus);
        }
        let is_bodiless = match self.session.line().send_head(self.id, head) {
            Ok(ends) => ends,
            // The stream is over; the exchange goes on until it sees that its client has left.
            Err(SendError::OutOfTurn) => false,
            Err(_) => return Err(ResponseError::OutOfTurn),
        };
        if is_bodiless {
            self.response = ResponseStage::Bodiless;
            self.left = Some(0);
            return Ok(());
        }
        self.response = ResponseStage::Body;
        self.left = match head.body {
            BodyLength::Known(length) => Some(length),
            BodyLength::Unknown => None,
        };
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
        if !data.is_empty() {
            self.session.line().send_data(self.id, data);
        }
    }

    /// Ends the response. `false` if it is not as long as announced.
    pub(crate) fn send_end(&mut self) -> bool {
        match self.response {
            ResponseStage::Awaited => return false,
            ResponseStage::Body => {
                if self.is_overlong || self.left.is_some_and(|left| left > 0) {
                    return false;
                }
                self.session.line().send_end(self.id);
            }
            ResponseStage::Bodiless | ResponseStage::Ended => {}
        }
        self.response = ResponseStage::Ended;
        true
    }

    /// Whether the queue is full: add nothing until some of it is written.
    #[inline(never)]
    pub(crate) fn is_full(&self) -> bool {
        // Most responses are shorter than any room.
        if self.sent < STREAM_QUEUED_MIN as u64 {
            return false;
        }
        let mut line = self.session.line();
        let room = line.room();
        line.unwritten(self.id) >= room
    }

    /// Bytes of the response's body that are not written.
    #[inline(never)]
    pub(crate) fn unwritten(&self) -> usize {
        match self.response {
            ResponseStage::Awaited => 0,
            ResponseStage::Body | ResponseStage::Bodiless | ResponseStage::Ended => {
                self.session.line().unwritten(self.id)
            }
        }
    }

    /// Hands the response to the connection, as far as the client's windows take it; ready when all of
    /// it is written.
    pub(crate) fn poll_write(&self, cx: &Context<'_>) -> Poll<Result<usize, ClientError>> {
        let mut line = self.session.line();
        let before = line.unwritten(self.id);
        if before > 0 {
            line.flush(self.id);
        }
        let unwritten = line.unwritten(self.id);
        let Some(channel) = line.channel(self.id) else {
            return Poll::Ready(Err(ClientError::Left));
        };
        match channel.over {
            Some(over) => Poll::Ready(Err(over.into())),
            None if unwritten == 0 => Poll::Ready(Ok(before)),
            None => {
                channel.watch(cx);
                Poll::Pending
            }
        }
    }

    /// Bytes of the response's body taken so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether the client can know that it has the whole response.
    pub(crate) fn has_response(&self) -> bool {
        match self.response {
            ResponseStage::Awaited => false,
            ResponseStage::Body => self.left == Some(0),
            ResponseStage::Bodiless | ResponseStage::Ended => true,
        }
    }

    /// Sends the rest of a response that will not be completed, for at most `limit`, and resets the stream.
    pub(crate) async fn give_up(&self, deadline: &Deadline, limit: Duration) {
        let end = deadline.now() + limit;
        deadline.set(end);
        poll_fn(|cx| match self.poll_write(cx) {
            Poll::Pending if deadline.now() < end => Poll::Pending,
            Poll::Pending | Poll::Ready(_) => Poll::Ready(()),
        })
        .await;
        self.session.line().reset(self.id, Code::INTERNAL_ERROR);
    }

    /// Waits for the end of a request whose response is sent and of which only the end is missing, so that the
    /// stream ends in order: some clients send it in a frame of its own, and take the reset that follows a
    /// response for a failure (RFC 9113, section 8.1). The wait has the time of lingering, and no drain waits for
    /// it.
    pub(crate) async fn await_end(&mut self, deadline: &Deadline) {
        let end = deadline.now() + self.session.listener.linger_timeout;
        deadline.set(end);
        poll_fn(|cx| {
            while let Poll::Ready(part) = self.poll_body(cx) {
                match part {
                    Ok(BodyPart::Data(_)) => {}
                    Ok(BodyPart::End) | Err(_) => return Poll::Ready(()),
                }
            }
            let lacks_only_end = self.announced == Some(self.received);
            let is_late = deadline.now() >= end || self.session.acceptor.drain().has_begun();
            if lacks_only_end && !is_late {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    /// Ends a stream whose exchange was cut off, or whose tunnel has ended.
    pub(crate) fn cut_off(&self) {
        let mut line = self.session.line();
        if !matches!(self.tunnel, Tunnel::Open) {
            return line.reset(self.id, Code::INTERNAL_ERROR);
        }
        let channel = line.channel(self.id);
        if !channel.is_some_and(|channel| channel.has_ended && channel.is_sent) {
            line.reset(self.id, Code::CANCEL);
        }
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
        self.share(Waits::NONE);
        self.session.line().leave(self.id);
    }
}
