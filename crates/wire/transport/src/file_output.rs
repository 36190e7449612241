//! Bytes of a file that the kernel copies to a socket itself.
//!
//! They are written after the bytes of an [`Output`](crate::Output). While they wait, nothing may be added
//! to that output, because it would be written before them: check [`FileOutput::is_empty`] first.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::{Errno, pread};
use thiserror::Error;

use crate::stream::Stream;

/// A part of a file on its way to a socket.
#[derive(Debug, Default)]
pub struct FileOutput {
    fd: Option<Arc<OwnedFd>>,
    from: u64,
    left: usize,
    /// Bytes that were read from the file, because the kernel cannot copy them itself, and are not written
    /// yet.
    copied: Vec<u8>,
}

/// Why a part of a file cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FileOutputFault {
    /// The file has become shorter.
    #[error("the file has become shorter while it was sent")]
    Ended,
    /// The kernel could not read the file.
    #[error("the file cannot be read: {0}")]
    Read(Errno),
}

impl FileOutput {
    /// Sets the part of a file that is to be sent. Everything before it must have been written.
    pub fn set(&mut self, fd: Arc<OwnedFd>, from: u64, len: usize) {
        debug_assert!(self.is_empty(), "one part at a time");
        *self = Self {
            fd: Some(fd),
            from,
            left: len,
            copied: Vec::new(),
        };
    }

    /// The number of bytes not yet written.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether everything was written.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Drops all bytes that were not written.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Writes until everything is written. Returns how many bytes this call wrote.
    ///
    /// # Errors
    /// The socket's; if the file failed, one that contains a [`FileOutputFault`].
    pub fn poll_write(&mut self, cx: &mut Context<'_>, stream: &Stream) -> Poll<io::Result<usize>> {
        let len = self.left;
        while self.left > 0 {
            let written = if self.copied.is_empty() {
                ready!(self.poll_send(cx, stream))?
            } else {
                let written = ready!(stream.poll_send_bytes(cx, &self.copied))?;
                self.copied.drain(..written);
                written
            };
            self.from += written as u64;
            self.left -= written.min(self.left);
        }
        self.clear();
        Poll::Ready(Ok(len))
    }

    /// Lets the kernel copy some bytes, and returns how many. If it cannot, some are read into `copied`, and 0 is
    /// returned.
    fn poll_send(&mut self, cx: &mut Context<'_>, stream: &Stream) -> Poll<io::Result<usize>> {
        let Some(fd) = &self.fd else {
            return Poll::Ready(Err(io::Error::other(FileOutputFault::Ended)));
        };
        match ready!(stream.poll_send_file(cx, fd, self.from, self.left)) {
            Ok(0) => Poll::Ready(Err(io::Error::other(FileOutputFault::Ended))),
            Err(error) => match Errno::from_io_error(&error) {
                // The file system or the socket does not support it.
                Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    self.copied = copy(fd, self.from, self.left)?;
                    Poll::Ready(Ok(0))
                }
                Some(errno @ (Errno::IO | Errno::STALE)) => {
                    Poll::Ready(Err(io::Error::other(FileOutputFault::Read(errno))))
                }
                _ => Poll::Ready(Err(error)),
            },
            sent => Poll::Ready(sent),
        }
    }
}

/// Reads the beginning of a part of a file.
fn copy(fd: &OwnedFd, from: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; len.min(COPY_MAX)];
    loop {
        match pread(fd, &mut piece, from) {
            Ok(0) => return Err(io::Error::other(FileOutputFault::Ended)),
            Ok(count) => {
                piece.truncate(count);
                return Ok(piece);
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(io::Error::other(FileOutputFault::Read(errno))),
        }
    }
}

/// The most bytes that are read at a time.
const COPY_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write;

    use socket2::SockRef;
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream, UnixStream};

    use super::*;

    fn file(bytes: &[u8]) -> Arc<OwnedFd> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Arc::new(file.into())
    }

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at % 251) as u8).collect()
    }

    async fn tcp() -> (Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
        (Stream::Tcp(one.unwrap()), other.unwrap().0)
    }

    #[tokio::test]
    async fn a_part_arrives_however_slowly_it_is_read() {
        let bytes = pattern(3 << 20);
        let (stream, mut reader) = tcp().await;
        let mut output = FileOutput::default();
        output.set(file(&bytes), 10, bytes.len() - 20);
        let reading = async {
            let mut got = vec![0; bytes.len() - 20];
            reader.read_exact(&mut got).await.unwrap();
            got
        };
        let writing = poll_fn(|cx| output.poll_write(cx, &stream));
        let (written, got) = tokio::join!(writing, reading);
        assert_eq!(written.unwrap(), bytes.len() - 20);
        assert!(got == bytes[10..bytes.len() - 10]);
        assert!(output.is_empty());
    }

    #[tokio::test]
    async fn unix_sockets_take_files_as_well() {
        let (one, mut other) = UnixStream::pair().unwrap();
        let stream = Stream::Unix(one);
        let mut output = FileOutput::default();
        output.set(file(&pattern(5000)), 0, 5000);
        poll_fn(|cx| output.poll_write(cx, &stream)).await.unwrap();
        let mut got = vec![0; 5000];
        other.read_exact(&mut got).await.unwrap();
        assert!(got == pattern(5000));
    }

    #[tokio::test]
    async fn a_file_that_is_shorter_is_told_from_a_client_that_left() {
        let fault = |error: io::Error| {
            let inner = error.into_inner().and_then(|it| it.downcast().ok());
            inner.map(|it: Box<FileOutputFault>| *it)
        };
        let (stream, reader) = tcp().await;
        let mut output = FileOutput::default();
        output.set(file(&pattern(100)), 0, 101);
        let written = poll_fn(|cx| output.poll_write(cx, &stream)).await;
        assert_eq!(fault(written.unwrap_err()), Some(FileOutputFault::Ended));
        SockRef::from(&reader)
            .set_linger(Some(std::time::Duration::ZERO))
            .unwrap();
        drop(reader);
        output.clear();
        let vast = file(&pattern(8 << 20));
        let written = loop {
            output.set(Arc::clone(&vast), 0, 8 << 20);
            if let Err(error) = poll_fn(|cx| output.poll_write(cx, &stream)).await {
                break error;
            }
        };
        assert_eq!(fault(written), None);
    }

    #[test]
    fn what_the_kernel_does_not_copy_is_read() {
        let fd = file(&pattern(100_000));
        assert!(copy(&fd, 10, 100).unwrap() == pattern(110)[10..]);
        assert_eq!(copy(&fd, 0, 100_000).unwrap().len(), COPY_MAX);
        assert!(copy(&fd, 100_000, 1).is_err());
    }
}
