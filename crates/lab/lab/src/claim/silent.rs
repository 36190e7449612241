//! The gate `silences` on claims: whether clients of one side had spans without any response in more runs.
//!
//! Clients of a closed loop send nothing while they wait, so only one request of each client contains the stall. A
//! server that stops for 200 ms every two seconds has the same p99 as one that never stops.

use catamaran_stats::{Share, fisher};

use super::{CaseSubject, LEVEL, is_above, is_below, survivors};
use crate::experiment::Contrast;
use crate::gate::{self, Effect, GateFinding};
use crate::measure::{LONGEST_SILENCE, SILENCES, Spoiler};
use crate::run::Run;

/// Forbids a claim on a percentile of a closed loop if more runs of one side had silences than chance explains. On
/// other times it is a remark, since they contain the stalls.
pub(super) fn check(subject: &CaseSubject<'_>) -> Option<GateFinding> {
    let CaseSubject {
        claim, case, runs, ..
    } = *subject;
    let measure = &claim.measure;
    let is_of_silences = [SILENCES, LONGEST_SILENCE].contains(&measure.base());
    // A measure with `@` is of a load by a schedule, whose clients do not wait.
    let is_by_schedule = measure.name().contains('@');
    if measure.record().spoiler == Spoiler::Nothing || is_of_silences || is_by_schedule {
        return None;
    }
    let side = |is_of_side: fn(&[Contrast], usize) -> bool| {
        let of_side = runs
            .iter()
            .filter(|((cell, _), _)| is_of_side(&case.contrasts, *cell));
        Side::of(of_side.map(|(_, run)| *run))
    };
    let (above, below) = (side(is_above), side(is_below));
    if fisher(above.runs, below.runs) > 1.0 - LEVEL {
        return None;
    }
    let is_hidden = ["p50", "p90", "p99"].contains(&measure.base()) && above.is_closed;
    let (effect, meaning) = if is_hidden {
        (Effect::Claim, "percentiles of a closed loop hide that")
    } else {
        (
            Effect::Note,
            "its own measures are silences and longest_silence",
        )
    };
    let [level, over] = survivors::names(claim);
    let words = format!(
        "There were spans without an answer in {} runs with {level}, of {:.0} ms at most, and in {} with {over}, of {:.0} \
         ms: {meaning}.",
        gate::part_of(above.runs.part, above.runs.whole),
        above.longest_ms,
        gate::part_of(below.runs.part, below.runs.whole),
        below.longest_ms
    );
    Some(GateFinding::new("silences", effect, words))
}

/// The silences of one side's runs.
struct Side {
    /// The share of runs that had silences.
    runs: Share,
    longest_ms: f64,
    is_closed: bool,
}

impl Side {
    fn of<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        let mut side = Self {
            runs: Share::default(),
            longest_ms: 0.0,
            is_closed: true,
        };
        for run in runs {
            let Some(silences) = &run.facts.silences else {
                continue;
            };
            side.runs.whole += 1;
            side.runs.part += u64::from(silences.count > 0);
            side.longest_ms = side.longest_ms.max(silences.longest_ms);
            side.is_closed &= run.facts.clients.is_some();
        }
        side
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{experiment, outcome, runs};
    use super::super::{Outcome, Verdict, evaluate};
    use super::*;
    use crate::facts::SilenceFacts;

    /// What is claimed of twelve rounds in which the first runs with kept connections had silences.
    fn claimed(says: &str, silent: usize) -> Outcome {
        let experiment = experiment();
        let mut runs = runs(&experiment, 12, |round| 0.5 + round as f64 / 1000.0);
        for run in &mut runs {
            let is_kept = run.levels["keep"].to_string() == "on";
            let count = u64::from(is_kept && run.round < silent);
            run.facts.clients = Some(100);
            run.facts.silences = Some(SilenceFacts {
                count,
                longest_ms: if count > 0 { 203.0 } else { 12.0 },
                ..SilenceFacts::default()
            });
        }
        outcome(&evaluate(&experiment, &runs), says).clone()
    }

    #[test]
    fn a_percentile_that_hides_stalls_is_no_claim() {
        let p99 = "Keep-alive makes the slowest requests slower";
        let claim = claimed(p99, 12);
        assert_eq!(claim.verdict, Verdict::NoClaim);
        assert_eq!(
            claim.sentence,
            "No claim: There were spans without an answer in 12 of 12 runs with keep=on, of 203 ms at most, and in 0 of \
             12 with keep=off, of 12 ms: percentiles of a closed loop hide that."
        );
        // As many as a machine may bring about by itself.
        for few in [0, 1, 4] {
            assert_eq!(claimed(p99, few).verdict, Verdict::Same, "{few}");
        }
    }

    #[test]
    fn beside_other_measures_they_are_a_note() {
        let claim = claimed("Keep-alive saves CPU", 12);
        assert_eq!(claim.verdict, Verdict::Differs);
        let gates = claim.gates.iter();
        assert!(
            gates
                .map(|it| (&it.gate[..], it.effect))
                .any(|it| it == ("silences", Effect::Note))
        );
    }
}
