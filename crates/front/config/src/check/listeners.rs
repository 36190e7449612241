//! Checks whether listeners and routes keep clients apart as the file seems to intend.

use std::collections::HashMap;

use catamaran_proxy::config::{
    Address, ClientCertificate, ListenerConfig, RouteConfig, RouteScheme,
};
use catamaran_proxy::explain::{FoundRoute, RouteFinder, RouteRequest};

use super::redirects::{FrontOfRoutes, sample, sample_host};
use crate::file::route::Route;
use crate::file::{File, PlacedValue};
use crate::report::{Finding, Report};

/// Faults two listeners of one name, and warns of a route that asks for certificates if none of its listeners asks
/// clients for one.
pub(super) fn check(file: &File, report: &mut Report) {
    names(file, report);
    for route in file.routes.iter().filter(|route| asks_certificate(route)) {
        let mut listeners = file.listeners.iter().enumerate();
        let asks_clients = |(index, listener): (usize, &PlacedValue<ListenerConfig>)| {
            has_listener(route, index) && mode(file, &listener.value) != ClientCertificate::Off
        };
        if !listeners.any(asks_clients) && route.matching {
            let message = "no listener of this route asks clients for a certificate: each request is \
                           answered 403";
            let hint = "write client_certificate = \"optional\" or \"required\" in the [tls.NAME] of a \
                        listener";
            report.push(Finding::warning(message, route.place.clone()).hint(hint));
        }
    }
}

/// Faults two listeners with the same `name`.
fn names(file: &File, report: &mut Report) {
    let mut by_name: HashMap<&str, &PlacedValue<ListenerConfig>> = HashMap::new();
    for listener in &file.listeners {
        let Some(name) = &listener.value.name else {
            continue;
        };
        if let Some(first) = by_name.insert(name, listener) {
            let spot = report.spot(first.place.start, listener.place.start);
            let message = format!("the listener of {spot} is named `{name}` too");
            let hint = "give one of them another `name`";
            report.push(Finding::fault(message, listener.place.clone()).hint(hint));
        }
    }
}

/// Warns of routes that clients without a certificate can reach through another listener than the one whose profile
/// requires certificates.
///
/// A route with `listen` is left out: its listeners were chosen on purpose.
pub(super) fn check_ways_around(file: &File, report: &mut Report) {
    let mut listeners = file.listeners.iter();
    let Some(guarded) = listeners.find(|listener| is_guarded(file, &listener.value)) else {
        return;
    };
    let mut bypassed = file.routes.iter().filter_map(|route| {
        if !route.target.forwards() || route.listen.is_some() || asks_certificate(route) {
            return None;
        }
        Some((route, listener_around(file, route)?))
    });
    let Some((first, open)) = bypassed.next() else {
        return;
    };
    let others = match bypassed.count() {
        0 => String::new(),
        1 => ", and another one as well".to_owned(),
        more => format!(", and {more} others as well"),
    };
    let (open, label) = (open.label(), guarded.value.label());
    let profile = guarded.value.tls.as_deref().unwrap_or_default();
    let message = format!(
        "clients of {open} reach this route without the certificate that TLS profile `{profile}` requires{others}"
    );
    let hint = format!(
        "write listen = [\"{label}\"] in the route; or client_certificate = \"required\"; or name all its \
         listeners in `listen`, if it is meant for all"
    );
    report.push(Finding::warning(message, first.place.clone()).hint(hint));
}

/// A listener through which clients without a certificate reach this route.
fn listener_around<'f>(file: &'f File, route: &Route) -> Option<&'f ListenerConfig> {
    let has_proxies = !file.server.trusted_proxies.is_empty();
    let mut listeners = file.listeners.iter().map(|listener| &listener.value);
    listeners.find(|listener| {
        // A listener that redirects all clients to https serves only those who are there already, as a trusted proxy
        // says.
        let is_open =
            !is_guarded(file, listener) && (listener.redirect_https.is_none() || has_proxies);
        let has_scheme = match scheme(route) {
            None => true,
            Some(RouteScheme::Https) => listener.tls.is_some() || has_proxies,
            // Through the listener with TLS, such a route is reached only if a trusted proxy says http.
            Some(RouteScheme::Http) => has_proxies,
        };
        is_open && has_scheme
    })
}

/// Warns of routes for a listener that requires certificates, if a wider route of another listener leads the same
/// requests to the same application.
pub(super) fn check_wider_routes(file: &File, report: &mut Report) {
    let is_guarded = |index: &usize| {
        let listener = file.listeners.get(*index);
        listener.is_some_and(|listener| is_guarded(file, &listener.value))
    };
    let is_confined = |route: &&Route| {
        let listens = route.values.first().map_or(&[][..], |value| &value.listen);
        let needs_certificate = !listens.is_empty() && listens.iter().all(is_guarded);
        route.target.forwards() && needs_certificate && !asks_certificate(route)
    };
    let mut confined = file.routes.iter().filter(is_confined).peekable();
    // The routes are built anew for the search, so a file that needs no search ends here.
    if confined.peek().is_none() {
        return;
    }
    let front = FrontOfRoutes::new(file);
    // None of its routes names an upstream, so this does not fail.
    let Ok(finder) = RouteFinder::new(&front.config) else {
        return;
    };
    for route in confined.take(CONFINED_MAX) {
        let Some(WiderRoute {
            wide,
            listener,
            path,
        }) = wider(file, &front, &finder, route, |index| !is_guarded(&index))
        else {
            continue;
        };
        let label = file.listeners[listener].value.label();
        let spot = report.spot(wide.place.start, route.place.start);
        let message = format!(
            "clients of {label} reach {path} of this route without a certificate, by the route of {spot}, which \
             leads to the same backends"
        );
        let hint = format!(
            "add a [[route]] that matches the same, with listen = \"{label}\" and status = 404; or write \
             client_certificate = \"required\" in this route in the place of `listen`"
        );
        report.push(Finding::warning(message, route.place.clone()).hint(hint));
    }
}

/// A route of another listener that takes a request of a route to the same backends.
struct WiderRoute<'f> {
    wide: &'f Route,
    /// The index of that listener.
    listener: usize,
    /// The path of the request.
    path: String,
}

/// Tries sample requests of this route on the listeners that `is_open` allows, and finds a wider route.
fn wider<'f>(
    file: &'f File,
    front: &FrontOfRoutes,
    finder: &RouteFinder,
    route: &Route,
    is_open: impl Fn(usize) -> bool,
) -> Option<WiderRoute<'f>> {
    let listeners = file.listeners.iter().enumerate();
    let open: Vec<(usize, &ListenerConfig)> = listeners
        .map(|(index, listener)| (index, &listener.value))
        .filter(|(index, listener)| is_open(*index) && listener.redirect_https.is_none())
        .collect();
    for value in &route.values {
        let host = sample_host(value);
        for path in samples(value) {
            for (listener, config) in &open {
                for meets_conditions in [true, false] {
                    let request = RouteRequest {
                        host: Some(&host),
                        path: &path,
                        listener: *listener,
                        secure: config.tls.is_some(),
                        meets_conditions,
                    };
                    let FoundRoute::Route(index) = finder.find(request) else {
                        continue;
                    };
                    // `FrontOfRoutes` keeps the route's number in the file as its line.
                    let number = front.config.routes[index].place.as_ref()?.line;
                    let wide = file.routes.get(number)?;
                    if !asks_certificate(wide) && is_same_application(file, route, wide) {
                        let listener = *listener;
                        return Some(WiderRoute {
                            wide,
                            listener,
                            path,
                        });
                    }
                }
            }
        }
    }
    None
}

/// Example paths that a route matches: its own path and, if it matches a prefix, one below it; none for an expression.
fn samples(value: &RouteConfig) -> Vec<String> {
    let Some(own) = sample(value) else {
        return Vec::new();
    };
    let below = value
        .is_prefix()
        .then(|| format!("{}/x", own.trim_end_matches('/')));
    std::iter::once(own).chain(below).collect()
}

/// Whether two routes lead to one upstream, or to two upstreams that have a backend at the same address.
fn is_same_application(file: &File, route: &Route, other_route: &Route) -> bool {
    for upstream in route.target.upstreams() {
        for other in other_route.target.upstreams() {
            let others = addresses(file, other);
            let mut own = addresses(file, upstream).into_iter();
            if upstream == other || own.any(|address| others.contains(&address)) {
                return true;
            }
        }
    }
    false
}

fn addresses<'f>(file: &'f File, name: &str) -> Vec<&'f Address> {
    let upstream = file.upstreams.iter().find(|upstream| upstream.name == name);
    let backends = upstream.into_iter().flat_map(|upstream| &upstream.backends);
    backends.map(|backend| &backend.value.address).collect()
}

/// Whether a listener accepts only clients that show a certificate.
fn is_guarded(file: &File, listener: &ListenerConfig) -> bool {
    mode(file, listener) == ClientCertificate::Required && listener.tls.is_some()
}

/// Whether the TLS profile of a listener asks clients for a certificate, or even requires one.
fn mode(file: &File, listener: &ListenerConfig) -> ClientCertificate {
    let all = file.tls.iter().map(|profile| &profile.value);
    let mut profiles = all.filter(|it| Some(&it.name) == listener.tls.as_ref());
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

/// The most routes for which wider ones are looked for: with more, reading the file would take long.
const CONFINED_MAX: usize = 1000;
