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
pub(super) fn of(experiment: &Experiment, drawn: &[CaseEstimate<'_>]) -> Vec<Option<PlantedRatio>> {
    if drawn.iter().all(|it| it.claim.planted.is_none()) {
        return vec![None; drawn.len()];
    }
    let most = drawn.iter().map(|it| it.starts.len()).max().unwrap_or(0);
    let last = verdicts(experiment, drawn, [most, most]);
    let mut since = vec![None; drawn.len()];
    for starts in 1..=most {
        let now = verdicts(experiment, drawn, [starts, most]);
        for (since, (now, last)) in since.iter_mut().zip(now.iter().zip(&last)) {
            let is_last = now == last && is_decided(*now);
            *since = is_last.then(|| since.unwrap_or(starts));
        }
    }
    let planted = drawn.iter().zip(since).map(|(drawn, decided_after)| {
        drawn.claim.planted.map(|ratio| PlantedRatio {
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
    drawn: &[CaseEstimate<'_>],
    [starts, most]: [usize; 2],
) -> Vec<Verdict> {
    let spent = SpentLevel::at(starts, most);
    let mut first = drawn.to_vec();
    for drawn in &mut first {
        drawn.starts.truncate(starts);
        let test = rule::test(&drawn.starts, &spent, drawn.bias);
        (drawn.interval, drawn.p) = (test.interval, test.p);
    }
    let holds = hold(experiment, &first);
    let verdicts = first.iter().zip(holds);
    verdicts.map(|(drawn, holm)| drawn.verdict(holm)).collect()
}

impl Outcome {
    /// The relative error of the measured ratio, with its sign; `None` if either ratio is not known.
    pub(crate) fn off(&self) -> Option<f64> {
        Some(self.ratio? / self.planted?.ratio - 1.0)
    }

    /// Whether the measured ratio is right: the planted one is within its interval, or differs by at most [`TRULY`].
    /// `None` if either is not known.
    pub(crate) fn is_told_truly(&self) -> Option<bool> {
        let planted = self.planted?.ratio;
        let is_within = (self.low?..=self.high?).contains(&planted);
        Some(is_within || self.off()?.abs() <= TRULY)
    }
}

/// The largest relative error that counts as right even if the planted ratio is outside of a narrow interval: 0.5 %.
pub(crate) const TRULY: f64 = 0.005;
