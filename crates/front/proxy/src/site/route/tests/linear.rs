//! The rules of routing as written for users, as a slow reference: each route is compared, one by
//! one.

use std::cmp::Reverse;

use super::super::pattern::{ExcludedPaths, Glob};
use super::super::{Action, ConditionFacts, Host, Wanted};
use crate::config::conditions::ConditionRank;
use crate::config::{RouteConfig, RouteScheme, RouteTarget};

/// The action of the most specific route for a host, a listener, a scheme, and a path in the form of
/// comparison.
pub(super) fn find(routes: &[RouteConfig], wanted: &Wanted<'_>, path: &[u8]) -> Option<Action> {
    let host = wanted.host.unwrap_or_default();
    let excludes = |route: &RouteConfig| {
        let mut excluded = route.exclude.iter();
        excluded.any(|it| ExcludedPaths::new(it).has(path))
    };
    let scheme = if wanted.secure {
        RouteScheme::Https
    } else {
        RouteScheme::Http
    };
    let matching = routes
        .iter()
        .filter(|route| path_matches(route, path))
        .filter(|route| {
            let mut listen = route.listen.iter();
            route.listen.is_empty() || listen.any(|&index| Some(index) == wanted.listener)
        })
        .filter(|route| route.scheme.is_none_or(|wanted| wanted == scheme))
        .filter(|route| route.methods.is_empty() || route.methods.contains(wanted.method))
        .filter(|route| match wanted.conditions {
            ConditionFacts::Of(head, client) => route.conditions.are_met(head, client),
            ConditionFacts::Announced(head, client) => route.conditions.may_be_met(head, client),
            ConditionFacts::Assumed(_) => unreachable!("the requests of these tests have heads"),
        });
    let mut ranked: Vec<(Rank, &RouteConfig)> = matching
        .flat_map(|route| {
            ranks(route, host)
                .into_iter()
                .map(move |rank| (rank, route))
        })
        .collect();
    // Of equals, the first, even if it excludes the path. Patterns and expressions may rank alike and differ, and one
    // for some methods, or with conditions, leaves other requests to the next.
    let place = |route: &RouteConfig| routes.iter().position(|it| std::ptr::eq(it, route));
    let own = |route: &RouteConfig| {
        let is_limited = !route.methods.is_empty() || !route.conditions.is_empty();
        let differs = route.regex.is_some() || is_limited;
        (route.pattern.clone(), place(route).filter(|_| differs))
    };
    ranked.sort_by_key(|(rank, route)| (Reverse(*rank), own(route)));
    ranked.dedup_by_key(|(rank, route)| (*rank, own(route)));
    ranked.sort_by_key(|(rank, route)| (Reverse(*rank), place(route)));
    let is_expression = |route: &RouteConfig| route.regex.is_some();
    let taking = || ranked.iter().filter(|(_, route)| !excludes(route));
    // The best without expressions may forbid those of its host.
    let mut others = taking().filter(|(_, route)| !is_expression(route));
    let forbids = others.next().filter(|(_, route)| route.before_regex);
    let forbidden =
        |of_expression: &Rank| forbids.is_some_and(|(rank, _)| rank.0 == of_expression.0);
    let (_, best) = taking().find(|(rank, route)| !is_expression(route) || !forbidden(rank))?;
    Some(match &best.target {
        RouteTarget::Status(status) => Action::Status(*status),
        RouteTarget::Split(_) => unreachable!("no route of these tests has one"),
        RouteTarget::Redirect(_) => Action::Redirect,
        RouteTarget::Files => Action::Files,
        RouteTarget::Upstream(name) => Action::Upstream(name.parse().ok()?),
    })
}

type Rank = (
    usize,
    (bool, bool),
    (usize, usize),
    usize,
    Option<usize>,
    (bool, bool, bool, ConditionRank),
);

/// How specific a route is for a host, once for each of its hosts that matches: by host, exactness,
/// or an expression, slashes and length, path (patterns have none), suffix, listener, scheme, methods
/// and conditions.
fn ranks(route: &RouteConfig, host: &[u8]) -> Vec<Rank> {
    let of_hosts: Vec<usize> = match &route.hosts[..] {
        [] => vec![0],
        hosts => hosts.iter().filter_map(|it| host_rank(it, host)).collect(),
    };
    let suffix = route.compared_suffix();
    let path = route.compared_path();
    let whole = match &route.pattern {
        Some(pattern) => pattern.clone().into_bytes(),
        None if route.exact => path.to_vec(),
        None => [&path, &b"/*"[..], suffix.as_deref().unwrap_or_default()].concat(),
    };
    let slashes = whole.iter().filter(|&&byte| byte == b'/').count();
    let own_path = match route.pattern {
        Some(_) => 0,
        None => path.len() + 1,
    };
    if route.regex.is_some() {
        let own = (
            (false, true),
            (0, 0),
            0,
            None,
            (false, false, false, [0; 5]),
        );
        let of_expression = |host| (host, own.0, own.1, own.2, own.3, own.4);
        return of_hosts.into_iter().map(of_expression).collect::<Vec<_>>();
    }
    let (exact, suffix) = ((route.exact, false), suffix.map(|it| it.len()));
    let length = whole.len();
    let conditions = (
        !route.listen.is_empty(),
        route.scheme.is_some(),
        !route.methods.is_empty(),
        route.conditions.rank(),
    );
    let of_hosts = of_hosts.into_iter();
    of_hosts
        .map(|host| (host, exact, (slashes, length), own_path, suffix, conditions))
        .collect()
}

/// How specific a host pattern is for a host: an exact host ranks before every wildcard, a long
/// wildcard before a short one; `None`: it does not match.
fn host_rank(pattern: &str, host: &[u8]) -> Option<usize> {
    match pattern.strip_prefix('*') {
        None => (Host::new(pattern.as_bytes()) == Host::new(host)).then_some(usize::MAX),
        Some(domain) => {
            let below = host.len() > domain.len() && host.ends_with(domain.as_bytes());
            below.then_some(domain.len())
        }
    }
}

fn path_matches(route: &RouteConfig, path: &[u8]) -> bool {
    if let Some(regex) = &route.regex {
        return path.starts_with(b"/") && regex.matches(path);
    }
    if let Some(pattern) = &route.pattern {
        return Glob::new(pattern).matches(path);
    }
    let wanted = route.compared_path();
    let by_path = match path.strip_prefix(&wanted[..]) {
        Some(rest) if route.exact => rest.is_empty(),
        // A prefix of whole segments; `/` itself is nothing and matches `*`, too.
        Some(rest) => rest.is_empty() || rest.starts_with(b"/") || wanted.is_empty(),
        None => false,
    };
    let suffix = route.compared_suffix();
    by_path && suffix.is_none_or(|suffix| path.ends_with(&suffix))
}
