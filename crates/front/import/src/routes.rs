//! Turns ordered rules into routes of the front, which the front orders by how specific they are.
//! A rule that an earlier one covers is not written. If the front would prefer a later rule to an earlier one that
//! matches some of the same paths, the later route excludes these paths. So for each path, the route of the earliest
//! rule is the most specific one that is left. Expressions keep their order, and come before a rule that yields to
//! them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::rc::Rc;

use catamaran_proxy::config::PathExpression;

use crate::condition::Scheme;
use crate::ledger::{Ledger, Weight};
use crate::matcher::{Common, Matcher, Rank};
use crate::methods::takes;
use crate::plan::{Access, Action, Plan, Rule, Schemes, VirtualHost};

/// A rule with the paths that its route excludes, because earlier rules decide about them.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) rule: Rule,
    /// Whether the route wins over expressions, if it would win without them.
    pub(crate) before_regex: bool,
    pub(crate) exclude: BTreeSet<String>,
}

/// The routes of a virtual host, for one set of hosts and listeners.
#[derive(Clone, Debug)]
pub(crate) struct RouteGroup {
    /// The index of the virtual host in the plan.
    pub(crate) host: usize,
    /// The hosts of the routes; empty: any host.
    pub(crate) hosts: Vec<String>,
    /// Indices of the routes' listeners; empty: all listeners.
    pub(crate) listeners: Vec<usize>,
    pub(crate) routes: Rc<[Route]>,
}

/// Names of a virtual host, and the listeners on which it has exactly these names.
struct ServedNames {
    /// Empty: any host.
    names: Vec<String>,
    listeners: Vec<usize>,
}

/// The routes of all virtual hosts, in the source's order: for each virtual host a group for each set of names that it
/// has on some listeners, then one without names for the listeners on which it is the default.
pub(crate) fn groups(plan: &Plan) -> Vec<RouteGroup> {
    // A test checks that the routes of a plan are computed once.
    #[cfg(test)]
    tests::GROUPS.with(|count| count.set(count.get() + 1));
    let with_wildcards = listeners_with_wildcards(plan);
    let mut groups = Vec::new();
    let mut taken: HashSet<(usize, &str)> = HashSet::new();
    for (host_index, host) in plan.hosts.iter().enumerate() {
        let routes: Rc<[Route]> = host_routes(plan, host).into();
        let mut served = names_by_listeners(host, &with_wildcards, &mut taken);
        if !host.default_on.is_empty() {
            served.push(ServedNames {
                names: Vec::new(),
                listeners: host.default_on.clone(),
            });
        }
        for mut served_names in served {
            // An empty list stands for all listeners.
            if served_names.listeners.len() == plan.listeners.len() {
                served_names.listeners.clear();
            }
            groups.push(RouteGroup {
                host: host_index,
                hosts: served_names.names,
                listeners: served_names.listeners,
                routes: Rc::clone(&routes),
            });
        }
    }
    groups
}

/// The listeners with a virtual host that has a name with a wildcard.
fn listeners_with_wildcards(plan: &Plan) -> HashSet<usize> {
    let mut listeners = HashSet::new();
    for host in &plan.hosts {
        if host.names.iter().any(|name| name.starts_with('*')) {
            listeners.extend(&host.listeners);
        }
    }
    listeners
}

/// The names to write for a virtual host. On each listener a name belongs to the first virtual host that has it:
/// `taken` has the names of earlier ones by listener, and gets those of this one.
fn names_by_listeners<'p>(
    host: &'p VirtualHost,
    with_wildcards: &HashSet<usize>,
    taken: &mut HashSet<(usize, &'p str)>,
) -> Vec<ServedNames> {
    let mut served: Vec<ServedNames> = Vec::new();
    for &listener in &host.listeners {
        // Names that are not written are taken as well: later virtual hosts get no requests for them.
        let mut names: Vec<String> = Vec::new();
        for name in &host.names {
            if taken.insert((listener, name)) {
                names.push(name.clone());
            }
        }
        // A default gets all hosts that no other name matches, so its own names are written only if a wildcard would
        // match them.
        let is_default = host.default_on.contains(&listener);
        let needs_no_names = is_default && !with_wildcards.contains(&listener);
        if names.is_empty() || needs_no_names {
            continue;
        }
        match served.iter_mut().find(|other| other.names == names) {
            Some(same) => same.listeners.push(listener),
            None => served.push(ServedNames {
                names,
                listeners: vec![listener],
            }),
        }
    }
    served
}

/// The schemes by which clients reach a virtual host. Those of a proxy may come by HTTPS without a TLS listener.
fn client_schemes(plan: &Plan, host: &VirtualHost) -> Schemes {
    let of_listeners = Schemes::of_listeners(plan, host);
    Schemes {
        https: of_listeners.https || plan.claims_scheme,
        ..of_listeners
    }
}

/// Closes rules for one scheme that share paths with a later rule, if the front would prefer the later rule and no
/// pattern can divide their paths.
pub(crate) fn close_crossing(plan: &mut Plan, ledger: &mut Ledger) {
    // Taken out, because `client_schemes` reads the plan while the hosts change.
    let mut hosts = std::mem::take(&mut plan.hosts);
    for host in &mut hosts {
        let schemes = client_schemes(plan, host);
        if !schemes.http || !schemes.https {
            continue;
        }
        for index in 0..host.rules.len() {
            let (rule, later) = (&host.rules[index], &host.rules[index + 1..]);
            if rule.scheme.is_none() || !later.iter().any(|other| is_crossed(rule, other)) {
                continue;
            }
            let text = "it holds for HTTP or HTTPS alone, and the front cannot tell its paths from those of another \
                        rule: it answers them with 403, or the old server keeps them. Give the rule a prefix of its \
                        own, or both schemes";
            ledger.say(Weight::Risk, rule.place.clone(), text);
            let matcher = rule.matcher.clone();
            host.rules[index] = Rule::new(rule.place.as_ref(), matcher, Action::Closed);
        }
    }
    plan.hosts = hosts;
}

/// Whether the front would prefer the route of a later rule for some paths of `rule`, and these paths cannot get a
/// route of their own.
fn is_crossed(rule: &Rule, later: &Rule) -> bool {
    // Expressions keep the order of the file.
    let are_expressions = later.matcher.is_expression() && rule.matcher.is_expression();
    let is_outranked = later.matcher.rank() >= rule.matcher.rank();
    if are_expressions || !is_outranked || gives_way(rule, later) {
        return false;
    }
    match later.matcher.common(&rule.matcher) {
        Common::Nothing => false,
        // All paths of the rule are also paths of the later one, which must keep them for the other scheme.
        Common::Set(common) => common == rule.matcher && common != later.matcher,
        Common::Unsaid => true,
    }
}

/// Closes rules that yield to an expression which the front cannot ask for their paths. That is so if a rule behind them,
/// which yields to none, has paths of the expression, and an earlier expression has some of its paths: its route can then
/// not come before all expressions, so that the later one excludes all of its paths.
pub(crate) fn close_unasked(plan: &mut Plan, ledger: &mut Ledger) {
    for host in &mut plan.hosts {
        for index in unasked(&host.rules) {
            let rule = &mut host.rules[index];
            let text = "an expression decides about some of its paths in the source, and the front cannot ask it before \
                        this: it is closed";
            ledger.say(Weight::Risk, rule.place.clone(), text);
            rule.action = Action::Closed;
        }
    }
}

/// The indices of the rules that [`close_unasked`] closes.
fn unasked(rules: &[Rule]) -> Vec<usize> {
    let yielding: Vec<usize> = (0..rules.len()).filter(|&it| rules[it].yields).collect();
    let is_expression = |it: &&Rule| it.matcher.is_expression();
    // The comparisons below are only for the few files in which an expression comes first.
    let first = rules.iter().position(|it| it.matcher.is_expression());
    let (Some(first), false) = (first, yielding.is_empty()) else {
        return Vec::new();
    };
    let is_firm = |it: &usize| !rules[*it].yields && !rules[*it].matcher.is_expression();
    let firm = (first..rules.len()).filter(is_firm).filter(|&at| {
        let mut before = rules[first..at].iter().filter(is_expression);
        before.any(|it| it.matcher.overlaps(&rules[at].matcher))
    });
    let mut found = BTreeSet::new();
    for at in firm {
        let later = rules[at..].iter().filter(is_expression);
        let asked: Vec<&Rule> = later
            .filter(|it| it.matcher.overlaps(&rules[at].matcher))
            .collect();
        for &index in yielding.iter().take_while(|it| **it < at) {
            let gives_way_to = |it: &&Rule| it.matcher.overlaps(&rules[index].matcher);
            if asked.iter().any(gives_way_to) && rules[index].matcher.overlaps(&rules[at].matcher) {
                found.insert(index);
            }
        }
    }
    found.into_iter().collect()
}

/// Closes hosts with more expressions than a file may have.
pub(crate) fn close_beyond(plan: &mut Plan, ledger: &mut Ledger) {
    // The limit is far above the expressions of most plans. So their routes need not be computed here.
    if plan.hosts.iter().map(expressions_max).sum::<usize>() <= PathExpression::COUNT_MAX {
        return;
    }
    let mut counts = vec![0; plan.hosts.len()];
    for group in groups(plan) {
        let routes = group.routes.iter();
        let expressions = routes.filter(|route| route.rule.matcher.is_expression());
        counts[group.host] += expressions.count();
    }
    let mut available = PathExpression::COUNT_MAX;
    // Earlier hosts have precedence; a later one may still fit if one before it does not.
    for (host, count) in plan.hosts.iter_mut().zip(counts) {
        if let Some(remaining) = available.checked_sub(count) {
            available = remaining;
            continue;
        }
        let text = "the expressions of this host are more than a file may have: all of it is closed. Use prefixes and \
                    suffixes where they say the same";
        ledger.say(Weight::Risk, host.place.clone(), text);
        let place = host.place.as_ref();
        host.rules = vec![Rule::new(place, Matcher::everything(), Action::Closed)];
    }
}

/// The most expressions that the routes of a virtual host can have. A rule has at most two routes, one for each scheme,
/// in each group; a host has at most one group for each listener, and one as the default.
fn expressions_max(host: &VirtualHost) -> usize {
    let rules = host.rules.iter();
    let expressions = rules.filter(|rule| rule.matcher.is_expression());
    expressions.count() * 2 * (host.listeners.len() + 1)
}

/// The routes of a virtual host, in the order of its rules. Rules whose path no route can express are left out; paths
/// that no rule decides get [`Action::Files`].
fn host_routes(plan: &Plan, host: &VirtualHost) -> Vec<Route> {
    let schemes = client_schemes(plan, host);
    let mut rules: Vec<Rule> = host
        .rules
        .iter()
        .filter(|rule| match rule.scheme {
            Some(Scheme::Http) => schemes.http,
            Some(Scheme::Https) => schemes.https,
            None => true,
        })
        .filter(|rule| rule.matcher.can_be_written())
        .cloned()
        .map(closed_if_unwritable)
        .collect();
    rules.push(Rule::new(
        host.place.as_ref(),
        Matcher::everything(),
        Action::Files,
    ));
    if schemes.http && schemes.https {
        rules = parted(with_schemes(rules));
    } else {
        // All clients have the scheme that is left.
        rules.iter_mut().for_each(|rule| rule.scheme = None);
    }
    excluding(rules)
}

/// Whether a later rule is asked before an earlier one, like an expression after a prefix in nginx.
pub(crate) fn gives_way(before: &Rule, later: &Rule) -> bool {
    before.yields && later.matcher.is_expression()
}

/// Whether a text has a control character, which the front refuses in every path.
fn has_control(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_control())
}

/// The index of the first earlier rule that yields to `rule`; the greatest index if none does. From there on, rules
/// that are no expressions decide only about paths that `rule` does not match.
fn first_to_give_way<'r>(rule: &Rule, mut earlier: impl Iterator<Item = &'r Rule>) -> usize {
    if !rule.matcher.is_expression() {
        return usize::MAX;
    }
    let first = earlier.position(|before| gives_way(before, rule));
    first.unwrap_or(usize::MAX)
}

/// Closes a rule that replaces a part of the path, if the front cannot do that for its matcher, or if the new path has
/// a control character.
fn closed_if_unwritable(mut rule: Rule) -> Rule {
    let is_prefix = matches!(rule.matcher, Matcher::Prefix(_));
    let is_forwarded = matches!(rule.action, Action::Forward { .. });
    // The new path is a whole one.
    let is_whole =
        rule.matcher.is_expression() || is_forwarded && matches!(rule.matcher, Matcher::Exact(_));
    let is_unwritable = match &rule.action {
        // What is behind the prefix is known only for a prefix.
        Action::Redirect { to, .. } => to.contains("{rest") && !is_prefix,
        _ => match rule.action.rewrite_mut() {
            Some(path) => has_control(path) || (!is_prefix && !is_whole),
            None => false,
        },
    };
    if is_unwritable {
        rule.action = Action::Closed;
    }
    rule
}

/// Restricts a later rule to the other scheme if an earlier rule matches all its paths for one scheme. If the earlier
/// rule matches only some of its paths, these get a copy of the earlier rule.
fn with_schemes(rules: Vec<Rule>) -> Vec<Rule> {
    let mut done: Vec<Rule> = Vec::new();
    for mut rule in rules {
        let mut copies: Vec<(usize, Rule)> = Vec::new();
        let end = first_to_give_way(&rule, done.iter());
        for (index, before) in done.iter().enumerate() {
            let takes_all_of_scheme =
                before.scheme.is_some() && before.methods.is_empty() && before.tests.is_empty();
            let is_asked_before = index < end || before.matcher.is_expression();
            if !takes_all_of_scheme || !is_asked_before {
                continue;
            }
            match before.matcher.common(&rule.matcher) {
                // The earlier rule has all paths of this one.
                Common::Set(common) if common == rule.matcher && rule.scheme.is_none() => {
                    rule.scheme = match before.scheme {
                        Some(Scheme::Http) => Some(Scheme::Https),
                        _ => Some(Scheme::Http),
                    };
                }
                // The shared paths are only a part of the earlier rule's. (If they are all, its own route is the more
                // specific one; with one scheme, the later route excludes them.)
                Common::Set(common) if common != before.matcher && rule.scheme != before.scheme => {
                    copies.push((index, before.narrowed(common)));
                }
                _ => {}
            }
        }
        // A copy must come before the rule that it is a part of, which would otherwise cover it. The last copy is
        // inserted first, so that the indices of the others stay right.
        for (index, copy) in copies.into_iter().rev() {
            done.insert(index, copy);
        }
        done.push(rule);
    }
    done
}

/// Divides rules for some methods or values into one for each scheme, if a later rule has a scheme, and the front would
/// ask its route first for the same paths: among routes of one path, or with patterns of one rank, it prefers one with a
/// scheme to one with methods or tests.
fn parted(rules: Vec<Rule>) -> Vec<Rule> {
    let mut later = RankedMatchers::default();
    let mut done: Vec<Rule> = Vec::with_capacity(rules.len());
    // From the last rule to the first, so that all later ones are known.
    for rule in rules.into_iter().rev() {
        let is_limited = !rule.methods.is_empty() || !rule.tests.is_empty();
        if rule.scheme.is_some() {
            later.add(&rule.matcher);
            done.push(rule);
        } else if is_limited && later.meets(&rule.matcher) {
            later.add(&rule.matcher);
            let http = Rule {
                scheme: Some(Scheme::Http),
                ..rule.clone()
            };
            let https = Rule {
                scheme: Some(Scheme::Https),
                ..rule
            };
            done.extend([https, http]);
        } else {
            done.push(rule);
        }
    }
    done.reverse();
    done
}

/// The matchers of rules with a scheme, by their rank and their texts.
///
/// A path or suffix and a pattern of one rank may have paths in common. They need no comparison: the front asks routes
/// with a path or suffix before those with a pattern, whatever schemes these have.
#[derive(Default)]
struct RankedMatchers(HashMap<Rank, BTreeMap<String, Matcher>>);

impl RankedMatchers {
    fn add(&mut self, matcher: &Matcher) {
        let of_rank = self.0.entry(matcher.rank()).or_default();
        of_rank.insert(matcher.shown(), matcher.clone());
    }

    /// Whether a matcher of the same rank and kind has some of the same paths. Expressions keep their order, so they
    /// count as apart.
    fn meets(&self, matcher: &Matcher) -> bool {
        let Some(of_rank) = self.0.get(&matcher.rank()) else {
            return false;
        };
        match matcher {
            Matcher::Expression(_) => false,
            Matcher::Pattern(_) => {
                let mut others = of_rank.values();
                others.any(|it| matches!(it, Matcher::Pattern(_)) && it.overlaps(matcher))
            }
            // Two of these of one rank have the same paths, or none in common.
            Matcher::Exact(_) | Matcher::Prefix(_) | Matcher::Suffix { .. } => {
                of_rank.contains_key(&matcher.shown())
            }
        }
    }
}

/// Makes routes of rules: each excludes the paths about which earlier, less specific rules decide. A rule that no
/// request reaches gets no route.
fn excluding(rules: Vec<Rule>) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    let mut index = Earlier::default();
    for mut rule in rules {
        let mut earlier = index.related(&rule.matcher);
        earlier.retain(|&at| !gives_way(&routes[at].rule, &rule));
        if !rule.methods.is_empty() {
            let rules_before = earlier.iter().map(|&at| &routes[at].rule);
            remove_answered_methods(&mut rule, rules_before);
            // An empty list would stand for all methods.
            if rule.methods.is_empty() {
                continue;
            }
        }
        let end = first_to_give_way(&rule, routes.iter().map(|route| &route.rule));
        let is_asked_before = |&at: &usize| at < end || routes[at].rule.matcher.is_expression();
        let asked: Vec<usize> = earlier.iter().copied().filter(is_asked_before).collect();
        let covers = |position: usize| {
            take_same_requests(position, &asked, &routes, &rule)
                && routes[asked[position]].rule.matcher.covers(&rule.matcher)
        };
        // No request reaches the rule.
        if (0..asked.len()).any(covers) {
            continue;
        }
        let exclude = exclusions(&rule, &earlier, &mut routes);
        index.add(&rule.matcher, routes.len());
        routes.push(Route {
            rule,
            before_regex: false,
            exclude,
        });
    }
    routes
}

/// The paths that the route of `rule` excludes, because the front would prefer it to earlier routes, which decide about
/// them. If the earlier route can win over all expressions, it is changed to do so, and an expression need not exclude
/// its paths.
fn exclusions(rule: &Rule, earlier: &[usize], routes: &mut [Route]) -> BTreeSet<String> {
    let mut exclude = BTreeSet::new();
    for (position, &at) in earlier.iter().enumerate() {
        let before = &routes[at].rule.matcher;
        let is_outranked = rule.matcher.rank() >= before.rank();
        // The front asks expressions in their order, and before rules that are none, so an earlier expression needs no
        // exclusion.
        if !is_outranked || before.is_expression() || !before.overlaps(&rule.matcher) {
            continue;
        }
        if rule.matcher.is_expression() && is_before_all(&routes[..at], before) {
            routes[at].before_regex = true;
        } else if take_same_requests(position, earlier, routes, rule) {
            exclude.extend(before.exclusion());
        }
    }
    exclude
}

/// Removes from a rule the methods that earlier rules for the same paths answer.
fn remove_answered_methods<'r>(rule: &mut Rule, earlier: impl Iterator<Item = &'r Rule>) {
    for before in earlier {
        let has_scheme = before.scheme.is_none() || before.scheme == rule.scheme;
        if has_scheme && before.matcher == rule.matcher && takes_tests(before, rule) {
            rule.methods
                .retain(|method| !takes(&before.methods, method));
        }
    }
}

/// Whether an earlier route, together with those for the same paths, applies to all requests of a later rule, apart from
/// their paths. The route is that at `position` of `earlier`, which has indices of `routes`.
fn take_same_requests(position: usize, earlier: &[usize], routes: &[Route], later: &Rule) -> bool {
    let before = &routes[earlier[position]].rule;
    let takes_others = |rule: &Rule| {
        let takes_scheme = rule.scheme.is_none() || rule.scheme == later.scheme;
        takes_scheme && takes_tests(rule, later)
    };
    if before.methods.is_empty() || !takes_others(before) {
        return takes_others(before);
    }
    // Its methods may be divided among several routes.
    let is_taken = |method: &String| {
        let mut rules = earlier.iter().map(|&at| &routes[at].rule);
        rules.any(|it| {
            takes(&it.methods, method) && it.matcher == before.matcher && takes_others(it)
        })
    };
    // Routes for some methods do not apply to all requests of a rule for all methods.
    !later.methods.is_empty() && later.methods.iter().all(is_taken)
}

/// Whether a rule applies to all requests that pass the tests of another rule.
fn takes_tests(rule: &Rule, other: &Rule) -> bool {
    rule.tests.iter().all(|test| other.tests.contains(test))
}

/// Whether no earlier route is an expression that may match some of these paths: a route for them can then come before
/// all expressions.
fn is_before_all(earlier: &[Route], matcher: &Matcher) -> bool {
    let mut matchers = earlier.iter().map(|route| &route.rule.matcher);
    !matchers.any(|before| before.is_expression() && before.overlaps(matcher))
}

/// Finds earlier rules by the beginnings of their paths, so that a rule need not be compared with all others.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    /// Indices of rules for one path, or for a path and all below it.
    plain: BTreeMap<String, Vec<usize>>,
    /// Indices of rules with a pattern, by the text before its first wildcard.
    patterns: BTreeMap<String, Vec<usize>>,
}

impl Earlier {
    pub(crate) fn add(&mut self, matcher: &Matcher, index: usize) {
        let map = if matcher.is_plain() {
            &mut self.plain
        } else {
            &mut self.patterns
        };
        let start = matcher.start().into_owned();
        map.entry(start).or_default().push(index);
    }

    /// Indices of the rules that may share paths with this matcher, and either cover it or are less specific.
    pub(crate) fn related(&self, matcher: &Matcher) -> Vec<usize> {
        let start = matcher.start();
        let mut found: Vec<usize> = Vec::new();
        let mut take = |indices: Option<&Vec<usize>>| found.extend(indices.into_iter().flatten());
        // Plain sets contain the paths only if they end at a slash, or are the whole start.
        let slashes = start.match_indices('/').map(|(at, _)| at);
        for end in slashes.chain([start.len()]) {
            take(self.plain.get(&start[..end]));
        }
        // Patterns can end at any character.
        if !self.patterns.is_empty() {
            let characters = start.char_indices().map(|(at, _)| at);
            for end in characters.chain([start.len()]) {
                take(self.patterns.get(&start[..end]));
            }
        }
        match matcher {
            // Paths that begin with more than this path are more specific, except those of `/path/?`.
            Matcher::Exact(_) => {}
            Matcher::Prefix(path) => take(self.patterns.get(&format!("{path}/"))),
            Matcher::Suffix { .. } | Matcher::Pattern(_) | Matcher::Expression(_) => {
                for map in [&self.plain, &self.patterns] {
                    let after = map.range::<str, _>((Bound::Excluded(&*start), Bound::Unbounded));
                    let longer = after.take_while(|(text, _)| text.starts_with(&*start));
                    longer.for_each(|(_, indices)| take(Some(indices)));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// What a rule does with requests after its access rules: 403 if they let in nobody, [`Action::Closed`] if only the
/// old server can decide, else the rule's action.
pub(crate) fn outcome(rule: &Rule) -> Action {
    match &rule.settings.access {
        Access::Nobody => Action::Answer(403),
        Access::Open => rule.action.clone(),
        Access::Clients(tests) if tests.are_of_networks() => rule.action.clone(),
        Access::Clients(_) | Access::Methods { .. } | Access::Unsaid => Action::Closed,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use catamaran_proxy::config::{Config, RouteTarget};
    use catamaran_proxy::explain::{FoundRoute, RouteFinder, RouteRequest};
    use proptest::prelude::*;

    use super::*;
    use crate::emit::{self, Form};
    use crate::matcher::can_be_written;
    use crate::matcher::tests::any_matcher;
    use crate::plan::first_match;

    thread_local! {
        /// How often the routes of a plan were computed.
        pub(crate) static GROUPS: Cell<usize> = const { Cell::new(0) };
    }

    fn rule(matcher: Matcher, status: u16) -> Rule {
        Rule::new(None, matcher, Action::Answer(status))
    }

    #[test]
    fn an_earlier_rule_wins_although_a_later_one_is_more_specific() {
        let routes = excluding(vec![
            rule(Matcher::pattern("/*.jsp"), 201),
            rule(Matcher::prefix("/app"), 202),
            rule(Matcher::prefix("/app/x"), 203),
            rule(Matcher::everything(), 204),
            rule(Matcher::prefix("/never"), 205),
        ]);
        let row = |path: &str, exclude: &str| (path.to_owned(), exclude.to_owned());
        assert_eq!(
            shown(&routes),
            [
                row("/*.jsp", ""),
                row("/app", "/*.jsp"),
                // `/*.jsp` and `/app` are more specific than it in any case.
                row("/", ""),
                // `/app` covers `/app/x`, and `/` covers `/never`, so these are not written.
            ]
        );
    }

    proptest! {
        #[test]
        fn routes_are_as_by_comparing_each_with_all(
            matchers in proptest::collection::vec(any_matcher(), 0..8),
        ) {
            let rules: Vec<Rule> = matchers.into_iter().map(|it| rule(it, 200)).collect();
            let mut expected: Vec<(Matcher, bool, BTreeSet<String>)> = Vec::new();
            for rule in &rules {
                let of = &rule.matcher;
                if expected.iter().any(|it| it.0.covers(of)) {
                    continue;
                }
                let mut exclude = BTreeSet::new();
                for at in 0..expected.len() {
                    let before = expected[at].0.clone();
                    let meets = |it: &&(Matcher, bool, BTreeSet<String>)| {
                        it.0.is_expression() && it.0.overlaps(&before)
                    };
                    let is_first = !expected[..at].iter().any(|it| meets(&it));
                    if before.is_expression() || of.rank() < before.rank() || !before.overlaps(of) {
                        continue;
                    }
                    if of.is_expression() && is_first {
                        expected[at].1 = true;
                    } else {
                        exclude.extend(before.exclusion());
                    }
                }
                expected.push((of.clone(), false, exclude));
            }
            let routes = excluding(rules).into_iter();
            let found = routes.map(|it| (it.rule.matcher, it.before_regex, it.exclude));
            prop_assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }

    proptest! {
        #[test]
        fn the_front_decides_as_the_rules_do(
            matchers in proptest::collection::vec((any_matcher(), any::<bool>()), 0..8),
            paths in proptest::collection::vec("/[ab./]{0,7}", 20),
        ) {
            let mut plan = Plan::default();
            plan.listener("127.0.0.1:80", 80);
            // nginx's expressions come last, and what yields is before them; httpd's stand anywhere.
            let yields = matchers.first().is_some_and(|it| it.1);
            let number = |(at, it): (usize, (Matcher, bool))| {
                let status = 200 + u16::try_from(at).unwrap();
                (it.1, rule(it.0, status))
            };
            let mut rules: Vec<(bool, Rule)> = matchers.into_iter().enumerate().map(number).collect();
            if yields {
                for (yields, rule) in &mut rules {
                    let is_exact = matches!(rule.matcher, Matcher::Exact(_));
                    rule.yields = *yields && !is_exact && !rule.matcher.is_expression();
                }
                rules.sort_by_key(|it| it.1.matcher.is_expression());
            }
            plan.hosts.push(VirtualHost {
                listeners: vec![0],
                default_on: vec![0],
                rules: rules.into_iter().map(|it| it.1).collect(),
                ..VirtualHost::default()
            });
            let written = emit::write(&plan, &groups(&plan), Form { keep: None, inline_secrets: true, secrets_of: "", closed: &[], omitted: &[] });
            let config = catamaran_config::parse("t.toml", &written.text).unwrap().config;
            let finder = RouteFinder::new(&config).unwrap();
            let rules = &plan.hosts[0].rules;
            let first = first_match(rules);
            for path in paths.iter().filter(|it| can_be_written(it)) {
                let asked = RouteRequest { host: Some("h"), path, listener: 0, secure: false, meets_conditions: false };
                let FoundRoute::Route(found) = finder.find(asked) else {
                    continue;
                };
                let status = match &config.routes[found].target {
                    RouteTarget::Status(status) => status.as_u16(),
                    _ => 0,
                };
                let expected = match first.find(path, |_| true).map(|at| &rules[at].action) {
                    Some(Action::Answer(status)) => *status,
                    _ => 404,
                };
                prop_assert_eq!(status, expected, "{}\n{}", path, written.text);
            }
        }
    }

    /// For which requests a rule is: the place of its paths, its scheme, and its test; `2` is none.
    type Limits = (usize, u8, u8);

    fn limited(sets: &[Matcher], (set, scheme, test): Limits, status: u16) -> Rule {
        let mut rule = rule(sets[set].clone(), status);
        rule.scheme = [Some(Scheme::Http), Some(Scheme::Https), None][usize::from(scheme)];
        let tests = (0..2).filter(|it| *it == test);
        rule.tests
            .extend(tests.map(|it| format!("header:x{it} ~ ^a$")));
        rule
    }

    /// The front's file for a server with these rules, whose statuses count from 200 on.
    fn written(sets: &[Matcher], limits: &[Limits]) -> String {
        let rules = limits.iter().zip(200..);
        let mut plan = Plan::default();
        plan.listener("127.0.0.1:80", 80);
        plan.claims_scheme = true;
        plan.hosts.push(VirtualHost {
            listeners: vec![0],
            default_on: vec![0],
            rules: rules
                .map(|(&it, status)| limited(sets, it, status))
                .collect(),
            ..VirtualHost::default()
        });
        let form = Form {
            keep: None,
            inline_secrets: true,
            secrets_of: "",
            closed: &[],
            omitted: &[],
        };
        emit::write(&plan, &groups(&plan), form).text
    }

    /// The status of the route that the front finds, 0 if it has none; `None`: it finds no route.
    fn answered(config: &Config, found: FoundRoute) -> Option<u16> {
        let FoundRoute::Route(index) = found else {
            return None;
        };
        Some(match &config.routes[index].target {
            RouteTarget::Status(status) => status.as_u16(),
            _ => 0,
        })
    }

    /// The status by the first of these rules that is for a request with this path, over TLS or not, which passes the
    /// test or does not.
    fn expected(
        sets: &[Matcher],
        limits: &[Limits],
        (path, secure, passes): (&str, bool, bool),
    ) -> u16 {
        let decides = |&(set, scheme, test): &Limits| {
            let is_scheme = scheme == 2 || (scheme == 1) == secure;
            sets[set].has(path) && is_scheme && (test == 2 || passes)
        };
        let place = limits.iter().position(decides);
        place.map_or(404, |it| 200 + u16::try_from(it).unwrap())
    }

    proptest! {
        #[test]
        fn the_front_decides_by_schemes_and_tests_as_the_rules_do(
            mut limits in proptest::collection::vec((0..4_usize, 0..3_u8, 0..3_u8), 0..8),
            asked in proptest::collection::vec(("/[ab/]{0,4}", any::<bool>(), any::<bool>()), 20),
        ) {
            let sets = [
                Matcher::Exact("/a/b".to_owned()),
                Matcher::pattern("/a/b*"),
                Matcher::pattern("/a/*"),
                Matcher::everything(),
            ];
            // As in nginx the longest path comes first, but for what redirects all of a scheme.
            let before = limits.iter().take_while(|it| it.2 == 2).count();
            limits[..before].iter_mut().for_each(|it| it.0 = 3);
            limits[before..].sort_by_key(|it| it.0);
            let text = written(&sets, &limits);
            let config = catamaran_config::parse("t.toml", &text).unwrap().config;
            let finder = RouteFinder::new(&config).unwrap();
            for (path, secure, passes) in asked.iter().filter(|it| can_be_written(&it.0)) {
                let request = RouteRequest {
                    host: Some("h"), path, listener: 0, secure: *secure, meets_conditions: *passes,
                };
                let Some(status) = answered(&config, finder.find(request)) else {
                    continue;
                };
                let expected = expected(&sets, &limits, (path, *secure, *passes));
                prop_assert_eq!(status, expected, "{} {} {}\n{}", path, secure, passes, text);
            }
        }

        #[test]
        fn the_first_of_the_same_paths_decides_whatever_scheme_and_test_it_has(
            limits in proptest::collection::vec((0..1_usize, 0..3_u8, 0..3_u8), 0..8),
            by_methods in any::<bool>(), secure in any::<bool>(), passed in 0..4_u8,
        ) {
            let all = [Matcher::everything()];
            let of_methods = |mut rule: Rule| {
                if by_methods {
                    rule.methods = std::mem::take(&mut rule.tests);
                }
                rule
            };
            let rules = limits.iter().zip(200..).map(|(&it, status)| of_methods(limited(&all, it, status)));
            let routes = excluding(parted(with_schemes(rules.collect())));
            let is_scheme = |it: Option<Scheme>| it.is_none_or(|it| (it == Scheme::Https) == secure);
            let passes = |test: &String| (0..2).any(|it| passed & 1 << it != 0 && test.contains(&format!("x{it}")));
            // A request has one method.
            prop_assume!(!by_methods || passed < 3);
            let takes = |it: &&Rule| {
                is_scheme(it.scheme)
                    && it.tests.iter().all(passes)
                    && (it.methods.is_empty() || it.methods.iter().any(passes))
            };
            // As the front ranks routes of the same paths.
            let rank = |it: &&Rule| {
                (it.scheme.is_none(), it.methods.is_empty(), std::cmp::Reverse(it.tests.len()))
            };
            let found = routes.iter().map(|it| &it.rule).filter(takes).min_by_key(rank);
            let has = |test: u8| test == 2 || passed & 1 << test != 0;
            let is = |scheme: u8| scheme == 2 || (scheme == 1) == secure;
            let expected = limits.iter().position(|it| is(it.1) && has(it.2));
            let status = expected.map(|it| Action::Answer(200 + u16::try_from(it).unwrap()));
            prop_assert_eq!(found.map(|it| it.action.clone()), status);
        }
    }

    proptest! {
        #[test]
        fn the_first_of_overlapping_paths_of_one_rank_decides(
            limits in proptest::collection::vec((0..4_usize, 0..3_u8, 0..2_u8), 0..6),
            paths in proptest::collection::vec("/[ab./]{2,6}", 20),
            secure in any::<bool>(), passes in any::<bool>(),
        ) {
            let sets = [
                Matcher::Suffix { path: "/a".to_owned(), suffix: ".b".to_owned() },
                Matcher::pattern("/a/?.b"),
                Matcher::prefix("/a.b"),
                Matcher::pattern("/a?b/*"),
            ];
            prop_assert!(sets.iter().all(|it| it.rank() == sets[0].rank()));
            // Each rule with a limit is followed by one for all other requests for its paths, as readers make them.
            let with_rest = |&(set, scheme, test): &Limits| [(set, scheme, test), (set, 2, 2)];
            let limits: Vec<Limits> = limits.iter().flat_map(with_rest).collect();
            let text = written(&sets, &limits);
            let config = catamaran_config::parse("t.toml", &text).unwrap().config;
            let finder = RouteFinder::new(&config).unwrap();
            for path in paths.iter().filter(|it| can_be_written(it)) {
                let request = RouteRequest { host: Some("h"), path, listener: 0, secure, meets_conditions: passes };
                let Some(status) = answered(&config, finder.find(request)) else {
                    continue;
                };
                let expected = expected(&sets, &limits, (path, secure, passes));
                prop_assert_eq!(status, expected, "{} {} {}\n{}", path, secure, passes, text);
            }
        }
    }

    /// The texts of routes with what they exclude.
    fn shown(routes: &[Route]) -> Vec<(String, String)> {
        let text = |it: &Route| {
            let exclude: Vec<&str> = it.exclude.iter().map(String::as_str).collect();
            (it.rule.matcher.shown(), exclude.join(" "))
        };
        routes.iter().map(text).collect()
    }

    #[test]
    fn methods_that_are_divided_among_rules_count_together() {
        let of = |matcher: &Matcher, methods: &[&str], status: u16| {
            let mut rule = rule(matcher.clone(), status);
            rule.methods = methods.iter().map(|it| (*it).to_owned()).collect();
            rule
        };
        let (app, pages) = (Matcher::prefix("/app"), Matcher::pattern("/*.x"));
        let both = ["GET", "POST"];
        let row = |path: &str, exclude: &str| (path.to_owned(), exclude.to_owned());
        // The first two answer both methods, so nothing below `/app` reaches the third.
        let below = Matcher::prefix("/app/x");
        let routes = excluding(vec![
            of(&app, &["GET"], 201),
            of(&app, &["POST"], 202),
            of(&below, &both, 203),
            of(&below, &["PUT"], 204),
        ]);
        assert_eq!(
            shown(&routes),
            [row("/app", ""), row("/app", ""), row("/app/x", "")]
        );
        assert_eq!(routes[2].rule.methods, ["PUT"]);
        let routes = excluding(vec![
            of(&pages, &["GET"], 201),
            of(&pages, &both, 202),
            of(&app, &both, 203),
        ]);
        let expected = [row("/*.x", ""), row("/*.x", ""), row("/app", "/*.x")];
        assert_eq!(shown(&routes), expected);
    }

    #[test]
    fn a_redirect_of_one_scheme_leaves_the_other() {
        let mut first = rule(Matcher::everything(), 301);
        first.scheme = Some(Scheme::Http);
        let rules = with_schemes(vec![first, rule(Matcher::prefix("/app"), 200)]);
        assert_eq!(rules[1].scheme, Some(Scheme::Https));
    }
}
