//! The routes of one host: a tree of path segments.
//!
//! A lookup follows the segments of the request's path, with one hash each, and ends where no route
//! continues. Its cost depends on the path and not on the number of routes. The deepest match is the
//! most specific one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Action;
use crate::config::RouteConfig;

/// Nodes by index, the root first. Indices and not boxes, so that neither building nor dropping a
/// tree recurses.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

/// What is known of the path that ends with one segment.
#[derive(Debug, Default)]
struct Node {
    /// The nodes of the next segment.
    children: HashMap<Box<[u8]>, usize>,
    /// For this path alone.
    exact: Actions,
    /// For this path and all below it.
    prefix: Actions,
}

/// The routes of one path, which differ in their suffixes.
#[derive(Debug, Default)]
struct Actions {
    /// For any ending.
    any: Option<Action>,
    /// Boxed, since few paths have any.
    suffixes: Option<Box<Suffixes>>,
}

#[derive(Debug, Default)]
struct Suffixes {
    actions: HashMap<Box<[u8]>, Action>,
    /// The lengths of the suffixes; each once, the greatest first.
    lengths: Vec<usize>,
}

impl Tree {
    /// Adds a route. Of two that match the same requests, the first that was added stays.
    pub(super) fn insert(&mut self, route: &RouteConfig, action: Action) {
        let path = route.compared_path();
        let mut index = 0;
        // The prefix `/` was stored as nothing, and is the root. A path without a slash at its
        // beginning would match nothing.
        match path.strip_prefix(b"/") {
            Some(rest) => {
                for segment in rest.split(|&byte| byte == b'/') {
                    index = self.child(index, segment);
                }
            }
            None if path.is_empty() => {}
            None => return,
        }
        let node = &mut self.nodes[index];
        let actions = match route.exact {
            true => &mut node.exact,
            false => &mut node.prefix,
        };
        actions.insert(route.compared_suffix().as_deref(), action);
    }

    fn child(&mut self, parent: usize, segment: &[u8]) -> usize {
        let next = self.nodes.len();
        match self.nodes[parent].children.entry(segment.into()) {
            Entry::Occupied(child) => *child.get(),
            Entry::Vacant(place) => {
                place.insert(next);
                self.nodes.push(Node::default());
                next
            }
        }
    }

    /// The action of the most specific route for a path, in the form that routes are compared in.
    pub(super) fn find(&self, path: &[u8]) -> Option<Action> {
        let mut node = &self.nodes[0];
        let mut found = node.prefix.find(path);
        // `*` is matched by the root alone.
        let Some(rest) = path.strip_prefix(b"/") else {
            return found;
        };
        for segment in rest.split(|&byte| byte == b'/') {
            let Some(&index) = node.children.get(segment) else {
                return found;
            };
            node = &self.nodes[index];
            found = node.prefix.find(path).or(found);
        }
        node.exact.find(path).or(found)
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
        }
    }
}

impl Actions {
    fn insert(&mut self, suffix: Option<&[u8]>, action: Action) {
        match suffix {
            Some(suffix) => self.suffixes.get_or_insert_default().insert(suffix, action),
            None => {
                self.any.get_or_insert(action);
            }
        }
    }

    fn find(&self, path: &[u8]) -> Option<Action> {
        let suffixes = self.suffixes.as_ref();
        suffixes.and_then(|it| it.find(path)).or(self.any)
    }
}

impl Suffixes {
    fn insert(&mut self, suffix: &[u8], action: Action) {
        self.actions.entry(suffix.into()).or_insert(action);
        let place = self.lengths.partition_point(|&it| it > suffix.len());
        if self.lengths.get(place) != Some(&suffix.len()) {
            self.lengths.insert(place, suffix.len());
        }
    }

    fn find(&self, path: &[u8]) -> Option<Action> {
        self.lengths.iter().find_map(|&length| {
            let start = path.len().checked_sub(length)?;
            self.actions.get(&path[start..]).copied()
        })
    }
}
