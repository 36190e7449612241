//! The gate `unsteady` on claims: whether the ratio changed within the measured span, as if a server was not warm.
//!
//! Each round gives the ratio of each third of the span. What the machine does to both sides, and what both sides do
//! alike, cancels out as in the claim itself. Two changes are tested: from the first third to the last one (a side that
//! was cold at first), and from these two to the middle one (a side that differed for a while). A claim is forbidden if
//! a change is larger than [`MOVEMENT_MAX`] and more than noise explains. If nothing moves, at most 5 % of claims are
//! forbidden, by both tests and all looks together. This holds for any noise, so also for duels whose thirds are one
//! block each. With fewer than eight starts only the interval of a change is tested, which forbids more claims.

use catamaran_stats::{MOVEMENT_MAX, Spread, flips};

use super::starts::Ratio;
use super::{CaseSubject, number, of_sides, rounds_of, rule};
use crate::gate::{Effect, GateFinding, UNSTEADY};
use crate::measure::Measure;
use crate::run::Run;

/// Forbids a claim if its ratio changed within the span.
pub(super) fn check(subject: &CaseSubject<'_>) -> Option<GateFinding> {
    let rounds = rounds_with_thirds(subject);
    let samples = CHANGES.map(|change| change.sample(subject, &rounds));
    // The first change that is a large one is named; the test of flips is on both.
    let mut tested = CHANGES.iter().zip(&samples);
    let finding = tested.find_map(|(change, starts)| change.finding(starts, &rounds))?;
    let [to_last, to_middle] = &samples;
    let changes = to_last.iter().zip(to_middle);
    let logs: Vec<[f64; 2]> = changes.map(|(last, mid)| [last.ln(), mid.ln()]).collect();
    // With fewer starts the test of flips can hardly become significant, so the interval alone decides.
    if logs.len() < STARTS_MIN {
        return Some(finding);
    }
    let is_clear = subject.spent.p_value(flips::p_value(&logs)) <= REFUSED_MAX;
    is_clear.then_some(finding)
}

/// The ratio of both sides in each third of a round's span.
struct RoundThirds {
    round: usize,
    ratios: [f64; 3],
}

/// The rounds in which the ratio of each third is known.
fn rounds_with_thirds(subject: &CaseSubject<'_>) -> Vec<RoundThirds> {
    let mut rounds = Vec::new();
    for round in 0..rounds_of(subject.runs) {
        let third = |which: usize| {
            of_sides(&subject.case.contrasts, round, subject.runs, |run| {
                value(run, &subject.claim.measure, which)
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
    fn finding(&self, starts: &[f64], rounds: &[RoundThirds]) -> Option<GateFinding> {
        let interval = rule::interval(starts)?;
        if !interval.excludes(1.0) || interval.ratio.ln().abs() <= MOVEMENT_MAX.ln_1p() {
            return None;
        }
        let median = |of: fn(&[f64; 3]) -> f64| {
            let values: Vec<f64> = rounds.iter().map(|round| of(&round.ratios)).collect();
            Spread::of(&values).map(|spread| number(spread.median))
        };
        let words = format!(
            "Within the measured span the ratio moved from ×{} in its {} to ×{} in its {}, over {} starts: a level was not \
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

#[cfg(test)]
mod tests {
    use super::super::tests::{experiment, outcome, runs};
    use super::super::{Outcome, Verdict, evaluate};

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
        assert_eq!(rate.verdict, Verdict::Differs, "each measure has its own");
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
