//! An index of ordered sets of paths, which finds the set that decides about a path without testing every set.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::matcher::Matcher;

/// Ordered sets of paths, indexed by the beginnings of their paths. The first set that contains a path decides,
/// unless it yields: then the first later expression that matches decides, if there is one.
#[derive(Debug, Default)]
pub(crate) struct FirstMatch<'m> {
    exact: HashMap<&'m str, Vec<usize>>,
    /// Prefix sets, by the path of the prefix.
    prefixes: HashMap<&'m str, Vec<usize>>,
    /// Sets `/path/*`, by `/path`.
    below: HashMap<&'m str, Vec<usize>>,
    /// All other sets, by the text before their first wildcard.
    others: HashMap<Cow<'m, str>, Vec<(usize, &'m Matcher)>>,
    /// The lengths of the keys of `others`.
    starts: BTreeSet<usize>,
    expressions: Vec<(usize, &'m Matcher)>,
    /// The indices of the sets that yield to expressions.
    yielding: HashSet<usize>,
}

impl<'m> FirstMatch<'m> {
    /// Indexes these sets, each with whether it yields to expressions.
    pub(crate) fn new(matchers: impl Iterator<Item = (&'m Matcher, bool)>) -> Self {
        let mut index = Self::default();
        for (at, (matcher, yields)) in matchers.enumerate() {
            if yields {
                index.yielding.insert(at);
            }
            if matcher.is_expression() {
                index.expressions.push((at, matcher));
                continue;
            }
            let above = match matcher {
                Matcher::Pattern(text) => below(text),
                _ => None,
            };
            match (matcher, above) {
                (Matcher::Exact(path), _) => index.exact.entry(path).or_default().push(at),
                (Matcher::Prefix(path), _) => index.prefixes.entry(path).or_default().push(at),
                (_, Some(path)) => index.below.entry(path).or_default().push(at),
                (_, None) => {
                    let start = matcher.start();
                    index.starts.insert(start.len());
                    index.others.entry(start).or_default().push((at, matcher));
                }
            }
        }
        index
    }

    /// The index of the set, among those for which `wanted` holds, that decides about `path`.
    pub(crate) fn find(&self, path: &str, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let mut first: Option<usize> = None;
        // The indices of sets that all contain the path, in ascending order.
        let mut take = |indices: Option<&Vec<usize>>| {
            let mut ascending = indices.into_iter().flatten().copied();
            let found = ascending.find(|index| wanted(*index));
            // The earlier of both; only one of them may exist.
            first = first.into_iter().chain(found).min();
        };
        take(self.exact.get(path));
        take(self.prefixes.get(path));
        for (end, _) in path.match_indices('/') {
            take(self.prefixes.get(&path[..end]));
            take(self.below.get(&path[..end]));
        }
        // A path without any slash, such as `*`, is only below the root.
        take(self.prefixes.get(""));
        let starts = self.starts.iter().filter_map(|&length| path.get(..length));
        for others in starts.filter_map(|start| self.others.get(start)) {
            let is_earlier = |index: usize| first.is_none_or(|first| index < first);
            let mut earlier = others.iter().take_while(|(index, _)| is_earlier(*index));
            let found = earlier.find(|(index, matcher)| wanted(*index) && matcher.has(path));
            first = found.map(|(index, _)| *index).or(first);
        }
        // A set that yields leaves the path to any expression, and another one only to those before it.
        let yields = first.is_none_or(|index| self.yielding.contains(&index));
        let is_asked = |index: usize| yields || first.is_some_and(|first| index < first);
        let mut asked = self
            .expressions
            .iter()
            .filter(|(index, _)| is_asked(*index));
        let expression = asked.find(|(index, matcher)| wanted(*index) && matcher.has(path));
        expression.map(|(index, _)| *index).or(first)
    }
}

/// For a pattern `/path/*` without further wildcards: `/path`.
pub(crate) fn below(pattern: &str) -> Option<&str> {
    let path = pattern.strip_suffix("/*")?;
    // Paths have their slashes merged, so that none is below `//`.
    (!path.contains(['*', '?']) && !path.ends_with('/')).then_some(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matcher::tests::any_matcher;

    proptest! {
        #[test]
        fn the_first_is_found_as_by_asking_all(
            mut matchers in proptest::collection::vec((any_matcher(), any::<bool>()), 0..12), path in "/[ab./]{0,7}",
        ) {
            matchers.iter_mut().for_each(|it| it.1 &= !it.0.is_expression());
            let index = FirstMatch::new(matchers.iter().map(|it| (&it.0, it.1)));
            for odd in [false, true] {
                let wanted = |at: usize| !odd || at % 2 == 1;
                let all = matchers.iter().enumerate();
                let mut having = all.filter(|it| wanted(it.0) && it.1.0.has(&path));
                let first = having.next();
                let yields = first.is_some_and(|it| it.1.1);
                let behind = having.find(|it| yields && it.1.0.is_expression());
                let slow = behind.or(first).map(|it| it.0);
                prop_assert_eq!(index.find(&path, wanted), slow);
            }
        }
    }
}
