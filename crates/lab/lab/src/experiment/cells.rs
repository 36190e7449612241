//! Cells: combinations of levels.

use super::{Factor, Levels};

/// All combinations of levels, without those that have all levels of one of the `exceptions`. The first factor varies
/// slowest.
pub(super) fn combine(factors: &[Factor], exceptions: &[Levels]) -> Vec<Levels> {
    let mut cells = vec![Levels::new()];
    for factor in factors {
        let extend = |cell: &Levels| {
            let one = |level| {
                let mut cell = cell.clone();
                cell.insert(factor.name.clone(), level);
                cell
            };
            factor.levels.iter().cloned().map(one).collect::<Vec<_>>()
        };
        cells = cells.iter().flat_map(extend).collect();
    }
    cells.retain(|cell| !exceptions.iter().any(|exception| matches(cell, exception)));
    cells
}

/// Whether `cell` has all of `levels`.
pub(super) fn matches(cell: &Levels, levels: &Levels) -> bool {
    levels
        .iter()
        .all(|(name, level)| cell.get(name) == Some(level))
}
