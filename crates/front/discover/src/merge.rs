//! The rules by which members join and leave: they make the next list of the last list and an answer.
//!
//! - An error, or an answer without any member, keeps the list.
//! - A member that an answer lacks drains for [`Rules::leave`] and is then removed. If it is named again before, it
//!   serves as before.
//! - If an answer lacks more than half of the members, they leave one by one, each confirmed by a further
//!   answer: an answer that was cut short must not empty an upstream. A member that itself said that it leaves
//!   is removed at once.
//! - Loopback, link-local and the front's own addresses are refused, unless the source is trusted.
//! - A member is identified by its name. At another address it is the same member, but another backend.
//!
//! Pure: the time is an argument, counted from any moment. The order of an answer's members does not matter.

#[cfg(test)]
mod properties;
pub mod record;

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use crate::member::{FoundMember, FoundState};

/// The answer of a source: its members, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All members that the source knows.
    Members {
        /// The members, in any order.
        found: Vec<FoundMember>,
        /// The names of members that announced that they leave.
        left: Vec<String>,
    },
    /// The source could not answer; the text is the reason.
    Failed(String),
}

impl Answer {
    /// An answer with all members, none of which announced that it leaves.
    #[must_use]
    pub fn members(found: Vec<FoundMember>) -> Self {
        let left = Vec::new();
        Self::Members { found, left }
    }
}

/// The settings and facts that a merge depends on.
#[derive(Clone, Copy)]
pub struct Rules<'r> {
    /// How long a member drains after its source has stopped naming it, before it is removed.
    pub leave: Duration,
    /// The most members that are accepted.
    pub members_max: usize,
    /// Whether the source is trusted, so that a member may have any address.
    pub is_trusted: bool,
    /// Returns whether the front itself listens at an address and port.
    pub is_own: &'r dyn Fn(IpAddr, u16) -> bool,
    /// Returns whether the configuration has a backend with this name.
    pub is_taken: &'r dyn Fn(&str) -> bool,
}

/// The members of an upstream, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    members: BTreeMap<String, Member>,
    /// When a doubted member last left, or the doubts began; `None`: no member is doubted.
    stepped: Option<Duration>,
    /// Whether the list is from another source than the next answer. The first answer of a new source is
    /// believed even if it lacks many members.
    superseded: bool,
}

/// A member of an upstream, and whether its source still names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The member as its source last described it.
    pub found: FoundMember,
    /// Whether the source still names the member.
    pub standing: MemberPresence,
}

/// Whether a member's source still names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberPresence {
    /// The last answer names the member.
    Present,
    /// The last answers lack the member and too many others, so they are doubted; the member serves as before.
    Doubted,
    /// The source no longer names the member: it drains until it is removed.
    Leaving {
        /// When the member is removed, as time since the caller's fixed moment.
        until: Duration,
    },
}

/// Why something that a source named does not become a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// The address is a loopback address.
    Loopback,
    /// The address is valid on one link only.
    LinkLocal,
    /// The address is not that of one host: unspecified, broadcast or multicast.
    NoHost,
    /// The front itself listens at the address.
    Own,
    /// Another member of the answer has the same name.
    NameTwice,
    /// Another member of the answer has the same address.
    AddressTwice,
    /// A backend of the configuration has the same name.
    NameTaken,
    /// There are `members_max` members already.
    TooMany,
}

impl Refusal {
    /// The refusal as a token, for metrics.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::NoHost => "no-host",
            Self::Own => "own",
            Self::NameTwice => "name-twice",
            Self::AddressTwice => "address-twice",
            Self::NameTaken => "name-taken",
            Self::TooMany => "members-max",
        }
    }

    /// The reason in words, for logs.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Loopback => "it is a loopback address, which only a file may name",
            Self::LinkLocal => "it is a link-local address, which only a file may name",
            Self::NoHost => "it is not the address of one host",
            Self::Own => "the front itself listens there",
            Self::NameTwice => "another member of the same answer has this name",
            Self::AddressTwice => "another member of the same answer has this address",
            Self::NameTaken => "a [[backend]] of the file has this name",
            Self::TooMany => "there are `members_max` members already",
        }
    }

    /// All refusals, in the order of the metrics page.
    pub const ALL: [Self; 8] = [
        Self::Loopback,
        Self::LinkLocal,
        Self::NoHost,
        Self::Own,
        Self::NameTwice,
        Self::AddressTwice,
        Self::NameTaken,
        Self::TooMany,
    ];
}

/// The next times at which something must be done even if no answer comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    /// When the next member is removed, by [`Members::pass`]; `None`: none is leaving.
    pub gone: Option<Duration>,
    /// When the source must be asked again because its last answer is doubted; `None`: it is not doubted.
    pub ask: Option<Duration>,
}

/// The next list of members, and what the merge found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeResult {
    /// The next list of members.
    pub members: Members,
    /// The next times at which something must be done.
    pub deadlines: Deadlines,
    /// The names in the answer that do not become members, each with the reason.
    pub refused: Vec<(String, Refusal)>,
    /// Why the answer was not used and the last list was kept; `None`: it was used.
    pub kept: Option<String>,
}

/// Merges an answer into the last list of members. `now` is the time since any fixed moment.
#[must_use]
pub fn merge(last: &Members, answer: &Answer, now: Duration, rules: &Rules<'_>) -> MergeResult {
    let (found, left) = match answer {
        Answer::Failed(reason) => return kept(last, now, reason.clone(), Vec::new()),
        Answer::Members { found, left } => (found, left),
    };
    let (named, refused) = admit(last, found, rules);
    let left: HashSet<&str> = left.iter().map(String::as_str).collect();
    if named.is_empty() && !last.members.keys().any(|name| left.contains(&name[..])) {
        let reason = match refused.first() {
            Some((name, refusal)) => format!("{name}: {}", refusal.words()),
            None => "the answer has no members".to_owned(),
        };
        return kept(last, now, reason, refused);
    }
    let absent = AbsentMembers::new(last, &named, &left, now);
    let mut next = next_members(last, &named, &absent, now, rules.leave);
    next.expire(now);
    MergeResult {
        deadlines: next.deadlines(),
        members: next,
        refused,
        kept: None,
    }
}

/// The members after an answer: those that the answer names, and those that it lacks but that stay for some
/// time.
fn next_members(
    last: &Members,
    named: &BTreeMap<&str, &FoundMember>,
    absent: &AbsentMembers<'_>,
    now: Duration,
    leave: Duration,
) -> Members {
    let mut next = Members {
        // Doubts about others are over: those that begin now have their full time.
        stepped: last.stepped.filter(|_| absent.is_confirmed),
        ..Members::default()
    };
    for (name, member) in &last.members {
        if named.contains_key(&name[..]) {
            continue;
        }
        let standing = absent.standing(name, member, now, leave);
        let member = Member {
            found: member.found.clone(),
            standing,
        };
        next.members.insert(name.clone(), member);
    }
    for (name, found) in named {
        let member = Member {
            found: (*found).clone(),
            standing: MemberPresence::Present,
        };
        next.members.insert((*name).to_owned(), member);
    }
    if !next.has(MemberPresence::Doubted) {
        next.stepped = None;
    } else if absent.step.is_some() || next.stepped.is_none() {
        next.stepped = Some(now);
    }
    next
}

/// The result for an answer that is not used: the last list, without members whose time is over.
fn kept(
    last: &Members,
    now: Duration,
    reason: String,
    refused: Vec<(String, Refusal)>,
) -> MergeResult {
    let members = last.pass(now);
    MergeResult {
        deadlines: members.deadlines(),
        members,
        refused,
        kept: Some(reason),
    }
}

/// The members that an answer lacks, and which of them leave.
struct AbsentMembers<'m> {
    /// The absent members that announced that they leave.
    left: HashSet<&'m str>,
    /// Whether the last list is from another source, so that all absent members leave.
    superseded: bool,
    /// Whether the answer lacks so many members that it is doubted.
    doubted: bool,
    /// Whether the answer lacks members that the answer before lacked, too.
    is_confirmed: bool,
    /// The doubted member that leaves by this answer; `None`: none does.
    step: Option<&'m str>,
}

impl<'m> AbsentMembers<'m> {
    /// Finds the members of the last list that an answer lacks, and decides which of them leave.
    fn new(
        last: &'m Members,
        named: &BTreeMap<&str, &FoundMember>,
        left: &HashSet<&str>,
        now: Duration,
    ) -> Self {
        let serving = last
            .members
            .iter()
            .filter(|(_, member)| !member.is_leaving());
        let count = serving.clone().count();
        let lacking = serving.filter(|(name, _)| !named.contains_key(&name[..]));
        let (believed, others): (Vec<_>, Vec<_>) =
            lacking.partition(|(name, _)| last.superseded || left.contains(&name[..]));
        let known: Vec<&str> = others
            .iter()
            .filter(|(_, member)| member.standing == MemberPresence::Doubted)
            .map(|(name, _)| &name[..])
            .collect();
        let doubted = !known.is_empty() || others.len() * 2 > count - believed.len();
        let is_due = last.stepped.is_some_and(|stepped| now >= stepped + STEP);
        Self {
            left: believed
                .into_iter()
                .map(|(name, _)| &name[..])
                .filter(|name| left.contains(name))
                .collect(),
            superseded: last.superseded,
            doubted,
            is_confirmed: !known.is_empty(),
            step: known.first().copied().filter(|_| is_due),
        }
    }

    /// The presence of a member that the answer lacks.
    fn standing(
        &self,
        name: &str,
        member: &Member,
        now: Duration,
        leave: Duration,
    ) -> MemberPresence {
        let leaves = MemberPresence::Leaving { until: now + leave };
        match member.standing {
            MemberPresence::Leaving { .. } => member.standing,
            _ if self.left.contains(name) => MemberPresence::Leaving { until: now },
            _ if self.superseded || self.step == Some(name) => leaves,
            _ if self.doubted => MemberPresence::Doubted,
            _ => leaves,
        }
    }
}

/// Splits an answer into accepted members, by name, and refused ones with the reasons.
fn admit<'f>(
    last: &Members,
    found: &'f [FoundMember],
    rules: &Rules<'_>,
) -> (BTreeMap<&'f str, &'f FoundMember>, Vec<(String, Refusal)>) {
    let mut refused = Vec::new();
    let mut ordered: Vec<&FoundMember> = found.iter().collect();
    // Whatever the order of the answer, the same ones are refused; those that are known are not.
    let is_known = |found: &FoundMember| last.members.contains_key(&found.name);
    ordered.sort_by_cached_key(|found| {
        (
            !is_known(found),
            found.name.clone(),
            found.place.to_string(),
        )
    });
    let mut named: BTreeMap<&str, &FoundMember> = BTreeMap::new();
    let mut places = HashSet::new();
    for found in ordered {
        let refusal = address_refusal(found, rules).or_else(|| {
            if (rules.is_taken)(&found.name) {
                Some(Refusal::NameTaken)
            } else if named.contains_key(&found.name[..]) {
                Some(Refusal::NameTwice)
            } else if places.contains(&(&found.place, found.speech)) {
                Some(Refusal::AddressTwice)
            } else if named.len() >= rules.members_max {
                Some(Refusal::TooMany)
            } else {
                None
            }
        });
        match refusal {
            Some(refusal) => refused.push((found.name.clone(), refusal)),
            None => {
                places.insert((&found.place, found.speech));
                named.insert(&found.name, found);
            }
        }
    }
    (named, refused)
}

/// Why a member's address is refused; `None`: it is not. A host name is accepted, and is resolved for
/// connections like that of a configured backend.
fn address_refusal(found: &FoundMember, rules: &Rules<'_>) -> Option<Refusal> {
    if rules.is_trusted {
        return None;
    }
    let (ip, port) = found.place.address()?;
    let ip = ip.to_canonical();
    let (link_local, no_host) = match ip {
        IpAddr::V4(ip) => (
            ip.is_link_local(),
            ip.is_unspecified() || ip.is_broadcast() || ip.is_multicast(),
        ),
        IpAddr::V6(ip) => (
            ip.is_unicast_link_local(),
            ip.is_unspecified() || ip.is_multicast(),
        ),
    };
    if ip.is_loopback() {
        Some(Refusal::Loopback)
    } else if link_local {
        Some(Refusal::LinkLocal)
    } else if no_host {
        Some(Refusal::NoHost)
    } else {
        (rules.is_own)(ip, port).then_some(Refusal::Own)
    }
}

impl Member {
    /// Whether the member drains because its source no longer names it.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        matches!(self.standing, MemberPresence::Leaving { .. })
    }

    /// Whether the member takes no new sessions, by its source.
    #[must_use]
    pub fn drains(&self) -> bool {
        self.is_leaving() || self.found.state != FoundState::Active
    }
}

impl Members {
    /// All members, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// The member with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.members.get(name)
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// This list, to be merged with another source's answers. The first of them is believed even if it names
    /// none of these members.
    #[must_use]
    pub fn superseded(&self) -> Self {
        Self {
            superseded: true,
            ..self.clone()
        }
    }

    /// This list at `now`, without the members whose time is over.
    #[must_use]
    pub fn pass(&self, now: Duration) -> Self {
        let mut next = self.clone();
        next.expire(now);
        next
    }

    /// The next times at which something must be done for this list.
    #[must_use]
    pub fn deadlines(&self) -> Deadlines {
        let gone = self.members.values().filter_map(|it| match it.standing {
            MemberPresence::Leaving { until } => Some(until),
            MemberPresence::Present | MemberPresence::Doubted => None,
        });
        let doubts = self.has(MemberPresence::Doubted);
        Deadlines {
            gone: gone.min(),
            ask: self
                .stepped
                .filter(|_| doubts)
                .map(|stepped| stepped + STEP),
        }
    }

    fn has(&self, standing: MemberPresence) -> bool {
        self.members.values().any(|it| it.standing == standing)
    }

    fn expire(&mut self, now: Duration) {
        let stays = |member: &Member| match member.standing {
            MemberPresence::Leaving { until } => until > now,
            MemberPresence::Present | MemberPresence::Doubted => true,
        };
        self.members.retain(|_, member| stays(member));
    }
}

/// The time between two members that leave because of doubted answers; also the time until the source is
/// asked again.
pub const STEP: Duration = Duration::from_secs(5);
