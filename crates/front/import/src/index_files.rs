//! Files that are served for other paths: the index of a directory, and the page for missing files.
//!
//! The source applies its rules to such a file as if a client had requested it. The front serves it by the rule of
//! the directory. Therefore the written route does not use such a file if another rule of the source decides about
//! it.

use std::collections::BTreeMap;

use crate::ledger::{Ledger, Weight};
use crate::matcher::Matcher;
use crate::plan::{Action, Fields, Plan, Rule};
use crate::routes::{Earlier, gives_way, outcome};
use crate::toml_text::quoted_list;

/// Removes `index` and `fallback` files from rules where another rule decides about the file.
pub(crate) fn withdraw(plan: &mut Plan, ledger: &mut Ledger) {
    for host in &mut plan.hosts {
        let mut order = Earlier::default();
        for (at, rule) in host.rules.iter().enumerate() {
            order.add(&rule.matcher, at);
        }
        let serves = |it: &usize| matches!(outcome(&host.rules[*it]), Action::Serve(_));
        let all = (0..host.rules.len()).filter(serves);
        let found: Vec<(usize, Vec<String>, bool)> = all
            .map(|at| {
                let rule = &host.rules[at];
                let page = names(rule, "fallback", "");
                let index = names(rule, "index", INDEX).into_iter();
                let gone =
                    index.filter(|it| is_hidden(rule, it) || meets(&host.rules, &order, at, it));
                let is_met = |page: &String| {
                    let mut pages = pages(&rule.matcher, page).into_iter();
                    let other = |it| decides(&host.rules, &order, at, it);
                    pages.any(|it| other(it).is_some_and(|it| !is_alike(&host.rules[it], rule)))
                };
                (at, gone.collect(), page.iter().any(is_met))
            })
            .collect();
        for (at, index, page) in found {
            take(&mut host.rules[at], &index, page, ledger);
        }
    }
}

fn take(rule: &mut Rule, gone: &[String], page: bool, ledger: &mut Ledger) {
    let index = names(rule, "index", INDEX);
    let Action::Serve(serve) = &mut rule.action else {
        return;
    };
    if !gone.is_empty() {
        let left = index.iter().filter(|it| !gone.contains(it));
        serve.keys.insert("index".to_owned(), quoted_list(left));
        let text = format!(
            "{} stands for a directory, and another rule of the source decides about it: `index` is without it here",
            gone.join(", ")
        );
        ledger.say(Weight::Risk, rule.place.clone(), text);
    }
    if page {
        serve.keys.remove("fallback");
        let text = "another rule of the source decides about the page in the place of what is missing: the front \
                    answers 404 instead. If clients may have the page, write it into `fallback`";
        ledger.say(Weight::Risk, rule.place.clone(), text);
    }
    // Otherwise the application would get requests that the source answers by that other rule.
    if !gone.is_empty() && serve.upstream.is_some() {
        rule.action = Action::Closed;
    }
}

/// Whether the rule itself hides files of this name.
fn is_hidden(rule: &Rule, name: &str) -> bool {
    let file = format!("/{name}");
    let hidden = names(rule, "hide", "");
    hidden
        .iter()
        .any(|it| Matcher::pattern(&format!("/{it}")).has(&file))
}

/// The file names in a key of the rule; `preset` if the rule does not have the key.
fn names(rule: &Rule, key: &str, preset: &str) -> Vec<String> {
    let Action::Serve(serve) = &rule.action else {
        return Vec::new();
    };
    let text = serve.keys.get(key).map_or(preset, String::as_str);
    let quoted_names = text.trim_matches(['[', ']']).split(", ");
    let names = quoted_names.map(|it| it.trim_matches('"').to_owned());
    names.filter(|it| !it.is_empty()).collect()
}

/// The path of a file in the directory of a rule's paths.
fn path(matcher: &Matcher, name: &str) -> Option<String> {
    match matcher {
        Matcher::Prefix(path) => Some(format!("{path}/{name}")),
        Matcher::Exact(path) => Some(format!("{}/{name}", path.trim_end_matches('/'))),
        _ => None,
    }
}

/// The paths at which a rule's `fallback` page may be: in its own directory and, for a rule of one path, in each
/// directory above. Such a rule may be a part of a former rule for a whole directory.
fn pages(matcher: &Matcher, page: &str) -> Vec<String> {
    let mut found: Vec<String> = path(matcher, page).into_iter().collect();
    if let Matcher::Exact(path) = matcher {
        let ends = path.match_indices('/');
        found.extend(ends.map(|(end, _)| format!("{}/{page}", &path[..end])));
    }
    found
}

/// Whether another rule decides about a file of this name in a directory that the rule at index `at` serves.
fn meets(rules: &[Rule], order: &Earlier, at: usize, name: &str) -> bool {
    let directories = match &rules[at].matcher {
        // Without the slash, the path is redirected to the one with a slash.
        Matcher::Exact(path) if !path.ends_with('/') => return false,
        Matcher::Exact(_) => {
            let file = path(&rules[at].matcher, name);
            let other = file.and_then(|it| decides(rules, order, at, it));
            return other.is_some_and(|it| !is_index(&rules[it], &rules[at]));
        }
        Matcher::Prefix(path) => vec![format!("{path}/"), format!("{path}/*/")],
        // An expression serves no directories.
        Matcher::Expression(_) => return false,
        other => vec![format!("{}/", other.shown())],
    };
    let is_one = |directory: &String| {
        let files = Matcher::pattern(&format!("{directory}{name}"));
        let is_before = |it: &usize| *it < at || gives_way(&rules[at], &rules[*it]);
        let before = order.related(&files).into_iter().filter(is_before);
        let is_other = |it: &usize| {
            let rule = &rules[*it];
            rule.takes_get() && !is_index(rule, &rules[at]) && !is_asked_before(rules, *it, at)
        };
        let mut others = before.filter(is_other);
        others.any(|it| rules[it].matcher.takes_file(directory, name))
    };
    directories.iter().any(is_one)
}

/// The index of the rule that decides about a path; `None` if it is `at` itself.
fn decides(rules: &[Rule], order: &Earlier, at: usize, path: String) -> Option<usize> {
    let file = Matcher::Exact(path.clone());
    // Requests for this rule did not match the other one, for instance because of their scheme.
    let passed = |it: usize| {
        let is_before = it < at && rules[it].matcher.covers(&rules[at].matcher);
        !rules[it].takes_get() || is_before || is_asked_before(rules, it, at)
    };
    let mut related = order.related(&file).into_iter();
    let mut next = || related.find(|it| rules[*it].matcher.has(&path) && !passed(*it));
    let mut first = next();
    if let Some(yielding) = first.filter(|it| rules[*it].yields) {
        let mut behind = std::iter::from_fn(next);
        let expression = behind.find(|it| gives_way(&rules[yielding], &rules[*it]));
        first = expression.or(first);
    }
    first.filter(|it| *it != at)
}

/// Whether requests for the paths of rule `at` that pass the tests of rule `it` are already answered by an earlier
/// rule, so that those that reach rule `at` do not pass them.
fn is_asked_before(rules: &[Rule], it: usize, at: usize) -> bool {
    let rule = &rules[it];
    let is_same = |other: &Rule| {
        other.matcher == rules[at].matcher
            && other.tests == rule.tests
            && other.action == rule.action
    };
    !rule.tests.is_empty() && rules[..at].iter().any(is_same)
}

/// The settings that decide the media types of a rule's files.
fn types(rule: &Rule) -> [Option<&String>; 2] {
    let table = match &rule.action {
        Action::Serve(serve) => serve.keys.get("types"),
        _ => None,
    };
    [table, rule.settings.response_fields.set.get("Content-Type")]
}

/// Whether the index file of a directory is the same by the rule that decides about the file as by the rule of the
/// directory.
fn is_index(one: &Rule, other: &Rule) -> bool {
    is_alike(one, other) && !is_elsewhere(one, other)
}

/// Whether two rules serve files of different directories.
fn is_elsewhere(one: &Rule, other: &Rule) -> bool {
    match (&one.action, &other.action) {
        (Action::Serve(serve), Action::Serve(own)) => serve.directory != own.directory,
        // The importer has its own reason not to serve these files.
        (Action::Files, Action::Serve(_)) => true,
        _ => false,
    }
}

/// Whether two rules serve files to the same clients with the same media types, and the second adds all fields that
/// the first adds. Rules of expressions must serve the same directory.
fn is_alike(one: &Rule, other: &Rule) -> bool {
    let certificate = |it: &Rule| it.settings.keys.get("client_certificate").cloned();
    matches!(one.action, Action::Serve(_) | Action::Files)
        && !(one.matcher.is_expression() && is_elsewhere(one, other))
        && types(one) == types(other)
        && adds_all(
            &other.settings.response_fields,
            &one.settings.response_fields,
        )
        && one.settings.access == other.settings.access
        && certificate(one) == certificate(other)
}

fn adds_all(one: &Fields, other: &Fields) -> bool {
    let has = |mine: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>| {
        theirs
            .iter()
            .all(|(name, value)| mine.get(name) == Some(value))
    };
    has(&one.set, &other.set) && has(&one.add, &other.add)
}

/// The default index file of httpd, nginx and the front.
const INDEX: &str = "index.html";
