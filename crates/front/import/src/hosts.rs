//! Splits virtual hosts whose rules have conditions on the host: each part has the hosts that these rules treat
//! alike.
//!
//! The front chooses the host before the path, so a rule with such a condition becomes a rule of other hosts. A test
//! of a part of a host name can be decided for hosts that the source names, but not for all others. For those the
//! rule is closed, or holds for all of them if it redirects to a host that is named.

use std::collections::BTreeMap;

use catamaran_config::is_route_host;

use crate::condition::{CAPTURED, HostClass, Scheme, When};
use crate::ledger::Ledger;
use crate::plan::{Action, Model, Plan, Rule, Schemes, UNKNOWN_HOST, VirtualHost};

/// Splits virtual hosts until no rule of the plan has a condition on the host.
pub(crate) fn resolve(plan: &mut Plan, ledger: &mut Ledger) {
    let asks = |host: &VirtualHost| host.rules.iter().any(|it| it.when.is_some());
    if !plan.hosts.iter().any(asks) {
        return;
    }
    let further_names = further_names(plan);
    let hosts = std::mem::take(&mut plan.hosts);
    for (host, further) in hosts.into_iter().zip(further_names) {
        if !asks(&host) {
            plan.hosts.push(host);
            continue;
        }
        let schemes = Schemes::of_listeners(plan, &host);
        plan.hosts.extend(parts(&host, further, schemes, ledger));
    }
}

/// For each virtual host of the plan: host names that its conditions test, or that rules with a condition redirect to,
/// and that are not among its own names, with the listeners on which it serves them.
fn further_names(plan: &Plan) -> Vec<BTreeMap<String, Vec<usize>>> {
    let model = Model::new(plan);
    let mut of_hosts = Vec::with_capacity(plan.hosts.len());
    for (index, host) in plan.hosts.iter().enumerate() {
        let names = host.rules.iter().filter_map(|rule| {
            let when = rule.when.as_ref()?;
            Some(
                when.condition
                    .names()
                    .into_iter()
                    .chain(redirected_to(rule)),
            )
        });
        let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for name in names.flatten() {
            if found.contains_key(name) || host.names.iter().any(|own| own == name) {
                continue;
            }
            let mut listeners = host.listeners.clone();
            listeners.retain(|&listener| model.host(listener, name) == Some(index));
            if !listeners.is_empty() {
                found.insert(name.to_owned(), listeners);
            }
        }
        of_hosts.push(found);
    }
    of_hosts
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
    /// Whether the conditions hold, in the order of the rules that have one.
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
    let own_names = host
        .names
        .iter()
        .map(|name| (name.clone(), host.listeners.clone()));
    for (name, listeners) in own_names.chain(further) {
        let class = match name.strip_prefix('*') {
            Some(end) => HostClass::Below(end),
            None => HostClass::Name(&name),
        };
        let part_host = host_of_part(&mut parts, verdicts(host, class, schemes), &listeners);
        part_host.names.push(name);
    }
    if !host.default_on.is_empty() {
        let verdicts = verdicts(host, HostClass::Other, schemes);
        let part_host = host_of_part(&mut parts, verdicts, &host.default_on);
        part_host.default_on.clone_from(&host.default_on);
    }
    let finished = |part: Part| VirtualHost {
        place: host.place.clone(),
        rules: rules(&host.rules, part.verdicts, schemes, ledger),
        ..part.host
    };
    parts.into_iter().map(finished).collect()
}

/// The virtual host of the part with these verdicts and listeners; adds a part if there is none.
fn host_of_part<'p>(
    parts: &'p mut Vec<Part>,
    verdicts: Vec<Verdict>,
    listeners: &[usize],
) -> &'p mut VirtualHost {
    let is_same = |part: &Part| part.verdicts == verdicts && part.host.listeners == listeners;
    let index = parts.iter().position(is_same).unwrap_or(parts.len());
    if index == parts.len() {
        let host = VirtualHost {
            listeners: listeners.to_vec(),
            ..VirtualHost::default()
        };
        parts.push(Part { verdicts, host });
    }
    &mut parts[index].host
}

/// For each rule with a condition, whether it holds for a class of hosts.
fn verdicts(host: &VirtualHost, class: HostClass<'_>, schemes: Schemes) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for rule in &host.rules {
        if let Some(when) = &rule.when {
            verdicts.push(verdict(rule, when, class, schemes));
        }
    }
    verdicts
}

/// Whether the condition of one rule holds for a class of hosts.
fn verdict(rule: &Rule, when: &When, class: HostClass<'_>, schemes: Schemes) -> Verdict {
    let holds = |scheme: Scheme| when.condition.holds(scheme, class);
    // If all clients come by one scheme, it is asked for both: then the rule needs no scheme.
    let (asked_for_http, asked_for_https) = match (schemes.http, schemes.https) {
        (true, false) => (Scheme::Http, Scheme::Http),
        (false, true) => (Scheme::Https, Scheme::Https),
        (true, true) | (false, false) => (Scheme::Http, Scheme::Https),
    };
    let (http, https) = match rule.scheme {
        None => (holds(asked_for_http), holds(asked_for_https)),
        Some(Scheme::Http) => (holds(asked_for_http), Some(false)),
        Some(Scheme::Https) => (Some(false), holds(asked_for_https)),
    };
    let only = match (http, https) {
        (Some(true), Some(true)) => None,
        (Some(true), Some(false)) => Some(Scheme::Http),
        (Some(false), Some(true)) => Some(Scheme::Https),
        (Some(false), Some(false)) => return Verdict::Never,
        (None, _) | (_, None) => return Verdict::Unsaid,
    };
    let Some(start) = &when.capture else {
        return Verdict::Holds { only, rest: None };
    };
    // Only for a single name it is known what the redirect captures.
    let HostClass::Name(name) = class else {
        return Verdict::Unsaid;
    };
    match name.strip_prefix(start.as_str()) {
        Some(rest) if !rest.is_empty() => Verdict::Holds {
            only,
            rest: Some(rest.to_owned()),
        },
        _ => Verdict::Unsaid,
    }
}

/// The rules for hosts with these verdicts: rules that never hold are left out. Undecided ones are closed, unless they
/// may hold for all of the hosts.
fn rules(all: &[Rule], verdicts: Vec<Verdict>, schemes: Schemes, ledger: &mut Ledger) -> Vec<Rule> {
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
        // Each rule with a condition has a verdict.
        let mut verdict = verdicts.next().unwrap_or(Verdict::Unsaid);
        if verdict == Verdict::Unsaid
            && let Some(for_all) = verdict_for_all(rule, when, schemes)
        {
            let ids = when.ids.iter();
            ids.for_each(|&id| ledger.risk(id, ALL_REDIRECTED));
            verdict = for_all;
        }
        match verdict {
            Verdict::Never => continue,
            Verdict::Holds { only, rest } => {
                resolved.scheme = only;
                if let (Action::Redirect { to, .. }, Some(rest)) = (&mut resolved.action, rest) {
                    *to = to.replace(CAPTURED, &rest);
                }
            }
            Verdict::Unsaid => {
                let is_of_hosts = !when.condition.is_unsaid();
                let text = if is_of_hosts { UNDECIDED } else { UNSAID };
                when.ids.iter().for_each(|&id| ledger.unmapped(id, text));
                resolved.action = Action::Closed;
            }
        }
        found.push(resolved);
    }
    found
}

/// The verdict by which an undecided rule may hold for all of the hosts: that on a host such as nobody names. The rule
/// must redirect to a host for which it does not hold, so that no client is redirected twice. Clients then get less than
/// from the source, and never more; without the rule they would get what is behind it. `None` for any other rule.
fn verdict_for_all(rule: &Rule, when: &When, schemes: Schemes) -> Option<Verdict> {
    let verdict_on = |name: &str| verdict(rule, when, HostClass::Name(name), schemes);
    let ends_there = verdict_on(redirected_to(rule)?) == Verdict::Never;
    let of_unknown = verdict_on(UNKNOWN_HOST);
    (ends_there && matches!(of_unknown, Verdict::Holds { .. })).then_some(of_unknown)
}

/// The host to which a rule redirects; `None` if that depends on the request, or if the rule does not redirect to a host.
fn redirected_to(rule: &Rule) -> Option<&str> {
    let Action::Redirect { to, .. } = &rule.action else {
        return None;
    };
    let (_, behind_scheme) = to.split_once("://")?;
    let end = behind_scheme.find(['/', '?', '#', '{']);
    let (authority, rest) = behind_scheme.split_at(end.unwrap_or(behind_scheme.len()));
    // Any other placeholder would be a part of the host.
    let is_whole = !rest.starts_with('{') || rest.starts_with("{path");
    let host = authority.split(':').next()?;
    let is_lower = !host.bytes().any(|it| it.is_ascii_uppercase());
    (is_whole && is_lower && !host.starts_with('*') && is_route_host(host)).then_some(host)
}

const UNSAID: &str = "the importer cannot tell for which hosts it holds";

const UNDECIDED: &str = "it may hold for hosts that the source does not name, and the importer cannot tell for which: name \
    the hosts that clients use in ServerAlias, or in server_name";

const ALL_REDIRECTED: &str = "clients that ask for any host which the source does not name are redirected, also where it \
    would not hold: name the hosts that clients use in ServerAlias, or in server_name";

#[cfg(test)]
mod tests;
