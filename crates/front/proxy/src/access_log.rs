//! The access log: one line for each exchange, written off the hot path.
//!
//! A worker formats its line into a buffer of its own. One thread empties the buffers a few times a
//! second and writes. If the disk or the pipe is too slow, a buffer reaches its limit, and further
//! lines are dropped and counted, so that a full disk does not slow requests down. A reload opens the
//! target again, so a rotated file is closed. The new target is opened before anything changes.
//! [`AccessLog::finish`] writes what is left and stops the thread. Nobody waits for a thread that is
//! stuck in a write: a new target gets a thread of its own then.

mod hosts;
mod line;
mod syslog;
mod target;
mod template;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use catamaran_message::RequestHead;
use catamaran_transport::PerWorker;
use hosts::HostLogs;
use line::Stamp;
pub(crate) use line::{
    AuthLine, CacheLine, LoggedFields, Record, RequestLine, SessionLine, TraceLine,
};
use target::LineTarget;
use tokio::time::Instant;

use crate::config::{AccessLogFormat, AccessLogTarget, FieldName, LogCondition, LogConfig};
use crate::lock::lock;
use crate::log_target::{END_MAX, LOOK_EVERY, Progress, WriteFailure};

/// The access log, shared by all workers.
#[derive(Debug)]
pub(crate) struct AccessLog {
    /// Whether the log or the log of any host is on. If not, no record is gathered.
    on: AtomicBool,
    /// Whether lines of hosts without a log of their own are written.
    has_target: AtomicBool,
    plan: ArcSwap<LinePlan>,
    /// Whether some hosts have logs of their own: a look at this costs less than one at [`Self::hosts`].
    has_hosts: AtomicBool,
    /// The logs of hosts that have one; `None` if none has.
    hosts: ArcSwapOption<HostLogs>,
    /// The buffers for lines, one for each worker.
    buffers: Arc<PerWorker<Mutex<Buffer>>>,
    dropped: AtomicU64,
    losses: Arc<Losses>,
    /// The configuration by which the present target was opened; `None` until the first [`Self::switch`].
    config: Mutex<Option<LogConfig>>,
    /// The threads that write; locked only when one starts, gets another target, or ends.
    writers: Mutex<Writers>,
}

/// Which exchanges have a line, and how it looks.
#[derive(Debug)]
struct LinePlan {
    format: AccessLogFormat,
    /// The conditions of which an exchange must meet one; empty: each has a line.
    only: Vec<LogCondition>,
}

impl LinePlan {
    fn of(config: &LogConfig) -> Self {
        Self {
            format: config.format.clone(),
            only: config.only.clone(),
        }
    }

    /// Whether an exchange has a line.
    #[inline]
    fn takes(&self, record: &Record<'_>) -> bool {
        self.only.is_empty() || record.meets_one(&self.only)
    }
}

/// Lines that could not be written.
#[derive(Debug, Default)]
struct Losses {
    lines: AtomicU64,
    /// The time and the reason of the last loss.
    last: Mutex<Option<(Instant, String)>>,
}

impl Losses {
    fn note(&self, failure: &WriteFailure) {
        self.lines.fetch_add(failure.lost, Ordering::Relaxed);
        *lock(&self.last) = Some((Instant::now(), failure.error.to_string()));
    }
}

/// The lines of one worker that wait for the thread that writes.
#[derive(Debug, Default)]
struct Buffer {
    lines: Vec<u8>,
    stamp: Stamp,
    /// For each target that the thread has not taken yet, oldest first: the offset in `lines` at which the
    /// lines for it begin.
    ends: VecDeque<usize>,
}

impl Buffer {
    /// Marks the lines that follow as lines for the next target.
    fn mark_end(&mut self) {
        self.ends.push_back(self.lines.len());
    }

    /// Moves the lines of the present target to `into`, which is empty.
    fn take(&mut self, into: &mut Vec<u8>) {
        let Some(&end) = self.ends.front() else {
            // No other target waits, so all lines are for the present one.
            return std::mem::swap(&mut self.lines, into);
        };
        into.extend(self.lines.drain(..end));
        for offset in &mut self.ends {
            *offset -= end;
        }
    }
}

/// The threads that write lines to the log's targets.
#[derive(Debug, Default)]
struct Writers {
    current: Option<Writer>,
    /// Threads that were stuck in a write when another target replaced theirs.
    stuck: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Writer {
    thread: JoinHandle<()>,
    /// Hands the thread its next target. Closing the channel ends the thread.
    targets: SyncSender<LineTarget>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
    shared: Arc<WriterState>,
}

/// The state that the writing thread shares with the other threads.
#[derive(Debug)]
struct WriterState {
    progress: Progress,
    /// Whether another thread has taken over, so that this one must write nothing more.
    is_replaced: AtomicBool,
}

/// A log whose target is opened but not in use yet.
pub(crate) struct OpenedLog {
    target: Option<LineTarget>,
    config: LogConfig,
    /// The hosts' own logs, in the order of the configuration.
    hosts: Vec<Self>,
}

impl OpenedLog {
    /// Opens the log's target, and those of the hosts' own logs.
    pub(crate) fn new(config: &LogConfig) -> io::Result<Self> {
        let target = LineTarget::open(&config.access)?;
        let mut hosts = Vec::with_capacity(config.hosts.len());
        for (path, _) in &config.hosts {
            hosts.push(Self::new(&LogConfig {
                access: AccessLogTarget::File(path.clone()),
                format: config.format.clone(),
                only: config.only.clone(),
                hosts: Vec::new(),
            })?);
        }
        Ok(Self {
            target,
            config: config.clone(),
            hosts,
        })
    }
}

impl AccessLog {
    /// A log that is off until [`Self::switch`] is called.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            on: AtomicBool::new(false),
            has_target: AtomicBool::new(false),
            plan: ArcSwap::from_pointee(LinePlan::of(&LogConfig::default())),
            has_hosts: AtomicBool::new(false),
            hosts: ArcSwapOption::empty(),
            buffers: Arc::new(PerWorker::new(workers, |_| Mutex::default())),
            dropped: AtomicU64::new(0),
            losses: Arc::default(),
            config: Mutex::new(None),
            writers: Mutex::default(),
        }
    }

    /// Writes all further lines to another target. Lines that wait already still go to the previous target,
    /// unless its thread is stuck in a write.
    ///
    /// # Errors
    /// The thread that writes cannot be started, or too many targets are stuck; nothing changed.
    pub(crate) fn switch(&self, mut to: OpenedLog) -> io::Result<()> {
        let plan = LinePlan::of(&to.config);
        // What can fail comes first, so that a failure changes nothing.
        let hosts = self.host_logs(std::mem::take(&mut to.hosts), &to.config)?;
        let has_target = to.target.is_some();
        if let Some(target) = to.target {
            self.writers().direct(self, target)?;
        }
        let has_hosts = hosts.is_some();
        *self.config() = Some(to.config);
        self.plan.store(Arc::new(plan));
        let hosts_before = self.hosts.swap(hosts);
        self.has_hosts.store(has_hosts, Ordering::Relaxed);
        self.has_target.store(has_target, Ordering::Relaxed);
        self.on.store(has_target || has_hosts, Ordering::Relaxed);
        if !has_target {
            self.end();
        }
        self.finish_unused(hosts_before.as_deref());
        Ok(())
    }

    /// Finishes those of the logs `before` that no host uses any more.
    fn finish_unused(&self, before: Option<&HostLogs>) {
        let hosts = self.hosts.load();
        for log in before.iter().flat_map(|logs| logs.iter()) {
            let mut in_use = hosts.iter().flat_map(|logs| logs.iter());
            if !in_use.any(|used| Arc::ptr_eq(used, log)) {
                log.finish();
            }
        }
    }

    /// The logs of hosts. A log whose file was configured before is kept and switched to the newly opened file.
    fn host_logs(
        &self,
        opened: Vec<OpenedLog>,
        config: &LogConfig,
    ) -> io::Result<Option<Arc<HostLogs>>> {
        if opened.is_empty() {
            return Ok(None);
        }
        let before = self.hosts.load();
        let mut logs = HostLogs::default();
        for ((path, hosts), opened) in config.hosts.iter().zip(opened) {
            let known = before.as_deref().and_then(|before| before.find(path));
            let log = match known {
                Some(known) => Arc::clone(known),
                None => Arc::new(Self::new(self.buffers.iter().count())),
            };
            log.switch(opened)?;
            logs.add(path, log, hosts);
        }
        Ok(Some(Arc::new(logs)))
    }

    /// Opens the present target again, after its file has been moved away.
    ///
    /// # Errors
    /// The target cannot be opened; lines still go to the previous file.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let config = self.config().clone();
        match config {
            Some(config) => self.switch(OpenedLog::new(&config)?),
            None => Ok(()),
        }
    }

    fn config(&self) -> MutexGuard<'_, Option<LogConfig>> {
        lock(&self.config)
    }

    /// Whether the log is on. If it is off, no record is gathered.
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Adds the line of an exchange to the buffer of `worker`, unless `only` leaves the exchange out. If the buffer is
    /// full, the line is dropped and counted.
    pub(crate) fn write(&self, worker: usize, record: &Record<'_>) {
        if !self.is_on() {
            return;
        }
        if self.has_hosts.load(Ordering::Relaxed) && self.write_of_host(worker, record) {
            return;
        }
        if !self.has_target.load(Ordering::Relaxed) {
            return;
        }
        let plan = self.plan.load();
        if !plan.takes(record) {
            return;
        }
        let shared_buffer = &self.buffers[worker];
        let mut buffer = lock(shared_buffer);
        if buffer.lines.len() >= BUFFER_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Buffer { lines, stamp, .. } = &mut *buffer;
        record.append(&plan.format, stamp, lines);
    }

    /// The request's fields that the line of the exchange will show; none unless the format is the operator's own.
    pub(crate) fn fields_of(&self, head: &RequestHead) -> LoggedFields {
        let plan = self.plan.load();
        let AccessLogFormat::Template(template) = &plan.format else {
            return LoggedFields::default();
        };
        let field = |name: &FieldName| {
            let value = head.headers.get(name)?;
            Some((name.clone(), head.headers.share(value)))
        };
        LoggedFields(template.fields.iter().filter_map(field).collect())
    }

    /// Adds a line to the log of the host that the request asked for; `false` if that host has no log of its own.
    fn write_of_host(&self, worker: usize, record: &Record<'_>) -> bool {
        let hosts = self.hosts.load();
        let Some(log) = hosts.as_deref().and_then(|hosts| hosts.of(record)) else {
            return false;
        };
        log.write(worker, record);
        true
    }

    /// The number of lines dropped because writing did not keep up.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed) + self.sum_of_hosts(Self::dropped)
    }

    /// The number of lines that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.losses.lines.load(Ordering::Relaxed) + self.sum_of_hosts(Self::lost)
    }

    /// The reason why lines were lost within the last minute; `None`: none were.
    pub(crate) fn loss(&self) -> Option<String> {
        if let Some((time, reason)) = &*lock(&self.losses.last)
            && time.elapsed() < LOSS_REPORTED_FOR
        {
            return Some(reason.clone());
        }
        let hosts = self.hosts.load();
        let mut logs = hosts.iter().flat_map(|hosts| hosts.iter());
        logs.find_map(|log| log.loss())
    }

    fn sum_of_hosts(&self, count: fn(&Self) -> u64) -> u64 {
        let hosts = self.hosts.load();
        let logs = hosts.iter().flat_map(|hosts| hosts.iter());
        logs.map(|log| count(log)).sum()
    }

    /// Writes the lines that are left, also those of hosts' logs, and stops the threads. Does not wait for a thread
    /// that is stuck in a write.
    pub(crate) fn finish(&self) {
        let hosts = self.hosts.load();
        for log in hosts.iter().flat_map(|hosts| hosts.iter()) {
            log.finish();
        }
        self.end();
    }

    /// Writes the lines that are left, and stops the thread. Gives up after `END_MAX`, or when a write is stuck: then
    /// the lines are lost.
    fn end(&self) {
        let Some(writer) = self.writers().current.take() else {
            return;
        };
        // A closed channel tells the thread to write what is left and to end.
        drop(writer.targets);
        let mut looks_left = END_MAX.as_millis() / LOOK_EVERY.as_millis();
        while let Err(RecvTimeoutError::Timeout) = writer.ended.recv_timeout(LOOK_EVERY) {
            looks_left -= 1;
            if looks_left == 0 || writer.shared.progress.is_stuck() {
                writer.shared.is_replaced.store(true, Ordering::Relaxed);
                tracing::warn!("the access log takes no lines; the last ones are lost");
                return;
            }
        }
        if writer.thread.join().is_err() {
            tracing::error!("the access log's thread panicked; its last lines are lost");
        }
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        lock(&self.writers)
    }
}

impl Writers {
    /// Directs all further lines of `log` to `target`: by the present thread, or by a new one if that is stuck.
    fn direct(&mut self, log: &AccessLog, target: LineTarget) -> io::Result<()> {
        self.stuck.retain(|thread| !thread.is_finished());
        if let Some(writer) = &self.current {
            if !writer.shared.progress.is_stuck() {
                return writer.redirect(&log.buffers, target);
            }
            if self.stuck.len() >= STUCK_MAX {
                return Err(stuck_error());
            }
        }
        let next = Writer::start(log, target)?;
        if let Some(writer) = self.current.replace(next) {
            writer.shared.is_replaced.store(true, Ordering::Relaxed);
            self.stuck.push(writer.thread);
            // The new thread writes all lines that wait, also those for targets that the stuck thread never took.
            for buffer in log.buffers.iter() {
                lock(buffer).ends.clear();
            }
        }
        Ok(())
    }
}

impl Writer {
    /// Starts a thread that writes the lines in the log's buffers to `target`.
    fn start(log: &AccessLog, target: LineTarget) -> io::Result<Self> {
        let (targets, next_targets) = sync_channel(TARGETS_MAX);
        // Nothing is sent here: the channel is closed when the thread drops its end.
        let (alive, ended) = sync_channel(0);
        let (buffers, losses) = (Arc::clone(&log.buffers), Arc::clone(&log.losses));
        let shared = Arc::new(WriterState {
            progress: Progress::new(),
            is_replaced: AtomicBool::new(false),
        });
        let state = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || {
                let _alive = alive;
                write_lines(&buffers, target, &next_targets, &state, &losses);
            })?;
        Ok(Self {
            thread,
            targets,
            ended,
            shared,
        })
    }

    /// Directs all further lines to `target`. Fails if too many targets wait for the thread.
    fn redirect(&self, buffers: &PerWorker<Mutex<Buffer>>, target: LineTarget) -> io::Result<()> {
        // Done before the thread gets the target: until then it leaves the lines beyond the mark in the buffers.
        for buffer in buffers.iter() {
            lock(buffer).mark_end();
        }
        self.targets.try_send(target).map_err(|_| {
            for buffer in buffers.iter() {
                lock(buffer).ends.pop_back();
            }
            stuck_error()
        })
    }
}

fn stuck_error() -> io::Error {
    io::Error::other("a write to the previous target has not ended for long")
}

/// Empties the buffers every [`PERIOD`] and writes their lines to `target`, until the channel of targets is closed or
/// another thread has taken over. What is left is written before the end.
fn write_lines(
    buffers: &PerWorker<Mutex<Buffer>>,
    mut target: LineTarget,
    next_targets: &Receiver<LineTarget>,
    state: &WriterState,
    losses: &Losses,
) {
    let mut lines = Vec::new();
    let mut is_failing = false;
    loop {
        let next_target = next_targets.recv_timeout(PERIOD);
        for buffer in buffers.iter() {
            if state.is_replaced.load(Ordering::Relaxed) {
                return;
            }
            lock(buffer).take(&mut lines);
            let written = target.write(&lines, &state.progress);
            // Room for as many again: under a steady load no buffer has to grow, which would copy its lines.
            let kept = (2 * lines.len()).max(BUFFER_KEPT);
            lines.clear();
            lines.shrink_to(kept);
            if let Err(failure) = &written {
                losses.note(failure);
                // Of several failures in a row only the first is logged.
                if !is_failing {
                    let error = &failure.error;
                    tracing::error!(%error, "cannot write the access log; lines are being lost");
                }
            }
            is_failing = written.is_err();
        }
        match next_target {
            // The lines before the marks are written, so the new target gets all that follow.
            Ok(next) => {
                target = next;
                for buffer in buffers.iter() {
                    lock(buffer).ends.pop_front();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The most targets that may wait for a thread that is busy writing; a further reload fails.
const TARGETS_MAX: usize = 16;

/// The most threads that may be stuck in a write to a target that was replaced.
const STUCK_MAX: usize = 8;

/// The interval at which buffers are emptied.
const PERIOD: Duration = Duration::from_millis(200);

/// The time after the last lost line for which [`AccessLog::loss`] still reports it.
const LOSS_REPORTED_FOR: Duration = Duration::from_secs(60);

/// The most bytes of lines that may wait in a worker's buffer; some seconds' worth at full load.
const BUFFER_MAX: usize = 4 * 1024 * 1024;

/// The bytes of memory that an emptied buffer keeps at least.
const BUFFER_KEPT: usize = 256 * 1024;

#[cfg(test)]
mod tests;
