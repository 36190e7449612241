//! Judges sentences on speed by the CPU time per request of the servers that were the limit in the post's layout.
//!
//! If servers share a machine, their highest throughput is the inverse of the CPU time that they spend on a request:
//! their capacity. In our layout another server may be the limit, so our throughput would not answer the sentence. As
//! in the lab, all claims of a post on CPU time are tested together, and the post's first claim is the headline,
//! which is tested first.

use std::collections::BTreeMap;

use anyhow::ensure;
use catamaran_stats::order::holm_with_headline;
use catamaran_stats::signed_rank::{centre, count_min, p_value};

use super::evidence::{CaseSize, EvidenceWeight, LEVEL, first_committed, is_committed};
use super::source::{Here, Levels, Source};
use super::starts::{self, cell, contrast, levels, log_starts, quotients};
use crate::figures::{LabClaim, LabResult};

/// The sentences of a post that are judged by CPU time, and whether each holds when all are tested together.
#[derive(Debug)]
pub(super) struct Capacities {
    holds: BTreeMap<String, bool>,
}

/// A comparison by CPU time: the places of its evidence, and the p-value, which is the largest of these places.
struct CapacityQuestion<'a> {
    places: Vec<&'a Here>,
    p: f64,
}

impl Capacities {
    /// Tests all sentences of a post together.
    ///
    /// # Errors
    ///
    /// A result does not have the cells.
    pub(super) fn of(source: &Source, results: &[(String, LabResult)]) -> anyhow::Result<Self> {
        let mut questions: Vec<CapacityQuestion<'_>> = Vec::new();
        let mut of_claim = Vec::new();
        for claim in &source.claims {
            let Some(here) = first_committed(&claim.here, results) else {
                continue;
            };
            let further = claim.and.iter().filter(|it| is_committed(it, results));
            let all = std::iter::once(here).chain(further);
            let places: Vec<&Here> = all.filter(|it| it.capacity.is_some()).collect();
            if places.is_empty() {
                continue;
            }
            // Two sentences with the same evidence are tested once.
            let known = questions.iter().position(|it| it.places == places);
            let number = known.unwrap_or(questions.len());
            of_claim.push((claim.id.clone(), number));
            if known.is_none() {
                let mut p: f64 = 0.0;
                for place in &places {
                    p = p.max(probability(place, results)?);
                }
                questions.push(CapacityQuestion { places, p });
            }
        }
        let p: Vec<f64> = questions.iter().map(|it| it.p).collect();
        let together = holm_with_headline(&p, (!p.is_empty()).then_some(0), LEVEL);
        let holds = of_claim.into_iter().map(|(id, at)| (id, together[at]));
        Ok(Self {
            holds: holds.collect(),
        })
    }

    /// Whether the sentence with this id holds when all sentences of the post are tested together.
    pub(super) fn holds(&self, id: &str) -> bool {
        self.holds.get(id).copied().unwrap_or(false)
    }
}

/// The ratio of capacities at a place. `holds` says whether the sentence holds together with the post's others.
///
/// # Errors
///
/// The measure is no CPU time, or the result does not have the cells.
pub(super) fn size(
    here: &Here,
    measure: &str,
    result: &LabResult,
    holds: bool,
) -> anyhow::Result<CaseSize> {
    let starts = ratios(here, measure, result)?;
    if let Some(gate) = forbidding(here, result)? {
        return Ok(CaseSize::Gate {
            name: gate.to_owned(),
            starts: starts.iter().map(|it| it.exp()).collect(),
        });
    }
    let Some(centre) = centre(&starts, LEVEL) else {
        return Ok(CaseSize::TooFew {
            starts: starts.iter().map(|it| it.exp()).collect(),
            needed: count_min(LEVEL),
        });
    };
    let weight = match (centre.excludes(0.0), holds) {
        (true, true) => EvidenceWeight::Decides,
        (true, false) => EvidenceWeight::MayBeChance,
        (false, _) => EvidenceWeight::NotShown,
    };
    Ok(CaseSize::Ratio {
        ends: [centre.low, centre.estimate, centre.high].map(f64::exp),
        is_capacity: true,
        starts_to_decide: None,
        weight,
    })
}

/// The p-value of a place: the probability of ratios at least as far from 1 if the capacities were equal. It is 1 if
/// a gate forbids the claim.
fn probability(here: &Here, results: &[(String, LabResult)]) -> anyhow::Result<f64> {
    let found = results.iter().find(|(folder, _)| *folder == here.result);
    let (Some((_, result)), Some(measure)) = (found, &here.capacity) else {
        return Ok(1.0);
    };
    Ok(match forbidding(here, result)? {
        Some(_) => 1.0,
        None => p_value(&ratios(here, measure, result)?),
    })
}

/// The name of a gate that forbids claims on the CPU time of one of the compared cells. Such a gate is known from a
/// claim of the result that is about one of these cells.
fn forbidding<'a>(here: &Here, result: &'a LabResult) -> anyhow::Result<Option<&'a str>> {
    let none = Levels::new();
    let places = match &here.across {
        Some([of, over]) => vec![of, over],
        None => vec![&none],
    };
    let mut labels = Vec::new();
    for at in places {
        for side in [&here.level, &here.over] {
            labels.push(&cell(result, &levels(here, at, side))?.label);
        }
    }
    let is_about = |it: &&LabClaim| it.survivors.iter().any(|it| labels.contains(&&it.cell));
    let gates = result
        .claims
        .iter()
        .filter(is_about)
        .flat_map(|it| &it.gates);
    let mut forbid = gates.filter(|it| it.effect == MACHINE);
    Ok(forbid.next().map(|it| it.gate.as_str()))
}

/// The logarithms of the ratios of capacities, by starts.
fn ratios(here: &Here, measure: &str, result: &LabResult) -> anyhow::Result<Vec<f64>> {
    ensure!(
        starts::base(measure) == CPU,
        "{measure} is no CPU time, so it has no capacity"
    );
    let spent = match &here.across {
        None => contrast(here, measure, result, &Levels::new())?,
        Some([of, over]) => {
            let side = |at| contrast(here, measure, result, at);
            quotients(&side(of)?, &side(over)?)
        }
    };
    // Half the CPU time is twice the capacity.
    Ok(log_starts(result, &spent).iter().map(|it| -it).collect())
}

/// The measure of CPU time of a request.
const CPU: &str = "cpu";

/// The effect of gates that forbid claims on CPU time.
const MACHINE: &str = "machine";
