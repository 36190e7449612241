//! Warns of requests that the old server no longer protects with `--keep`, because all of them reach it from the
//! front and at one address.
//!
//! Its access rules by client address then see only the front's address, and virtual hosts that differ by address or
//! port become one. Both may open what was closed, so each is reported with its line.

use std::collections::BTreeSet;

use crate::ledger::{Ledger, Weight};
use crate::plan::{Action, Model, Plan, UNKNOWN_HOST};
use crate::routes::{Route, RouteGroup, outcome};

/// Reports what the old server no longer protects when it is moved to the address of `--keep`.
pub(crate) fn say(plan: &Plan, groups: &[RouteGroup], ledger: &mut Ledger) {
    report_same_names(plan, groups, ledger);
    // A source that trusts a proxy on its own machine takes clients' addresses from the front, too.
    let knows_front = plan.trusted.iter().any(|network| {
        let address = network.split('/').next().unwrap_or_default();
        address.starts_with("127.") || address == "::1"
    });
    if knows_front {
        return;
    }
    let remedy = ledger.address_guards.remedy();
    for id in ledger.address_guards.left() {
        if !ledger.is_dropped(id) {
            let text = format!(
                "the old server asks here for clients' addresses, and the front sends it all requests: \
                 give it {remedy}, or it may let in everybody"
            );
            ledger.risk(id, text);
        }
    }
}

/// Reports virtual hosts that serve one name on several listeners: at the address of `--keep`, the old server
/// uses one of them for all requests. If only one leaves something to it, that one is to be moved there; several are a
/// risk. A pair is reported once, whatever names it has in common.
fn report_same_names(plan: &Plan, groups: &[RouteGroup], ledger: &mut Ledger) {
    let model = Model::new(plan);
    // Whether each virtual host leaves something to the old server.
    let mut keeps = vec![false; plan.hosts.len()];
    for group in groups {
        let is_kept = |it: &Route| matches!(outcome(&it.rule), Action::Files | Action::Closed);
        keeps[group.host] |= group.routes.iter().any(is_kept);
    }
    let mut reported: BTreeSet<(usize, usize)> = BTreeSet::new();
    let names = plan.hosts.iter().flat_map(|host| &host.names);
    for name_or_wildcard in names.map(String::as_str).chain([UNKNOWN_HOST]) {
        // Any name that the wildcard matches.
        let name = name_or_wildcard.replacen('*', "x", 1);
        let listeners = 0..plan.listeners.len();
        let hosts: BTreeSet<usize> = listeners
            .filter_map(|listener| model.host(listener, &name))
            .collect();
        // Those that leave something to the old server, and those that the front serves alone.
        let (keeping, others): (Vec<usize>, Vec<usize>) = hosts.iter().partition(|&&it| keeps[it]);
        let Some((&first, later)) = keeping.split_first() else {
            continue;
        };
        let first_shown = shown(plan, first);
        let of_name = match name.as_str() {
            UNKNOWN_HOST => "each host that no virtual host names".to_owned(),
            name => format!("`{name}`"),
        };
        for &host in later {
            if reported.insert((first, host)) {
                let text = format!(
                    "{of_name} is served by this virtual host and by {first_shown}, on different addresses, and both \
                     leave something to the old server. At the one address of --keep it takes the first of them for \
                     both, with its guards alone: convert by hand what one of them leaves"
                );
                ledger.say(Weight::Risk, plan.hosts[host].place.clone(), text);
            }
        }
        // With several that leave something, no move of one of them helps.
        if !later.is_empty() {
            continue;
        }
        for host in others {
            if reported.insert((first, host)) {
                let text = format!(
                    "move {first_shown} to the address of --keep, and not this one, which serves {of_name}, too"
                );
                ledger.say(Weight::Note, plan.hosts[host].place.clone(), text);
            }
        }
    }
}

/// Names a virtual host in a message, by its place in the source.
fn shown(plan: &Plan, host: usize) -> String {
    match &plan.hosts[host].place {
        Some(place) => format!("that of {place}"),
        None => "the server outside its virtual hosts".to_owned(),
    }
}
