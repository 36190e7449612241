//! The client's connection as the `h2` crate reads and writes it.
//!
//! Bytes pass as they are. The frames among them are followed, for what the crate does not tell; see
//! [`Session`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client::ClientConnection;
use crate::client::http2::frames::Frames;
use crate::client::http2::session::Session;

#[derive(Debug)]
pub(super) struct Wire {
    /// Given back when this is dropped.
    client: Option<ClientConnection>,
    session: Arc<Session>,
    /// Received and decrypted, and not read yet.
    rest: BytesMut,
    inbound: Frames,
    outbound: Frames,
}

impl Wire {
    /// The connection of a client. What was received of it already is read first.
    pub(super) fn new(mut client: ClientConnection, session: Arc<Session>) -> Self {
        let rest = client.take_input();
        Self {
            client: Some(client),
            session,
            rest,
            inbound: Frames::after(PREFACE.len()),
            outbound: Frames::after(0),
        }
    }

    fn wrote(
        &mut self,
        written: Poll<io::Result<usize>>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(written)) => {
                self.session.note_written(*written);
                let mut left = *written;
                for slice in slices {
                    let bytes = &slice[..slice.len().min(left)];
                    left -= bytes.len();
                    self.outbound
                        .follow(bytes, |frame| self.session.sent(frame));
                }
            }
            Poll::Pending => self.session.note_blocked(),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        if wire.session.flood().verdict().is_some() {
            // The driver, whose task this is, closes the connection.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let Some(client) = &mut wire.client else {
            return Poll::Ready(Ok(()));
        };
        ready!(client.stream.poll_read_bounded(cx, buf, &mut wire.rest))?;
        let session = &wire.session;
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
        let Some(client) = &mut wire.client else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let written = Pin::new(&mut client.stream).poll_write_vectored(cx, slices);
        wire.wrote(written, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        let Some(client) = &mut wire.client else {
            return Poll::Ready(Ok(()));
        };
        let flushed = Pin::new(&mut client.stream).poll_flush(cx);
        if flushed.is_pending() {
            wire.session.note_blocked();
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        match &mut wire.client {
            Some(client) => Pin::new(&mut client.stream).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// The client is not closed with the state of the protocol: it may still have to read why.
impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.session.give_back(client);
        }
    }
}

/// What every client begins with (RFC 9113, section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
