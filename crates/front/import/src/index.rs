//! Indexes ordered sets of paths, to find the first set that contains a given path
//! without testing every set.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use crate::matcher::Matcher;

/// Sets of paths, in an order, indexed by their beginnings.
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
}

impl<'m> FirstMatch<'m> {
    pub(crate) fn new(matchers: impl Iterator<Item = &'m Matcher>) -> Self {
        let mut index = Self::default();
        for (at, matcher) in matchers.enumerate() {
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

    /// The index of the first set that has `path` and for which `wanted` holds.
    pub(crate) fn find(&self, path: &str, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let first = |found: Option<&Vec<usize>>| {
            found
                .and_then(|it| it.iter().find(|at| wanted(**at)))
                .copied()
        };
        let mut best = first(self.exact.get(path));
        let mut take = |found: Option<usize>| {
            best = match (best, found) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            };
        };
        take(first(self.prefixes.get(path)));
        for (end, _) in path.match_indices('/') {
            take(first(self.prefixes.get(&path[..end])));
            take(first(self.below.get(&path[..end])));
        }
        // A path without a slash is below the root alone.
        take(first(self.prefixes.get("")));
        let starts = self.starts.iter().filter_map(|&it| path.get(..it));
        for others in starts.filter_map(|it| self.others.get(it)) {
            let before = others
                .iter()
                .take_while(|it| best.is_none_or(|best| it.0 < best));
            let mut has = before.filter(|(at, matcher)| wanted(*at) && matcher.has(path));
            best = has.next().map(|it| it.0).or(best);
        }
        best
    }
}

/// For a pattern `/path/*` without further wildcards: `/path`.
pub(crate) fn below(pattern: &str) -> Option<&str> {
    let path = pattern.strip_suffix("/*")?;
    (!path.contains(['*', '?'])).then_some(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matcher::tests::any_matcher;

    proptest! {
        #[test]
        fn the_first_is_found_as_by_asking_all(
            matchers in proptest::collection::vec(any_matcher(), 0..12), path in "/[ab./]{0,7}",
        ) {
            let index = FirstMatch::new(matchers.iter());
            for odd in [false, true] {
                let wanted = |at: usize| !odd || at % 2 == 1;
                let all = matchers.iter().enumerate();
                let slow = all.filter(|it| wanted(it.0)).find(|it| it.1.has(&path)).map(|it| it.0);
                prop_assert_eq!(index.find(&path, wanted), slow);
            }
        }
    }
}
