//! What this process says on standard error: events, messages, panics.
//!
//! Commands that serve put their lines in a queue, so that neither a request nor the end waits for
//! a slow reader; `main` has the queue written before it returns. Other commands write at once.

mod limit;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{Arguments, Display};
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;
use std::{panic, thread};

use catamaran_proxy::LineQueue;
pub(crate) use limit::Limit;

/// Standard error, or the queue before it.
pub(crate) struct OwnLog;

/// Dropped, it waits until the queue is written, unless nobody reads it.
pub(crate) struct Rest {
    queue: LineQueue,
    limit: Limit,
}

/// From now on what is said goes through a queue, and so does what `limit` leaves out. To be called once.
///
/// # Errors
/// There is no thread for it.
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
        // The thread ends whether this is read or not.
        say(format_args!("\nthread '{name}' {panic}{shown}")).ok();
    }));
    // A queue has no errors.
    limit.watch(|line| drop(say(line)))?;
    Ok(Rest { queue, limit })
}

/// The queue, if there is one.
pub(crate) fn queued() -> Option<LineQueue> {
    QUEUE.get().cloned()
}

/// Says a line.
///
/// # Errors
/// Standard error cannot be written. A queue has no errors.
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

    /// As one piece, so that no other thread's words come between.
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
            // A queue has no errors.
            say(line).ok();
        }
        self.queue.finish();
    }
}

static QUEUE: OnceLock<LineQueue> = OnceLock::new();
