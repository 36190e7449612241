//! Two results of one experiment, from two days or machines: what has changed between them.
//!
//! Cells are never set beside cells of the other result, since the machine may have moved. What is
//! compared are ratios within each result: those of its claims, and each cell over the control.

use std::collections::BTreeMap;
use std::fmt;

use catamaran_stats::{Spread, order, rank};

use crate::claim::number;
use crate::experiment::{Levels, label};
use crate::measure::{Better, Measure};
use crate::result::{CellResult, ResultDocument};

/// What has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// A row for each claim, and for each cell and measure.
    pub rows: Vec<RatioChange>,
    /// The change that is none, such as 0.05.
    pub margin: f64,
}

/// One ratio in both results.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioChange {
    /// What is divided by what.
    pub what: String,
    /// The change of the ratio, as a factor; above 1 it has got worse.
    pub worse: f64,
    /// The lower end of its interval of 95 %.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What came of it.
    pub fate: Fate,
}

/// What came of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is not worse by the margin.
    NotWorse,
    /// It is worse.
    Worse,
    /// Nothing is shown.
    Open,
}

/// Why two results cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareFault {
    /// They are of different experiments.
    #[error("{0} and {1} are different experiments")]
    Experiments(String, String),
    /// One is a short form, the other is not.
    #[error("one is the short form and the other the whole one")]
    Forms,
    /// Their cells or claims have nothing in common.
    #[error("they have no cell and no claim in common of which there are starts enough")]
    Nothing,
}

/// Compares `after` with `before`.
///
/// # Errors
/// They are of different experiments, or have nothing in common.
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
    let mut found = claims(before, after);
    found.extend(cells(before, after));
    if found.is_empty() {
        return Err(CompareFault::Nothing);
    }
    let probabilities: Vec<f64> = found.iter().map(|(_, shift)| shift.p).collect();
    let holds = order::holm(&probabilities, LEVEL);
    let row = |((what, shift), holds): ((String, rank::Shift), bool)| {
        let (low, high) = (shift.low.exp(), shift.high.exp());
        let fate = match () {
            () if high < 1.0 + margin => Fate::NotWorse,
            () if low > 1.0 && holds => Fate::Worse,
            () => Fate::Open,
        };
        let worse = shift.estimate.exp();
        RatioChange {
            what,
            worse,
            low,
            high,
            fate,
        }
    };
    Ok(Comparison {
        rows: found.into_iter().zip(holds).map(row).collect(),
        margin,
    })
}

impl Comparison {
    /// Whether any ratio is worse; `None` if that is open for one, and none is.
    #[must_use]
    pub fn is_worse(&self) -> Option<bool> {
        if self.rows.iter().any(|row| row.fate == Fate::Worse) {
            return Some(true);
        }
        let all = self.rows.iter().all(|row| row.fate == Fate::NotWorse);
        all.then_some(false)
    }
}

/// The claims that both have, each by the ratios of its rounds.
fn claims(before: &ResultDocument, after: &ResultDocument) -> Vec<(String, rank::Shift)> {
    let row = |claim: &crate::claim::Outcome| {
        let same = |it: &&crate::claim::Outcome| {
            it.says == claim.says && it.each == claim.each && it.measure == claim.measure
        };
        let other = after.claims.iter().find(same)?;
        let shift = changed(&claim.measure, &claim.starts, &other.starts)?;
        let each = match &claim.each {
            each if each.is_empty() => String::new(),
            each => format!(" at {}", label(each)),
        };
        Some((format!("\"{}\"{each}", claim.says), shift))
    };
    before.claims.iter().filter_map(row).collect()
}

/// Each cell over the control, by measure.
fn cells(before: &ResultDocument, after: &ResultDocument) -> Vec<(String, rank::Shift)> {
    let mut rows = Vec::new();
    let find = |result: &'_ ResultDocument, levels: &Levels| {
        result.cells.iter().position(|it| it.levels == *levels)
    };
    let Some(control) = before.cells.get(before.control) else {
        return rows;
    };
    let Some(other_control) = find(after, &control.levels) else {
        return rows;
    };
    for cell in before.cells.iter().filter(|it| it.levels != control.levels) {
        let Some(other) = find(after, &cell.levels) else {
            continue;
        };
        for name in cell.measures.keys().filter(|name| is_compared(name)) {
            let Ok(measure) = Measure::parse(name) else {
                continue;
            };
            let one = ratios(before, [cell, control], name);
            let cells = [&after.cells[other], &after.cells[other_control]];
            let two = ratios(after, cells, name);
            if let Some(shift) = changed(&measure, &one, &two) {
                rows.push((format!("{}: {name} over the control's", cell.label), shift));
            }
        }
    }
    rows
}

/// Measures of servers by themselves say the same again.
fn is_compared(name: &str) -> bool {
    ["throughput", "cpu", "p99", "memory", "syscalls"].contains(&name)
}

/// One cell over the other in rounds that were valid in both: the median of each start of servers.
fn ratios(result: &ResultDocument, [cell, control]: [&CellResult; 2], name: &str) -> Vec<f64> {
    let values = |cell: &CellResult| {
        let measure = cell.measures.get(name);
        measure.map_or_else(Vec::new, |measure| {
            let rounds = measure.rounds.iter().copied();
            rounds.zip(measure.values.iter().copied()).collect()
        })
    };
    let below: Vec<(usize, f64)> = values(control);
    let mut starts: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (round, above) in values(cell) {
        let known = below.iter().find(|(other, _)| *other == round);
        let Some((_, below)) = known.filter(|(_, below)| *below > 0.0) else {
            continue;
        };
        let start = result.starts.get(round).copied().unwrap_or(round);
        starts.entry(start).or_default().push(above / below);
    }
    let medians = starts.values().filter_map(|ratios| Spread::of(ratios));
    medians.map(|spread| spread.median).collect()
}

/// The change for the worse, as a logarithm.
fn changed(measure: &Measure, before: &[f64], after: &[f64]) -> Option<rank::Shift> {
    let logs = |ratios: &[f64]| {
        let positive = ratios.iter().filter(|ratio| **ratio > 0.0);
        positive.map(|ratio| ratio.ln()).collect::<Vec<_>>()
    };
    let (before, after) = (logs(before), logs(after));
    match measure.record().better {
        Better::More => rank::shift(&after, &before, LEVEL),
        Better::Less => rank::shift(&before, &after, LEVEL),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.margin * 100.0;
        for row in &self.rows {
            let fate = match row.fate {
                Fate::NotWorse => "not worse",
                Fate::Worse => "WORSE",
                Fate::Open => "open",
            };
            writeln!(
                f,
                "  {fate:<10} {}: ×{} [{}..{}]",
                row.what,
                number(row.worse),
                number(row.low),
                number(row.high)
            )?;
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

const LEVEL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::run::Run;
    use crate::store::StoredResult;

    /// A result in which kept connections take `ratio` times the CPU, on a machine that is `machine`
    /// times as slow.
    fn result(ratio: f64, machine: f64) -> ResultDocument {
        let text = include_str!("../fixtures/keepalive.toml");
        let experiment = Experiment::read("k.toml", text, true).unwrap();
        let mut runs = Vec::new();
        for (round, cell) in (0..8).flat_map(|round| (0..5).map(move |cell| (round, cell))) {
            let levels = experiment.cells[cell].clone();
            let is_kept = levels["keep"].to_string() == "on";
            // Noise of a few per cent that differs between rounds and cells.
            let noise = 1.0 + ((round * 7 + cell * 3) % 5) as f64 / 200.0;
            let factor = if is_kept { ratio } else { 1.0 } * machine * noise;
            runs.push(Run {
                cell,
                round,
                levels,
                measures: [
                    ("cpu".to_owned(), 50.0 * factor),
                    ("throughput".to_owned(), 9000.0 / factor),
                ]
                .into(),
                ..Run::default()
            });
        }
        let stored = StoredResult::of(experiment, runs);
        ResultDocument::of(&stored, true)
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
