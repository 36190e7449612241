//! Nodes as one process hands them to the next, which then knows them before they send a message.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ContextKey, Node, Nodes};
use crate::mcmp::message::NodeConfig;
use crate::member::FoundState;

/// A node with its contexts, for the next process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    config: NodeConfig,
    peer: IpAddr,
    id: u64,
    load: i32,
    contexts: Vec<(ContextKey, FoundState)>,
}

impl Nodes {
    /// The records of all nodes, for the next process.
    #[must_use]
    pub fn records(&self) -> Vec<NodeRecord> {
        let record = |node: &Node| NodeRecord {
            config: node.config.clone(),
            peer: node.peer,
            id: node.id,
            load: node.load,
            contexts: node.contexts.clone().into_iter().collect(),
        };
        self.nodes.values().map(record).collect()
    }

    /// Restores the nodes that the previous process knew. No process heard them during the change, so each may be
    /// silent for the full time again.
    #[must_use]
    pub fn from_records(records: Vec<NodeRecord>, now: Duration) -> Self {
        // The highest id is the number of the last announcement.
        let ids = records.iter().map(|record| record.id);
        let announced = ids.max().unwrap_or_default();
        let to_entry = |record: NodeRecord| {
            let node = Node {
                peer: record.peer,
                id: record.id,
                load: record.load,
                heard: now,
                contexts: record.contexts.into_iter().collect(),
                config: record.config,
            };
            (node.config.route.clone(), node)
        };
        Self {
            nodes: records.into_iter().map(to_entry).collect(),
            left: Vec::new(),
            announced,
        }
    }
}
