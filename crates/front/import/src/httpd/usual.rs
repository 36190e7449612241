//! Directives of httpd whose values ask for what the front does in any case, or for nothing that the front needs.

use crate::directive::Directive;
use crate::ledger::Ledger;

/// Drops such directives, also inside of sections, unless a reader has handled them.
pub(crate) fn drop_all(directives: &[Directive], ledger: &mut Ledger) {
    for directive in directives {
        let is_usual = |(name, values, _): &&(&str, &[&str], &str)| {
            let mut values = values.iter();
            let has_value = values.any(|value| directive.word(0).eq_ignore_ascii_case(value));
            *name == directive.name && has_value && directive.words.len() == 1
        };
        if let Some((_, _, reason)) = USUAL.iter().find(is_usual) {
            ledger.dropped_if_open(directive.id, reason);
        }
        let variables = directive.words.get(2..).unwrap_or_default();
        let is_of_browsers = |it: &String| OF_BROWSERS.contains(&it.as_str());
        if directive.name.starts_with("setenvif")
            && !variables.is_empty()
            && variables.iter().all(is_of_browsers)
        {
            let text = "it is about faults of browsers that speak no TLS 1.2";
            ledger.dropped_if_open(directive.id, text);
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
    ("dav", &["off"], "files are not written"),
    (
        "userdir",
        &["disabled"],
        "no directories of users are served",
    ),
];

/// Variables that make httpd treat old browsers differently.
const OF_BROWSERS: &[&str] = &[
    "downgrade-1.0",
    "force-response-1.0",
    "nokeepalive",
    "redirect-carefully",
    "ssl-accurate-shutdown",
    "ssl-unclean-shutdown",
];
