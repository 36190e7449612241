//! A point in time after which a test gives up.
//!
//! Deadlines only guard against hangs: no test may pass or fail by how fast something was, so the default is
//! generous. A test waits for an event; where the system reports none (a child ends, a line of a `/proc` file
//! appears), [`Deadline::poll`] looks again every few milliseconds.

use std::time::{Duration, Instant};
use std::{fmt, thread};

/// A point in time after which a test gives up waiting.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

/// The deadline passed before the awaited event, which the text names.
#[derive(Debug, thiserror::Error)]
#[error("gave up waiting for {0}")]
pub struct Expired(pub String);

impl Deadline {
    /// The deadline of tests, two minutes: far longer than anything in them takes. A Tomcat takes 35 s to start
    /// while thirty programs wait for two cores.
    pub const DEFAULT: Duration = Duration::from_secs(120);

    /// The deadline `duration` from now.
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        Self(now() + duration)
    }

    /// The time that is left, or `None` when the deadline has passed. Never `Some(0)`, which sockets take for
    /// "wait for ever".
    #[must_use]
    pub fn remaining(self) -> Option<Duration> {
        self.0
            .checked_duration_since(now())
            .filter(|left| !left.is_zero())
    }

    /// Calls `ready` again and again until it returns `Some`.
    ///
    /// # Errors
    /// [`Expired`] with `what` if the deadline passes first; `ready` has been called at least once by then.
    pub fn poll<T>(
        self,
        what: impl fmt::Display,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<T, Expired> {
        loop {
            if let Some(value) = ready() {
                return Ok(value);
            }
            if self.remaining().is_none() {
                return Err(Expired(what.to_string()));
            }
            thread::park_timeout(Duration::from_millis(2));
        }
    }
}

impl Default for Deadline {
    fn default() -> Self {
        Self::after(Self::DEFAULT)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "test code that waits on real sockets and processes has no other clock"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_ends_at_the_first_some() {
        let mut asked = 0;
        let value = Deadline::default().poll("three", || {
            asked += 1;
            (asked == 3).then_some(asked)
        });
        assert_eq!(value.unwrap(), 3);
    }

    #[test]
    fn a_passed_deadline_names_what_was_awaited() {
        let deadline = Deadline::after(Duration::ZERO);
        let error = deadline.poll("the tide", || None::<()>).unwrap_err();
        assert_eq!(error.to_string(), "gave up waiting for the tide");
        assert!(deadline.remaining().is_none());
    }
}
