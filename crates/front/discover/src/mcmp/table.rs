//! The nodes of one upstream, kept by the owner of the listener: another listener, or another process, goes on with
//! them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::nodes::Nodes;
use super::nodes::record::NodeRecord;

/// Nodes, and from when their moments are counted.
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
    /// The nodes that the process before this one knew.
    #[must_use]
    pub fn from_records(records: Vec<NodeRecord>) -> Self {
        Self {
            nodes: Mutex::new(Nodes::from_records(records, Duration::ZERO)),
            origin: Instant::now(),
        }
    }

    /// What the next process is to know.
    #[must_use]
    pub fn records(&self) -> Vec<NodeRecord> {
        self.nodes().records()
    }

    pub(crate) fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The moment, as nodes count it.
    pub(crate) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// A moment of nodes, as the event loop counts it.
    pub(crate) fn at(&self, moment: Duration) -> Instant {
        self.origin + moment
    }
}
