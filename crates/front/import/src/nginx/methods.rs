//! Guards by method of nginx: `limit_except` with `deny all`, and `if ($request_method …)` that returns.

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::methods::MethodGuard;
use crate::nginx::answer::{TextType, answer};
use crate::plan::Action;

/// Reads an `if` that tests only the method and only returns; `None` for any other `if`.
pub(super) fn of_condition(directive: &Directive, ledger: &mut Ledger) -> Option<MethodGuard> {
    let (methods, is_for_others) = test(directive)?;
    let [only] = directive.inside() else {
        return None;
    };
    let place = ledger.place(directive.id).clone();
    let guard = |action| MethodGuard::new(&place, methods, is_for_others, action);
    let found = guard(Action::Closed).filter(|_| only.name == "return")?;
    ledger.mapped(directive.id);
    // The text may contain what the condition captured.
    Some(found.answering(answer(only, TextType::Unknown, None, ledger)))
}

/// Reads a `limit_except` that denies all; `None` for any other.
pub(super) fn of_limit(directive: &Directive, ledger: &mut Ledger) -> Option<MethodGuard> {
    let [only] = directive.inside() else {
        return None;
    };
    let mut methods = directive.words.clone();
    if methods.iter().any(|it| it == "GET") {
        methods.push("HEAD".to_owned());
    }
    let denies = only.name == "deny" && only.word(0) == "all";
    let place = ledger.place(directive.id).clone();
    let guard = MethodGuard::new(&place, methods, true, Action::Answer(403)).filter(|_| denies)?;
    ledger.mapped(directive.id);
    ledger.mapped(only.id);
    Some(guard)
}

/// The methods that an `if` tests for, and whether its block applies to all others.
fn test(directive: &Directive) -> Option<(Vec<String>, bool)> {
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
