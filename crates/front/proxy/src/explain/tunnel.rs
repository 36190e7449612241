//! Foresees which backend a tunnel would reach, as the exchange tries one after the other.

use crate::site::foresight::Foresight;
use crate::site::{Facts, Upstream};

/// Backends that may be picked for a tunnel and refuse it, because they have no `upgrade_url`.
#[derive(Debug, Default)]
pub(super) struct TunnelRefusals {
    /// Members that refuse the tunnel, after which the exchange tries another member.
    elsewhere: Vec<usize>,
    /// Members that refuse the tunnel, after which the exchange tries no other: the client gets 501.
    last: Vec<usize>,
    /// Whether the client may get 501 although some backend takes tunnels.
    pub(super) may_end: bool,
}

impl TunnelRefusals {
    /// Whether the member refuses the tunnel.
    pub(super) fn refuse(&self, member: usize) -> bool {
        self.elsewhere.contains(&member) || self.last.contains(&member)
    }

    /// Why the member does not get the tunnel, if it refuses it.
    pub(super) fn why(&self, member: usize) -> Option<&'static str> {
        if self.last.contains(&member) {
            return Some("no `upgrade_url`: 501");
        }
        let is_passed = self.elsewhere.contains(&member);
        is_passed.then_some("no `upgrade_url`: the tunnel is tried elsewhere")
    }
}

/// Follows a tunnel from `first`, the members that the request would get first. As in the exchange,
/// each backend without `upgrade_url` uses up one of the attempts that `retries` allows.
pub(super) fn foresee<'r>(
    upstream: &'r Upstream,
    facts: Facts<'r>,
    stopped: &[usize],
    first: Foresight<'r>,
    retries: u32,
) -> (Foresight<'r>, TunnelRefusals) {
    let mut foresight = first;
    let mut refusals = TunnelRefusals::default();
    let mut left_out = stopped.to_vec();
    let mut attempts_left = retries;
    loop {
        let members = foresight.members.iter().map(|(member, _)| *member);
        let refusing: Vec<usize> = members
            .filter(|member| !upstream.members[*member].settings.takes_tunnels())
            .collect();
        let is_held = matches!(&foresight.decision, Some(Ok(decision)) if decision.held);
        left_out.extend_from_slice(&refusing);
        let has_others = !is_held && upstream.has_others(&left_out);
        if refusing.is_empty() || attempts_left == 0 || !has_others {
            refusals.may_end |= !refusing.is_empty();
            refusals.last = refusing;
            return (foresight, refusals);
        }
        // Each of them may be picked before one that takes it.
        let count = u32::try_from(refusing.len()).unwrap_or(u32::MAX);
        refusals.may_end |= count > attempts_left;
        attempts_left = attempts_left.saturating_sub(count);
        refusals.elsewhere.extend(refusing);
        foresight = upstream.foresee(facts, &left_out);
    }
}

/// The sentence for a tunnel that no backend takes.
pub(super) const WHY_REFUSED: &str =
    "a tunnel is asked for, and the backend speaks AJP and has no `upgrade_url`";

/// The end of the sentence for a tunnel that only some backends take.
pub(super) const MAY_END: &str =
    "; or 501, because others have no `upgrade_url` and use up the `retries`";
