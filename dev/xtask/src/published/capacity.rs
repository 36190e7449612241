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

use super::eras::EraResults;
use super::evidence::{CaseSize, EvidenceWeight, LEVEL};
use super::source::{Here, Levels, Source};
use super::starts::{self, cell, contrast, levels, log_starts, quotients};
use crate::figures::LabResult;

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
    pub(super) fn of(source: &Source, of_era: EraResults<'_>) -> anyhow::Result<Self> {
        let mut questions: Vec<CapacityQuestion<'_>> = Vec::new();
        // Each sentence, with the index of its question.
        let mut sentences = Vec::new();
        for claim in &source.claims {
            let Some(first) = of_era.first_of(&claim.here) else {
                continue;
            };
            let further = claim
                .and
                .iter()
                .filter(|here| of_era.result_of(here).is_some());
            let committed = std::iter::once(first).chain(further);
            let places: Vec<&Here> = committed.filter(|here| here.capacity.is_some()).collect();
            if places.is_empty() {
                continue;
            }
            // Two sentences with the same evidence are tested once.
            let same = questions
                .iter()
                .position(|question| question.places == places);
            sentences.push((claim.id.clone(), same.unwrap_or(questions.len())));
            if same.is_none() {
                // The sentence holds only if it holds at each place, so the weakest place counts.
                let mut p: f64 = 0.0;
                for place in &places {
                    p = p.max(probability(place, of_era)?);
                }
                questions.push(CapacityQuestion { places, p });
            }
        }
        let p_values: Vec<f64> = questions.iter().map(|question| question.p).collect();
        // The first question is the post's headline.
        let headline = (!p_values.is_empty()).then_some(0);
        let holds_together = holm_with_headline(&p_values, headline, LEVEL);
        let holds = sentences
            .into_iter()
            .map(|(id, question)| (id, holds_together[question]));
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
    let logarithms = ratios(here, measure, result)?;
    let starts = logarithms.iter().map(|logarithm| logarithm.exp()).collect();
    if let Some(gate) = forbidding_gate(here, result)? {
        let name = gate.to_owned();
        return Ok(CaseSize::Gate { name, starts });
    }
    let Some(centre) = centre(&logarithms, LEVEL) else {
        let needed = count_min(LEVEL);
        return Ok(CaseSize::TooFew { starts, needed });
    };
    // The logarithm of equal capacities is 0.
    let weight = if !centre.excludes(0.0) {
        EvidenceWeight::NotShown
    } else if holds {
        EvidenceWeight::Decides
    } else {
        EvidenceWeight::MayBeChance
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
fn probability(here: &Here, of_era: EraResults<'_>) -> anyhow::Result<f64> {
    let (Some(result), Some(measure)) = (of_era.result_of(here), &here.capacity) else {
        return Ok(1.0);
    };
    Ok(match forbidding_gate(here, result)? {
        Some(_) => 1.0,
        None => p_value(&ratios(here, measure, result)?),
    })
}

/// The name of a gate that forbids claims on the CPU time of one of the compared cells. Such a gate is known from a
/// claim of the result that is about one of these cells.
fn forbidding_gate<'a>(here: &Here, result: &'a LabResult) -> anyhow::Result<Option<&'a str>> {
    let no_levels = Levels::new();
    let level_sets = match &here.across {
        Some([of, over]) => vec![of, over],
        None => vec![&no_levels],
    };
    let mut labels = Vec::new();
    for across in level_sets {
        for side in [&here.level, &here.over] {
            labels.push(&cell(result, &levels(here, across, side))?.label);
        }
    }
    for claim in &result.claims {
        let mut cells = claim.survivors.iter().map(|survivors| &survivors.cell);
        if cells.any(|cell| labels.contains(&cell))
            && let Some(gate) = claim.gates.iter().find(|gate| gate.effect == MACHINE)
        {
            return Ok(Some(&gate.gate));
        }
    }
    Ok(None)
}

/// The logarithms of the ratios of capacities, by starts.
fn ratios(here: &Here, measure: &str, result: &LabResult) -> anyhow::Result<Vec<f64>> {
    ensure!(
        starts::base(measure) == CPU,
        "{measure} is no CPU time, so it has no capacity"
    );
    if let Some(layout) = &result.layout {
        ensure!(
            layout.limits.iter().any(|limit| limit == measure),
            "{measure} was not the limit by the layout of the experiment: it was {}",
            layout.limits.join(", ")
        );
    }
    let spent = match &here.across {
        None => contrast(here, measure, result, &Levels::new())?,
        Some([of, over]) => {
            let side = |at| contrast(here, measure, result, at);
            quotients(&side(of)?, &side(over)?)
        }
    };
    // Half the CPU time is twice the capacity.
    let logarithms = log_starts(result, &spent);
    Ok(logarithms.iter().map(|logarithm| -logarithm).collect())
}

/// The measure of CPU time of a request.
const CPU: &str = "cpu";

/// The effect of gates that forbid claims on CPU time.
const MACHINE: &str = "machine";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::LabLayout;
    use crate::published::eras::Eras;
    use crate::published::eras::tests::result_of_both;

    #[test]
    fn only_what_was_the_limit_has_a_capacity() {
        let mut both = result_of_both(3.0, 1.5);
        let here: Here = toml::from_str(
            "result = 'r'\ncapacity = 'cpu.web'\nlevel.keep = 'on'\nover.keep = 'off'",
        )
        .unwrap();
        both.layout = Some(LabLayout {
            limits: vec!["cpu.web".to_owned()],
        });
        let now = |result: &LabResult| Eras::of(&[("r".to_owned(), result.clone())]).now;
        let found = size(&here, "cpu.web", &now(&both)[0].1, true).unwrap();
        assert!(
            matches!(
                found,
                CaseSize::Ratio {
                    is_capacity: true,
                    ..
                }
            ),
            "{found:?}"
        );
        both.layout = Some(LabLayout {
            limits: vec!["cpu.front".to_owned()],
        });
        let fault = ratios(&here, "cpu.web", &now(&both)[0].1).unwrap_err();
        assert!(fault.to_string().contains("it was cpu.front"), "{fault}");
    }
}
