//! Checks of routes that share their requests among upstreams.

use crate::file::File;
use crate::file::route::Route;
use crate::file::sticky::Sticky;
use crate::file::upstream::Upstream;
use crate::report::{Finding, Report};

/// Warns of upstreams of one `split` whose backends have the same `jvm_route`, so that a session of one looks like a
/// session of the other.
pub(super) fn warn_of_shared_routes(file: &File, report: &mut Report) {
    for route in &file.routes {
        let Some((first, second, shared)) = shared_route(file, route) else {
            continue;
        };
        let message = format!(
            "`{first}` and `{second}` both have a backend with jvm_route `{shared}`: sessions of `{second}` with it would \
             be sent to `{first}`"
        );
        let hint = "give each backend a `jvm_route` of its own, here and in its container";
        report.push(Finding::warning(message, route.target_place.clone()).hint(hint));
    }
}

/// Two upstreams of the route that keep sessions, and the `jvm_route` that both have.
fn shared_route<'f>(file: &'f File, route: &Route) -> Option<(&'f str, &'f str, &'f str)> {
    let is_of_route = |it: &&Upstream| route.target.upstreams().any(|name| name == it.name);
    let keeps_sessions = |it: &&Upstream| matches!(it.sticky, Sticky::On(_));
    let upstreams = file.upstreams.iter().filter(is_of_route);
    let sticky: Vec<&Upstream> = upstreams.filter(keeps_sessions).collect();
    let mut pairs = sticky
        .iter()
        .enumerate()
        .flat_map(|(index, one)| sticky[index + 1..].iter().map(move |other| (one, other)));
    pairs.find_map(|(one, other)| {
        let has = |route: &str| other.backends.iter().any(|it| it.value.jvm_route == route);
        let mut routes = one.backends.iter().map(|it| &it.value.jvm_route[..]);
        let shared = routes.find(|route| has(route))?;
        Some((&one.name[..], &other.name[..], shared))
    })
}
