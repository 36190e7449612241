//! The intended start times of an open loop, one after the other: drawn from a rate, or listed.
//!
//! Each thread has a schedule of its own with its share of the rate: shares of Poisson arrivals are
//! Poisson arrivals again, and constant ones begin at a random phase, so that threads do not beat in
//! time.

use super::{ArrivalList, Level};
use crate::clock::NEVER;
use crate::plan::Arrivals;

/// When requests are due.
#[derive(Debug)]
pub(crate) enum Schedule {
    Drawn(RateSchedule),
    Listed(ArrivalList),
}

/// Start times that follow from a rate.
#[derive(Debug)]
pub(crate) struct RateSchedule {
    level: Level,
    /// The part of the level that is this thread's, 0 to 1.
    share: f64,
    arrivals: Arrivals,
    random: fastrand::Rng,
    /// When the level's time begins.
    origin: u64,
    /// When the next request is due, in seconds since then.
    at: Option<f64>,
}

/// The random numbers of a thread: a stream of its own for each seed and thread. With `seed + thread`
/// the second thread of one seed would do what the first one of the next seed does.
pub(crate) fn random(seed: u64, thread: usize) -> fastrand::Rng {
    fastrand::Rng::with_seed(mixed(mixed(seed) ^ thread as u64))
}

/// The finalizer of SplitMix64, a bijection in which each bit depends on all.
fn mixed(number: u64) -> u64 {
    let seed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
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

    /// When the next request is due.
    pub(crate) fn next(&self) -> u64 {
        match self {
            Self::Drawn(drawn) => drawn.next(),
            Self::Listed(listed) => listed.next(),
        }
    }

    /// Which of the target's requests is next, where the schedule says so.
    pub(crate) fn request(&self) -> Option<u32> {
        match self {
            Self::Drawn(_) => None,
            Self::Listed(listed) => Some(listed.request()),
        }
    }

    /// Turns to the request after it.
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
            Arrivals::Constant => schedule.random.f64(),
            Arrivals::Poisson => schedule.gap(),
        };
        schedule.go_on(first);
        schedule
    }

    fn next(&self) -> u64 {
        self.at.map_or(NEVER, |at| {
            // Saturates, like the conversion.
            self.origin.saturating_add((at * 1e9) as u64)
        })
    }

    fn advance(&mut self) {
        let gap = self.gap();
        self.go_on(gap);
    }

    /// The distance to the next request where one lasts 1.
    fn gap(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Constant => 1.0,
            // In (0, 1], so that the logarithm is finite.
            Arrivals::Poisson => -(1.0 - self.random.f64()).ln(),
        }
    }

    fn go_on(&mut self, gap: f64) {
        self.at = self
            .at
            .and_then(|at| self.level.reach(at, gap / self.share));
    }
}
