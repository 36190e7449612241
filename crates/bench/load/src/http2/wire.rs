//! The worker's socket as `h2` wants it. Nobody is woken: the worker's poll says when a socket is
//! ready, and the connection is polled then.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::Stream;

/// A socket, and the count of what goes through it.
pub(super) struct Wire {
    stream: Stream,
    traffic: Arc<Traffic>,
}

/// Bytes that went through a socket and were not accounted for yet. Atomics, because the connection
/// that has the socket is `Send`; one thread uses them.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    received: AtomicU64,
    sent: AtomicU64,
}

impl Wire {
    pub(super) fn new(stream: Stream, traffic: Arc<Traffic>) -> Self {
        Self { stream, traffic }
    }
}

impl Traffic {
    /// Received and sent since the last call.
    pub(super) fn take(&self) -> (u64, u64) {
        (self.received.swap(0, Relaxed), self.sent.swap(0, Relaxed))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = retried(|| self.stream.read(buffer.initialize_unfilled()));
        read.map_ok(|count| {
            buffer.advance(count);
            self.traffic.received.fetch_add(count as u64, Relaxed);
        })
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = retried(|| self.stream.write(bytes));
        written.map_ok(|count| {
            self.traffic.sent.fetch_add(count as u64, Relaxed);
            count
        })
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = retried(|| self.stream.write_vectored(slices));
        written.map_ok(|count| {
            self.traffic.sent.fetch_add(count as u64, Relaxed);
            count
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What TLS could not write it writes when the socket takes bytes again.
        retried(|| self.stream.flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The socket is closed when it is dropped.
        self.poll_flush(context)
    }
}

/// A call of the socket; not ready is pending.
fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> Poll<io::Result<T>> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return Poll::Ready(done),
        }
    }
}
