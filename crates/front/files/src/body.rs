//! Reads what is sent of a file, a piece at a time.

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

/// The body of a response, read while it is sent.
pub struct FileBody {
    /// `None` if all bytes are in memory.
    fd: Option<Arc<OwnedFd>>,
    /// The version that the head has announced.
    facts: FileFacts,
    segments: VecDeque<Segment>,
    threads: FileThreads,
    /// The read that a thread has under way.
    reading: Option<Reading>,
    /// The read-ahead into the kernel's memory that a thread has under way, and its bytes.
    warming: Option<(Reading, usize)>,
    /// Bytes given since others last had their turn.
    given: usize,
    /// Whether the end of a segment is read. A sender of one part alone holds the last bytes back.
    reads_end: bool,
    /// The kernel was given the last part, and the file was not looked at since.
    is_unproved: bool,
    /// The number of reads that needed a thread.
    thread_reads: u64,
}

type Reading = Pin<Box<dyn Future<Output = Result<Bytes, FileBodyError>> + Send>>;

/// A piece of a body.
#[derive(Debug)]
pub enum FilePiece {
    /// Bytes that were read.
    Bytes(Bytes),
    /// A part of the file that the kernel has in memory and is to send.
    Part(FilePart),
}

/// Bytes of a file.
#[derive(Clone, Debug)]
pub struct FilePart {
    /// The file.
    pub fd: Arc<OwnedFd>,
    /// Where they begin.
    pub from: u64,
    /// How many there are.
    pub len: usize,
}

/// Why the rest of a body cannot be read.
#[derive(Debug, Error)]
pub enum FileBodyError {
    /// The file is not the one any more that the head has announced.
    #[error("the file was changed while it was sent")]
    Changed,
    /// The kernel could not read it.
    #[error("the file cannot be read: {0}")]
    Read(io::Error),
    /// Too many wait for the disk.
    #[error(transparent)]
    Busy(#[from] ThreadsBusy),
}

impl FileBody {
    /// The body of such a response. A HEAD has none.
    #[must_use]
    pub fn new(file: &FoundFile, sending: &mut FileSending, threads: &FileThreads) -> Self {
        let mut segments = std::mem::take(&mut sending.segments);
        let fd = match &file.content {
            FileContent::Open(fd) => Some(Arc::clone(fd)),
            FileContent::Memory(body) => {
                segments.iter_mut().for_each(|it| it.fill(&body.bytes));
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

    /// Whether it is read with one call, so that all of it is there before its head is sent.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.segments.iter().map(Segment::len).sum::<u64>() <= PIECE_MAX as u64
    }

    /// A body of these bytes, which are in memory.
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
            is_unproved: false,
            thread_reads: 0,
        };
        body.reads_end = body.left_in_file() > WINDOW_MAX as u64;
        body
    }

    /// Whether all of it is in memory.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.all(|it| matches!(it, Segment::Text(_)))
    }

    /// The bytes, if all of them are in memory in one piece.
    #[must_use]
    pub fn loaded(&self) -> Option<&Bytes> {
        match self.segments.front() {
            Some(Segment::Text(bytes)) if self.segments.len() == 1 => Some(bytes),
            _ => None,
        }
    }

    /// Takes all of a small body into memory: it is of one version then.
    ///
    /// # Errors
    /// The file was changed meanwhile, or cannot be read.
    pub async fn load(&mut self) -> Result<(), FileBodyError> {
        let mut loaded = VecDeque::new();
        while let Some(piece) = poll_fn(|cx| self.poll_next(cx)).await? {
            loaded.push_back(Segment::Text(piece));
        }
        self.segments = loaded;
        Ok(())
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// The rest of the body will not come.
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
                // Others have their turn.
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
                    match self.read(from, len)? {
                        Some(piece) => piece,
                        None => return self.poll_next(cx),
                    }
                }
            },
        };
        self.given += piece.len();
        Poll::Ready(Ok(Some(piece)))
    }

    /// The next piece for a connection to which the kernel can send it itself; `None` at the end. There is no end if the
    /// file was changed meanwhile: of a long one the last bytes are read, and a sender of a part that is all there is
    /// holds the last segment back until then.
    ///
    /// # Errors
    /// The rest of the body will not come.
    pub fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<FilePiece>, FileBodyError>> {
        if let Some((warming, len)) = &mut self.warming {
            let len = *len;
            ready!(warming.as_mut().poll(cx))?;
            self.warming = None;
            return Poll::Ready(Ok(self.part(len)));
        }
        if std::mem::take(&mut self.is_unproved) {
            self.prove()?;
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
            // Others have their turn.
            self.given = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let end = if self.reads_end { COPIED_MAX } else { 0 };
        let left = usize::try_from(len - end).unwrap_or(WINDOW_MAX);
        let window = left.min(WINDOW_MAX);
        let last = from + window as u64 - 1;
        if self.is_in_memory(from)? && self.is_in_memory(last)? {
            return Poll::Ready(Ok(self.part(window)));
        }
        let (fd, threads) = (Arc::clone(self.file()?), self.threads.clone());
        self.thread_reads += 1;
        let warming = Box::pin(async move {
            let read = threads
                .run(move |_| warm_blocking(&fd, from, window))
                .await?;
            read.map(|()| Bytes::new())
        });
        self.warming = Some((warming, window));
        self.poll_piece(cx)
    }

    /// Whether the kernel has this byte in memory. The pages between the first and the last of a window were
    /// read with them, but for those that it has dropped since.
    fn is_in_memory(&self, at: u64) -> Result<bool, FileBodyError> {
        let mut byte = [0];
        let mut slices = [IoSliceMut::new(&mut byte)];
        match preadv2(self.file()?, &mut slices, at, ReadWriteFlags::NOWAIT) {
            Ok(0) => Err(FileBodyError::Changed),
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => Ok(false),
            Err(error) => Err(FileBodyError::Read(error.into())),
        }
    }

    /// The descriptor of what is to be read.
    fn file(&self) -> Result<&Arc<OwnedFd>, FileBodyError> {
        let closed = || FileBodyError::Read(Errno::BADF.into());
        self.fd.as_ref().ok_or_else(closed)
    }

    /// The beginning of what comes next, as a part.
    fn part(&mut self, window: usize) -> Option<FilePiece> {
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
        self.is_unproved = self.left_in_file() == 0;
        Some(FilePiece::Part(part))
    }

    /// Reads the beginning of a part from the kernel's memory; `None` if a thread has to read it.
    fn read(&mut self, from: u64, len: u64) -> Result<Option<Bytes>, FileBodyError> {
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

    /// Takes account of what was read. The last piece is given only if the file is still the same.
    fn take(&mut self, piece: Bytes) -> Result<Bytes, FileBodyError> {
        if piece.is_empty() {
            // It has become shorter.
            return Err(FileBodyError::Changed);
        }
        self.advance(piece.len() as u64);
        if self.left_in_file() == 0 {
            self.prove()?;
        }
        Ok(piece)
    }

    /// Notes that `bytes` more bytes of the file were given.
    fn advance(&mut self, bytes: u64) {
        if let Some(Segment::File { from, len }) = self.segments.front_mut() {
            *from += bytes;
            *len = len.saturating_sub(bytes);
            if *len == 0 {
                self.segments.pop_front();
            }
        }
    }

    /// Bytes of the file that were not given.
    fn left_in_file(&self) -> u64 {
        let lengths = self.segments.iter().map(|segment| match segment {
            Segment::File { len, .. } => *len,
            Segment::Text(_) => 0,
        });
        lengths.sum()
    }

    /// Fails if the file is not the same any more.
    fn prove(&self) -> Result<(), FileBodyError> {
        if !self.facts.hold(self.file()?) {
            return Err(FileBodyError::Changed);
        }
        Ok(())
    }
}

/// Reads a piece, whatever it takes; less only at the file's end.
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

/// Has the kernel read a window into its memory.
fn warm_blocking(fd: &OwnedFd, from: u64, len: usize) -> Result<(), FileBodyError> {
    // The sender would have to wait for what is read ahead beyond the window.
    fadvise(fd, 0, None, Advice::Random).ok();
    let mut scratch = vec![0; len.min(PIECE_MAX)];
    let mut done = 0;
    while done < len {
        let piece = scratch.len().min(len - done);
        match pread(fd, &mut scratch[..piece], from + done as u64) {
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

/// The largest piece that is read at a time.
const PIECE_MAX: usize = 64 * 1024;

/// The largest part that the kernel sends at a time: what a thread may have to read before it.
const WINDOW_MAX: usize = 256 * 1024;

/// The largest part that is read, not worth the kernel's pipe, and the end that is.
const COPIED_MAX: u64 = 4 * 1024;

/// Bytes after which others have their turn.
const TURN_MAX: usize = 1024 * 1024;

#[cfg(test)]
mod tests;
