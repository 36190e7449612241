//! Limits the retries of an upstream: to a share of its requests, and a few a second.
//!
//! Retries add load when backends have the least capacity to spare. The budget gains a fifth of a
//! retry with each request and ten retries with each second. Unused retries are saved, up to a
//! thousand, so that all requests of a busy backend that fails can be retried at once.

use crate::health::Moment;

/// The retries that one upstream has saved and may spend.
#[derive(Clone, Debug)]
pub struct RetryBudget {
    /// The saved retries, in millionths of a retry.
    kept: u64,
    requests: u64,
    at: Moment,
}

impl RetryBudget {
    /// The most retries that the budget can save up.
    pub const MAX: u64 = KEPT_MAX;

    /// A full budget at `now`, with [`Self::MAX`] retries saved.
    #[must_use]
    pub fn new(now: Moment) -> Self {
        Self {
            kept: KEPT_MAX * RETRY,
            requests: 0,
            at: now,
        }
    }

    /// How many retries can be taken at `now`; `requests` as in [`Self::spend`].
    #[must_use]
    pub fn left(&self, now: Moment, requests: u64) -> u64 {
        self.kept_at(now, requests) / RETRY
    }

    /// The saved retries at `now`, with those that were gained since the last call of [`Self::spend`].
    fn kept_at(&self, now: Moment, requests: u64) -> u64 {
        let micros = now.saturating_sub(self.at).as_micros();
        let elapsed = u64::try_from(micros).unwrap_or(u64::MAX);
        let by_time = elapsed.saturating_mul(PER_MICROSECOND);
        let further_requests = requests.saturating_sub(self.requests);
        let by_requests = further_requests.saturating_mul(PER_REQUEST);
        let gained = by_time.saturating_add(by_requests);
        self.kept.saturating_add(gained).min(KEPT_MAX * RETRY)
    }

    /// Takes one retry; `false` if none is left. `requests` is the number of requests that the
    /// upstream has had so far, without retries.
    pub fn spend(&mut self, now: Moment, requests: u64) -> bool {
        self.kept = self.kept_at(now, requests);
        // Workers that spend at the same time may come here in another order than they have counted.
        self.requests = self.requests.max(requests);
        self.at = self.at.max(now);
        let Some(left) = self.kept.checked_sub(RETRY) else {
            return false;
        };
        self.kept = left;
        true
    }
}

/// The value of one retry, in the units of [`RetryBudget::kept`].
const RETRY: u64 = 1_000_000;

/// What the budget gains by each request, so that retries are at most 20 % of requests.
const PER_REQUEST: u64 = RETRY / 5;

/// What the budget gains in each microsecond: ten retries a second, for upstreams with few requests.
const PER_MICROSECOND: u64 = 10;

/// The most retries that are saved: as many as the exchanges, including queued ones, that fail at
/// once when a backend is lost.
const KEPT_MAX: u64 = 1000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// Spends all retries that are left, and returns how many there were.
    fn spend_all(budget: &mut RetryBudget, now: Moment, requests: u64) -> u64 {
        (0..).take_while(|_| budget.spend(now, requests)).count() as u64
    }

    #[test]
    fn table() {
        let seconds = Duration::from_secs;
        let mut budget = RetryBudget::new(seconds(0));
        for (now, requests, expected) in [
            (seconds(0), 0, KEPT_MAX),
            (seconds(0), 4, 0),
            (seconds(0), 5, 1),
            (seconds(0), 105, 20),
            (seconds(1), 105, 10),
            (seconds(1) + Duration::from_millis(50), 105, 0),
            (seconds(1) + Duration::from_millis(100), 105, 1),
            (seconds(2), 1105, 209),
            // Neither time nor counts run backwards, but if they did nothing would be earned.
            (seconds(1), 0, 0),
            (seconds(10_000), 1105, KEPT_MAX),
        ] {
            assert_eq!(budget.left(now, requests), expected, "at {now:?}");
            let spent = spend_all(&mut budget, now, requests);
            assert_eq!(spent, expected, "at {now:?} after {requests} requests");
        }
    }

    proptest! {
        #[test]
        fn never_more_than_a_fifth_and_the_floor(
            steps in prop::collection::vec((0u64..5000, 0u64..2000, 0u64..500), 1..100),
        ) {
            let mut budget = RetryBudget::new(Duration::ZERO);
            let (mut now, mut requests, mut retries) = (Duration::ZERO, 0, 0);
            for (millis, more, wanted) in steps {
                now += Duration::from_millis(millis);
                requests += more;
                retries += (0..wanted).filter(|_| budget.spend(now, requests)).count() as u64;
                let floor = KEPT_MAX + 10 * now.as_secs() + 10;
                prop_assert!(retries <= requests / 5 + floor);
            }
        }
    }
}
