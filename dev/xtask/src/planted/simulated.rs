//! How often the lab's rule shows each claim if starts deviate normally, as much as they did in the runs.
//!
//! Each simulated run takes the deviations that one of the runs had, so that quiet and busy hours are as frequent as in
//! the runs. No gate forbids anything.

use catamaran_stats::looks::{SpentLevel, looks};
use catamaran_stats::order;
use catamaran_stats::ratio::{self, RatioTest};

use super::found::PlantedRun;
use super::{CLAIMS, CPU, LEVEL, THROUGHPUT};

/// The share of simulated runs of `planned` starts that show each of [`CLAIMS`], on the side of the truth where there is
/// one.
pub(super) fn simulated(runs: &[&PlantedRun], planned: usize) -> [f64; CLAIMS.len()] {
    let looks: Vec<Look> = looks(planned)
        .into_iter()
        .map(|starts| Look::of(starts, planned))
        .collect();
    let mut shown = [0_u32; CLAIMS.len()];
    // All seeds are fixed, so that the page is the same each time.
    for (seed, run) in (0..TIMES).zip(runs.iter().cycle()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut starts = [const { Vec::new() }; CLAIMS.len()];
        for (number, claim) in CLAIMS.iter().enumerate() {
            let deviation = run.claims[number].deviation.unwrap_or_default();
            let start = |_| claim.truth() * (deviation * normal(&mut random)).exp();
            starts[number] = (0..planned).map(start).collect();
        }
        let mut verdicts = [SimulatedVerdict::Open; CLAIMS.len()];
        // The lab ends at the first look at which all claims are decided.
        for look in &looks {
            verdicts = look.at(&starts);
            if !verdicts.contains(&SimulatedVerdict::Open) {
                break;
            }
        }
        for (shown, verdict) in shown.iter_mut().zip(verdicts) {
            *shown += u32::from(verdict == SimulatedVerdict::Shown);
        }
    }
    shown.map(|count| f64::from(count) / TIMES as f64)
}

/// What is said of a claim at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SimulatedVerdict {
    Shown,
    /// It is shown that nothing differs by more than the margin, or that the other side has more.
    Decided,
    Open,
}

/// A look after some starts.
struct Look {
    starts: usize,
    spent: SpentLevel,
}

impl Look {
    fn of(starts: usize, planned: usize) -> Self {
        Self {
            starts,
            spent: SpentLevel::at(starts, planned),
        }
    }

    /// The verdicts on the claims by their starts so far.
    fn at(&self, starts: &[Vec<f64>; CLAIMS.len()]) -> [SimulatedVerdict; CLAIMS.len()] {
        let tests = starts
            .each_ref()
            .map(|starts| ratio::test(&starts[..self.starts], LEVEL, &self.spent, 0.0));
        let mut verdicts = [SimulatedVerdict::Open; CLAIMS.len()];
        // Claims on one measure are one question.
        for measure in [CPU, THROUGHPUT] {
            let of_question =
                || (0..CLAIMS.len()).filter(|number| CLAIMS[*number].measure == measure);
            let p_values: Vec<f64> = of_question().map(|number| tests[number].p).collect();
            for (number, holds) in of_question().zip(order::holm(&p_values, LEVEL)) {
                verdicts[number] = verdict(number, tests[number], holds);
            }
        }
        verdicts
    }
}

/// The verdict on a claim that holds together with the others of its question, or does not.
fn verdict(number: usize, test: RatioTest, holds: bool) -> SimulatedVerdict {
    let claim = &CLAIMS[number];
    let Some(interval) = test.interval else {
        return SimulatedVerdict::Open;
    };
    let is_within = interval.high < 1.0 + MARGIN && interval.low > 1.0 / (1.0 + MARGIN);
    if holds && interval.excludes(1.0) {
        let is_on_its_side =
            claim.is_of_equals() || (interval.ratio > 1.0) == (claim.truth() > 1.0);
        return if is_on_its_side {
            SimulatedVerdict::Shown
        } else {
            SimulatedVerdict::Decided
        };
    }
    if is_within {
        SimulatedVerdict::Decided
    } else {
        SimulatedVerdict::Open
    }
}

/// A random value of the standard normal distribution, by Box and Muller.
fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// The margin of the claims: the lab's default.
const MARGIN: f64 = 0.05;

/// The number of simulated runs.
const TIMES: u64 = 2000;

#[cfg(test)]
mod tests {
    use super::super::found::{ClaimFinding, DUEL};
    use super::*;

    /// A run whose CPU times and throughputs have these deviations between starts.
    fn run(cpu: f64, throughput: f64) -> PlantedRun {
        let claims = CLAIMS.iter().map(|claim| {
            let deviation = if claim.measure == CPU {
                cpu
            } else {
                throughput
            };
            ClaimFinding::of_words("not-shown", None, Some(deviation)).unwrap()
        });
        PlantedRun {
            started_at_s: 0,
            seed: 0,
            form: DUEL.to_owned(),
            planned: 8,
            rounds: 8,
            build: "dev".to_owned(),
            claims: claims.collect(),
        }
    }

    /// Of eight starts 5 % of the claims on equal servers are wrong at most, and what is far above the noise is found.
    #[test]
    fn equals_are_rarely_told_apart_and_what_is_clear_is_found() {
        let run = run(0.005, 0.3);
        let shares = simulated(&[&run], 8);
        for (claim, share) in CLAIMS.iter().zip(shares) {
            if claim.is_of_equals() {
                assert!(share <= 0.06, "{}: {share}", claim.says);
            } else if claim.measure == CPU {
                assert!(share > 0.99, "{}: {share}", claim.says);
            } else {
                assert!(share < 0.3, "{}: {share}", claim.says);
            }
        }
        assert_eq!(shares, simulated(&[&run], 8), "always the same");
    }
}
