//! TLS on a socket.
//!
//! A [`TlsStream`] owns only the state of its connection: that of rustls, the bytes of an incomplete record, and
//! encrypted bytes that the socket did not take. All other memory is lent by the thread for the time of a call.
//! Plaintext is passed on as soon as its record is complete; none is kept.

use std::cell::Cell;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::BytesMut;
use catamaran_tls::{Connection, Profile, Protocols, Session, TlsError, Trust, looks_like_tls};
use rustix::net::{SendFlags, send};
use thiserror::Error;
use tokio::io::AsyncWrite;

use crate::stream::Stream;

/// A socket with TLS.
#[derive(Debug)]
pub struct TlsStream {
    /// The TCP or Unix socket.
    socket: Stream,
    connection: Connection,
    /// Received bytes of a record that is not complete yet.
    rest: Vec<u8>,
    /// Encrypted bytes that the socket has not taken.
    unsent: Vec<u8>,
    /// The number of bytes given to the socket, of records and the handshake.
    written: u64,
    /// The profile of the listener, on a connection that was accepted, until the handshake is over.
    profile: Option<Arc<Profile>>,
    /// The result of the handshake, once it is over.
    session: Option<Arc<Session>>,
    /// Whether the peer has sent the beginning of a handshake.
    has_begun: bool,
    /// Whether the peer's first message was received completely.
    has_said_hello: bool,
    /// Whether the end of the socket's stream was read.
    ended: bool,
}

/// The error for a TCP connection that ended without a TLS close: the last bytes may be missing.
#[derive(Clone, Copy, Debug, Error)]
#[error("the peer closed without close_notify")]
pub struct Truncated;

/// Why a handshake did not succeed.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The socket failed.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The peer closed the connection.
    #[error("the peer closed during the handshake")]
    Closed,
    /// The client does not speak TLS; this is its first byte.
    #[error("the client does not speak TLS")]
    NotTls(u8),
    /// The peer sent too many bytes of an incomplete handshake message.
    #[error("a message of the handshake is larger than {} KiB", HANDSHAKE_MAX >> 10)]
    TooLarge,
    /// The peer's bytes are not acceptable.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl TlsStream {
    /// TLS on a socket that was accepted. The client may choose one of `protocols`.
    ///
    /// # Errors
    /// rustls cannot begin.
    pub fn server(
        socket: Stream,
        profile: Arc<Profile>,
        protocols: Protocols,
    ) -> Result<Self, TlsError> {
        let connection = Connection::server(&profile, protocols)?;
        Ok(Self::new(socket, connection, Some(profile)))
    }

    /// TLS on a socket that this process connected. The ClientHello is ready to be sent.
    ///
    /// # Errors
    /// rustls cannot begin.
    pub fn client(socket: Stream, trust: &Trust) -> Result<Self, TlsError> {
        let mut stream = Self::new(socket, Connection::client(trust)?, None);
        // Without bytes of the peer, this only writes the ClientHello.
        let plain = &mut BytesMut::new();
        stream
            .connection
            .receive(&mut [], plain, &mut stream.unsent)?;
        Ok(stream)
    }

    fn new(socket: Stream, connection: Connection, profile: Option<Arc<Profile>>) -> Self {
        Self {
            socket,
            connection,
            rest: Vec::new(),
            unsent: Vec::new(),
            written: 0,
            profile,
            session: None,
            has_begun: false,
            has_said_hello: false,
            ended: false,
        }
    }

    /// Writes bytes without TLS, as many as the socket takes, to a peer that does not use TLS.
    pub fn write_in_clear(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
        self.try_flush(&mut Context::from_waker(Waker::noop()));
    }

    /// The socket below TLS.
    pub(crate) fn socket(&self) -> &Stream {
        &self.socket
    }

    /// The result of the handshake; `None` before it is over.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// Whether the peer has sent the beginning of a handshake.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether the peer's first message, a ClientHello or ServerHello, was received completely.
    #[must_use]
    pub fn has_said_hello(&self) -> bool {
        self.has_said_hello
    }

    /// Continues the handshake; ready when it is over and all of its bytes are written. Application data that came with
    /// its end is appended to `plain`.
    ///
    /// # Errors
    /// [`HandshakeError`]. An alert was sent to the peer, as far as the socket took it.
    pub fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
        plain: &mut BytesMut,
    ) -> Poll<Result<(), HandshakeError>> {
        loop {
            ready!(self.poll_flush_unsent(cx))?;
            if self.session.is_some() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.poll_receive(cx, plain, 0)) {
                Err(error) => {
                    self.try_flush(cx);
                    return Poll::Ready(Err(error));
                }
                Ok(0) => return Poll::Ready(Err(HandshakeError::Closed)),
                Ok(_) => {}
            }
        }
    }

    /// Reads once from the socket, and appends the data of complete records to `plain`: it may exceed `room` by less
    /// than a record and a small read. Returns how many bytes the socket had.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        plain: &mut BytesMut,
        room: usize,
    ) -> Poll<Result<usize, HandshakeError>> {
        let mut lent = self.lend(room);
        let kept = lent.len();
        let read = self.socket.poll_read(cx, &mut lent);
        if let Poll::Ready(Ok(_)) = &read {
            let received = self.process_received(&mut lent, kept, plain);
            give(room, lent);
            received?;
        } else {
            give(room, lent);
        }
        read.map_err(HandshakeError::Io)
    }

    /// Lends a buffer that begins with the bytes received before, with room for a read.
    fn lend(&self, room: usize) -> BytesMut {
        let (place, size) = if room > READ_SMALL {
            (&LENT_LARGE, READ_LARGE)
        } else {
            (&LENT_SMALL, READ_SMALL)
        };
        let mut lent = place.take();
        lent.clear();
        lent.reserve(self.rest.len() + size);
        lent.extend_from_slice(&self.rest);
        lent
    }

    /// Processes the bytes in `lent`, of which the first `kept` were received before.
    fn process_received(
        &mut self,
        lent: &mut BytesMut,
        kept: usize,
        plain: &mut BytesMut,
    ) -> Result<(), HandshakeError> {
        if lent.len() == kept {
            return Ok(());
        }
        // The first two bytes show whether the peer uses TLS.
        if kept < 2 && !self.has_begun && !self.connection.is_client() && !looks_like_tls(lent) {
            return Err(HandshakeError::NotTls(lent[0]));
        }
        self.has_begun |= lent.len() >= 2;
        let received = self.connection.receive(lent, plain, &mut self.unsent)?;
        self.has_said_hello |= received.consumed > 0;
        let rest = &lent[received.consumed..];
        if !received.is_open && rest.len() > HANDSHAKE_MAX {
            return Err(HandshakeError::TooLarge);
        }
        if rest.is_empty() {
            // An idle connection holds no memory.
            self.rest = Vec::new();
        } else {
            self.rest.clear();
            self.rest.extend_from_slice(rest);
        }
        if received.is_open && self.session.is_none() {
            self.session = Some(Arc::new(Session {
                facts: self.connection.facts(),
                profile: self.profile.take(),
            }));
        }
        Ok(())
    }

    /// Reads once; 0 is the end of the peer's stream. `buffer` grows if a record does not fit.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        let before = buffer.len();
        let room = buffer.capacity() - before;
        for _ in 0..EMPTY_READS_MAX {
            if self.is_peer_closed() {
                return Poll::Ready(self.end());
            }
            let received = ready!(self.poll_receive(cx, buffer, room));
            // Tickets, key updates and alerts can be due after any read.
            self.try_flush(cx);
            let gained = buffer.len() - before;
            match received {
                _ if gained > 0 => return Poll::Ready(Ok(gained)),
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(io_error(error))),
            }
        }
        // After many records without data, other tasks get their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once without waiting, whatever the event loop last reported.
    pub(crate) fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        let before = buffer.len();
        if self.is_peer_closed() {
            return self.end();
        }
        let room = buffer.capacity() - before;
        let mut lent = self.lend(room);
        let kept = lent.len();
        let read = self.socket.read_now(&mut lent);
        let received = match &read {
            Ok(_) => self.process_received(&mut lent, kept, buffer),
            Err(_) => Ok(()),
        };
        give(room, lent);
        let read_count = read?;
        let gained = buffer.len() - before;
        if gained > 0 {
            // An error after them shows again at the next read.
            return Ok(gained);
        }
        received.map_err(io_error)?;
        if read_count == 0 {
            self.ended = true;
            return self.end();
        }
        if self.connection.is_peer_closed() {
            return Ok(0);
        }
        Err(ErrorKind::WouldBlock.into())
    }

    /// The result of a read at the end of the peer's stream. A backend must have ended TLS in order, because its
    /// response may end with the connection; a client need not, because framing shows the end of its request.
    fn end(&self) -> io::Result<usize> {
        if self.connection.is_client() && !self.connection.is_peer_closed() {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, Truncated));
        }
        Ok(0)
    }

    /// Whether the peer has ended its stream, by a TLS close or by closing the socket.
    pub(crate) fn is_peer_closed(&self) -> bool {
        self.connection.is_peer_closed() || self.ended
    }

    /// Whether no bytes or end of the peer wait to be read. An incomplete record counts only from a backend: it shows
    /// that the connection is not idle.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_between_records = self.rest.is_empty() || !self.connection.is_client();
        is_between_records && !self.is_peer_closed()
    }

    /// The number of encrypted bytes that the socket has not taken.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// The number of bytes given to the socket.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Takes bytes of `slices`, encrypts them and writes them. Bytes that the socket does not take are kept, and no
    /// more are taken before they are written.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush_unsent(cx))?;
        let mut sealed = SEALED.take();
        sealed.clear();
        let taken = self.seal(slices, &mut sealed);
        self.unsent = sealed;
        self.try_flush(cx);
        Poll::Ready(taken)
    }

    /// Encrypts as much of `slices` as one write takes; returns the number of bytes.
    fn seal(&mut self, slices: &[IoSlice<'_>], sealed: &mut Vec<u8>) -> io::Result<usize> {
        match slices {
            [only] => {
                let taken = only.len().min(SEAL_MAX);
                self.seal_bytes(&only[..taken], sealed)?;
                Ok(taken)
            }
            slices => {
                // Slices are joined, so that the records are full.
                let mut joined = JOINED.take();
                joined.clear();
                for slice in slices {
                    let room = SEAL_MAX - joined.len();
                    joined.extend_from_slice(&slice[..slice.len().min(room)]);
                }
                let sealing = self.seal_bytes(&joined, sealed);
                let taken = joined.len();
                JOINED.set(joined);
                sealing.map(|()| taken)
            }
        }
    }

    fn seal_bytes(&mut self, plain: &[u8], sealed: &mut Vec<u8>) -> io::Result<()> {
        let (short_record, full_records) = plain.split_at(lead(plain));
        if !short_record.is_empty() {
            let sealing = self.connection.seal(short_record, &mut self.rest, sealed);
            sealing.map_err(broken)?;
        }
        let sealing = self.connection.seal(full_records, &mut self.rest, sealed);
        sealing.map_err(broken)
    }

    /// Writes the encrypted bytes; ready when all of them are written.
    pub(crate) fn poll_flush_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut written = 0;
        let flushed = loop {
            let bytes = &self.unsent[written..];
            if bytes.is_empty() {
                break Poll::Ready(Ok(()));
            }
            let sent = self
                .socket
                .poll_send(cx, |socket| send(socket, bytes, SendFlags::NOSIGNAL));
            match sent {
                Poll::Ready(Ok(sent)) => written += sent,
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        self.written += written as u64;
        if written == self.unsent.len() && written > 0 {
            // The thread lends the memory again, unless it was that of a handshake.
            let emptied = std::mem::take(&mut self.unsent);
            if emptied.capacity() >= READ_SMALL {
                SEALED.set(emptied);
            }
        } else if written > 0 {
            self.unsent = self.unsent.split_off(written);
        } else if flushed.is_pending() {
            // A peer that reads slowly must not hold more memory than it waits for.
            self.unsent.shrink_to_fit();
        }
        flushed
    }

    /// Writes as many encrypted bytes as the socket takes. An error appears in the next write.
    fn try_flush(&mut self, cx: &mut Context<'_>) {
        if !self.unsent.is_empty() {
            let _ = self.poll_flush_unsent(cx);
        }
    }

    /// Sends a TLS close as far as the socket takes it now, without waiting.
    pub(crate) fn close_now(&mut self) {
        if self.session.is_some() {
            self.connection.close(&mut self.rest, &mut self.unsent);
            self.try_flush(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Sends a TLS close, and closes the socket's sending side.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.session.is_some() {
            self.connection.close(&mut self.rest, &mut self.unsent);
        }
        ready!(self.poll_flush_unsent(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

thread_local! {
    /// The buffer that this thread lends for short reads.
    static LENT_SMALL: Cell<BytesMut> = Cell::new(BytesMut::new());
    /// The buffer that this thread lends for long reads.
    static LENT_LARGE: Cell<BytesMut> = Cell::new(BytesMut::new());
    /// The buffer for encrypted bytes on their way to a socket.
    static SEALED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The buffer in which plaintext of several slices is joined, to be encrypted as one.
    static JOINED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Takes back the buffer that was lent for a read of `room` bytes.
fn give(room: usize, buffer: BytesMut) {
    if room > READ_SMALL {
        LENT_LARGE.set(buffer);
    } else {
        LENT_SMALL.set(buffer);
    }
}

/// The length of a short first record, which makes rustls copy the full records after it faster; 0 if `plain` needs
/// none.
///
/// rustls copies the plaintext of each record into an allocated block, after a header of 5 bytes. Where `memcpy` is
/// `rep movsb` (glibc before 2.39 on AMD Zen 3 and 4), copying 4 KiB and more takes thirty times as long if the target
/// is 1 to 15 bytes after the source, modulo 4096: 16 KiB take 4.6 µs instead of 0.15 µs. Blocks and most plaintexts
/// begin at multiples of 16, often of 4096, so without the first record the header would cause exactly this.
fn lead(plain: &[u8]) -> usize {
    if plain.len() >= COPIED_SLOWLY_MIN && plain.as_ptr().addr().is_multiple_of(16) {
        LEAD
    } else {
        0
    }
}

/// Converts a TLS error into an I/O error.
fn broken(error: TlsError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

fn io_error(error: HandshakeError) -> io::Error {
    match error {
        HandshakeError::Io(error) => error,
        HandshakeError::Tls(error) => broken(error),
        HandshakeError::Closed | HandshakeError::NotTls(_) | HandshakeError::TooLarge => {
            ErrorKind::InvalidData.into()
        }
    }
}

/// The bytes of a read when no long body is expected: a little more than a record.
const READ_SMALL: usize = 20 * 1024;

/// The most bytes kept of an incomplete handshake message.
const HANDSHAKE_MAX: usize = 64 * 1024;

/// The bytes of a read of a long body.
const READ_LARGE: usize = 68 * 1024;

/// The plaintext bytes encrypted for one write: a little more than four full records, so that four full frames of
/// HTTP/2 leave together.
pub const SEAL_MAX: usize = 68 * 1024;

/// The shortest plaintext with a [`lead`].
const COPIED_SLOWLY_MIN: usize = 4096;

/// The length of a [`lead`] in bytes: too short to be copied with `rep movsb`, and 5 more than a multiple of 16.
const LEAD: usize = 1024 + 5;

/// The most reads in a row without data before other tasks get their turn.
const EMPTY_READS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// After its [`lead`], plaintext that is aligned to 16 bytes is 5 bytes beyond a multiple of 16: where a record's
    /// plaintext stands in a block, behind the header of 5 bytes.
    #[test]
    fn full_records_are_not_copied_to_a_few_bytes_behind_where_they_come_from() {
        let bytes = vec![0; 128 + COPIED_SLOWLY_MIN];
        for start in 0..64 {
            let plain = &bytes[start..][..COPIED_SLOWLY_MIN];
            let copied = &plain[lead(plain)..];
            let behind = 5_usize.wrapping_sub(copied.as_ptr().addr()) % 16;
            let was_aligned = plain.as_ptr().addr().is_multiple_of(16);
            assert_eq!(behind == 0, was_aligned || plain.as_ptr().addr() % 16 == 5);
            assert_eq!(
                lead(&plain[..COPIED_SLOWLY_MIN - 1]),
                0,
                "few bytes are copied otherwise"
            );
        }
    }
}
