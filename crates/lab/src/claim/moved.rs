//! Whether a ratio was the same throughout the measured span: a server that was not warm yet is not what it will be.
//!
//! Each round has the ratio of the first third of the span and that of the last. What the machine does to both levels, and
//! what both do alike, cancels out as in the claim itself. The change from one to the other has an interval over starts as
//! the claim has; a claim is forbidden if the change is real and larger than [`MOVEMENT_MAX`].

use catamaran_stats::{MOVEMENT_MAX, Spread, order};

use super::starts::{Lasting, Ratio};
use super::{LEVEL, Runs, number, of_sides};
use crate::experiment::Case;
use crate::gate::{Effect, Fired};
use crate::measure::Measure;
use crate::run::Run;

pub(super) fn check(
    case: &Case,
    measure: &Measure,
    lasting: &Lasting,
    runs: &Runs<'_>,
) -> Option<Fired> {
    let rounds = runs.keys().map(|(_, round)| round + 1).max().unwrap_or(0);
    let third = |round: usize, which: usize| {
        of_sides(&case.contrasts, round, runs, |run| {
            value(run, measure, which)
        })
    };
    let known = (0..rounds).filter_map(|round| {
        let [first, last] = [third(round, 0)?, third(round, 1)?];
        Some((round, first, last))
    });
    let known: Vec<(usize, f64, f64)> = known.collect();
    let changes = known.iter().map(|(round, first, last)| Ratio {
        round: *round,
        value: last / first,
    });
    let starts = lasting.sample(case, &changes.collect::<Vec<_>>(), runs);
    let change = order::median_interval(&starts, LEVEL)?;
    if !change.excludes(1.0) || change.median.ln().abs() <= MOVEMENT_MAX.ln_1p() {
        return None;
    }
    let median = |of: fn(&(usize, f64, f64)) -> f64| {
        let values: Vec<f64> = known.iter().map(of).collect();
        Spread::of(&values).map(|spread| number(spread.median))
    };
    let words = format!(
        "Within the measured span the ratio moved from ×{} in its first third to ×{} in its last, over {} starts: a level \
         was not warm, or did not stay what it was.",
        median(|(_, first, _)| *first)?,
        median(|(_, _, last)| *last)?,
        starts.len()
    );
    Some(Fired::new("unsteady", Effect::Claim, words))
}

/// The logarithm of a run's value in one third of its span.
fn value(run: &Run, measure: &Measure, which: usize) -> Option<f64> {
    // Of a p90 no value of a part of the span is known; it moves as the median does.
    let names = [
        measure.name().to_owned(),
        measure.name().replace("p90", "p50"),
    ];
    let thirds = names.iter().find_map(|name| run.thirds.get(name))?;
    Some(thirds[which])
        .filter(|value| *value > 0.0)
        .map(f64::ln)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{experiment, outcome, runs};
    use super::super::{Outcome, Verdict, evaluate};

    /// Claims after twelve rounds in which CPU time in the first third of the span was so many times that in the last, with
    /// kept and with closed connections.
    fn claimed(factors: [f64; 2], says: &str) -> Outcome {
        let experiment = experiment();
        let mut runs = runs(&experiment, 12, |round| 0.5 + round as f64 / 1000.0);
        for run in &mut runs {
            let is_kept = run.levels["keep"].to_string() == "on";
            let factor = factors[usize::from(!is_kept)];
            let cpu = run.measures["cpu"];
            run.thirds.insert("cpu".to_owned(), [cpu * factor, cpu]);
            let rate = run.measures["throughput"];
            run.thirds.insert("throughput".to_owned(), [rate, rate]);
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

    #[test]
    fn what_both_levels_did_alike_and_little_is_no_matter() {
        for factors in [[1.0, 1.0], [1.6, 1.6], [1.04, 1.0]] {
            let cpu = claimed(factors, "Keep-alive saves CPU");
            assert_eq!(
                cpu.verdict,
                Verdict::Differs,
                "{factors:?} {}",
                cpu.sentence
            );
        }
    }
}
