//! Which route a request would get, asked many times of one configuration.

use bytes::Bytes;

use crate::config::Config;
use crate::path;
use crate::site::route::{RouteTable, Wanted};

/// Finds the routes of many requests in one configuration. [`super::explain`] says more of a single request.
#[derive(Debug)]
pub struct RouteFinder {
    routes: RouteTable,
}

/// The parts of a request by which its route is found.
#[derive(Clone, Copy, Debug)]
pub struct RouteRequest<'a> {
    /// Lower case, without port.
    pub host: Option<&'a str>,
    /// The path as a client would send it.
    pub path: &'a str,
    /// The index of the listener in [`Config::listeners`].
    pub listener: usize,
    /// Whether the client came over TLS.
    pub secure: bool,
}

/// The result of a search for a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundRoute {
    /// The route of this index in [`Config::routes`].
    Route(usize),
    /// No route matches.
    Nothing,
    /// The path is refused.
    Refused,
}

impl RouteFinder {
    /// Reads the routes.
    ///
    /// # Errors
    /// A route names an upstream that does not exist, which is the error.
    pub fn new(config: &Config) -> Result<Self, String> {
        let upstream = |name: &str| config.upstreams.iter().position(|it| it.name == name);
        let routes = RouteTable::new(&config.routes, upstream)?;
        Ok(Self { routes })
    }

    /// The route of a request.
    #[must_use]
    pub fn find(&self, request: RouteRequest<'_>) -> FoundRoute {
        let path = Bytes::copy_from_slice(request.path.as_bytes());
        let Ok(path) = path::normalise(&path) else {
            return FoundRoute::Refused;
        };
        let wanted = Wanted {
            host: request.host.map(str::as_bytes),
            listener: Some(request.listener),
            secure: request.secure,
        };
        match self.routes.decide(wanted, &path) {
            Ok(Some(index)) => FoundRoute::Route(index),
            Ok(None) => FoundRoute::Nothing,
            Err(_) => FoundRoute::Refused,
        }
    }
}
