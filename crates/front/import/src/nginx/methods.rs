//! Guards by method of nginx: `limit_except` with access rules, and `if ($request_method …)` that returns.

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::methods::MethodGuard;
use crate::nginx::answer::{TextType, answer};
use crate::nginx::location::{Scope, networks};
use crate::plan::{Access, Action};

/// Reads an `if` that tests only the method and only returns; `None` for any other `if`.
pub(super) fn of_condition(directive: &Directive, ledger: &mut Ledger) -> Option<MethodGuard> {
    let (methods, is_for_others) = tested_methods(directive)?;
    let [only] = directive.inside() else {
        return None;
    };
    if only.name != "return" {
        return None;
    }
    let place = ledger.place(directive.id);
    // The answer follows once the guard is possible, because reading it is reported to the ledger.
    let guard = MethodGuard::new(place, methods, is_for_others, Action::Closed)?;
    ledger.mapped(directive.id);
    // Without a known type no text is sent: it may contain what the condition captured.
    Some(guard.answering(answer(only, TextType::UNKNOWN, None, ledger)))
}

/// Reads a `limit_except` with access rules alone; `None` for any other. Where the location does more than pass requests
/// on, it must deny all: nginx executes nothing of that for other methods.
pub(super) fn of_limit(
    directive: &Directive,
    scope: Scope<'_>,
    ledger: &mut Ledger,
) -> Option<MethodGuard> {
    let rules: Vec<&Directive> = directive.inside().iter().collect();
    let are_of_access = rules.iter().all(|it| matches!(&*it.name, "allow" | "deny"));
    if !are_of_access || rules.is_empty() {
        return None;
    }
    let mut methods = directive.words.clone();
    // In nginx, GET includes HEAD here.
    if methods.iter().any(|it| it == "GET") {
        methods.push("HEAD".to_owned());
    }
    let is_for_others = true;
    let place = ledger.place(directive.id);
    let refusing = MethodGuard::new(place, methods, is_for_others, Action::Answer(403))?;
    let guard = match networks(&rules)? {
        Access::Nobody => refusing,
        access @ Access::Clients(_) if only_passes(scope) => refusing.admitting(access),
        _ => return None,
    };
    ledger.mapped(directive.id);
    rules.iter().for_each(|it| ledger.mapped(it.id));
    let tests = rules.iter().map(|it| it.id);
    ledger.address_guards.written(tests);
    Some(guard)
}

/// Whether a location only passes requests on, to clients who meet all of its access rules.
fn only_passes(scope: Scope<'_>) -> bool {
    let inner = scope.blocks.first().copied().unwrap_or_default();
    let is_any = scope.find("satisfy").is_some_and(|it| it.word(0) == "any");
    let mut names = inner.iter().map(|it| it.name.as_str());
    let does_more = names.any(|it| DOES_MORE.contains(&it));
    scope.own("proxy_pass").is_some() && !does_more && !is_any
}

/// The methods that an `if` tests for, and whether its block applies to all others. `None` if it tests another
/// variable, or its expression is no list such as `^(GET|POST)$`.
fn tested_methods(directive: &Directive) -> Option<(Vec<String>, bool)> {
    let words = directive.words.join(" ");
    let inner = words.trim().strip_prefix('(')?.strip_suffix(')')?;
    let mut parts = inner.trim().splitn(3, ' ').map(str::trim);
    let (variable, operator, value) = (parts.next()?, parts.next()?, parts.next()?);
    let is_for_others = operator.starts_with('!');
    let methods: Vec<String> = match operator.strip_prefix('!').unwrap_or(operator) {
        "=" => vec![value.to_owned()],
        "~" | "~*" => {
            let whole = value.strip_prefix('^')?.strip_suffix('$')?;
            let group = whole.strip_prefix('(')?.strip_suffix(')')?;
            let list = group.strip_prefix("?:").unwrap_or(group);
            list.split('|').map(str::to_owned).collect()
        }
        _ => return None,
    };
    (variable == "$request_method").then_some((methods, is_for_others))
}

/// Directives of a location that nginx does not execute for the other methods of a `limit_except`.
const DOES_MORE: [&str; 6] = ["error_page", "if", "return", "rewrite", "set", "try_files"];
