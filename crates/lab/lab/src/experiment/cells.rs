//! Cells: combinations of levels.

use super::{Factor, Levels};

/// All combinations of levels, without those that have all levels of one of the `exceptions`. The first factor varies
/// slowest.
pub(super) fn combine(factors: &[Factor], exceptions: &[Levels]) -> Vec<Levels> {
    let mut cells = vec![Levels::new()];
    for factor in factors {
        let mut extended = Vec::new();
        for cell in &cells {
            for level in &factor.levels {
                let mut with_level = cell.clone();
                with_level.insert(factor.name.clone(), level.clone());
                extended.push(with_level);
            }
        }
        cells = extended;
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
