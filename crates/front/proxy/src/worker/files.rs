//! What a worker needs to serve files: the table of files that it keeps open or in memory, threads that wait for
//! disks, and limits on how often it logs.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use catamaran_files::{FileTable, FileThreads};
use tokio::time::Instant;

use crate::counters::WorkerCounters;
use crate::lock::lock;

/// One worker's table of files, its threads for reading them, and limits on how often it logs about them.
#[derive(Debug, Default)]
pub(crate) struct WorkerFiles {
    pub(crate) threads: FileThreads,
    /// The files that are kept open or in memory. The mutex is never contended: only the worker's thread locks
    /// it.
    table: Mutex<FileTable>,
    /// Limits the lines about links that lead out of their directory.
    pub(crate) outside: LogPace,
    /// Limits the lines about compressed files that are older than the plain ones.
    pub(crate) siblings: LogPace,
    /// Limits the lines about files that cannot be opened.
    pub(crate) failures: LogPace,
}

impl WorkerFiles {
    /// Locks the table of files that are kept open or in memory. Hold the lock for one call only.
    pub(crate) fn table(&self) -> MutexGuard<'_, FileTable> {
        lock(&self.table)
    }

    /// Closes files that no request has asked for lately, and updates the count of their bytes.
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
    /// Whether a line may be logged now; `true` at most once in [`PERIOD`].
    pub(crate) fn allows(&self, now: Instant) -> bool {
        let mut last = lock(&self.0);
        let allows = last.is_none_or(|last| now.saturating_duration_since(last) >= PERIOD);
        if allows {
            *last = Some(now);
        }
        allows
    }
}

/// The shortest time between two lines of one kind.
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
