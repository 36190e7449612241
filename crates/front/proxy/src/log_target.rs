//! The file, pipe or FIFO that the lines of a log are written to, and the progress of the thread that writes
//! them.
//!
//! Only the log's own thread writes to a target: a write to a pipe that nobody reads, or to a disk that hangs,
//! does not return. Other threads ask [`Progress`] whether that thread is stuck, and never wait for it then.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::time::Instant;

/// An opened file, pipe or FIFO that whole lines are written to.
#[derive(Debug)]
pub(crate) struct LogTarget {
    file: File,
    /// Whether the last write ended in the middle of a line.
    is_torn: bool,
}

/// The error that lines could not be written, for example because a disk is full or a pipe has no reader.
#[derive(Debug)]
pub(crate) struct WriteFailure {
    pub(crate) error: io::Error,
    /// How many lines were not written to their end.
    pub(crate) lost: u64,
}

impl LogTarget {
    /// Opens a file to append lines to it. If it does not exist it is made, with the permissions `mode` less the
    /// umask. A FIFO needs no reader, neither to be opened nor to be written to.
    pub(crate) fn append_to(path: &Path, mode: u32) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let metadata = path.metadata();
        if metadata.is_ok_and(|metadata| metadata.file_type().is_fifo()) {
            // Opened for reading, too: that does not wait for a reader (fifo(7)).
            let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
            options.read(true).write(true).custom_flags(flags);
        } else {
            options.create(true).append(true).mode(mode);
        }
        options.open(path).map(Self::new)
    }

    fn new(file: File) -> Self {
        let is_torn = false;
        Self { file, is_torn }
    }

    /// Writes whole lines. After a failure, the rest of them is lost.
    pub(crate) fn write(&mut self, lines: &[u8], progress: &Progress) -> Result<(), WriteFailure> {
        if self.is_torn && !lines.is_empty() {
            // Ends the line that was cut, so that the next one can be read.
            self.is_torn = progress.during(|| self.write_some(b"\n")).is_err();
        }
        let mut unwritten = lines;
        while !unwritten.is_empty() {
            let chunk = &unwritten[..unwritten.len().min(CHUNK)];
            let error = match progress.during(|| self.write_some(chunk)) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(written) => {
                    self.is_torn = unwritten[written - 1] != b'\n';
                    unwritten = &unwritten[written..];
                    continue;
                }
                Err(error) => error,
            };
            return Err(WriteFailure {
                error,
                lost: memchr::memchr_iter(b'\n', unwritten).count() as u64,
            });
        }
        Ok(())
    }

    /// Writes some of the bytes and returns how many. A FIFO is non-blocking, and so is a pipe or a terminal that another
    /// process has made so.
    fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = &self.file;
        when_there_is_room(&self.file, || file.write(bytes))
    }
}

/// Writes to a target, and returns how many bytes it took. If it is non-blocking and full, waits for [`FULL_PATIENCE`]
/// at most.
pub(crate) fn when_there_is_room(
    target: &impl AsFd,
    mut write: impl FnMut() -> io::Result<usize>,
) -> io::Result<usize> {
    // The clock is asked only if the target is full.
    let mut deadline = None;
    loop {
        match write() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let end = deadline.get_or_insert_with(|| Instant::now() + FULL_PATIENCE);
                wait_for_room(target, *end)?;
            }
            result => return result,
        }
    }
}

/// Waits until the target has room for bytes.
///
/// # Errors
/// `TimedOut`: it has none at `end`.
fn wait_for_room(target: &impl AsFd, end: Instant) -> io::Result<()> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let patience = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut polled_target = [PollFd::new(target, PollFlags::OUT)];
        match poll(&mut polled_target, Some(&patience)) {
            Ok(0) => {
                let nobody = "nobody reads what is written";
                return Err(io::Error::new(io::ErrorKind::TimedOut, nobody));
            }
            // A signal, such as that which opens the log anew.
            Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

impl From<OwnedFd> for LogTarget {
    fn from(descriptor: OwnedFd) -> Self {
        Self::new(descriptor.into())
    }
}

/// The progress of a writing thread, by which others decide whether to wait for it.
#[derive(Debug)]
pub(crate) struct Progress {
    began: Instant,
    /// When the write under way began, in milliseconds after `began`; [`NOT_WRITING`] without one.
    writing_since: AtomicU64,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            writing_since: AtomicU64::new(NOT_WRITING),
        }
    }

    /// Whether a write has not returned for [`STUCK_AFTER`], so that others should not wait for the thread.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck_at(self.millis())
    }

    /// Whether the thread [is stuck](Self::is_stuck) at `now`, in milliseconds after `began`.
    fn is_stuck_at(&self, now: u64) -> bool {
        let since = self.writing_since.load(Ordering::Relaxed);
        let limit = u64::try_from(STUCK_AFTER.as_millis()).unwrap_or(u64::MAX);
        since != NOT_WRITING && now.saturating_sub(since) >= limit
    }

    /// Notes that a write is under way while `write` runs.
    pub(crate) fn during<T>(&self, write: impl FnOnce() -> T) -> T {
        self.writing_since.store(self.millis(), Ordering::Relaxed);
        let written = write();
        self.writing_since.store(NOT_WRITING, Ordering::Relaxed);
        written
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(NOT_WRITING)
    }
}

/// How often a waiting thread checks whether the writing thread is stuck.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The longest time for which the end of the process waits for a thread that is slow, but not stuck.
pub(crate) const END_MAX: Duration = Duration::from_secs(10);

/// How long one write may take before other threads stop waiting for it.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// The most bytes of one write: few enough for a slow reader to take within [`STUCK_AFTER`].
const CHUNK: usize = 16 * 1024;

/// How long a write waits for a full target before its lines are lost.
const FULL_PATIENCE: Duration = Duration::from_millis(500);

const NOT_WRITING: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn lines_after_a_torn_one_begin_a_line() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut target = LogTarget::from(OwnedFd::from(writer));
        let progress = Progress::new();
        target.write(b"one\nbegun", &progress).unwrap();
        target.write(b"two\n", &progress).unwrap();
        drop(target);
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, "one\nbegun\ntwo\n");
    }

    #[test]
    fn a_reader_that_left_and_a_full_disk_are_told_with_what_was_lost() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        for descriptor in [OwnedFd::from(writer), OwnedFd::from(full)] {
            let mut target = LogTarget::from(descriptor);
            let failure = target.write(b"one\ntwo\n", &Progress::new()).unwrap_err();
            assert_eq!(failure.lost, 2, "{failure:?}");
        }
    }

    #[test]
    fn only_a_write_that_does_not_return_is_stuck() {
        let progress = Progress::new();
        let limit = u64::try_from(STUCK_AFTER.as_millis()).unwrap();
        assert!(!progress.is_stuck_at(NOT_WRITING - 1), "nothing is written");
        progress.writing_since.store(7, Ordering::Relaxed);
        assert!(!progress.is_stuck_at(7 + limit - 1));
        assert!(progress.is_stuck_at(7 + limit));
        progress.during(|| ());
        assert!(!progress.is_stuck_at(7 + limit));
    }
}
