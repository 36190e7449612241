//! Paths that equal the path of a location but for the slash at its end.

use std::collections::HashSet;

use crate::directive::Directive;
use crate::matcher::{Matcher, encoded};
use crate::nginx::location::modifier;
use crate::plan::{Action, Rule};

/// A location: its path, whether nginx asks no expressions after it (`^~`), and its rules.
pub(super) type LocationRules = (String, bool, Vec<Rule>);

/// The rules for paths that lack only the slash at the end of a location that passes requests on. nginx redirects
/// them before it tries any expression, whatever else is in the location; if it is internal, it answers 404.
pub(super) fn slashes(
    prefixes: &[LocationRules],
    exact: &[LocationRules],
    directives: &[Directive],
) -> Vec<Rule> {
    // What is closed may pass requests on in nginx by what is not known here.
    let closes = |it: &[Rule]| it.iter().any(|rule| rule.action == Action::Closed);
    let others: HashSet<&str> = exact
        .iter()
        .chain(prefixes)
        .map(|it| it.0.as_str())
        .collect();
    let (passing, internal) = (
        with(directives, |it| it.name.ends_with("_pass")),
        with(directives, |it| it.name == "internal"),
    );
    let is_one = |text: &str| text.len() > 1 && text.ends_with('/');
    let of_path = |is_exact: bool, (text, _, rules): &LocationRules| {
        let path = text.trim_end_matches('/');
        let passes = [true, false]
            .iter()
            .any(|&it| passing.contains(&(it, text.as_str())));
        let is = is_one(text) && (passes || closes(rules)) && !others.contains(path);
        let first = rules.first();
        let action = match () {
            () if !passes => Action::Closed,
            () if internal.contains(&(is_exact, text.as_str())) => Action::Answer(404),
            () => Action::Redirect {
                to: encoded(text).replace('{', "{{") + "{search}",
                status: 301,
            },
        };
        let place = first.and_then(|it| it.place.as_ref());
        let mut rule = Rule::new(place, Matcher::Exact(path.to_owned()), action);
        if let Some(first) = first.filter(|_| rule.action == Action::Answer(404)) {
            rule.settings = first.settings.clone();
        }
        is.then_some(rule)
    };
    // If two locations have the same path, the exact one decides.
    let of_exact = exact.iter().filter_map(|it| of_path(true, it));
    let of_prefixes = prefixes.iter().filter_map(|it| of_path(false, it));
    of_exact.chain(of_prefixes).collect()
}

/// The locations without an expression that contain such a directive: whether each is for one path alone, and its
/// path.
fn with(directives: &[Directive], is: fn(&Directive) -> bool) -> HashSet<(bool, &str)> {
    let locations = directives.iter().filter(|it| it.name == "location");
    let holding = locations.filter(|it| it.inside().iter().any(is));
    let found = holding.filter_map(|it| modifier(&it.words));
    let plain = found.filter(|(sign, _)| !sign.starts_with('~'));
    plain.map(|(sign, text)| (sign == "=", text)).collect()
}
