//! Escaped question marks (`%3F`), which httpd refuses in paths that a `RewriteRule` forwards.

use crate::plan::{Action, Rule};

/// Adds, before each rule of a `RewriteRule` that forwards requests, one that refuses escaped question marks in the
/// same paths, as httpd does without `UnsafeAllow3F`.
pub(super) fn with_refusal(rules: Vec<Rule>) -> Vec<Rule> {
    let mut with_refusals = Vec::with_capacity(rules.len() * 2);
    for rule in rules {
        if matches!(rule.action, Action::Forward { .. }) {
            let mut refusal = Rule {
                action: Action::Answer(403),
                ..rule.clone()
            };
            refusal.add_tests(&[ESCAPED_QUESTION_MARK.to_owned()]);
            with_refusals.push(refusal);
        }
        with_refusals.push(rule);
    }
    with_refusals
}

/// The test of a path with an escaped question mark.
const ESCAPED_QUESTION_MARK: &str = "target ~ ^[^?]*%3[Ff]";
