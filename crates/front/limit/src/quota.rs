//! The arithmetic of one limit.
//!
//! A rate is the generic cell rate algorithm (ITU-T I.371, annex A). The state of a key is one number: the time at
//! which its debt is paid. Each request moves that time on by the interval between two requests. A request that would
//! move it further into the future than the burst allows is refused and moves nothing. The state of a key for requests
//! in flight is their number.

use std::time::Duration;

/// What a limit grants to each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// The number of requests in a time is limited.
    Rate {
        /// The time that one request costs, in nanoseconds.
        interval: u64,
        /// How many requests may come at once.
        burst: u32,
    },
    /// The number of requests in flight is limited, to this many.
    InFlight(u32),
}

/// The judgement of a quota about a key's next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The state of the key after the request, if it passes; `Err`: it is refused, and would pass after this many
    /// nanoseconds.
    pub(crate) charged: Result<u64, u64>,
    /// The debt of the key before the request, in nanoseconds or requests.
    debt: u64,
}

impl Quota {
    /// A quota of `count` requests in each `period`, of which `burst` may come at once. A count or burst of 0 counts as
    /// 1.
    #[must_use]
    pub fn rate(count: u32, period: Duration, burst: u32) -> Self {
        let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        Self::Rate {
            interval: (nanos / u64::from(count.max(1))).max(1),
            burst: burst.max(1),
        }
    }

    /// Judges the next request of a key with this `state` at `now`, and changes nothing.
    ///
    /// A time further in the future than the burst reaches is of another quota, or of a clock that was set back; it
    /// counts as a burst that is used up.
    #[inline]
    pub(crate) fn judge(self, state: u64, now: u64) -> Judgement {
        match self {
            Self::Rate { interval, burst } => {
                let capacity = capacity(interval, burst);
                let debt = state.saturating_sub(now).min(capacity);
                let after = debt.saturating_add(interval);
                Judgement {
                    charged: if after <= capacity {
                        Ok(now.saturating_add(after))
                    } else {
                        Err(after - capacity)
                    },
                    debt,
                }
            }
            Self::InFlight(max) => Judgement {
                charged: if state < u64::from(max) {
                    Ok(state + 1)
                } else {
                    Err(IN_FLIGHT_WAIT)
                },
                debt: state,
            },
        }
    }

    /// By how much one request that passes moves the state of its key on.
    pub(crate) fn cost(self) -> u64 {
        match self {
            Self::Rate { interval, .. } => interval,
            Self::InFlight(_) => 1,
        }
    }

    /// The debt of a key as a part of its burst; 0 is no debt, 1 a burst that is used up. Any request in flight counts
    /// as far more than that: if it were forgotten, more requests would run than the limit allows.
    pub(crate) fn owed(self, state: u64, now: u64) -> f32 {
        let part = |debt: u64, whole: u64| debt as f32 / whole as f32;
        match self {
            Self::Rate { interval, burst } => {
                part(state.saturating_sub(now), capacity(interval, burst)).min(1.0)
            }
            Self::InFlight(_) if state == 0 => 0.0,
            Self::InFlight(max) => IN_FLIGHT_OWED + part(state, u64::from(max)),
        }
    }

    /// Whether a key has no debt, so that it need not be remembered.
    #[inline]
    pub(crate) fn is_free(self, state: u64, now: u64) -> bool {
        match self {
            Self::Rate { .. } => state <= now,
            Self::InFlight(_) => state == 0,
        }
    }

    /// How many more requests a key may send at once after this one, and the time until it is one more.
    #[must_use]
    pub fn left(self, judgement: Judgement) -> (u32, Duration) {
        // A request that is refused costs nothing.
        let charged = u64::from(judgement.charged.is_ok());
        let (left, wait) = match self {
            Self::Rate { interval, burst } => {
                let debt = judgement.debt.saturating_add(charged * interval);
                let room = capacity(interval, burst).saturating_sub(debt);
                (room / interval, interval - room % interval)
            }
            Self::InFlight(max) => {
                let taken = judgement.debt.saturating_add(charged);
                (u64::from(max).saturating_sub(taken), IN_FLIGHT_WAIT)
            }
        };
        (
            u32::try_from(left).unwrap_or(u32::MAX),
            Duration::from_nanos(wait),
        )
    }

    /// How many requests a key without debt may send at once, and the time in which its debt for them is paid. `None`
    /// for a quota of requests in flight.
    #[must_use]
    pub fn policy(self) -> (u32, Option<Duration>) {
        match self {
            Self::Rate { interval, burst } => {
                let window = Duration::from_nanos(capacity(interval, burst));
                (burst, Some(window))
            }
            Self::InFlight(max) => (max, None),
        }
    }
}

impl Judgement {
    /// Whether the request passes.
    #[must_use]
    #[inline]
    pub fn passes(self) -> bool {
        self.charged.is_ok()
    }

    /// The time until the request would pass; 0 if it does.
    #[must_use]
    pub fn wait(self) -> Duration {
        Duration::from_nanos(self.charged.err().unwrap_or_default())
    }
}

/// The debt in nanoseconds at which a burst is used up.
#[inline]
fn capacity(interval: u64, burst: u32) -> u64 {
    interval.saturating_mul(u64::from(burst))
}

/// The wait in nanoseconds that clients are told when too many of their requests are in flight, since nobody knows when
/// one ends.
const IN_FLIGHT_WAIT: u64 = 1_000_000_000;

/// What a key owes that has a request in flight, in bursts of a rate that are used up.
const IN_FLIGHT_OWED: f32 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Charges a request; the error is the time to wait.
    fn ask(quota: Quota, state: &mut u64, now: u64) -> Result<u32, Duration> {
        let judgement = quota.judge(*state, now);
        match judgement.charged {
            Ok(charged) => {
                *state = charged;
                Ok(quota.left(judgement).0)
            }
            Err(_) => Err(judgement.wait()),
        }
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let quota = Quota::rate(30, MINUTE, 3);
        let mut state = 0;
        let second = 1_000_000_000;
        let seconds = Duration::from_secs;
        for (at, expected) in [
            (0, Ok(2)),
            (0, Ok(1)),
            (0, Ok(0)),
            (0, Err(seconds(2))),
            (1, Err(seconds(1))),
            (2, Ok(0)),
            (2, Err(seconds(2))),
            (8, Ok(2)),
        ] {
            assert_eq!(ask(quota, &mut state, at * second), expected, "{at} s");
        }
        assert_eq!(quota.policy(), (3, Some(seconds(6))));
    }

    #[test]
    fn a_clock_that_stands_or_jumps_saturates() {
        let quota = Quota::rate(1, MINUTE, 2);
        let hour = 3_600_000_000_000;
        let mut state = 0;
        assert!(ask(quota, &mut state, hour).is_ok() && ask(quota, &mut state, hour).is_ok());
        assert!(ask(quota, &mut state, hour).is_err(), "the clock stands");
        // Set back: the burst is used up, and no more than that.
        assert_eq!(ask(quota, &mut state, 0), Err(MINUTE));
        assert!(ask(quota, &mut state, 2 * hour).is_ok(), "set forward");
        let mut state = 0;
        let end = u64::MAX;
        assert!(ask(quota, &mut state, end).is_ok());
        assert_eq!(state, end);
        // The largest numbers a quota can have do not overflow.
        let slow = Quota::rate(1, Duration::from_secs(3600), u32::MAX);
        assert!(slow.judge(u64::MAX, u64::MAX - 1).passes());
        assert!(slow.owed(u64::MAX, 0) > 0.9);
    }

    #[test]
    fn requests_in_flight_are_counted() {
        let quota = Quota::InFlight(2);
        let mut state = 0;
        assert_eq!(ask(quota, &mut state, 0), Ok(1));
        assert_eq!(ask(quota, &mut state, 0), Ok(0));
        assert_eq!(ask(quota, &mut state, 0), Err(Duration::from_secs(1)));
        assert_eq!(quota.policy(), (2, None));
        assert!(quota.is_free(0, 0) && !quota.is_free(1, u64::MAX));
        let rate = Quota::rate(1, MINUTE, 1);
        assert!(Quota::InFlight(200).owed(1, 0) > rate.owed(u64::MAX, 0));
        assert!(Quota::InFlight(200).owed(0, 0) <= 0.0);
    }

    #[test]
    fn a_rate_has_the_interval_that_is_written() {
        for (count, expected) in [(0, 1_000_000_000), (7, 142_857_142), (1_000_000, 1000)] {
            let Quota::Rate { interval, burst } = Quota::rate(count, Duration::from_secs(1), 0)
            else {
                panic!("a rate");
            };
            assert_eq!((interval, burst), (expected, 1));
        }
    }
}
