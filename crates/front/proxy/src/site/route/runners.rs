//! Explains to operators why a request did not get certain routes.
//!
//! Matching routes are found as in serving, with the better ones left out. To find out what keeps
//! another route from matching, its conditions are left out one after the other until it matches.
//! That looks at every route, so it is not done for requests that are served.

use std::cmp::Reverse;

use http::Method;

use super::{Host, Route, RouteTable, Wanted};
use crate::config::{RequestConditions, RouteConfig, RouteScheme, RouteTarget};

/// A route that a request did not get, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runner {
    /// The index of the route that was not taken.
    pub(crate) route: usize,
    pub(crate) matches: bool,
    pub(crate) why_not: String,
}

impl RouteTable {
    /// The next routes after the one that is found, the best first, at most `count`: those that
    /// match, then those that nearly do. `path` is in the form of comparison.
    pub(crate) fn runners(&self, wanted: Wanted<'_>, path: &[u8], count: usize) -> Vec<Runner> {
        let mut matching = Vec::new();
        let best = self.find(wanted, path);
        // If the route found is of the file, routes that members bring cannot be next.
        let may_be_next = |index: usize| match best {
            Some(best) => self.routes[best].config.found || !self.routes[index].config.found,
            None => false,
        };
        while matching.len() <= count {
            let is_left_out = |index: usize| !may_be_next(index) || matching.contains(&index);
            match self.find_except(wanted, path, is_left_out) {
                Some(route) => matching.push(route),
                None => break,
            }
        }
        let mut runners = Vec::with_capacity(count);
        for pair in matching.windows(2) {
            let (better, route) = (pair[0], pair[1]);
            runners.push(Runner {
                route,
                matches: true,
                why_not: why_behind(&self.routes[better], &self.routes[route], wanted).to_owned(),
            });
        }
        for route in self.nearest(wanted, path, &matching, count - runners.len()) {
            runners.push(Runner {
                route,
                matches: false,
                why_not: obstacle(&self.routes[route].config, wanted, path),
            });
        }
        runners
    }

    /// The routes, except those in `matching`, that come closest to matching: by host, then by common
    /// segments.
    fn nearest(
        &self,
        wanted: Wanted<'_>,
        path: &[u8],
        matching: &[usize],
        count: usize,
    ) -> Vec<usize> {
        // The nearest first; of equals, the first in the file.
        let mut others = Vec::new();
        for (index, Route { config, .. }) in self.given().iter().enumerate() {
            if !matching.contains(&index) {
                let fits_host = host_level(config, wanted.host) > 0 || config.hosts.is_empty();
                let segments = common_segments(&config.compared_path(), path);
                others.push((Reverse((fits_host, segments)), index));
            }
        }
        if count < others.len() {
            others.select_nth_unstable(count);
            others.truncate(count);
        }
        others.sort_unstable();
        others.into_iter().map(|(_, index)| index).collect()
    }
}

/// How well a route's hosts fit a host, the more the better; 0: not at all, or the route or the
/// request names none.
fn host_level(config: &RouteConfig, host: Option<&[u8]>) -> usize {
    let Some(host) = host else {
        return 0;
    };
    let level = |named: &String| match named.strip_prefix('*') {
        Some(domain) => {
            let below = host.len() > domain.len() && host.ends_with(domain.as_bytes());
            if below { domain.len() } else { 0 }
        }
        None if Host::new(named.as_bytes()) == Host::new(host) => usize::MAX,
        None => 0,
    };
    config.hosts.iter().map(level).max().unwrap_or(0)
}

/// The number of segments that two paths have in common from their beginning on.
fn common_segments(one: &[u8], other: &[u8]) -> usize {
    let segments = |path| <[u8]>::split(path, |&byte| byte == b'/').skip(1);
    let pairs = segments(one).zip(segments(other));
    pairs.take_while(|(one, other)| one == other).count()
}

/// Why a matching route ranks after a better one that matches, too.
fn why_behind(better: &Route, route: &Route, wanted: Wanted<'_>) -> &'static str {
    let level = |route: &Route| host_level(&route.config, wanted.host);
    let suffix = |route: &Route| route.config.suffix.as_ref().map(String::len);
    if level(better) > level(route) {
        "its host is less specific"
    } else if better.config.exact && !route.config.exact {
        "its path is not exact"
    } else if better.config.regex.is_some() && route.config.regex.is_none() {
        "an expression matches"
    } else if better.config.before_regex && route.config.regex.is_some() {
        "`before_regex` of the other says so"
    } else if better.config.regex.is_some() {
        "its expression comes later in the file"
    } else if suffix(better) > suffix(route) {
        "its suffix is less specific"
    } else if better.rank > route.rank {
        "its path is less specific"
    } else if !better.config.listen.is_empty() && route.config.listen.is_empty() {
        "it is for all listeners"
    } else if better.config.scheme.is_some() && route.config.scheme.is_none() {
        "it is for both schemes"
    } else if !better.config.methods.is_empty() && route.config.methods.is_empty() {
        "it is for all methods"
    } else if better.config.conditions.rank() > route.config.conditions.rank() {
        "the other has more conditions"
    } else {
        "it comes later in the file"
    }
}

/// What keeps a route from matching the request, in words.
fn obstacle(config: &RouteConfig, wanted: Wanted<'_>, path: &[u8]) -> String {
    let is_of_listener = |index| config.listen.contains(&index);
    let takes_listener = config.listen.is_empty() || wanted.listener.is_some_and(is_of_listener);
    let any_listener = RouteConfig {
        listen: Vec::new(),
        ..config.clone()
    };
    match obstacle_of_all(&any_listener, wanted, path) {
        obstacle if takes_listener => obstacle.unwrap_or_default(),
        Some(further) => format!("it is for other listeners, and {further}"),
        None => "it is for other listeners".to_owned(),
    }
}

/// What keeps a route for all listeners from matching; `None`: it matches.
fn obstacle_of_all(config: &RouteConfig, wanted: Wanted<'_>, path: &[u8]) -> Option<String> {
    let matches = |config: &RouteConfig| {
        let alone = RouteConfig {
            target: RouteTarget::Status(http::StatusCode::OK),
            rules: None,
            ..config.clone()
        };
        let table = RouteTable::new(&[alone], |_| None).unwrap_or_default();
        table.find(wanted, path).is_some()
    };
    if matches(config) {
        return None;
    }
    let any_host = RouteConfig {
        hosts: Vec::new(),
        ..config.clone()
    };
    if matches(&any_host) {
        return Some("its host is another".to_owned());
    }
    let of_path = obstacle_in_path(&any_host, matches);
    let any_path = RouteConfig {
        hosts: config.hosts.clone(),
        scheme: config.scheme,
        ..RouteConfig::new("/", RouteTarget::Status(http::StatusCode::OK))
    };
    Some(if matches(&any_path) {
        of_path
    } else {
        format!("its host is another, and {of_path}")
    })
}

/// What keeps a route for any host from matching: its scheme, suffix, exclusions or path.
fn obstacle_in_path(config: &RouteConfig, matches: impl Fn(&RouteConfig) -> bool) -> String {
    let matches_after = |relax: &dyn Fn(&mut RouteConfig)| {
        let mut relaxed = config.clone();
        relax(&mut relaxed);
        matches(&relaxed)
    };
    if let Some(scheme) = config.scheme
        && matches_after(&|it| it.scheme = None)
    {
        let name = match scheme {
            RouteScheme::Http => "http",
            RouteScheme::Https => "https",
        };
        return format!("it is for {name} only");
    }
    if let Some(suffix) = &config.suffix
        && matches_after(&|it| it.suffix = None)
    {
        return format!("the path does not end in {suffix}");
    }
    if matches_after(&|it| it.methods.clear()) {
        let methods: Vec<&str> = config.methods.iter().map(Method::as_str).collect();
        return format!("it is for {} only", methods.join(", "));
    }
    if matches_after(&|it| it.conditions = RequestConditions::default()) {
        return format!("the request does not meet: {}", config.conditions);
    }
    if matches_after(&|it| it.exclude.clear()) {
        return "its `exclude` leaves the path to others".to_owned();
    }
    if matches_after(&|it| it.exact = false) {
        return "its path is exact, and another".to_owned();
    }
    match (&config.pattern, &config.regex) {
        (Some(pattern), _) => format!("the path does not fit {pattern}"),
        (None, Some(regex)) => format!("the path does not match {}", regex.as_str()),
        (None, None) if config.exact => format!("the path is not {}", config.path),
        (None, None) => format!("the path is not {} or below it", config.path),
    }
}
