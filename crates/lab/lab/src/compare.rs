//! Compares two results of one experiment, of two days or machines: which ratios have got worse.
//!
//! A cell is never compared with a cell of the other result, since the machine may have changed. What is compared are
//! ratios within each result: those of its claims, and those of each cell to the control.

use std::fmt;

use catamaran_stats::{Share, fisher, rank};

use crate::claim::{LEVEL, Outcome, hold_by_measure, number};
use crate::experiment::label;
use crate::gate::part_of;
use crate::measure::{Better, Measure};
use crate::result::{CellResult, ResultDocument};

/// The comparison of two results: ratio by ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// A row for each claim of the first result, for each measure of each of its cells, and for each cell that lost
    /// more runs in one of the results.
    pub rows: Vec<RatioChange>,
    /// The change that counts as none, such as 0.05.
    pub margin: f64,
}

/// A ratio in both results, with the verdict on its change.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioChange {
    /// What the ratio is about, in words.
    pub what: String,
    /// The verdict on its change.
    pub fate: Fate,
}

/// The verdict on the change of a ratio.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// The ratio is not worse, or by less than the margin.
    NotWorse(ChangeFactor),
    /// The ratio is worse, even when all ratios on the same measure are considered.
    Worse(ChangeFactor),
    /// The change is not decided: its interval is too wide.
    Open(ChangeFactor),
    /// There is no verdict on the change; the text says why, such as a gate or too few starts.
    NoVerdict(String),
}

/// The factor by which a ratio has changed; above 1 it has got worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeFactor {
    /// The estimate of the factor.
    pub worse: f64,
    /// The lower end of the factor's interval of 95 %.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Why two results cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareFault {
    /// The results are of different experiments.
    #[error("{0} and {1} are different experiments")]
    Experiments(String, String),
    /// One result is of the short form, the other is not.
    #[error("one is the short form and the other the whole one")]
    Forms,
    /// The results have no cell and no claim in common.
    #[error("they have no cell and no claim in common")]
    Nothing,
}

/// Compares the result `after` with the result `before`. `margin` is the change that counts as none.
///
/// # Errors
/// The results are of different experiments or forms, or have nothing in common.
pub fn compare(
    before: &ResultDocument,
    after: &ResultDocument,
    margin: f64,
) -> Result<Comparison, CompareFault> {
    if before.name != after.name {
        return Err(CompareFault::Experiments(
            before.name.clone(),
            after.name.clone(),
        ));
    }
    if before.is_quick != after.is_quick {
        return Err(CompareFault::Forms);
    }
    let pairs = [claims(before, after), cells(before, after)].concat();
    if pairs.iter().all(|pair| pair.after.is_none()) {
        return Err(CompareFault::Nothing);
    }
    let mut rows = survivors(before, after);
    rows.extend(judge(&pairs, margin));
    Ok(Comparison { rows, margin })
}

impl Comparison {
    /// Whether any ratio is worse; `None` if none is, but some are open or have no verdict.
    #[must_use]
    pub fn is_worse(&self) -> Option<bool> {
        let fates = || self.rows.iter().map(|row| &row.fate);
        if fates().any(|fate| matches!(fate, Fate::Worse(_))) {
            return Some(true);
        }
        let is_none_worse = fates().all(|fate| matches!(fate, Fate::NotWorse(_)));
        is_none_worse.then_some(false)
    }
}

/// A ratio in the first result, and the same ratio in the second one, if it is there.
#[derive(Clone, Debug)]
struct ClaimPair<'a> {
    what: String,
    measure: Measure,
    before: RatioSample<'a>,
    after: Option<RatioSample<'a>>,
}

/// The sample of a ratio in one result.
#[derive(Clone, Copy, Debug)]
struct RatioSample<'a> {
    /// The ratio of each start of servers.
    starts: &'a [f64],
    /// Why the result has no verdict on the ratio; `None`: it has one.
    without_verdict: Option<&'a str>,
    /// The logarithm by which the ratio may be wrong: see [`Outcome::bias`].
    bias: f64,
}

impl ClaimPair<'_> {
    /// The logarithm of the factor by which the ratio has got worse; the error says why there is none.
    fn shift(&self) -> Result<rank::Shift, String> {
        let Some(after) = self.after else {
            return Err("B does not have it".to_owned());
        };
        for (name, side) in [("A", self.before), ("B", after)] {
            if let Some(why) = side.without_verdict {
                return Err(format!("in {name}: {why}"));
            }
        }
        let Some(shift) = changed(&self.measure, self.before.starts, after.starts) else {
            return Err("too few starts".to_owned());
        };
        // Both ratios may be wrong in opposite directions.
        let bias = self.before.bias + after.bias;
        Ok(rank::Shift {
            low: shift.low - bias,
            high: shift.high + bias,
            ..shift
        })
    }
}

/// The verdict on each pair. Several pairs on the same measure are corrected for their number.
fn judge(pairs: &[ClaimPair<'_>], margin: f64) -> Vec<RatioChange> {
    let shifts: Vec<_> = pairs.iter().map(ClaimPair::shift).collect();
    let tested = pairs.iter().zip(&shifts);
    let p_values = tested.filter_map(|(pair, shift)| Some((&pair.measure, shift.as_ref().ok()?.p)));
    let mut holds = hold_by_measure(p_values).into_iter();
    let mut rows = Vec::new();
    for (pair, shift) in pairs.iter().zip(shifts) {
        let fate = match shift {
            Err(why) => Fate::NoVerdict(why),
            Ok(shift) => {
                let does_hold = holds.next().expect("one for each shift");
                fate(&shift, does_hold, margin)
            }
        };
        let what = pair.what.clone();
        rows.push(RatioChange { what, fate });
    }
    rows
}

/// The verdict on a change; `does_hold` says whether it is shown even beside others on the same measure.
fn fate(shift: &rank::Shift, does_hold: bool, margin: f64) -> Fate {
    let factor = ChangeFactor {
        worse: shift.estimate.exp(),
        low: shift.low.exp(),
        high: shift.high.exp(),
    };
    if factor.high < 1.0 + margin {
        Fate::NotWorse(factor)
    } else if factor.low > 1.0 && does_hold {
        Fate::Worse(factor)
    } else {
        Fate::Open(factor)
    }
}

/// The claims of the first result, paired with those of the second one.
fn claims<'a>(before: &'a ResultDocument, after: &'a ResultDocument) -> Vec<ClaimPair<'a>> {
    fn sample(claim: &Outcome) -> RatioSample<'_> {
        RatioSample {
            starts: &claim.starts,
            without_verdict: claim.without_verdict(),
            bias: claim.bias,
        }
    }
    let pair = |claim: &'a Outcome| {
        let is_same = |other: &&Outcome| {
            other.says == claim.says && other.each == claim.each && other.measure == claim.measure
        };
        let case = if claim.each.is_empty() {
            String::new()
        } else {
            format!(" at {}", label(&claim.each))
        };
        ClaimPair {
            what: format!("\"{}\"{case}", claim.says),
            measure: claim.measure.clone(),
            before: sample(claim),
            after: after.claims.iter().find(is_same).map(sample),
        }
    };
    before.claims.iter().map(pair).collect()
}

/// The ratios of each cell of the first result to the control, by measure, paired with those of the second one. Empty
/// if the results have different controls.
fn cells<'a>(before: &'a ResultDocument, after: &'a ResultDocument) -> Vec<ClaimPair<'a>> {
    let control = |result: &'a ResultDocument| Some(&result.cells.get(result.control)?.levels);
    if control(before) != control(after) {
        return Vec::new();
    }
    fn sample<'a>(cell: &'a CellResult, name: &str) -> Option<RatioSample<'a>> {
        let ratio = cell.over_control.get(name)?;
        Some(RatioSample {
            starts: &ratio.starts,
            without_verdict: ratio.without_verdict.as_deref(),
            bias: ratio.bias,
        })
    }
    let mut pairs = Vec::new();
    for cell in &before.cells {
        for name in cell.over_control.keys() {
            let (Ok(measure), Some(before)) = (Measure::parse(name), sample(cell, name)) else {
                continue;
            };
            pairs.push(ClaimPair {
                what: format!("{}: {name} over the control's", cell.label),
                measure,
                before,
                after: same_cell(after, cell).and_then(|other| sample(other, name)),
            });
        }
    }
    pairs
}

fn same_cell<'a>(result: &'a ResultDocument, cell: &CellResult) -> Option<&'a CellResult> {
    result
        .cells
        .iter()
        .find(|other| other.levels == cell.levels)
}

/// A row for each cell that lost more runs in one result than in the other, and one for all cells together: the
/// comparison then rests on a selection of runs. Such a row only withholds a verdict, so a level of 10 % is enough to
/// rule out chance.
fn survivors(before: &ResultDocument, after: &ResultDocument) -> Vec<RatioChange> {
    let mut rows = Vec::new();
    let mut add_row_if_unequal = |label: &str, before: Share, after: Share| {
        if fisher(before, after) <= 2.0 * (1.0 - LEVEL) {
            rows.push(RatioChange {
                what: format!("{label}: void runs"),
                fate: Fate::NoVerdict(format!(
                    "{} in A, {} in B: only the survivors are compared",
                    part_of(before.part, before.whole),
                    part_of(after.part, after.whole)
                )),
            });
        }
    };
    let [mut all_before, mut all_after] = [Share::default(); 2];
    for cell in &before.cells {
        let Some(cell_after) = same_cell(after, cell) else {
            continue;
        };
        let [void_before, void_after] = [cell, cell_after].map(|cell| Share {
            part: cell.void as u64,
            whole: (cell.void + cell.runs) as u64,
        });
        add_row_if_unequal(&cell.label, void_before, void_after);
        all_before.part += void_before.part;
        all_before.whole += void_before.whole;
        all_after.part += void_after.part;
        all_after.whole += void_after.whole;
    }
    add_row_if_unequal("all cells", all_before, all_after);
    rows
}

/// The logarithm of the factor by which a ratio has got worse: larger or smaller, depending on the measure.
fn changed(measure: &Measure, before: &[f64], after: &[f64]) -> Option<rank::Shift> {
    let logs = |ratios: &[f64]| {
        let positive = ratios.iter().filter(|ratio| **ratio > 0.0);
        positive.map(|ratio| ratio.ln()).collect::<Vec<_>>()
    };
    let (logs_before, logs_after) = (logs(before), logs(after));
    match measure.record().better {
        Better::More => rank::shift(&logs_after, &logs_before, LEVEL),
        Better::Less => rank::shift(&logs_before, &logs_after, LEVEL),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.margin * 100.0;
        for row in &self.rows {
            let (word, found) = match &row.fate {
                Fate::NotWorse(factor) => ("not worse", factor.to_string()),
                Fate::Worse(factor) => ("WORSE", factor.to_string()),
                Fate::Open(factor) => ("open", factor.to_string()),
                Fate::NoVerdict(why) => ("no verdict", why.clone()),
            };
            writeln!(f, "  {word:<10} {}: {found}", row.what)?;
        }
        let words = match self.is_worse() {
            Some(true) => "Something is worse.".to_owned(),
            Some(false) => format!("Nothing is worse by {percent:.0} %."),
            None => format!("No verdict: whether all is within {percent:.0} % is open."),
        };
        writeln!(
            f,
            "{words} Factors above 1 are worse, whatever the measure."
        )
    }
}

impl fmt::Display for ChangeFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [worse, low, high] = [self.worse, self.low, self.high].map(number);
        write!(f, "×{worse} [{low}..{high}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Experiment, Levels};
    use crate::gate::{Effect, GateFinding};
    use crate::result::StoredResult;
    use crate::run::Run;

    /// A result in which kept connections take `ratio` times the CPU, on a machine that is `machine`
    /// times as slow.
    fn result(ratio: f64, machine: f64) -> ResultDocument {
        result_of(ratio, machine, |_| {})
    }

    /// The result of runs that `change` has changed.
    fn result_of(ratio: f64, machine: f64, change: impl Fn(&mut Vec<Run>)) -> ResultDocument {
        let text = include_str!("../fixtures/keepalive.toml");
        let experiment = Experiment::read("k.toml", text, true).unwrap();
        let mut runs = Vec::new();
        for (round, cell) in (0..8).flat_map(|round| (0..5).map(move |cell| (round, cell))) {
            let levels = experiment.cells[cell].clone();
            // Noise of a few per cent that differs between rounds and cells.
            let noise = 1.0 + ((round * 7 + cell * 3) % 5) as f64 / 200.0;
            let factor = if is_kept(&levels) { ratio } else { 1.0 } * machine * noise;
            let measures = [
                "cpu",
                "p99",
                "memory",
                "syscalls",
                "bytes.httpd.http",
                "throughput",
            ];
            let value = |name: &str| match name {
                "throughput" => 9000.0 / factor,
                _ => 50.0 * factor,
            };
            runs.push(Run {
                cell,
                round,
                levels,
                measures: measures.map(|name| (name.to_owned(), value(name))).into(),
                ..Run::default()
            });
        }
        change(&mut runs);
        let stored = StoredResult::of(experiment, runs);
        ResultDocument::of(&stored, true)
    }

    fn is_kept(levels: &Levels) -> bool {
        levels["keep"].to_string() == "on"
    }

    fn fired(run: &mut Run, gate: &str, effect: Effect) {
        run.gates
            .push(GateFinding::new(gate, effect, format!("{gate} fired.")));
    }

    #[test]
    fn a_machine_that_is_slower_changes_nothing() {
        let comparison = compare(&result(0.5, 1.0), &result(0.5, 1.3), 0.05).unwrap();
        assert_eq!(comparison.is_worse(), Some(false), "{comparison}");
        assert!(comparison.to_string().contains("Nothing is worse by 5 %."));
    }

    #[test]
    fn what_got_worse_is_found_and_named() {
        let comparison = compare(&result(0.5, 1.0), &result(0.6, 1.0), 0.05).unwrap();
        assert_eq!(comparison.is_worse(), Some(true), "{comparison}");
        let said = comparison.to_string();
        assert!(said.contains("WORSE"), "{said}");
        assert!(
            said.contains("\"Keep-alive saves CPU\" at mpm=prefork"),
            "{said}"
        );
        // What got better is not worse.
        let comparison = compare(&result(0.6, 1.0), &result(0.5, 1.0), 0.05).unwrap();
        assert_eq!(comparison.is_worse(), Some(false), "{comparison}");
    }

    #[test]
    fn a_gate_counts_as_in_the_report() {
        let busy = |runs: &mut Vec<Run>| {
            for run in runs {
                fired(run, "generator", Effect::Time);
            }
        };
        for [before, after] in [
            [result(0.5, 1.0), result_of(0.8, 1.0, busy)],
            [result_of(0.5, 1.0, busy), result(0.8, 1.0)],
        ] {
            let comparison = compare(&before, &after, 0.05).unwrap();
            for row in &comparison.rows {
                let is_time = ["throughput", "slower", "p99"];
                if is_time.iter().any(|word| row.what.contains(word)) {
                    assert!(
                        matches!(&row.fate, Fate::NoVerdict(why) if why.contains("generator fired.")),
                        "{row:?}"
                    );
                } else {
                    assert!(!matches!(row.fate, Fate::NoVerdict(_)), "{row:?}");
                }
            }
        }
        // The same server beside a load that was the limit in one result: nothing is shown.
        let comparison = compare(&result(0.5, 1.0), &result_of(0.5, 1.0, busy), 0.05).unwrap();
        assert_eq!(comparison.is_worse(), None, "{comparison}");
        let said = comparison.to_string();
        assert!(
            said.contains("no verdict \"Keep-alive raises throughput\" at mpm=prefork: in B: No claim: generator fired.\n"),
            "{said}"
        );
    }

    #[test]
    fn a_build_that_crashes_is_not_shown_to_be_no_worse() {
        // Seven of fourteen runs of each cell with kept connections, and each was made again.
        let crashing = |runs: &mut Vec<Run>| {
            let mut lost: Vec<Run> = runs
                .iter()
                .filter(|it| is_kept(&it.levels))
                .cloned()
                .collect();
            lost.retain(|run| run.round < 7);
            for run in &mut lost {
                fired(run, "died", Effect::Void);
            }
            runs.extend(lost);
        };
        let crashing = result_of(0.5, 1.0, crashing);
        let comparison = compare(&result(0.5, 1.0), &crashing, 0.05).unwrap();
        assert_eq!(comparison.is_worse(), None, "{comparison}");
        let said = comparison.to_string();
        assert!(
            said.contains(
                "void runs: 0 of 8 in A, 7 of 15 in B: only the survivors are compared\n"
            ),
            "{said}"
        );
        // Both builds crash alike in all cells, so that no result has unequal levels by itself.
        let all = |runs: &mut Vec<Run>| {
            let mut lost = runs.clone();
            lost.iter_mut()
                .for_each(|run| fired(run, "died", Effect::Void));
            runs.extend(lost);
        };
        let comparison = compare(&result(0.5, 1.0), &result_of(0.5, 1.0, all), 0.05).unwrap();
        assert_eq!(comparison.is_worse(), None, "{comparison}");
        let rows = comparison.rows.iter();
        let of_survivors = rows
            .filter(|row| matches!(row.fate, Fate::NoVerdict(_)))
            .count();
        assert_eq!(of_survivors, 6, "each cell and all of them: {comparison}");
    }

    #[test]
    fn what_one_result_lacks_is_open() {
        let never = |runs: &mut Vec<Run>| {
            for run in runs.iter_mut().filter(|it| is_kept(&it.levels)) {
                fired(run, "died", Effect::Void);
            }
        };
        let comparison = compare(&result(0.5, 1.0), &result_of(0.5, 1.0, never), 0.05).unwrap();
        assert_eq!(comparison.is_worse(), None, "{comparison}");
        let mut lacking = result(0.5, 1.0);
        lacking
            .claims
            .retain(|claim| claim.says != "Keep-alive saves CPU");
        let comparison = compare(&result(0.5, 1.0), &lacking, 0.05).unwrap();
        assert_eq!(comparison.is_worse(), None, "{comparison}");
        assert!(
            comparison.to_string().contains("B does not have it"),
            "{comparison}"
        );
        let few = |runs: &mut Vec<Run>| runs.retain(|run| run.round < 4);
        let comparison = compare(&result(0.5, 1.0), &result_of(0.5, 1.0, few), 0.05).unwrap();
        assert_eq!(comparison.is_worse(), None, "{comparison}");
    }

    #[test]
    fn a_loss_is_worse_where_more_is_better() {
        let (many, few) = ([2.0, 2.02, 1.98, 2.01, 1.99, 2.0], [1.0; 6]);
        for (name, is_worse) in [
            ("throughput", true),
            ("capacity", true),
            ("free", true),
            ("ab1.throughput", true),
            ("cpu", false),
            ("ab1.longest", false),
        ] {
            let measure = Measure::parse(name).unwrap();
            let shift = changed(&measure, &many, &few).unwrap();
            assert_eq!(shift.estimate > 0.0, is_worse, "{name} {shift:?}");
        }
    }

    #[test]
    fn other_experiments_are_refused() {
        let mut other = result(0.5, 1.0);
        other.name = "fronts".to_owned();
        let fault = compare(&result(0.5, 1.0), &other, 0.05).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "keepalive and fronts are different experiments"
        );
        let mut whole = result(0.5, 1.0);
        whole.is_quick = false;
        assert!(compare(&result(0.5, 1.0), &whole, 0.05).is_err());
    }
}
