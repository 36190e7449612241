//! Regular expressions of httpd: the paths in which they match, and targets that name their groups.

use crate::expression::{Expression, literal, translated};
use crate::matcher::{Matcher, encoded};
use crate::regex::matchers;

/// The paths that an expression matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathSet {
    /// Matchers that together contain every path that the expression matches.
    pub(super) matchers: Vec<Matcher>,
    /// Whether they contain no other path.
    pub(super) is_exact: bool,
}

/// The paths that an expression matches: as prefixes and patterns if these are exactly the same paths, otherwise as
/// an expression.
pub(super) fn paths(text: &str, ignores_case: bool) -> PathSet {
    let expression = translated(text, ignores_case);
    PathSet {
        is_exact: expression.is_exact,
        matchers: matchers(&expression).unwrap_or_else(|| vec![Matcher::Expression(expression)]),
    }
}

/// The paths of a pattern of `<Location>` or `<Directory>`, whose wildcards match no slash; `None` for a pattern with
/// `[`.
pub(super) fn of_wildcards(pattern: &str) -> Option<Matcher> {
    let sign = |sign: char| match sign {
        '*' => "[^/]*".to_owned(),
        '?' => "[^/]".to_owned(),
        other => literal(&other.to_string()),
    };
    let text: String = pattern.chars().map(sign).collect();
    let expression = translated(&format!("^{text}$"), false);
    let is_sayable = expression.is_exact && !pattern.contains(['[', '\\']);
    is_sayable.then_some(Matcher::Expression(expression))
}

/// A path for the key `rewrite`, with the front's placeholders in place of `$1` and so on; `None` if the front has no
/// such placeholder.
pub(super) fn path_with_groups(text: &str, expression: &Expression) -> Option<String> {
    with_groups(text, expression, encoded)
}

/// The target of a redirect, with the front's placeholders in place of `$1` and so on; `None` if the front has no
/// such placeholder.
pub(super) fn target_with_groups(text: &str, expression: &Expression) -> Option<String> {
    with_groups(text, expression, |it| {
        it.replace('{', "{{").replace('}', "}}")
    })
}

/// A text with the front's placeholders in place of `$1` and so on, and `written` applied to the text between them.
/// `None` if the front has no such placeholder, or if what follows a `$` is no digit.
fn with_groups(
    text: &str,
    expression: &Expression,
    written: impl Fn(&str) -> String,
) -> Option<String> {
    let mut parts = text.split('$');
    let mut filled = written(parts.next().unwrap_or_default());
    for part in parts {
        if !part.starts_with(|sign: char| sign.is_ascii_digit()) {
            return None;
        }
        filled.push_str(&expression.placeholder(&part[..1])?);
        filled.push_str(&written(&part[1..]));
    }
    // After a backslash, `$1` is no group.
    (!text.contains('\\')).then_some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_in_targets() {
        let expression = translated("^/v([0-9]+)/(.*)$", false);
        for (text, path, target) in [
            ("/a/$2", Some("/a/{2}"), Some("/a/{2}")),
            (
                "/{a}/$1$2x",
                Some("/%7Ba%7D/{1}{2}x"),
                Some("/{{a}}/{1}{2}x"),
            ),
            ("/a b/$1", Some("/a%20b/{1}"), Some("/a b/{1}")),
            ("/a/$3", None, None),
            ("/a/$0", None, None),
            ("/a/$", None, None),
            ("/a/\\$1", None, None),
        ] {
            assert_eq!(
                path_with_groups(text, &expression).as_deref(),
                path,
                "{text}"
            );
            assert_eq!(
                target_with_groups(text, &expression).as_deref(),
                target,
                "{text}"
            );
        }
    }
}
