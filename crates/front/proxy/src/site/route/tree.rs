//! The routes of one host: a tree of path segments, patterns, and expressions.
//!
//! A lookup follows the segments of the request's path, with one hash lookup each, and ends where no
//! route continues. Its cost depends on the path and not on the number of routes. The deepest match is
//! the most specific one. Patterns are compared one by one, so there should be few of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::expressions::{ExpressionSets, Expressions};
use super::pattern::{Glob, Rank};
use crate::config::conditions::ConditionRank;
use crate::config::{RouteConfig, RouteScheme};

/// The tree's nodes; a node refers to others by index, and the root is the first. With indices instead of
/// boxes neither building nor dropping a tree recurses.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// The patterns, the most specific first; of equals, the first that was added.
    patterns: Vec<Pattern>,
    expressions: Expressions,
}

/// A node of the tree: the routes for the path that ends with its segment.
#[derive(Debug, Default)]
struct Node {
    /// The index of the child node for each next segment.
    children: HashMap<Box<[u8]>, usize>,
    /// Routes for exactly this path.
    exact: Endings,
    /// Routes for this path and all paths below it.
    prefix: Endings,
}

/// The routes of one path, which differ in their suffixes.
#[derive(Debug, Default)]
struct Endings {
    /// Routes without a suffix.
    any: TreeSlot,
    /// Routes with a suffix; boxed, since few paths have any.
    suffixes: Option<Box<Suffixes>>,
}

#[derive(Debug, Default)]
struct Suffixes {
    routes: HashMap<Box<[u8]>, TreeSlot>,
    /// The lengths of the suffixes, without duplicates, in descending order.
    lengths: Vec<usize>,
}

#[derive(Debug)]
struct Pattern {
    rank: PatternRank,
    glob: Glob,
    slot: TreeSlot,
}

/// How specific a route with a pattern is; the fields decide in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PatternRank {
    glob: Rank,
    has_listeners: bool,
    has_scheme: bool,
    precedence: Precedence,
}

/// The routes with one path and suffix: those for all listeners, and those for some.
#[derive(Debug, Default)]
pub(super) struct TreeSlot {
    all: SchemeSlot,
    /// Routes for some listeners; boxed, since few have any.
    of_listeners: Option<Box<ListenerSlots>>,
}

/// The routes for some listeners, by the index of the listener.
#[derive(Debug, Default)]
struct ListenerSlots(HashMap<usize, SchemeSlot>);

/// At most one route for each scheme, one for both schemes, and those for some requests only.
#[derive(Debug, Default)]
struct SchemeSlot {
    /// Each of the three fields is a route's index plus one; 0: no route.
    any: u32,
    http: u32,
    https: u32,
    /// Routes for some methods, or with conditions; boxed, since there are few.
    limited: Option<Box<LimitedRoutes>>,
}

/// The routes for some methods, or with conditions, the most specific first; of equals, the first that was added.
/// Whether one takes a request is asked of the route.
#[derive(Debug, Default)]
struct LimitedRoutes(Vec<LimitedRoute>);

#[derive(Debug)]
struct LimitedRoute {
    precedence: Precedence,
    scheme: Option<RouteScheme>,
    index: usize,
}

/// How specific a route is among those for the same path: one for some methods comes first, then its conditions
/// decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Precedence {
    has_methods: bool,
    conditions: ConditionRank,
}

/// The facts about a request by which its route is looked up.
pub(super) struct RouteLookup<'a, F> {
    /// The path, in the form in which routes are compared.
    pub(super) path: &'a [u8],
    /// The path with its parameters, for the expressions of routes with [`RouteConfig::refuse_parameters`].
    pub(super) with_parameters: &'a [u8],
    pub(super) listener: Option<usize>,
    pub(super) secure: bool,
    /// Whether a route with a matching path accepts the request.
    pub(super) takes: F,
}

impl Tree {
    /// Adds the route with this index. Of two that match the same requests, the one added first stays.
    pub(super) fn insert(&mut self, route: &RouteConfig, index: usize) {
        if let Some(expression) = &route.regex {
            return self.expressions.insert(expression, route, index);
        }
        if let Some(pattern) = &route.pattern {
            return self.insert_pattern(pattern, route, index);
        }
        let path = route.compared_path();
        // The index of the node for the path so far, from the root on.
        let mut node_index = 0;
        // The prefix `/` was stored as nothing, and is the root. A path without a slash at its
        // beginning would match nothing.
        match path.strip_prefix(b"/") {
            Some(rest) => {
                for segment in rest.split(|&byte| byte == b'/') {
                    node_index = self.child(node_index, segment);
                }
            }
            None if path.is_empty() => {}
            None => return,
        }
        let node = &mut self.nodes[node_index];
        let endings = if route.exact {
            &mut node.exact
        } else {
            &mut node.prefix
        };
        endings
            .slot(route.compared_suffix().as_deref())
            .insert(route, index);
    }

    fn insert_pattern(&mut self, text: &str, route: &RouteConfig, index: usize) {
        let glob = Glob::new(text);
        let rank = PatternRank {
            glob: glob.rank(),
            has_listeners: !route.listen.is_empty(),
            has_scheme: route.scheme.is_some(),
            precedence: Precedence::of(route),
        };
        let mut slot = TreeSlot::default();
        slot.insert(route, index);
        // Behind those of the same rank, which were added before.
        let position = self.patterns.partition_point(|it| it.rank >= rank);
        self.patterns.insert(position, Pattern { rank, glob, slot });
    }

    /// The index of a node's child for the next segment; the child is made if there is none.
    fn child(&mut self, parent: usize, segment: &[u8]) -> usize {
        let next = self.nodes.len();
        match self.nodes[parent].children.entry(segment.into()) {
            Entry::Occupied(child) => *child.get(),
            Entry::Vacant(entry) => {
                entry.insert(next);
                self.nodes.push(Node::default());
                next
            }
        }
    }

    /// Prepares lookups, once all routes were inserted.
    pub(super) fn finish(&mut self, sets: &mut ExpressionSets) {
        self.expressions.finish(sets);
    }

    /// Finds the most specific route for a path. `rank` returns how specific a route is, and `before_regex` whether a
    /// route that is found without expressions wins over them.
    pub(super) fn find(
        &self,
        lookup: &RouteLookup<'_, impl Fn(usize) -> bool>,
        rank: impl Fn(usize) -> Rank,
        before_regex: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let found = self.find_without_expressions(lookup, &rank);
        let is_final = |index: usize| rank(index).is_exact() || before_regex(index);
        if self.expressions.is_empty() || found.is_some_and(is_final) {
            return found;
        }
        self.expressions.find(lookup).or(found)
    }

    /// The most specific route of those with a path, a suffix or a pattern.
    fn find_without_expressions(
        &self,
        lookup: &RouteLookup<'_, impl Fn(usize) -> bool>,
        rank: impl Fn(usize) -> Rank,
    ) -> Option<usize> {
        let found = self.find_in_nodes(lookup);
        if self.patterns.is_empty() {
            return found;
        }
        let found_rank = found.map(rank);
        for pattern in &self.patterns {
            if found_rank.is_some_and(|found_rank| pattern.rank.glob <= found_rank) {
                break;
            }
            if pattern.glob.matches(lookup.path)
                && let Some(index) = pattern.slot.find(lookup)
            {
                return Some(index);
            }
        }
        found
    }

    /// The route of the deepest node on the path that takes the request: an exact path first, then prefixes, the
    /// longest first.
    fn find_in_nodes(&self, lookup: &RouteLookup<'_, impl Fn(usize) -> bool>) -> Option<usize> {
        let mut node = &self.nodes[0];
        let mut found = node.prefix.find(lookup);
        // `*` is matched by the root alone.
        let Some(rest) = lookup.path.strip_prefix(b"/") else {
            return found;
        };
        for segment in rest.split(|&byte| byte == b'/') {
            let Some(&index) = node.children.get(segment) else {
                return found;
            };
            node = &self.nodes[index];
            found = node.prefix.find(lookup).or(found);
        }
        node.exact.find(lookup).or(found)
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
            patterns: Vec::new(),
            expressions: Expressions::default(),
        }
    }
}

impl Endings {
    fn slot(&mut self, suffix: Option<&[u8]>) -> &mut TreeSlot {
        match suffix {
            Some(suffix) => self.suffixes.get_or_insert_default().slot(suffix),
            None => &mut self.any,
        }
    }

    fn find(&self, lookup: &RouteLookup<'_, impl Fn(usize) -> bool>) -> Option<usize> {
        let with_suffix = self.suffixes.as_ref().and_then(|it| it.find(lookup));
        with_suffix.or_else(|| self.any.find(lookup))
    }
}

impl Suffixes {
    fn slot(&mut self, suffix: &[u8]) -> &mut TreeSlot {
        let position = self.lengths.partition_point(|&it| it > suffix.len());
        if self.lengths.get(position) != Some(&suffix.len()) {
            self.lengths.insert(position, suffix.len());
        }
        self.routes.entry(suffix.into()).or_default()
    }

    fn find(&self, lookup: &RouteLookup<'_, impl Fn(usize) -> bool>) -> Option<usize> {
        self.lengths.iter().find_map(|&length| {
            let start = lookup.path.len().checked_sub(length)?;
            self.routes.get(&lookup.path[start..])?.find(lookup)
        })
    }
}

impl TreeSlot {
    pub(super) fn insert(&mut self, route: &RouteConfig, index: usize) {
        if route.listen.is_empty() {
            return self.all.insert(route, index);
        }
        let of_listeners = self.of_listeners.get_or_insert_default();
        for &listener in &route.listen {
            let slot = of_listeners.0.entry(listener).or_default();
            slot.insert(route, index);
        }
    }

    pub(super) fn find(&self, lookup: &RouteLookup<'_, impl Fn(usize) -> bool>) -> Option<usize> {
        if let (Some(slots), Some(listener)) = (&self.of_listeners, lookup.listener)
            && let Some(slot) = slots.0.get(&listener)
            && let Some(index) = slot.find(lookup)
        {
            return Some(index);
        }
        self.all.find(lookup)
    }
}

impl Precedence {
    pub(super) fn of(route: &RouteConfig) -> Self {
        Self {
            has_methods: !route.methods.is_empty(),
            conditions: route.conditions.rank(),
        }
    }
}

impl SchemeSlot {
    /// Adds a route. Of two for the same requests the first one stays.
    fn insert(&mut self, route: &RouteConfig, index: usize) {
        let precedence = Precedence::of(route);
        if precedence != Precedence::default() {
            let routes = &mut self.limited.get_or_insert_default().0;
            let position = routes.partition_point(|it| it.precedence >= precedence);
            let limited = LimitedRoute {
                precedence,
                scheme: route.scheme,
                index,
            };
            return routes.insert(position, limited);
        }
        let field = match route.scheme {
            None => &mut self.any,
            Some(RouteScheme::Http) => &mut self.http,
            Some(RouteScheme::Https) => &mut self.https,
        };
        if *field == 0 {
            // A file of four billion routes is larger than any that is read.
            *field = u32::try_from(index + 1).unwrap_or(0);
        }
    }

    /// The first route that takes the request: those for the client's scheme come before those for both.
    fn find(&self, lookup: &RouteLookup<'_, impl Fn(usize) -> bool>) -> Option<usize> {
        let own = if lookup.secure {
            (Some(RouteScheme::Https), self.https)
        } else {
            (Some(RouteScheme::Http), self.http)
        };
        let limited = self.limited.as_ref().map_or(&[][..], |it| &it.0);
        for (scheme, index_plus_one) in [own, (None, self.any)] {
            let mut routes = limited.iter().filter(|it| it.scheme == scheme);
            if let Some(found) = routes.find(|it| (lookup.takes)(it.index)) {
                return Some(found.index);
            }
            if let Some(index) = index_plus_one.checked_sub(1)
                && (lookup.takes)(index as usize)
            {
                return Some(index as usize);
            }
        }
        None
    }
}
