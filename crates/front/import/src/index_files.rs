//! Files that stand for others: the index of a directory, and the page in the place of what is missing.
//!
//! The source asks its rules about such a file as if a client had asked for it. The front serves it by the rule of the
//! directory. So the written route has no such file where another rule of the source decides about it.

use crate::ledger::{Ledger, Weight};
use crate::matcher::Matcher;
use crate::plan::{Action, Plan, Rule};
use crate::routes::{Earlier, outcome};
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
                    pages.any(|it| decides(&host.rules, &order, at, it))
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
    // The application would get what the source answers by that rule.
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

/// The file names in a key of the rule; `preset` if the key is missing.
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

/// The paths at which a rule's `fallback` page may lie: in its own directory and, for a rule of one path, in each
/// directory above. Such a rule may have been cut out of a rule for a whole directory.
fn pages(matcher: &Matcher, page: &str) -> Vec<String> {
    let mut found: Vec<String> = path(matcher, page).into_iter().collect();
    if let Matcher::Exact(path) = matcher {
        let ends = path.match_indices('/');
        found.extend(ends.map(|(end, _)| format!("{}/{page}", &path[..end])));
    }
    found
}

/// Whether another rule decides about a file of this name in a directory that rule `at` serves.
fn meets(rules: &[Rule], order: &Earlier, at: usize, name: &str) -> bool {
    let directories = match &rules[at].matcher {
        // It is sent to the path with a slash.
        Matcher::Exact(path) if !path.ends_with('/') => return false,
        Matcher::Exact(_) => {
            let file = path(&rules[at].matcher, name);
            return file.is_some_and(|it| decides(rules, order, at, it));
        }
        Matcher::Prefix(path) => vec![format!("{path}/"), format!("{path}/*/")],
        other => vec![format!("{}/", other.shown())],
    };
    let is_one = |directory: &String| {
        let files = Matcher::pattern(&format!("{directory}{name}"));
        let before = order.related(&files).into_iter().filter(|it| *it < at);
        let mut others = before.filter(|it| !is_alike(&rules[*it], &rules[at]));
        others.any(|it| rules[it].matcher.takes_file(directory, name))
    };
    directories.iter().any(is_one)
}

/// Whether another rule than `at` decides about a path.
fn decides(rules: &[Rule], order: &Earlier, at: usize, path: String) -> bool {
    let file = Matcher::Exact(path.clone());
    // Requests for the rule's own paths passed this one, as one of the other scheme.
    let passed = |it: usize| it < at && rules[it].matcher.covers(&rules[at].matcher);
    let mut related = order.related(&file).into_iter();
    let first = related.find(|it| rules[*it].matcher.has(&path) && !passed(*it));
    first.is_some_and(|it| it != at && !is_alike(&rules[it], &rules[at]))
}

/// The settings that give the files of a rule their media types.
fn types(rule: &Rule) -> [Option<&String>; 2] {
    let table = match &rule.action {
        Action::Serve(serve) => serve.keys.get("types"),
        _ => None,
    };
    [table, rule.settings.response_fields.set.get("Content-Type")]
}

/// Whether two rules serve files to the same clients, with the same media types.
fn is_alike(one: &Rule, other: &Rule) -> bool {
    let certificate = |it: &Rule| it.settings.keys.get("client_certificate").cloned();
    matches!(one.action, Action::Serve(_) | Action::Files)
        && types(one) == types(other)
        && one.settings.access == other.settings.access
        && certificate(one) == certificate(other)
}

/// The default index file of httpd, nginx and the front.
const INDEX: &str = "index.html";
