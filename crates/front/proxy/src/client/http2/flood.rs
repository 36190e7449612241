//! Frames that cost the front work and the client nothing, counted for one connection.
//!
//! Each limit is far above what any client needs. The first one passed is the reason for which the
//! connection is closed. After too many resets it is first given the time to finish its other streams: a
//! balancer's connection carries requests of many users, and those who wait did not cancel. Half as many
//! resets again, and it is closed at once.

use std::time::Duration;

use catamaran_http2::Tally;

use crate::deadlines::Tick;

/// How many streams may be reset, by either side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResetLimit {
    /// How many streams may be reset at once.
    pub(crate) at_once: u64,
    /// How many streams may be reset each second, for as long as the connection lasts.
    pub(crate) per_second: u64,
}

impl ResetLimit {
    /// A limit of this number a second. The resets of five seconds may come at once: by default as many as there may
    /// be streams, since a browser that leaves a page resets all of them.
    pub(crate) fn per_second(resets: u32) -> Self {
        let per_second = u64::from(resets);
        Self {
            at_once: per_second * 5,
            per_second,
        }
    }
}

/// What one client has sent lately.
#[derive(Debug)]
pub(crate) struct Flood {
    limit: ResetLimit,
    /// There were too many resets: the connection takes no further requests.
    is_over: bool,
    /// The reason for which the connection is to be closed.
    verdict: Option<&'static str>,
    /// Frames without use in the present period.
    useless: u32,
    period: Tick,
    /// Resets, by either side, that have not been forgotten yet, in thousandths.
    resets: u64,
    /// The time up to which resets have been forgotten.
    forgotten_at: Tick,
}

impl Flood {
    pub(crate) fn new(now: Tick, limit: ResetLimit) -> Self {
        Self {
            limit,
            is_over: false,
            verdict: None,
            useless: 0,
            period: now,
            resets: 0,
            forgotten_at: now,
        }
    }

    /// The reason to close the connection; `None`: it stays open.
    pub(crate) fn verdict(&self) -> Option<&'static str> {
        self.verdict
    }

    /// Whether the connection is to take no further requests.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Counts what the client has sent lately.
    pub(crate) fn count(&mut self, tally: Tally, now: Tick) {
        for _ in 0..tally.resets.saturating_add(tally.provoked_resets) {
            self.reset(now);
        }
        if tally.useless > 0 {
            self.useless(tally.useless, now);
        }
    }

    /// Counts frames without use. More than [`USELESS_MAX`] in one [`PERIOD`] are the reason to close the connection.
    fn useless(&mut self, frames: u32, now: Tick) {
        if now.since(self.period) >= PERIOD {
            self.period = now;
            self.useless = 0;
        }
        self.useless = self.useless.saturating_add(frames);
        if self.useless > USELESS_MAX {
            self.verdict.get_or_insert("h2-frame-flood");
        }
    }

    /// Counts a stream that was reset, by the client or because of it.
    pub(crate) fn reset(&mut self, now: Tick) {
        let millis = u64::try_from(now.since(self.forgotten_at).as_millis()).unwrap_or(u64::MAX);
        self.forgotten_at = now;
        // Milliseconds times resets a second are thousandths of resets.
        let forgotten = millis.saturating_mul(self.limit.per_second);
        self.resets = self.resets.saturating_sub(forgotten) + 1000;
        // First the connection takes no further requests. The streams that are open then may also be reset, up to half
        // as many, before it is closed.
        let max = if self.is_over {
            self.limit.at_once / 2
        } else {
            self.limit.at_once
        };
        if self.resets <= max * 1000 {
            return;
        }
        if self.is_over {
            self.verdict.get_or_insert(RESET_FLOOD);
        }
        self.is_over = true;
        self.resets = 0;
    }
}

/// The most frames without use (see [`Tally::useless`]) in one [`PERIOD`].
const USELESS_MAX: u32 = 1000;

const PERIOD: Duration = Duration::from_secs(10);

/// Why a connection ends that resets too much.
pub(crate) const RESET_FLOOD: &str = "h2-reset-flood";

#[cfg(test)]
mod tests {
    use super::*;

    const RESET: Tally = Tally {
        resets: 1,
        provoked_resets: 0,
        useless: 0,
        window_updates: 0,
    };

    fn at(millis: u64) -> Tick {
        Tick::from(millis)
    }

    #[test]
    fn a_browser_may_leave_a_page_and_the_next_one() {
        let mut flood = Flood::new(at(0), ResetLimit::per_second(20));
        (0..100).for_each(|_| flood.count(RESET, at(0)));
        assert_eq!(flood.verdict(), None);
        (0..100).for_each(|_| flood.count(RESET, at(5000)));
        assert!(!flood.is_over());
        flood.count(RESET, at(5000));
        assert!(flood.is_over());
        (0..50).for_each(|_| flood.count(RESET, at(5000)));
        assert_eq!(flood.verdict(), None, "its other streams may end");
        flood.count(RESET, at(5000));
        assert_eq!(flood.verdict(), Some(RESET_FLOOD));
    }

    #[test]
    fn a_limit_of_its_own_is_kept() {
        let mut flood = Flood::new(at(0), ResetLimit::per_second(2000));
        (0..10_000).for_each(|index| flood.count(RESET, at(25 * index)));
        (0..10_000).for_each(|_| flood.count(RESET, at(500_000)));
        assert!(!flood.is_over());
        flood.count(RESET, at(500_000));
        assert!(flood.is_over());
    }

    #[test]
    fn resets_drip_as_long_as_they_are_forgotten() {
        let mut flood = Flood::new(at(0), ResetLimit::per_second(20));
        (0..10_000).for_each(|index| flood.count(RESET, at(50 * index)));
        assert!(!flood.is_over());
        (0..10_000).for_each(|index| flood.count(RESET, at(500_000 + 40 * index)));
        assert_eq!(flood.verdict(), Some(RESET_FLOOD));
    }

    #[test]
    fn frames_without_use_are_counted_by_time() {
        let useless = Tally {
            useless: 1,
            ..Tally::default()
        };
        let pinged = |millis: u64| {
            let mut flood = Flood::new(at(0), ResetLimit::per_second(20));
            (0..3000).for_each(|index| flood.count(useless, at(index * millis)));
            flood.verdict()
        };
        assert_eq!(pinged(10), None);
        assert_eq!(pinged(9), Some("h2-frame-flood"));
    }
}
