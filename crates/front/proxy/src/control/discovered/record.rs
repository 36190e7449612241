//! What was found, as one process hands it to the next.
//!
//! The next process serves with it at once, whatever its sources say: a name server that does not answer, or nodes
//! that have not announced themselves anew, change no more for it than for the process before it.

use std::sync::Arc;
use std::time::Duration;

use catamaran_discover::{MemberRecord, Members, NodeRecord, NodeTable};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::DiscoveredMembers;

/// The members of one upstream.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MembersRecord {
    upstream: String,
    /// The identity of the source that was asked, by which the next process tells whether it has the same.
    source: String,
    members: Vec<MemberRecord>,
    nodes: Vec<NodeRecord>,
    /// How long ago the last good answer came.
    good: Option<Duration>,
}

impl DiscoveredMembers {
    /// The members of all upstreams, for the next process.
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

    /// Starts with the members that the previous process knew, in upstreams that have a source. `true` if there
    /// are any.
    pub(crate) fn inherit(&self, records: Vec<MembersRecord>) -> bool {
        let now = self.origin.elapsed();
        let mut all = self.lock();
        let mut any = false;
        for record in records {
            let Some(known) = all.get_mut(&record.upstream) else {
                continue;
            };
            let members = Members::from_records(record.members, now);
            known.nodes = Arc::new(NodeTable::from_records(record.nodes));
            if record.source == known.config.source.identity() {
                known.members = members;
                let good = |age| Instant::now().checked_sub(age).unwrap_or(self.origin);
                known.good = record.good.map(good);
                // Nobody need wait.
                known.answered = known.good.is_some();
            } else {
                known.members = members.superseded();
            }
            any |= !known.members.is_empty();
        }
        any
    }
}
