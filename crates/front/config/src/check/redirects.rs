//! Checks whether a redirect leads back to its own route, so that no client ever arrives.
//!
//! The front's own code says where a request is sent. This module follows the redirects as a browser
//! would, as long as this front answers the URL.

use std::sync::Arc;

use catamaran_proxy::config::{
    Config, ListenerConfig, LogConfig, Place, RouteConfig, RouteScheme, RouteTarget,
};
use catamaran_proxy::explain::{Explanation, Question, explain};
use http::{StatusCode, Uri};

use crate::file::File;
use crate::file::route::Route;
use crate::report::{Finding, Report};

/// Faults each redirect that leads back to its route. Call it only if the file has no other faults.
pub(super) fn check(file: &File, report: &mut Report) {
    let redirects = || {
        let routes = file.routes.iter().enumerate();
        routes.filter(|(_, route)| matches!(route.target, RouteTarget::Redirect(_)))
    };
    // The routes are built anew for each redirect, which costs the product of both numbers.
    if redirects().count() * file.routes.len() > WORK_MAX {
        return;
    }
    let front = FrontOfRoutes::new(file);
    for (number, route) in redirects() {
        let mut values = route.values.iter();
        if let Some(Trap { url, location }) = values.find_map(|value| front.trap(number, value)) {
            let message = format!(
                "this redirect leads to itself: a client that asks for {url} is sent to {location}, and \
                 reaches this route again"
            );
            let place = route.target_place.clone();
            let hint = way_out(file, number, route);
            report.push(Finding::fault(message, place).hint(hint));
        }
    }
}

/// The hint what to change so that clients arrive, found by trying the changes.
fn way_out(file: &File, number: usize, route: &Route) -> &'static str {
    let has_scheme = route.values.iter().any(|value| value.scheme.is_some());
    let exact: fn(&mut RouteConfig) = |value| value.exact = true;
    let in_clear: fn(&mut RouteConfig) = |value| value.scheme = Some(RouteScheme::Http);
    if route.values.iter().all(RouteConfig::is_prefix) && is_way_out(file, number, exact) {
        return "add exact = true, or name a target that this route does not match";
    }
    let is_reached = FrontOfRoutes::new(file).is_reached(RouteScheme::Http);
    if !has_scheme && is_reached && is_way_out(file, number, in_clear) {
        return "add scheme = \"http\" if it is to lead to https; else name another target";
    }
    "name a target that this route does not match"
}

/// Whether no client is trapped any more if the route with this number is changed by `change`.
fn is_way_out(file: &File, number: usize, change: fn(&mut RouteConfig)) -> bool {
    let mut front = FrontOfRoutes::new(file);
    let is_of_route = |value: &RouteConfig| {
        value
            .place
            .as_ref()
            .is_some_and(|place| place.line == number)
    };
    for value in &mut front.config.routes {
        if is_of_route(value) {
            change(value);
        }
    }
    let mut values = front
        .config
        .routes
        .iter()
        .filter(|value| is_of_route(value));
    values.all(|value| front.trap(number, value).is_none())
}

/// A redirect that never ends: the URL that a client asks for, and where it is sent.
struct Trap {
    url: String,
    location: String,
}

/// The configuration of a file with its routes only, without what their backends do. The `line` of each
/// route's place is its number in the file.
pub(super) struct FrontOfRoutes {
    pub(super) config: Config,
    has_tls: bool,
    has_proxies: bool,
}

impl FrontOfRoutes {
    /// The routes of a file. A route that leads to backends or files answers 200 instead.
    pub(super) fn new(file: &File) -> Self {
        let nameless: Arc<str> = "".into();
        let mut routes = Vec::new();
        for (number, route) in file.routes.iter().enumerate() {
            // The line of a route is its number in the file, by which a finder's result is recognised.
            let place = Place {
                file: Arc::clone(&nameless),
                line: number,
            };
            routes.extend(
                route
                    .values
                    .iter()
                    .map(|value| Self::bare(value, place.clone())),
            );
        }
        let config = Config {
            server: file.server.clone(),
            tls: Vec::new(),
            listeners: file
                .listeners
                .iter()
                .map(|listener| listener.value.clone())
                .collect(),
            caches: Vec::new(),
            limits: Vec::new(),
            auths: Vec::new(),
            upstreams: Vec::new(),
            routes,
            error_pages: None,
            log: LogConfig::default(),
            trace: None,
            admin: None,
        };
        Self {
            has_tls: config
                .listeners
                .iter()
                .any(|listener| listener.tls.is_some()),
            has_proxies: !config.server.trusted_proxies.is_empty(),
            config,
        }
    }

    /// The route `value` at `place`, with a status in the place of backends and files.
    fn bare(value: &RouteConfig, place: Place) -> RouteConfig {
        let target = match &value.target {
            RouteTarget::Upstream(_) | RouteTarget::Split(_) | RouteTarget::Files => {
                RouteTarget::Status(StatusCode::OK)
            }
            RouteTarget::Status(_) | RouteTarget::Redirect(_) => value.target.clone(),
        };
        RouteConfig {
            target,
            rules: None,
            place: Some(place),
            ..value.clone()
        }
    }

    /// A URL at which a client would be redirected for ever; `None` if all clients arrive.
    fn trap(&self, number: usize, value: &RouteConfig) -> Option<Trap> {
        let (host, path) = (sample_host(value), sample(value)?);
        let first = value.listen.first();
        let listener = first.and_then(|index| self.config.listeners.get(*index));
        let label = listener.map(ListenerConfig::label).unwrap_or_default();
        for (scheme, name) in [(RouteScheme::Http, "http"), (RouteScheme::Https, "https")] {
            let is_matched = value.scheme.is_none_or(|only| only == scheme);
            if !is_matched || !self.is_reached(scheme) {
                continue;
            }
            let url = format!("{name}://{host}{path}");
            if let Some(location) = self.follow(number, &url, label.clone()) {
                return Some(Trap { url, location });
            }
        }
        None
    }

    /// Whether clients of this scheme reach the front; a trusted proxy may name either scheme.
    fn is_reached(&self, scheme: RouteScheme) -> bool {
        let in_clear = self
            .config
            .listeners
            .iter()
            .any(|listener| listener.tls.is_none());
        match scheme {
            RouteScheme::Http => in_clear || self.has_proxies,
            RouteScheme::Https => self.has_tls || self.has_proxies,
        }
    }

    /// Follows a client that begins at `url`. If it never arrives, returns where the redirect with this
    /// number sends it.
    fn follow(&self, number: usize, url: &str, listen: String) -> Option<String> {
        // Where the client is sent first.
        let mut first = None;
        let (mut url, mut listen, mut comes_back) = (url.to_owned(), listen, false);
        for _ in 0..STEPS_MAX {
            let question = Question {
                url: url.clone(),
                // Only the first request is known to come to this listener; the client chooses the others by their URL.
                listen: std::mem::take(&mut listen),
                ..Question::default()
            };
            let explanation = explain(&self.config, &question).ok()?;
            let is_of_redirect = is_route(&explanation, number);
            comes_back |= first.is_some() && is_of_redirect;
            let answer = explanation.answer?;
            // The front itself has noticed that the location is the URL that was asked for.
            if answer.reason == REFUSED {
                return is_of_redirect.then(|| first.unwrap_or(url));
            }
            let location = answer.location?;
            let next = self.resolve(&url, &location)?;
            first.get_or_insert(location);
            url = next;
        }
        // A client that was sent round without this redirect is trapped by another one, which is checked itself.
        first.filter(|_| comes_back)
    }

    /// The URL that a client asks for next when it is sent from `origin` to `location`; `None` if this
    /// front does not answer it.
    fn resolve(&self, origin: &str, location: &str) -> Option<String> {
        let origin: Uri = origin.parse().ok()?;
        let (scheme, authority) = (origin.scheme_str()?, origin.authority()?);
        if location.starts_with('/') {
            return Some(format!("{scheme}://{authority}{location}"));
        }
        let to: Uri = location.parse().ok()?;
        let next_scheme = match to.scheme_str() {
            Some("https") => RouteScheme::Https,
            _ => RouteScheme::Http,
        };
        let host = to.host()?;
        let has_host =
            |route: &RouteConfig| route.hosts.iter().any(|pattern| covers(pattern, host));
        let is_own_host = origin.host() == Some(host) || self.config.routes.iter().any(has_host);
        // Another port may be that of another server.
        let is_own_port = to
            .port_u16()
            .is_none_or(|port| Some(port) == origin.port_u16());
        (is_own_host && is_own_port && self.is_reached(next_scheme)).then(|| location.to_owned())
    }
}

/// Whether the route with this number gave the answer.
fn is_route(explanation: &Explanation, number: usize) -> bool {
    let route = explanation.route.as_ref();
    let place = route.and_then(|route| route.place.as_deref());
    place == Some(&format!(":{number}"))
}

/// A host that the route matches.
pub(super) fn sample_host(value: &RouteConfig) -> String {
    let host = value.hosts.first();
    match host.map(|host| (host, host.strip_prefix("*."))) {
        None => "www.example.org".to_owned(),
        Some((_, Some(below))) => format!("a.{below}"),
        Some((host, None)) => host.clone(),
    }
}

/// A path that the route matches, unless another route matches it better; `None` for an expression.
pub(super) fn sample(value: &RouteConfig) -> Option<String> {
    if value.regex.is_some() {
        return None;
    }
    Some(match (&value.pattern, &value.suffix) {
        (Some(pattern), _) => format!(
            "/{}",
            pattern.replace(['*', '?'], "x").trim_start_matches('/')
        ),
        (None, Some(suffix)) => format!("{}/x{suffix}", value.path.trim_end_matches('/')),
        (None, None) => value.path.clone(),
    })
}

fn covers(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(below) => host.ends_with(below),
        None => pattern == host,
    }
}

/// The reason that the front gives when it refuses a redirect to the very URL that was asked for.
const REFUSED: &str = "redirect-loop";

/// The number of redirects after which a client is taken to be in a loop. No site has so many in a row;
/// browsers follow twenty.
const STEPS_MAX: usize = 8;

/// The limit on the number of redirects times the number of routes: above it redirects are not followed,
/// since reading the file would take seconds.
const WORK_MAX: usize = 100_000;
