//! Claims on servers with a known true ratio: whether the verdict is right, and after how many starts it was reached.

use catamaran_stats::looks::SpentLevel;
use serde::{Deserialize, Serialize};

use super::{CaseEstimate, Outcome, Verdict, hold, rule};
use crate::experiment::Experiment;

/// The true ratio of a claim, on servers that are made to have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlantedRatio {
    /// The true ratio.
    pub ratio: f64,
    /// The least number of starts of servers after which the final verdict was reached and no longer changed; `None` if
    /// the final verdict is open.
    pub decided_after: Option<usize>,
}

/// The planted ratio of each case; `None` for claims without one.
pub(super) fn of(
    experiment: &Experiment,
    estimates: &[CaseEstimate<'_>],
) -> Vec<Option<PlantedRatio>> {
    if estimates.iter().all(|case| case.claim.planted.is_none()) {
        return vec![None; estimates.len()];
    }
    let sample_sizes = estimates.iter().map(|case| case.starts.len());
    let most = sample_sizes.max().unwrap_or(0);
    let last_verdicts = verdicts(experiment, estimates, most, most);
    let mut decided_after = vec![None; estimates.len()];
    for starts in 1..=most {
        let verdicts = verdicts(experiment, estimates, starts, most);
        for (case, verdict) in verdicts.into_iter().enumerate() {
            // The first of the looks from which on the verdict stays final: any other verdict sets it back to `None`.
            let is_final = verdict == last_verdicts[case] && is_decided(verdict);
            decided_after[case] = is_final.then(|| decided_after[case].unwrap_or(starts));
        }
    }
    let cases = estimates.iter().zip(decided_after);
    let planted = cases.map(|(case, decided_after)| {
        case.claim.planted.map(|ratio| PlantedRatio {
            ratio,
            decided_after,
        })
    });
    planted.collect()
}

fn is_decided(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Differs | Verdict::DiffersLittle | Verdict::Same
    )
}

/// The verdicts at a look after the first `starts` starts, if `most` starts are planned.
fn verdicts(
    experiment: &Experiment,
    estimates: &[CaseEstimate<'_>],
    starts: usize,
    most: usize,
) -> Vec<Verdict> {
    let spent = SpentLevel::at(starts, most);
    let mut early = estimates.to_vec();
    for estimate in &mut early {
        estimate.starts.truncate(starts);
        let test = rule::test(&estimate.starts, &spent, estimate.bias);
        (estimate.interval, estimate.p) = (test.interval, test.p);
    }
    let holds = hold(experiment, &early);
    let cases = early.iter().zip(holds);
    cases.map(|(case, holm)| case.verdict(holm)).collect()
}

impl Outcome {
    /// The relative error of the measured ratio, with its sign; `None` if either ratio is not known.
    pub(crate) fn off(&self) -> Option<f64> {
        Some(self.ratio? / self.planted?.ratio - 1.0)
    }

    /// Whether the measured ratio is right: the planted one is within its interval, or differs by at most [`TRULY`].
    /// `None` if either is not known.
    pub(crate) fn is_told_truly(&self) -> Option<bool> {
        let planted_ratio = self.planted?.ratio;
        let is_within = (self.low?..=self.high?).contains(&planted_ratio);
        Some(is_within || self.off()?.abs() <= TRULY)
    }
}

/// The largest relative error that counts as right even if the planted ratio is outside of a narrow interval: 0.5 %.
pub(crate) const TRULY: f64 = 0.005;
