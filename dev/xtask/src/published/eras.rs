//! Divides results by era: what the posts' own software did when it was run today, and what today's software does.
//!
//! A result whose experiment has the factor `era` is evidence for both. Any other is evidence on today's software.

use serde::Deserialize;

use super::capacity::Capacities;
use super::source::{Here, Source};
use crate::figures::LabResult;

/// Committed results with the names of their folders.
pub(super) type Results = [(String, LabResult)];

/// All results, divided by era. The cells and claims of either do not name it.
#[derive(Debug)]
pub(super) struct Eras {
    /// Only results that have the era.
    pub(super) then: Vec<(String, LabResult)>,
    pub(super) now: Vec<(String, LabResult)>,
}

/// The software that was measured: the post's own, or today's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Era {
    Then,
    Now,
}

/// The results of one era.
#[derive(Clone, Copy, Debug)]
pub(super) struct EraResults<'a> {
    era: Era,
    pub(super) results: &'a Results,
}

/// The results of one era, and which sentences of a post hold by CPU time in them.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) of_era: EraResults<'a>,
    pub(super) capacities: Capacities,
}

impl Eras {
    pub(super) fn of(results: &Results) -> Self {
        let mut eras = Self {
            then: Vec::new(),
            now: Vec::new(),
        };
        for (folder, result) in results {
            let mut cells = result.cells.iter();
            if cells.any(|cell| cell.levels.contains_key(ERA)) {
                eras.then.push((folder.clone(), of_era(result, THEN)));
                eras.now.push((folder.clone(), of_era(result, NOW)));
            } else {
                eras.now.push((folder.clone(), result.clone()));
            }
        }
        eras.then.retain(|(_, result)| !result.cells.is_empty());
        eras
    }

    /// The results of an era.
    pub(super) fn results_of(&self, era: Era) -> EraResults<'_> {
        let results = match era {
            Era::Then => &self.then,
            Era::Now => &self.now,
        };
        EraResults { era, results }
    }
}

impl<'a> EraResults<'a> {
    /// The result of a place, if it is committed; `None` also if the place is evidence on the other era alone.
    pub(super) fn result_of(&self, here: &Here) -> Option<&'a LabResult> {
        if here.era.is_some_and(|era| era != self.era) {
            return None;
        }
        let mut results = self.results.iter();
        let found = results.find(|(folder, _)| *folder == here.result);
        found.map(|(_, result)| result)
    }

    /// The first place whose result is committed.
    pub(super) fn first_of<'p>(&self, places: &'p [Here]) -> Option<&'p Here> {
        places.iter().find(|here| self.result_of(here).is_some())
    }
}

impl<'a> Evidence<'a> {
    /// The evidence on a post.
    ///
    /// # Errors
    ///
    /// A result does not have a cell that the post's file names.
    pub(super) fn of(source: &Source, of_era: EraResults<'a>) -> anyhow::Result<Self> {
        Ok(Self {
            of_era,
            capacities: Capacities::of(source, of_era)?,
        })
    }
}

/// The part of a result that is of `era`, without the factor.
fn of_era(result: &LabResult, era: &str) -> LabResult {
    let mut own = result.clone();
    own.cells
        .retain_mut(|cell| cell.levels.remove(ERA).is_some_and(|level| level == era));
    own.claims
        .retain_mut(|claim| claim.each.remove(ERA).is_some_and(|level| level == era));
    own.as_published.retain_mut(|run| {
        let name = run.name.strip_suffix(RUN_OF_THEN).map(str::to_owned);
        let is_of_then = name.is_some();
        run.name = name.unwrap_or_else(|| run.name.clone());
        is_of_then == (era == THEN)
    });
    own
}

/// The factor of the lab's experiments, and its levels.
const ERA: &str = "era";
const THEN: &str = "then";
const NOW: &str = "now";

/// How the lab ends the name of a published run that was made again with the post's own software.
const RUN_OF_THEN: &str = " (then)";

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::figures::{LabCell, LabClaim, LabMeasure, LabPrinted};

    /// A result of both eras with one claim, whose ratio is `then` and `now` in six starts that agree nearly.
    pub(in crate::published) fn result_of_both(then: f64, now: f64) -> LabResult {
        let mut result = LabResult::default();
        for (era, ratio) in [(THEN, then), (NOW, now)] {
            for (keep, value) in [("off", 1.0), ("on", ratio)] {
                let values: Vec<f64> = (0..6)
                    .map(|it| value * (1.0 + f64::from(it) / 100.0))
                    .collect();
                let measure = LabMeasure {
                    median: value,
                    min: value,
                    max: value,
                    values,
                    rounds: (0..6).collect(),
                };
                result.cells.push(LabCell {
                    levels: [(ERA, era), ("keep", keep)]
                        .map(|(name, level)| (name.to_owned(), level.into()))
                        .into(),
                    label: format!("era={era} keep={keep}"),
                    measures: BTreeMap::from([("cpu.web".to_owned(), measure)]),
                    calls: BTreeMap::new(),
                });
            }
            result.claims.push(LabClaim {
                says: "Keep-alive raises throughput".to_owned(),
                measure: "throughput".to_owned(),
                each: [(ERA.to_owned(), era.into())].into_iter().collect(),
                ratio: Some(ratio),
                low: Some(ratio * 0.99),
                high: Some(ratio * 1.01),
                verdict: "differs".to_owned(),
                ..LabClaim::default()
            });
        }
        result.starts = (0..6).collect();
        result
    }

    #[test]
    fn a_result_of_both_eras_is_evidence_on_both() {
        let mut both = result_of_both(3.0, 1.5);
        let printed = |name: &str| LabPrinted {
            name: name.to_owned(),
            ours: String::new(),
        };
        both.as_published = vec![printed("004-on (then)"), printed("004-on")];
        let eras = Eras::of(&[
            ("both".to_owned(), both),
            ("now".to_owned(), LabResult::default()),
        ]);
        assert_eq!((eras.then.len(), eras.now.len()), (1, 2));
        for (era, ratio) in [(&eras.then, 3.0), (&eras.now, 1.5)] {
            let own = &era[0].1;
            assert_eq!((own.cells.len(), own.claims.len()), (2, 1));
            assert_eq!(own.claims[0].ratio, Some(ratio));
            assert_eq!(own.claims[0].case(), "");
            assert_eq!(own.as_published.len(), 1);
            assert_eq!(own.as_published[0].name, "004-on");
        }
    }

    #[test]
    fn a_place_may_be_evidence_on_one_era_alone() {
        let eras = Eras::of(&[("both".to_owned(), result_of_both(3.0, 1.5))]);
        let here = |text: &str| -> Here { toml::from_str(text).unwrap() };
        let now = here("result = 'both'\nera = 'now'\nmeasure = 'syscalls'");
        let either = here("result = 'both'\nmeasure = 'syscalls'");
        let [of_then, of_now] = [Era::Then, Era::Now].map(|era| eras.results_of(era));
        assert!(of_now.result_of(&now).is_some() && of_then.result_of(&now).is_none());
        let places = [now, either];
        assert_eq!(of_then.first_of(&places), Some(&places[1]));
        assert_eq!(of_now.first_of(&places), Some(&places[0]));
    }
}
