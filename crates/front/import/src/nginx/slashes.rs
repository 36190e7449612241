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
    let all_locations = exact.iter().chain(prefixes);
    let known_paths: HashSet<&str> = all_locations.map(|it| it.0.as_str()).collect();
    let passing = plain_locations(directives, |it| it.name.ends_with("_pass"));
    let internal = plain_locations(directives, |it| it.name == "internal");
    let mut found = Vec::new();
    // If two locations have the same path, the exact one decides.
    for (is_exact, locations) in [(true, exact), (false, prefixes)] {
        for (text, _, rules) in locations {
            let path = text.trim_end_matches('/');
            let has_slash = text.len() > 1 && text.ends_with('/');
            // A location for the path without the slash answers itself.
            if !has_slash || known_paths.contains(path) {
                continue;
            }
            let passes = [true, false]
                .iter()
                .any(|&it| passing.contains(&(it, text.as_str())));
            let first = rules.first();
            let mut settings = None;
            let action = if passes && internal.contains(&(is_exact, text.as_str())) {
                settings = first.map(|it| it.settings.clone());
                Action::Answer(404)
            } else if passes {
                Action::Redirect {
                    to: encoded(text).replace('{', "{{") + "{search}",
                    status: 301,
                }
            } else if rules.iter().any(|it| it.action == Action::Closed) {
                // In nginx it may pass requests on, by a directive that is not known here.
                Action::Closed
            } else {
                continue;
            };
            let place = first.and_then(|it| it.place.as_ref());
            let mut rule = Rule::new(place, Matcher::Exact(path.to_owned()), action);
            rule.settings = settings.unwrap_or_default();
            found.push(rule);
        }
    }
    found
}

/// The locations without an expression that contain such a directive: whether each is for one path alone (`=`), and
/// its path.
fn plain_locations(
    directives: &[Directive],
    is_wanted: fn(&Directive) -> bool,
) -> HashSet<(bool, &str)> {
    let mut found = HashSet::new();
    for location in directives.iter().filter(|it| it.name == "location") {
        if let Some((sign, text)) = modifier(&location.words)
            && !sign.starts_with('~')
            && location.inside().iter().any(is_wanted)
        {
            found.insert((sign == "=", text));
        }
    }
    found
}
