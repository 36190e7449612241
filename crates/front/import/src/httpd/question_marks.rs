//! Escaped question marks (`%3F`), which httpd refuses in paths that a `RewriteRule` forwards.

use crate::plan::{Action, Rule};

/// Adds, before each rule of a `RewriteRule` that forwards requests, one that refuses escaped question marks in the
/// same paths, as httpd does without `UnsafeAllow3F`.
pub(super) fn with_refusal(rules: Vec<Rule>) -> Vec<Rule> {
    let passes = |it: &Rule| matches!(it.action, Action::Forward { .. });
    let refusal = |it: &Rule| {
        let mut rule = Rule {
            action: Action::Answer(403),
            ..it.clone()
        };
        rule.add_tests(&[ESCAPED_QUESTION_MARK.to_owned()]);
        rule
    };
    let with_one = |it: Rule| [passes(&it).then(|| refusal(&it)), Some(it)];
    rules.into_iter().flat_map(with_one).flatten().collect()
}

/// The test of a path with an escaped question mark.
const ESCAPED_QUESTION_MARK: &str = "target ~ ^[^?]*%3[Ff]";
