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
        let Some(SharedRoute {
            first,
            second,
            jvm_route,
        }) = shared_route(file, route)
        else {
            continue;
        };
        let message = format!(
            "`{first}` and `{second}` both have a backend with jvm_route `{jvm_route}`: sessions of `{second}` with it would \
             be sent to `{first}`"
        );
        let hint = "give each backend a `jvm_route` of its own, here and in its container";
        report.push(Finding::warning(message, route.target_place.clone()).hint(hint));
    }
}

/// Two upstreams by name, and the `jvm_route` that a backend of each has.
struct SharedRoute<'f> {
    first: &'f str,
    second: &'f str,
    jvm_route: &'f str,
}

/// The first two upstreams of the route that keep sessions and share a `jvm_route`.
fn shared_route<'f>(file: &'f File, route: &Route) -> Option<SharedRoute<'f>> {
    let is_sticky = |upstream: &&Upstream| {
        let is_of_route = route.target.upstreams().any(|name| name == upstream.name);
        is_of_route && matches!(upstream.sticky, Sticky::On(_))
    };
    let sticky: Vec<&Upstream> = file.upstreams.iter().filter(is_sticky).collect();
    for (index, first) in sticky.iter().enumerate() {
        for second in &sticky[index + 1..] {
            let has = |route: &str| {
                let mut backends = second.backends.iter();
                backends.any(|backend| backend.value.jvm_route == route)
            };
            let mut routes = first
                .backends
                .iter()
                .map(|backend| &backend.value.jvm_route[..]);
            if let Some(jvm_route) = routes.find(|route| has(route)) {
                return Some(SharedRoute {
                    first: &first.name,
                    second: &second.name,
                    jvm_route,
                });
            }
        }
    }
    None
}
