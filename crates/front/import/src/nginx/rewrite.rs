//! Directives that a server executes before it chooses a location: `return`, `rewrite`, and `if`.

use crate::condition::{
    Condition, Port, Scheme, SettledCondition, When, captured, of_host, of_port, of_whole_host,
};
use crate::directive::{Directive, drop_all, part_all};
use crate::expression::{Expression, translated};
use crate::ledger::{Id, Ledger};
use crate::matcher::Matcher;
use crate::nginx::answer::{HOST_CAPTURE, TextType, answer, template};
use crate::nginx::guards::{Guard, OrderedGuards};
use crate::nginx::request_tests::{Choices, only_sets, sets_known, versions};
use crate::plan::{Action, Rule};

/// The rules of a server that come before its locations, in the order of the file, and its guards among them. Texts
/// have the type `text_type`.
pub(super) fn of_server(
    directives: &[Directive],
    text_type: TextType<'_>,
    ports: &[Port],
    choices: &Choices,
    ledger: &mut Ledger,
) -> (Vec<Rule>, OrderedGuards) {
    let (mut rules, mut among) = (Vec::new(), OrderedGuards::default());
    for (index, directive) in directives.iter().enumerate() {
        match directive.name.as_str() {
            "return" | "rewrite" => {
                for (tests, version) in versions(directive, choices) {
                    let mut found = of_return_or_rewrite(&version, text_type, ledger);
                    found.iter_mut().for_each(|it| it.add_tests(&tests));
                    rules.extend(found);
                }
            }
            "if" | "set" if sets_known(directive, choices) => {
                let all = [directive].into_iter().chain(directive.inside());
                all.for_each(|it| ledger.mapped(it.id));
            }
            "if" => match Guard::of_condition(directive, choices, text_type, ledger) {
                // The front would prefer the redirect of one path to what stands above it.
                Some(guard)
                    if !guard.is_of_one_path() || (rules.is_empty() && among.guards.is_empty()) =>
                {
                    among.guards.push(guard);
                }
                _ => rules.extend(condition(directive, ports, ledger)),
            },
            _ => {}
        }
        // The guards so far stand above the new rules.
        among.above.resize(rules.len(), among.guards.len());
        if is_last(directive) {
            drop_behind(directive, &directives[index + 1..], ledger);
            break;
        }
    }
    (rules, among)
}

/// Drops the directives of the rewrite module behind a server's `return`, which are never executed. What stands behind a
/// `break` is left to the judge, which closes the locations because of that.
fn drop_behind(last: &Directive, behind: &[Directive], ledger: &mut Ledger) {
    if last.name != "return" {
        return;
    }
    let is_of_module = |it: &&Directive| {
        matches!(
            it.name.as_str(),
            "return" | "rewrite" | "break" | "if" | "set"
        )
    };
    for directive in behind.iter().filter(is_of_module) {
        let text = "it stands behind a `return`, which answers before it is asked";
        drop_all([directive], text, ledger);
    }
}

/// Whether nginx executes no directive of the rewrite module behind this one.
fn is_last(directive: &Directive) -> bool {
    matches!(directive.name.as_str(), "return" | "break")
}

/// The rules of an `if` in a location that tests only the scheme and only returns. There are none if its condition
/// never holds; `None` for any other `if`.
pub(super) fn of_location(
    directive: &Directive,
    ports: &[Port],
    ledger: &mut Ledger,
) -> Option<Vec<Rule>> {
    let (tested, _) = tested_condition(directive, ports);
    let is_convertible = match (tested.settled(), directive.inside()) {
        (SettledCondition::Never, _) => true,
        (SettledCondition::Holds(_), [only]) => only.name == "return",
        _ => false,
    };
    is_convertible.then(|| condition(directive, ports, ledger))
}

/// The `if`s that test the scheme that a proxy before the server reports, in these blocks and inside of them.
pub(super) fn claims<'d>(directives: impl IntoIterator<Item = &'d Directive>) -> Vec<Id> {
    let mut found = Vec::new();
    for directive in directives {
        if directive.name == "if" && directive.words.iter().any(|it| it.contains(CLAIM)) {
            found.push(directive.id);
        }
        found.extend(claims(directive.inside()));
    }
    found
}

/// The rules of a single `return` or `rewrite`.
fn of_return_or_rewrite(
    directive: &Directive,
    text_type: TextType<'_>,
    ledger: &mut Ledger,
) -> Vec<Rule> {
    if directive.name == "rewrite" {
        return rewrite(directive, ledger);
    }
    let place = ledger.place(directive.id).clone();
    let action = answer(directive, text_type, None, ledger);
    vec![Rule::new(Some(&place), Matcher::everything(), action)]
}

/// The rules of a server's `if` that redirects or answers, for a scheme or for some hosts. For any other `if`, all
/// paths are closed.
fn condition(directive: &Directive, ports: &[Port], ledger: &mut Ledger) -> Vec<Rule> {
    let inner = directive.inside();
    if only_sets(directive) {
        lose_sets(directive, ledger);
        return Vec::new();
    }
    let (condition, capture) = tested_condition(directive, ports);
    let settled = condition.settled();
    if settled == SettledCondition::Never {
        let text = "its condition never holds: it asks for ports that no listener has, or for TRACE, which the front answers 405";
        drop_all([directive], text, ledger);
        return Vec::new();
    }
    let convertible = match (settled, inner) {
        (SettledCondition::Holds(_) | SettledCondition::Waits, [only]) => {
            Some(only).filter(|it| matches!(it.name.as_str(), "return" | "rewrite"))
        }
        _ => None,
    };
    // A `rewrite` has an expression of its own, so the groups of the condition are lost.
    let capture = capture.filter(|_| convertible.is_some_and(takes_capture));
    let mut rules = match convertible {
        Some(only) => {
            ledger.mapped(directive.id);
            let version = with_capture(only, capture.is_some());
            // Without a known type no text is sent: it may contain what the condition captured.
            of_return_or_rewrite(&version, TextType::UNKNOWN, ledger)
        }
        None => {
            ledger.unmapped(directive.id, "a condition of this kind was not converted");
            part_all(inner, directive.id, ledger);
            let place = ledger.place(directive.id).clone();
            vec![Rule::new(
                Some(&place),
                Matcher::everything(),
                Action::Closed,
            )]
        }
    };
    match settled {
        SettledCondition::Holds(scheme) => rules.iter_mut().for_each(|it| it.scheme = scheme),
        SettledCondition::Waits => {
            let all = [directive].into_iter().chain(inner);
            let when = Box::new(When {
                condition,
                ids: all.map(|it| it.id).collect(),
                capture,
            });
            rules.iter_mut().for_each(|it| it.when = Some(when.clone()));
        }
        // Never was handled above; the rules of what is not known are closed for all requests.
        SettledCondition::Never | SettledCondition::Unsaid => {}
    }
    rules
}

/// Reports an `if` that only sets variables. That decides nothing by itself; the directive that uses one is judged.
pub(super) fn lose_sets(directive: &Directive, ledger: &mut Ledger) {
    let text = "the importer does not know the values of the variable that it sets: each directive that uses it is reported on its own line";
    ledger.lost(directive.id, text);
    part_all(directive.inside(), directive.id, ledger);
}

/// Whether a `return` uses what the expression of its `if` captured.
fn takes_capture(directive: &Directive) -> bool {
    directive.name == "return" && directive.words.iter().any(|it| it.contains("$1"))
}

/// The directive with [`HOST_CAPTURE`] in place of `$1`, if the host expression before it captures.
fn with_capture(directive: &Directive, captures: bool) -> Directive {
    let mark = |word: &String| {
        if captures {
            word.replace("$1", HOST_CAPTURE)
        } else {
            word.clone()
        }
    };
    Directive {
        words: directive.words.iter().map(mark).collect(),
        ..directive.clone()
    }
}

/// The condition of an `if`. If its expression captures the end of the host as `$1`, also returns the beginning of the
/// host, which is before the capture.
fn tested_condition(directive: &Directive, ports: &[Port]) -> (Condition, Option<String>) {
    let words = directive.words.join(" ");
    let inner = words
        .trim()
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'));
    let mut parts = inner.unwrap_or_default().trim().splitn(3, ' ');
    let [variable, operator, value] = [(); 3].map(|()| parts.next().unwrap_or_default().trim());
    let (negated, operator) = match operator.strip_prefix('!') {
        Some(operator) => (true, operator),
        None => (false, operator),
    };
    let condition = match (variable, operator, value) {
        ("$scheme", "=", "http" | "https") => of_scheme(value == "https", ports),
        ("$https", "=", "on" | "") => of_scheme(value == "on", ports),
        // Without the field, the request came over HTTP; `!= http` would be true for it, too, so it is not converted.
        (CLAIM, "=", "https") => Condition::Scheme(Scheme::Https),
        (CLAIM, "=", "http") if !negated => Condition::Scheme(Scheme::Http),
        ("$server_port", "=", _) => of_port(&format!("={value}"), ports),
        ("$server_port", "~", _) => of_port(value, ports),
        ("$host" | "$http_host", "=", _) if value.contains('$') => Condition::Unsaid,
        // nginx makes it lower case, so that nothing with a capital letter matches.
        ("$host", "=" | "~", _) if value.bytes().any(|it| it.is_ascii_uppercase()) => {
            Condition::Unsaid
        }
        ("$host", "=", _) => of_whole_host(value, &[]),
        ("$http_host", "=", _) => of_whole_host(value, ports),
        ("$host", "~" | "~*", _) => of_host(value, &[]),
        ("$http_host", "~" | "~*", _) => of_host(value, ports),
        ("$request_method", "=", "TRACE") => Condition::Never,
        _ => Condition::Unsaid,
    };
    let is_host = matches!(variable, "$host" | "$http_host") && operator.starts_with('~');
    let capture = captured(value).filter(|_| is_host && !negated);
    (condition.negated_if(negated), capture)
}

/// The condition that a client came to this server by HTTPS, or by HTTP.
fn of_scheme(is_https: bool, ports: &[Port]) -> Condition {
    let has_both = ports.iter().any(|it| it.1 != ports[0].1);
    match is_https {
        true if has_both => Condition::Scheme(Scheme::Https),
        false if has_both => Condition::Scheme(Scheme::Http),
        // `$scheme` is the same on all of the server's ports.
        _ if ports.iter().all(|it| it.1 == is_https) => Condition::Always,
        _ => Condition::Never,
    }
}

/// The rule of a server's `rewrite`: a redirect, or closed.
fn rewrite(directive: &Directive, ledger: &mut Ledger) -> Vec<Rule> {
    let place = ledger.place(directive.id).clone();
    let expression = translated(directive.word(0), false);
    let action = match redirect(directive, &expression) {
        Some(action) => {
            ledger.mapped(directive.id);
            action
        }
        None => {
            let text = "the front has no redirect that does the same as this rewrite";
            ledger.unmapped(directive.id, text);
            Action::Closed
        }
    };
    let matcher = if takes_all(&expression) {
        Matcher::everything()
    } else {
        Matcher::Expression(expression)
    };
    vec![Rule::new(Some(&place), matcher, action)]
}

/// The redirect of a location whose only directive of the rewrite module is a `rewrite` of every path; `None` if
/// there is none.
pub(super) fn redirect_of_all(own: &[Directive]) -> Option<(&Directive, Action)> {
    let is_of_module = |it: &&Directive| matches!(it.name.as_str(), "rewrite" | "return" | "break");
    let of_module: Vec<&Directive> = own.iter().filter(is_of_module).collect();
    let [only] = of_module[..] else {
        return None;
    };
    let expression = translated(only.word(0), false);
    if only.name != "rewrite" || !takes_all(&expression) {
        return None;
    }
    Some((only, redirect(only, &expression)?))
}

/// The path and the redirect of a `rewrite` of one path, such as `^/$`; `None` for any other.
pub(super) fn redirect_of_one(directive: &Directive) -> Option<(String, Action)> {
    let expression = translated(directive.word(0), false);
    let path = directive.word(0).strip_prefix('^')?.strip_suffix('$')?;
    let is_sign = |it: u8| it.is_ascii_alphanumeric() || b"/_-".contains(&it);
    if !path.starts_with('/') || !path.bytes().all(is_sign) {
        return None;
    }
    let action = redirect(directive, &expression)?;
    Some((path.to_owned(), action))
}

/// The redirect of a `rewrite`; `None` if the front has none that does the same.
fn redirect(directive: &Directive, expression: &Expression) -> Option<Action> {
    if !expression.is_exact {
        return None;
    }
    let status = match directive.word(2) {
        "permanent" => 301,
        "redirect" => 302,
        "" if is_url(directive.word(1)) => 302,
        _ => return None,
    };
    let mut to = redirected(directive.word(1), expression)?;
    // The rule is then for all paths and has no expression whose group could be named.
    if takes_all(expression) {
        to = to.replace("{1}{search}", "{path_query}");
        to = to.replace("{1}", "{path}");
    }
    Some(Action::Redirect { to, status })
}

/// Whether nginx redirects to a target without a flag, because it is a URL.
fn is_url(target: &str) -> bool {
    ["http://", "https://", "$scheme"]
        .iter()
        .any(|it| target.starts_with(it))
}

/// Whether an expression matches every path, and captures all of it or nothing.
fn takes_all(expression: &Expression) -> bool {
    ["^", "^/", "^.*", "^.*$", ".*", "^(.*)", "^(.*)$", "(.*)"].contains(&expression.text())
}

/// The target of a `rewrite` that redirects. nginx appends the query, unless the target ends with `?`. `None` if the
/// target has variables that the front does not have, or that have a query themselves.
fn redirected(target: &str, expression: &Expression) -> Option<String> {
    let without_query = target.strip_suffix('?');
    let to = template(without_query.unwrap_or(target), Some(expression))?;
    match without_query {
        Some(_) => Some(to),
        None if to.contains("{path_query}") || to.contains("{search}") => None,
        None if to.contains('?') => Some(to + "{and_query}"),
        None => Some(to + "{search}"),
    }
}

/// The variable for the scheme that a proxy before the server reports.
const CLAIM: &str = "$http_x_forwarded_proto";
