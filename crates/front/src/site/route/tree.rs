//! The routes of one host: a tree of path segments.
//!
//! A lookup follows the segments of the request's path, with one hash each, and ends where no route
//! continues. Its cost depends on the path and not on the number of routes. The deepest match is the
//! most specific one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

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
    exact: Endings,
    /// For this path and all below it.
    prefix: Endings,
}

/// The routes of one path, which differ in their suffixes.
#[derive(Debug, Default)]
struct Endings {
    /// For any ending.
    any: Option<usize>,
    /// Boxed, since few paths have any.
    suffixes: Option<Box<Suffixes>>,
}

#[derive(Debug, Default)]
struct Suffixes {
    routes: HashMap<Box<[u8]>, usize>,
    /// The lengths of the suffixes; each once, the greatest first.
    lengths: Vec<usize>,
}

impl Tree {
    /// Adds the route of this index. Of two that match the same requests, the first that was added stays.
    pub(super) fn insert(&mut self, route: &RouteConfig, index: usize) {
        let path = route.compared_path();
        let mut at = 0;
        // The prefix `/` was stored as nothing, and is the root. A path without a slash at its
        // beginning would match nothing.
        match path.strip_prefix(b"/") {
            Some(rest) => {
                for segment in rest.split(|&byte| byte == b'/') {
                    at = self.child(at, segment);
                }
            }
            None if path.is_empty() => {}
            None => return,
        }
        let node = &mut self.nodes[at];
        let endings = match route.exact {
            true => &mut node.exact,
            false => &mut node.prefix,
        };
        endings.insert(route.compared_suffix().as_deref(), index);
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

    /// The index of the most specific route for a path, in the form that routes are compared in.
    pub(super) fn find(&self, path: &[u8]) -> Option<usize> {
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

impl Endings {
    fn insert(&mut self, suffix: Option<&[u8]>, route: usize) {
        match suffix {
            Some(suffix) => self.suffixes.get_or_insert_default().insert(suffix, route),
            None => {
                self.any.get_or_insert(route);
            }
        }
    }

    fn find(&self, path: &[u8]) -> Option<usize> {
        let suffixes = self.suffixes.as_ref();
        suffixes.and_then(|it| it.find(path)).or(self.any)
    }
}

impl Suffixes {
    fn insert(&mut self, suffix: &[u8], route: usize) {
        self.routes.entry(suffix.into()).or_insert(route);
        let place = self.lengths.partition_point(|&it| it > suffix.len());
        if self.lengths.get(place) != Some(&suffix.len()) {
            self.lengths.insert(place, suffix.len());
        }
    }

    fn find(&self, path: &[u8]) -> Option<usize> {
        self.lengths.iter().find_map(|&length| {
            let start = path.len().checked_sub(length)?;
            self.routes.get(&path[start..]).copied()
        })
    }
}
