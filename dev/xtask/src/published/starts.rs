//! Computes with the values of a result's cells, by round and by start of servers.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use catamaran_stats::Spread;

use super::source::{Here, Levels};
use crate::figures::{LabCell, LabResult};

/// Values by round.
pub(super) type Rounds = BTreeMap<usize, f64>;

/// The values to compare: a measure of a cell, or its ratio to another measure or to the measure of another cell.
pub(super) fn values(here: &Here, measure: &str, result: &LabResult) -> anyhow::Result<Rounds> {
    if let Some(divisor) = &here.divisor {
        let of_cell = |measure: &str| by_round(result, &here.cell, measure);
        return Ok(quotients(&of_cell(measure)?, &of_cell(divisor)?));
    }
    if here.level.is_empty() {
        return by_round(result, &here.cell, measure);
    }
    contrast(here, measure, result, &Levels::new())
}

/// The ratio of a measure at the levels `level` to that at `over`, for each round, in the cells that also have the
/// levels `at`.
pub(super) fn contrast(
    here: &Here,
    measure: &str,
    result: &LabResult,
    at: &Levels,
) -> anyhow::Result<Rounds> {
    let side = |side: &Levels| by_round(result, &levels(here, at, side), measure);
    Ok(quotients(&side(&here.level)?, &side(&here.over)?))
}

/// The levels of a cell on one side of a contrast.
pub(super) fn levels(here: &Here, at: &Levels, side: &Levels) -> Levels {
    let all = here.cells.iter().chain(at).chain(side);
    all.map(|(name, level)| (name.clone(), level.clone()))
        .collect()
}

/// The quotients of two series, for the rounds that have both.
pub(super) fn quotients(above: &Rounds, below: &Rounds) -> Rounds {
    let ratio = |(round, value): (&usize, &f64)| Some((*round, value / below.get(round)?));
    above.iter().filter_map(ratio).collect()
}

/// The values of a measure of a cell.
fn by_round(result: &LabResult, levels: &Levels, measure: &str) -> anyhow::Result<Rounds> {
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
    let has_levels = |cell: &&LabCell| {
        let mut levels = levels.iter();
        levels.all(|(name, level)| match cell.levels.get(name) {
            Some(own) => is_same(own, level),
            None => false,
        })
    };
    let cells: Vec<&LabCell> = result.cells.iter().filter(has_levels).collect();
    match cells[..] {
        [cell] => Ok(cell),
        [] => bail!("no cell {levels:?}"),
        _ => bail!("several cells {levels:?}"),
    }
}

/// Whether a level of a result is the one that a source's file names. Levels are texts or whole numbers.
fn is_same(own: &serde_json::Value, wanted: &toml::Value) -> bool {
    match (own, wanted) {
        (serde_json::Value::String(own), toml::Value::String(wanted)) => own == wanted,
        (serde_json::Value::Number(own), toml::Value::Integer(wanted)) => {
            own.as_i64() == Some(*wanted)
        }
        _ => false,
    }
}

/// For each start of servers, the logarithm of the median of its rounds.
pub(super) fn log_starts(result: &LabResult, rounds: &Rounds) -> Vec<f64> {
    let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (round, value) in rounds {
        let start = result.starts.get(*round).copied().unwrap_or(*round);
        groups.entry(start).or_default().push(*value);
    }
    let medians = groups.values().filter_map(|values| Spread::of(values));
    medians.map(|spread| spread.median.ln()).collect()
}

/// Whether `measure` is one of `bases`, of whichever server.
pub(super) fn is_in(bases: &[&str], measure: &str) -> bool {
    bases.contains(&base(measure))
}

/// The name of a measure without that of its server.
pub(super) fn base(measure: &str) -> &str {
    measure.split('.').next().unwrap_or_default()
}
