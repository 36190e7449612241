//! A timer with a resolution below a millisecond, which a poll's timeout does not have.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timerfd that wakes a poll. It is never read: each time that it is set and expires is a new edge.
#[derive(Debug)]
pub(super) struct Timer {
    descriptor: OwnedFd,
    /// The time to which the timer is set, on the run's clock.
    set_to: u64,
}

impl Timer {
    /// Makes a timer that is not set, and reports its end to the poll with `token`.
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

    /// Sets the timer to `at` on the run's clock, which is `left` nanoseconds from now. A timer that is set to `at` is
    /// left as it is, which saves a call of the system.
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
