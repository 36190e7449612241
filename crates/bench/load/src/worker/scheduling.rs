//! The scheduler's times of a thread: on a CPU, and ready to run without a CPU.

use std::time::Duration;

use crate::plan::StarvedTime;

/// The times since the thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTimes {
    /// The time on a CPU, in user mode and in the kernel.
    pub(super) cpu: Duration,
    /// The time in which the thread was ready to run, but had no CPU; `None` where the kernel does not count it.
    pub(super) starved: Option<Duration>,
}

impl ThreadTimes {
    /// The CPU time and the starved time of the calling thread; `starved` reads the latter.
    pub(super) fn now(starved: StarvedTime) -> Self {
        Self {
            cpu: cpu_time(),
            starved: starved(),
        }
    }

    /// The increase since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        let starved = self.starved.zip(before.starved);
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            starved: starved.map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

/// The CPU time of the calling thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_has_run() {
        let now = ThreadTimes::now(|| Some(Duration::from_secs(2)));
        assert!(now.cpu > Duration::ZERO);
        let later = ThreadTimes::now(|| Some(Duration::from_secs(5))).since(&now);
        assert_eq!(later.starved, Some(Duration::from_secs(3)));
        assert_eq!(ThreadTimes::now(|| None).since(&now).starved, None);
    }
}
