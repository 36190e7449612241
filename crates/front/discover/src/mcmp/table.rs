//! The nodes of one upstream. The owner of the listener keeps the table, so that another listener, or another
//! process, continues with the same nodes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::nodes::Nodes;
use super::nodes::record::NodeRecord;

/// The nodes of one upstream, and the clock by which their times are counted.
#[derive(Debug)]
pub struct NodeTable {
    // A std mutex: held to take a message in, never while waiting for one.
    nodes: Mutex<Nodes>,
    origin: Instant,
}

impl Default for NodeTable {
    fn default() -> Self {
        Self::from_records(Vec::new())
    }
}

impl NodeTable {
    /// Restores the nodes that the previous process knew.
    #[must_use]
    pub fn from_records(records: Vec<NodeRecord>) -> Self {
        Self {
            nodes: Mutex::new(Nodes::from_records(records, Duration::ZERO)),
            origin: Instant::now(),
        }
    }

    /// The records of all nodes, for the next process.
    #[must_use]
    pub fn records(&self) -> Vec<NodeRecord> {
        self.nodes().records()
    }

    pub(crate) fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current time on the clock of the nodes.
    pub(crate) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Converts a time on the clock of the nodes into one of the event loop's clock.
    pub(crate) fn at(&self, moment: Duration) -> Instant {
        self.origin + moment
    }
}
