//! A byte stream to a peer, whatever carries it.
//!
//! The set is closed, so it is an enum: TCP and Unix sockets. What the rest needs beyond reading
//! and writing is here too: waiting for bytes without lending a buffer, and asking whether an
//! unused connection is still quiet.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::acknowledged::acknowledged;

/// A connected TCP or Unix stream socket.
#[derive(Debug)]
pub enum Stream {
    /// TCP, with `TCP_NODELAY` set by whoever connected or accepted it.
    Tcp(TcpStream),
    /// A Unix stream socket.
    Unix(UnixStream),
}

impl Stream {
    /// Ready when bytes, an end or an error can be read. No buffer is needed meanwhile.
    ///
    /// # Errors
    /// If the socket cannot be watched.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Whether the peer has neither sent anything nor closed. Asks the kernel rather than the
    /// event loop's last news, because a close may have arrived since.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = match self {
            Self::Tcp(stream) => SockRef::from(stream).peek(&mut byte),
            Self::Unix(stream) => SockRef::from(stream).peek(&mut byte),
        };
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// How many of the bytes written the peer's kernel has acknowledged, where that can be known:
    /// on a TCP connection that we dialled.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        match self {
            Self::Tcp(stream) => acknowledged(stream).ok()?.checked_sub(1),
            Self::Unix(_) => None,
        }
    }

    /// Makes the close that follows a reset, so that the peer cannot take what it received for a
    /// complete message.
    pub fn reset_on_close(&self) {
        // Unix sockets know no reset; a failure leaves an ordinary close, which framing reveals.
        if let Self::Tcp(stream) = self {
            SockRef::from(stream)
                .set_linger(Some(std::time::Duration::ZERO))
                .ok();
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
