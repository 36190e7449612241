//! Whether listeners and routes keep clients apart as the file seems to want.

use std::collections::HashMap;

use catamaran_front::config::{ClientCertificate, ListenerConfig, RouteScheme, RouteTarget};

use crate::file::route::Route;
use crate::file::{File, Placed};
use crate::report::{Finding, Report};

/// Checks the names of listeners, and whether those of a route that asks for certificates ask for them, too.
pub(super) fn check(file: &File, report: &mut Report) {
    names(file, report);
    for route in file.routes.iter().filter(|it| asks_certificate(it)) {
        let mut listeners = file.listeners.iter().enumerate();
        let asks = |(index, it): (usize, &Placed<ListenerConfig>)| {
            has_listener(route, index) && mode(file, &it.value) != ClientCertificate::Off
        };
        if !listeners.any(asks) && route.matching {
            let message = "no listener of this route asks clients for a certificate: each request is \
                           answered 403";
            let hint = "write client_certificate = \"optional\" or \"required\" in the [tls.NAME] of a \
                        listener";
            report.push(Finding::warning(message, route.place.clone()).hint(hint));
        }
    }
}

fn names(file: &File, report: &mut Report) {
    let mut seen: HashMap<&str, &Placed<ListenerConfig>> = HashMap::new();
    for listener in &file.listeners {
        let Some(name) = &listener.value.name else {
            continue;
        };
        if let Some(first) = seen.insert(name, listener) {
            let spot = report.spot(first.place.start, listener.place.start);
            let message = format!("the listener of {spot} is named `{name}` too");
            let hint = "give one of them another `name`";
            report.push(Finding::fault(message, listener.place.clone()).hint(hint));
        }
    }
}

/// Warns of routes that clients without a certificate reach by another listener than the one whose profile
/// requires certificates. A route that names its listeners is meant so.
pub(super) fn check_ways_around(file: &File, report: &mut Report) {
    let is_guarded =
        |it: &ListenerConfig| mode(file, it) == ClientCertificate::Required && it.tls.is_some();
    let Some(guarded) = file.listeners.iter().find(|it| is_guarded(&it.value)) else {
        return;
    };
    let has_proxies = !file.server.trusted_proxies.is_empty();
    // One that sends everybody to https serves nobody, but those of whom a proxy says that they are there.
    let is_open =
        |it: &ListenerConfig| !is_guarded(it) && (it.redirect_https.is_none() || has_proxies);
    let leads_around = |route: &Route, open: &ListenerConfig| match scheme(route) {
        None => true,
        Some(RouteScheme::Https) => open.tls.is_some() || has_proxies,
        Some(RouteScheme::Http) => has_proxies,
    };
    let open = || file.listeners.iter().filter(|it| is_open(&it.value));
    let way = |route: &Route| open().find(|it| leads_around(route, &it.value));
    let mut routes = file.routes.iter().filter(|route| {
        let forwards = matches!(route.target, RouteTarget::Upstream(_));
        forwards && route.listen.is_none() && !asks_certificate(route) && way(route).is_some()
    });
    let Some(first) = routes.next() else {
        return;
    };
    let others = match routes.count() {
        0 => String::new(),
        1 => ", and another one as well".to_owned(),
        more => format!(", and {more} others as well"),
    };
    let open = way(first).map_or_else(String::new, |it| it.value.label());
    let (profile, label) = (guarded.value.tls.clone(), guarded.value.label());
    let message = format!(
        "clients of {open} reach this route without the certificate that TLS profile `{}` requires{others}",
        profile.unwrap_or_default()
    );
    let hint = format!(
        "write listen = [\"{label}\"] in the route; or client_certificate = \"required\"; or name all its \
         listeners in `listen`, if it is meant for all"
    );
    report.push(Finding::warning(message, first.place.clone()).hint(hint));
}

/// What the profile of a listener wants of its clients.
fn mode(file: &File, listener: &ListenerConfig) -> ClientCertificate {
    let profiles = file.tls.iter().map(|profile| &profile.value);
    let mut profiles = profiles.filter(|it| Some(&it.name) == listener.tls.as_ref());
    let profile = profiles.next();
    profile.map_or(ClientCertificate::Off, |it| it.settings.client_certificate)
}

fn has_listener(route: &Route, index: usize) -> bool {
    let value = route.values.first();
    value.is_some_and(|it| it.listen.is_empty() || it.listen.contains(&index))
}

fn asks_certificate(route: &Route) -> bool {
    let rules = route.values.first().and_then(|it| it.rules.as_ref());
    rules.is_some_and(|rules| rules.client_certificate)
}

fn scheme(route: &Route) -> Option<RouteScheme> {
    route.values.first()?.scheme
}
