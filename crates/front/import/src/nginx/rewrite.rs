//! Directives that a server executes before it chooses a location: `return`, `rewrite`, and `if`.

use crate::condition::{
    Condition, Port, Scheme, SettledCondition, When, captured, of_host, of_port,
};
use crate::directive::{Directive, drop_all, part_all};
use crate::expression::{Expression, translated};
use crate::ledger::{Id, Ledger};
use crate::matcher::Matcher;
use crate::nginx::answer::{HOST_CAPTURE, TextType, answer, template};
use crate::nginx::guards::{Guard, OrderedGuards};
use crate::nginx::request_tests::{Choices, only_sets, sets_known, versions};
use crate::plan::{Action, Rule};
use crate::regex::HostTest;

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
    for directive in directives {
        match directive.name.as_str() {
            "return" | "rewrite" => {
                for (tests, version) in versions(directive, choices) {
                    let mut found = one(&version, text_type, ledger);
                    found.iter_mut().for_each(|it| it.add_tests(&tests));
                    rules.extend(found);
                }
            }
            "if" | "set" if sets_known(directive, choices) => {
                let all = [directive].into_iter().chain(directive.inside());
                all.for_each(|it| ledger.mapped(it.id));
            }
            "if" => match Guard::of_condition(directive, choices, text_type, ledger) {
                Some(guard) => among.guards.push(guard),
                None => rules.extend(condition(directive, ports, ledger)),
            },
            _ => {}
        }
        among.above.resize(rules.len(), among.guards.len());
        // Nothing after it is reached.
        if directive.name == "return" {
            break;
        }
    }
    (rules, among)
}

/// The rules of an `if` in a location that tests only the scheme and only returns, or that is never true; `None` for
/// any other `if`.
pub(super) fn of_location(
    directive: &Directive,
    ports: &[Port],
    ledger: &mut Ledger,
) -> Option<Vec<Rule>> {
    let settled = test(directive, ports).0.settled();
    if settled == SettledCondition::Never {
        return Some(condition(directive, ports, ledger));
    }
    let is_scheme = matches!(settled, SettledCondition::Holds(_));
    let [only] = directive.inside() else {
        return None;
    };
    (is_scheme && only.name == "return").then(|| condition(directive, ports, ledger))
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
fn one(directive: &Directive, text_type: TextType<'_>, ledger: &mut Ledger) -> Vec<Rule> {
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
    let (condition, capture) = test(directive, ports);
    let settled = condition.settled();
    if settled == SettledCondition::Never {
        let text = "its condition never holds: it asks for ports that no listener has, or for TRACE, which the front answers 405";
        drop_all([directive], text, ledger);
        return Vec::new();
    }
    let single = match (settled, inner) {
        (SettledCondition::Holds(_) | SettledCondition::Waits, [only]) => Some(only),
        _ => None,
    };
    let only = single.filter(|it| matches!(it.name.as_str(), "return" | "rewrite"));
    // A `rewrite` has an expression of its own, so the groups of the condition are lost.
    let capture = capture.filter(|_| only.is_some_and(takes_capture));
    let mut rules = match only {
        Some(only) => {
            ledger.mapped(directive.id);
            // The text may contain what the condition captured.
            one(
                &with_capture(only, capture.is_some()),
                TextType::Unknown,
                ledger,
            )
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
        SettledCondition::Never | SettledCondition::Unsaid => {}
    }
    rules
}

/// Reports an `if` that only sets variables. That decides nothing by itself; the directive that uses one is judged.
pub(super) fn lose_sets(directive: &Directive, ledger: &mut Ledger) {
    let text =
        "the variable that it sets is empty here: what uses it is decided about where it stands";
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

/// The condition of an `if`; if its expression captures the end of the host, also the beginning of the host before
/// it.
fn test(directive: &Directive, ports: &[Port]) -> (Condition, Option<String>) {
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
    let own = |is_https: bool| match ports.iter().any(|it| it.1 != ports[0].1) {
        true => Condition::Scheme(if is_https {
            Scheme::Https
        } else {
            Scheme::Http
        }),
        // `$scheme` is the same on all of the server's ports.
        false if ports.iter().all(|it| it.1 == is_https) => Condition::Always,
        false => Condition::Never,
    };
    let condition = match (variable, operator, value) {
        ("$scheme", "=", "http" | "https") => own(value == "https"),
        ("$https", "=", "on" | "") => own(value == "on"),
        // Without the field, the request came over HTTP; `!= http` would be true for it, too, so it is not converted.
        (CLAIM, "=", "https") => Condition::Scheme(Scheme::Https),
        (CLAIM, "=", "http") if !negated => Condition::Scheme(Scheme::Http),
        ("$server_port", "=", _) => of_port(&format!("={value}"), ports),
        ("$server_port", "~", _) => of_port(value, ports),
        ("$host" | "$http_host", "=", _) if value.contains([':', '$']) => Condition::Unsaid,
        ("$host" | "$http_host", "=", "") => Condition::Never,
        ("$host" | "$http_host", "=", _) => {
            Condition::Host(HostTest::Is(value.to_ascii_lowercase()))
        }
        ("$host", "~" | "~*", _) => of_host(value, &[]),
        ("$http_host", "~" | "~*", _) => of_host(value, ports),
        ("$request_method", "=", "TRACE") => Condition::Never,
        _ => Condition::Unsaid,
    };
    let is_host = matches!(variable, "$host" | "$http_host") && operator.starts_with('~');
    let capture = captured(value).filter(|_| is_host && !negated);
    (condition.negated_if(negated), capture)
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
    let is_one = |it: &&Directive| matches!(it.name.as_str(), "rewrite" | "return" | "break");
    let mut all = own.iter().filter(is_one);
    let only = all.next().filter(|it| it.name == "rewrite")?;
    let expression = translated(only.word(0), false);
    let is_whole = all.next().is_none() && takes_all(&expression);
    let action = redirect(only, &expression).filter(|_| is_whole)?;
    Some((only, action))
}

/// The redirect of a `rewrite`; `None` if the front has none that does the same.
fn redirect(directive: &Directive, expression: &Expression) -> Option<Action> {
    let status = match directive.word(2) {
        "permanent" => 301,
        "redirect" => 302,
        "" if is_url(directive.word(1)) => 302,
        _ => return None,
    };
    let target = redirected(directive.word(1), expression)?;
    let to = if takes_all(expression) {
        let with_query = target.replace("{1}{search}", "{path_query}");
        with_query.replace("{1}", "{path}")
    } else {
        target
    };
    (expression.is_exact).then_some(Action::Redirect { to, status })
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

/// The target of a `rewrite` that redirects. nginx appends the query, unless the target ends with `?`.
fn redirected(target: &str, expression: &Expression) -> Option<String> {
    let without = target.strip_suffix('?');
    let to = template(without.unwrap_or(target), Some(expression))?;
    match without {
        Some(_) => Some(to),
        None if to.contains('?') || to.contains("{path_query}") => None,
        None => Some(to + "{search}"),
    }
}

/// The variable for the scheme that a proxy before the server reports.
const CLAIM: &str = "$http_x_forwarded_proto";
