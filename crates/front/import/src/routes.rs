//! Turns ordered rules into routes of the front, which the front orders by how specific they are.
//!
//! A rule that an earlier one covers is not written. Where the front would prefer a later rule to an earlier one that
//! matches some of the same paths, the later route excludes these paths. So among all routes left for a path, that of
//! the earliest rule is the most specific.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound;
use std::rc::Rc;

use crate::condition::Scheme;
use crate::ledger::{Ledger, Weight};
use crate::matcher::{Common, Matcher, can_be_written};
use crate::plan::{Access, Action, Plan, Rule, VirtualHost};

/// A rule with the paths that its route excludes, because earlier rules decide about them.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) rule: Rule,
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

/// The routes of all virtual hosts, in the source's order.
pub(crate) fn groups(plan: &Plan) -> Vec<RouteGroup> {
    #[cfg(test)]
    tests::GROUPS.with(|it| it.set(it.get() + 1));
    let mut groups = Vec::new();
    let mut taken: HashSet<(usize, &str)> = HashSet::new();
    let is_wild = |host: &&VirtualHost| host.names.iter().any(|it| it.starts_with('*'));
    let wild: HashSet<usize> = plan
        .hosts
        .iter()
        .filter(is_wild)
        .flat_map(|it| it.listeners.iter().copied())
        .collect();
    for (number, host) in plan.hosts.iter().enumerate() {
        let routes: Rc<[Route]> = host_routes(plan, host).into();
        let mut named: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
        for &listener in &host.listeners {
            let free = host
                .names
                .iter()
                .filter(|name| taken.insert((listener, name.as_str())));
            let names: Vec<String> = free.cloned().collect();
            // It serves every host that no other has, so its names are written only beside wildcards.
            let is_default = host.default_on.contains(&listener);
            if names.is_empty() || is_default && !wild.contains(&listener) {
                continue;
            }
            match named.iter_mut().find(|it| it.0 == names) {
                Some(known) => known.1.push(listener),
                None => named.push((names, vec![listener])),
            }
        }
        if !host.default_on.is_empty() {
            named.push((Vec::new(), host.default_on.clone()));
        }
        for (hosts, listeners) in named {
            let all = listeners.len() == plan.listeners.len();
            groups.push(RouteGroup {
                host: number,
                hosts,
                listeners: if all { Vec::new() } else { listeners },
                routes: Rc::clone(&routes),
            });
        }
    }
    groups
}

/// Whether clients reach a virtual host by HTTP, and whether by HTTPS.
fn schemes(plan: &Plan, host: &VirtualHost) -> (bool, bool) {
    let tls = |listener: &usize| {
        plan.listeners
            .get(*listener)
            .is_some_and(|it| it.tls.is_some())
    };
    let some_tls = host.listeners.iter().any(tls) || plan.claims_scheme;
    (!host.listeners.iter().all(tls), some_tls)
}

/// Closes rules for one scheme that share paths with a later rule, if the front would prefer the later one and no
/// pattern separates their paths.
pub(crate) fn close_crossing(plan: &mut Plan, ledger: &mut Ledger) {
    let mut hosts = std::mem::take(&mut plan.hosts);
    for host in &mut hosts {
        if schemes(plan, host) != (true, true) {
            continue;
        }
        for at in 0..host.rules.len() {
            let (before, later) = host.rules[at..].split_at_mut(1);
            let Some(before) = before.first_mut().filter(|it| it.scheme.is_some()) else {
                continue;
            };
            let crosses = |it: &Rule| {
                let is_outranked = it.matcher.rank() >= before.matcher.rank();
                is_outranked
                    && match it.matcher.common(&before.matcher) {
                        Common::Nothing => false,
                        Common::Set(set) => set == before.matcher && set != it.matcher,
                        Common::Unsaid => true,
                    }
            };
            if later.iter().any(crosses) {
                let text = "it holds for HTTP or HTTPS alone, and the front cannot tell its paths from those of \
                            another rule: it answers them with 403, or the old server keeps them. Give the rule a prefix of \
                            its own, or both schemes";
                ledger.say(Weight::Risk, before.place.clone(), text);
                *before = Rule::new(
                    before.place.as_ref(),
                    before.matcher.clone(),
                    Action::Closed,
                );
            }
        }
    }
    plan.hosts = hosts;
}

/// The routes of a virtual host, in the order of its rules. Rules whose path no route can express are left out; paths
/// that no rule decides get [`Action::Files`].
fn host_routes(plan: &Plan, host: &VirtualHost) -> Vec<Route> {
    let (some_clear, some_tls) = schemes(plan, host);
    let mut rules: Vec<Rule> = host
        .rules
        .iter()
        .filter(|rule| match rule.scheme {
            Some(Scheme::Http) => some_clear,
            Some(Scheme::Https) => some_tls,
            None => true,
        })
        .filter(|rule| {
            can_be_written(&rule.matcher.exclusion()) && !has_control(&rule.matcher.shown())
        })
        .cloned()
        .map(closed_if_unwritable)
        .collect();
    rules.push(Rule::new(
        host.place.as_ref(),
        Matcher::everything(),
        Action::Files,
    ));
    if some_tls && some_clear {
        rules = with_schemes(rules);
    } else {
        rules.iter_mut().for_each(|rule| rule.scheme = None);
    }
    excluding(rules)
}

/// Whether a text has a control character, which the front refuses in every path.
fn has_control(text: &str) -> bool {
    text.bytes().any(|it| it.is_ascii_control())
}

/// Closes a rule with a rewrite whose paths are no prefix any more, for the front can only rewrite prefixes.
fn closed_if_unwritable(mut rule: Rule) -> Rule {
    let is_prefix = matches!(rule.matcher, Matcher::Prefix(_));
    let is_odd = rule.action.rewrite_mut().is_some_and(|it| has_control(it));
    let takes_rest = matches!(&rule.action, Action::Redirect { to, .. } if to.contains("{rest"));
    if is_odd || !is_prefix && (rule.action.rewrite_mut().is_some() || takes_rest) {
        rule.action = Action::Closed;
    }
    rule
}

/// Restricts later rules to the other scheme where an earlier rule takes all their paths for one scheme.
fn with_schemes(rules: Vec<Rule>) -> Vec<Rule> {
    let mut done: Vec<Rule> = Vec::new();
    for mut rule in rules {
        let mut copies: Vec<(usize, Rule)> = Vec::new();
        let earlier = done.iter().enumerate().filter(|it| it.1.scheme.is_some());
        for (at, before) in earlier {
            match before.matcher.common(&rule.matcher) {
                Common::Set(set) if set == rule.matcher && rule.scheme.is_none() => {
                    rule.scheme = match before.scheme {
                        Some(Scheme::Http) => Some(Scheme::Https),
                        _ => Some(Scheme::Http),
                    };
                }
                Common::Set(set) if set != before.matcher && rule.scheme != before.scheme => {
                    copies.push((at, before.narrowed(set)));
                }
                _ => {}
            }
        }
        // Behind the rule that it is a part of, a copy would be left out.
        for (at, copy) in copies.into_iter().rev() {
            done.insert(at, copy);
        }
        done.push(rule);
    }
    done
}

fn excluding(rules: Vec<Rule>) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    let mut earlier_ones = Earlier::default();
    for rule in rules {
        let earlier = earlier_ones.related(&rule.matcher);
        let same_scheme = |it: &Rule| it.scheme.is_none() || it.scheme == rule.scheme;
        let covers = |&at: &usize| {
            same_scheme(&routes[at].rule) && routes[at].rule.matcher.covers(&rule.matcher)
        };
        if earlier.iter().any(covers) {
            continue;
        }
        let mut exclude = BTreeSet::new();
        for &at in &earlier {
            let before = &routes[at].rule;
            let outranked = rule.matcher.rank() >= before.matcher.rank();
            if outranked && same_scheme(before) && before.matcher.overlaps(&rule.matcher) {
                exclude.insert(before.matcher.exclusion());
            }
        }
        earlier_ones.add(&rule.matcher, routes.len());
        routes.push(Route { rule, exclude });
    }
    routes
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
        map.entry(matcher.start().into_owned())
            .or_default()
            .push(index);
    }

    /// Indices of the rules that may share paths with this matcher, and either cover it or are less specific.
    pub(crate) fn related(&self, matcher: &Matcher) -> Vec<usize> {
        let start = matcher.start();
        let mut found: Vec<usize> = Vec::new();
        let mut take = |known: Option<&Vec<usize>>| found.extend(known.into_iter().flatten());
        let ends = start.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([start.len()]) {
            take(self.plain.get(&start[..end]));
        }
        if !self.patterns.is_empty() {
            let ends = start.char_indices().map(|(at, _)| at);
            for end in ends.chain([start.len()]) {
                take(self.patterns.get(&start[..end]));
            }
        }
        match matcher {
            // What begins with more than it is more specific, but for `/path/?`.
            Matcher::Exact(_) => {}
            Matcher::Prefix(path) => take(self.patterns.get(&format!("{path}/"))),
            Matcher::Suffix { .. } | Matcher::Pattern(_) => {
                for map in [&self.plain, &self.patterns] {
                    let after = map.range::<str, _>((Bound::Excluded(&*start), Bound::Unbounded));
                    let longer = after.take_while(|it| it.0.starts_with(&*start));
                    longer.for_each(|it| take(Some(it.1)));
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
    match rule.settings.access {
        Access::Nobody => Action::Answer(403),
        Access::Unsaid => Action::Closed,
        Access::Open | Access::Networks { .. } => rule.action.clone(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::matcher::tests::any_matcher;

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
        let shown: Vec<(String, String)> = routes
            .iter()
            .map(|it| {
                let exclude: Vec<&str> = it.exclude.iter().map(String::as_str).collect();
                (it.rule.matcher.shown(), exclude.join(" "))
            })
            .collect();
        let row = |path: &str, exclude: &str| (path.to_owned(), exclude.to_owned());
        assert_eq!(
            shown,
            [
                row("/*.jsp", ""),
                row("/app", "/*.jsp"),
                // The prefix above it is earlier and covers it.
                row("/", ""),
            ]
        );
    }

    proptest! {
        #[test]
        fn routes_are_as_by_comparing_each_with_all(
            matchers in proptest::collection::vec(any_matcher(), 0..8),
        ) {
            let rules: Vec<Rule> = matchers.into_iter().map(|it| rule(it, 200)).collect();
            let mut expected: Vec<(Matcher, BTreeSet<String>)> = Vec::new();
            for rule in &rules {
                let of = &rule.matcher;
                if expected.iter().any(|it| it.0.covers(of)) {
                    continue;
                }
                let outranked = expected.iter().filter(|it| of.rank() >= it.0.rank() && it.0.overlaps(of));
                let exclude = outranked.map(|it| it.0.exclusion()).collect();
                expected.push((of.clone(), exclude));
            }
            let found = excluding(rules).into_iter().map(|it| (it.rule.matcher, it.exclude));
            prop_assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_redirect_of_one_scheme_leaves_the_other() {
        let mut first = rule(Matcher::everything(), 301);
        first.scheme = Some(Scheme::Http);
        let rules = with_schemes(vec![first, rule(Matcher::prefix("/app"), 200)]);
        assert_eq!(rules[1].scheme, Some(Scheme::Https));
    }
}
