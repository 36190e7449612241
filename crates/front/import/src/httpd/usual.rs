//! Directives of httpd that ask for what the front does in any case, by their values.

use crate::directive::Directive;
use crate::ledger::Ledger;

/// Drops such directives, in sections as well, unless a reader decided about them.
pub(crate) fn drop_all(directives: &[Directive], ledger: &mut Ledger) {
    for directive in directives {
        let is_it = |it: &&(&str, &[&str], &str)| {
            let has_value =
                it.1.iter()
                    .any(|value| directive.word(0).eq_ignore_ascii_case(value));
            it.0 == directive.name && has_value && directive.words.len() == 1
        };
        if let Some((_, _, reason)) = USUAL.iter().find(is_it) {
            ledger.dropped_if_open(directive.id, reason);
        }
        drop_all(directive.inside(), ledger);
    }
}

/// Names in lower case, their values, and what the front does.
const USUAL: &[(&str, &[&str], &str)] = &[
    (
        "adddefaultcharset",
        &["off"],
        "no charset is added to what applications send",
    ),
    (
        "allowencodedslashes",
        &["on", "nodecode"],
        "escaped slashes are passed on as they came",
    ),
    ("dav", &["off"], "files are not written"),
    ("mergeslashes", &["on"], "slashes are always merged"),
    (
        "userdir",
        &["disabled"],
        "no directories of users are served",
    ),
];
