//! Evaluates the claims of a stored result anew, without its runs, from the ratios of its starts.
//!
//! Older versions decided claims by medians and signs, and corrected for all claims of an experiment. Still older ones
//! counted each round as a value of the sample, and memory as PSS. Gates that forbade a claim still forbid it. All
//! others are decided by the current rule, as after a single look at the end.

use std::collections::BTreeMap;

use catamaran_stats::looks::SpentLevel;

use super::gates::{STARTS, shared_pages};
use super::starts::{Ratio, StartSpans};
use super::{CaseEstimate, Outcome, Runs, Verdict, conclude, counts, ratio, rule};
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
        start_spans: &StartSpans::of(experiment),
        runs: &runs,
    };
    let mut outcomes: BTreeMap<usize, Outcome> = BTreeMap::new();
    let mut estimates = Vec::new();
    let mut places_of_estimates = Vec::new();
    for (place, outcome) in result.claims.iter().enumerate() {
        if let Some((claim, case)) = claim_of(experiment, outcome) {
            estimates.push(stored.estimate(claim, case, outcome));
            places_of_estimates.push(place);
        } else {
            outcomes.insert(place, forbidden(outcome));
        }
    }
    // Claims of one question are decided together, so this needs all estimates.
    let concluded = conclude(experiment, estimates);
    outcomes.extend(places_of_estimates.into_iter().zip(concluded));
    outcomes.into_values().collect()
}

/// The claim and the case to which an outcome belongs; `None` if the experiment does not have them.
fn claim_of<'a>(experiment: &'a Experiment, outcome: &Outcome) -> Option<(&'a Claim, &'a Case)> {
    let mut claims = experiment.claims.iter();
    let claim =
        claims.find(|claim| claim.says == outcome.says && claim.measure == outcome.measure)?;
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
    start_spans: &'a StartSpans,
    runs: &'a Runs<'a>,
}

impl StoredCases<'_> {
    /// The estimate for a case, from its stored outcome.
    fn estimate<'a>(
        &self,
        claim: &'a Claim,
        case: &'a Case,
        outcome: &Outcome,
    ) -> CaseEstimate<'a> {
        let ratios = self.rounds(claim, case, outcome);
        let starts = if outcome.starts.is_empty() {
            self.start_spans.sample(case, &ratios, self.runs)
        } else {
            outcome.starts.clone()
        };
        let mut gates = outcome.gates.clone();
        let left_out_by = remove_gate_of_left_out(&mut gates, outcome.verdict);
        let shared = shared_pages(self.experiment, claim, case, self.result.memory);
        gates.extend(shared.filter(|fired| !outcome.gates.contains(fired)));
        let once = SpentLevel::of_one_look();
        let test = rule::test(&starts, &once, outcome.bias);
        let mut left_out = BTreeMap::new();
        let rounds_left_out = self.result.rounds.saturating_sub(ratios.len());
        if let Some(fired) = &left_out_by
            && rounds_left_out > 0
        {
            left_out.insert(fired.gate.clone(), rounds_left_out);
        }
        let is_count = claim.measure.record().is_mostly_zero;
        CaseEstimate {
            claim,
            case,
            bias: outcome.bias,
            interval: test.interval,
            p: test.p,
            starts_min: rule::starts_min(&once),
            gates,
            left_out,
            left_out_by,
            counts: is_count.then(|| counts(&claim.measure, case, self.runs)),
            ratios,
            starts,
            survivors: outcome.survivors.clone(),
        }
    }

    /// The ratios of an outcome with their rounds, which are not stored: some rounds may have been left out, so each
    /// stored ratio is compared with those of the rounds.
    fn rounds(&self, claim: &Claim, case: &Case, outcome: &Outcome) -> Vec<Ratio> {
        let mut stored_values = outcome.ratios.iter().copied().peekable();
        let mut ratios = Vec::new();
        for round in 0..self.result.rounds {
            let Some(computed) = ratio(&case.contrasts, &claim.measure, round, self.runs) else {
                continue;
            };
            let is_of_round = |stored: &f64| (stored / computed - 1.0).abs() < ROUNDING;
            if let Some(value) = stored_values.next_if(is_of_round) {
                ratios.push(Ratio { round, value });
            }
        }
        ratios
    }
}

/// Removes the gate because of which rounds were left out from `gates`, and returns it; `None` if there is none, or if
/// another gate forbids the claim.
fn remove_gate_of_left_out(gates: &mut Vec<GateFinding>, verdict: Verdict) -> Option<GateFinding> {
    let forbids = |fired: &GateFinding| fired.effect != Effect::Note;
    // The stored list does not tell which of its gates only left rounds out; the verdict does.
    match (gates.iter().position(forbids), verdict) {
        // This gate forbids the claim itself, so it stays.
        (Some(_), Verdict::NoClaim) => None,
        // The claim has a verdict in spite of this gate, so it only took rounds away.
        (Some(place), _) => Some(gates.remove(place)),
        // The gate of left-out rounds is stored as the last one.
        (None, Verdict::NoClaim) => gates.pop(),
        (None, _) => None,
    }
}

/// The largest relative difference between a stored ratio and the same ratio when it is computed again.
const ROUNDING: f64 = 1e-9;
