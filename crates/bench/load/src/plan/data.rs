//! Values for requests: a table, and the numbers that make requests distinct.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A table of values, such as a CSV file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, at least one; each has a cell for every column.
    pub rows: Vec<Row>,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line of the file in which the row begins, from 1.
    pub line: u64,
    /// The cells of the row, one for each column.
    pub cells: Vec<Vec<u8>>,
}

/// The source of requests' numbers, 1, 2, 3 and so on, for `{{n}}`, rows and random values. Clones
/// share the counter, so that several runs of one plan have no number in common.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    last: Arc<AtomicU64>,
}

impl Table {
    /// The row for the request with this number, from 1. Rows are used in turn, again from the
    /// first one after the last.
    pub(crate) fn row(&self, number: u64) -> Option<&Row> {
        let rows = (self.rows.len() as u64).max(1);
        let index = number.saturating_sub(1) % rows;
        self.rows.get(usize::try_from(index).unwrap_or(usize::MAX))
    }
}

impl Numbers {
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}
