//! Reads the bytes of a file that are sent, one piece at a time.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};
use thiserror::Error;

use crate::found::{FileContent, FileFacts, FoundFile};
use crate::response::{FileSending, Segment};
use crate::threads::{FileThreads, ThreadsBusy};

/// The body of a response with bytes of a file, which is read while it is sent.
pub struct FileBody {
    /// The open file; `None` if all bytes are in memory.
    fd: Option<Arc<OwnedFd>>,
    /// The version of the file that the response's head has announced.
    facts: FileFacts,
    segments: VecDeque<Segment>,
    threads: FileThreads,
    /// The read that a thread is doing; `None`: there is none.
    reading: Option<ReadFuture>,
    /// The read into the kernel's memory that a thread is doing, and the number of its bytes; `None`: there is none.
    warming: Option<(ReadFuture, usize)>,
    /// The bytes given since the event loop last served other connections.
    given: usize,
    /// Whether this reads the end of each segment instead of giving it as a part. A sender of a single part holds its
    /// last bytes back itself.
    reads_end: bool,
    /// Whether the last part was given, and the file has not been compared with its version since.
    is_unchecked: bool,
    /// The number of reads that needed a thread, because the kernel did not have the bytes in memory.
    thread_reads: u64,
}

type ReadFuture = Pin<Box<dyn Future<Output = Result<Bytes, FileBodyError>> + Send>>;

/// A piece of a body, as bytes or as a part of the file.
#[derive(Debug)]
pub enum FilePiece {
    /// Bytes that were read into memory.
    Bytes(Bytes),
    /// A part of the file that is in the kernel's memory, and that the kernel should send.
    Part(FilePart),
}

/// A part of an open file, which the kernel can send itself.
#[derive(Clone, Debug)]
pub struct FilePart {
    /// The open file.
    pub fd: Arc<OwnedFd>,
    /// The offset of the part in the file, in bytes.
    pub from: u64,
    /// The length of the part in bytes.
    pub len: usize,
}

/// Why the rest of a body cannot be read.
#[derive(Debug, Error)]
pub enum FileBodyError {
    /// The file is no longer the version that the response's head has announced.
    #[error("the file was changed while it was sent")]
    Changed,
    /// The kernel could not read the file.
    #[error("the file cannot be read: {0}")]
    Read(io::Error),
    /// Too many requests wait for the disk.
    #[error(transparent)]
    Busy(#[from] ThreadsBusy),
}

impl FileBody {
    /// Makes the body of a response, whose segments it takes out of `sending`. A HEAD has no body.
    #[must_use]
    pub fn new(file: &FoundFile, sending: &mut FileSending, threads: &FileThreads) -> Self {
        let mut segments = std::mem::take(&mut sending.segments);
        let fd = match &file.content {
            FileContent::Open(fd) => Some(Arc::clone(fd)),
            FileContent::Memory(body) => {
                for segment in &mut segments {
                    segment.fill(&body.bytes);
                }
                None
            }
        };
        Self::with(fd, segments, file, threads)
    }

    /// The number of reads that needed a thread because the kernel did not have the bytes in memory.
    #[must_use]
    pub fn thread_reads(&self) -> u64 {
        self.thread_reads
    }

    /// Whether the body can be read with one call, so that all of it is there before its head is sent.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.segments.iter().map(Segment::len).sum::<u64>() <= PIECE_MAX as u64
    }

    /// Makes a body of these bytes, which are in memory.
    #[must_use]
    pub fn of_bytes(file: &FoundFile, bytes: Bytes, threads: &FileThreads) -> Self {
        let segments = VecDeque::from([Segment::Text(bytes)]);
        Self::with(None, segments, file, threads)
    }

    fn with(
        fd: Option<Arc<OwnedFd>>,
        segments: VecDeque<Segment>,
        file: &FoundFile,
        threads: &FileThreads,
    ) -> Self {
        let mut body = Self {
            fd,
            facts: *file.facts(),
            segments,
            threads: threads.clone(),
            reading: None,
            warming: None,
            given: 0,
            reads_end: false,
            is_unchecked: false,
            thread_reads: 0,
        };
        body.reads_end = body.left_in_file() > WINDOW_MAX as u64;
        body
    }

    /// Whether the whole body is in memory.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.all(|it| matches!(it, Segment::Text(_)))
    }

    /// The bytes of the body, if all of them are in memory in one piece.
    #[must_use]
    pub fn loaded(&self) -> Option<&Bytes> {
        match self.segments.front() {
            Some(Segment::Text(bytes)) if self.segments.len() == 1 => Some(bytes),
            _ => None,
        }
    }

    /// Reads all of a small body into memory, so that it is of a single version.
    ///
    /// # Errors
    /// The file was changed in the meantime, or cannot be read.
    pub async fn load(&mut self) -> Result<(), FileBodyError> {
        let mut loaded = VecDeque::new();
        while let Some(piece) = poll_fn(|cx| self.poll_next(cx)).await? {
            loaded.push_back(Segment::Text(piece));
        }
        self.segments = loaded;
        Ok(())
    }

    /// Reads the next piece; `None` at the end.
    ///
    /// # Errors
    /// The rest of the body cannot be read; the response must be cut.
    pub fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, FileBodyError>> {
        let piece = match &mut self.reading {
            Some(reading) => {
                let read = ready!(reading.as_mut().poll(cx));
                self.reading = None;
                self.take(read?)?
            }
            None if self.given >= TURN_MAX => {
                // The event loop serves other connections first.
                self.given = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            None => match self.segments.pop_front() {
                None => return Poll::Ready(Ok(None)),
                Some(Segment::Text(text)) => text,
                Some(Segment::File { len: 0, .. }) => return self.poll_next(cx),
                Some(Segment::File { from, len }) => {
                    self.segments.push_front(Segment::File { from, len });
                    match self.read_from_memory(from, len)? {
                        Some(piece) => piece,
                        None => return self.poll_next(cx),
                    }
                }
            },
        };
        self.given += piece.len();
        Poll::Ready(Ok(Some(piece)))
    }

    /// Gives the next piece to a connection to which the kernel can send a file itself; `None` at the end. If the file
    /// is changed meanwhile, there is no end: of a long file the last bytes are read and checked here, and a sender of
    /// a single part holds the last segment back until the end.
    ///
    /// # Errors
    /// The rest of the body cannot be read; the response must be cut.
    pub fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<FilePiece>, FileBodyError>> {
        if let Some((warming, window)) = &mut self.warming {
            let warmed = *window;
            ready!(warming.as_mut().poll(cx))?;
            self.warming = None;
            return Poll::Ready(Ok(self.take_part(warmed)));
        }
        if std::mem::take(&mut self.is_unchecked) {
            self.check_version()?;
        }
        let (from, len) = match self.segments.front() {
            Some(Segment::File { from, len }) if self.reading.is_none() && *len > COPIED_MAX => {
                (*from, *len)
            }
            _ => {
                let piece = ready!(self.poll_next(cx))?;
                return Poll::Ready(Ok(piece.map(FilePiece::Bytes)));
            }
        };
        if self.given >= TURN_MAX {
            // The event loop serves other connections first.
            self.given = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let copied_end = if self.reads_end { COPIED_MAX } else { 0 };
        let sent_by_kernel = usize::try_from(len - copied_end).unwrap_or(WINDOW_MAX);
        let window = sent_by_kernel.min(WINDOW_MAX);
        let last = from + window as u64 - 1;
        if self.is_in_memory(from)? && self.is_in_memory(last)? {
            return Poll::Ready(Ok(self.take_part(window)));
        }
        self.begin_warming(from, window)?;
        self.poll_piece(cx)
    }

    /// Begins to make a thread read a window of the file, so that the kernel has it in memory.
    fn begin_warming(&mut self, from: u64, window: usize) -> Result<(), FileBodyError> {
        let (fd, threads) = (Arc::clone(self.file()?), self.threads.clone());
        self.thread_reads += 1;
        let warming = Box::pin(async move {
            let read = threads
                .run(move |_| warm_blocking(&fd, from, window))
                .await?;
            read.map(|()| Bytes::new())
        });
        self.warming = Some((warming, window));
        Ok(())
    }

    /// Whether the kernel has this byte in memory. The pages between the first and the last byte of a window were read
    /// together with them, except for those that the kernel has dropped since.
    fn is_in_memory(&self, offset: u64) -> Result<bool, FileBodyError> {
        let mut byte = [0];
        let mut slices = [IoSliceMut::new(&mut byte)];
        match preadv2(self.file()?, &mut slices, offset, ReadWriteFlags::NOWAIT) {
            // The file has become shorter.
            Ok(0) => Err(FileBodyError::Changed),
            Ok(_) => Ok(true),
            // Not in memory, or a file system that cannot tell.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => Ok(false),
            Err(error) => Err(FileBodyError::Read(error.into())),
        }
    }

    /// The open file; fails if there is none.
    fn file(&self) -> Result<&Arc<OwnedFd>, FileBodyError> {
        let closed = || FileBodyError::Read(Errno::BADF.into());
        self.fd.as_ref().ok_or_else(closed)
    }

    /// Takes the next `window` bytes of the file as a part.
    fn take_part(&mut self, window: usize) -> Option<FilePiece> {
        let fd = Arc::clone(self.fd.as_ref()?);
        let Some(Segment::File { from, .. }) = self.segments.front() else {
            return None;
        };
        let part = FilePart {
            fd,
            from: *from,
            len: window,
        };
        self.advance(window as u64);
        self.given += window;
        self.is_unchecked = self.left_in_file() == 0;
        Some(FilePiece::Part(part))
    }

    /// Reads the beginning of a part from the kernel's memory; `None` if a thread must read it.
    fn read_from_memory(&mut self, from: u64, len: u64) -> Result<Option<Bytes>, FileBodyError> {
        let mut piece = vec![0; usize::try_from(len).unwrap_or(PIECE_MAX).min(PIECE_MAX)];
        let mut slices = [IoSliceMut::new(&mut piece)];
        match preadv2(self.file()?, &mut slices, from, ReadWriteFlags::NOWAIT) {
            Ok(read) => {
                piece.truncate(read);
                self.take(piece.into()).map(Some)
            }
            // Not in memory, or a file system that cannot tell.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => {
                let fd = Arc::clone(self.file()?);
                let threads = self.threads.clone();
                self.thread_reads += 1;
                self.reading = Some(Box::pin(async move {
                    let read = threads
                        .run(move |_| read_blocking(&fd, from, piece))
                        .await?;
                    read.map_err(FileBodyError::Read)
                }));
                Ok(None)
            }
            Err(error) => Err(FileBodyError::Read(error.into())),
        }
    }

    /// Advances past the bytes of `piece`, which were read. The last piece is returned only if the file is
    /// still the same version.
    fn take(&mut self, piece: Bytes) -> Result<Bytes, FileBodyError> {
        if piece.is_empty() {
            // The file has become shorter.
            return Err(FileBodyError::Changed);
        }
        self.advance(piece.len() as u64);
        if self.left_in_file() == 0 {
            self.check_version()?;
        }
        Ok(piece)
    }

    /// Records that `bytes` more bytes of the file were given.
    fn advance(&mut self, bytes: u64) {
        if let Some(Segment::File { from, len }) = self.segments.front_mut() {
            *from += bytes;
            *len = len.saturating_sub(bytes);
            if *len == 0 {
                self.segments.pop_front();
            }
        }
    }

    /// How many bytes of the file are still to be given.
    fn left_in_file(&self) -> u64 {
        let lengths = self.segments.iter().map(|segment| match segment {
            Segment::File { len, .. } => *len,
            Segment::Text(_) => 0,
        });
        lengths.sum()
    }

    /// Checks that the file is still the announced version.
    fn check_version(&self) -> Result<(), FileBodyError> {
        if !self.facts.hold(self.file()?) {
            return Err(FileBodyError::Changed);
        }
        Ok(())
    }
}

/// Reads a piece and waits for the disk; returns less only at the file's end.
fn read_blocking(fd: &OwnedFd, from: u64, mut piece: Vec<u8>) -> io::Result<Bytes> {
    let mut filled = 0;
    while filled < piece.len() {
        match pread(fd, &mut piece[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    piece.truncate(filled);
    Ok(piece.into())
}

/// Makes the kernel read a window of the file into memory, and blocks until the disk has delivered it.
fn warm_blocking(fd: &OwnedFd, from: u64, len: usize) -> Result<(), FileBodyError> {
    // Without read-ahead: the sender would have to wait for bytes beyond the window.
    fadvise(fd, 0, None, Advice::Random).ok();
    let mut scratch = vec![0; len.min(PIECE_MAX)];
    let mut done = 0;
    while done < len {
        let wanted = scratch.len().min(len - done);
        match pread(fd, &mut scratch[..wanted], from + done as u64) {
            Ok(0) => return Err(FileBodyError::Changed),
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(FileBodyError::Read(error.into())),
        }
    }
    Ok(())
}

impl fmt::Debug for FileBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileBody")
            .field("facts", &self.facts)
            .field("segments", &self.segments)
            .finish_non_exhaustive()
    }
}

/// The largest piece that is read at a time, in bytes.
const PIECE_MAX: usize = 64 * 1024;

/// The largest part that the kernel sends at a time, and so the most that a thread must read before it, in bytes.
const WINDOW_MAX: usize = 256 * 1024;

/// The largest part that is read instead of sent by the kernel; also the length of the end that is read.
const COPIED_MAX: u64 = 4 * 1024;

/// The bytes after which the event loop serves other connections.
const TURN_MAX: usize = 1024 * 1024;

#[cfg(test)]
mod tests;
