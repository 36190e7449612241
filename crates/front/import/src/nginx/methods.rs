//! Guards by method of nginx: `limit_except` with `deny all`, and `if ($request_method …)` that returns.

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::methods::MethodGuard;
use crate::nginx::answer::{TextType, answer};
use crate::plan::Action;

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
    Some(guard.answering(answer(only, TextType::Unknown, None, ledger)))
}

/// Reads a `limit_except` that denies all; `None` for any other.
pub(super) fn of_limit(directive: &Directive, ledger: &mut Ledger) -> Option<MethodGuard> {
    let [only] = directive.inside() else {
        return None;
    };
    if only.name != "deny" || only.word(0) != "all" {
        return None;
    }
    let mut methods = directive.words.clone();
    // In nginx, GET includes HEAD here.
    if methods.iter().any(|it| it == "GET") {
        methods.push("HEAD".to_owned());
    }
    let is_for_others = true;
    let place = ledger.place(directive.id);
    let guard = MethodGuard::new(place, methods, is_for_others, Action::Answer(403))?;
    ledger.mapped(directive.id);
    ledger.mapped(only.id);
    Some(guard)
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
