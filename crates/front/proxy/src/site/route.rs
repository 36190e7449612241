//! The route table, which finds the most specific route for a request.
//!
//! A host is looked up in a hash map, its path in a [`tree`] of segments, so the cost does not depend on the number of
//! routes. The order in the file matters only between routes that are equally specific. There is no default backend.
//! Paths are compared in the form that [`crate::path`] makes.
//!
//! Routes that discovered members bring never override the file. They serve requests that no route of the file matches.
//! For a request that a route of the file matches, they only restrict which members may get it, and only if both routes
//! lead to the same upstream.

mod expressions;
pub(crate) mod pattern;
pub(crate) mod runners;
mod tree;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use catamaran_message::RequestHead;
use expressions::ExpressionSets;
use http::{Method, StatusCode};
use pattern::{ExcludedPaths, Rank};
use tree::{Precedence, RouteLookup, Tree};

use crate::config::{
    FieldRule, PathExpression, RequestConditions, RouteConfig, RouteTarget, Template,
};
use crate::path::{NormalPath, PathFault};
use crate::site::rules::Rules;
use crate::site::split::Split;

/// The routes by host, and those for any host. A route is identified by its index in the file's order.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    routes: Vec<Route>,
    /// How many routes were given. Each further route in `routes` is a combination of two of those.
    given: usize,
    /// For a route that members bring and a route of the file, the index of the combined route.
    joined: HashMap<(usize, usize), usize>,
    splits: Vec<Split>,
    names: HashMap<Box<[u8]>, Tree>,
    addresses: HashMap<Ipv6Addr, Tree>,
    /// The trees for all names below a domain, by the domain with its leading dot, such as `.example.org`.
    domains: HashMap<Box<[u8]>, Tree>,
    /// The numbers of labels that the keys of `domains` have, without duplicates, in descending order.
    domain_labels: Vec<usize>,
    /// The tree of routes for any host, and for requests without one.
    any: Tree,
    /// Whether the only route matches every request.
    takes_all: bool,
    /// If routes differ in methods and conditions alone, their indices, the most specific first; else none. A lookup then
    /// asks each.
    everywhere: Box<[usize]>,
    /// Whether some route is limited to certain listeners.
    has_listeners: bool,
    /// Whether some route allows tunnels.
    has_tunnels: bool,
    /// Whether some route is limited to certain methods.
    has_methods: bool,
    /// Whether some route has `[route.cors]`.
    has_cors: bool,
    /// Whether some route matches by an expression.
    has_expressions: bool,
    /// Whether some route refuses parameters that decide whether its expression matches.
    refuses_parameters: bool,
    /// Whether some routes were brought by discovered members.
    has_found: bool,
}

/// A route with its rules and the action that it leads to.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) config: RouteConfig,
    pub(crate) action: Action,
    /// The rules of the route; `None` if it has none but limits.
    pub(crate) rules: Option<Box<Rules>>,
    /// The indices of the route's limits in the site.
    pub(crate) limits: Box<[usize]>,
    /// Whether what its expression captures is used.
    pub(crate) captures: bool,
    rank: Rank,
    exclude: Box<[ExcludedPaths]>,
}

/// The action of a route on its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The request goes to the upstream with this index.
    Upstream(usize),
    /// The request goes to one of the upstreams of the [`Split`] with this index.
    Split(usize),
    /// The front answers with this status.
    Status(StatusCode),
    /// The front redirects the client, as the route's target says.
    Redirect,
    /// The front serves a file, as the route's rules say.
    Files,
}

/// The facts, besides the path, by which a route is looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The host in lower case, without port; `None`: the request names none.
    pub(crate) host: Option<&'a [u8]>,
    /// The index in the configuration of the listener that accepted the connection. It matters only if
    /// [`RouteTable::has_listeners`].
    pub(crate) listener: Option<usize>,
    /// Whether the client uses TLS, to the front or to a trusted proxy.
    pub(crate) secure: bool,
    /// The method; `GET` for a tunnel over HTTP/2, which HTTP/1.1 asks for with GET.
    pub(crate) method: &'a Method,
    pub(crate) conditions: ConditionFacts<'a>,
    /// The path with its parameters, in the form of comparison, for expressions that refuse those that matter; `None`:
    /// it is compared without them.
    pub(crate) with_parameters: Option<&'a [u8]>,
}

/// The facts by which the conditions of a route are met or not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConditionFacts<'a> {
    /// The head as the client sent it, and the client's address.
    Of(&'a RequestHead, IpAddr),
    /// The head of a preflight, and its client's address, to look up the route of the request that it announces.
    /// Conditions on what a preflight does not show count as met.
    Announced(&'a RequestHead, IpAddr),
    /// There is no request: all conditions are taken to be met, or none.
    Assumed(bool),
}

impl Wanted<'_> {
    /// Whether the request meets the conditions of a route.
    #[inline]
    fn meets(&self, conditions: &RequestConditions) -> bool {
        conditions.is_empty()
            || match self.conditions {
                ConditionFacts::Of(head, client) => conditions.are_met(head, client),
                ConditionFacts::Announced(head, client) => conditions.may_be_met(head, client),
                ConditionFacts::Assumed(met) => met,
            }
    }
}

impl RouteTable {
    /// Builds the table. `upstream` returns the index of a named upstream; the error is a name for which it returns
    /// none.
    pub(crate) fn new(
        configs: &[RouteConfig],
        upstream: impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        let mut table = Self::default();
        let upstream_index = |name: &String| upstream(name).ok_or_else(|| name.clone());
        for (index, config) in configs.iter().enumerate() {
            let action = match &config.target {
                RouteTarget::Status(status) => Action::Status(*status),
                RouteTarget::Upstream(name) => Action::Upstream(upstream_index(name)?),
                RouteTarget::Split(parts) => {
                    let mut shares = Vec::with_capacity(parts.len());
                    for (name, weight) in parts {
                        shares.push((upstream_index(name)?, *weight));
                    }
                    table.splits.push(Split::new(shares));
                    Action::Split(table.splits.len() - 1)
                }
                RouteTarget::Redirect(_) => Action::Redirect,
                RouteTarget::Files => Action::Files,
            };
            table.routes.push(Route::new(config, action));
            if config.hosts.is_empty() {
                table.any.insert(config, index);
            }
            for host in &config.hosts {
                table.of_host(host).insert(config, index);
            }
        }
        let mut sets = ExpressionSets::default();
        let of_names = table.names.values_mut().chain(table.domains.values_mut());
        for tree in of_names.chain(table.addresses.values_mut()) {
            tree.finish(&mut sets);
        }
        table.any.finish(&mut sets);
        table.note_needs(configs);
        table.given = configs.len();
        table.join();
        Ok(table)
    }

    /// Notes what the routes need, so that a lookup does nothing that none of them needs.
    fn note_needs(&mut self, configs: &[RouteConfig]) {
        let labels = |domain: &[u8]| domain.iter().filter(|&&byte| byte == b'.').count();
        self.domain_labels = self.domains.keys().map(|it| labels(it)).collect();
        self.domain_labels.sort_unstable_by(|a, b| b.cmp(a));
        self.domain_labels.dedup();
        self.takes_all = matches!(configs, [only] if takes_every_request(only));
        if configs.iter().all(is_for_every_url) {
            let mut everywhere: Vec<usize> = (0..configs.len()).collect();
            // Of equals, the first in the file comes first.
            everywhere.sort_by_key(|&index| Reverse(Precedence::of(&configs[index])));
            self.everywhere = everywhere.into();
        }
        self.has_expressions = configs.iter().any(|config| config.regex.is_some());
        self.refuses_parameters = configs.iter().any(|config| config.refuse_parameters);
        self.has_listeners = configs.iter().any(|config| !config.listen.is_empty());
        self.has_methods = configs.iter().any(|config| !config.methods.is_empty());
        self.has_found = configs.iter().any(|config| config.found);
        let mut rules = configs.iter().filter_map(|config| config.rules.as_ref());
        self.has_cors = rules.clone().any(|rules| rules.cors.is_some());
        self.has_tunnels = rules.any(|rules| !rules.upgrade.is_empty());
    }

    /// Combines each route that members bring with each route of the file that is for any host, leads to the same
    /// upstream and may match some of its paths. The combined route has the file's rules; the other's activations
    /// restrict members.
    fn join(&mut self) {
        for found in 0..self.given {
            if !self.routes[found].config.found {
                continue;
            }
            let path = self.routes[found].config.compared_path();
            for of_file in 0..self.given {
                let (brought, own) = (&self.routes[found], &self.routes[of_file]);
                let has_same_action = !own.config.found && own.action == brought.action;
                let is_for_any_host = own.config.hosts.is_empty();
                // Whether a pattern matches some of the paths is not computed.
                let may_match =
                    own.config.pattern.is_some() || path.starts_with(&own.config.compared_path());
                if has_same_action && is_for_any_host && may_match {
                    let joined = own.lessened(brought);
                    self.joined.insert((found, of_file), self.routes.len());
                    self.routes.push(joined);
                }
            }
        }
    }

    /// The tree for a host as routes name it, such as `*.example.org`; created if there is none.
    fn of_host(&mut self, host: &str) -> &mut Tree {
        if let Some(domain) = host.strip_prefix('*') {
            return self.domains.entry(domain.as_bytes().into()).or_default();
        }
        match Host::new(host.as_bytes()) {
            Host::Ipv6(address) => self.addresses.entry(address).or_default(),
            Host::Name(name) => self.names.entry(name.into()).or_default(),
        }
    }

    /// All routes by their indices: those that were given in the file's order, then the combined ones.
    pub(crate) fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The routes that were given, in the file's order, without the combined ones.
    pub(crate) fn given(&self) -> &[Route] {
        &self.routes[..self.given]
    }

    /// The routes of members that get no requests, because a route of the file with another action matches their path,
    /// each with that route. Only requests without a host are considered.
    pub(crate) fn overruled(&self) -> impl Iterator<Item = (&Route, &Route)> {
        let wanted = Wanted {
            host: None,
            listener: None,
            secure: false,
            method: &Method::GET,
            conditions: ConditionFacts::Assumed(false),
            with_parameters: None,
        };
        let brought = self.given().iter().filter(|it| it.config.found);
        brought.filter_map(move |brought| {
            let of_file = &self.routes[self.find(wanted, &brought.config.compared_path())?];
            let is_other = !of_file.config.found && of_file.action != brought.action;
            is_other.then_some((brought, of_file))
        })
    }

    /// Resolves the members that rules name. `member` returns the index of a member of an upstream, by its name.
    pub(crate) fn resolve(&mut self, member: impl Fn(usize, &str) -> Option<usize>) {
        for route in &mut self.routes {
            if let (Some(rules), Action::Upstream(upstream)) = (&mut route.rules, route.action) {
                rules.resolve(|name| member(upstream, name));
            }
        }
    }

    /// Resolves the caches that rules name. `cache` returns the index of a cache, by its name.
    pub(crate) fn resolve_caches(&mut self, cache: impl Fn(&str) -> Option<usize>) {
        for rules in self.routes.iter_mut().flat_map(|it| &mut it.rules) {
            rules.resolve_cache(&cache);
        }
    }

    /// The shares of a route with [`Action::Split`].
    pub(crate) fn split(&self, index: usize) -> &Split {
        &self.splits[index]
    }

    /// Resolves the limits that rules name. `limit` returns the index of a limit, by its name.
    pub(crate) fn resolve_limits(&mut self, limit: impl Fn(&str) -> Option<usize>) {
        for route in &mut self.routes {
            let names = route.config.rules.iter().flat_map(|rules| &rules.limits);
            route.limits = names.filter_map(|name| limit(name)).collect();
        }
    }

    /// Resolves the sign-ons that rules name. `auth` returns the index of a sign-on, by its name.
    pub(crate) fn resolve_auths(&mut self, auth: impl Fn(&str) -> Option<usize>) {
        for rules in self.routes.iter_mut().flat_map(|it| &mut it.rules) {
            rules.resolve_auth(&auth);
        }
    }

    /// Whether some route allows tunnels.
    pub(crate) fn has_tunnels(&self) -> bool {
        self.has_tunnels
    }

    /// Whether some route has `[route.cors]`.
    pub(crate) fn has_cors(&self) -> bool {
        self.has_cors
    }

    /// Whether some route is limited to certain listeners.
    pub(crate) fn has_listeners(&self) -> bool {
        self.has_listeners
    }

    /// Finds the most specific route for a request; `None`: no route matches.
    ///
    /// Containers differ in how they read an escaped slash or backslash. The front does not know how the request's
    /// container reads it, so a path whose readings have different routes is refused.
    pub(crate) fn decide(
        &self,
        wanted: Wanted<'_>,
        path: &NormalPath,
    ) -> Result<Option<usize>, PathFault> {
        if self.has_expressions && path.route().len() > PathExpression::PATH_MAX {
            return Err(PathFault::Long);
        }
        let found = self.find(wanted, path.route());
        if self.refuses_parameters {
            // Parameters must not decide whether an expression of such a route matches.
            for text in path.with_parameters() {
                if text.len() > PathExpression::PATH_MAX {
                    return Err(PathFault::Long);
                }
                let wanted_with = Wanted {
                    with_parameters: Some(&text),
                    ..wanted
                };
                if !self.are_alike(self.find(wanted_with, path.route()), found) {
                    return Err(PathFault::Ambiguous);
                }
            }
        }
        for reading in path.readings() {
            if !self.are_alike(self.find(wanted, &reading), found) {
                return Err(PathFault::Ambiguous);
            }
        }
        Ok(found)
    }

    /// The methods of the routes that would match the request but for its own method, sorted; empty: there is no such
    /// route.
    pub(crate) fn methods(&self, wanted: Wanted<'_>, path: &NormalPath) -> Vec<Method> {
        if !self.has_methods {
            return Vec::new();
        }
        let methods = RefCell::new(BTreeSet::new());
        // No route is accepted, so all that match are asked.
        let collect_methods = |index: usize| {
            let config = &self.routes[index].config;
            if wanted.meets(&config.conditions) {
                let names = config.methods.iter().map(Method::as_str);
                methods.borrow_mut().extend(names);
            }
            false
        };
        let none = self.find_taken(wanted, path.route(), collect_methods);
        debug_assert_eq!(none, None);
        let names = methods.into_inner().into_iter();
        names.filter_map(|name| name.parse().ok()).collect()
    }

    /// The routes of the file that the request announced by a preflight may get, the most specific first. It gets the
    /// last one if its fields and cookies meet the conditions of none before. At most [`ANNOUNCED_MAX`].
    ///
    /// `wanted` has the method of that request, and [`ConditionFacts::Announced`].
    pub(crate) fn announced(&self, wanted: Wanted<'_>, path: &NormalPath) -> Vec<usize> {
        let mut routes = Vec::new();
        while routes.len() < ANNOUNCED_MAX {
            let without = |index: usize| self.routes[index].config.found || routes.contains(&index);
            let Some(index) = self.find_except(wanted, path.route(), without) else {
                break;
            };
            routes.push(index);
            let conditions = &self.routes[index].config.conditions;
            if conditions.are_known_at_preflight() {
                break;
            }
        }
        routes
    }

    /// Whether two routes treat requests alike: they are the same route, or both have no rules and the same action,
    /// which is not a redirect.
    fn are_alike(&self, first: Option<usize>, second: Option<usize>) -> bool {
        if first == second {
            return true;
        }
        let (Some(first), Some(second)) = (first, second) else {
            return false;
        };
        let (first, second) = (&self.routes[first], &self.routes[second]);
        let have_no_rules = first.config.rules.is_none() && second.config.rules.is_none();
        // Two redirects may lead to different places.
        have_no_rules && first.action == second.action && first.action != Action::Redirect
    }

    /// Finds the route for one reading of a path.
    #[inline]
    fn find(&self, wanted: Wanted<'_>, path: &[u8]) -> Option<usize> {
        if self.takes_all {
            Some(0)
        } else if self.everywhere.is_empty() {
            self.find_by_url(wanted, path)
        } else {
            self.find_everywhere(&wanted)
        }
    }

    /// Finds the route where routes differ in methods and conditions alone. Not inlined: see [`Self::find_by_url`].
    #[inline(never)]
    fn find_everywhere(&self, wanted: &Wanted<'_>) -> Option<usize> {
        let mut routes = self.everywhere.iter().copied();
        routes.find(|&index| self.routes[index].takes(wanted))
    }

    /// Finds the route by host and path; combined with a route that members bring, if both apply. Not inlined, because it
    /// uses a lot of the stack.
    #[inline(never)]
    fn find_by_url(&self, wanted: Wanted<'_>, path: &[u8]) -> Option<usize> {
        let best = self.find_except(wanted, path, |_| false)?;
        if !self.has_found || !self.routes[best].config.found {
            return Some(best);
        }
        let is_found = |index: usize| self.routes[index].config.found;
        let Some(of_file) = self.find_except(wanted, path, is_found) else {
            return Some(best);
        };
        // Without a combined route the two have nothing in common, and the file wins.
        let joined = self.joined.get(&(best, of_file));
        Some(joined.copied().unwrap_or(of_file))
    }

    /// The most specific route except those for which `without` is true. Routes that members bring rank like routes
    /// of the file here; [`Self::find_by_url`] then joins the two kinds.
    fn find_except(
        &self,
        wanted: Wanted<'_>,
        path: &[u8],
        without: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let takes = |index: usize| self.routes[index].takes(&wanted) && !without(index);
        self.find_taken(wanted, path, takes)
    }

    /// The most specific route that does not exclude the path and for which `takes` is true.
    fn find_taken(
        &self,
        wanted: Wanted<'_>,
        path: &[u8],
        takes: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let excludes = |index: usize| self.routes[index].exclude.iter().any(|it| it.has(path));
        let lookup = RouteLookup {
            path,
            with_parameters: wanted.with_parameters.unwrap_or(path),
            listener: wanted.listener,
            secure: wanted.secure,
            takes: |index: usize| !excludes(index) && takes(index),
        };
        let find = |tree: &Tree| {
            let before_regex = |index: usize| self.routes[index].config.before_regex;
            tree.find(&lookup, |index| self.routes[index].rank, before_regex)
        };
        let of_host = match wanted.host.map(Host::new) {
            Some(Host::Name(name)) => self.find_by_name(name, find),
            Some(Host::Ipv6(address)) => self.addresses.get(&address).and_then(find),
            None => None,
        };
        of_host.or_else(|| find(&self.any))
    }

    /// The route for a host: by its name, or else by the longest domain above it.
    fn find_by_name(&self, name: &[u8], find: impl Fn(&Tree) -> Option<usize>) -> Option<usize> {
        if let Some(index) = self.names.get(name).and_then(&find) {
            return Some(index);
        }
        self.domain_labels.iter().find_map(|&labels| {
            let domain = above(name, labels)?;
            self.domains.get(domain).and_then(&find)
        })
    }
}

impl Route {
    fn new(config: &RouteConfig, action: Action) -> Self {
        Self {
            action,
            rules: Rules::new(config).map(Box::new),
            limits: Box::default(),
            captures: config.regex.is_some() && uses_captures(config),
            rank: Rank::of_route(config),
            exclude: config.exclude.iter().map(ExcludedPaths::new).collect(),
            config: config.clone(),
        }
    }

    /// Whether the route takes requests of this method, and the request meets its conditions.
    #[inline]
    fn takes(&self, wanted: &Wanted<'_>) -> bool {
        let RouteConfig {
            methods,
            conditions,
            ..
        } = &self.config;
        (methods.is_empty() || methods.contains(wanted.method)) && wanted.meets(conditions)
    }

    /// This route with the activations of `other` added, which further restrict members.
    fn lessened(&self, other: &Self) -> Self {
        let mut route = self.clone();
        let mut rules = self.config.rules.as_deref().cloned().unwrap_or_default();
        let less = other.config.rules.iter().flat_map(|it| &it.activation);
        rules.activation.extend(less.cloned());
        route.config.rules = Some(Arc::new(rules));
        route.rules = Rules::new(&route.config).map(Box::new);
        route
    }
}

/// Whether the rules or the target of a route name what its expression captures.
fn uses_captures(route: &RouteConfig) -> bool {
    if let RouteTarget::Redirect(redirect) = &route.target
        && redirect.to.names_captures()
    {
        return true;
    }
    let Some(rules) = &route.rules else {
        return false;
    };
    let of_responses = rules.response_headers.iter().map(|rule| &rule.change);
    let fields = rules.request_headers.iter().chain(of_responses);
    let mut templates = fields
        .filter_map(FieldRule::template)
        .chain(&rules.new_path);
    templates.any(Template::names_captures)
}

/// Whether a route matches every request.
fn takes_every_request(route: &RouteConfig) -> bool {
    is_for_every_url(route) && route.methods.is_empty() && route.conditions.is_empty()
}

/// Whether a route is for all hosts, paths, schemes and listeners.
fn is_for_every_url(route: &RouteConfig) -> bool {
    let is_root = route.is_prefix() && route.path == "/";
    let any_client = route.hosts.is_empty() && route.listen.is_empty() && route.scheme.is_none();
    is_root && any_client && route.exclude.is_empty() && !route.found
}

/// The last `labels` labels of a name, with the dot before them; `None` if the name does not have more labels.
fn above(name: &[u8], labels: usize) -> Option<&[u8]> {
    // A dot at the beginning has no label before it.
    let dots_from_end = (1..name.len()).rev().filter(|&index| name[index] == b'.');
    let dot = dots_from_end.take(labels).nth(labels.checked_sub(1)?)?;
    Some(&name[dot..])
}

/// A host in a form that can be compared: an IPv6 address has many spellings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host<'a> {
    Name(&'a [u8]),
    Ipv6(Ipv6Addr),
}

impl<'a> Host<'a> {
    /// Parses a host in lower case; an IPv6 address is in brackets.
    fn new(host: &'a [u8]) -> Self {
        let inner = host.strip_prefix(b"[").and_then(|it| it.strip_suffix(b"]"));
        match inner.and_then(|inner| std::str::from_utf8(inner).ok()?.parse().ok()) {
            Some(address) => Self::Ipv6(address),
            None => Self::Name(host),
        }
    }
}

/// The most routes that [`RouteTable::announced`] finds: each is a look-up for a request that costs its sender nothing.
pub(crate) const ANNOUNCED_MAX: usize = 16;

#[cfg(test)]
mod tests;
