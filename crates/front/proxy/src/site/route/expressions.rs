//! The routes of one host that match by regular expressions.
//!
//! They are asked in the file's order. Several are compiled into one set, which looks at a path once for all of them.

use std::collections::HashMap;
use std::sync::Arc;

use regex::bytes::RegexSet;

use super::tree::{RouteLookup, TreeSlot};
use crate::config::{PathExpression, RouteConfig};

/// The expressions with their routes, in the file's order.
#[derive(Debug, Default)]
pub(super) struct Expressions {
    routes: Vec<ExpressionRoute>,
    /// All expressions as one; `None`: there is only one, or they cannot be combined, and each is asked by itself.
    set: Option<Arc<RegexSet>>,
}

#[derive(Debug)]
struct ExpressionRoute {
    expression: PathExpression,
    refuses_parameters: bool,
    slot: TreeSlot,
}

/// The sets that were compiled, by their expressions. Hosts with the same list share one.
#[derive(Debug, Default)]
pub(super) struct ExpressionSets(HashMap<Vec<String>, Option<Arc<RegexSet>>>);

impl Expressions {
    pub(super) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    pub(super) fn insert(
        &mut self,
        expression: &PathExpression,
        route: &RouteConfig,
        index: usize,
    ) {
        let mut slot = TreeSlot::default();
        slot.insert(route, index);
        self.routes.push(ExpressionRoute {
            expression: expression.clone(),
            refuses_parameters: route.refuse_parameters,
            slot,
        });
    }

    /// Combines the expressions, once all were inserted.
    pub(super) fn finish(&mut self, sets: &mut ExpressionSets) {
        if self.routes.len() > 1 {
            let all = || self.routes.iter().map(|it| &it.expression);
            let texts = all().map(|it| it.as_str().to_owned()).collect();
            let compile = || PathExpression::set(all()).map(Arc::new);
            self.set = sets.0.entry(texts).or_insert_with(compile).clone();
        }
    }

    /// The first route whose expression matches and that takes the request. `*` is no path, so none matches it.
    pub(super) fn find(&self, lookup: &RouteLookup<'_, impl Fn(usize) -> bool>) -> Option<usize> {
        if !lookup.path.starts_with(b"/") {
            return None;
        }
        let Some(set) = &self.set else {
            let matches = |route: &&ExpressionRoute| {
                let path = if route.refuses_parameters {
                    lookup.with_parameters
                } else {
                    lookup.path
                };
                route.expression.matches(path)
            };
            let mut matching = self.routes.iter().filter(matches);
            return matching.find_map(|route| route.slot.find(lookup));
        };
        let matching = set.matches(lookup.path);
        if lookup.with_parameters == lookup.path {
            let mut routes = matching.iter().map(|index| &self.routes[index]);
            return routes.find_map(|route| route.slot.find(lookup));
        }
        let matching_with = set.matches(lookup.with_parameters);
        let matches = |(index, route): &(usize, &ExpressionRoute)| {
            if route.refuses_parameters {
                matching_with.matched(*index)
            } else {
                matching.matched(*index)
            }
        };
        let mut routes = self.routes.iter().enumerate().filter(matches);
        routes.find_map(|(_, route)| route.slot.find(lookup))
    }
}
