//! The bytes to be written to a socket: framing is copied, large slices of bodies are not.
//!
//! A codec appends heads and framing to [`Output::staging`]. A body's large slices are queued as they
//! are, and are written together with the framing around them in one vectored write. It serves
//! clients and backends alike. An output has no limit: its user asks [`Output::is_full`] before
//! adding more, which gives back-pressure.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWrite;

use crate::buffers;
use crate::queue::{ByteQueue, COPY_MAX};

/// A queue of bytes to be written to a stream in order.
#[derive(Debug, Default)]
pub struct Output {
    queue: ByteQueue,
    /// The number of bytes written so far.
    written: u64,
}

impl Output {
    /// The buffer that codecs append to.
    pub fn staging(&mut self) -> &mut BytesMut {
        let tail = self.queue.tail();
        if tail.capacity() == 0 {
            *tail = buffers::take();
        }
        tail
    }

    /// As [`Self::staging`], for small and rare writes: does not borrow a buffer from the thread.
    pub fn staging_bare(&mut self) -> &mut BytesMut {
        self.queue.tail()
    }

    /// Appends a body's bytes: small ones are copied, large ones queued as they are.
    pub fn push(&mut self, data: Bytes) {
        if data.len() <= COPY_MAX {
            // A buffer is lent, so that the copy does not allocate one.
            self.staging();
        }
        self.queue.push(data);
    }

    /// The number of bytes not yet written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether everything was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The number of bytes written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether as many bytes wait that no more should be added before some are written.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= HIGH_WATER
    }

    /// Drops all bytes that were not written, when the connection is given up.
    pub fn clear(&mut self) {
        self.queue = ByteQueue::default();
    }

    /// Writes until everything is written, in as few calls as possible. Returns how many bytes this
    /// call wrote; while it is pending, [`Output::len`] shows the progress. Memory of the common size
    /// is then freed; memory that has grown for a long body is kept for the rest of it.
    ///
    /// # Errors
    /// The socket's, or `WriteZero`.
    pub fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<io::Result<usize>> {
        let mut total = 0;
        while !self.queue.is_empty() {
            let written = match self.queue.only_slice() {
                Some(slice) => ready!(Pin::new(&mut *writer).poll_write(cx, slice))?,
                None => {
                    let mut room = [IoSlice::new(&[]); SLICES_MAX];
                    let slices = self.queue.slices(&mut room);
                    ready!(Pin::new(&mut *writer).poll_write_vectored(cx, slices))?
                }
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written as u64;
            self.queue.advance(written);
            total += written;
        }
        if self.queue.tail_capacity() < 2 * buffers::SIZE {
            self.give_buffer();
        }
        // TLS may have kept records that the socket refused.
        ready!(Pin::new(&mut *writer).poll_flush(cx))?;
        Poll::Ready(Ok(total))
    }

    /// Frees the memory of an output that was written completely, so that an idle connection holds
    /// none.
    pub fn release(&mut self) {
        debug_assert!(self.is_empty(), "only a written output is released");
        self.give_buffer();
        self.queue.release_slices();
    }

    fn give_buffer(&mut self) {
        if self.queue.tail_capacity() > 0 {
            buffers::give(self.queue.take_tail());
        }
    }
}

/// The number of waiting bytes from which on no more should be added: a few socket writes.
pub const HIGH_WATER: usize = 64 * 1024;

/// The most slices in one vectored write.
const SLICES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that takes at most `step` bytes per call.
    struct Trickle {
        taken: Vec<u8>,
        step: usize,
    }

    impl AsyncWrite for Trickle {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = buf.len().min(self.step);
            self.taken.extend_from_slice(&buf[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all: Vec<u8> = bufs
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .collect();
            self.poll_write(cx, &all)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn order_survives_copies_slices_and_short_writes() {
        for step in [1, 7, 3000, 1_000_000] {
            let mut output = Output::default();
            let mut expected = Vec::new();
            for (index, len) in [3, 5000, 1, 2048, 2049, 0, 9000, 12]
                .into_iter()
                .enumerate()
            {
                let data = vec![index as u8; len];
                output.staging().extend_from_slice(b"<");
                output.push(data.clone().into());
                expected.push(b'<');
                expected.extend(data);
            }
            assert_eq!(output.len(), expected.len());
            let mut writer = Trickle {
                taken: Vec::new(),
                step,
            };
            let mut cx = Context::from_waker(std::task::Waker::noop());
            let Poll::Ready(Ok(written)) = output.poll_write(&mut cx, &mut writer) else {
                panic!("the writer never blocks");
            };
            assert_eq!(written, expected.len());
            output.clear();
            assert_eq!(
                output.written(),
                expected.len() as u64,
                "outlives the bytes"
            );
            assert!(writer.taken == expected, "step {step}");
            assert!(output.is_empty());
        }
    }

    #[test]
    fn a_writer_that_takes_nothing_is_an_error() {
        let mut output = Output::default();
        output.push(Bytes::from_static(b"x"));
        let mut writer = Trickle {
            taken: Vec::new(),
            step: 0,
        };
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(
            output.poll_write(&mut cx, &mut writer),
            Poll::Ready(Err(_))
        ));
    }
}
