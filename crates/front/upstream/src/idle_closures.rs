//! Records after which idle time a backend was seen to close pooled connections.
//!
//! A request that must not run twice fails if the backend closes its pooled connection at the
//! moment when it is sent. This happens with a backend whose own idle limit is shorter than our
//! `idle_timeout`, or that closes connections for other reasons. It can be noticed, because
//! pooled connections are found closed. For a minute such requests then use only connections that
//! have been idle for less than half of that time, or new ones.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct IdleClosures {
    // A std mutex: held for a comparison. It is taken only when a connection was found closed, or for
    // a request that must not run twice.
    youngest: Mutex<Option<ClosedConnection>>,
}

/// A pooled connection that was found closed by the backend.
#[derive(Clone, Copy, Debug)]
struct ClosedConnection {
    /// How long the connection had been idle when it was found closed; the backend closed it then or before.
    idle: Duration,
    at: Instant,
}

impl IdleClosures {
    /// Records that a connection that was idle for `idle` was found closed. Keeps the shortest time of a minute.
    pub(crate) fn note(&self, idle: Duration, now: Instant) {
        let mut youngest = self.lock();
        let is_kept =
            matches!(&*youngest, Some(kept) if kept.idle < idle && !kept.is_forgotten(now));
        if !is_kept {
            *youngest = Some(ClosedConnection { idle, at: now });
        }
    }

    /// Whether the backend may be about to close a connection that has been idle for `idle`.
    pub(crate) fn threaten(&self, idle: Duration, now: Instant) -> bool {
        let youngest = *self.lock();
        youngest.is_some_and(|closed| !closed.is_forgotten(now) && idle >= closed.idle / 2)
    }

    fn lock(&self) -> MutexGuard<'_, Option<ClosedConnection>> {
        self.youngest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClosedConnection {
    fn is_forgotten(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= MEMORY
    }
}

/// How long a closed connection is remembered. A restart of the backend closes all connections, and should
/// not matter for long.
const MEMORY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_that_was_found_counts_for_a_minute() {
        let seconds = Duration::from_secs;
        let (drops, start) = (IdleClosures::default(), Instant::now());
        assert!(!drops.threaten(seconds(1000), start), "none found");
        drops.note(seconds(10), start);
        drops.note(seconds(20), start);
        assert!(!drops.threaten(seconds(4), start));
        assert!(drops.threaten(seconds(5), start));
        drops.note(seconds(4), start + seconds(30));
        assert!(drops.threaten(seconds(2), start + seconds(89)));
        assert!(!drops.threaten(seconds(1000), start + seconds(90)));
        drops.note(seconds(20), start + seconds(91));
        assert!(
            !drops.threaten(seconds(4), start + seconds(92)),
            "forgotten"
        );
        assert!(drops.threaten(seconds(10), start + seconds(92)));
    }
}
