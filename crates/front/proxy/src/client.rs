//! A client's connection: its socket, the state of HTTP/1.1, and its buffered bytes.
//!
//! Only this module and [`crate::serve`] know HTTP/1.1. The relay sees a request body that comes in and a response that
//! goes out. An idle connection holds no buffers.

mod cork;
pub(crate) mod handshake;
pub(crate) mod http2;
pub(crate) mod linger;
pub(crate) mod pace;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use catamaran_files::FilePart;
pub(crate) use catamaran_http1::ResponseError;
use catamaran_http1::{BodyError, Fault, Limits, Server, ServerEvent};
use catamaran_message::{BodyLength, Fields, RequestHead, Response};
use catamaran_tls::{Profile, Session, TlsError};
use catamaran_transport::{
    FileOutput, FreeList, HandshakeError, Output, PeerEnd, Stream, TlsStream, buffers,
};
use catamaran_upstream::LeftBehind;
use http::StatusCode;
use thiserror::Error;
use tokio::io::AsyncWrite;

use self::cork::Cork;
use crate::config::ListenerConfig;
use crate::deadlines::{Deadline, Tick};
use crate::listener::admission::Admitted;
use crate::listener::{Incoming, Listener};
use crate::peer::{PeerFacts, ToldTls};
use crate::tls::LiveProfile;
use crate::version;

#[derive(Debug)]
pub(crate) struct ClientConnection {
    stream: Stream,
    /// Whether the client has closed its sending side.
    half_closed: bool,
    remote: SocketAddr,
    local: SocketAddr,
    /// The client's TLS as a proxy in front reported it, if that proxy ended the TLS.
    told_tls: Option<Box<ToldTls>>,
    listener: Arc<Listener>,
    config: Arc<ListenerConfig>,
    /// The state for an exchange; `None` while idle, to save memory.
    active: Option<Box<Active>>,
    /// Dropped last: the connection counts as open until its socket is closed.
    _admitted: Admitted,
}

/// The state of a connection while it has an exchange or undecoded bytes.
#[derive(Debug)]
struct Active {
    codec: Server,
    input: BytesMut,
    output: Output,
    /// The part of a file that is sent after `output`.
    file: FileOutput,
    /// The bytes asked for in the next read; grows while reads fill what they get.
    read_size: usize,
    /// The bytes of the current response's body taken so far.
    sent: u64,
    /// Whether the request is HTTP/1.0, which has no chunked framing.
    is_http10: bool,
    /// Whether the close of the connection marks the end of the response.
    close_delimited: bool,
    cork: Cork,
    /// The exchange with a backend whose client left before the response; `None`: there is none.
    abandoned: Option<LeftBehind>,
}

thread_local! {
    /// The states of connections that became idle, for reuse by other connections of this thread.
    static FREE: RefCell<FreeList<Box<Active>>> = const { RefCell::new(FreeList::new()) };
}

impl Active {
    /// A fresh state, in reused memory if there is any.
    fn take(limits: &Limits) -> Box<Self> {
        match FREE.with_borrow_mut(FreeList::take) {
            Some(mut active) => {
                active.codec.reset(limits);
                active
            }
            None => Box::new(Self {
                codec: Server::new(*limits),
                input: BytesMut::new(),
                output: Output::default(),
                file: FileOutput::default(),
                read_size: READ_MIN,
                sent: 0,
                is_http10: false,
                close_delimited: false,
                cork: Cork::default(),
                abandoned: None,
            }),
        }
    }

    /// Writes the output, and then the part of a file that follows it.
    fn poll_write_file(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.output.poll_write(cx, stream))?;
        let sent = ready!(self.file.poll_write(cx, stream))?;
        Poll::Ready(Ok(written + sent))
    }

    /// Whether the kernel has taken all bytes of output and file.
    fn is_written(&self) -> bool {
        self.output.is_empty() && self.file.is_empty()
    }

    /// Keeps the memory for the next connection that becomes busy.
    fn give(mut self: Box<Self>) {
        debug_assert!(
            self.input.is_empty(),
            "only an idle connection lets go of its buffers"
        );
        // A connection that broke may have output left, which no other connection may send.
        if !self.is_written() {
            return;
        }
        self.output.release();
        if !buffers::renew(&mut self.input) {
            self.input = BytesMut::new();
        }
        self.read_size = READ_MIN;
        self.cork = Cork::default();
        FREE.with_borrow_mut(|list| list.give(self));
    }
}

/// Frees the reusable memory that busy connections of this thread did not need since the last call.
pub(crate) fn trim() {
    FREE.with_borrow_mut(FreeList::trim);
    http2::line::trim();
    buffers::trim();
}

/// A request's body, piece by piece.
#[derive(Debug)]
pub(crate) enum BodyPart {
    /// Some bytes of the body; never empty.
    Data(Bytes),
    /// The end of the body, which is complete.
    End,
}

/// A fault of the client: its connection broke, or it violated the protocol.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error("the client's connection failed")]
    Io(#[source] io::Error),
    #[error("the client closed its connection before it had its response")]
    Left,
    #[error("the client violated HTTP/1.1")]
    Fault(#[source] Fault),
    #[error("the client reset the stream of the request")]
    Reset,
    #[error("the request's body is malformed, so its stream was reset: {0}")]
    Malformed(&'static str),
}

impl ClientConnection {
    /// A connection that a listener accepted.
    pub(crate) fn new(incoming: Incoming, listener: Arc<Listener>, admitted: Admitted) -> Self {
        Self {
            stream: incoming.stream,
            half_closed: false,
            remote: incoming.remote,
            local: incoming.local,
            told_tls: incoming.told_tls,
            config: listener.config(),
            listener,
            active: None,
            _admitted: admitted,
        }
    }

    /// The settings of the listener when it accepted the connection.
    pub(crate) fn config(&self) -> &Arc<ListenerConfig> {
        &self.config
    }

    fn active(&mut self) -> &mut Active {
        let config = &self.config;
        self.active
            .get_or_insert_with(|| Active::take(&config.limits))
    }

    /// The client's addresses and TLS, as the connection and a proxy in front report them.
    pub(crate) fn peer(&self) -> PeerFacts {
        let told = self.told_tls.as_deref();
        let told_session = told.and_then(|told| told.session.as_ref());
        PeerFacts {
            remote: self.remote,
            local: self.local,
            secure: told.is_some() || self.tls().is_some(),
            tls: self.stream.tls().or(told_session).cloned(),
        }
    }

    /// The TLS session of the connection; `None` without TLS, and before the end of the handshake.
    pub(crate) fn tls(&self) -> Option<&Session> {
        self.stream.tls().map(|session| &**session)
    }

    /// Expects a TLS handshake on the socket. After an error the connection is lost.
    pub(crate) fn expect_tls(self, profile: Arc<Profile>) -> Result<Self, TlsError> {
        let stream = TlsStream::server(self.stream, profile, self.config.protocols)?;
        Ok(Self {
            stream: Stream::Tls(Box::new(stream)),
            ..self
        })
    }

    /// The TLS profile of the handshake that has to be made first; `None`: no handshake is due.
    pub(crate) fn awaited_profile(&self) -> Option<Arc<LiveProfile>> {
        match &self.stream {
            Stream::Tls(_) if self.stream.tls().is_none() => self.listener.tls(),
            _ => None,
        }
    }

    /// Continues the handshake. Bytes that were received with its end become input.
    pub(crate) fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), HandshakeError>> {
        let Stream::Tls(stream) = &mut self.stream else {
            return Poll::Ready(Ok(()));
        };
        let mut early = BytesMut::new();
        let handshake = stream.poll_handshake(cx, &mut early);
        if !early.is_empty() {
            self.active().input.extend_from_slice(&early);
        }
        handshake
    }

    /// Ready when the event loop reports that there may be something to read.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_readable(cx)
    }

    /// Whether the client has sent a whole ClientHello.
    pub(crate) fn has_said_hello(&self) -> bool {
        matches!(&self.stream, Stream::Tls(stream) if stream.has_said_hello())
    }

    /// Whether the client has sent a part of a handshake.
    pub(crate) fn has_begun_handshake(&self) -> bool {
        matches!(&self.stream, Stream::Tls(stream) if stream.has_begun())
    }

    /// Writes `answer` without encryption, as much of it as the socket takes at once.
    pub(crate) fn answer_in_clear(&mut self, answer: &[u8]) {
        if let Stream::Tls(stream) = &mut self.stream {
            stream.write_in_clear(answer);
        }
    }

    /// Whether a connection without TLS has received the beginning of a TLS handshake.
    pub(crate) fn meets_tls(&self) -> bool {
        // The first two bytes of a record: a handshake message, of SSL 3 or any version of TLS.
        self.tls().is_none() && matches!(self.input(), [0x16, 0x03, ..])
    }

    /// Tells a client over TLS, before an ordinary close, that nothing is missing (close_notify).
    pub(crate) fn close_in_order(&mut self) {
        self.stream.close_in_order();
    }

    /// Whether a drain wants the connection closed, so that it must not wait for another request.
    pub(crate) fn must_close(&self) -> bool {
        self.listener.drain().is_grace_over()
    }

    /// Reads a request's first bytes; 0: the client has closed.
    ///
    /// No buffer is held while there are no bytes. The event loop may announce bytes that are not there (tokio assumes
    /// that an accepted socket has some), so a read that finds nothing gives its buffer back.
    pub(crate) fn poll_first_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if !self.half_closed && !self.stream.has_news() {
            ready!(self.stream.poll_readable(cx))?;
        }
        let read = self.poll_read(cx);
        if read.is_pending() {
            self.release_buffers();
        }
        read
    }

    /// Whether the kernel has received nothing from the client, neither bytes nor the end.
    pub(crate) fn is_quiet(&self) -> bool {
        self.stream.is_quiet()
    }

    /// Bytes that were received and are not decoded yet.
    pub(crate) fn input(&self) -> &[u8] {
        self.active.as_ref().map_or(&[], |active| &active.input)
    }

    /// Takes the bytes that are not decoded yet, for another protocol, and frees the state of HTTP/1.1.
    fn take_input(&mut self) -> BytesMut {
        let input = self.active.as_mut().map(|active| active.input.split());
        self.release_buffers();
        input.unwrap_or_default()
    }

    /// Whether bytes were received that have not been decoded.
    pub(crate) fn has_input(&self) -> bool {
        !self.input().is_empty()
    }

    /// The next event in the bytes received so far; `None` if more bytes are needed.
    pub(crate) fn decode(&mut self) -> Result<Option<ServerEvent>, Fault> {
        let active = self.active();
        let event = active.codec.receive(&mut active.input)?;
        if let Some(ServerEvent::Head(head)) = &event {
            active.is_http10 = !version::has_chunks(head.version);
        }
        Ok(event)
    }

    /// Takes back a request's head, for the next one to use its memory.
    pub(crate) fn recycle(&mut self, head: Box<RequestHead>) {
        if let Some(active) = &mut self.active {
            active.codec.recycle(head);
        }
    }

    /// Tells the decoder that the client closed, which is correct between requests and a fault within one.
    pub(crate) fn decode_eof(&mut self) -> Result<(), Fault> {
        let active = self.active();
        active.codec.receive_eof(&active.input)
    }

    /// Reads once; 0: the client has closed.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.half_closed {
            return Poll::Ready(Ok(0));
        }
        let config = &self.config;
        let active = self
            .active
            .get_or_insert_with(|| Active::take(&config.limits));
        buffers::make_room(&mut active.input, active.read_size);
        let room = active.input.capacity() - active.input.len();
        let read = ready!(self.stream.poll_read(cx, &mut active.input))?;
        if read == 0 {
            self.half_closed = true;
        } else if read >= room {
            // There may be more: a long body is on its way.
            active.read_size = (active.read_size * 2).min(READ_MAX);
        }
        Poll::Ready(Ok(read))
    }

    /// The next piece of the request's body.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BodyPart, ClientError>> {
        loop {
            let active = self.active();
            let received = active.codec.receive(&mut active.input);
            match received.map_err(ClientError::Fault)? {
                Some(ServerEvent::Body(data)) => return Poll::Ready(Ok(BodyPart::Data(data))),
                Some(ServerEvent::BodyEnd) => return Poll::Ready(Ok(BodyPart::End)),
                // The codec yields no further head before this exchange is over.
                Some(ServerEvent::Head(_)) => {
                    debug_assert!(false, "a head within a body");
                    return Poll::Ready(Ok(BodyPart::End));
                }
                None => {}
            }
            if ready!(self.poll_read(cx)).map_err(ClientError::Io)? == 0 {
                // Only a tunnel ends with the client's close.
                let ended = self.decode_eof().map(|()| BodyPart::End);
                return Poll::Ready(ended.map_err(ClientError::Fault));
            }
        }
    }

    /// Fails if the client has left: its connection broke, or it closed its sending side and the listener does not
    /// serve such clients.
    ///
    /// `Ok(None)`: the task of `cx` is woken when something arrives. `Ok(Some(_))`: there are bytes that cannot be read
    /// yet, so the event loop does not report a close; call again at that time. Bytes of further requests are read, up
    /// to a limit.
    pub(crate) fn poll_left(
        &mut self,
        cx: &mut Context<'_>,
        now: Tick,
    ) -> Result<Option<Tick>, ClientError> {
        loop {
            // Nearly always pending, and cheaper to ask than a read.
            if !self.half_closed && self.stream.poll_readable(cx).is_pending() {
                return Ok(None);
            }
            if !self.takes_more_requests() {
                break;
            }
            match self.poll_read(cx) {
                Poll::Pending => return Ok(None),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(ClientError::Io(error)),
            }
        }
        // Bytes that are not read yet hide the close from a read, so the kernel is asked.
        let end = self.stream.peer_end();
        let half_closed = self.half_closed || end == Some(PeerEnd::Sending);
        if end == Some(PeerEnd::Closed) || (half_closed && !self.config.serve_half_closed) {
            return Err(ClientError::Left);
        }
        Ok(Some(now + LOOK_PERIOD))
    }

    /// Whether bytes that the client sends now belong to further requests, and there is room for
    /// them.
    fn takes_more_requests(&mut self) -> bool {
        if self.half_closed {
            return false;
        }
        let active = self.active();
        active.codec.request_body_done() && active.input.len() < PIPELINE_MAX
    }

    /// Whether the client can know that it has the whole response, so that a close is not a failure.
    pub(crate) fn has_response(&self) -> bool {
        let active = self.active.as_ref();
        active.is_some_and(|active| active.codec.is_response_whole())
    }

    /// Keeps an exchange with a backend whose client left, until the connection is closed.
    pub(crate) fn leave_behind(&mut self, exchange: LeftBehind) {
        self.active().abandoned = Some(exchange);
    }

    /// Takes the exchange whose client left, if there is one.
    pub(crate) fn take_abandoned(&mut self) -> Option<LeftBehind> {
        self.active.as_mut()?.abandoned.take()
    }

    /// Sends 100 (Continue): the client may send the body (RFC 9110, section 10.1.1).
    pub(crate) fn send_continue(&mut self) {
        let active = self.active();
        active.codec.send_continue(active.output.staging());
    }

    /// Passes on an interim response.
    pub(crate) fn send_interim(&mut self, status: StatusCode, headers: &Fields) {
        let active = self.active();
        active
            .codec
            .send_interim(status, headers, active.output.staging());
    }

    /// Begins a response: sends its head.
    pub(crate) fn send_head(&mut self, head: &Response<'_>) -> Result<(), ResponseError> {
        // A drain may have begun since the request came: the client must not send another.
        let draining = self.listener.drain().has_begun();
        let active = self.active();
        if draining {
            active.codec.close_after();
        }
        active.sent = 0;
        active.close_delimited = active.is_http10 && head.body == BodyLength::Unknown;
        active.codec.send_head(head, active.output.staging())
    }

    /// Begins a tunnel with this head; no further request follows on the connection.
    pub(crate) fn send_upgrade(&mut self, head: &Response<'_>) -> Result<(), ResponseError> {
        let active = self.active();
        active.sent = 0;
        active.codec.send_upgrade(head, active.output.staging())
    }

    /// Ends what is sent through a tunnel: writes the rest, then closes the sending side.
    pub(crate) fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    /// Frees the memory of what was received, if all of it was decoded.
    pub(crate) fn release_input(&mut self) {
        if let Some(active) = &mut self.active
            && active.input.is_empty()
            && active.input.capacity() > 0
        {
            buffers::give(std::mem::take(&mut active.input));
            active.read_size = READ_MIN;
        }
    }

    /// Whether tunnels are to be closed now.
    pub(crate) fn must_end_tunnel(&self) -> bool {
        self.listener.drain().must_end_tunnels()
    }

    /// Makes the close of the connection a reset, so that the client sees a failure.
    pub(crate) fn reset_on_close(&self) {
        self.stream.reset_on_close();
    }

    /// Takes bytes of the response's body. Bytes that the response may not have (to HEAD, or beyond its length) are
    /// dropped.
    pub(crate) fn send_data(&mut self, mut data: Bytes) {
        let active = self.active();
        let taken = active.codec.begin_data(data.len(), active.output.staging());
        data.truncate(taken);
        active.sent += taken as u64;
        active.output.push(data);
        active.codec.finish_data(active.output.staging());
    }

    /// Whether the kernel can send bytes of a file to this client, and delay the last segment: only over TCP without
    /// TLS.
    pub(crate) fn takes_files(&self) -> bool {
        matches!(self.stream, Stream::Tcp(_))
    }

    /// Takes bytes of the response's body from a file. The body's length was announced, so no framing follows it.
    ///
    /// If this part ends the response, its last segment waits for [`Self::send_end`]. Other parts are not held back:
    /// with the cork a long file took up to twice the CPU time on loopback.
    pub(crate) fn send_file(&mut self, part: FilePart) {
        let active = self.active();
        let taken = active.codec.begin_data(part.len, active.output.staging());
        active.sent += taken as u64;
        active.codec.finish_data(active.output.staging());
        active.file.set(part.fd, part.from, taken);
        if let Some(active) = &mut self.active
            && active.codec.is_response_whole()
        {
            active.cork.hold(&self.stream);
        }
    }

    /// Ends the response. An error means that the response is shorter than announced: cut the connection.
    pub(crate) fn send_end(&mut self) -> Result<(), BodyError> {
        let active = self.active();
        let ended = active.codec.send_end(active.output.staging());
        if let Some(active) = &mut self.active {
            active.cork.end(active.is_written(), &self.stream);
        }
        ended
    }

    /// The bytes of the current response's body that were taken so far.
    pub(crate) fn sent(&self) -> u64 {
        self.active.as_ref().map_or(0, |active| active.sent)
    }

    /// Makes the head of the next response say that the connection closes after it.
    pub(crate) fn close_after(&mut self) {
        self.active().codec.close_after();
    }

    /// Whether another request may follow on this connection.
    pub(crate) fn can_reuse(&self) -> bool {
        let active = self.active.as_ref();
        active.is_none_or(|active| active.codec.can_reuse())
    }

    /// Whether no further request can follow, whatever happens to the body of this one.
    pub(crate) fn is_last(&self) -> bool {
        let active = self.active.as_ref();
        active.is_some_and(|active| active.codec.is_last())
    }

    /// Whether the request's body was received to its end.
    pub(crate) fn request_body_done(&self) -> bool {
        let active = self.active.as_ref();
        active.is_none_or(|active| active.codec.request_body_done())
    }

    /// Whether the output is full: add no more until some of it is written.
    pub(crate) fn is_full(&self) -> bool {
        let active = self.active.as_ref();
        active.is_some_and(|active| active.output.is_full() || !active.file.is_empty())
    }

    /// The bytes of the response that are not written yet.
    pub(crate) fn unwritten(&self) -> usize {
        let active = self.active.as_ref();
        let queued = active.map_or(0, |active| active.output.len() + active.file.len());
        queued + self.stream.unsent()
    }

    /// Writes the output; ready when all of it is written.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(active) = &mut self.active else {
            return Poll::Ready(Ok(0));
        };
        let written = ready!(if active.file.is_empty() {
            active.output.poll_write(cx, &mut self.stream)
        } else {
            active.poll_write_file(cx, &mut self.stream)
        })?;
        active.cork.release(active.is_written(), &self.stream);
        Poll::Ready(Ok(written))
    }

    /// Sends the rest of a response that will not be completed, and makes sure that the client sees this: by the
    /// framing, or by a reset if only the close would end the response, or if the kernel holds back its end.
    pub(crate) async fn give_up(&mut self, deadline: &Deadline, limit: Duration) {
        let end = deadline.now() + limit;
        deadline.set(end);
        std::future::poll_fn(|cx| match self.poll_write(cx) {
            // Not being able to send it is no worse than what comes next.
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending if deadline.now() >= end => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        })
        .await;
        let active = self.active();
        if active.close_delimited || active.cork.holds() {
            self.stream.reset_on_close();
        }
    }

    /// Frees all memory that an idle connection does not need.
    pub(crate) fn release_buffers(&mut self) {
        if let Some(active) = self.active.take() {
            active.give();
        }
    }

    /// Closes the sending side, so that the client sees the end of its last response.
    pub(crate) fn poll_finish_sending(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A connection that is broken already is found to be so by the next read.
        Pin::new(&mut self.stream).poll_shutdown(cx).map(|_| ())
    }

    /// Discards the bytes that were received but not decoded.
    pub(crate) fn discard_input(&mut self) {
        self.active().input.clear();
    }
}

/// The size of a connection's first read, in bytes: the head of a common request and a small body fit.
const READ_MIN: usize = buffers::SIZE;

/// The largest read of a long body, in bytes.
const READ_MAX: usize = 64 * 1024;

/// The most bytes of further requests that are kept while one request is served.
const PIPELINE_MAX: usize = 64 * 1024;

/// The interval at which the front checks whether a client has left, while bytes from it cannot be read yet.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
