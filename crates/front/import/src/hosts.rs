//! Splits virtual hosts whose rules have conditions on the host: each part has the hosts that these rules treat
//! alike.
//!
//! The front chooses the host before the path, so a rule with such a condition becomes a rule of other hosts. A test
//! of a part of a host name can be decided for hosts that the source names, but not for all others. For those,
//! redirects are left out, and other rules are closed.

use std::collections::BTreeMap;

use crate::condition::{CAPTURED, HostClass, Scheme, When};
use crate::ledger::Ledger;
use crate::plan::{Action, Model, Plan, Rule, VirtualHost};

/// Splits virtual hosts until no rule of the plan has a condition on the host.
pub(crate) fn resolve(plan: &mut Plan, ledger: &mut Ledger) {
    let asks = |host: &VirtualHost| host.rules.iter().any(|it| it.when.is_some());
    if !plan.hosts.iter().any(asks) {
        return;
    }
    let further = further_names(plan);
    let hosts = std::mem::take(&mut plan.hosts);
    for (host, further) in hosts.into_iter().zip(further) {
        if !asks(&host) {
            plan.hosts.push(host);
            continue;
        }
        let secure: Vec<bool> = host
            .listeners
            .iter()
            .filter_map(|&it| Some(plan.listeners.get(it)?.tls.is_some()))
            .collect();
        let schemes = Schemes {
            http: secure.contains(&false),
            https: secure.contains(&true),
        };
        plan.hosts.extend(parts(&host, further, schemes, ledger));
    }
}

/// For each virtual host of the plan: host names that its conditions test and that are not among its own names,
/// with the listeners on which it serves them.
fn further_names(plan: &Plan) -> Vec<BTreeMap<String, Vec<usize>>> {
    let model = Model::new(plan);
    let of_host = |(at, host): (usize, &VirtualHost)| {
        let conditions = host.rules.iter().filter_map(|it| it.when.as_ref());
        let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for name in conditions.flat_map(|it| it.condition.names()) {
            if found.contains_key(name) || host.names.iter().any(|it| it == name) {
                continue;
            }
            let serves = |it: &usize| model.host(*it, name) == Some(at);
            let on: Vec<usize> = host.listeners.iter().copied().filter(serves).collect();
            if !on.is_empty() {
                found.insert(name.to_owned(), on);
            }
        }
        found
    };
    plan.hosts.iter().enumerate().map(of_host).collect()
}

/// The schemes of a virtual host's listeners.
#[derive(Clone, Copy, Debug)]
struct Schemes {
    http: bool,
    https: bool,
}

/// Whether the condition of a rule holds for a class of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// The condition holds for none of their requests.
    Never,
    /// The condition holds for requests by the scheme `only` (`None`: by either). `rest` is the part of the host that
    /// a redirect puts into its target.
    Holds {
        only: Option<Scheme>,
        rest: Option<String>,
    },
    /// The importer cannot tell whether the condition holds.
    Unsaid,
}

/// The names of a virtual host that all rules treat alike.
struct Part {
    verdicts: Vec<Verdict>,
    host: VirtualHost,
}

/// The parts of a virtual host: one for each set of its hosts, and of the hosts that it serves as the default, that
/// the conditions of its rules treat alike.
fn parts(
    host: &VirtualHost,
    further: BTreeMap<String, Vec<usize>>,
    schemes: Schemes,
    ledger: &mut Ledger,
) -> Vec<VirtualHost> {
    let mut parts: Vec<Part> = Vec::new();
    let own = host
        .names
        .iter()
        .map(|it| (it.clone(), host.listeners.clone()));
    for (name, listeners) in own.chain(further) {
        let class = match name.strip_prefix('*') {
            Some(end) => HostClass::Below(end),
            None => HostClass::Name(&name),
        };
        let part = part(&mut parts, verdicts(host, class, schemes), &listeners);
        part.names.push(name);
    }
    if !host.default_on.is_empty() {
        let verdicts = verdicts(host, HostClass::Other, schemes);
        let part = part(&mut parts, verdicts, &host.default_on);
        part.default_on.clone_from(&host.default_on);
    }
    let finished = |part: Part| VirtualHost {
        place: host.place.clone(),
        rules: rules(&host.rules, part.verdicts, ledger),
        ..part.host
    };
    parts.into_iter().map(finished).collect()
}

/// The part whose verdicts on these listeners are the given ones; a new one if there is none.
fn part<'p>(
    parts: &'p mut Vec<Part>,
    verdicts: Vec<Verdict>,
    listeners: &[usize],
) -> &'p mut VirtualHost {
    let is_it = |it: &Part| it.verdicts == verdicts && it.host.listeners == listeners;
    let at = parts.iter().position(is_it).unwrap_or(parts.len());
    if at == parts.len() {
        let host = VirtualHost {
            listeners: listeners.to_vec(),
            ..VirtualHost::default()
        };
        parts.push(Part { verdicts, host });
    }
    &mut parts[at].host
}

/// For each rule with a condition, whether it holds for a class of hosts.
fn verdicts(host: &VirtualHost, class: HostClass<'_>, schemes: Schemes) -> Vec<Verdict> {
    let conditional = host
        .rules
        .iter()
        .filter_map(|it| Some((it, it.when.as_ref()?)));
    conditional
        .map(|(rule, when)| verdict(rule, when, class, schemes))
        .collect()
}

/// Whether the condition of one rule holds for a class of hosts.
fn verdict(rule: &Rule, when: &When, class: HostClass<'_>, schemes: Schemes) -> Verdict {
    let holds = |scheme: Scheme| when.condition.holds(scheme, class);
    let (http, https) = match (schemes.http, schemes.https) {
        (true, false) => (holds(Scheme::Http), holds(Scheme::Http)),
        (false, true) => (holds(Scheme::Https), holds(Scheme::Https)),
        _ => (holds(Scheme::Http), holds(Scheme::Https)),
    };
    let only = match (rule.scheme, http, https) {
        (None, Some(true), Some(true)) => None,
        (None | Some(Scheme::Http), Some(true), Some(false))
        | (Some(Scheme::Http), Some(true), _) => Some(Scheme::Http),
        (None | Some(Scheme::Https), Some(false), Some(true))
        | (Some(Scheme::Https), _, Some(true)) => Some(Scheme::Https),
        (None, Some(false), Some(false))
        | (Some(Scheme::Http), Some(false), _)
        | (Some(Scheme::Https), _, Some(false)) => return Verdict::Never,
        _ => return Verdict::Unsaid,
    };
    let rest = match (&when.capture, class) {
        (None, _) => None,
        (Some(start), HostClass::Name(name)) => match name.strip_prefix(start.as_str()) {
            Some(rest) if !rest.is_empty() => Some(rest.to_owned()),
            _ => return Verdict::Unsaid,
        },
        _ => return Verdict::Unsaid,
    };
    Verdict::Holds { only, rest }
}

/// The rules for hosts with these verdicts: rules that never hold are left out, undecided ones are closed.
fn rules(all: &[Rule], verdicts: Vec<Verdict>, ledger: &mut Ledger) -> Vec<Rule> {
    let mut verdicts = verdicts.into_iter();
    let mut found = Vec::with_capacity(all.len());
    for rule in all {
        let Some(when) = &rule.when else {
            found.push(rule.clone());
            continue;
        };
        let mut resolved = Rule {
            when: None,
            ..rule.clone()
        };
        match verdicts.next().unwrap_or(Verdict::Unsaid) {
            Verdict::Never => continue,
            Verdict::Holds { only, rest } => {
                resolved.scheme = only;
                if let (Action::Redirect { to, .. }, Some(rest)) = (&mut resolved.action, rest) {
                    *to = to.replace(CAPTURED, &rest);
                }
            }
            // The rules after it are served for hosts to which the condition may apply, and clients choose the host.
            Verdict::Unsaid if is_left_out(&resolved, when) => {
                when.ids
                    .iter()
                    .for_each(|&id| ledger.risk(id, NOT_REDIRECTED));
                continue;
            }
            Verdict::Unsaid => {
                let text = "the importer cannot tell for which hosts it holds";
                when.ids.iter().for_each(|&id| ledger.unmapped(id, text));
                resolved.action = Action::Closed;
            }
        }
        found.push(resolved);
    }
    found
}

/// Whether a rule with an undecided condition is left out instead of closed: it only redirects clients.
fn is_left_out(rule: &Rule, when: &When) -> bool {
    matches!(rule.action, Action::Redirect { .. }) && !when.condition.is_unsaid()
}

const NOT_REDIRECTED: &str = "clients that ask for a host which the source does not name are not redirected: name \
    the hosts that clients use in ServerAlias, or in server_name";

#[cfg(test)]
mod tests;
