//! Directives that a server executes before it chooses a location: `return`, `rewrite`, and `if`.

use crate::condition::{
    Condition, Port, Scheme, SettledCondition, When, captured, of_host, of_port,
};
use crate::directive::{Directive, drop_all, part_all};
use crate::ledger::{Id, Ledger};
use crate::matcher::Matcher;
use crate::nginx::answer::{HOST_CAPTURE, TextType, answer, template};
use crate::plan::{Action, Rule};
use crate::regex::{HostTest, path_set, rest_of};

/// The rules of a server that precede its locations, in its order. Texts have the type `text_type`.
pub(super) fn of_server(
    directives: &[Directive],
    text_type: TextType<'_>,
    ports: &[Port],
    ledger: &mut Ledger,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    for directive in directives {
        match directive.name.as_str() {
            "return" | "rewrite" => rules.extend(one(directive, text_type, ledger)),
            "if" => rules.extend(condition(directive, ports, ledger)),
            _ => {}
        }
    }
    rules
}

/// The rules of an `if` in a location that only tests the scheme and only returns; `None` for any
/// other `if`.
pub(super) fn of_location(
    directive: &Directive,
    ports: &[Port],
    ledger: &mut Ledger,
) -> Option<Vec<Rule>> {
    let is_scheme = matches!(
        test(directive, ports).0.settled(),
        SettledCondition::Holds(_)
    );
    let [only] = directive.inside() else {
        return None;
    };
    (is_scheme && only.name == "return").then(|| condition(directive, ports, ledger))
}

/// The `if`s that test the scheme that a proxy before the server reports, in blocks and inside them.
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

/// The rules of one `return` or `rewrite`.
fn one(directive: &Directive, text_type: TextType<'_>, ledger: &mut Ledger) -> Vec<Rule> {
    if directive.name == "rewrite" {
        return rewrite(directive, ledger);
    }
    let place = ledger.place(directive.id).clone();
    let action = answer(directive, text_type, ledger);
    vec![Rule::new(Some(&place), Matcher::everything(), action)]
}

/// The rules of a server's `if` that redirects or answers, for a scheme or for some hosts. Others
/// close all paths.
fn condition(directive: &Directive, ports: &[Port], ledger: &mut Ledger) -> Vec<Rule> {
    let inner = directive.inside();
    // A variable decides nothing by itself; where it stands, it is judged.
    if !inner.is_empty() && inner.iter().all(|it| it.name == "set") {
        let text = "the variable that it sets is empty here: what uses it is decided about where it stands";
        ledger.lost(directive.id, text);
        part_all(inner, directive.id, ledger);
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
    // The expression of a `rewrite` takes anew.
    let capture = capture.filter(|_| only.is_some_and(takes_capture));
    let mut rules = match only {
        Some(only) => {
            ledger.mapped(directive.id);
            // What a condition took may be part of the text.
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

/// The condition of an `if`, and the beginning of the host before what its expression captures.
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
        // That of the connection is the same on all of its ports.
        false if ports.iter().all(|it| it.1 == is_https) => Condition::Always,
        false => Condition::Never,
    };
    let condition = match (variable, operator, value) {
        ("$scheme", "=", "http" | "https") => own(value == "https"),
        ("$https", "=", "on" | "") => own(value == "on"),
        // Without the field a client came in clear, which `!= http` does not say.
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

fn rewrite(directive: &Directive, ledger: &mut Ledger) -> Vec<Rule> {
    let place = ledger.place(directive.id).clone();
    let set = path_set(directive.word(0), false);
    let status = match directive.word(2) {
        "permanent" => Some(301),
        "redirect" => Some(302),
        _ => None,
    };
    let target = directive.word(1);
    let to = match target.strip_suffix("$1") {
        Some(base) => rest_of(directive.word(0)).and_then(|below| {
            let tail = if below.is_empty() {
                "{path_query}"
            } else {
                "{rest_query}"
            };
            template(base.trim_end_matches('/')).map(|it| it + tail)
        }),
        None => template(target.trim_end_matches('?')),
    };
    let redirect = status.zip(to).filter(|_| set.is_exact);
    let action = match redirect {
        Some((status, to)) => {
            ledger.mapped(directive.id);
            Action::Redirect { to, status }
        }
        None => {
            ledger.unmapped(
                directive.id,
                "the front has no redirect that does the same as this rewrite",
            );
            Action::Closed
        }
    };
    set.matchers
        .iter()
        .map(|it| Rule::new(Some(&place), it.clone(), action.clone()))
        .collect()
}

/// The variable for the scheme that a proxy before the server reports.
const CLAIM: &str = "$http_x_forwarded_proto";
