//! Files that are served for other paths: the index of a directory, and the page for missing files.
//!
//! The source applies its rules to such a file as if a client had requested it. The front serves it by the rule of
//! the directory. Therefore the written route does not use such a file if another rule of the source decides about
//! it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::directory::contents;
use crate::files::Files;
use crate::ledger::{Ledger, Weight};
use crate::matcher::Matcher;
use crate::plan::{Action, Fields, Plan, Rule};
use crate::routes::{Earlier, gives_way, outcome};
use crate::toml_text::quoted_list;

/// Which of the files that stand for a directory the source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexChoice {
    /// The first that is there, or the answer of the rule that decides about it (nginx).
    FirstThere,
    /// The first that the rules about it let the client have (httpd).
    FirstServed,
}

/// Removes `index` and `fallback` files from rules where another rule decides about the file.
pub(crate) fn withdraw(
    plan: &mut Plan,
    choice: IndexChoice,
    files: &dyn Files,
    ledger: &mut Ledger,
) {
    for host in &mut plan.hosts {
        let mut order = Earlier::default();
        for (at, rule) in host.rules.iter().enumerate() {
            order.add(&rule.matcher, at);
        }
        let mut changes: Vec<(usize, UnusableFiles)> = Vec::new();
        for (at, rule) in host.rules.iter().enumerate() {
            if matches!(outcome(rule), Action::Serve(_)) {
                changes.push((at, UnusableFiles::of(&host.rules, &order, at)));
            }
        }
        for (at, unusable) in changes {
            unusable.remove_from(&mut host.rules[at], choice, files, ledger);
        }
    }
}

/// The files that a rule cannot serve for other paths, because another rule decides about them.
struct UnusableFiles {
    index: Vec<String>,
    has_fallback: bool,
}

impl UnusableFiles {
    /// The files that the rule at index `at` cannot serve.
    fn of(rules: &[Rule], order: &Earlier, at: usize) -> Self {
        let rule = &rules[at];
        let mut index = names(rule, "index", INDEX);
        index.retain(|name| is_hidden(rule, name) || is_decided_elsewhere(rules, order, at, name));
        let fallbacks = names(rule, "fallback", "");
        let mut paths = fallbacks.iter().flat_map(|page| pages(&rule.matcher, page));
        let has_fallback = paths.any(|path| match decides(rules, order, at, path) {
            Some(other) => !is_alike(&rules[other], rule),
            None => false,
        });
        Self {
            index,
            has_fallback,
        }
    }

    /// Removes the files from the rule's keys and reports that. Closes the rule if its upstream would get requests for
    /// a removed index file.
    fn remove_from(
        &self,
        rule: &mut Rule,
        choice: IndexChoice,
        files: &dyn Files,
        ledger: &mut Ledger,
    ) {
        let mut index = names(rule, "index", INDEX);
        let Action::Serve(serve) = &mut rule.action else {
            return;
        };
        if !self.index.is_empty() {
            let inside = contents(files, Path::new(&serve.source), &self.index);
            // Nothing is lost if no directory has such a file.
            let is_there = inside.has_guards || inside.is_hidden;
            let weight = if is_there { Weight::Risk } else { Weight::Note };
            if is_there && choice == IndexChoice::FirstThere {
                let first = index.iter().position(|name| self.index.contains(name));
                index.truncate(first.unwrap_or(index.len()));
            } else {
                index.retain(|name| !self.index.contains(name));
            }
            serve.keys.insert("index".to_owned(), quoted_list(index));
            let text = format!(
                "{} stands for a directory, and another rule of the source decides about it: `index` is without it here",
                self.index.join(", ")
            );
            ledger.say(weight, rule.place.clone(), text);
        }
        if self.has_fallback {
            serve.keys.remove("fallback");
            let text = "another rule of the source decides about the page in the place of what is missing: the front \
                        answers 404 instead. If clients may have the page, write it into `fallback`";
            ledger.say(Weight::Risk, rule.place.clone(), text);
        }
        // For what is no file, the route asks the upstream: it would get requests that another rule answers.
        if !self.index.is_empty() && serve.upstream.is_some() {
            rule.action = Action::Closed;
        }
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

/// The path of a file in the directory of a rule's paths; `None` if the rule is not for a single directory.
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

/// Whether another rule decides about a file of this name in a directory that the rule at index `at` serves, and the
/// client may get another answer by it. May be `true` where the answer is no.
fn is_decided_elsewhere(rules: &[Rule], order: &Earlier, at: usize, name: &str) -> bool {
    let directories = match &rules[at].matcher {
        // Without the slash, the path is redirected to the one with a slash.
        Matcher::Exact(path) if !path.ends_with('/') => return false,
        Matcher::Exact(_) => {
            let file = path(&rules[at].matcher, name);
            let other = file.and_then(|it| decides(rules, order, at, it));
            return other.is_some_and(|it| !is_index(&rules[it], &rules[at]));
        }
        Matcher::Prefix(path) => vec![format!("{path}/"), format!("{path}/*/")],
        // An expression may match each directory.
        Matcher::Expression(_) => vec!["/".to_owned(), "/*/".to_owned()],
        other => vec![format!("{}/", other.shown())],
    };
    directories.iter().any(|directory| {
        let files = Matcher::pattern(&format!("{directory}{name}"));
        let mut related = order.related(&files).into_iter();
        related.any(|other| {
            let rule = &rules[other];
            let is_preferred = other < at || gives_way(&rules[at], rule);
            let gets_requests = || rule.takes_get() && !is_asked_before(rules, other, at);
            let takes_file = || rule.matcher.takes_file(directory, name);
            is_preferred && !is_index(rule, &rules[at]) && gets_requests() && takes_file()
        })
    })
}

/// The index of the rule that decides about a path; `None` if it is `at` itself.
fn decides(rules: &[Rule], order: &Earlier, at: usize, path: String) -> Option<usize> {
    let file = Matcher::Exact(path.clone());
    let mut applicable = order.related(&file).into_iter().filter(|&other| {
        let rule = &rules[other];
        // Requests for this rule did not match the other one, for instance because of their scheme.
        let is_passed = || {
            let is_before = other < at && rule.matcher.covers(&rules[at].matcher);
            is_before || is_asked_before(rules, other, at)
        };
        rule.matcher.has(&path) && rule.takes_get() && !is_passed()
    });
    let first = applicable.next()?;
    let mut deciding = first;
    if rules[first].yields {
        let expression = applicable.find(|&it| gives_way(&rules[first], &rules[it]));
        deciding = expression.unwrap_or(first);
    }
    (deciding != at).then_some(deciding)
}

/// Whether an earlier rule with the paths of rule `at` asks the tests of rule `other` and does the same as it. Then
/// requests that reach rule `at` do not pass these tests.
fn is_asked_before(rules: &[Rule], other: usize, at: usize) -> bool {
    let tested = &rules[other];
    let answers_them = |earlier: &Rule| {
        earlier.matcher == rules[at].matcher
            && earlier.tests == tested.tests
            && earlier.action == tested.action
    };
    !tested.tests.is_empty() && rules[..at].iter().any(answers_them)
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
        && one.settings.sign_on == other.settings.sign_on
        && certificate(one) == certificate(other)
}

/// Whether the changes `fields` contain all of `others`, apart from removals.
fn adds_all(fields: &Fields, others: &Fields) -> bool {
    let has_all = |values: &BTreeMap<String, String>, others: &BTreeMap<String, String>| {
        let mut others = others.iter();
        others.all(|(name, value)| values.get(name) == Some(value))
    };
    has_all(&fields.set, &others.set) && has_all(&fields.add, &others.add)
}

/// The default index file of httpd, nginx and the front.
const INDEX: &str = "index.html";
