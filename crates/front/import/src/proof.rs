//! Checks the written file: compares the model of the source with the front's own route table.
//!
//! Both are asked for paths made from every pattern, for every host and for one that no host has. A route that
//! would serve what the source keeps closed is closed; any other difference is reported.

use std::collections::{BTreeSet, HashMap};

use catamaran_proxy::config::{Config, RouteConfig, RouteTarget};
use catamaran_proxy::explain::{FoundRoute, RouteFinder, RouteRequest};

use crate::emit::KEPT;
use crate::ledger::Place;
use crate::matcher::{Matcher, can_be_written, encoded};
use crate::plan::{Access, Action, Decision, Model, Plan, Rule, UNKNOWN_HOST};

/// A request that the written file treats differently from the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The index of the route that would serve it although the source does not; `None` for other differences.
    pub(crate) opens: Option<usize>,
    pub(crate) place: Option<Place>,
    pub(crate) text: String,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) differences: Vec<Difference>,
    /// Whether some requests were not compared, because there were too many.
    pub(crate) is_cut: bool,
}

/// Compares the source's plan with the written file, `config`.
pub(crate) fn compare(plan: &Plan, config: &Config) -> Comparison {
    let mut comparison = Comparison::default();
    let Ok(finder) = RouteFinder::new(config) else {
        return comparison;
    };
    let model = Model::new(plan);
    let mut hosts: BTreeSet<String> = BTreeSet::from([UNKNOWN_HOST.to_owned()]);
    for name in plan.hosts.iter().flat_map(|it| &it.names) {
        hosts.insert(name.replacen('*', "x", 1));
    }
    let all = PathList::new(plan.hosts.iter().flat_map(|it| &it.rules));
    // Of very many hosts each is asked for its own paths alone.
    let is_small = hosts.len() * plan.listeners.len() * all.paths.len() <= REQUESTS_MAX;
    let mut of_hosts: HashMap<usize, PathList> = HashMap::new();
    let mut asked = 0;
    for host in &hosts {
        for listener in 0..plan.listeners.len() {
            let Some(own) = model.host(listener, host) else {
                continue;
            };
            let list = if is_small {
                &all
            } else {
                of_hosts
                    .entry(own)
                    .or_insert_with(|| PathList::new(&plan.hosts[own].rules))
            };
            comparison.is_cut |= list.is_cut;
            for PathPair { path, encoded } in &list.paths {
                asked += 1;
                comparison.is_cut |= asked > REQUESTS_MAX;
                if asked > REQUESTS_MAX || comparison.differences.len() >= DIFFERENCES_MAX {
                    return comparison;
                }
                let secure = plan.listeners[listener].tls.is_some();
                let found = finder.find(RouteRequest {
                    host: Some(host),
                    path: encoded,
                    listener,
                    secure,
                });
                let decision = model.decide(listener, host, path);
                let Some(opens) = compared(plan, config, decision, found) else {
                    continue;
                };
                let port = plan.listeners[listener].port;
                let scheme = if secure { "https" } else { "http" };
                let target = route_of(config, found).map(|it| &it.1.target);
                let text = format!(
                    "{scheme}://{host}:{port}{encoded}: in the source {}; here {}",
                    expected(plan, decision),
                    shown(target)
                );
                comparison.differences.push(Difference {
                    opens,
                    place: None,
                    text,
                });
            }
        }
    }
    comparison
}

/// The route that was found, with its index; `None` if none was.
fn route_of(config: &Config, found: FoundRoute) -> Option<(usize, &RouteConfig)> {
    match found {
        FoundRoute::Route(index) => Some((index, &config.routes[index])),
        _ => None,
    }
}

/// Describes what the source does, for a message.
fn expected(plan: &Plan, decision: Decision<'_>) -> String {
    let what = match (decision.access, decision.action) {
        (Access::Nobody, _) => return "it is closed".to_owned(),
        (Access::Unsaid, _) => return "it is guarded".to_owned(),
        (_, Action::Forward { upstream, .. }) => {
            format!("upstream {}", plan.upstreams[*upstream].name)
        }
        (_, Action::Answer(status)) => format!("status {status}"),
        (_, Action::Text(text)) => format!("status {} with a text", text.status),
        (_, Action::Redirect { to, .. }) => format!("redirect to {to}"),
        (_, Action::Files | Action::Serve(_)) => "files".to_owned(),
        (_, Action::Closed) => "it is not converted".to_owned(),
    };
    match decision.access {
        Access::Open => what,
        _ => format!("{what}, for some clients"),
    }
}

/// Compares the route found for a request with the source's decision: `None` if they agree,
/// `Some(Some(index))` if that route opens what is closed, `Some(None)` for any other difference.
fn compared(
    plan: &Plan,
    config: &Config,
    decision: Decision<'_>,
    found: FoundRoute,
) -> Option<Option<usize>> {
    if matches!(found, FoundRoute::Refused) {
        return None;
    }
    let route = route_of(config, found);
    let target = route.map(|it| &it.1.target);
    let guarded = route.is_some_and(|(_, it)| {
        it.rules
            .as_ref()
            .is_some_and(|it| !it.allow.is_empty() || !it.deny.is_empty())
    });
    let wants_guard = matches!(decision.access, Access::Networks { .. });
    let forwards_to = match target {
        Some(RouteTarget::Upstream(name)) if name != KEPT => Some(name.as_str()),
        _ => None,
    };
    let served = match (decision.access, decision.action) {
        (Access::Open | Access::Networks { .. }, action) => {
            action.upstream().map(|it| plan.upstreams[it].name.as_str())
        }
        _ => None,
    };
    let is_let_in = matches!(decision.access, Access::Open | Access::Networks { .. });
    let shows = route.is_some_and(|(_, it)| it.rules.as_ref().is_some_and(|it| it.files.is_some()));
    let should_show = is_let_in && matches!(decision.action, Action::Serve(_));
    let redirects = matches!(target, Some(RouteTarget::Redirect(_)));
    let should_redirect = matches!(decision.access, Access::Open | Access::Networks { .. })
        && matches!(decision.action, Action::Redirect { .. });
    let serves = forwards_to.is_some() || shows;
    let opens = forwards_to.is_some() && served.is_none() && !should_redirect
        || shows && !should_show
        || serves && wants_guard && !guarded;
    let differs =
        opens || forwards_to != served || redirects != should_redirect || shows != should_show;
    differs.then(|| route.map(|it| it.0).filter(|_| opens))
}

fn shown(target: Option<&RouteTarget>) -> String {
    match target {
        Some(RouteTarget::Upstream(name)) => format!("upstream {name}"),
        Some(RouteTarget::Status(status)) => format!("status {}", status.as_u16()),
        Some(RouteTarget::Redirect(_)) => "a redirect".to_owned(),
        Some(RouteTarget::Files) => "files".to_owned(),
        None => "no route".to_owned(),
    }
}

/// A path, decoded and as it is written in a request.
struct PathPair {
    path: String,
    encoded: String,
}

/// Test paths made from every pattern: itself, and paths beside, below and above it.
struct PathList {
    paths: Vec<PathPair>,
    /// Whether some patterns were left out, because there were too many paths.
    is_cut: bool,
}

impl PathList {
    fn new<'p>(rules: impl IntoIterator<Item = &'p Rule>) -> Self {
        let mut found = BTreeSet::from(["/".to_owned(), "/x".to_owned(), "/x/y.jsp".to_owned()]);
        let mut rules = rules.into_iter();
        while found.len() <= PATHS_MAX
            && let Some(rule) = rules.next()
        {
            found.extend(paths_of(&rule.matcher));
        }
        let pair = |path: String| PathPair {
            encoded: encoded(&path).replace('?', "%3F").replace('*', "%2A"),
            path,
        };
        Self {
            is_cut: rules.next().is_some(),
            paths: found.into_iter().map(pair).collect(),
        }
    }
}

fn paths_of(matcher: &Matcher) -> Vec<String> {
    let shown = matcher.shown();
    let text = if shown.starts_with('/') {
        shown
    } else {
        format!("/{shown}")
    };
    let mut found = Vec::new();
    for filled in [
        text.replace('*', "").replace('?', "x"),
        text.replace(['*', '?'], "x"),
    ] {
        let parent = filled.rsplit_once('/').map_or("/", |it| it.0).to_owned();
        let bare = filled.trim_end_matches('/');
        let beside = ["/", "/x", "x", "/x.jsp", ".jsp"].map(|it| format!("{bare}{it}"));
        found.extend(beside.into_iter().chain([filled.clone(), parent]));
    }
    found.retain(|it| can_be_written(it));
    found
}

const PATHS_MAX: usize = 5_000;
const REQUESTS_MAX: usize = 100_000;
const DIFFERENCES_MAX: usize = 50;
