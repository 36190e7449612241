//! Finds the routes of many requests in one configuration.

use bytes::Bytes;
use http::Method;

use crate::config::Config;
use crate::path;
use crate::site::route::{ConditionFacts, RouteTable, Wanted};

/// Finds which route a request would get. [`super::explain`] says more about a single request.
#[derive(Debug)]
pub struct RouteFinder {
    routes: RouteTable,
}

/// The facts of a request by which its route is found; its method is GET.
#[derive(Clone, Copy, Debug)]
pub struct RouteRequest<'a> {
    /// The host in lower case, without port; `None`: the request names none.
    pub host: Option<&'a str>,
    /// The path as a client would send it.
    pub path: &'a str,
    /// The index of the listener in [`Config::listeners`].
    pub listener: usize,
    /// Whether the client came over TLS.
    pub secure: bool,
    /// Whether the request meets the conditions of routes on fields, query, cookies and clients: all of them, or none.
    pub meets_conditions: bool,
}

/// The result of looking for a request's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundRoute {
    /// The index in [`Config::routes`] of the route that the request gets.
    Route(usize),
    /// No route matches the request.
    Nothing,
    /// The path is refused before routes are compared, or two readings of it would get different routes.
    Refused,
}

impl RouteFinder {
    /// Builds the table of the configuration's routes.
    ///
    /// # Errors
    /// A route names an upstream that does not exist; the error is its name.
    pub fn new(config: &Config) -> Result<Self, String> {
        let upstream = |name: &str| config.upstreams.iter().position(|it| it.name == name);
        let routes = RouteTable::new(&config.routes, upstream)?;
        Ok(Self { routes })
    }

    /// Finds the route that a request would get.
    #[must_use]
    pub fn find(&self, request: RouteRequest<'_>) -> FoundRoute {
        let received = Bytes::copy_from_slice(request.path.as_bytes());
        let Ok(path) = path::normalise(&received) else {
            return FoundRoute::Refused;
        };
        let wanted = Wanted {
            host: request.host.map(str::as_bytes),
            listener: Some(request.listener),
            secure: request.secure,
            method: &Method::GET,
            conditions: ConditionFacts::Assumed(request.meets_conditions),
            with_parameters: None,
        };
        match self.routes.decide(wanted, &path) {
            Ok(Some(index)) => FoundRoute::Route(index),
            Ok(None) => FoundRoute::Nothing,
            Err(_) => FoundRoute::Refused,
        }
    }
}
