//! Which figures tables show, and with how many digits.

use crate::measure::Measure;
use crate::result::{CellResult, ResultDocument};

/// The names of measures that any cell has, in the usual order.
pub(super) fn measures(result: &ResultDocument) -> Vec<String> {
    let mut names: Vec<&String> = result
        .cells
        .iter()
        .flat_map(|cell| cell.measures.keys())
        .collect();
    let rank = |name: &str| {
        let base = name.split('.').next().unwrap_or_default();
        ORDER
            .iter()
            .position(|known| *known == base)
            .unwrap_or(ORDER.len())
    };
    names.sort_by_key(|name| (rank(name), name.as_str()));
    names.dedup();
    names.retain(|name| !says_nothing_new(result, name));
    names.into_iter().cloned().collect()
}

/// Whether a measure of one server is that of all servers, in each cell.
fn says_nothing_new(result: &ResultDocument, name: &str) -> bool {
    let Some((base, _)) = name.split_once('.') else {
        return false;
    };
    result.cells.iter().all(|cell| {
        let all = cell.measures.get(base);
        let one = cell.measures.get(name);
        all.is_some() && (one.is_none() || one.map(|it| &it.values) == all.map(|it| &it.values))
    })
}

/// A column's head: name and unit.
pub(super) fn head(name: &str) -> String {
    let unit = Measure::parse(name).map_or("", |measure| measure.unit());
    match (name, unit) {
        ("throughput", unit) => unit.to_owned(),
        (name, "") => name.to_owned(),
        (name, unit) => format!("{name} ({unit})"),
    }
}

/// The median of a cell's measure, and the lowest and highest of its runs.
pub(super) fn figure(cell: &CellResult, name: &str) -> Option<(String, String)> {
    let measure = cell.measures.get(name)?;
    let spread = format!("{}..{}", digits(measure.min), digits(measure.max));
    Some((digits(measure.median), spread))
}

/// A figure with three digits or more.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

const ORDER: [&str; 17] = [
    "throughput",
    "p50",
    "p90",
    "p99",
    "variation",
    "failed",
    "acted",
    "first",
    "cpu",
    "syscalls",
    "bytes",
    "sockets",
    "time_wait",
    "memory",
    "held",
    "heap",
    "collecting",
];
