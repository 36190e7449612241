//! The rules by which members join and leave: the last list and an answer make the next list.
//!
//! - An error, or an answer without any member, keeps the list.
//! - A member that an answer lacks drains for [`Rules::leave`], then it is gone. If it is named again, it is
//!   as before.
//! - If an answer lacks more than half of the members, they leave one by one, each confirmed by a further
//!   answer: an answer that was cut short must not empty an upstream. What says itself that it leaves is
//!   gone at once.
//! - Loopback, link-local and the front's own addresses are refused, unless the source is trusted.
//! - A member is its name. At another address it is the same member, and another backend.
//!
//! Pure: the moment is an argument, counted from anywhere. An answer in another order gives the same list.

#[cfg(test)]
mod properties;
pub mod record;

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use crate::member::{FoundMember, FoundState};

/// A source's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All members that the source knows.
    Members {
        /// In any order.
        found: Vec<FoundMember>,
        /// Names of those that said themselves that they leave.
        left: Vec<String>,
    },
    /// The source could not answer, for this reason.
    Failed(String),
}

impl Answer {
    /// All members, none of which said that it leaves.
    #[must_use]
    pub fn members(found: Vec<FoundMember>) -> Self {
        let left = Vec::new();
        Self::Members { found, left }
    }
}

/// The settings and facts that a merge depends on.
#[derive(Clone, Copy)]
pub struct Rules<'r> {
    /// How long a member drains after its source has stopped naming it.
    pub leave: Duration,
    /// The most members that there may be.
    pub members_max: usize,
    /// Whether the source is trusted, so that a member may have any address.
    pub is_trusted: bool,
    /// Whether the front itself listens at an address and port.
    pub is_own: &'r dyn Fn(IpAddr, u16) -> bool,
    /// Whether the configuration has a backend of that name.
    pub is_taken: &'r dyn Fn(&str) -> bool,
}

/// The members of an upstream, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    members: BTreeMap<String, Member>,
    /// When a doubted member last left.
    stepped: Option<Duration>,
    /// The source is another one than that of the list: its first answer is believed.
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
    /// The last answers lack the member and too many others, so they are doubted; it serves as before.
    Doubted,
    /// The source no longer names the member: it drains until it is removed.
    Leaving {
        /// When the member is removed.
        until: Duration,
    },
}

/// Why something that a source named is no member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// The member's address is this machine itself.
    Loopback,
    /// An address that holds on one link only.
    LinkLocal,
    /// Not the address of one host: unspecified, broadcast or multicast.
    NoHost,
    /// The front listens there.
    Own,
    /// Another member of the answer has the name.
    NameTwice,
    /// Another member of the answer has the address.
    AddressTwice,
    /// A backend of the configuration has the name.
    NameTaken,
    /// There are as many as may be.
    TooMany,
}

impl Refusal {
    /// In one word, for metrics.
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

    /// In words.
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

    /// All of them, in the order of the page of metrics.
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

/// The next moments at which something must be done although no answer comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    /// When the next member is removed: [`Members::pass`] is to be called.
    pub gone: Option<Duration>,
    /// When the source is to be asked again, because its last answer is doubted.
    pub ask: Option<Duration>,
}

/// The next list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeResult {
    /// The members.
    pub members: Members,
    /// The next moments at which something must be done.
    pub deadlines: Deadlines,
    /// The names in the answer that are no members, each with the reason.
    pub refused: Vec<(String, Refusal)>,
    /// Why the list was kept, if it was.
    pub kept: Option<String>,
}

/// Merges an answer into the last list of members.
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
    let missing = AbsentMembers::new(last, &named, &left, now);
    let mut next = Members {
        // Doubts about others are over: those that begin now have their full time.
        stepped: last.stepped.filter(|_| missing.is_confirmed),
        ..Members::default()
    };
    for (name, member) in &last.members {
        let standing = match named.get(&name[..]) {
            Some(_) => continue,
            None => missing.standing(name, member, now, rules.leave),
        };
        let member = Member {
            found: member.found.clone(),
            standing,
        };
        next.members.insert(name.clone(), member);
    }
    if missing.step.is_some() {
        next.stepped = Some(now);
    }
    for (name, found) in named {
        let member = Member {
            found: found.clone(),
            standing: MemberPresence::Present,
        };
        next.members.insert(name.to_owned(), member);
    }
    if !next.has(MemberPresence::Doubted) {
        next.stepped = None;
    } else if next.stepped.is_none() {
        next.stepped = Some(now);
    }
    next.expire(now);
    MergeResult {
        deadlines: next.deadlines(),
        members: next,
        refused,
        kept: None,
    }
}

/// The last list, for an answer that is not used; members whose time is over are removed.
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

/// The members that an answer lacks, and whether they leave.
struct AbsentMembers<'m> {
    /// Members that said themselves that they leave.
    left: HashSet<&'m str>,
    /// The source is another one than the list's: all of its answer is believed.
    superseded: bool,
    /// The answer lacks too many.
    doubted: bool,
    /// The answer lacks some members that the answer before also lacked.
    is_confirmed: bool,
    /// The doubted one that leaves.
    step: Option<&'m str>,
}

impl<'m> AbsentMembers<'m> {
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

/// The members of an answer that are accepted, by name.
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

/// Why its address is refused, if it is. A host name is resolved when it is connected to, like that of a
/// backend of the configuration.
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
    /// Whether it drains because it is no longer named.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        matches!(self.standing, MemberPresence::Leaving { .. })
    }

    /// Whether it takes no new sessions, as far as its source is concerned.
    #[must_use]
    pub fn drains(&self) -> bool {
        self.is_leaving() || self.found.state != FoundState::Active
    }
}

impl Members {
    /// Each, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// The member of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.members.get(name)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The same list for another source, whose first answer is believed even if it names none of these
    /// members.
    #[must_use]
    pub fn superseded(&self) -> Self {
        Self {
            superseded: true,
            ..self.clone()
        }
    }

    /// The list when nothing but time has passed.
    #[must_use]
    pub fn pass(&self, now: Duration) -> Self {
        let mut next = self.clone();
        next.expire(now);
        next
    }

    /// When to look again.
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

/// The time between two members that leave because of doubted answers, and until the source is asked again.
pub const STEP: Duration = Duration::from_secs(5);
