//! A log whose lines wait in memory for the thread that writes them, so that threads which serve requests never
//! wait for the log's reader.
//!
//! Putting a line in copies it. The queue has a limit: while the target accepts nothing (a pipe that nobody
//! reads, a terminal that is stopped) further lines are dropped and counted. Once the target accepts lines
//! again, the front's log says how many are missing.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::lock::lock;
use crate::log_target::{END_MAX, LOOK_EVERY, LogTarget, Progress};

/// A log for whole lines. Clones share the log; its thread ends when the last clone is dropped.
#[derive(Clone)]
pub struct LineQueue(Arc<Handle>);

/// Closes the queue when the last clone of the log is dropped; the thread has a reference of its own.
struct Handle(Arc<Queue>);

struct Queue {
    /// The name of the log, in the line that says how many lines are missing.
    name: &'static str,
    state: Mutex<QueueState>,
    /// Wakes the thread when there is something to write.
    news: Condvar,
    /// Wakes [`LineQueue::finish`] when everything is written.
    idle: Condvar,
    progress: Progress,
    dropped: AtomicU64,
    lost: AtomicU64,
}

#[derive(Default)]
struct QueueState {
    lines: Vec<u8>,
    /// How many times lines were dropped since the thread last took lines.
    dropped: u64,
    /// Whether the thread waits for lines, since everything is written.
    is_idle: bool,
    /// Whether the last clone of the log was dropped, so that no more lines can come.
    is_closed: bool,
}

impl LineQueue {
    /// Starts a thread that writes the log called `name` to `target`, such as standard error.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(name: &'static str, target: OwnedFd) -> io::Result<Self> {
        Self::start_at(name, target.into())
    }

    /// Starts a thread as [`Self::start`] does, for a target that is opened already.
    pub(crate) fn start_at(name: &'static str, target: LogTarget) -> io::Result<Self> {
        let queue = Arc::new(Queue {
            name,
            state: Mutex::default(),
            news: Condvar::new(),
            idle: Condvar::new(),
            progress: Progress::new(),
            dropped: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let queue_of_thread = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || queue_of_thread.write_to(target))?;
        Ok(Self(Arc::new(Handle(queue))))
    }

    /// Adds whole lines, or drops them if the queue is full. Never waits for the target.
    pub fn put(&self, lines: &[u8]) {
        let queue = self.queue();
        let mut state = queue.lock();
        if state.lines.len() + lines.len() > QUEUE_MAX {
            state.dropped += 1;
            queue.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.lines.extend_from_slice(lines);
        if std::mem::take(&mut state.is_idle) {
            queue.news.notify_one();
        }
    }

    /// How many times lines were dropped because the target was too slow.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue().dropped.load(Ordering::Relaxed)
    }

    /// How many lines could not be written, such as to a full disk.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.queue().lost.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, for 10 seconds at most. Returns `false` as soon as the target has
    /// accepted nothing for 2 seconds: what is not written is lost if the process ends.
    pub fn finish(&self) -> bool {
        let queue = self.queue();
        let mut state = queue.lock();
        let mut looks_left = END_MAX.as_millis() / LOOK_EVERY.as_millis();
        loop {
            if state.is_idle {
                return true;
            }
            if looks_left == 0 || queue.progress.is_stuck() {
                return false;
            }
            looks_left -= 1;
            let waited = queue.idle.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn queue(&self) -> &Queue {
        &self.0.0
    }
}

/// A writer that never fails or waits. Each write must be one or more whole lines, as `tracing_subscriber` and
/// [`catamaran_tls::KeyLog`] write them.
impl io::Write for LineQueue {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.put(lines);
        Ok(lines.len())
    }

    /// Does nothing; [`LineQueue::finish`] waits for the lines to be written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for LineQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LineQueue")
            .field(&self.queue().name)
            .finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.news.notify_one();
    }
}

impl Queue {
    /// Writes the queue's lines to `target` until the last clone of the log is dropped.
    fn write_to(&self, mut target: LogTarget) {
        let mut lines = Vec::new();
        while let Some(dropped) = self.take(&mut lines) {
            if let Err(failure) = target.write(&lines, &self.progress) {
                self.lost.fetch_add(failure.lost, Ordering::Relaxed);
            }
            lines.clear();
            lines.shrink_to(KEPT);
            if dropped > 0 {
                // If this is the front's own log, the warning becomes one of its lines.
                tracing::warn!(
                    dropped,
                    log = self.name,
                    "lines of a log were dropped: nobody read them in time"
                );
            }
        }
    }

    /// Waits for lines and takes all of them. Returns how many were dropped after them; `None` when the log has
    /// ended.
    fn take(&self, lines: &mut Vec<u8>) -> Option<u64> {
        let mut state = self.lock();
        while state.lines.is_empty() {
            state.is_idle = true;
            self.idle.notify_all();
            if state.is_closed {
                return None;
            }
            let waited = self.news.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.is_idle = false;
        std::mem::swap(&mut state.lines, lines);
        Some(std::mem::take(&mut state.dropped))
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }
}

/// The most bytes that may wait: some thousand lines.
const QUEUE_MAX: usize = 1024 * 1024;

/// Bytes of memory that the queue keeps after its lines are written.
const KEPT: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, PipeReader};

    use catamaran_testkit::Deadline;

    use super::*;

    fn queue() -> (LineQueue, BufReader<PipeReader>) {
        let (reader, writer) = io::pipe().unwrap();
        let queue = LineQueue::start("test", writer.into()).unwrap();
        (queue, BufReader::new(reader))
    }

    #[test]
    fn every_line_arrives_in_order_if_it_is_read() {
        let (queue, reader) = queue();
        let read = std::thread::spawn(move || reader.lines().collect::<Result<Vec<_>, _>>());
        for number in 0..20_000 {
            queue.put(format!("{number}\n").as_bytes());
        }
        // A reader that stands still for a while has the end give up meanwhile.
        let is_written = || queue.finish().then_some(());
        Deadline::default().poll("all lines", is_written).unwrap();
        assert_eq!((queue.dropped(), queue.lost()), (0, 0));
        // The thread closes the pipe.
        drop(queue);
        let read = read.join().unwrap().unwrap();
        assert!(read.into_iter().eq((0..20_000).map(|it| it.to_string())));
    }

    #[test]
    fn what_nobody_reads_is_dropped_counted_and_not_waited_for() {
        let (queue, mut reader) = queue();
        let line = "x".repeat(999) + "\n";
        let mut put = 0_u64;
        while queue.dropped() < 5 {
            queue.put(line.as_bytes());
            put += 1;
            assert!(put < 1_000_000, "the queue has a limit");
        }
        let dropped = queue.dropped();
        assert!(!queue.finish(), "the target is stuck");
        // All that was not dropped comes, once it is read.
        for _ in 0..put - dropped {
            let mut read = String::new();
            reader.read_line(&mut read).unwrap();
            assert_eq!(read, line);
        }
        assert!(queue.finish());
        assert_eq!((queue.dropped(), queue.lost()), (dropped, 0));
    }

    #[test]
    fn a_reader_that_left_is_no_reason_to_stop() {
        let (queue, reader) = queue();
        drop(reader);
        for count in 1..4 {
            queue.put(b"a line\n");
            assert!(queue.finish());
            assert_eq!(queue.lost(), count);
        }
    }
}
