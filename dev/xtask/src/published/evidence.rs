//! What a committed result says of a published claim.
//!
//! An interval comes from a claim of the lab, or, of counts that no gate on times touches, from a cell's values by the
//! starts of its servers. A run that was made once has counts and no interval. If a sentence is about several cases of our
//! claim, the weakest of their findings is the answer.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use catamaran_stats::Spread;
use catamaran_stats::repetition::{
    Finding, next_start, of_count, of_direction, of_range, of_ratio, weakest,
};
use catamaran_stats::signed_rank::{centre, count_min};

use super::source::{Claim, Direction, Here, Levels, Published, Reason, Source};
use super::text::figures;
use super::{expression, source};
use crate::figures::{LabCell, LabClaim, LabResult, rounded};

/// The answer of our results to a published claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) verdict: PageVerdict,
    /// Our figure, or the reason why there is none.
    pub(super) here: String,
    /// The folder of the result that the figure is from.
    pub(super) result: Option<String>,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageVerdict {
    Decided(Finding),
    NotComparable(Reason),
}

/// The evidence that a result has about a claim.
enum Evidence {
    /// An interval of 95 %; `lab`: what the lab has concluded of a difference from 1.
    Interval {
        ends: [f64; 2],
        /// The interval in which the figure of one more start would lie.
        next: Option<[f64; 2]>,
        words: String,
        lab: Option<String>,
        /// Whether the interval is of a count, or of a ratio of two counts.
        is_count: bool,
    },
    /// The counts of runs that were made once.
    Counts(Vec<f64>),
    /// The result does not decide the claim, for this reason.
    Undecided(String),
}

/// The answer to a claim.
///
/// # Errors
///
/// A result that is committed does not have what is to answer.
pub(super) fn answer(
    source: &Source,
    claim: &Claim,
    results: &[(String, LabResult)],
) -> anyhow::Result<Answer> {
    if let Some(reason) = claim.not_comparable {
        return Ok(Answer {
            verdict: PageVerdict::NotComparable(reason),
            here: String::new(),
            result: None,
        });
    }
    let published = claim.published(source)?.context("it was checked")?;
    let committed = claim.here.iter().find_map(|here| {
        let (_, result) = results.iter().find(|(folder, _)| *folder == here.result)?;
        Some((here, result))
    });
    let Some((here, result)) = committed else {
        return Ok(Answer {
            verdict: PageVerdict::Decided(Finding::Open),
            here: "no committed result has it".to_owned(),
            result: None,
        });
    };
    let cases = evidence(claim, here, result)
        .with_context(|| format!("{}: docs/lab/{}", claim.id, here.result))?;
    let has_several = cases.len() > 1;
    let concluded = cases.into_iter().map(|(case, evidence)| {
        let (finding, words) = conclude(&published, evidence);
        if has_several {
            (finding, format!("{case}: {}", words.trim_end_matches('.')))
        } else {
            (finding, words)
        }
    });
    let (findings, words): (Vec<Finding>, Vec<String>) = concluded.unzip();
    Ok(Answer {
        verdict: PageVerdict::Decided(weakest(&findings)),
        here: words.join("; "),
        result: Some(here.result.clone()),
    })
}

/// The verdict and our figure in words.
fn conclude(published: &Published, evidence: Evidence) -> (Finding, String) {
    match evidence {
        Evidence::Undecided(why) => (Finding::Open, why),
        Evidence::Counts(counts) => {
            let finding = of_counts(published, &counts);
            (finding, in_words(published, &counts))
        }
        Evidence::Interval {
            ends,
            next,
            words,
            lab,
            is_count,
        } => {
            let is_open = lab.as_deref().is_some_and(|it| OPEN.contains(&it));
            let finding = match published {
                Published::Ratio(ratio) if !is_count => {
                    next.map_or(Finding::Open, |next| of_ratio(*ratio, next, !is_open))
                }
                // The page decides no more than the result does.
                _ if is_open => Finding::Open,
                Published::Ratio(ratio) => of_count(*ratio, ends),
                Published::Range(range) => of_range(*range, ends),
                Published::Count(count) => of_count(*count, ends),
                Published::Direction(side) => match lab.as_deref() {
                    Some("same" | "differs-little") => Finding::Refuted,
                    _ => of_direction(*side == Direction::More, ends),
                },
            };
            let is_of_single_runs = !is_count && matches!(published, Published::Ratio(_));
            let predicted = next.filter(|_| is_of_single_runs).map(|ends| {
                let [low, high] = ends.map(rounded);
                format!(", one more start ×{low} to ×{high}")
            });
            let chance = match lab.as_deref() {
                Some("suggests") => "; beside other claims on the same measure that may be chance",
                _ => "",
            };
            (finding, words + &predicted.unwrap_or_default() + chance)
        }
    }
}

/// The verdict by counts of runs that were made once. Each of them must support the claim.
fn of_counts(published: &Published, counts: &[f64]) -> Finding {
    let one = |count: &f64| {
        let ends = [*count, *count];
        match published {
            Published::Ratio(ratio) => of_count(*ratio, ends),
            Published::Range(range) => of_range(*range, ends),
            Published::Count(published) => of_count(*published, ends),
            // No difference within what two counts may differ by.
            Published::Direction(_) if of_count(1.0, ends) == Finding::Reproduced => {
                Finding::Refuted
            }
            Published::Direction(side) => of_direction(*side == Direction::More, ends),
        }
    };
    if counts.iter().all(|count| one(count) == Finding::Reproduced) {
        Finding::Reproduced
    } else {
        Finding::Refuted
    }
}

fn in_words(published: &Published, counts: &[f64]) -> String {
    let is_count = matches!(published, Published::Count(_));
    let number = |count: &f64| {
        if is_count {
            count_in_words(*count)
        } else {
            ratio_in_words(*count)
        }
    };
    let mut words: Vec<String> = counts.iter().map(number).collect();
    let runs = words.len() * if is_count { 1 } else { 2 };
    words.dedup();
    let runs = match runs {
        1 => "one run".to_owned(),
        2 => "two runs".to_owned(),
        runs => format!("{runs} runs"),
    };
    format!("{}, {runs}", words.join(", "))
}

/// The evidence of a result, for each of the claim's cases.
fn evidence(
    claim: &Claim,
    here: &Here,
    result: &LabResult,
) -> anyhow::Result<Vec<(String, Evidence)>> {
    let one = |evidence| vec![(String::new(), evidence)];
    match (&here.claim, &here.measure, here.again) {
        (Some(says), None, false) => {
            let claims = cases(here, says, result);
            let known: Vec<_> = claims.map(|it| (it.case(), of_claim(it))).collect();
            ensure!(!known.is_empty(), "no claim {says:?} ({})", here.case);
            Ok(known)
        }
        (None, Some(measure), false) => Ok(one(of_measure(here, measure, result)?)),
        (None, None, true) => {
            let each = claim.expressions().map(|it| of_texts(it, result));
            Ok(one(Evidence::Counts(each.collect::<anyhow::Result<_>>()?)))
        }
        _ => bail!("an answer is a `claim`, a `measure` or `again`"),
    }
}

/// The cases of our claim that have all levels of `here`.
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
    claims.filter(move |it| it.says == says && has_levels(it))
}

fn of_claim(claim: &LabClaim) -> Evidence {
    let interval = claim.low.zip(claim.high).zip(claim.ratio);
    let is_open = ["too-few", "no-claim"].contains(&claim.verdict.as_str());
    let Some(((low, high), ratio)) = interval.filter(|_| !is_open) else {
        return Evidence::Undecided(claim.sentence.clone());
    };
    let words = format!("×{} [{}..{}]", rounded(ratio), rounded(low), rounded(high));
    if claim.measure.ends_with(MAXIMUM) {
        return Evidence::Undecided(format!(
            "{words}; the longest request of one run is no estimate"
        ));
    }
    let next = next_start(&claim.starts);
    Evidence::Interval {
        ends: [low, high],
        next: next.map(|[low, high]| [low / claim.bias.exp(), high * claim.bias.exp()]),
        words,
        lab: Some(claim.verdict.clone()),
        is_count: is_count(&claim.measure),
    }
}

/// An expression over what ab printed in runs that were made again.
fn of_texts(expression: &str, result: &LabResult) -> anyhow::Result<f64> {
    expression::value(expression, |name| {
        let (text, field) = name.split_once(':')?;
        let run = result.as_published.iter().find(|it| it.name == text)?;
        source::number(&figures(&run.ours), field)
    })
}

/// A count of a cell, or the ratio of two cells', over the starts of their servers; or the ratio of two of ab's runs.
fn of_measure(here: &Here, measure: &str, result: &LabResult) -> anyhow::Result<Evidence> {
    // Gates look at the span that is measured. ab's runs come before it, on servers that were just started.
    let is_of_ab = here.divisor.is_some() && is_in(&RUNS_OF_AB, measure);
    if !is_count(measure) && !is_of_ab {
        bail!("{measure} is no count: gates on times forbid claims on it, so name a claim");
    }
    let is_ratio = !here.level.is_empty() || here.divisor.is_some();
    let starts = of_starts(result, &values(here, measure, result)?);
    let words = |value: f64| {
        if is_ratio {
            ratio_in_words(value)
        } else {
            count_in_words(value)
        }
    };
    let logs: Vec<f64> = starts.iter().map(|start| start.ln()).collect();
    Ok(match centre(&logs, LEVEL) {
        Some(centre) => Evidence::Interval {
            ends: [centre.low.exp(), centre.high.exp()],
            next: next_start(&starts),
            words: format!(
                "{} [{}..{}]",
                words(centre.estimate.exp()),
                words(centre.low.exp()).trim_start_matches('×'),
                words(centre.high.exp()).trim_start_matches('×')
            ),
            lab: None,
            is_count: !is_of_ab,
        },
        None => {
            let [low, high] = [f64::min, f64::max].map(|end| starts.iter().copied().reduce(end));
            let few = format!("too few starts, {} of {}", starts.len(), count_min(LEVEL));
            Evidence::Undecided(match low.zip(high) {
                Some((low, high)) => format!("{few}: {} to {}", words(low), words(high)),
                None => few,
            })
        }
    })
}

/// The values to compare, by round: a measure of a cell, or its ratio to another measure or to the measure of
/// another cell.
fn values(here: &Here, measure: &str, result: &LabResult) -> anyhow::Result<BTreeMap<usize, f64>> {
    if let Some(divisor) = &here.divisor {
        let of_cell = |measure: &str| by_round(result, &here.cell, measure);
        return Ok(quotients(of_cell(measure)?, &of_cell(divisor)?));
    }
    if here.level.is_empty() {
        return by_round(result, &here.cell, measure);
    }
    let side = |side: &Levels| {
        let levels = here.cells.iter().chain(side);
        let levels = levels.map(|(name, level)| (name.clone(), level.clone()));
        by_round(result, &levels.collect(), measure)
    };
    Ok(quotients(side(&here.level)?, &side(&here.over)?))
}

/// The quotients of two measures, for the rounds that have both.
fn quotients(above: BTreeMap<usize, f64>, below: &BTreeMap<usize, f64>) -> BTreeMap<usize, f64> {
    let ratio = |(round, value): (usize, f64)| Some((round, value / below.get(&round)?));
    above.into_iter().filter_map(ratio).collect()
}

/// Whether a measure has no noise of a clock.
fn is_count(measure: &str) -> bool {
    is_in(&COUNTS, measure)
}

/// Whether `measure` is one of `bases`, for any server.
fn is_in(bases: &[&str], measure: &str) -> bool {
    bases.contains(&measure.split('.').next().unwrap_or_default())
}

/// The values of a measure of a cell, by round.
fn by_round(
    result: &LabResult,
    levels: &Levels,
    measure: &str,
) -> anyhow::Result<BTreeMap<usize, f64>> {
    let cell = cell(result, levels)?;
    let values = cell.measures.get(measure);
    let values = values.with_context(|| format!("no {measure} of the cell {levels:?}"))?;
    Ok(values
        .rounds
        .iter()
        .copied()
        .zip(values.values.iter().copied())
        .collect())
}

/// Finds the cell with these levels.
///
/// # Errors
///
/// No cell, or more than one, has them.
pub(super) fn cell<'a>(result: &'a LabResult, levels: &Levels) -> anyhow::Result<&'a LabCell> {
    let has = |cell: &&LabCell| {
        let mut wanted = levels.iter();
        wanted.all(|(name, level)| cell.levels.get(name).is_some_and(|it| is_same(it, level)))
    };
    let mut cells = result.cells.iter().filter(has);
    match (cells.next(), cells.next()) {
        (Some(cell), None) => Ok(cell),
        (None, _) => bail!("no cell {levels:?}"),
        _ => bail!("several cells {levels:?}"),
    }
}

fn is_same(ours: &serde_json::Value, wanted: &toml::Value) -> bool {
    match (ours, wanted) {
        (serde_json::Value::String(ours), toml::Value::String(wanted)) => ours == wanted,
        (serde_json::Value::Number(ours), toml::Value::Integer(wanted)) => {
            ours.as_i64() == Some(*wanted)
        }
        _ => false,
    }
}

/// The median of each start's rounds.
fn of_starts(result: &LabResult, by_round: &BTreeMap<usize, f64>) -> Vec<f64> {
    let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (round, value) in by_round {
        let start = result.starts.get(*round).copied().unwrap_or(*round);
        groups.entry(start).or_default().push(*value);
    }
    let medians = groups.values().filter_map(|values| Spread::of(values));
    medians.map(|spread| spread.median).collect()
}

/// Writes a ratio with enough digits to distinguish it.
pub(super) fn ratio_in_words(ratio: f64) -> String {
    match ratio {
        ..0.1 => format!("×{ratio:.4}"),
        _ => format!("×{ratio:.3}"),
    }
}

/// A count with up to six digits.
pub(super) fn count_in_words(count: f64) -> String {
    let whole = count.abs().max(1.0).log10().floor() as usize + 1;
    let text = format!("{count:.*}", 6_usize.saturating_sub(whole));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Measures that do not depend on a clock, so that they have no noise.
const COUNTS: [&str; 3] = ["bytes", "sockets", "syscalls"];

/// A measure that is the largest value of a run: what was published is of one run, and the next one has another.
const MAXIMUM: &str = ".longest";

/// Verdicts of the lab that leave a claim undecided.
const OPEN: [&str; 2] = ["suggests", "not-shown"];

/// The outputs of ab in each round: of the first run, of the second, and of one on warm servers.
const RUNS_OF_AB: [&str; 3] = ["ab1", "ab2", "ab"];

/// How surely an interval holds the centre.
const LEVEL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::LabMeasure;

    #[test]
    fn a_ratio_of_two_counts_is_the_same_within_a_hundredth() {
        let finding = |is_count| {
            let evidence = Evidence::Interval {
                ends: [0.010_05, 0.010_06],
                next: Some([0.010_05, 0.010_06]),
                words: String::new(),
                lab: None,
                is_count,
            };
            conclude(&Published::Ratio(0.010_08), evidence).0
        };
        assert_eq!(finding(true), Finding::Reproduced);
        assert_eq!(finding(false), Finding::Refuted);
        assert!(is_count("syscalls.web") && !is_count("ab2.throughput"));
    }

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
        let evidence = of_measure(&both, "ab2.throughput", &result).unwrap();
        let (finding, words) = conclude(&Published::Direction(Direction::More), evidence);
        assert_eq!(
            (finding, words.as_str()),
            (Finding::Reproduced, "×2.000 [2.000..2.000]")
        );
        let alone = here("result = 'r'\nmeasure = 'ab2.throughput'\ncell.model = 't7-bio'");
        assert!(of_measure(&alone, "ab2.throughput", &result).is_err());
    }
}
