//! How fast a client sends or takes bytes, while the front waits for it.
//!
//! Two limits: a silence, and a mean rate after a time of grace, so that a byte now and then does
//! not hold a backend's thread for ever (slow POST, slow read). Only time in which the client was
//! waited for counts, never that in which the backend held things up.

use std::time::Duration;

use crate::worker::deadlines::Tick;

/// What is demanded of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// The longest silence.
    pub(crate) idle: Duration,
    /// The least bytes a second, on average, once [`GRACE`] is over; 0 demands none.
    pub(crate) rate_min: u64,
}

/// One direction of one exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    bytes: u64,
    /// Waited in earlier waits.
    waited: Duration,
    /// When the present wait began, and its last progress.
    wait: Option<(Tick, Tick)>,
}

impl Pace {
    /// The front waits for the client from `now`. Returns until when it waits.
    pub(crate) fn wait(&mut self, now: Tick, demand: Demand) -> Tick {
        let (began, moved) = *self.wait.get_or_insert((now, now));
        let silence = moved + demand.idle;
        let Some(earned_ms) = (self.bytes * 1000).checked_div(demand.rate_min) else {
            return silence;
        };
        let allowed = GRACE + Duration::from_millis(earned_ms);
        silence.min(began + allowed.saturating_sub(self.waited))
    }

    /// The client sent or took so many bytes.
    pub(crate) fn moved(&mut self, now: Tick, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some((_, moved)) = &mut self.wait {
            *moved = now;
        }
    }

    /// The client moved so many bytes for others, which count for its rate alone.
    pub(crate) fn credit(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The front no longer waits for the client.
    pub(crate) fn rest(&mut self, now: Tick) {
        if let Some((began, _)) = self.wait.take() {
            self.waited += now.since(began);
        }
    }
}

/// How long a client may be slow before its rate is checked. httpd's mod_reqtimeout allows 20 s.
const GRACE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand = Demand {
        idle: Duration::from_secs(15),
        rate_min: 500,
    };

    fn at(seconds: u64) -> Tick {
        Tick::START + Duration::from_secs(seconds)
    }

    #[test]
    fn silence_ends_a_wait() {
        let mut pace = Pace::default();
        pace.moved(at(0), 1_000_000);
        assert_eq!(pace.wait(at(100), DEMAND), at(115));
        pace.moved(at(110), 1);
        assert_eq!(pace.wait(at(110), DEMAND), at(125));
    }

    #[test]
    fn dripping_does_not_extend_it_for_ever() {
        let mut pace = Pace::default();
        assert_eq!(pace.wait(at(0), DEMAND), at(10), "nothing earned yet");
        for second in (1..10).step_by(2) {
            pace.moved(at(second), 1);
        }
        assert_eq!(pace.wait(at(9), DEMAND), at(10) + Duration::from_millis(10));
        pace.moved(at(9), 5_000 - 5);
        assert_eq!(pace.wait(at(9), DEMAND), at(20), "ten seconds earned");
    }

    #[test]
    fn time_in_which_nobody_waited_does_not_count() {
        let mut pace = Pace::default();
        pace.wait(at(0), DEMAND);
        pace.rest(at(8));
        assert_eq!(pace.wait(at(1000), DEMAND), at(1002));
        pace.rest(at(1001));
        pace.moved(at(1001), 2_000);
        assert_eq!(pace.wait(at(2000), DEMAND), at(2005));
    }

    #[test]
    fn no_rate_demands_none() {
        let demand = Demand {
            rate_min: 0,
            ..DEMAND
        };
        assert_eq!(Pace::default().wait(at(0), demand), at(15));
    }
}
