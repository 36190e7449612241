//! Explains which backend a request would get, and why the others would not.

use catamaran_admin_api::{AffinityStep, MemberShare, SessionAffinity};
use catamaran_balance::affinity::{IDS_MAX, Outcome, Step};
use catamaran_message::RequestHead;

use super::text;
use super::tunnel::TunnelRefusals;
use crate::config::{Activation, Policy};
use crate::site::foresight::Foresight;
use crate::site::rules::Rules;
use crate::site::{Member, Upstream};

/// A session id: the place where it was found, in words, and its value.
pub(super) type Id = (String, String);

/// Lists the session ids of a request, in the order in which they are read.
pub(super) fn ids(upstream: &Upstream, head: &RequestHead) -> Vec<Id> {
    let ids = upstream.sticky.iter().flat_map(|sticky| sticky.ids(head));
    ids.map(|(kind, name, value)| (format!("{kind} {name}"), text(value)))
        .collect()
}

/// Lists the steps by which sessions decide the backend, and the outcome; `None`: sessions are not kept.
pub(super) fn affinity(
    upstream: &Upstream,
    ids: &[Id],
    foresight: &Foresight<'_>,
) -> Option<SessionAffinity> {
    let decision = foresight.decision.as_ref()?;
    let own_cookie = upstream.sticky.as_ref()?.own_cookie.as_ref();
    let mut ids_read = ids.iter();
    let mut steps: Vec<AffinityStep> = Vec::new();
    for &step in &foresight.steps {
        let id = match step {
            // The front's own cookie is read after all ids.
            Step::OwnKept(_) | Step::OwnLost(_) | Step::OwnUnknown => None,
            _ => ids_read.next(),
        };
        let (member, text) = words(upstream, step);
        steps.push(AffinityStep {
            source: match id {
                Some((source, _)) => source.clone(),
                None => format!("cookie {}", own_cookie.map_or("", |cookie| &cookie.name)),
            },
            value: id.map(|(_, value)| value.clone()),
            backend: member.map(|member| upstream.members[member].name().to_owned()),
            text,
        });
    }
    if steps.len() >= IDS_MAX && ids.len() > IDS_MAX {
        steps.push(AffinityStep {
            source: "more".to_owned(),
            value: None,
            backend: None,
            text: format!("only the first {IDS_MAX} are read"),
        });
    }
    let outcome = decision.as_ref().map_or("held", |it| it.outcome.token());
    Some(SessionAffinity {
        outcome: outcome.to_owned(),
        steps,
    })
}

/// Returns the backend that a step of the session lookup led to (`None`: no backend) and a sentence
/// about the step.
fn words(upstream: &Upstream, step: Step) -> (Option<usize>, String) {
    let name = |member: usize| upstream.members[member].name();
    let names = |named: Option<usize>| match named {
        Some(member) => {
            let why = why_unusable(upstream, member);
            format!("names {}, which {why}", name(member))
        }
        None => "names no backend".to_owned(),
    };
    match step {
        Step::NoRoute => (None, "has no route: is jvmRoute set?".to_owned()),
        Step::Kept(to) => (Some(to), format!("names {}: kept", name(to))),
        Step::Held(member) => {
            let text = format!("{}; `force` keeps it from others", names(Some(member)));
            (None, text)
        }
        Step::Moved {
            named,
            to,
            by_domain,
        } => {
            let why = if by_domain {
                "of its domain"
            } else {
                "its fallback"
            };
            let text = format!("{}: moved to {}, {why}", names(named), name(to));
            (Some(to), text)
        }
        Step::Lost(named) => {
            let text = format!("{}, and nobody may have a copy", names(named));
            (None, text)
        }
        Step::OwnKept(to) => (Some(to), format!("names {}: kept", name(to))),
        Step::OwnLost(member) => (None, names(Some(member))),
        Step::OwnUnknown => (None, names(None)),
    }
}

/// Says why a member is not used for sessions that belong to it.
fn why_unusable(upstream: &Upstream, member: usize) -> &'static str {
    let Member {
        backend, controls, ..
    } = &upstream.members[member];
    match controls.activation {
        Activation::Stopped => "is stopped",
        _ if backend.share() == 0 => "is out",
        Activation::Drain => "drains, and serves sessions only",
        Activation::Active => "the route leaves out",
    }
}

/// Lists every member of an upstream with the percentage of such requests that it would get, or why
/// it gets none.
pub(super) fn members(
    upstream: &Upstream,
    rules: Option<&Rules>,
    foresight: &Foresight<'_>,
    refusals: &TunnelRefusals,
) -> Vec<MemberShare> {
    let total: u64 = foresight.members.iter().map(|(_, weight)| weight).sum();
    let mut shares = Vec::with_capacity(upstream.members.len());
    for (index, member) in upstream.members.iter().enumerate() {
        let mut chosen = foresight.members.iter();
        let (weight, why_not) = match chosen.find(|(chosen, _)| *chosen == index) {
            Some((_, weight)) if !refusals.refuse(index) => (*weight, None),
            _ => match refusals.why(index) {
                Some(why) => (0, Some(why.to_owned())),
                None => (0, Some(why_not(upstream, rules, index, foresight))),
            },
        };
        shares.push(MemberShare {
            backend: member.name().to_owned(),
            share: percent(weight, total),
            why_not,
        });
    }
    shares
}

/// The part of `total` that `weight` is, in percent, rounded to one decimal.
fn percent(weight: u64, total: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a part in 2^52 is no matter")]
    let share = weight as f64 * 1000.0 / total.max(1) as f64;
    share.round() / 10.0
}

/// Says why a member gets no such requests.
fn why_not(
    upstream: &Upstream,
    rules: Option<&Rules>,
    index: usize,
    foresight: &Foresight<'_>,
) -> String {
    let Member {
        backend, controls, ..
    } = &upstream.members[index];
    let is_among = |members: fn(&Rules) -> &[usize]| {
        rules.is_some_and(|rules| members(rules).contains(&index))
    };
    if is_among(Rules::stopped) {
        return "stopped on this route".to_owned();
    }
    if backend.share() == 0 {
        return "out".to_owned();
    }
    match controls.activation {
        Activation::Active if is_among(Rules::drained) => return "drains on this route".to_owned(),
        Activation::Active => {}
        activation => return format!("activation {}", activation.token()),
    }
    let distance = |(member, _): &(usize, u64)| upstream.members[*member].controls.distance;
    let nearest = foresight.members.iter().map(distance).min();
    if by_session(foresight) {
        "the session leads elsewhere".to_owned()
    } else if backend.is_suspect() {
        "suspect: others are preferred".to_owned()
    } else if nearest.is_some_and(|nearest| nearest < controls.distance) {
        format!("distance {}: only if no nearer one can", controls.distance)
    } else if foresight.by_key {
        "the key leads elsewhere".to_owned()
    } else if upstream.config().policy == Policy::LeastInFlight {
        "it has more requests in flight for its weight".to_owned()
    } else {
        "others are preferred".to_owned()
    }
}

/// Whether the request's session decides, for a member or against all.
fn by_session(foresight: &Foresight<'_>) -> bool {
    match &foresight.decision {
        Some(Ok(decision)) => decision.member.is_some(),
        Some(Err(_)) => true,
        None => false,
    }
}

/// What decides which member gets the request, or which members may, in one word.
pub(super) fn by(upstream: &Upstream, foresight: &Foresight<'_>) -> &'static str {
    if foresight.members.is_empty() {
        return "nobody";
    }
    match &foresight.decision {
        Some(Ok(decision)) if decision.member.is_some() => match decision.outcome {
            Outcome::Kept if decision.route.is_some() => "session",
            Outcome::Kept => "own-cookie",
            _ if decision.by_domain => "domain",
            _ => "fallback",
        },
        _ if upstream.members.len() == 1 => "only",
        _ if foresight.by_key => "hash",
        _ => "policy",
    }
}

/// Turns the word of [`by`] into a phrase about the only member that may get the request.
pub(super) fn why(by: &str) -> &'static str {
    match by {
        "session" => "its session is there",
        "own-cookie" => "the front's own cookie leads there",
        "domain" => "of the session's domain",
        "fallback" => "the fallback of its session's backend",
        "only" => "there is no other",
        "hash" => "its key leads there",
        _ => "no other may get it now",
    }
}
