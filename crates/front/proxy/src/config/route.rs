//! Routes: which requests they take, and where those go.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};

use crate::config::{Exclusion, PathExpression, Redirect, RequestConditions, RouteRules};
use crate::path;

/// A route: which requests it takes, and their target.
///
/// `[[route]]` in `docs/reference.md` says which of several routes that match wins, and has the meaning, default and
/// directives of other servers of each key. A route of the file with several paths or suffixes becomes one
/// `RouteConfig` for each.
#[derive(Clone, Debug)]
pub struct RouteConfig {
    /// The hosts, in lower case: `www.example.org`, or `*.example.org` for every name below. Empty: any host.
    pub hosts: Vec<String>,
    /// The path prefix, in whole segments, that a request must have.
    pub path: String,
    /// Whether the request's path must be equal to `path` instead.
    pub exact: bool,
    /// The suffix that the path must also have; `None`: any.
    pub suffix: Option<String>,
    /// The pattern that the path must match, instead of `path`, `exact` and `suffix`; `None`: those hold.
    pub pattern: Option<String>,
    /// The expression that the path must match, instead of `path`, `exact`, `suffix` and `pattern`; `None`: those hold.
    pub regex: Option<PathExpression>,
    /// Whether a request is refused whose parameters of path segments (`;NAME=VALUE`) decide whether [`Self::regex`]
    /// matches.
    pub refuse_parameters: bool,
    /// Whether this route, if it is the best one that matches without an expression, wins over routes with one, as `^~`
    /// of nginx does. Not for an exact path, which always wins.
    pub before_regex: bool,
    /// The methods of requests that match; `HEAD` is among them if `GET` is. Empty: all.
    pub methods: Vec<Method>,
    /// The fields, parameters and cookies that a request must have, and the clients that are left to other routes.
    pub conditions: RequestConditions,
    /// Requests that this route leaves to others although they match.
    pub exclude: Vec<Exclusion>,
    /// The listeners that must have accepted the request, by index in [`super::Config::listeners`]. Empty: any.
    pub listen: Vec<usize>,
    /// The scheme that the client must have used; `None`: either.
    pub scheme: Option<RouteScheme>,
    /// Where the request goes.
    pub target: RouteTarget,
    /// The further rules of the route; `None`: it has none.
    pub rules: Option<Arc<RouteRules>>,
    /// The line of the file that has the route; `None` if it was not read from a file.
    pub place: Option<Place>,
    /// Whether the route comes from discovered members, not from the file.
    pub found: bool,
}

/// A line of a file, for messages to operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the file, as it was given.
    pub file: Arc<str>,
    /// The number of the line, counted from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The scheme that a client used, to the front or to a trusted proxy that reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteScheme {
    /// The client used clear text.
    Http,
    /// The client used TLS.
    Https,
}

impl RouteConfig {
    /// A route for a path and all below it, on any host.
    #[must_use]
    pub fn new(path: impl Into<String>, target: RouteTarget) -> Self {
        Self {
            hosts: Vec::new(),
            path: path.into(),
            exact: false,
            suffix: None,
            pattern: None,
            regex: None,
            refuse_parameters: false,
            before_regex: false,
            methods: Vec::new(),
            conditions: RequestConditions::default(),
            exclude: Vec::new(),
            listen: Vec::new(),
            scheme: None,
            target,
            rules: None,
            place: None,
            found: false,
        }
    }

    /// The path in the form that requests are compared with. Two routes whose forms, hosts and suffixes are equal match
    /// the same requests, even if their paths are spelled differently.
    #[must_use]
    pub fn compared_path(&self) -> Bytes {
        let form = path::compared(&Bytes::copy_from_slice(self.path.as_bytes()));
        match form.strip_suffix(b"/") {
            // The closing slash of a prefix means nothing; `/` becomes the empty prefix.
            Some(prefix) if !self.exact => form.slice_ref(prefix),
            _ => form,
        }
    }

    /// What the route matches of paths, in one text: `path`, `suffix`, `pattern` or `regex`.
    pub(crate) fn template(&self) -> Cow<'_, str> {
        if let Some(expression) = &self.regex {
            return expression.as_str().into();
        }
        if let Some(pattern) = &self.pattern {
            return pattern.into();
        }
        match &self.suffix {
            Some(suffix) => {
                let prefix = self.path.trim_end_matches('/');
                format!("{prefix}/*{suffix}").into()
            }
            None => (&self.path).into(),
        }
    }

    /// Whether the route matches a path and all below it, whatever they end in.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        let is_bare = self.suffix.is_none() && self.pattern.is_none() && self.regex.is_none();
        is_bare && !self.exact
    }

    /// The suffix in the form that requests are compared with.
    #[must_use]
    pub fn compared_suffix(&self) -> Option<Bytes> {
        let suffix = self.suffix.as_ref()?;
        Some(path::compared(&Bytes::copy_from_slice(suffix.as_bytes())))
    }
}

/// The target of a request that a route matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteTarget {
    /// The request goes to the upstream of that name.
    Upstream(String),
    /// Each request goes to one of these upstreams, by their weights. A request whose session has its member in one of
    /// them goes there. At least one weight is above 0.
    Split(Vec<(String, u32)>),
    /// The front answers with this status.
    Status(StatusCode),
    /// The front redirects the client.
    Redirect(Redirect),
    /// The front sends a file of the directory in [`RouteRules::files`]; 404 if there is none.
    Files,
}

impl RouteTarget {
    /// The names of the upstreams that may get requests; empty if the front answers itself.
    pub fn upstreams(&self) -> impl Iterator<Item = &str> {
        let (single, parts) = match self {
            Self::Upstream(name) => (Some(&name[..]), &[][..]),
            Self::Split(parts) => (None, &parts[..]),
            Self::Status(_) | Self::Redirect(_) | Self::Files => (None, &[][..]),
        };
        let of_parts = parts.iter().map(|(name, _)| &name[..]);
        single.into_iter().chain(of_parts)
    }

    /// Whether requests go to upstreams.
    #[must_use]
    pub fn forwards(&self) -> bool {
        matches!(self, Self::Upstream(_) | Self::Split(_))
    }

    /// Whether the front answers every request of this target with an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Status(status) if status.as_u16() >= 400)
    }
}
