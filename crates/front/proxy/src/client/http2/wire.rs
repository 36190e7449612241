//! The client's connection as the `h2` crate reads and writes it.
//!
//! Bytes pass as they are. The frames among them are followed, for what the crate does not tell; see
//! [`Session`].

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use catamaran_transport::{Output, SEAL_MAX, buffers};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client::ClientConnection;
use crate::client::http2::frames::Frames;
use crate::client::http2::session::Session;

/// The stream that the `h2` crate reads and writes. The socket belongs to the [`Session`], since the connection's
/// task writes to it as well.
#[derive(Debug)]
pub(crate) struct Wire {
    session: Arc<Session>,
    inbound: Frames,
    outbound: Frames,
}

/// The client's socket, and its bytes on both ways.
#[derive(Debug)]
pub(crate) struct Line {
    /// `None` once nobody speaks HTTP/2 on it any more.
    client: Option<ClientConnection>,
    /// Bytes that were received and decrypted, and that the crate has not read yet.
    rest: BytesMut,
    /// Writes of the crate that leave together, small ones or those to be sealed: [`Session::poll_flush`].
    held: Output,
}

impl Wire {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self {
            session,
            inbound: Frames::after(PREFACE.len()),
            outbound: Frames::after(0),
        }
    }
}

impl Line {
    /// The connection of a client. What was received of it already is read first.
    pub(crate) fn new(mut client: ClientConnection) -> Self {
        let rest = client.take_input();
        Self {
            client: Some(client),
            rest,
            held: Output::default(),
        }
    }

    /// Takes the client back. Held bytes are not written.
    pub(crate) fn take_client(&mut self) -> Option<ClientConnection> {
        self.client.take()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.client {
            Some(client) => client.stream.poll_read_bounded(cx, buf, &mut self.rest),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Holds a small write for later, and writes a large one after the held bytes. Over TLS, frames are held until they
    /// fill as many records as are sealed at a time. The bytes that the socket takes are added to `written`.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        written: &mut usize,
    ) -> Poll<io::Result<usize>> {
        let len = slices.iter().map(|slice| slice.len()).sum::<usize>();
        let is_sealed = self.client.as_ref().is_some_and(|it| it.stream.is_tls());
        let (most, room) = if is_sealed {
            (SEAL_MAX, SEAL_MAX)
        } else {
            (HELD_MAX, buffers::SIZE)
        };
        let is_held = len <= most;
        if !is_held || self.held.len() + len > room {
            ready!(self.poll_flush(cx, written))?;
        }
        let Some(client) = &mut self.client else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if is_held {
            let staging = self.held.staging();
            if staging.capacity() - staging.len() < len {
                lend(staging);
            }
            for slice in slices {
                staging.extend_from_slice(slice);
            }
            return Poll::Ready(Ok(len));
        }
        let taken = ready!(Pin::new(&mut client.stream).poll_write_vectored(cx, slices))?;
        *written += taken;
        Poll::Ready(Ok(taken))
    }

    /// Writes the held bytes. Those that the socket takes are added to `written`.
    pub(crate) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        written: &mut usize,
    ) -> Poll<io::Result<()>> {
        let Some(client) = &mut self.client else {
            return Poll::Ready(Ok(()));
        };
        let before = self.held.len();
        let flushed = self.held.poll_write(cx, &mut client.stream);
        *written += before - self.held.len();
        ready!(flushed)?;
        if self.held.is_empty() {
            take_back(self.held.staging_bare());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.client {
            Some(client) => Pin::new(&mut client.stream).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        let session = &wire.session;
        if session.flood().verdict().is_some() {
            // The driver, whose task this is, closes the connection.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(session.line().poll_read(cx, buf))?;
        let received = &buf.filled()[before..];
        wire.inbound
            .follow(received, |frame| session.received(frame));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        let session = &wire.session;
        let taken = session.write(|line, written| line.poll_write(cx, slices, written));
        let mut left = match &taken {
            Poll::Ready(Ok(taken)) => *taken,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        for slice in slices {
            let bytes = &slice[..slice.len().min(left)];
            left -= bytes.len();
            wire.outbound.follow(bytes, |frame| session.sent(frame));
        }
        taken
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The crate asks for this after most frames. The connection's task writes once the crate has
    /// nothing more to write.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let session = &self.session;
        ready!(session.poll_flush(cx))?;
        session.line().poll_shutdown(cx)
    }
}

thread_local! {
    /// A buffer for frames that are sealed together, while no connection holds any.
    static LENT: Cell<BytesMut> = Cell::new(BytesMut::new());
}

/// Replaces a buffer by one with room for [`SEAL_MAX`] bytes.
///
/// Its first bytes are not used: a body's would come 9 bytes, the head of a frame, behind where they are copied from, as
/// far as the last 12 bits of the addresses go, and some machines copy that slowly (`tls_stream::lead`).
fn lend(staging: &mut BytesMut) {
    let mut lent = LENT.take();
    lent.reserve(UNUSED + SEAL_MAX);
    lent.resize(UNUSED, 0);
    lent.advance(UNUSED);
    lent.extend_from_slice(staging);
    buffers::give(mem::replace(staging, lent));
}

/// Takes a large buffer back.
fn take_back(staging: &mut BytesMut) {
    if staging.capacity() >= 2 * buffers::SIZE {
        let mut lent = mem::take(staging);
        lent.clear();
        LENT.set(lent);
    }
}

/// What every client begins with (RFC 9113, section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes before the first frame in a buffer for frames that are sealed together.
const UNUSED: usize = 1024;

/// The longest write that is held: most responses to requests of small things, whose heads and bodies
/// would otherwise leave one by one.
const HELD_MAX: usize = 4 * 1024;
