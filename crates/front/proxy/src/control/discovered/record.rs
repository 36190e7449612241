//! The discovered members, as an old process hands them to the new one at an upgrade.
//!
//! The new process serves with these members at once, whatever their sources answer: a name server that fails does no
//! harm, and nodes need not announce themselves again.

use std::sync::Arc;
use std::time::Duration;

use catamaran_discover::{MemberRecord, Members, NodeRecord, NodeTable};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::DiscoveredMembers;

/// The discovered members of one upstream.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MembersRecord {
    upstream: String,
    /// The identity of the source, by which the new process tells whether it asks the same source.
    source: String,
    members: Vec<MemberRecord>,
    nodes: Vec<NodeRecord>,
    /// The time since the last good answer; `None`: there was none.
    good: Option<Duration>,
}

impl DiscoveredMembers {
    /// Records the discovered members of all upstreams, for the next process.
    pub(crate) fn records(&self) -> Vec<MembersRecord> {
        let now = self.origin.elapsed();
        let known = self.lock();
        let records = known.iter().map(|(upstream, known)| MembersRecord {
            upstream: upstream.clone(),
            source: known.config.source.identity(),
            members: known.members.records(now),
            nodes: known.nodes.records(),
            good: known.good.map(|good| good.elapsed()),
        });
        records.collect()
    }

    /// Takes over the members that the previous process knew, for upstreams that have a source. `true` if there
    /// are any.
    pub(crate) fn inherit(&self, records: Vec<MembersRecord>) -> bool {
        let now = self.origin.elapsed();
        let mut upstreams = self.lock();
        let mut has_members = false;
        for record in records {
            let Some(known) = upstreams.get_mut(&record.upstream) else {
                continue;
            };
            let members = Members::from_records(record.members, now);
            known.nodes = Arc::new(NodeTable::from_records(record.nodes));
            if record.source == known.config.source.identity() {
                known.members = members;
                let time_of = |age| Instant::now().checked_sub(age).unwrap_or(self.origin);
                known.good = record.good.map(time_of);
                // The members are known, so the start need not wait for an answer.
                known.answered = known.good.is_some();
            } else {
                // They stay until the first answer of the new source.
                known.members = members.superseded();
            }
            has_members |= !known.members.is_empty();
        }
        has_members
    }
}
