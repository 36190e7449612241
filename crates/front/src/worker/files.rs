//! What a worker needs for files: threads that wait for disks, and the pace of its log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use catamaran_files::FileThreads;
use tokio::time::Instant;

/// What one worker needs for files.
#[derive(Debug, Default)]
pub(crate) struct WorkerFiles {
    pub(crate) threads: FileThreads,
    /// Links that lead outside.
    pub(crate) outside: LogPace,
    /// Compressed files that are older than the plain ones.
    pub(crate) siblings: LogPace,
    /// Files that cannot be had.
    pub(crate) failures: LogPace,
}

/// Lets a line be written once in a while: clients cause as many as they like.
#[derive(Debug, Default)]
pub(crate) struct LogPace(Mutex<Option<Instant>>);

impl LogPace {
    /// Whether a line may be written now.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
