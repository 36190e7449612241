//! The rules by which members join and leave: they make the next list of the last list and an answer.
//!
//! - An error, or an answer without any member, keeps the list.
//! - A member that an answer lacks drains for [`Rules::leave`] and is then removed. If it is named again before, it
//!   serves as before.
//! - If an answer lacks more than half of the members, they leave one by one, each confirmed by a further
//!   answer: an answer that was cut short must not empty an upstream. A member that itself said that it leaves
//!   is removed at once.
//! - A list that is known to be whole is believed, even without any member: who is not in it is removed at once.
//! - Loopback, link-local, the front's own addresses and those of the server that was asked are refused, unless the
//!   source is trusted.
//! - A member is identified by its name. At another address it is the same member, but another backend.
//!
//! Pure: the time is an argument, counted from any moment. The order of an answer's members does not matter.

#[cfg(test)]
mod properties;
pub mod record;

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, SocketAddr};
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
    /// All members that there are: the source knows that the list is whole.
    Whole {
        /// The members, in any order.
        found: Vec<FoundMember>,
        /// The addresses of the server that was asked, which no member may have.
        asked: Vec<SocketAddr>,
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
    /// When a doubted member last left, the doubts began, or a further answer was due and was of no use; `None`: no
    /// member is doubted.
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
    /// The API server that was asked for members listens at the address.
    ApiServer,
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
            Self::ApiServer => "api-server",
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
            Self::ApiServer => "the API server listens there, which is asked for members",
            Self::NameTwice => "another member of the same answer has this name",
            Self::AddressTwice => "another member of the same answer has this address",
            Self::NameTaken => "a [[backend]] of the file has this name",
            Self::TooMany => "there are `members_max` members already",
        }
    }

    /// All refusals, in the order of the metrics page.
    pub const ALL: [Self; 9] = [
        Self::Loopback,
        Self::LinkLocal,
        Self::NoHost,
        Self::Own,
        Self::ApiServer,
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

/// Merges an answer into the last list of members, by the rules at the top of this file. `now` is the time since any
/// fixed moment.
#[must_use]
pub fn merge(last: &Members, answer: &Answer, now: Duration, rules: &Rules<'_>) -> MergeResult {
    let known = || last.members.keys().map(String::as_str);
    let mut left_names: HashSet<&str> = HashSet::new();
    let (named, refused) = match answer {
        Answer::Failed(reason) => return keep_last(last, now, reason.clone(), Vec::new()),
        Answer::Members { found, left } => {
            left_names.extend(left.iter().map(String::as_str));
            admit(last, found, &[], rules)
        }
        Answer::Whole { found, asked } => {
            // Members of another source may still be there.
            if !last.superseded {
                left_names.extend(known());
            }
            admit(last, found, asked, rules)
        }
    };
    // An answer without members is not believed, unless it is whole or a known member said that it leaves.
    let is_believed = match answer {
        Answer::Whole { .. } => !last.is_empty(),
        _ => known().any(|name| left_names.contains(name)),
    };
    if named.is_empty() && !is_believed {
        let reason = match refused.first() {
            Some((name, refusal)) => format!("{name}: {}", refusal.words()),
            None => "the answer has no members".to_owned(),
        };
        return keep_last(last, now, reason, refused);
    }
    let absent = AbsentMembers::new(last, &named, &left_names, now);
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
/// time. Also sets the time from which the next doubted member's turn to leave counts.
fn next_members(
    last: &Members,
    named: &BTreeMap<&str, &FoundMember>,
    absent: &AbsentMembers<'_>,
    now: Duration,
    leave: Duration,
) -> Members {
    let mut next = Members::default();
    for (name, member) in &last.members {
        if named.contains_key(&name[..]) {
            continue;
        }
        let absentee = Member {
            found: member.found.clone(),
            standing: absent.standing(name, member, now, leave),
        };
        next.members.insert(name.clone(), absentee);
    }
    for (name, found) in named {
        let member = Member {
            found: (*found).clone(),
            standing: MemberPresence::Present,
        };
        next.members.insert((*name).to_owned(), member);
    }
    if next.has(MemberPresence::Doubted) {
        // Doubts that are not confirmed are over: those that begin with this answer have their full time.
        let go_on = absent.is_confirmed && absent.step.is_none();
        next.stepped = Some(match last.stepped {
            Some(stepped) if go_on => stepped,
            _ => now,
        });
    }
    next
}

/// The result for an answer that is not used: the last list, without members whose time is over.
fn keep_last(
    last: &Members,
    now: Duration,
    reason: String,
    refused: Vec<(String, Refusal)>,
) -> MergeResult {
    let mut members = last.pass(now);
    if members.deadlines().ask.is_some_and(|ask| ask <= now) {
        // The source was asked in vain, and is not asked again without a pause.
        members.stepped = Some(now);
    }
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
        let mut absent_left = HashSet::new();
        let mut first_doubted = None;
        let mut present_count = 0;
        // Absent members that did not announce it, and that this source has named before.
        let mut unexplained_count = 0;
        for (name, member) in &last.members {
            if member.is_leaving() {
                continue;
            }
            if named.contains_key(&name[..]) {
                present_count += 1;
            } else if left.contains(&name[..]) {
                absent_left.insert(&name[..]);
            } else if !last.superseded {
                unexplained_count += 1;
                if member.standing == MemberPresence::Doubted {
                    first_doubted.get_or_insert(&name[..]);
                }
            }
        }
        let is_confirmed = first_doubted.is_some();
        let is_step_due = last.stepped.is_some_and(|stepped| now >= stepped + STEP);
        Self {
            left: absent_left,
            superseded: last.superseded,
            doubted: is_confirmed || unexplained_count > present_count,
            is_confirmed,
            step: if is_step_due { first_doubted } else { None },
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
        // In the order of certainty: a leave that has begun, the member's own word, then the rules.
        match member.standing {
            MemberPresence::Leaving { .. } => member.standing,
            _ if self.left.contains(name) => MemberPresence::Leaving { until: now },
            _ if self.superseded || self.step == Some(name) => leaves,
            _ if self.doubted => MemberPresence::Doubted,
            _ => leaves,
        }
    }
}

/// Splits an answer into accepted members, by name, and refused ones with the reasons. The server that was asked listens
/// at the addresses `asked`.
fn admit<'f>(
    last: &Members,
    found: &'f [FoundMember],
    asked: &[SocketAddr],
    rules: &Rules<'_>,
) -> (BTreeMap<&'f str, &'f FoundMember>, Vec<(String, Refusal)>) {
    let mut ordered: Vec<&FoundMember> = found.iter().collect();
    // Sorted, so that the same ones are refused whatever the answer's order. Known members come first, so that a new
    // one takes neither their address nor their room.
    ordered.sort_by_cached_key(|found| {
        let is_new = !last.members.contains_key(&found.name);
        (is_new, found.name.clone(), found.place.to_string())
    });
    let mut refused = Vec::new();
    let mut named: BTreeMap<&str, &FoundMember> = BTreeMap::new();
    let mut places = HashSet::new();
    for found in ordered {
        let refusal = if let Some(refusal) = address_refusal(found, asked, rules) {
            refusal
        } else if (rules.is_taken)(&found.name) {
            Refusal::NameTaken
        } else if named.contains_key(&found.name[..]) {
            Refusal::NameTwice
        } else if places.contains(&(&found.place, found.speech)) {
            Refusal::AddressTwice
        } else if named.len() >= rules.members_max {
            Refusal::TooMany
        } else {
            places.insert((&found.place, found.speech));
            named.insert(&found.name, found);
            continue;
        };
        refused.push((found.name.clone(), refusal));
    }
    (named, refused)
}

/// Why a member's address is refused; `None`: it is not. A host name is accepted, and is resolved for
/// connections like that of a configured backend.
fn address_refusal(
    found: &FoundMember,
    asked: &[SocketAddr],
    rules: &Rules<'_>,
) -> Option<Refusal> {
    if rules.is_trusted {
        return None;
    }
    // `None` for a host name, and for a Unix socket.
    let (host, port) = found.place.address()?;
    let ip = host.to_canonical();
    let is_there = |it: &SocketAddr| it.ip().to_canonical() == ip && it.port() == port;
    let (is_link_local, is_broadcast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.is_broadcast()),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), false),
    };
    if ip.is_loopback() {
        Some(Refusal::Loopback)
    } else if is_link_local {
        Some(Refusal::LinkLocal)
    } else if ip.is_unspecified() || ip.is_multicast() || is_broadcast {
        Some(Refusal::NoHost)
    } else if (rules.is_own)(ip, port) {
        Some(Refusal::Own)
    } else if asked.iter().any(is_there) {
        Some(Refusal::ApiServer)
    } else {
        None
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
        let removals = self
            .members
            .values()
            .filter_map(|member| match member.standing {
                MemberPresence::Leaving { until } => Some(until),
                MemberPresence::Present | MemberPresence::Doubted => None,
            });
        let ask = match self.stepped {
            Some(stepped) if self.has(MemberPresence::Doubted) => Some(stepped + STEP),
            _ => None,
        };
        Deadlines {
            gone: removals.min(),
            ask,
        }
    }

    fn has(&self, standing: MemberPresence) -> bool {
        let mut members = self.members.values();
        members.any(|member| member.standing == standing)
    }

    /// Removes the members whose time to drain is over.
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
