//! The members that the attempts of an exchange choose from.

use crate::exchange::attempts::failed::Failed;
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::hold;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::state::Exchange;
use crate::site::hold::LeftOut;
use crate::site::rules::Rules;
use crate::site::sticky::own_cookie::Own;
use crate::site::{Facts, Upstream};

/// The members of the upstream with which the exchange goes on.
pub(super) struct Candidates<'a> {
    pub(super) upstream: &'a Upstream,
    /// The upstream for which the request was made, to whose members the rules and the request refer.
    origin: &'a Upstream,
    rules: Option<&'a Rules>,
    /// The same facts about the members of `upstream`, if it is not `origin`.
    moved: Option<Box<MovedFacts>>,
}

/// Facts that name members by their index in an upstream.
struct MovedFacts {
    stopped: Vec<usize>,
    drained: Vec<usize>,
    own: Own,
}

impl<'a> Candidates<'a> {
    pub(super) fn new(upstream: &'a Upstream, rules: Option<&'a Rules>) -> Self {
        Self {
            upstream,
            origin: upstream,
            rules,
            moved: None,
        }
    }

    /// The members that the route stops.
    pub(super) fn stopped(&self) -> &[usize] {
        self.left_out().stopped
    }

    /// The members that the route leaves out.
    fn left_out(&self) -> LeftOut<'_> {
        match &self.moved {
            None => LeftOut::of(self.rules),
            Some(moved) => LeftOut {
                stopped: &moved.stopped,
                drained: &moved.drained,
            },
        }
    }

    /// The facts from which a member is chosen.
    pub(super) fn facts<'s>(&'s self, outgoing: &'s Outgoing<'_>) -> Facts<'s> {
        let facts = outgoing.facts(self.rules);
        match &self.moved {
            None => facts,
            Some(moved) => Facts {
                own: moved.own,
                drained: &moved.drained,
                ..facts
            },
        }
    }

    /// Whether the request waits for a first member, because none but those in `tried` takes new sessions.
    pub(super) fn are_awaited(&self, tried: &[usize]) -> bool {
        self.upstream.holds(self.left_out(), tried)
    }

    /// Whether the request waits for a first member after this failure. One that breaks connections may be about to be
    /// put out, so it is not asked again at once.
    pub(super) fn are_awaited_after(&self, failed: &Failed, tried: &[usize]) -> bool {
        let not_asked = if failed.disconnected {
            tried
        } else {
            self.stopped()
        };
        self.are_awaited(not_asked)
    }

    /// Waits for a first member, and goes on with the upstream that has it.
    ///
    /// # Errors
    /// There is none in time, or the wait ended for another reason.
    pub(super) async fn wait(
        &mut self,
        exchange: &mut Exchange<'a>,
        down: &mut Downstream<'_>,
        outgoing: &Outgoing<'_>,
    ) -> Result<(), Failure> {
        let next = hold::wait(exchange, self.upstream, self.left_out(), down).await?;
        if std::ptr::eq(next, self.upstream) {
            return Ok(());
        }
        // The wait went on with a later site: its upstream may have the members at other indices.
        let indices_in_next = |members: &[usize]| next.indices_of(self.origin, members);
        let left_out = LeftOut::of(self.rules);
        let own = outgoing.facts(self.rules).own;
        self.moved = Some(Box::new(MovedFacts {
            stopped: indices_in_next(left_out.stopped),
            drained: indices_in_next(left_out.drained),
            own: own.map(|member| indices_in_next(member.as_slice()).first().copied()),
        }));
        self.upstream = next;
        exchange.decided.upstream = Some(next);
        exchange.attempts.is_moved = true;
        Ok(())
    }
}
