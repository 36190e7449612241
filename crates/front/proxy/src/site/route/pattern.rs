//! Path patterns, and how specific routes are.
//!
//! `*` matches any characters, including slashes; `?` matches one character other than a slash.
//! Patterns and paths are compared in the form that [`crate::path`] makes.

use bytes::Bytes;

use crate::config::{Exclusion, RouteConfig};
use crate::path;

/// A path pattern with `*` and `?`, in the form in which paths are compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Glob(Bytes);

/// How specific a route is within its host, by mod_jk's rules: more slashes win, then the greater
/// length. An exact path wins against all others, then an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    kind: RankKind,
    slashes: usize,
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RankKind {
    Path,
    Expression,
    Exact,
}

/// Paths that a route excludes: those below a prefix, or those that match a pattern, in the form of
/// comparison.
#[derive(Clone, Debug)]
pub(crate) enum ExcludedPaths {
    Prefix(Bytes),
    Pattern(Glob),
}

impl Glob {
    pub(crate) fn new(text: &str) -> Self {
        Self(path::compared(&Bytes::copy_from_slice(text.as_bytes())))
    }

    pub(crate) fn rank(&self) -> Rank {
        Rank::of(&self.0, RankKind::Path)
    }

    /// Whether the pattern matches the whole path. The time is at most the product of both lengths.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        let pattern = &self.0[..];
        let (mut next, mut position) = (0, 0);
        // The place after the last star in the pattern, and the end in the path of what that star matches so far.
        let mut star: Option<(usize, usize)> = None;
        while position < path.len() {
            let matches_one = match pattern.get(next) {
                Some(b'*') => {
                    next += 1;
                    star = Some((next, position));
                    continue;
                }
                Some(b'?') => path[position] != b'/',
                Some(byte) => *byte == path[position],
                None => false,
            };
            if matches_one {
                next += 1;
                position += 1;
                continue;
            }
            // Tries again from the last star, which then matches one character more.
            let Some((after_star, end)) = star else {
                return false;
            };
            star = Some((after_star, end + 1));
            (next, position) = (after_star, end + 1);
        }
        pattern[next..].iter().all(|byte| *byte == b'*')
    }
}

impl Rank {
    /// The rank of a route. A prefix ranks like mod_jk's pattern `/app/*`, followed by the route's
    /// suffix.
    pub(crate) fn of_route(route: &RouteConfig) -> Self {
        if route.regex.is_some() {
            // All are equal: their order in the file decides.
            return Self::of(b"", RankKind::Expression);
        }
        if let Some(pattern) = &route.pattern {
            return Glob::new(pattern).rank();
        }
        let path = route.compared_path();
        if route.exact {
            return Self::of(&path, RankKind::Exact);
        }
        let suffix = route.compared_suffix().unwrap_or_default();
        Self::of(&[&path, &b"/*"[..], &suffix].concat(), RankKind::Path)
    }

    /// Whether it is the rank of an exact path.
    pub(super) fn is_exact(self) -> bool {
        self.kind == RankKind::Exact
    }

    fn of(text: &[u8], kind: RankKind) -> Self {
        Self {
            kind,
            slashes: text.iter().filter(|&&byte| byte == b'/').count(),
            length: text.len(),
        }
    }
}

impl ExcludedPaths {
    pub(crate) fn new(config: &Exclusion) -> Self {
        match config {
            Exclusion::Prefix(path) => {
                let form = path::compared(&Bytes::copy_from_slice(path.as_bytes()));
                Self::Prefix(match form.strip_suffix(b"/") {
                    Some(prefix) => form.slice_ref(prefix),
                    None => form,
                })
            }
            Exclusion::Pattern(text) => Self::Pattern(Glob::new(text)),
        }
    }

    /// Whether the exclusion covers `path`, which is in the form of comparison.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        match self {
            Self::Pattern(glob) => glob.matches(path),
            Self::Prefix(prefix) => path
                .strip_prefix(&prefix[..])
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, path, expected) in [
            ("/devops*", "/devops", true),
            ("/devops*", "/devops-x/y", true),
            ("/devops*", "/dev", false),
            ("/*.cfm/*", "/a/b.cfm/c/d", true),
            ("/*.cfm/*", "/a.cfm", false),
            ("/app*/x?.do", "/app/x1.do", true),
            ("/app*/x?.do", "/app1/y/x2.do", true),
            ("/app*/x?.do", "/app/x/.do", false),
            ("/app*/x?.do", "/app/x.do", false),
            ("*.gif", "/a/b.gif", true),
            ("*.gif", "/a/b.gif/x", false),
            ("*", "/", true),
            ("/?", "/?", true),
            ("/?", "/x", true),
            ("/a%20b*", "/a bc", true),
        ] {
            assert_eq!(
                Glob::new(pattern).matches(path.as_bytes()),
                expected,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn ranks_are_those_of_mod_jk() {
        let ordered = ["/app/x/*", "/app/*.jsp", "/app*/x", "/*.do", "/*"];
        let ranks: Vec<Rank> = ordered.iter().map(|it| Glob::new(it).rank()).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] > pair[1]), "{ranks:?}");
    }

    #[test]
    fn exclusions_are_prefixes_of_segments_or_patterns() {
        let prefix = ExcludedPaths::new(&Exclusion::Prefix("/app/static/".into()));
        assert!(prefix.has(b"/app/static") && prefix.has(b"/app/static/x"));
        assert!(!prefix.has(b"/app/statics"));
        assert!(ExcludedPaths::new(&Exclusion::Pattern("*.gif".into())).has(b"/x/y.gif"));
    }

    /// Matches by the definition, without regard to speed.
    fn naive(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], _) => path.is_empty(),
            ([b'*', rest @ ..], _) => (0..=path.len()).any(|at| naive(rest, &path[at..])),
            ([b'?', rest @ ..], [byte, after @ ..]) => *byte != b'/' && naive(rest, after),
            ([wanted, rest @ ..], [byte, after @ ..]) => wanted == byte && naive(rest, after),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn a_match_is_what_the_definition_says(pattern in "[ab/*?]{0,8}", path in "[ab/]{0,10}") {
            let glob = Glob(Bytes::from(pattern.clone()));
            prop_assert_eq!(glob.matches(path.as_bytes()), naive(pattern.as_bytes(), path.as_bytes()));
        }
    }
}
