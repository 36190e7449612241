//! Which request goes where: a table sorted once, searched for the first match.
//!
//! Order in the file decides only between routes that are equally specific. No match is no match:
//! there is no default backend. What a path is compared with has been normalised by
//! [`crate::path`].

use std::cmp::Reverse;
use std::net::Ipv6Addr;

use bytes::Bytes;
use http::StatusCode;

use crate::config::{RouteConfig, RouteTarget};
use crate::path::{NormalPath, PathFault};

/// The routes, most specific first.
#[derive(Debug)]
pub(crate) struct RouteTable {
    routes: Vec<Route>,
}

#[derive(Debug)]
struct Route {
    /// `None` matches any host, and none.
    host: Option<HostPattern>,
    path: Bytes,
    exact: bool,
    suffix: Option<Bytes>,
    action: Action,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It goes to the upstream of this index.
    Upstream(usize),
    /// The front answers it.
    Status(StatusCode),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Exact(Box<[u8]>),
    Ipv6(Ipv6Addr),
    /// `.example.org`, for every name below it.
    Below(Box<[u8]>),
}

impl RouteTable {
    /// Builds the table. `upstream` gives the index of a named upstream.
    pub(crate) fn new(
        configs: &[RouteConfig],
        upstream: impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        let mut routes = Vec::new();
        for config in configs {
            let action = match &config.target {
                RouteTarget::Status(status) => Action::Status(*status),
                RouteTarget::Upstream(name) => {
                    Action::Upstream(upstream(name).ok_or_else(|| name.clone())?)
                }
            };
            let route = |host| Route {
                host,
                path: config.compared_path(),
                exact: config.exact,
                suffix: config.compared_suffix(),
                action,
            };
            if config.hosts.is_empty() {
                routes.push(route(None));
            }
            // One entry a host, so that each sorts by its own host.
            routes.extend(
                config
                    .hosts
                    .iter()
                    .map(|host| route(Some(HostPattern::new(host)))),
            );
        }
        routes.sort_by_key(Route::rank);
        Ok(Self { routes })
    }

    /// The action of the most specific route for a host (lower case, without port) and a path.
    ///
    /// Containers differ in how they read an escaped slash or backslash. Nothing says which kind
    /// the request will meet, so its route must not depend on that.
    pub(crate) fn decide(
        &self,
        host: Option<&[u8]>,
        path: &NormalPath,
    ) -> Result<Option<Action>, PathFault> {
        let action = self.find(host, path.route());
        let agrees = |reading: Vec<u8>| self.find(host, &reading) == action;
        if path.readings().all(agrees) {
            Ok(action)
        } else {
            Err(PathFault::Ambiguous)
        }
    }

    /// The action for one reading of a path.
    fn find(&self, host: Option<&[u8]>, path: &[u8]) -> Option<Action> {
        let host = host.map(Host::new);
        self.routes
            .iter()
            .find(|route| route.matches(host, path))
            .map(|route| route.action)
    }
}

impl Route {
    /// Sorts the most specific first.
    fn rank(&self) -> impl Ord + use<> {
        let host = match &self.host {
            Some(HostPattern::Exact(_) | HostPattern::Ipv6(_)) => (2, 0),
            Some(HostPattern::Below(domain)) => (1, domain.len()),
            None => (0, 0),
        };
        Reverse((
            host,
            self.exact,
            self.path.len(),
            self.suffix.as_ref().map(|it| it.len()),
        ))
    }

    fn matches(&self, host: Option<Host<'_>>, path: &[u8]) -> bool {
        let host_matches = |pattern: &HostPattern| host.is_some_and(|host| pattern.matches(host));
        self.host.as_ref().is_none_or(host_matches)
            && self.path_matches(path)
            && self
                .suffix
                .as_ref()
                .is_none_or(|suffix| path.ends_with(suffix))
    }

    fn path_matches(&self, path: &[u8]) -> bool {
        match path.strip_prefix(&*self.path) {
            Some(rest) if self.exact => rest.is_empty(),
            // A prefix of whole segments; `/` itself was stored as nothing and matches `*` too.
            Some(rest) => rest.is_empty() || rest.starts_with(b"/") || self.path.is_empty(),
            None => false,
        }
    }
}

impl HostPattern {
    fn new(host: &str) -> Self {
        match host.strip_prefix('*') {
            Some(domain) => Self::Below(domain.as_bytes().into()),
            None => match Host::new(host.as_bytes()) {
                Host::Ipv6(address) => Self::Ipv6(address),
                Host::Name(name) => Self::Exact(name.into()),
            },
        }
    }

    fn matches(&self, host: Host<'_>) -> bool {
        match (self, host) {
            (Self::Exact(name), Host::Name(host)) => host == &**name,
            (Self::Ipv6(address), Host::Ipv6(host)) => host == *address,
            (Self::Below(domain), Host::Name(host)) => {
                host.len() > domain.len() && host.ends_with(domain)
            }
            _ => false,
        }
    }
}

/// A host, compared by meaning: an IPv6 address has many spellings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host<'a> {
    Name(&'a [u8]),
    Ipv6(Ipv6Addr),
}

impl<'a> Host<'a> {
    /// Reads a host in lower case; an IPv6 address is in brackets.
    fn new(host: &'a [u8]) -> Self {
        let inner = host.strip_prefix(b"[").and_then(|it| it.strip_suffix(b"]"));
        inner
            .and_then(|inner| std::str::from_utf8(inner).ok()?.parse().ok())
            .map_or(Self::Name(host), Self::Ipv6)
    }
}

#[cfg(test)]
mod tests;
