//! Evaluates the claims of a stored result anew, without its runs, from the ratios of its starts.
//!
//! Older versions decided claims by medians and signs, and corrected for all claims of an experiment. Still older ones
//! counted each round as a value of the sample, and memory as PSS. Gates that forbade a claim still forbid it. All
//! others are decided by the current rule, as after a single look at the end.

use std::collections::BTreeMap;

use catamaran_stats::looks::SpentLevel;

use super::gates::{STARTS, shared_pages};
use super::starts::{Ratio, StartSpans};
use super::{CaseEstimate, Outcome, Runs, Verdict, conclude, counts, is_in, ratio, rule};
use crate::experiment::{Case, Claim, Experiment};
use crate::gate::{Effect, GateFinding};
use crate::run::{MemoryCount, Run};

/// What a stored result has in place of its runs.
#[derive(Debug)]
pub(crate) struct StoredRounds<'a> {
    pub(crate) claims: &'a [Outcome],
    /// Made-up runs with the values of the cells, by the cells' numbers in the experiment.
    pub(crate) runs: Vec<Run>,
    /// The number of rounds.
    pub(crate) rounds: usize,
    pub(crate) memory: MemoryCount,
}

/// Evaluates the claims of `result`, which `experiment` has led to, by the current rules. A claim that is not in the
/// experiment is forbidden, since nothing is known of its servers' starts.
pub(crate) fn evaluate_again(experiment: &Experiment, result: &StoredRounds<'_>) -> Vec<Outcome> {
    let runs = result.runs.iter();
    let runs: Runs<'_> = runs.map(|run| ((run.cell, run.round), run)).collect();
    let stored = StoredCases {
        experiment,
        result,
        lasting: &StartSpans::of(experiment),
        runs: &runs,
    };
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    for (place, outcome) in result.claims.iter().enumerate() {
        match claim_of(experiment, outcome) {
            Some((claim, case)) => {
                known.push((place, stored.drawn(claim, case, outcome)));
            }
            None => unknown.push((place, forbidden(outcome))),
        }
    }
    let (places, drawn): (Vec<usize>, Vec<CaseEstimate<'_>>) = known.into_iter().unzip();
    let mut all: BTreeMap<usize, Outcome> = unknown.into_iter().collect();
    all.extend(places.into_iter().zip(conclude(experiment, drawn)));
    all.into_values().collect()
}

/// The claim and the case to which an outcome belongs; `None` if the experiment does not have them.
fn claim_of<'a>(experiment: &'a Experiment, outcome: &Outcome) -> Option<(&'a Claim, &'a Case)> {
    let is_it = |claim: &&Claim| claim.says == outcome.says && claim.measure == outcome.measure;
    let claim = experiment.claims.iter().find(is_it)?;
    let case = claim.cases.iter().find(|case| case.each == outcome.each)?;
    Some((claim, case))
}

/// The outcome of a claim that is not in the experiment: no verdict.
fn forbidden(outcome: &Outcome) -> Outcome {
    let words = "How often its servers were started is not known.";
    let mut gates = outcome.gates.clone();
    gates.push(GateFinding::new(STARTS, Effect::Claim, words));
    Outcome {
        verdict: Verdict::NoClaim,
        sentence: format!("No claim: {words}"),
        as_expected: None,
        gates,
        ..outcome.clone()
    }
}

/// What the estimates of a stored result's cases are made from.
struct StoredCases<'a> {
    experiment: &'a Experiment,
    result: &'a StoredRounds<'a>,
    lasting: &'a StartSpans,
    runs: &'a Runs<'a>,
}

impl StoredCases<'_> {
    /// The estimate for a case, from its stored outcome.
    fn drawn<'a>(&self, claim: &'a Claim, case: &'a Case, outcome: &Outcome) -> CaseEstimate<'a> {
        let experiment = self.experiment;
        let ratios = self.rounds(claim, case, outcome);
        let starts = if outcome.starts.is_empty() {
            self.lasting.sample(case, &ratios, self.runs)
        } else {
            outcome.starts.clone()
        };
        let mut gates = outcome.gates.clone();
        let taken = taken(&mut gates, outcome.verdict);
        let shared = shared_pages(experiment, claim, case, self.result.memory);
        gates.extend(shared.filter(|fired| !outcome.gates.contains(fired)));
        let once = SpentLevel::of_one_look();
        let test = rule::test(&starts, &once, outcome.bias);
        let left_out = taken.iter().filter_map(|fired| {
            let rounds = self.result.rounds.checked_sub(ratios.len())?;
            (rounds > 0).then(|| (fired.gate.clone(), rounds))
        });
        let of_counts = || counts(&claim.measure, case, &self.of_case(case));
        CaseEstimate {
            claim,
            case,
            bias: outcome.bias,
            interval: test.interval,
            p: test.p,
            starts_min: rule::starts_min(&once),
            gates,
            left_out: left_out.collect(),
            taken,
            counts: claim.measure.record().is_mostly_zero.then(of_counts),
            ratios,
            starts,
            survivors: outcome.survivors.clone(),
        }
    }

    fn of_case(&self, case: &Case) -> Runs<'_> {
        let mut runs = self.runs.clone();
        runs.retain(|(cell, _), _| is_in(&case.contrasts, *cell));
        runs
    }

    /// The ratios of an outcome with their rounds, which are not stored: some rounds may have been left out, so each
    /// stored ratio is compared with those of the rounds.
    fn rounds(&self, claim: &Claim, case: &Case, outcome: &Outcome) -> Vec<Ratio> {
        let mut values = outcome.ratios.iter().copied().peekable();
        let mut ratios = Vec::new();
        for round in 0..self.result.rounds {
            let Some(value) = ratio(&case.contrasts, &claim.measure, round, self.runs) else {
                continue;
            };
            let is_it = |known: &f64| (known / value - 1.0).abs() < ROUNDING;
            if let Some(value) = values.next_if(is_it) {
                ratios.push(Ratio { round, value });
            }
        }
        ratios
    }
}

/// Removes the gate because of which rounds were left out from `gates`, and returns it; `None` if there is none, or if
/// it forbids the claim.
fn taken(gates: &mut Vec<GateFinding>, verdict: Verdict) -> Option<GateFinding> {
    let forbids = |fired: &GateFinding| fired.effect != Effect::Note;
    let place = gates.iter().position(forbids);
    match (verdict, place) {
        // This gate forbids the claim, by the rounds that were left or on both sides; it stays.
        (Verdict::NoClaim, Some(_)) => None,
        (Verdict::NoClaim, None) => gates.pop(),
        (_, place) => place.map(|place| gates.remove(place)),
    }
}

/// The largest relative difference between a stored ratio and the same ratio when it is computed again.
const ROUNDING: f64 = 1e-9;
