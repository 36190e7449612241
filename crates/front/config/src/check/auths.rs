//! Checks whether sign-ons fit together with upstreams, routes and listeners.

use std::collections::HashSet;

use catamaran_proxy::config::{
    AttributeSource, AuthKind, ListenAddress, ListenerConfig, RequestAttributes, Template,
    UserSource,
};
use catamaran_proxy::explain::{Question, explain};

use super::redirects::{FrontOfRoutes, sample_host};
use super::upstream_names;
use crate::file::auth::Auth;
use crate::file::route::Route;
use crate::file::upstream::Upstream;
use crate::file::{File, PlacedValue};
use crate::report::{Finding, Report};
use crate::suggest::{meant_or, nearest};

/// Adds to the report names of sign-ons and of their upstreams that do not exist, and sign-ons that nobody uses.
pub(super) fn check(file: &File, report: &mut Report) {
    // While other tables have faults, a sign-on may be missing because of them.
    let are_complete = report.faults() == 0;
    for auth in &file.auths {
        let Some(name) = auth.value.upstream() else {
            continue;
        };
        if upstream_names(file).all(|upstream| upstream != name) {
            let message = format!("there is no upstream `{name}`");
            let hint = meant_or(nearest(name, upstream_names(file)), || {
                format!("add [upstream.{name}] with a [[upstream.{name}.backend]]")
            });
            report.push(Finding::fault(message, auth.upstream_place.clone()).hint(hint));
        }
    }
    let names = || file.auths.iter().map(|auth| auth.value.name.as_str());
    let mut in_use = HashSet::new();
    for route in &file.routes {
        let Some(name) = auth_of(route) else {
            continue;
        };
        in_use.insert(name);
        if are_complete && names().all(|known| known != name) {
            let message = format!("there is no sign-on `{name}`");
            let hint = meant_or(nearest(name, names()), || format!("add [auth.{name}]"));
            let place = route
                .auth_place
                .clone()
                .unwrap_or_else(|| route.place.clone());
            report.push(Finding::fault(message, place).hint(hint));
        }
    }
    if let Some(admin) = &file.admin
        && let Some(name) = &admin.value.auth
    {
        in_use.insert(name);
        let known = file.auths.iter().find(|auth| auth.value.name == *name);
        if let Some(auth) = known {
            check_sign_in_of_admin(auth, report);
        } else if are_complete {
            let message = format!("there is no sign-on `{name}`");
            let hint = meant_or(nearest(name, names()), || format!("add [auth.{name}]"));
            report.push(Finding::fault(message, admin.auth_place.clone()).hint(hint));
        }
    }
    if report.faults() > 0 {
        return;
    }
    for auth in &file.auths {
        let name = &auth.value.name;
        if !in_use.contains(name.as_str()) {
            let message = format!("no route and no [admin] has sign-on `{name}`");
            let hint = "write `auth` in a [[route]], or remove it";
            report.push(Finding::warning(message, auth.place.clone()).hint(hint));
        }
    }
}

/// The upstreams of all services.
pub(super) fn upstreams(file: &File) -> impl Iterator<Item = &str> {
    file.auths.iter().filter_map(|auth| auth.value.upstream())
}

/// Faults pages to sign on that need the same sign-on, and warns of ways around a sign-on. Call it only if the file has
/// no other faults.
pub(super) fn check_routes(file: &File, report: &mut Report) {
    if file.auths.is_empty() {
        return;
    }
    for auth in &file.auths {
        if let AuthKind::Forward(service) = &auth.value.kind
            && let Some(sign_in) = &service.sign_in
        {
            check_sign_in(file, auth, sign_in, report);
        }
    }
    warn_of_ways_around(file, report);
    warn_of_clear_listeners(file, report);
    for upstream in &file.upstreams {
        warn_without_user(file, upstream, report);
    }
}

/// The name of a route's sign-on.
pub(super) fn auth_of(route: &Route) -> Option<&str> {
    route.values.first()?.rules.as_ref()?.auth.as_deref()
}

/// Faults a page to sign on that is a path: the admin listener has no such page.
fn check_sign_in_of_admin(auth: &Auth, report: &mut Report) {
    let AuthKind::Forward(service) = &auth.value.kind else {
        return;
    };
    let is_path = |sign_in: &Template| sign_in.beginning().starts_with(b"/");
    if service.sign_in.as_ref().is_some_and(is_path) {
        let message = "`sign_in` is a path, and [admin], which has this sign-on, has no such page";
        let hint = "write the whole URL, such as \"https://www.example.org/oauth2/start?rd={url}\"";
        report.push(Finding::fault(message, auth.sign_in_place.clone()).hint(hint));
    }
}

/// Faults a page to sign on whose own route has the sign-on: nobody would ever arrive.
fn check_sign_in(file: &File, auth: &Auth, sign_in: &Template, report: &mut Report) {
    let beginning = String::from_utf8_lossy(sign_in.beginning()).into_owned();
    if !beginning.starts_with('/') {
        // Another host. If it is one of the front's own, the browser shows the loop.
        return;
    }
    let name = auth.value.name.as_str();
    let front = FrontOfRoutes::new(file);
    let guarded = file
        .routes
        .iter()
        .filter(|route| auth_of(route) == Some(name));
    for value in guarded.filter_map(|route| route.values.first()) {
        let index = value.listen.first();
        let listener = index.and_then(|index| front.config.listeners.get(*index));
        let is_secure = listener
            .or_else(|| front.config.listeners.first())
            .is_some_and(|it| it.tls.is_some());
        let scheme = if is_secure { "https" } else { "http" };
        let question = Question {
            url: format!("{scheme}://{}{beginning}", sample_host(value)),
            listen: listener.map(ListenerConfig::label).unwrap_or_default(),
            ..Question::default()
        };
        let Ok(explanation) = explain(&front.config, &question) else {
            continue;
        };
        // `FrontOfRoutes` writes the number of a route as its line.
        let place = explanation.route.and_then(|route| route.place);
        let number = place.and_then(|place| place.strip_prefix(':')?.parse::<usize>().ok());
        let reached = number.and_then(|number| file.routes.get(number));
        if reached.and_then(auth_of) == Some(name) {
            let message = format!("the page to sign on, {beginning}, needs this sign-on itself");
            let hint = "add a [[route]] for it without `auth`, which leads to the service";
            report.push(Finding::fault(message, auth.sign_in_place.clone()).hint(hint));
            return;
        }
    }
}

/// Warns of routes without a sign-on that lead to an upstream to which another route leads with one, unless they say
/// that they have none.
fn warn_of_ways_around(file: &File, report: &mut Report) {
    let guarded: HashSet<&str> = file
        .routes
        .iter()
        .filter(|route| auth_of(route).is_some())
        .flat_map(|route| route.target.upstreams())
        .collect();
    for route in &file.routes {
        let Some(name) = route.target.upstreams().find(|name| guarded.contains(name)) else {
            continue;
        };
        if route.auth_place.is_none() {
            let message = format!(
                "this route leads to upstream `{name}` without the sign-on that another route to it has"
            );
            let hint = "write `auth` with the sign-on's name; or auth = \"off\" if that is meant";
            report.push(Finding::warning(message, route.place.clone()).hint(hint));
        }
    }
}

/// Warns of listeners at which clients in clear text reach a route with a sign-on: their cookies can be read on the way.
fn warn_of_clear_listeners(file: &File, report: &mut Report) {
    if !file.server.trusted_proxies.is_empty() {
        // A proxy before the front may have ended TLS.
        return;
    }
    for (index, listener) in file.listeners.iter().enumerate() {
        if is_clear(listener) && has_guarded_route(file, index) {
            let message =
                "clients of this listener sign on in clear text: whoever reads along can be them";
            let hint = "give it `tls`, or redirect_https = true";
            report.push(Finding::warning(message, listener.place.clone()).hint(hint));
        }
    }
}

/// Whether a route with a sign-on serves clients of the listener with this index.
pub(super) fn has_guarded_route(file: &File, listener: usize) -> bool {
    let mut guarded = file.routes.iter().filter(|route| auth_of(route).is_some());
    guarded.any(|route| {
        let value = route.values.first();
        value.is_some_and(|value| value.listen.is_empty() || value.listen.contains(&listener))
    })
}

/// Whether others than this machine reach the listener without TLS.
fn is_clear(listener: &PlacedValue<ListenerConfig>) -> bool {
    let config = &listener.value;
    let is_local = match &config.address {
        ListenAddress::Tcp(address) => address.ip().is_loopback(),
        ListenAddress::Unix(_) => true,
    };
    let has_tls = config.tls.is_some() || config.proxy_protocol || config.redirect_https.is_some();
    !is_local && !has_tls
}

/// Warns of an upstream that is told what a sign-on says, if no route with a sign-on leads to it, or none of them has a
/// user.
fn warn_without_user(file: &File, upstream: &Upstream, report: &mut Report) {
    if !tells_sign_on(&upstream.attributes) {
        return;
    }
    let leads_here = |route: &&Route| route.target.upstreams().any(|name| name == upstream.name);
    let mut auths = file
        .routes
        .iter()
        .filter(leads_here)
        .filter_map(|route| auth_of(route));
    let wants_user = upstream.attributes.remote_user == Some(UserSource::Auth);
    let is_told = auths.any(|name| {
        let mut known = file.auths.iter().filter(|auth| auth.value.name == name);
        known.any(|auth| !wants_user || auth.value.has_user())
    });
    if !is_told {
        let name = &upstream.name;
        let message = format!("no sign-on tells upstream `{name}` a user, which it waits for");
        let hint = "write `auth` in a [[route]] to it, and `user` in that [auth.NAME]";
        report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
    }
}

/// Whether backends are told what a sign-on says.
fn tells_sign_on(attributes: &RequestAttributes) -> bool {
    let named = attributes.named.iter().map(|(_, source)| source);
    let mut sources = attributes.auth_type.iter().chain(named);
    attributes.remote_user == Some(UserSource::Auth)
        || sources.any(|source| matches!(source, AttributeSource::Auth(_)))
}
