//! Waiting for a condition until a deadline.

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A deadline, after which waiting ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience(Duration);

impl Patience {
    /// A deadline `duration` from now.
    pub(crate) fn of(duration: Duration) -> Self {
        Self(now() + duration)
    }

    /// Calls `ready` until it returns a value, at least once; `None` if the deadline passes first.
    pub(crate) fn wait<T>(self, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            let answer = ready();
            if answer.is_some() || now() >= self.0 {
                return answer;
            }
            thread::park_timeout(PAUSE);
        }
    }
}

/// The time since the machine started.
fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

const PAUSE: Duration = Duration::from_millis(5);
