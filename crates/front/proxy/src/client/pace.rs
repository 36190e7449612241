//! Measures how fast a client sends or takes bytes while the front waits for it.
//!
//! There are two limits: on silence, and on the mean rate after a time of grace. So a byte now and then does not hold
//! a backend's thread for ever (slow POST, slow read). Only time in which the front waits for the client counts,
//! never time in which it waits for the backend.
//!
//! Exchanges that share a connection also wait for each other. Such an exchange has a little more time, which is its
//! [`Turn`].

use std::time::Duration;

use crate::deadlines::Tick;

/// The least progress that is demanded of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// The longest silence that is allowed.
    pub(crate) idle: Duration,
    /// The least bytes a second, on average, once [`GRACE`] is over; 0: no least rate.
    pub(crate) rate_min: u64,
    /// The allowance for other exchanges on the same connection.
    pub(crate) turn: Turn,
}

/// The allowance of an exchange that has to wait for other exchanges on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The bytes that other exchanges moved meanwhile; they count for the rate as if they were this exchange's own.
    pub(crate) due: u64,
    /// The time at which any exchange last moved bytes, if the whole connection is held up. The exchange may then be
    /// silent for up to twice as long.
    pub(crate) others: Option<Tick>,
}

/// Whether an exchange waits for its client, for each direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// It waits for the client to take more of the response.
    pub(crate) writing: bool,
    /// It waits for the client to send more of its body.
    pub(crate) reading: bool,
}

impl Waits {
    /// The exchange waits for nothing.
    pub(crate) const NONE: Self = Self {
        writing: false,
        reading: false,
    };
}

/// The allowances of an exchange, for each direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    pub(crate) writing: Turn,
    pub(crate) reading: Turn,
}

impl Turn {
    /// No allowance: the exchange has the connection to itself.
    pub(crate) const ALONE: Self = Self {
        due: 0,
        others: None,
    };

    /// When the silence of an exchange began: at `moved`, its own last progress, or at the progress of others on its
    /// connection if that was later, but at most `idle` after `moved`.
    pub(crate) fn silence_since(&self, moved: Tick, idle: Duration) -> Tick {
        let others = self.others.unwrap_or(moved);
        others.min(moved + idle).max(moved)
    }
}

/// Measures one direction of one exchange: the bytes that moved, and the time spent waiting for the client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    bytes: u64,
    /// The sum of all waits that have ended.
    waited: Duration,
    /// The present wait; `None`: the front does not wait for the client.
    wait: Option<Wait>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    began: Tick,
    /// The time at which bytes last moved; at first that of the beginning.
    moved: Tick,
}

impl Pace {
    /// Begins a wait for the client, or continues it. Returns the time from which the client counts as too slow.
    pub(crate) fn wait(&mut self, now: Tick, demand: Demand) -> Tick {
        let Wait { began, moved } = *self.wait.get_or_insert(Wait {
            began: now,
            moved: now,
        });
        let silence_ends = demand.turn.silence_since(moved, demand.idle) + demand.idle;
        let bytes = self.bytes.saturating_add(demand.turn.due);
        let Some(earned_ms) = bytes.saturating_mul(1000).checked_div(demand.rate_min) else {
            // No least rate is demanded.
            return silence_ends;
        };
        // All waits together may last for the grace and the time that the bytes take at the least rate.
        let allowed = GRACE + Duration::from_millis(earned_ms);
        silence_ends.min(began + allowed.saturating_sub(self.waited))
    }

    /// Counts bytes that the client sent or took, the last of them at `now`.
    pub(crate) fn moved(&mut self, now: Tick, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(wait) = &mut self.wait {
            wait.moved = now.max(wait.moved);
        }
    }

    /// Ends a wait for the client.
    pub(crate) fn rest(&mut self, now: Tick) {
        if let Some(wait) = self.wait.take() {
            self.waited += now.since(wait.began);
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
        turn: Turn::ALONE,
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
    fn others_on_the_connection_allow_one_more_silence() {
        let mut pace = Pace::default();
        pace.moved(at(0), 1_000_000);
        pace.wait(at(0), DEMAND);
        for (others, end) in [(0, 15), (7, 22), (15, 30), (29, 30), (1000, 30)] {
            let turn = Turn {
                due: 0,
                others: Some(at(others)),
            };
            assert_eq!(pace.wait(at(0), Demand { turn, ..DEMAND }), at(end));
        }
    }

    #[test]
    fn what_is_due_counts_for_the_rate() {
        let turn = Turn {
            due: 2_500,
            others: Some(at(15)),
        };
        let mut pace = Pace::default();
        assert_eq!(pace.wait(at(0), Demand { turn, ..DEMAND }), at(15));
        pace.moved(at(15), 1);
        let late = pace.wait(at(15), DEMAND);
        assert_eq!(late, at(10) + Duration::from_millis(2), "due no longer");
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
