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
    same_names(plan, groups, ledger);
    let knows_front = plan.trusted.iter().any(|it| {
        let address = it.split('/').next().unwrap_or_default();
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
/// uses one of them for all requests.
fn same_names(plan: &Plan, groups: &[RouteGroup], ledger: &mut Ledger) {
    let model = Model::new(plan);
    let kept = |it: &Route| matches!(outcome(&it.rule), Action::Files | Action::Closed);
    let mut keeps = vec![false; plan.hosts.len()];
    for group in groups {
        keeps[group.host] |= group.routes.iter().any(kept);
    }
    let mut said: BTreeSet<(usize, usize)> = BTreeSet::new();
    let names = plan.hosts.iter().flat_map(|it| &it.names);
    for name in names.map(String::as_str).chain([UNKNOWN_HOST]) {
        let name = name.replacen('*', "x", 1);
        let on = (0..plan.listeners.len()).filter_map(|it| model.host(it, &name));
        let hosts: BTreeSet<usize> = on.collect();
        let (kept, others): (Vec<usize>, Vec<usize>) = hosts.iter().partition(|&&it| keeps[it]);
        // If several leave something to the old server, it takes the first of them for all.
        let Some((&first, later)) = kept.split_first() else {
            continue;
        };
        let of_name = match name.as_str() {
            UNKNOWN_HOST => "each host that no virtual host names".to_owned(),
            name => format!("`{name}`"),
        };
        for &at in later.iter().filter(|&&at| said.insert((first, at))) {
            let other = shown(plan, first);
            let text = format!(
                "{of_name} is served by this virtual host and by {other}, on different addresses, and both leave \
                 something to the old server. At the one address of --keep it takes the first of them for both, with \
                 its guards alone: convert by hand what one of them leaves"
            );
            ledger.say(Weight::Risk, plan.hosts[at].place.clone(), text);
        }
        for at in others.into_iter().filter(|_| later.is_empty()) {
            if said.insert((first, at)) {
                let text = format!(
                    "move {} to the address of --keep, and not this one, which serves {of_name}, too",
                    shown(plan, first)
                );
                ledger.say(Weight::Note, plan.hosts[at].place.clone(), text);
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
