//! Session affinity: finds the member that a session id names, and where the session goes when that
//! member is out.
//!
//! A session id ends in a route (Tomcat's `jvmRoute`): `3F2A.a` belongs to the member with the route
//! `a`. [`Affinity::decide`] reads the ids of a request in order until one
//! leads to a member. Ids may be hostile: one that names no member costs a few lookups in a hash map,
//! however long it is, and only the first [`IDS_MAX`] are read.

use std::collections::HashMap;

/// The routes, domains and fallbacks of an upstream's members, built once per configuration.
#[derive(Clone, Debug)]
pub struct Affinity {
    rules: Rules,
    /// The member of each route.
    routes: HashMap<Box<[u8]>, usize>,
    /// The length of the longest route in bytes; a longer text is no route.
    route_max: usize,
    /// The members of each domain, in their order.
    domains: HashMap<Box<[u8]>, Box<[usize]>>,
    homes: Box<[Home]>,
}

/// The rules of session affinity that apply to all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The byte between a session id and its route; `None`: the whole value is the route.
    pub separator: Option<u8>,
    /// Whether a request whose session belongs to a known member is served by that member or by none.
    pub force: bool,
}

/// A member as session affinity sees it: its route, replication group and fallback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// The text at the end of the ids of its sessions, unique among the members.
    pub route: String,
    /// The replication group, whose members all have its sessions; `None`: only this member has them.
    pub domain: Option<String>,
    /// The index of the member that gets its sessions first when it is out; `None`: there is none.
    pub fallback: Option<usize>,
}

/// Answers a decision's questions about the current states of members, each given by its index.
pub trait MemberStates {
    /// Whether the member may get requests of its own sessions.
    fn is_usable(&self, member: usize) -> bool;

    /// Whether the member may get sessions of other members, and is not suspect.
    fn is_eligible(&self, member: usize) -> bool;

    /// Whether the member gets requests of its own sessions only.
    fn is_draining(&self, _member: usize) -> bool {
        false
    }

    /// Picks one of these members by policy, those with the lowest distance first; `None` if none of
    /// them may get sessions of other members.
    fn pick_among(&mut self, members: &[usize]) -> Option<usize>;
}

/// The result of looking up one session id, or the front's own cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The id has no route, so it names no member.
    NoRoute,
    /// The id names this member, which is usable.
    Kept(usize),
    /// The id names this member, which is not usable, and the session must not move.
    Held(usize),
    /// The id names a member that is not usable, or none, and `to` may have a copy of the session.
    Moved {
        /// The member that the id names; `None`: it names none.
        named: Option<usize>,
        /// The member that the session moves to.
        to: usize,
        /// Whether `to` was chosen because it belongs to the session's domain; else it is the
        /// fallback.
        by_domain: bool,
    },
    /// The id names a member that is not usable, or none (`None`), and no other may have a copy.
    Lost(Option<usize>),
    /// The front's own cookie names this member, which is usable.
    OwnKept(usize),
    /// The front's own cookie names this member, which is not usable, or drains while the request has
    /// no session id.
    OwnLost(usize),
    /// The value of the front's own cookie names no member.
    OwnUnknown,
}

/// Receives the steps of a decision; `()` ignores them.
pub trait Trace {
    /// Receives one step: one for each id that was read, in order, then one for the front's own
    /// cookie, up to the step that decided.
    fn step(&mut self, step: Step);
}

impl Trace for () {
    fn step(&mut self, _: Step) {}
}

impl Trace for Vec<Step> {
    fn step(&mut self, step: Step) {
        self.push(step);
    }
}

/// How a request's session affected the choice of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The request goes to the member that its session names.
    Kept,
    /// The member that the session names is out; the request goes to another one.
    Moved,
    /// The session names a route that no member has.
    Unknown,
    /// The request has no session id.
    New,
    /// The session id has no route and was ignored. Usually the `jvmRoute` is not set.
    Ignored,
}

impl Outcome {
    /// All outcomes, in the order of declaration.
    pub const ALL: [Self; 5] = [
        Self::Kept,
        Self::Moved,
        Self::Unknown,
        Self::New,
        Self::Ignored,
    ];

    /// The outcome as a token, for logs and counters.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Moved => "moved",
            Self::Unknown => "unknown",
            Self::New => "new",
            Self::Ignored => "ignored",
        }
    }
}

/// The decision about a request by its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// How the session affected the choice.
    pub outcome: Outcome,
    /// The chosen member; `None`: the policy chooses.
    pub member: Option<usize>,
    /// The session id, as received, that led to the member that it names; `None`: none did.
    pub id: Option<&'a [u8]>,
    /// The route of the session id that decided, as received: the text after the separator.
    pub route: Option<&'a [u8]>,
    /// Whether the member was chosen because it belongs to the session's domain.
    pub by_domain: bool,
    /// Whether the request must not be served by another member ([`Rules::force`]).
    pub held: bool,
    /// Whether there were more ids than are read, and none of those read led to a member.
    pub excess: bool,
}

/// The error that a session belongs to a member that is out, and must not move ([`Rules::force`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendOut<'a> {
    /// The route of the session id that names the member, as received.
    pub route: &'a [u8],
}

impl Affinity {
    /// Builds the affinity of members in this order. A fallback that is no member's index is dropped;
    /// of two equal routes the first counts.
    #[must_use]
    pub fn new(rules: Rules, homes: impl IntoIterator<Item = Home>) -> Self {
        let mut homes: Box<[Home]> = homes.into_iter().collect();
        let count = homes.len();
        let mut routes: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut domains: HashMap<&str, Vec<usize>> = HashMap::new();
        for (member, home) in homes.iter().enumerate() {
            routes.entry(home.route.as_bytes().into()).or_insert(member);
            if let Some(domain) = &home.domain {
                domains.entry(domain).or_default().push(member);
            }
        }
        let domains = domains
            .into_iter()
            .map(|(domain, members)| (domain.as_bytes().into(), members.into()))
            .collect();
        for home in &mut homes {
            home.fallback = home.fallback.filter(|&member| member < count);
        }
        Self {
            rules,
            route_max: routes.keys().map(|route| route.len()).max().unwrap_or(0),
            routes,
            domains,
            homes,
        }
    }

    /// Decides by the first [`IDS_MAX`] session ids of `ids`, in their order, then by `own`: the
    /// member that the front's own cookie names, `Some(None)` if its value names no member, `None` if
    /// there is no such cookie.
    ///
    /// # Errors
    /// The member that an id names is out, and sessions must not move.
    pub fn decide<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a [u8]>,
        own: Option<Option<usize>>,
        states: &mut impl MemberStates,
    ) -> Result<Decision<'a>, BackendOut<'a>> {
        self.decide_traced(ids, own, states, &mut ())
    }

    /// Decides as [`Self::decide`] does, and reports each step to `trace`.
    ///
    /// # Errors
    /// The errors of [`Self::decide`].
    pub fn decide_traced<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a [u8]>,
        own: Option<Option<usize>>,
        states: &mut impl MemberStates,
        trace: &mut impl Trace,
    ) -> Result<Decision<'a>, BackendOut<'a>> {
        let mut so_far = Decision::new(Outcome::New);
        let mut has_id = false;
        for (count, id) in ids.into_iter().enumerate() {
            if count == IDS_MAX {
                so_far.excess = true;
                break;
            }
            has_id = true;
            if let Some(decision) = self.decide_by_id(id, &mut so_far, states, trace) {
                return decision;
            }
        }
        Ok(match own {
            Some(own) => self.decide_by_own_cookie(own, has_id, so_far, states, trace),
            None => so_far,
        })
    }

    /// Decides by one session id. `None`: the id leads to no member; `so_far` has the reason.
    fn decide_by_id<'a>(
        &self,
        id: &'a [u8],
        so_far: &mut Decision<'a>,
        states: &mut impl MemberStates,
        trace: &mut impl Trace,
    ) -> Option<Result<Decision<'a>, BackendOut<'a>>> {
        let Some(route) = self.route_of(id) else {
            so_far.note(Outcome::Ignored, None);
            trace.step(Step::NoRoute);
            return None;
        };
        if let Some(member) = self.first_member(route, |member| states.is_usable(member)) {
            trace.step(Step::Kept(member));
            return Some(Ok(Decision {
                id: Some(id),
                ..self.kept(member, Some(route))
            }));
        }
        let named = self.first_member(route, |_| true);
        if self.rules.force
            && let Some(member) = named
        {
            trace.step(Step::Held(member));
            return Some(Err(BackendOut { route }));
        }
        if let Some((to, by_domain)) = self.successor(route, named, states) {
            trace.step(Step::Moved {
                named,
                to,
                by_domain,
            });
            return Some(Ok(Decision {
                member: Some(to),
                route: Some(route),
                by_domain,
                ..Decision::new(Outcome::Moved)
            }));
        }
        let outcome = match named {
            Some(_) => Outcome::Moved,
            None => Outcome::Unknown,
        };
        so_far.note(outcome, Some(route));
        trace.step(Step::Lost(named));
        None
    }

    /// Decides by the front's own cookie, after no session id led to a member. `own` is the member that the cookie
    /// names, and `so_far` the decision so far.
    ///
    /// A member that drains keeps sessions only. Without a session id the cookie is not enough, because such a client
    /// would come back for ever.
    fn decide_by_own_cookie<'a>(
        &self,
        own: Option<usize>,
        has_id: bool,
        mut so_far: Decision<'a>,
        states: &impl MemberStates,
        trace: &mut impl Trace,
    ) -> Decision<'a> {
        let Some(member) = own else {
            so_far.note(Outcome::Unknown, None);
            trace.step(Step::OwnUnknown);
            return so_far;
        };
        if states.is_usable(member) && (has_id || !states.is_draining(member)) {
            trace.step(Step::OwnKept(member));
            return Decision {
                excess: so_far.excess,
                ..self.kept(member, None)
            };
        }
        so_far.note(Outcome::Moved, None);
        trace.step(Step::OwnLost(member));
        so_far
    }

    /// The decision for a member that the session, or without a `route` the front's own cookie, names.
    fn kept<'a>(&self, member: usize, route: Option<&'a [u8]>) -> Decision<'a> {
        Decision {
            member: Some(member),
            route,
            held: self.rules.force && route.is_some(),
            ..Decision::new(Outcome::Kept)
        }
    }

    /// The route of a session id: the text after the first separator, or the whole id if the rules
    /// have no separator. `None` if the route is empty or missing.
    fn route_of<'a>(&self, id: &'a [u8]) -> Option<&'a [u8]> {
        let route = match self.rules.separator {
            Some(separator) => {
                let separator_index = id.iter().position(|&byte| byte == separator)?;
                &id[separator_index + 1..]
            }
            None => id,
        };
        (!route.is_empty()).then_some(route)
    }

    /// The first member that `route` names and for which `fits` is true. Either the whole text is a
    /// route, or one of its pieces is, as in an id with dots or with several routes (Undertow's ranked ones).
    fn first_member(&self, route: &[u8], fits: impl Fn(usize) -> bool) -> Option<usize> {
        let fitting = |text: &[u8]| {
            // A longer text, which a client may send, is not even hashed.
            if text.len() > self.route_max {
                return None;
            }
            let member = *self.routes.get(text)?;
            fits(member).then_some(member)
        };
        if let Some(member) = fitting(route) {
            return Some(member);
        }
        let separator = self.rules.separator?;
        if !route.contains(&separator) {
            return None;
        }
        let pieces = route.split(|&byte| byte == separator);
        pieces.take(PIECES_MAX).find_map(fitting)
    }

    /// A member that may have a copy of the session: the fallback of the named member, or a member of
    /// its domain; if no member is named, one of the domain that the route begins with. `true`: it was
    /// chosen by the domain.
    fn successor(
        &self,
        route: &[u8],
        named: Option<usize>,
        states: &mut impl MemberStates,
    ) -> Option<(usize, bool)> {
        let home = named.map(|member| &self.homes[member]);
        let fallback = home.and_then(|home| home.fallback);
        if let Some(member) = fallback
            && states.is_eligible(member)
        {
            return Some((member, false));
        }
        let domain = match home {
            Some(home) => home.domain.as_ref().map(String::as_bytes),
            None => route
                .split(|byte| Some(*byte) == self.rules.separator)
                .next(),
        };
        let members = domain.and_then(|domain| self.domains.get(domain));
        if let Some(member) = members.and_then(|members| states.pick_among(members)) {
            return Some((member, true));
        }
        // Last, a fallback that others would be preferred to.
        let member = states.pick_among(&[fallback?])?;
        Some((member, false))
    }
}

impl<'a> Decision<'a> {
    fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            member: None,
            id: None,
            route: None,
            by_domain: false,
            held: false,
            excess: false,
        }
    }

    /// Records an id that leads to no member. The most informative one is kept: one that names a
    /// member, then one with a route, then any.
    fn note(&mut self, outcome: Outcome, route: Option<&'a [u8]>) {
        let rank = |outcome| match outcome {
            Outcome::New => 0,
            Outcome::Ignored => 1,
            Outcome::Unknown => 2,
            Outcome::Moved | Outcome::Kept => 3,
        };
        if rank(outcome) > rank(self.outcome) {
            (self.outcome, self.route) = (outcome, route);
        }
    }
}

/// The most session ids of one request that are read.
pub const IDS_MAX: usize = 8;

/// The most pieces of a route that are looked up, which is more than any server ranks.
const PIECES_MAX: usize = 16;

#[cfg(test)]
mod tests;
