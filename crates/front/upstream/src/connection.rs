//! One open connection to a backend: its socket and buffers, and how it failed.
//!
//! [`Wire`] knows what the bytes mean; for the layers above, a response is a sequence of [`Event`]s.
//! An unused connection holds no buffers.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use catamaran_message::{Request, ResponseHead};
use catamaran_transport::{ByteQueue, Output, Stream, buffers};
use tokio::io::AsyncWrite;
use tokio::time::timeout;

use crate::cap::{OpenTunnel, Permit};
use crate::client_facts::ClientFacts;
use crate::config::BackendConfig;
use crate::error::{Error, PingFailure, RequestError};
use crate::figures::Traffic;
use crate::pool::Reuse;
use crate::wire::{Event, Wire};

#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    wire: Wire,
    input: BytesMut,
    output: Output,
    /// How many bytes the next read asks for; doubles when a read fills what it got.
    read_size: usize,
    /// Bytes read since the connection was opened.
    received: u64,
    /// How many bytes written and read the backend's counts already contain.
    counted: Traffic,
    /// Whether any byte has arrived since the last request was sent.
    answered: bool,
    /// How many bytes the socket had got before the last request.
    given_before: u64,
    /// The first failure of a read or write; the end of the stream is not a failure.
    broken: Option<io::ErrorKind>,
    /// The generation of the settings with which the connection was opened; see
    /// [`crate::settings::Settings::generation`].
    generation: u32,
    /// The permit under the backend's cap, freed when the connection is dropped; `None`: a probe needs none.
    #[expect(dead_code, reason = "held for its drop")]
    permit: Option<Permit<Box<Self>>>,
    /// Counts the tunnel that the connection carries or will carry; `None`: it is not for a tunnel.
    tunnel: Option<OpenTunnel>,
}

impl Connection {
    /// A connection for exchanges in the backend's protocol, which is idle. `permit`: `None` for a probe, which the cap
    /// does not count.
    pub(crate) fn new(
        stream: Stream,
        config: &BackendConfig,
        permit: Option<Permit<Box<Self>>>,
    ) -> Self {
        Self::with_wire(stream, Wire::new(config), permit)
    }

    /// Makes a connection on which a tunnel is asked for.
    pub(crate) fn for_tunnel(stream: Stream, tunnel: OpenTunnel) -> Self {
        let mut conn = Self::with_wire(stream, Wire::for_tunnel(), None);
        conn.tunnel = Some(tunnel);
        conn
    }

    /// Whether the connection was opened for a tunnel, and so must not carry other requests.
    pub(crate) fn is_for_tunnel(&self) -> bool {
        self.tunnel.is_some()
    }

    fn with_wire(stream: Stream, wire: Wire, permit: Option<Permit<Box<Self>>>) -> Self {
        Self {
            stream,
            wire,
            input: BytesMut::new(),
            output: Output::default(),
            read_size: READ_MIN,
            received: 0,
            counted: Traffic::default(),
            answered: false,
            given_before: 0,
            broken: None,
            generation: 0,
            permit,
            tunnel: None,
        }
    }

    pub(crate) fn of_generation(mut self, generation: u32) -> Self {
        self.generation = generation;
        self
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether the backend has neither closed nor sent anything since the last exchange.
    pub(crate) fn is_quiet(&self, reuse: Reuse) -> bool {
        match reuse {
            Reuse::Any => self.stream.is_quiet(),
            Reuse::Lasting | Reuse::Never => self.stream.is_quiet_now(),
        }
    }

    /// Whether the framing of the current response says where it ends.
    pub(crate) fn is_framed(&self) -> bool {
        self.wire.is_framed()
    }

    /// Whether any byte of the response has arrived.
    pub(crate) fn is_answered(&self) -> bool {
        self.answered
    }

    /// Whether it is proved that no byte of the last request reached the backend. It is proved if no
    /// byte was given to the kernel, or if the backend closed its side in order and has acknowledged
    /// no byte.
    ///
    /// After a reset, missing acknowledgements prove nothing: the kernel ignores the acknowledgement
    /// that a reset carries, and a backend that read the request at once may not have sent another
    /// one. An orderly end (FIN) says how far the backend had received when it closed, and a peer
    /// that has closed serves no further request (RFC 9112, section 9.6). The errors tell whether
    /// there was such an end: Linux gives EPIPE for a reset after it, else ECONNRESET. With TLS the
    /// orderly end is a close_notify, and bytes are those of records.
    pub(crate) fn is_undelivered(&self) -> bool {
        if self.given() == self.given_before {
            return true;
        }
        let ended = matches!(self.broken, None | Some(io::ErrorKind::BrokenPipe));
        let acknowledged = self.stream.acknowledged();
        ended && acknowledged.is_some_and(|bytes| bytes <= self.given_before)
    }

    /// How many bytes the socket has got since it was opened.
    fn given(&self) -> u64 {
        self.stream.given(self.output.written())
    }

    /// The bytes sent and received that the backend's counts do not contain yet.
    pub(crate) fn uncounted(&self) -> Traffic {
        Traffic {
            sent: self.output.written() - self.counted.sent,
            received: self.received - self.counted.received,
        }
    }

    /// Returns [`Self::uncounted`], and takes these bytes for counted from now on.
    pub(crate) fn take_uncounted(&mut self) -> Traffic {
        let moved = self.uncounted();
        self.counted.sent += moved.sent;
        self.counted.received += moved.received;
        moved
    }

    /// Encodes the request's head; nothing is written to the socket yet.
    pub(crate) fn send_request(
        &mut self,
        request: &Request<'_>,
        client: &ClientFacts<'_>,
        config: &BackendConfig,
    ) -> Result<(), RequestError> {
        self.answered = false;
        self.given_before = self.given();
        self.wire
            .send_request(request, client, config, &mut self.output)
    }

    /// Encodes the head of a request that asks to change to the protocol `token`.
    pub(crate) fn send_upgrade(
        &mut self,
        request: &Request<'_>,
        token: &[u8],
    ) -> Result<(), RequestError> {
        self.answered = false;
        self.given_before = self.given();
        self.wire.send_upgrade(request, token, &mut self.output)
    }

    /// Closes the sending side of the connection; the backend can still send.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let shut = ready!(Pin::new(&mut self.stream).poll_shutdown(cx));
        Poll::Ready(shut.map_err(|error| self.note_failure(error)))
    }

    /// Frees the memory of empty buffers while no bytes move.
    pub(crate) fn release(&mut self) {
        if self.input.is_empty() && self.input.capacity() > 0 {
            buffers::give(std::mem::take(&mut self.input));
        }
        if self.output.is_empty() {
            self.output.release();
        }
        self.read_size = READ_MIN;
    }

    /// How many bytes of the request's body are wanted now; 0 also after a failure.
    pub(crate) fn body_credit(&self) -> usize {
        if self.output.is_full() || self.broken.is_some() {
            return 0;
        }
        self.wire.body_credit()
    }

    /// Takes the wanted bytes of the request's body and encodes them: over AJP13 in as many packets as were
    /// asked for, which are written together, over HTTP/1.1 all of it in one chunk.
    pub(crate) fn send_body(&mut self, body: &mut ByteQueue) {
        self.wire.send_body(body, &mut self.output);
    }

    /// Ends the request's body. `false`: it is shorter than announced, and the exchange must be given up.
    #[must_use]
    pub(crate) fn finish_body(&mut self) -> bool {
        self.wire.finish_body(&mut self.output)
    }

    /// The number of bytes that are encoded but not yet written.
    pub(crate) fn unwritten(&self) -> usize {
        self.output.len() + self.stream.unsent()
    }

    /// Writes the encoded bytes. After a failure nothing more is written and no more of the body is wanted, but
    /// [`Self::poll_event`] still yields what the backend had sent before.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        let written = ready!(self.output.poll_write(cx, &mut self.stream));
        Poll::Ready(written.map_err(|error| {
            self.output.clear();
            self.note_failure(error)
        }))
    }

    /// The next event of the response, read from the socket as needed.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        loop {
            if let Some(event) = self.wire.receive(&mut self.input, &mut self.output)? {
                return Poll::Ready(Ok(event));
            }
            let read = ready!(self.poll_read(cx)).map_err(|error| self.note_failure(error))?;
            if read == 0 {
                return Poll::Ready(self.decode_eof());
            }
            self.answered = true;
        }
    }

    /// Keeps the first failure, and converts it for the caller.
    fn note_failure(&mut self, error: io::Error) -> Error {
        self.broken.get_or_insert_with(|| error.kind());
        Error::Io(error)
    }

    /// Takes back the memory of a head, for the next response.
    pub(crate) fn recycle(&mut self, head: Box<ResponseHead>) {
        self.wire.recycle(head);
    }

    /// The event for the end of the backend's stream.
    fn decode_eof(&mut self) -> Result<Event, Error> {
        if let Some(failure) = self.broken
            && failure != io::ErrorKind::BrokenPipe
        {
            // A write reported the reset and cleared it, so the socket reads as ended from then on.
            // After a broken pipe the end is real: Linux gives EPIPE for a reset that follows it.
            return Err(Error::Io(failure.into()));
        }
        self.wire.receive_end()
    }

    /// Reads once into `input`; 0 at the end of the stream. Reads that fill the room make the next ones larger.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        buffers::make_room(&mut self.input, self.read_size);
        let room = self.input.capacity() - self.input.len();
        let read = match self.read_after_failure() {
            Some(read) => read?,
            None => ready!(self.stream.poll_read(cx, &mut self.input))?,
        };
        self.received += read as u64;
        if read == room {
            self.read_size = (self.read_size * 2).min(READ_MAX);
        }
        Poll::Ready(Ok(read))
    }

    /// After a failed write, reads what the kernel has received. `None` if nothing failed, or if more
    /// may come.
    fn read_after_failure(&mut self) -> Option<io::Result<usize>> {
        self.broken?;
        match self.stream.read_now(&mut self.input) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            read => Some(read),
        }
    }

    /// Whether the exchange has ended in such a way that another may follow.
    pub(crate) fn is_reusable(&self) -> bool {
        self.wire.can_reuse()
    }

    /// Whether the connection may be used again; if so, frees all its buffers.
    pub(crate) fn settle(&mut self) -> bool {
        // Left-over bytes would be taken for the next response, or be sent before the next request.
        let is_clean = self.input.is_empty() && self.unwritten() == 0;
        if self.broken.is_some() || !is_clean || !self.wire.can_reuse() {
            return false;
        }
        self.release();
        true
    }

    /// Whether the protocol has a message that a live backend answers: AJP13's CPING.
    pub(crate) fn can_ping(&self) -> bool {
        self.wire.can_ping()
    }

    /// Sends CPING and waits for CPONG, at most `ping_timeout`. Over HTTP/1.1 there is no such message, and
    /// this succeeds at once.
    pub(crate) async fn ping(&mut self, config: &BackendConfig) -> Result<(), PingFailure> {
        match timeout(config.ajp.ping_timeout, self.ask_cping()).await {
            Ok(answer) => answer,
            Err(_) => Err(PingFailure::Silent),
        }
    }

    /// Sends CPING and waits for the answer, without a time limit. `Ok` at once if the protocol has no CPING.
    async fn ask_cping(&mut self) -> Result<(), PingFailure> {
        if !self.wire.send_ping(&mut self.output) {
            return Ok(());
        }
        let ponged = poll_fn(|cx| {
            if ready!(self.poll_write(cx)).is_err() {
                return Poll::Ready(Err(PingFailure::Closed));
            }
            self.poll_pong(cx)
        });
        ponged.await?;
        if self.settle() {
            Ok(())
        } else {
            // Bytes after the answer belong to no exchange.
            Err(PingFailure::Garbled)
        }
    }

    fn poll_pong(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), PingFailure>> {
        loop {
            if let Some(answer) = self.wire.receive_pong(&mut self.input, &mut self.output) {
                return Poll::Ready(answer);
            }
            if !matches!(ready!(self.poll_read(cx)), Ok(1..)) {
                return Poll::Ready(Err(PingFailure::Closed));
            }
        }
    }

    /// Closes the sending side and waits until the backend closes its own. A small response that still arrives
    /// is discarded. A larger one, or one that has already begun, ends the wait: the connection is then closed,
    /// and the backend's next write fails.
    pub(crate) async fn wind_up(&mut self) {
        self.output = Output::default();
        let mut room = if self.answered { 0 } else { UNWANTED_MAX };
        let shut = poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx)).await;
        while shut.is_ok() {
            // No buffer is held meanwhile.
            self.input = BytesMut::new();
            let readable = poll_fn(|cx| self.stream.poll_readable(cx)).await;
            if readable.is_err() {
                return;
            }
            match poll_fn(|cx| self.poll_read(cx)).await {
                Ok(read @ 1..) if read <= room => room -= read,
                _ => return,
            }
        }
    }

    /// Closes the connection with a reset, so that the backend sees a failure.
    pub(crate) fn abort(&self) {
        self.stream.reset_on_close();
    }
}

impl Drop for Connection {
    /// Sends close_notify to a backend over TLS if the connection ends between exchanges.
    fn drop(&mut self) {
        if self.broken.is_none() && self.wire.can_reuse() {
            self.stream.close_in_order();
        }
    }
}

/// The most bytes of an unwanted response that are read and discarded.
const UNWANTED_MAX: usize = 256 * 1024;

/// The size of the first read, for the head of a common response and a small body.
const READ_MIN: usize = buffers::SIZE;

/// The largest read, for a long response.
const READ_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests;
