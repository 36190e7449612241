//! What a committed result says about a sentence of a post.
//!
//! The evidence is one of these: a claim of the lab; the CPU time of the servers that were the limit in the post's
//! layout; counts of a cell for each start of its servers, which gates on times do not concern; or the output of runs
//! of ab that were made once. A sentence about several cases is only decided if they agree.

use anyhow::{Context, bail, ensure};
use catamaran_stats::signed_rank::{centre, count_min};

use super::capacity;
use super::eras::Evidence;
use super::reproduced::ThenFigure;
use super::source::{Claim, Direction, Here, Published, Source, number};
use super::starts::{log_starts, values};
use super::text::figures;
use super::verdict::{
    NowVerdict, SentenceVerdict, ThenVerdict, of_counted_side, of_counts, of_side, of_then,
    of_then_cases, weakest,
};
use super::{expression, starts};
use crate::figures::{LabClaim, LabResult};

/// The answer of our results to a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) verdict: SentenceVerdict,
    pub(super) then: ThenVerdict,
    /// The figure that the post's own software gives today on any machine; `None` if there is none.
    pub(super) then_figure: Option<ThenFigure>,
    /// The cases that were measured with the post's own software; none if no result has them.
    pub(super) then_cases: Vec<CaseAnswer>,
    pub(super) now: NowVerdict,
    /// The side of 1 on which the sentence says that the ratio lies; `None` for a count.
    pub(super) side: Option<Direction>,
    /// The cases from which the verdict follows; none if no result is committed.
    pub(super) cases: Vec<CaseAnswer>,
    /// Cases that are shown in addition and do not count for the verdict.
    pub(super) beside: Vec<CaseAnswer>,
}

/// The evidence on one case of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CaseAnswer {
    /// The folder of the result.
    pub(super) result: String,
    /// The levels of the case; empty if the evidence has only one case.
    pub(super) case: String,
    /// What is measured, by the lab's name.
    pub(super) measure: String,
    pub(super) size: CaseSize,
    pub(super) now: NowVerdict,
}

/// Our figure for a case of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CaseSize {
    /// A ratio with its interval of 95 %: the lower end, the ratio, the upper end.
    Ratio {
        ends: [f64; 3],
        /// Whether the ratio is one of capacities; a capacity is the inverse of the CPU time per request.
        is_capacity: bool,
        /// For an open claim: how many starts would decide it, if the lab gives an estimate.
        starts_to_decide: Option<usize>,
        weight: EvidenceWeight,
    },
    /// A count with its interval over starts of servers.
    Count([f64; 3]),
    /// Counts of runs of ab that were made once; with `is_ratio`, ratios of two such counts.
    Runs { counts: Vec<f64>, is_ratio: bool },
    /// There are fewer starts than an interval needs.
    TooFew { starts: Vec<f64>, needed: usize },
    /// The gate with this name forbids a claim; empty if the verdict is unknown.
    Gate { name: String, starts: Vec<f64> },
}

/// Whether a difference is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EvidenceWeight {
    /// The claim is decided: there is a difference, or there is none.
    Decides,
    /// There is a difference, but with as many claims on the measure as there are it may be chance.
    MayBeChance,
    NotShown,
}

/// Answers a sentence from all committed results that its claim names. The weakest of its cases decides what holds now;
/// figures that are shown `beside` decide nothing. What held then comes from the file of reproduced figures, or else from
/// results of the post's own software.
///
/// # Errors
///
/// A committed result lacks the claim, cell or measure that is to answer.
pub(super) fn answer(
    source: &Source,
    claim: &Claim,
    then_evidence: &Evidence<'_>,
    now_evidence: &Evidence<'_>,
) -> anyhow::Result<Answer> {
    let published = claim.published(source)?;
    let judge = Judge {
        claim,
        published: published.clone(),
        is_of_version: claim.of_version,
        evidence: now_evidence,
    };
    let cases = judge.all_cases()?;
    let mut beside = Vec::new();
    for here in &claim.beside {
        beside.extend(judge.cases(here)?);
    }
    let judge_of_then = Judge {
        claim,
        published,
        // It is that version.
        is_of_version: false,
        evidence: then_evidence,
    };
    let then_cases = judge_of_then.all_cases()?;
    let now = weakest(cases.iter().map(|case| case.now));
    let then_figure = match (&claim.then, &source.reproduced) {
        (Some(place), Some(reproduced)) => {
            let figure = reproduced.figure(place);
            Some(figure.with_context(|| format!("{}: `then`", claim.id))?)
        }
        (None, _) | (_, None) => None,
    };
    let then = match &judge.published {
        Some(published) if then_figure.is_some() => of_then(published, then_figure),
        Some(_) if !then_cases.is_empty() => of_then_cases(then_cases.iter().map(|case| case.now)),
        Some(_) | None => ThenVerdict::NotRun,
    };
    let verdict = match claim.not_comparable {
        Some(reason) => SentenceVerdict::NotComparable(reason),
        None => SentenceVerdict::of(then, now),
    };
    Ok(Answer {
        verdict,
        then,
        then_figure,
        then_cases,
        now,
        side: judge.published.as_ref().and_then(Published::side),
        cases,
        beside,
    })
}

/// A case with its figure.
struct MeasuredCase {
    case: String,
    measure: String,
    size: CaseSize,
}

/// Judges one claim.
struct Judge<'a> {
    claim: &'a Claim,
    /// The published statement; `None` if the claim cannot be compared.
    published: Option<Published>,
    /// Whether a published count is that of another version than the one that was measured.
    is_of_version: bool,
    evidence: &'a Evidence<'a>,
}

impl Judge<'_> {
    /// The cases from which the verdict follows: those of the first place whose result is committed, and those of
    /// further places.
    fn all_cases(&self) -> anyhow::Result<Vec<CaseAnswer>> {
        let mut cases = Vec::new();
        if let Some(first) = self.evidence.of_era.first_of(&self.claim.here) {
            cases.extend(self.cases(first)?);
            for place in &self.claim.and {
                cases.extend(self.cases(place)?);
            }
        }
        Ok(cases)
    }

    /// The evidence of a place, for each of its cases; none if its result is not committed.
    fn cases(&self, here: &Here) -> anyhow::Result<Vec<CaseAnswer>> {
        let Some(result) = self.evidence.of_era.result_of(here) else {
            return Ok(Vec::new());
        };
        let sizes = self
            .sizes(here, result)
            .with_context(|| format!("{}: docs/lab/{}", self.claim.id, here.result))?;
        let has_several = sizes.len() > 1;
        let mut answers = Vec::new();
        for measured in sizes {
            // A single case needs no name.
            let case = if has_several {
                measured.case
            } else {
                String::new()
            };
            answers.push(CaseAnswer {
                result: here.result.clone(),
                case,
                measure: measured.measure,
                now: self.now(&measured.size),
                size: measured.size,
            });
        }
        Ok(answers)
    }

    /// The sizes of a place: those of all cases of its claim, or the one of its measure, its capacity or its repeated
    /// runs.
    fn sizes(&self, here: &Here, result: &LabResult) -> anyhow::Result<Vec<MeasuredCase>> {
        let (measure, size) = match (&here.claim, &here.measure, &here.capacity, here.again) {
            (Some(says), None, None, false) => {
                let claims = cases(here, says, result).map(|claim| MeasuredCase {
                    case: claim.case(),
                    measure: claim.measure.clone(),
                    size: of_claim(claim),
                });
                let measured: Vec<_> = claims.collect();
                ensure!(!measured.is_empty(), "no claim {says:?} ({})", here.case);
                return Ok(measured);
            }
            (None, Some(measure), None, false) => {
                (&measure[..], of_measure(here, measure, result)?)
            }
            (None, None, Some(measure), false) => {
                let holds = self.evidence.capacities.holds(&self.claim.id);
                (&measure[..], capacity::size(here, measure, result, holds)?)
            }
            (None, None, None, true) => {
                let expressions = self.claim.expressions();
                let counts = expressions.map(|expression| of_texts(expression, result));
                let size = CaseSize::Runs {
                    counts: counts.collect::<anyhow::Result<_>>()?,
                    is_ratio: !matches!(self.published, Some(Published::Count(_))),
                };
                ("ab", size)
            }
            _ => bail!("an answer is a `claim`, a `measure`, a `capacity` or `again`"),
        };
        Ok(vec![MeasuredCase {
            case: String::new(),
            measure: measure.to_owned(),
            size,
        }])
    }

    /// Whether the sentence holds by a figure of ours.
    fn now(&self, size: &CaseSize) -> NowVerdict {
        let Some(published) = &self.published else {
            return NowVerdict::Undecided;
        };
        let is_of_version = self.is_of_version;
        match (size, published.side(), published) {
            (CaseSize::TooFew { .. } | CaseSize::Gate { .. }, ..) => NowVerdict::Undecided,
            (CaseSize::Runs { counts, .. }, _, Published::Count(published)) => {
                of_counts(*published, counts, is_of_version)
            }
            (CaseSize::Runs { counts, .. }, Some(side), _) => of_counted_side(side, counts),
            (CaseSize::Count([low, _, high]), _, Published::Count(published)) => {
                of_counts(*published, &[*low, *high], is_of_version)
            }
            (CaseSize::Ratio { ends, weight, .. }, Some(side), _) => {
                of_side(side, [ends[0], ends[2]], *weight == EvidenceWeight::Decides)
            }
            // A count does not answer a sentence on a ratio, nor a ratio one on a count.
            (CaseSize::Runs { .. } | CaseSize::Count(_) | CaseSize::Ratio { .. }, ..) => {
                NowVerdict::Undecided
            }
        }
    }
}

/// The cases of the lab's claim `says` that have all levels that `here` names.
pub(super) fn cases<'a>(
    here: &'a Here,
    says: &'a str,
    result: &'a LabResult,
) -> impl Iterator<Item = &'a LabClaim> {
    let has_levels = |claim: &LabClaim| {
        let case = claim.case();
        let levels: Vec<&str> = case.split(' ').collect();
        here.case
            .split_whitespace()
            .all(|level| levels.contains(&level))
    };
    let claims = result.claims.iter();
    claims.filter(move |claim| claim.says == says && has_levels(claim))
}

/// The size of a claim, weighed by the lab's verdict on it.
fn of_claim(claim: &LabClaim) -> CaseSize {
    let starts = claim.starts.clone();
    let weight = match claim.verdict.as_str() {
        "differs" | "differs-little" | "same" => EvidenceWeight::Decides,
        "suggests" => EvidenceWeight::MayBeChance,
        "not-shown" => EvidenceWeight::NotShown,
        "too-few" => {
            return CaseSize::TooFew {
                starts,
                needed: count_min(LEVEL),
            };
        }
        // A gate forbids the claim, or the verdict is unknown here.
        _ => {
            let gate = claim.gates.first();
            let name = gate.map(|gate| gate.gate.clone()).unwrap_or_default();
            return CaseSize::Gate { name, starts };
        }
    };
    match (claim.low, claim.ratio, claim.high) {
        (Some(low), Some(ratio), Some(high)) => CaseSize::Ratio {
            ends: [low, ratio, high],
            is_capacity: false,
            starts_to_decide: claim.starts_to_decide(),
            weight,
        },
        _ => CaseSize::TooFew {
            starts,
            needed: count_min(LEVEL),
        },
    }
}

/// The value of an expression whose numbers are what ab printed when its runs were repeated.
fn of_texts(expression: &str, result: &LabResult) -> anyhow::Result<f64> {
    expression::value(expression, |name| {
        let (text, field) = name.split_once(':')?;
        let run = result.as_published.iter().find(|run| run.name == text)?;
        number(&figures(&run.ours), field)
    })
}

/// A count of a cell or the ratio of such counts of two cells, by starts of their servers; or the ratio of two runs
/// of ab.
fn of_measure(here: &Here, measure: &str, result: &LabResult) -> anyhow::Result<CaseSize> {
    // Gates concern the measured span. These runs of ab are made before it, on servers that were just started.
    let is_of_ab = here.divisor.is_some() && starts::is_in(&RUNS_OF_AB, measure);
    if !starts::is_in(&COUNTS, measure) && !is_of_ab {
        bail!("{measure} is no count: gates on times forbid claims on it, so name a claim");
    }
    let logs = log_starts(result, &values(here, measure, result)?);
    let Some(centre) = centre(&logs, LEVEL) else {
        return Ok(CaseSize::TooFew {
            starts: logs.iter().map(|log| log.exp()).collect(),
            needed: count_min(LEVEL),
        });
    };
    let ends = [centre.low, centre.estimate, centre.high].map(f64::exp);
    let is_ratio = !here.level.is_empty() || here.divisor.is_some();
    Ok(if is_ratio {
        CaseSize::Ratio {
            ends,
            is_capacity: false,
            starts_to_decide: None,
            weight: EvidenceWeight::Decides,
        }
    } else {
        CaseSize::Count(ends)
    })
}

/// Measures that do not depend on a clock, so that they have no noise.
const COUNTS: [&str; 3] = ["bytes", "sockets", "syscalls"];

/// The outputs of ab in each round: of the first run, of the second, and of one on warm servers.
const RUNS_OF_AB: [&str; 3] = ["ab1", "ab2", "ab"];

/// The confidence level of intervals.
pub(super) const LEVEL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::figures::{LabCell, LabMeasure};

    #[test]
    fn a_second_run_of_ab_is_set_beside_the_first_of_its_start() {
        let measure = |value: f64| LabMeasure {
            median: value,
            min: value,
            max: value,
            values: vec![value; 6],
            rounds: (0..6).collect(),
        };
        let cell = LabCell {
            levels: BTreeMap::from([("model".to_owned(), "t7-bio".into())]),
            label: "model=t7-bio".to_owned(),
            measures: BTreeMap::from([
                ("ab1.throughput".to_owned(), measure(1.0)),
                ("ab2.throughput".to_owned(), measure(2.0)),
            ]),
            calls: BTreeMap::new(),
        };
        let result = LabResult {
            cells: vec![cell],
            starts: (0..6).collect(),
            ..LabResult::default()
        };
        let here = |text: &str| -> Here { toml::from_str(text).unwrap() };
        let both = here(
            "result = 'r'\nmeasure = 'ab2.throughput'\ndivisor = 'ab1.throughput'\ncell.model = 't7-bio'",
        );
        let CaseSize::Ratio { ends, .. } = of_measure(&both, "ab2.throughput", &result).unwrap()
        else {
            panic!("no ratio");
        };
        assert!(ends.iter().all(|it| (it - 2.0).abs() < 1e-9), "{ends:?}");
        let alone = here("result = 'r'\nmeasure = 'ab2.throughput'\ncell.model = 't7-bio'");
        assert!(of_measure(&alone, "ab2.throughput", &result).is_err());
    }
}
