//! Simulated warm-ups: series with noise, judged each second as a run does.

#[cfg(not(test))]
use catamaran_stats::{MOVEMENT_MAX, WarmUp, warm_up};

#[cfg(test)]
use crate::{MOVEMENT_MAX, WarmUp, warm_up};

/// The noise of a series' values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// The standard deviation of the noise, as a share of the final level.
    pub(crate) deviation: f64,
    /// The correlation of neighbouring values.
    pub(crate) correlation: f64,
}

impl Noise {
    /// An endless series: the values of `level`, one for each second, with this noise added.
    pub(crate) fn about(self, level: impl Fn(f64) -> f64, seed: u64) -> impl Iterator<Item = f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut error = normal(&mut random);
        let mut time = 0.0;
        std::iter::repeat_with(move || {
            let value = level(time) + self.deviation * error;
            let kept = self.correlation;
            error = kept * error + (1.0 - kept * kept).sqrt() * normal(&mut random);
            time += 1.0;
            value
        })
    }
}

/// The end of one run's warm-up: the last verdict, and how much the level still moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ending {
    verdict: WarmUp,
    /// How much the level itself, without noise, moves over the span that follows.
    movement: f64,
}

/// The shares of [`RUNS`] simulated warm-ups that ended with each verdict.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    pub(crate) steady: f64,
    pub(crate) moving: f64,
    pub(crate) unclear: f64,
    /// The share that was called steady although the level still moves by [`MOVEMENT_MAX`] or more.
    pub(crate) wrong: f64,
}

/// The number of runs of each case.
pub(crate) const RUNS: u64 = 1000;

impl Share {
    /// Simulates [`RUNS`] runs, each with a seed of its own, and counts their verdicts.
    pub(crate) fn of(run: impl Fn(u64) -> Ending) -> Self {
        let mut share = Self::default();
        for seed in 0..RUNS {
            let ending = run(seed);
            match ending.verdict {
                WarmUp::Steady => share.steady += 1.0,
                WarmUp::Moving(_) => share.moving += 1.0,
                WarmUp::Unclear(_) => share.unclear += 1.0,
            }
            if ending.verdict == WarmUp::Steady && ending.movement >= MOVEMENT_MAX {
                share.wrong += 1.0;
            }
        }
        let runs = RUNS as f64;
        Self {
            steady: share.steady / runs,
            moving: share.moving / runs,
            unclear: share.unclear / runs,
            wrong: share.wrong / runs,
        }
    }
}

/// A run at a constant level.
pub(crate) fn stationary(noise: Noise, span: f64, seed: u64) -> Ending {
    run(|_| 1.0, noise, span, seed)
}

/// A run whose level starts at half of its final value and approaches it: 1 - e^(-t/tau)/2.
pub(crate) fn drift(tau: f64, noise: Noise, span: f64, seed: u64) -> Ending {
    run(|time| 1.0 - 0.5 * (-time / tau).exp(), noise, span, seed)
}

/// Judges each second, until the verdict is steady or the time is over.
fn run(level: impl Fn(f64) -> f64, noise: Noise, span: f64, seed: u64) -> Ending {
    let mut series = Vec::with_capacity(SECONDS_MAX);
    let mut verdict = WarmUp::Unclear(f64::INFINITY);
    for value in noise.about(&level, seed).take(SECONDS_MAX) {
        series.push(value);
        verdict = warm_up(&series, span);
        if verdict == WarmUp::Steady {
            break;
        }
    }
    let now = series.len() as f64;
    let movement = (level(now + span) - level(now)) / level(now);
    Ending { verdict, movement }
}

/// A random value of the standard normal distribution, by Box and Muller.
pub(crate) fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// The time after which a run stops waiting, in seconds.
const SECONDS_MAX: usize = 60;
