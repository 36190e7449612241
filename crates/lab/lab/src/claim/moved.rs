//! The gate `unsteady` on claims: whether the ratio changed within the measured span, as if a server was not warm.
//!
//! Each round gives the ratio of each third of the span. What the machine does to both sides, and what both sides do
//! alike, cancels out as in the claim itself. Two changes are tested: from the first third to the last one (a side that
//! was cold at first), and from these two to the middle one (a side that differed for a while). A claim is forbidden if
//! a change is larger than [`MOVEMENT_MAX`] and more than noise explains. If nothing moves, at most 5 % of claims are
//! forbidden, by all tests and all looks together. This holds for any noise, so also for duels whose thirds are one
//! block each. With fewer than eight starts only the interval of a change is tested, which forbids more claims.
//!
//! Where others take a share of the servers' cores, the rate of a third changes by far more than a cold server would
//! change it. Others hardly change the CPU time of a request. So a claim on the rate or the latency of a closed loop
//! whose servers are the limit is also forbidden if the ratio of CPU times moved.

use catamaran_stats::{MOVEMENT_MAX, Spread, flips};

use super::starts::Ratio;
use super::{CaseSubject, is_in, number, of_sides, rounds_of, rule};
use crate::gate::{Effect, GateFinding, SERVER_BUSY, UNSTEADY};
use crate::measure::{CPU, Measure, THROUGHPUT};
use crate::run::Run;

/// Forbids a claim if its ratio changed within the span.
pub(super) fn check(subject: &CaseSubject<'_>) -> Option<GateFinding> {
    let own = Movement::of(subject, "the ratio", &subject.claim.measure);
    let mut movements = vec![];
    if follows_cpu(subject)
        && let Ok(cpu) = Measure::parse(CPU)
    {
        let of_cpu = Movement::of(subject, "the ratio of CPU times", &cpu);
        // A flip is one of all figures of a start, so both must be of the same starts.
        let is_alike = own.rounds.is_empty() || of_cpu.is_of_rounds_of(&own);
        movements.extend(is_alike.then_some(of_cpu));
    }
    movements.insert(0, own);
    movements.retain(|movement| !movement.rounds.is_empty());
    // The first change that is a large one is named; the test of flips is on all.
    let finding = movements.iter().find_map(Movement::finding)?;
    let starts = movements.iter().map(Movement::count).min()?;
    // With fewer starts the test of flips can hardly become significant, so the interval alone decides.
    if starts < STARTS_MIN {
        return Some(finding);
    }
    let changes: Vec<&Vec<f64>> = movements
        .iter()
        .flat_map(|movement| &movement.samples)
        .collect();
    let logs: Vec<[f64; FIGURES]> = (0..starts).map(|start| logs_of(&changes, start)).collect();
    let is_clear = subject.spent.p_value(flips::p_value(&logs)) <= REFUSED_MAX;
    is_clear.then_some(finding)
}

/// The logarithms of all changes in one start; 0 for changes that are not tested.
fn logs_of(changes: &[&Vec<f64>], start: usize) -> [f64; FIGURES] {
    let mut logs = [0.0; FIGURES];
    for (log, change) in logs.iter_mut().zip(changes) {
        *log = change[start].ln();
    }
    logs
}

/// Whether the claim is on the rate or the latency of a closed loop that the servers limit: then it follows from the CPU
/// time of a request.
fn follows_cpu(subject: &CaseSubject<'_>) -> bool {
    let measure = &subject.claim.measure;
    let is_time = [THROUGHPUT, "p50", "p90", "p99"].contains(&measure.name());
    let contrasts = &subject.case.contrasts;
    let of_case = || {
        subject
            .runs
            .iter()
            .filter(|((cell, _), _)| is_in(contrasts, *cell))
    };
    let is_closed = of_case().all(|(_, run)| run.facts.clients.is_some());
    let shares = of_case().filter_map(|(_, run)| run.facts.machine.as_ref()?.server_core);
    let busy = Spread::of(&shares.collect::<Vec<f64>>());
    // Of servers that are not pinned it is not known.
    is_time && is_closed && busy.is_none_or(|busy| busy.median >= SERVER_BUSY)
}

/// A measure's ratios in the thirds of the rounds, and how they changed.
struct Movement {
    /// What moved, in words.
    what: &'static str,
    rounds: Vec<RoundThirds>,
    /// For each of [`CHANGES`], the factor of each start.
    samples: Vec<Vec<f64>>,
}

impl Movement {
    fn of(subject: &CaseSubject<'_>, what: &'static str, measure: &Measure) -> Self {
        let rounds = rounds_with_thirds(subject, measure);
        let samples = CHANGES.iter().map(|change| change.sample(subject, &rounds));
        Self {
            what,
            samples: samples.collect(),
            rounds,
        }
    }

    fn is_of_rounds_of(&self, other: &Self) -> bool {
        let rounds = self.rounds.iter().map(|thirds| thirds.round);
        rounds.eq(other.rounds.iter().map(|thirds| thirds.round))
    }

    /// The number of starts.
    fn count(&self) -> usize {
        let counts = self.samples.iter().map(Vec::len);
        counts.min().unwrap_or(0)
    }

    /// The finding on the first of the changes that is large and beyond the noise.
    fn finding(&self) -> Option<GateFinding> {
        let mut tested = CHANGES.iter().zip(&self.samples);
        tested.find_map(|(change, starts)| change.finding(self.what, starts, &self.rounds))
    }
}

/// The ratio of both sides in each third of a round's span.
struct RoundThirds {
    round: usize,
    ratios: [f64; 3],
}

/// The rounds in which the ratio of each third is known.
fn rounds_with_thirds(subject: &CaseSubject<'_>, measure: &Measure) -> Vec<RoundThirds> {
    let mut rounds = Vec::new();
    for round in 0..rounds_of(subject.runs) {
        let third = |which: usize| {
            of_sides(&subject.case.contrasts, round, subject.runs, |run| {
                value(run, measure, which)
            })
        };
        if let (Some(first), Some(middle), Some(last)) = (third(0), third(1), third(2)) {
            let ratios = [first, middle, last];
            rounds.push(RoundThirds { round, ratios });
        }
    }
    rounds
}

/// A change between the thirds of a span: functions that take the ratio before and the ratio after it, with words for
/// both.
struct Change {
    from: fn(&[f64; 3]) -> f64,
    from_words: &'static str,
    to: fn(&[f64; 3]) -> f64,
    to_words: &'static str,
}

impl Change {
    /// For each start of servers, the factor by which the ratio changed.
    fn sample(&self, subject: &CaseSubject<'_>, rounds: &[RoundThirds]) -> Vec<f64> {
        let factors = rounds.iter().map(|RoundThirds { round, ratios }| Ratio {
            round: *round,
            value: (self.to)(ratios) / (self.from)(ratios),
        });
        let factors: Vec<Ratio> = factors.collect();
        subject
            .start_spans
            .sample(subject.case, &factors, subject.runs)
    }

    /// The finding, if the factors of the starts are clearly apart from 1 and the change is a large one.
    fn finding(&self, what: &str, starts: &[f64], rounds: &[RoundThirds]) -> Option<GateFinding> {
        let interval = rule::interval(starts)?;
        if !interval.excludes(1.0) || interval.ratio.ln().abs() <= MOVEMENT_MAX.ln_1p() {
            return None;
        }
        let median = |of: fn(&[f64; 3]) -> f64| {
            let values: Vec<f64> = rounds.iter().map(|round| of(&round.ratios)).collect();
            Spread::of(&values).map(|spread| number(spread.median))
        };
        let words = format!(
            "Within the measured span {what} moved from ×{} in its {} to ×{} in its {}, over {} starts: a level was not \
             warm, or did not stay what it was.",
            median(self.from)?,
            self.from_words,
            median(self.to)?,
            self.to_words,
            starts.len()
        );
        Some(GateFinding::new(UNSTEADY, Effect::Claim, words))
    }
}

/// The logarithm of a run's value in one third of its span.
fn value(run: &Run, measure: &Measure, which: usize) -> Option<f64> {
    // There is no p90 of a part of the span; it moves as the median does.
    let names = [
        measure.name().to_owned(),
        measure.name().replace("p90", "p50"),
    ];
    let thirds = names.iter().find_map(|name| run.thirds.get(name))?;
    Some(thirds[which])
        .filter(|value| *value > 0.0)
        .map(f64::ln)
}

const CHANGES: [Change; 2] = [
    Change {
        from: |thirds| thirds[0],
        from_words: "first third",
        to: |thirds| thirds[2],
        to_words: "last",
    },
    Change {
        from: |thirds| (thirds[0] * thirds[2]).sqrt(),
        from_words: "first third and its last",
        to: |thirds| thirds[1],
        to_words: "middle one",
    },
];

/// The share of claims that may be forbidden by chance. It is below 5 %, since the levels of looks assume a normal
/// distribution.
const REFUSED_MAX: f64 = 0.04;

/// The least number of starts for the test of both changes together. With six starts there are 64 flips, so no p value
/// would be below 3 %.
const STARTS_MIN: usize = 8;

/// The number of figures that are tested together: the changes of the claim's measure, and those of CPU time.
const FIGURES: usize = 2 * CHANGES.len();

#[cfg(test)]
mod tests {
    use super::super::tests::{experiment, outcome, runs};
    use super::super::{Outcome, Verdict, evaluate};
    use crate::facts::MachineFacts;

    /// The claims after twelve rounds in which CPU time in the first third of the span is a factor times that in the
    /// last: one factor for kept connections, one for closed ones.
    fn claimed(factors: [f64; 2], says: &str) -> Outcome {
        claimed_by(factors, |factor| [factor, 1.0, 1.0], says)
    }

    /// The claims where `thirds(factor)` gives the CPU time in each third, as a factor of the usual one.
    fn claimed_by(factors: [f64; 2], thirds: fn(f64) -> [f64; 3], says: &str) -> Outcome {
        let experiment = experiment();
        let mut runs = runs(&experiment, 12, |round| 0.5 + round as f64 / 1000.0);
        for run in &mut runs {
            let is_kept = run.levels["keep"].to_string() == "on";
            let factor = factors[usize::from(!is_kept)];
            let cpu = run.measures["cpu"];
            let of_cpu = thirds(factor).map(|factor| cpu * factor);
            run.thirds.insert("cpu".to_owned(), of_cpu);
            let rate = run.measures["throughput"];
            run.thirds.insert("throughput".to_owned(), [rate; 3]);
        }
        outcome(&evaluate(&experiment, &runs), says).clone()
    }

    #[test]
    fn a_level_that_was_cold_has_no_claim_on_what_was_cold() {
        let cpu = claimed([1.6, 1.0], "Keep-alive saves CPU");
        assert_eq!(cpu.verdict, Verdict::NoClaim);
        assert_eq!(
            cpu.sentence,
            "No claim: Within the measured span the ratio moved from ×0.81 in its first third to ×0.51 in its last, over 12 \
             starts: a level was not warm, or did not stay what it was."
        );
        let rate = claimed([1.6, 1.0], "Keep-alive raises throughput");
        assert_eq!(
            rate.verdict,
            Verdict::Differs,
            "it is not known that the loop is closed"
        );
    }

    /// The claim on throughput after twelve rounds of a closed loop in which kept connections cost 1.6 times as much CPU
    /// time in the first third, and noise of the rate hides it; the server's core is so busy.
    fn claimed_beside_others(server_core: Option<f64>) -> Outcome {
        let experiment = experiment();
        let mut runs = runs(&experiment, 12, |round| 0.5 + round as f64 / 1000.0);
        for run in &mut runs {
            let is_kept = run.levels["keep"].to_string() == "on";
            run.facts.clients = Some(20);
            run.facts.machine = Some(MachineFacts {
                server_core,
                ..MachineFacts::default()
            });
            let first = if is_kept { 1.6 } else { 1.0 };
            run.thirds.insert("cpu".to_owned(), [first, 1.0, 1.0]);
            // Other work halves the rate of one side in a third of the span, each round in another one.
            let mut rates = [1.0; 3];
            rates[run.round % 3] = if is_kept { 0.5 } else { 1.0 };
            run.thirds.insert("throughput".to_owned(), rates);
        }
        outcome(
            &evaluate(&experiment, &runs),
            "Keep-alive raises throughput",
        )
        .clone()
    }

    #[test]
    fn a_rate_that_others_disturb_is_judged_by_cpu_time() {
        for server_core in [Some(0.99), None] {
            let rate = claimed_beside_others(server_core);
            assert_eq!(
                rate.sentence,
                "No claim: Within the measured span the ratio of CPU times moved from ×1.60 in its first third to ×1.000 \
                 in its last, over 12 starts: a level was not warm, or did not stay what it was."
            );
        }
        // The server waits for something else than its core.
        let rate = claimed_beside_others(Some(0.4));
        assert_eq!(rate.verdict, Verdict::Differs, "{}", rate.sentence);
    }

    /// CPU time at the end is as at the beginning, and different in between.
    #[test]
    fn a_level_that_was_another_for_a_while_has_no_claim() {
        let middle = |factor| [1.0, factor, 1.0];
        let cpu = claimed_by([1.6, 1.0], middle, "Keep-alive saves CPU");
        assert_eq!(cpu.verdict, Verdict::NoClaim);
        assert_eq!(
            cpu.sentence,
            "No claim: Within the measured span the ratio moved from ×0.51 in its first third and its last to ×0.81 in its \
             middle one, over 12 starts: a level was not warm, or did not stay what it was."
        );
    }

    #[test]
    fn what_both_levels_did_alike_and_little_is_no_matter() {
        let shapes: [fn(f64) -> [f64; 3]; 2] =
            [|factor| [factor, 1.0, 1.0], |factor| [1.0, factor, 1.0]];
        for factors in [[1.0, 1.0], [1.6, 1.6], [1.04, 1.0]] {
            for thirds in shapes {
                let cpu = claimed_by(factors, thirds, "Keep-alive saves CPU");
                assert_eq!(
                    cpu.verdict,
                    Verdict::Differs,
                    "{factors:?} {}",
                    cpu.sentence
                );
            }
        }
    }
}
