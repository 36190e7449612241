//! Where a request would go, without its going there: no turn is taken, nothing is counted.

use catamaran_balance::affinity::{BackendOut, Decision, MemberStates, Step};

use super::{Choice, Facts, Upstream, UpstreamMembers};

/// Where a request would go at this moment.
#[derive(Debug)]
pub(crate) struct Foresight<'r> {
    /// The decision by the session: a member, or that no member may have the request. `None`: sessions are not kept, or
    /// the route ignores them.
    pub(crate) decision: Option<Result<Decision<'r>, BackendOut<'r>>>,
    /// The steps of that decision.
    pub(crate) steps: Vec<Step>,
    /// The members that may get it, each with its weight: how often, in proportion to the others.
    pub(crate) members: Vec<(usize, u64)>,
    /// Whether a part of the request leads to the member (policy `hash`).
    pub(crate) by_key: bool,
}

impl Foresight<'_> {
    /// The choices that may be made; one, if it is certain.
    pub(crate) fn choices(&self) -> impl Iterator<Item = Choice<'_>> {
        // If a session says that nobody may have it, there are no members.
        let decision = match &self.decision {
            Some(Ok(decision)) => Some(*decision),
            Some(Err(_)) | None => None,
        };
        let members = self.members.iter();
        members.map(move |&(member, _)| Choice { member, decision })
    }
}

impl Upstream {
    /// Foresees what [`Upstream::choose`] would choose, without choosing.
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
            Ok(Decision { member: None, .. }) => self.foresee_by_policy(&facts, tried),
            Ok(Decision {
                member: Some(member),
                ..
            }) => {
                let was_picked_among = foreseeing.members.iter().any(|(it, _)| it == member);
                if was_picked_among {
                    foreseeing.members
                } else {
                    vec![(*member, 1)]
                }
            }
        };
        foresight.decision = Some(decision);
        foresight
    }

    /// Foresees what [`Upstream::pick`] would pick.
    fn foresee_by_policy(&self, facts: &Facts<'_>, tried: &[usize]) -> Vec<(usize, u64)> {
        let tried = &*facts.without(tried);
        match &self.members[..] {
            [only] if tried.is_empty() && only.share() > 0 => vec![(0, 1)],
            [_] => Vec::new(),
            members => self.turns.foresee(members, None, tried, self.key(facts)),
        }
    }
}

/// Members as affinity asks about them, where picking takes no turn.
struct ForeseenMembers<'a> {
    asking: UpstreamMembers<'a>,
    /// The members among which the last pick would have been made, with their weights.
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
