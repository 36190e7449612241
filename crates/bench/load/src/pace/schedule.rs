//! The intended start times of requests in an open loop: drawn from a rate, or listed.
//!
//! Each thread has its own schedule with its share of the rate. Shares of Poisson arrivals are
//! Poisson arrivals again; constant ones begin at a random phase, so that threads do not send at
//! the same moments.

use super::{ArrivalList, Level};
use crate::clock::NEVER;
use crate::plan::Arrivals;

/// A schedule of start times.
#[derive(Debug)]
pub(crate) enum Schedule {
    Drawn(RateSchedule),
    Listed(ArrivalList),
}

/// Start times that are drawn from a rate.
#[derive(Debug)]
pub(crate) struct RateSchedule {
    level: Level,
    /// This thread's share of the level, from 0 to 1.
    share: f64,
    arrivals: Arrivals,
    random: fastrand::Rng,
    /// The time at which the level begins.
    origin: u64,
    /// The time at which the next request is due, in seconds since `origin`; `None`: never.
    at: Option<f64>,
}

/// The random numbers of a thread: each pair of seed and thread has its own stream. With the sum of
/// both as the seed, the second thread of one seed would repeat the first one of the next seed.
pub(crate) fn random(seed: u64, thread: usize) -> fastrand::Rng {
    fastrand::Rng::with_seed(mixed(mixed(seed) ^ thread as u64))
}

/// The finalizer of SplitMix64: a bijection in which each bit of the result depends on all bits of `number`.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

impl Schedule {
    pub(crate) fn new(
        level: Level,
        share: f64,
        arrivals: Arrivals,
        random: fastrand::Rng,
        origin: u64,
    ) -> Self {
        Self::Drawn(RateSchedule::new(level, share, arrivals, random, origin))
    }

    /// The time at which the next request is due; [`NEVER`] if there is none.
    pub(crate) fn next(&self) -> u64 {
        match self {
            Self::Drawn(drawn) => drawn.next(),
            Self::Listed(listed) => listed.next(),
        }
    }

    /// The place of the next request among the target's requests; `None`: the schedule does not say.
    pub(crate) fn request(&self) -> Option<u32> {
        match self {
            Self::Drawn(_) => None,
            Self::Listed(listed) => Some(listed.request()),
        }
    }

    /// Moves on to the next request.
    pub(crate) fn advance(&mut self) {
        match self {
            Self::Drawn(drawn) => drawn.advance(),
            Self::Listed(listed) => listed.advance(),
        }
    }
}

impl RateSchedule {
    fn new(
        level: Level,
        share: f64,
        arrivals: Arrivals,
        random: fastrand::Rng,
        origin: u64,
    ) -> Self {
        let mut schedule = Self {
            level,
            share,
            arrivals,
            random,
            origin,
            at: Some(0.0),
        };
        let first = match arrivals {
            // A random phase, so that threads do not send at the same moments.
            Arrivals::Constant => schedule.random.f64(),
            Arrivals::Poisson => schedule.gap(),
        };
        schedule.go_on(first);
        schedule
    }

    fn next(&self) -> u64 {
        self.at.map_or(NEVER, |at| {
            // A time too late for a u64 is as good as never: the conversion and the sum saturate.
            self.origin.saturating_add((at * 1e9) as u64)
        })
    }

    fn advance(&mut self) {
        let gap = self.gap();
        self.go_on(gap);
    }

    /// The gap to the next request, in units of the mean gap.
    fn gap(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Constant => 1.0,
            // In (0, 1], so that the logarithm is finite.
            Arrivals::Poisson => -(1.0 - self.random.f64()).ln(),
        }
    }

    /// Moves on by `gap` mean gaps.
    fn go_on(&mut self, gap: f64) {
        if let Some(at) = self.at {
            self.at = self.level.reach(at, gap / self.share);
        }
    }
}
