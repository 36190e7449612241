//! Foresees which backend a request would get, without choosing one: no schedule advances and nothing is counted.

use catamaran_balance::affinity::{BackendOut, Decision, MemberStates, Step};

use super::{Choice, Facts, Upstream, UpstreamMembers};

/// The members that a request could get at this moment, and how they would be chosen.
#[derive(Debug)]
pub(crate) struct Foresight<'r> {
    /// The decision by the session: a member, or (`Err`) that no member may get the request. `None`: sessions are not
    /// kept, or the route ignores them.
    pub(crate) decision: Option<Result<Decision<'r>, BackendOut<'r>>>,
    /// The steps of the decision by the session.
    pub(crate) steps: Vec<Step>,
    /// The members that may get the request, each with its weight: its chance in proportion to the others'.
    pub(crate) members: Vec<(usize, u64)>,
    /// Whether a part of the request decides the member (policy `hash`).
    pub(crate) by_key: bool,
}

impl Foresight<'_> {
    /// The possible choices; one, if the member is certain.
    pub(crate) fn choices(&self) -> impl Iterator<Item = Choice<'_>> {
        // `Err`: no member may get the request, so `members` is empty.
        let decision = match &self.decision {
            Some(Ok(decision)) => Some(*decision),
            Some(Err(_)) | None => None,
        };
        let members = self.members.iter();
        members.map(move |&(member, _)| Choice { member, decision })
    }
}

impl Upstream {
    /// Foresees which members [`Upstream::choose`] would choose, without choosing.
    pub(crate) fn foresee<'r>(&'r self, facts: Facts<'r>, tried: &[usize]) -> Foresight<'r> {
        let by_key = self.key(&facts).is_some();
        let mut foresight = Foresight {
            decision: None,
            steps: Vec::new(),
            members: Vec::new(),
            by_key,
        };
        let Some(sticky) = self.sticky.as_ref().filter(|_| !facts.unsticky) else {
            foresight.members = self.foresee_by_policy(&facts, tried);
            return foresight;
        };
        let mut foreseeing = ForeseenMembers {
            asking: UpstreamMembers {
                upstream: self,
                worker: 0,
                facts,
                tried,
            },
            members: Vec::new(),
        };
        let steps = &mut foresight.steps;
        let decision = sticky.decide(facts.head, facts.own, &mut foreseeing, steps);
        foresight.members = match &decision {
            Err(_) => Vec::new(),
            Ok(decision) => match decision.member {
                None => self.foresee_by_policy(&facts, tried),
                // The member is only the first of those that the policy may pick for the session.
                Some(member) if foreseeing.members.iter().any(|(it, _)| *it == member) => {
                    foreseeing.members
                }
                Some(member) => vec![(member, 1)],
            },
        };
        foresight.decision = Some(decision);
        foresight
    }

    /// Foresees which members [`Upstream::pick`] would pick.
    fn foresee_by_policy(&self, facts: &Facts<'_>, tried: &[usize]) -> Vec<(usize, u64)> {
        let excluded = &*facts.without(tried);
        match &self.members[..] {
            [only] if excluded.is_empty() && only.share() > 0 => vec![(0, 1)],
            [_] => Vec::new(),
            members => self.turns.foresee(members, None, excluded, self.key(facts)),
        }
    }
}

/// Answers questions of affinity about members as [`UpstreamMembers`] does, but records a pick instead of making it.
struct ForeseenMembers<'a> {
    asking: UpstreamMembers<'a>,
    /// The members of which the last pick would have taken one, with their weights.
    members: Vec<(usize, u64)>,
}

impl MemberStates for ForeseenMembers<'_> {
    fn is_usable(&self, member: usize) -> bool {
        self.asking.is_usable(member)
    }

    fn is_eligible(&self, member: usize) -> bool {
        self.asking.is_eligible(member)
    }

    fn is_draining(&self, member: usize) -> bool {
        self.asking.is_draining(member)
    }

    fn pick_among(&mut self, members: &[usize]) -> Option<usize> {
        let UpstreamMembers {
            upstream,
            facts,
            tried,
            ..
        } = &self.asking;
        let key = upstream.key(facts);
        let (turns, without) = (&upstream.turns, facts.without(tried));
        self.members = turns.foresee(&upstream.members, Some(members), &without, key);
        Some(self.members.first()?.0)
    }
}
