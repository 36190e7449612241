//! The CPU time of processes, read from `/proc`.
//!
//! `/proc` counts in ticks of 10 ms. In a sum over a tree of processes, the time of children that
//! have ended is included only if their parent has waited for them.

use std::io;
use std::ops::Sub;
use std::path::Path;
use std::time::Duration;

use crate::process;

/// CPU time, by where it was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpu {
    /// The time outside the kernel.
    pub user: Duration,
    /// The time in the kernel.
    pub system: Duration,
}

impl Cpu {
    /// The sum of user and system time.
    #[must_use]
    pub fn total(self) -> Duration {
        self.user + self.system
    }
}

/// The time used between two readings: `later - earlier`. It is zero where the value fell because a
/// process is gone.
impl Sub for Cpu {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// The CPU time that the process `id` with all its threads has used so far, without that of its
/// children.
///
/// # Errors
/// The process has ended, or `/proc` cannot be read.
pub fn of_process(id: u32) -> io::Result<Cpu> {
    let stat = process::stat(id)?;
    Ok(Cpu {
        user: ticks(stat.utime),
        system: ticks(stat.stime),
    })
}

/// What the threads of the process `id` that live now have used so far, to the nanosecond. Zero where the kernel keeps
/// no such account (`CONFIG_SCHED_INFO`).
///
/// # Errors
/// The process is gone, or `/proc` cannot be read.
pub fn of_threads(id: u32) -> io::Result<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task"))?.flatten();
    // A thread may have ended since.
    Ok(threads.filter_map(|thread| run_time(&thread.path())).sum())
}

/// The CPU time of the thread with this directory in `/proc`, to the nanosecond.
pub(crate) fn run_time(directory: &Path) -> Option<Duration> {
    let account = std::fs::read_to_string(directory.join("schedstat")).ok()?;
    let nanos = account.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// The CPU time that this process with all its threads has used so far, to the nanosecond.
#[must_use]
pub fn of_this_process() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// The CPU time that the calling thread has used so far, to the nanosecond.
#[must_use]
pub fn of_this_thread() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

pub(crate) fn ticks(count: u64) -> Duration {
    let per_second = procfs::ticks_per_second().max(1);
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / per_second))
}
