//! The access log: one line for each exchange, written off the hot path.
//!
//! A worker formats its line into a buffer of its own. One thread empties the buffers a few times a
//! second and writes. If the disk or the pipe is too slow, a buffer reaches its limit, and further
//! lines are dropped and counted, so that a full disk does not slow requests down. A reload opens the
//! target again, so a rotated file is closed. The new target is opened before anything changes.
//! [`AccessLog::finish`] writes what is left and stops the thread.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use catamaran_transport::PerWorker;
use line::Stamp;
pub(crate) use line::{Record, RequestLine, SessionLine};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::config::{AccessLogFormat, AccessLogTarget, LogConfig};

/// The log, shared by all workers.
#[derive(Debug)]
pub(crate) struct AccessLog {
    /// Whether the log is on. If it is off, no record is gathered.
    on: AtomicBool,
    json: AtomicBool,
    /// A buffer for each worker.
    buffers: Arc<PerWorker<Mutex<Buffer>>>,
    dropped: AtomicU64,
    /// Lines that could not be written.
    lost: Arc<AtomicU64>,
    /// What the present target was opened by.
    config: Mutex<Option<LogConfig>>,
    /// Locked only at starts, reloads and ends.
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
    /// Where to write from now on. Closing it ends the thread.
    sinks: SyncSender<Sink>,
}

/// What lines are written to.
type Sink = Box<dyn Write + Send>;

/// An opened target, not yet in use.
pub(crate) struct Opened {
    sink: Option<Sink>,
    config: LogConfig,
}

impl Opened {
    /// Opens the target.
    pub(crate) fn new(config: &LogConfig) -> io::Result<Self> {
        let sink: Option<Sink> = match &config.access {
            AccessLogTarget::Off => None,
            AccessLogTarget::Stdout => Some(Box::new(io::stdout())),
            AccessLogTarget::File(path) => Some(append_to(path)?),
        };
        Ok(Self {
            sink,
            config: config.clone(),
        })
    }
}

impl AccessLog {
    /// A log that is off.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            on: AtomicBool::new(false),
            json: AtomicBool::new(false),
            buffers: Arc::new(PerWorker::new(workers, |_| Mutex::default())),
            dropped: AtomicU64::new(0),
            lost: Arc::default(),
            config: Mutex::new(None),
            writer: Mutex::new(None),
        }
    }

    /// Writes to another target from now on. Lines that are waiting still go to the previous one.
    ///
    /// # Errors
    /// The thread that writes cannot be started; nothing changed.
    pub(crate) fn switch(&self, to: Opened) -> io::Result<()> {
        let format = to.config.format;
        *self.config() = Some(to.config);
        let Some(sink) = to.sink else {
            self.on.store(false, Ordering::Relaxed);
            self.finish();
            return Ok(());
        };
        let mut writer = self.lock();
        match &*writer {
            Some(writer) => writer.sinks.try_send(sink).map_err(|_| stuck())?,
            None => *writer = Some(Writer::start(self, sink)?),
        }
        self.json
            .store(format == AccessLogFormat::Json, Ordering::Relaxed);
        self.on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Opens the present target again, after its file has been moved away.
    ///
    /// # Errors
    /// The target cannot be opened; lines still go to where they went.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let config = self.config().clone();
        match config {
            Some(config) => self.switch(Opened::new(&config)?),
            None => Ok(()),
        }
    }

    fn config(&self) -> MutexGuard<'_, Option<LogConfig>> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the log is on. If it is off, no record is gathered.
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Adds a line from `worker`.
    pub(crate) fn write(&self, worker: usize, record: &Record<'_>) {
        if !self.is_on() {
            return;
        }
        let buffer = &self.buffers[worker];
        let mut buffer = lock(buffer);
        if buffer.lines.len() >= BUFFER_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let format = if self.json.load(Ordering::Relaxed) {
            AccessLogFormat::Json
        } else {
            AccessLogFormat::Combined
        };
        let Buffer { lines, stamp } = &mut *buffer;
        record.append(format, stamp, lines);
    }

    /// Lines dropped because writing did not keep up.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Lines that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes what is left and stops the thread.
    pub(crate) fn finish(&self) {
        let writer = self.lock().take();
        if let Some(Writer { thread, sinks }) = writer {
            drop(sinks);
            if thread.join().is_err() {
                tracing::error!("the access log's thread panicked; its last lines are lost");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn start(log: &AccessLog, sink: Sink) -> io::Result<Self> {
        let (sinks, next) = sync_channel(SINKS_MAX);
        let (buffers, lost) = (Arc::clone(&log.buffers), Arc::clone(&log.lost));
        let thread = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_lines(&buffers, sink, &next, &lost))?;
        Ok(Self { thread, sinks })
    }
}

fn stuck() -> io::Error {
    io::Error::other("writing to the target before this one has been stuck for long")
}

fn append_to(path: &Path) -> io::Result<Sink> {
    if path.metadata().is_ok_and(|is| is.file_type().is_fifo()) {
        return Ok(Box::new(Fifo::open(path)?));
    }
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(Box::new(file))
}

/// A FIFO, opened in a way that neither opening nor writing blocks when there is no reader or the
/// pipe is full.
struct Fifo(File);

impl Fifo {
    /// Opens it for reading, too, which needs no reader (fifo(7)).
    fn open(path: &Path) -> io::Result<Self> {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags);
        options.open(path).map(Self)
    }
}

impl Write for Fifo {
    /// Waits for a reader for [`FIFO_PATIENCE`] at most.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        match self.0.write(lines) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return written,
        }
        let mut fifo = [PollFd::new(&self.0, PollFlags::OUT)];
        if poll(&mut fifo, Some(&FIFO_PATIENCE))? == 0 {
            let nobody = "nobody reads from the FIFO";
            return Err(io::Error::new(io::ErrorKind::TimedOut, nobody));
        }
        self.0.write(lines)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(
    buffers: &PerWorker<Mutex<Buffer>>,
    mut sink: Sink,
    next: &Receiver<Sink>,
    lost: &AtomicU64,
) {
    let mut lines = Vec::new();
    let mut failing = false;
    loop {
        let said = next.recv_timeout(PERIOD);
        for buffer in buffers.iter() {
            std::mem::swap(&mut lock(buffer).lines, &mut lines);
            let written = sink.write_all(&lines).and_then(|()| sink.flush());
            if written.is_err() {
                let count = lines.iter().filter(|&&byte| byte == b'\n').count();
                lost.fetch_add(count as u64, Ordering::Relaxed);
            }
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
        match said {
            Ok(next) => sink = next,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn lock(buffer: &Mutex<Buffer>) -> MutexGuard<'_, Buffer> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a full FIFO is waited for before its lines are dropped.
const FIFO_PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// Reloads that may come while the thread is busy writing.
const SINKS_MAX: usize = 16;

/// How often buffers are emptied.
const PERIOD: Duration = Duration::from_millis(200);

/// Bytes a worker may have waiting; some seconds' worth at full load.
const BUFFER_MAX: usize = 4 * 1024 * 1024;

/// Bytes of memory an emptied buffer keeps.
const BUFFER_KEPT: usize = 256 * 1024;

#[cfg(test)]
mod tests;
