//! Checks whether limits fit together with listeners, routes and the connections of clients.

use std::collections::HashSet;
use std::ops::Range;

use catamaran_proxy::config::{LimitBy, Quota};
use http::Method;

use super::auths;
use crate::file::File;
use crate::file::limit::Limit;
use crate::report::{Finding, Report};
use crate::suggest::{meant_or, nearest};

/// Adds to the report what is wrong with the limits.
pub(super) fn check(file: &File, report: &mut Report) {
    let mut in_use = HashSet::new();
    // While other tables have faults, a limit may be missing because of them.
    let are_complete = report.faults() == 0;
    for limited in uses(file) {
        check_use(file, &limited, are_complete, report);
        warn_of_minted_keys(file, &limited, report);
        in_use.extend(limited.limits.iter().map(String::as_str));
    }
    if report.faults() > 0 {
        return;
    }
    for limit in &file.limits {
        let name = &limit.value.name;
        if !in_use.contains(name.as_str()) {
            let message = format!("no listener and no route has limit `{name}`");
            let hint = "write `limits` in a [[listen]] or [[route]], or remove it";
            report.push(Finding::warning(message, limit.place.clone()).hint(hint));
        }
        warn_small_burst(limit, report);
    }
    warn_little_memory(file, report);
}

/// The limits that a listener or a route names.
struct LimitUse<'f> {
    limits: &'f [String],
    place: &'f Range<usize>,
    /// Whether clients may ask for hosts that they have made up.
    takes_any_host: bool,
    /// Whether some of the requests have a sign-on.
    has_auth: bool,
}

/// The limits of each listener and of each route that has rules.
fn uses(file: &File) -> impl Iterator<Item = LimitUse<'_>> {
    let listeners = file.listeners.iter().enumerate();
    let of_listeners = listeners.map(|(index, listener)| LimitUse {
        limits: &listener.value.request_limits,
        place: &listener.place,
        takes_any_host: true,
        has_auth: auths::has_guarded_route(file, index),
    });
    let of_routes = file.routes.iter().filter_map(|route| {
        let first = route.values.first()?;
        Some(LimitUse {
            limits: &first.rules.as_ref()?.limits,
            place: &route.limits_place,
            takes_any_host: first.hosts.is_empty()
                || first.hosts.iter().any(|host| host.starts_with('*')),
            has_auth: auths::auth_of(route).is_some(),
        })
    });
    of_listeners.chain(of_routes)
}

/// Faults limits that do not exist, are named twice, or are too many.
fn check_use(file: &File, limited: &LimitUse<'_>, are_complete: bool, report: &mut Report) {
    let LimitUse { limits, place, .. } = limited;
    let names = || file.limits.iter().map(|limit| limit.value.name.as_str());
    for (index, name) in limits.iter().enumerate() {
        if are_complete && names().all(|limit_name| limit_name != name) {
            let message = format!("there is no limit `{name}`");
            let hint = meant_or(nearest(name, names()), || format!("add [limit.{name}]"));
            report.push(Finding::fault(message, (*place).clone()).hint(hint));
        }
        let mut by_name = file.limits.iter().filter(|it| it.value.name == *name);
        if !limited.has_auth && by_name.any(|it| it.value.by == LimitBy::User) {
            let message = format!("limit `{name}` is by user, and nobody signs on here");
            let hint = "write `auth` in the [[route]], or by = \"client\" in the limit";
            report.push(Finding::fault(message, (*place).clone()).hint(hint));
        }
        if limits[..index].contains(name) {
            let message = format!("`limits` has `{name}` twice");
            report.push(Finding::fault(message, (*place).clone()).hint("remove one of them"));
        }
    }
    if limits.len() > LIMITS_MAX {
        let message = format!("`limits` has more than {LIMITS_MAX} limits");
        let hint = "each is asked for each request; keep the narrowest";
        report.push(Finding::fault(message, (*place).clone()).hint(hint));
    }
}

/// Warns if clients can choose the keys of all limits of a listener or route, by a field or by a host that they make
/// up.
fn warn_of_minted_keys(file: &File, limited: &LimitUse<'_>, report: &mut Report) {
    let mut minted = None;
    for name in limited.limits {
        // A limit that does not exist is reported already.
        let Some(limit) = file.limits.iter().find(|limit| limit.value.name == *name) else {
            continue;
        };
        match limit.value.by {
            // This limit holds for a client whatever it sends.
            LimitBy::Client | LimitBy::User | LimitBy::All => return,
            LimitBy::Header(_) => minted = minted.or(Some("a field")),
            LimitBy::Host if limited.takes_any_host => minted = minted.or(Some("the host")),
            LimitBy::Host => {}
        }
    }
    if let Some(key) = minted {
        let message =
            format!("`limits` has a limit by {key}, and clients may write what they like into it");
        let hint = "name a limit by \"client\" with a higher rate as well";
        report.push(Finding::warning(message, limited.place.clone()).hint(hint));
    }
}

/// Warns of a burst that refuses parts of a page that a browser opens.
fn warn_small_burst(limit: &Limit, report: &mut Report) {
    let config = &limit.value;
    let takes_get = config.methods.is_empty() || config.methods.contains(&Method::GET);
    if let Quota::Rate { burst, .. } = config.quota
        && burst < BROWSER_BURST
        && takes_get
        && matches!(config.by, LimitBy::Client | LimitBy::User)
    {
        let message = format!(
            "limit `{}` lets only {burst} of a client's requests pass at once, and a browser sends {BROWSER_BURST} or more for a page",
            config.name
        );
        let hint = "raise `burst`, or write methods = [\"POST\"] if that is what is to be limited";
        report.push(Finding::warning(message, limit.burst_place.clone()).hint(hint));
    }
}

/// Warns if the clients that may be connected have more keys than there is memory for.
fn warn_little_memory(file: &File, report: &mut Report) {
    let Some(first) = file.limits.first() else {
        return;
    };
    let keys = file.server.limit_memory / KEY_BYTES;
    // Without a limit of connections, a number that few fronts exceed.
    let connections = file.server.connections_max.unwrap_or(20_000) as u64;
    // Keys are kept for a while after their client has gone, so each connection needs room for several.
    if keys < connections.saturating_mul(4) {
        let message = format!(
            "`limit_memory` has room for {keys} keys, fewer than four for each of {connections} connections"
        );
        let hint = "the front then forgets what clients owe; raise `limit_memory` in [server], 17 bytes a key";
        report.push(Finding::warning(message, first.place.clone()).hint(hint));
    }
}

/// The most limits of a listener, and of a route.
const LIMITS_MAX: usize = 4;

/// How many requests a browser sends at once.
const BROWSER_BURST: u32 = 6;

/// The memory of a key in the table of the front.
const KEY_BYTES: u64 = 17;
