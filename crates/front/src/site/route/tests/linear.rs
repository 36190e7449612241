//! The rules of routing as they are written for users: all routes are looked at, one by one.

use std::cmp::Reverse;

use super::super::{Action, Host};
use crate::config::{RouteConfig, RouteTarget};

/// The action of the most specific route for a host and a path in the form of comparison.
pub(super) fn find(routes: &[RouteConfig], host: &[u8], path: &[u8]) -> Option<Action> {
    let matching = routes.iter().filter(|route| path_matches(route, path));
    let ranked = matching.filter_map(|route| Some((rank(route, host)?, route)));
    // Of equals, the first.
    let (_, best) = ranked.min_by_key(|(rank, _)| Reverse(*rank))?;
    Some(match &best.target {
        RouteTarget::Status(status) => Action::Status(*status),
        RouteTarget::Upstream(name) => Action::Upstream(name.parse().ok()?),
    })
}

type Rank = (usize, bool, usize, Option<usize>);

/// How specific a route is for a host that it matches: by host, exactness, path and suffix.
fn rank(route: &RouteConfig, host: &[u8]) -> Option<Rank> {
    let of_host = match &route.hosts[..] {
        [] => Some(0),
        hosts => hosts.iter().filter_map(|it| host_rank(it, host)).max(),
    };
    let suffix = route.compared_suffix().map(|it| it.len());
    Some((of_host?, route.exact, route.compared_path().len(), suffix))
}

/// An exact host comes before every wildcard, a long wildcard before a short one.
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
