//! Members as one process hands them to the next, without times that only one process can interpret.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Member, MemberPresence, Members};
use crate::member::FoundMember;

/// A member with its presence, for the next process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    found: FoundMember,
    standing: StandingRecord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum StandingRecord {
    Present,
    Doubted,
    /// The member leaves, and is removed after this time.
    Leaving(Duration),
}

impl Members {
    /// The records of all members, for the next process.
    #[must_use]
    pub fn records(&self, now: Duration) -> Vec<MemberRecord> {
        let record = |member: &Member| MemberRecord {
            found: member.found.clone(),
            standing: match member.standing {
                MemberPresence::Present => StandingRecord::Present,
                MemberPresence::Doubted => StandingRecord::Doubted,
                MemberPresence::Leaving { until } => {
                    StandingRecord::Leaving(until.saturating_sub(now))
                }
            },
        };
        self.iter().map(record).collect()
    }

    /// Restores the members of the previous process. Members that leave have the rest of their time; doubted
    /// members have the full time again.
    #[must_use]
    pub fn from_records(records: Vec<MemberRecord>, now: Duration) -> Self {
        let to_entry = |record: MemberRecord| {
            let standing = match record.standing {
                StandingRecord::Present => MemberPresence::Present,
                StandingRecord::Doubted => MemberPresence::Doubted,
                StandingRecord::Leaving(left) => MemberPresence::Leaving {
                    until: now.saturating_add(left),
                },
            };
            let found = record.found;
            (found.name.clone(), Member { found, standing })
        };
        let mut members = Self {
            members: records.into_iter().map(to_entry).collect(),
            ..Self::default()
        };
        members.stepped = members.has(MemberPresence::Doubted).then_some(now);
        members
    }
}
