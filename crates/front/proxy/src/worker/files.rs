//! What a worker needs for files: what it remembers of them, threads that wait for disks, and the pace of its
//! log.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use catamaran_files::{FileTable, FileThreads};
use tokio::time::Instant;

use crate::counters::WorkerCounters;
use crate::lock::lock;

/// What one worker needs for files.
#[derive(Debug, Default)]
pub(crate) struct WorkerFiles {
    pub(crate) threads: FileThreads,
    /// The mutex is never contended: a worker is one thread.
    table: Mutex<FileTable>,
    /// When to log links that lead out of their directory.
    pub(crate) outside: LogPace,
    /// When to log compressed files that are older than the plain ones.
    pub(crate) siblings: LogPace,
    /// When to log files that cannot be opened.
    pub(crate) failures: LogPace,
}

impl WorkerFiles {
    /// The table of remembered files. Hold the lock for one call only.
    pub(crate) fn table(&self) -> MutexGuard<'_, FileTable> {
        lock(&self.table)
    }

    /// Closes files that nobody has asked for lately.
    pub(crate) fn sweep(&self, counters: &WorkerCounters) {
        let mut table = self.table();
        table.sweep(Instant::now());
        counters.file_bytes(table.bytes());
    }
}

/// Limits how often one kind of line is logged, because clients can cause any number of them.
#[derive(Debug, Default)]
pub(crate) struct LogPace(Mutex<Option<Instant>>);

impl LogPace {
    /// Whether a line may be written now.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        let mut last = lock(&self.0);
        let allows = last.is_none_or(|last| now.saturating_duration_since(last) >= PERIOD);
        if allows {
            *last = Some(now);
        }
        allows
    }
}

/// How often one kind of line is written.
const PERIOD: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_once_a_minute() {
        let (pace, now) = (LogPace::default(), Instant::now());
        assert!(pace.allows(now) && !pace.allows(now));
        assert!(!pace.allows(now + PERIOD - Duration::from_millis(1)));
        assert!(pace.allows(now + PERIOD) && !pace.allows(now + PERIOD));
    }
}
