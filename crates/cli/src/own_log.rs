//! What this process writes to standard error: events, messages and panics.
//!
//! Commands that serve put their lines into a queue, so that neither a request nor the end waits for a
//! slow reader; `main` has the queue written before it returns. Other commands write at once.

mod limit;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{Arguments, Display};
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;
use std::{panic, thread};

use catamaran_proxy::LineQueue;
pub(crate) use limit::Limit;

/// Writes to standard error, or to the queue before it if [`queue`] was called.
pub(crate) struct OwnLog;

/// The last handle of the log: dropping it writes what the queue still has. It does not wait if nobody reads standard
/// error.
pub(crate) struct Rest {
    queue: LineQueue,
    limit: Limit,
}

/// Makes everything that is written from now on go through a queue, and has a thread report what `limit`
/// leaves out. Call it only once.
///
/// # Errors
/// The system refuses a thread or a file descriptor.
pub(crate) fn queue(limit: Limit) -> io::Result<Rest> {
    let started = LineQueue::start("own", io::stderr().as_fd().try_clone_to_owned()?)?;
    let queue = QUEUE.get_or_init(|| started).clone();
    panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::capture();
        let shown = match backtrace.status() {
            BacktraceStatus::Captured => format!("\n{backtrace}"),
            _ => String::new(),
        };
        let thread = thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        // The thread ends in any case, whether standard error can be written to or not.
        say(format_args!("\nthread '{name}' {panic}{shown}")).ok();
    }));
    // Writing to the queue never fails.
    limit.watch(|line| drop(say(line)))?;
    Ok(Rest { queue, limit })
}

/// The queue before standard error; `None` if [`queue`] was not called.
pub(crate) fn queued() -> Option<LineQueue> {
    QUEUE.get().cloned()
}

/// Writes one line.
///
/// # Errors
/// Standard error cannot be written to. Writing to a queue never fails.
pub(crate) fn say(line: impl Display) -> io::Result<()> {
    OwnLog.write_fmt(format_args!("{line}\n"))
}

impl Write for OwnLog {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        match QUEUE.get() {
            Some(queue) => {
                queue.put(lines);
                Ok(lines.len())
            }
            None => io::stderr().write(lines),
        }
    }

    /// Writes the text as one piece, so that the output of other threads does not come in between.
    fn write_fmt(&mut self, words: Arguments<'_>) -> io::Result<()> {
        self.write_all(words.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        for line in self.limit.rest() {
            // Writing to the queue never fails.
            say(line).ok();
        }
        self.queue.finish();
    }
}

static QUEUE: OnceLock<LineQueue> = OnceLock::new();
