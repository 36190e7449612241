//! Nodes as one process hands them to the next, so that the next one knows them before they say a word.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ContextKey, Node, Nodes};
use crate::mcmp::message::NodeConfig;
use crate::member::FoundState;

/// A node, and what it said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    config: NodeConfig,
    peer: IpAddr,
    id: u64,
    load: i32,
    contexts: Vec<(ContextKey, FoundState)>,
}

impl Nodes {
    /// What the next process is to know of each.
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

    /// The nodes that the process before this one knew. Nobody heard them while the processes changed, so each may be
    /// silent for the full time again.
    #[must_use]
    pub fn from_records(records: Vec<NodeRecord>, now: Duration) -> Self {
        let announced = records.iter().map(|it| it.id).max().unwrap_or_default();
        let node = |record: NodeRecord| {
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
            nodes: records.into_iter().map(node).collect(),
            left: Vec::new(),
            announced,
        }
    }
}
