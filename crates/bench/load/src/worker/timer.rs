//! A timer that is exact to less than a millisecond, which the timeout of a poll is not.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timerfd that wakes a poll. It is never read: setting it anew makes it tick anew, and each tick
/// is an edge.
#[derive(Debug)]
pub(super) struct Timer {
    descriptor: OwnedFd,
    /// The moment that it is set to.
    set_to: u64,
}

impl Timer {
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let raw = descriptor.as_raw_fd();
        registry.register(&mut SourceFd(&raw), token, Interest::READABLE)?;
        Ok(Self {
            descriptor,
            set_to: 0,
        })
    }

    /// Wakes at `at` on the run's clock, which is in `left` nanoseconds.
    pub(super) fn set(&mut self, at: u64, left: u64) -> io::Result<()> {
        if self.set_to == at {
            return Ok(());
        }
        let spec = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: i64::try_from(left / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: (left % 1_000_000_000) as i64,
            },
        };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &spec)?;
        self.set_to = at;
        Ok(())
    }
}
