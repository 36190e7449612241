//! The run's clock: nanoseconds since its beginning.
//!
//! All times inside the engine are plain `u64`s of this clock, so code that decides by time can be
//! tested with numbers.

use std::time::{Duration, Instant};

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// The run's clock: nanoseconds since the run began, the same for all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// Starts the clock at zero.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the engine looks at the time"
    )]
    pub(crate) fn start() -> Self {
        Self {
            epoch: Instant::now(),
        }
    }

    pub(crate) fn now(self) -> u64 {
        nanos(self.epoch.elapsed())
    }
}

/// A duration in nanoseconds; [`NEVER`] if it is too long.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

/// A duration in milliseconds, with a fraction.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The time `duration` after `start`; [`NEVER`] for `None`.
pub(crate) fn after(start: u64, duration: Option<Duration>) -> u64 {
    duration.map_or(NEVER, |duration| start.saturating_add(nanos(duration)))
}
