//! The access log: one line for each exchange, written off the hot path.
//!
//! A worker formats its line into a buffer of its own; a thread empties the buffers a few times a
//! second and writes. If the disk or the pipe does not keep up, a buffer reaches its limit and
//! further lines are dropped and counted: a full disk must not slow a request. The thread is
//! stopped, and the rest written, by [`AccessLog::finish`].

mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::config::{AccessLogFormat, AccessLogTarget, LogConfig};
use line::Stamp;
pub(crate) use line::{Record, RequestLine};

/// The log, shared by all workers.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: AccessLogFormat,
    /// A buffer for each worker; `None` if nothing is logged.
    buffers: Option<Arc<[Mutex<Buffer>]>>,
    dropped: AtomicU64,
    writer: Mutex<Option<Writer>>,
}

#[derive(Debug, Default)]
struct Buffer {
    lines: Vec<u8>,
    stamp: Stamp,
}

#[derive(Debug)]
struct Writer {
    thread: JoinHandle<()>,
    stop: SyncSender<()>,
}

impl AccessLog {
    /// Opens the target and starts the writing thread.
    pub(crate) fn open(config: &LogConfig, workers: usize) -> io::Result<Self> {
        let sink: Box<dyn Write + Send> = match &config.access {
            AccessLogTarget::Off => {
                return Ok(Self {
                    format: config.format,
                    buffers: None,
                    dropped: AtomicU64::new(0),
                    writer: Mutex::new(None),
                });
            }
            AccessLogTarget::Stdout => Box::new(io::stdout()),
            AccessLogTarget::File(path) => Box::new(append_to(path)?),
        };
        let buffers: Arc<[_]> = (0..workers)
            .map(|_| Mutex::new(Buffer::default()))
            .collect();
        let (stop, stopped) = sync_channel(1);
        let emptied = Arc::clone(&buffers);
        let thread = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_lines(&emptied, sink, &stopped))?;
        Ok(Self {
            format: config.format,
            buffers: Some(buffers),
            dropped: AtomicU64::new(0),
            writer: Mutex::new(Some(Writer { thread, stop })),
        })
    }

    /// Whether lines go anywhere, so that a record need not be gathered in vain.
    pub(crate) fn is_on(&self) -> bool {
        self.buffers.is_some()
    }

    /// Adds a line from `worker`.
    pub(crate) fn write(&self, worker: usize, record: &Record<'_>) {
        let Some(buffer) = self
            .buffers
            .as_ref()
            .and_then(|buffers| buffers.get(worker))
        else {
            return;
        };
        let mut buffer = lock(buffer);
        if buffer.lines.len() >= BUFFER_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Buffer { lines, stamp } = &mut *buffer;
        record.append(self.format, stamp, lines);
    }

    /// Lines dropped because writing did not keep up.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes what is left and stops the thread.
    pub(crate) fn finish(&self) {
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(Writer { thread, stop }) = writer {
            stop.send(()).ok();
            if thread.join().is_err() {
                tracing::error!("the access log's thread panicked; its last lines are lost");
            }
        }
    }
}

fn append_to(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn write_lines(buffers: &[Mutex<Buffer>], mut sink: impl Write, stopped: &Receiver<()>) {
    let mut lines = Vec::new();
    let mut failing = false;
    loop {
        let stop = !matches!(stopped.recv_timeout(PERIOD), Err(RecvTimeoutError::Timeout));
        for buffer in buffers {
            std::mem::swap(&mut lock(buffer).lines, &mut lines);
            let written = sink.write_all(&lines).and_then(|()| sink.flush());
            lines.clear();
            lines.shrink_to(BUFFER_KEPT);
            match written {
                Err(error) if !failing => {
                    failing = true;
                    tracing::error!(%error, "cannot write the access log; lines are being lost");
                }
                Err(_) => {}
                Ok(()) => failing = false,
            }
        }
        if stop {
            return;
        }
    }
}

fn lock(buffer: &Mutex<Buffer>) -> MutexGuard<'_, Buffer> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often buffers are emptied.
const PERIOD: Duration = Duration::from_millis(200);

/// Bytes a worker may have waiting; some seconds' worth at full load.
const BUFFER_MAX: usize = 4 * 1024 * 1024;

/// Bytes of memory an emptied buffer keeps.
const BUFFER_KEPT: usize = 256 * 1024;

#[cfg(test)]
mod tests;
