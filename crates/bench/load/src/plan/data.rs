//! Values for requests: a table, and the numbers that tell requests apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of values, such as those of a CSV file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// At least one, each with a cell for every column.
    pub rows: Vec<Row>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it begins in its file: the line, from 1.
    pub line: u64,
    /// Its cells, one for each column.
    pub cells: Vec<Vec<u8>>,
}

/// Where requests get their numbers from, for `{{n}}`, rows and whatever is random: 1, 2, 3 and so on.
/// Clones count on together, so that several runs of one plan have no number in common.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    last: Arc<AtomicU64>,
}

impl Table {
    /// The row of the request of this number, from 1: rows in turn, and then from the first one again.
    pub(crate) fn row(&self, number: u64) -> Option<&Row> {
        let place = number.saturating_sub(1) % (self.rows.len() as u64).max(1);
        self.rows.get(usize::try_from(place).unwrap_or(usize::MAX))
    }
}

impl Numbers {
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}
