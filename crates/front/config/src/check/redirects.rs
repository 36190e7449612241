//! Checks whether a redirect leads back to its own route, so that no client ever arrives.
//!
//! The front's own code says where a request is sent. This module follows the redirects as a browser
//! would, as long as this front answers the URL.

use std::sync::Arc;

use catamaran_proxy::config::{Config, LogConfig, Place, RouteConfig, RouteScheme, RouteTarget};
use catamaran_proxy::explain::{Explanation, Question, explain};
use http::{StatusCode, Uri};

use crate::file::File;
use crate::file::route::Route;
use crate::report::{Finding, Report};

/// Faults each redirect that leads back to its route. Call it only if the file has no other faults.
pub(super) fn check(file: &File, report: &mut Report) {
    let redirects = || {
        let all = file.routes.iter().enumerate();
        all.filter(|(_, route)| matches!(route.target, RouteTarget::Redirect(_)))
    };
    // The routes are built anew for each redirect, which costs the product of both numbers.
    if redirects().count() * file.routes.len() > WORK_MAX {
        return;
    }
    let front = FrontOfRoutes::new(file);
    for (number, route) in redirects() {
        let mut values = route.values.iter();
        if let Some((url, location)) = values.find_map(|value| front.trap(number, value)) {
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
    let is_it = |value: &RouteConfig| value.place.as_ref().is_some_and(|it| it.line == number);
    let routes = front.config.routes.iter_mut();
    routes.filter(|it| is_it(it)).for_each(change);
    let mut values = front.config.routes.iter().filter(|it| is_it(it));
    values.all(|value| front.trap(number, value).is_none())
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
        let placed = |(number, route): (usize, &Route)| {
            let place = Place {
                file: Arc::clone(&nameless),
                line: number,
            };
            let bare = |value: &RouteConfig| RouteConfig {
                target: match &value.target {
                    RouteTarget::Upstream(_) | RouteTarget::Split(_) | RouteTarget::Files => {
                        RouteTarget::Status(StatusCode::OK)
                    }
                    other => other.clone(),
                },
                rules: None,
                place: Some(place.clone()),
                ..value.clone()
            };
            route.values.iter().map(bare).collect::<Vec<_>>()
        };
        let config = Config {
            server: file.server.clone(),
            tls: Vec::new(),
            listeners: file.listeners.iter().map(|it| it.value.clone()).collect(),
            caches: Vec::new(),
            limits: Vec::new(),
            upstreams: Vec::new(),
            routes: file.routes.iter().enumerate().flat_map(placed).collect(),
            error_pages: None,
            log: LogConfig::default(),
            trace: None,
            admin: None,
        };
        Self {
            has_tls: config.listeners.iter().any(|it| it.tls.is_some()),
            has_proxies: !config.server.trusted_proxies.is_empty(),
            config,
        }
    }

    /// A URL at which a client would be redirected for ever, and where it is sent; `None` if all clients arrive.
    fn trap(&self, number: usize, value: &RouteConfig) -> Option<(String, String)> {
        let host = sample_host(value);
        let both = [(RouteScheme::Http, "http"), (RouteScheme::Https, "https")];
        let schemes = both.into_iter().filter(|(scheme, _)| {
            value.scheme.is_none_or(|wanted| wanted == *scheme) && self.is_reached(*scheme)
        });
        let first = value.listen.first();
        let listen = first.and_then(|index| Some(self.config.listeners.get(*index)?.label()));
        let mut traps = schemes.filter_map(|(_, scheme)| {
            let url = format!("{scheme}://{host}{}", sample(value)?);
            let location = self.follow(number, &url, listen.clone().unwrap_or_default())?;
            Some((url, location))
        });
        traps.next()
    }

    fn is_reached(&self, scheme: RouteScheme) -> bool {
        let in_clear = self.config.listeners.iter().any(|it| it.tls.is_none());
        match scheme {
            RouteScheme::Http => in_clear || self.has_proxies,
            RouteScheme::Https => self.has_tls || self.has_proxies,
        }
    }

    /// Follows a client that begins at `url`. If it never arrives, returns where the redirect with this
    /// number sends it.
    fn follow(&self, number: usize, url: &str, listen: String) -> Option<String> {
        let mut first = None;
        let (mut url, mut listen, mut comes_back) = (url.to_owned(), listen, false);
        for _ in 0..STEPS_MAX {
            let question = Question {
                url: url.clone(),
                listen: std::mem::take(&mut listen),
                ..Question::default()
            };
            let explanation = explain(&self.config, &question).ok()?;
            let is_ours = is_route(&explanation, number);
            comes_back |= first.is_some() && is_ours;
            let answer = explanation.answer?;
            if answer.reason == REFUSED {
                return is_ours.then(|| first.unwrap_or(url));
            }
            let location = answer.location?;
            let next = self.resolve(&url, &location)?;
            first.get_or_insert(location);
            url = next;
        }
        first.filter(|_| comes_back)
    }

    /// The URL that a client asks for next when it is sent from `from` to `location`; `None` if this
    /// front does not answer it.
    fn resolve(&self, from: &str, location: &str) -> Option<String> {
        let from: Uri = from.parse().ok()?;
        let (scheme, authority) = (from.scheme_str()?, from.authority()?);
        if location.starts_with('/') {
            return Some(format!("{scheme}://{authority}{location}"));
        }
        let to: Uri = location.parse().ok()?;
        let is_secure = to.scheme_str() == Some("https");
        let scheme = if is_secure {
            RouteScheme::Https
        } else {
            RouteScheme::Http
        };
        let host = to.host()?;
        let named = |route: &RouteConfig| route.hosts.iter().any(|it| covers(it, host));
        let is_here = from.host() == Some(host) || self.config.routes.iter().any(named);
        let port = to.port_u16();
        let is_port = port.is_none() || port == from.port_u16();
        (is_here && is_port && self.is_reached(scheme)).then(|| location.to_owned())
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
