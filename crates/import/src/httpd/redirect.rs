//! mod_alias and mod_rewrite: redirects, and what sends requests elsewhere.

use crate::httpd::proxy::prefix;
use crate::httpd::tree::Directive;
use crate::ledger::{Id, Ledger};
use crate::matcher::Matcher;
use crate::plan::{Action, Rule, Scheme};
use crate::regex::path_set;

/// The rules of `Redirect` and its kin, in the source's order.
pub(crate) fn aliases(directives: &[Directive], ledger: &mut Ledger) -> Vec<Rule> {
    let mut rules = Vec::new();
    for directive in directives {
        match directive.name.as_str() {
            "redirect" | "redirectpermanent" | "redirecttemp" => {
                rules.extend(redirect(directive, ledger));
            }
            "redirectmatch" => rules.extend(redirect_match(directive, ledger)),
            "alias" | "scriptalias" => {
                let place = ledger.place(directive.id).clone();
                ledger.kept_or_risk(
                    directive.id,
                    "the old server serves these files; here they are answered 404",
                );
                rules.push(Rule::new(
                    Some(&place),
                    prefix(directive.word(0)),
                    Action::Files,
                ));
            }
            "aliasmatch" | "scriptaliasmatch" => {
                let place = ledger.place(directive.id).clone();
                ledger.unmapped(directive.id, "the old server serves these files");
                let set = path_set(directive.word(0), false);
                let closed = |it: &Matcher| Rule::new(Some(&place), it.clone(), Action::Closed);
                rules.extend(set.matchers.iter().map(closed));
            }
            _ => {}
        }
    }
    rules
}

/// The status of a redirect, and the words behind it.
fn status(directive: &Directive) -> (Option<u16>, &[String]) {
    let words = &directive.words[..];
    match directive.name.as_str() {
        "redirectpermanent" => return (Some(301), words),
        "redirecttemp" => return (Some(302), words),
        _ => {}
    }
    let first = words
        .first()
        .map(|it| it.to_ascii_lowercase())
        .unwrap_or_default();
    let named = match first.as_str() {
        "permanent" => Some(301),
        "temp" => Some(302),
        "seeother" => Some(303),
        "gone" => Some(410),
        other => other.parse().ok().filter(|it| (300..600).contains(it)),
    };
    match named {
        Some(status) => (Some(status), &words[1..]),
        None => (Some(302), words),
    }
}

fn redirect(directive: &Directive, ledger: &mut Ledger) -> Option<Rule> {
    let id = directive.id;
    let place = ledger.place(id).clone();
    let (status, words) = status(directive);
    let (status, path) = (status?, words.first()?);
    let matcher = prefix(path);
    if !(300..400).contains(&status) {
        ledger.mapped(id);
        return Some(Rule::new(Some(&place), matcher, Action::Answer(status)));
    }
    let target = words.get(1).map_or("", String::as_str);
    let base = target.trim_end_matches('/');
    let to = match path.as_str() {
        "/" => {
            if !target.ends_with('/') {
                ledger.note(id, "httpd sends clients to a URL without a slash between host and path; the written redirect has the slash");
            }
            format!("{}{{path_query}}", escaped(base))
        }
        _ => format!("{}{{rest_query}}", escaped(base)),
    };
    match is_target(&to) {
        true => {
            ledger.mapped(id);
            Some(Rule::new(
                Some(&place),
                matcher,
                Action::Redirect { to, status },
            ))
        }
        false => {
            ledger.unmapped(id, &format!("`{target}` is no target of a redirect"));
            Some(Rule::new(Some(&place), matcher, Action::Closed))
        }
    }
}

fn redirect_match(directive: &Directive, ledger: &mut Ledger) -> Vec<Rule> {
    let id = directive.id;
    let place = ledger.place(id).clone();
    let (status, words) = status(directive);
    let (Some(status), Some(expression)) = (status, words.first()) else {
        return Vec::new();
    };
    let set = path_set(expression, false);
    let target = words.get(1).map_or("", String::as_str);
    let action = match (300..400).contains(&status) {
        true => action_of(target, status, &set.matchers),
        false => Some(Action::Answer(status)),
    };
    let action = action.filter(|_| set.is_exact);
    match action {
        Some(_) => ledger.mapped(id),
        None => ledger.unmapped(
            id,
            &format!("`{expression}` to `{target}` cannot be converted"),
        ),
    }
    let action = action.unwrap_or(Action::Closed);
    let rule = |it: &Matcher| Rule::new(Some(&place), it.clone(), action.clone());
    set.matchers.iter().map(rule).collect()
}

/// A redirect to what an expression made, as far as that is a template.
fn action_of(target: &str, status: u16, matchers: &[Matcher]) -> Option<Action> {
    let all = matchers == [Matcher::everything()];
    let text = target
        .replace("%{HTTP_HOST}", "\u{1}host")
        .replace("%{SERVER_NAME}", "\u{1}host");
    let text = match text
        .strip_suffix("%{REQUEST_URI}")
        .or_else(|| text.strip_suffix("/$1"))
        .or_else(|| text.strip_suffix("$1"))
    {
        Some(base) if all => format!("{}\u{1}path_query", base.trim_end_matches('/')),
        Some(_) => return None,
        None => text,
    };
    if text.contains(['$', '%']) {
        return None;
    }
    let to = escaped(&text)
        .replace("\u{1}host", "{host}")
        .replace("\u{1}path_query", "{path_query}");
    is_target(&to).then_some(Action::Redirect { to, status })
}

/// Braces of the source are no placeholders.
fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

fn is_target(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let starts = match rest {
        Some(rest) => {
            !rest.is_empty() && !rest.starts_with(['/', '?', '#']) && !rest.starts_with("{path")
        }
        None => (text.starts_with('/') && !text.starts_with("/{")) || text.starts_with("{path"),
    };
    starts
        && text
            .chars()
            .all(|it| it.is_ascii_graphic() && !"\"<>\\^`|".contains(it))
}

/// The rules of `RewriteRule`, in the source's order.
pub(crate) fn rewrites(directives: &[Directive], ledger: &mut Ledger) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut conditions: Vec<&Directive> = Vec::new();
    let mut is_on = false;
    for directive in directives {
        match directive.name.as_str() {
            "rewriteengine" => {
                is_on = directive.word(0).eq_ignore_ascii_case("on");
                ledger.mapped(directive.id);
            }
            "rewritecond" => conditions.push(directive),
            "rewriterule" => {
                let given = std::mem::take(&mut conditions);
                if is_on {
                    rules.extend(rewrite(directive, &given, ledger));
                    continue;
                }
                for it in given.iter().chain([&directive]) {
                    ledger.dropped(it.id, "RewriteEngine is off");
                }
            }
            _ => {}
        }
    }
    rules
}

/// What conditions come to: which scheme, or that they always or never hold.
enum Condition {
    Scheme(Scheme),
    Never,
    Always,
    Unsaid,
}

fn condition(directive: &Directive) -> Condition {
    let (subject, test) = (directive.word(0), directive.word(1));
    match (subject, test.to_ascii_lowercase().as_str()) {
        ("%{HTTPS}", "off" | "!=on" | "!on" | "^off$" | "=off" | "!^on$") => {
            Condition::Scheme(Scheme::Http)
        }
        ("%{HTTPS}", "on" | "=on" | "!=off" | "!off" | "^on$") => Condition::Scheme(Scheme::Https),
        ("%{SERVER_PORT}", "80" | "^80$" | "=80" | "!443" | "!^443$" | "!=443") => {
            Condition::Scheme(Scheme::Http)
        }
        (
            "%{REQUEST_METHOD}",
            "^trace" | "^trace$" | "trace" | "^(trace|track)" | "^(trace|track)$",
        ) => Condition::Never,
        (_, ".*" | "^.*$") => Condition::Always,
        _ => Condition::Unsaid,
    }
}

fn rewrite(directive: &Directive, conditions: &[&Directive], ledger: &mut Ledger) -> Vec<Rule> {
    let (expression, target) = (directive.word(0), directive.word(1));
    let flags = directive
        .word(2)
        .trim_matches(['[', ']'])
        .to_ascii_uppercase();
    let has = |flag: &str| flags.split(',').any(|it| it.trim() == flag);
    let mut scheme = None;
    let mut said = true;
    for it in conditions {
        match condition(it) {
            Condition::Scheme(only) => scheme = Some(only),
            Condition::Always => {}
            Condition::Never => {
                let text = "TRACE is answered 405 in any case";
                conditions.iter().for_each(|it| ledger.dropped(it.id, text));
                ledger.dropped(directive.id, text);
                return Vec::new();
            }
            Condition::Unsaid => said = false,
        }
    }
    // Within a server the expression meets a path with its slash.
    let negated = expression.starts_with('!');
    let set = path_set(expression.trim_start_matches('!'), has("NC"));
    let sets_variables = |it: &str| it.is_empty() || it == "L" || it.starts_with("E=");
    if target == "-"
        && conditions.is_empty()
        && flags.split(',').all(|it| sets_variables(it.trim()))
    {
        ledger.risk(directive.id, "variables of requests are not converted");
        return Vec::new();
    }
    let action = rewritten(target, &flags, &set.matchers);
    let action = action.filter(|_| said && set.is_exact && !negated);
    finish(directive.id, conditions, action.is_some(), ledger);
    let place = ledger.place(directive.id).clone();
    let is_closed = action.is_none();
    let action = action.unwrap_or(Action::Closed);
    let matchers = match (negated, is_closed && has("NC")) {
        (true, _) => vec![Matcher::everything()],
        (false, true) => set.widened(),
        (false, false) => set.matchers,
    };
    let rule = |it: &Matcher| Rule {
        scheme: if said { scheme } else { None },
        ..Rule::new(Some(&place), it.clone(), action.clone())
    };
    matchers.iter().map(rule).collect()
}

/// What a rule does if its conditions hold; `None` if the front cannot.
fn rewritten(target: &str, flags: &str, matchers: &[Matcher]) -> Option<Action> {
    let has = |flag: &str| flags.split(',').any(|it| it.trim() == flag);
    let status = flags.split(',').find_map(|it| it.trim().strip_prefix("R="));
    if has("F") {
        return Some(Action::Answer(403));
    }
    if has("G") {
        return Some(Action::Answer(410));
    }
    let redirects = has("R") || status.is_some() || target.starts_with("http");
    if !redirects || has("P") {
        return None;
    }
    let status = match status {
        Some("PERMANENT") => 301,
        Some(code) => code.parse().ok().filter(|it| (300..400).contains(it))?,
        None => 302,
    };
    action_of(target, status, matchers)
}

fn finish(id: Id, conditions: &[&Directive], is_mapped: bool, ledger: &mut Ledger) {
    for it in conditions {
        match is_mapped {
            true => ledger.mapped(it.id),
            false => ledger.kept_or_risk(it.id, "its RewriteRule was not converted"),
        }
    }
    match is_mapped {
        true => ledger.mapped(id),
        false => ledger.unmapped(id, "this RewriteRule is no redirect of the front"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_expressions() {
        let all = [Matcher::everything()];
        let to = |target: &str| match action_of(target, 301, &all) {
            Some(Action::Redirect { to, .. }) => to,
            _ => String::new(),
        };
        assert_eq!(
            to("https://%{HTTP_HOST}%{REQUEST_URI}"),
            "https://{host}{path_query}"
        );
        assert_eq!(
            to("https://%{SERVER_NAME}/$1"),
            "https://{host}{path_query}"
        );
        assert_eq!(to("/app/"), "/app/");
        assert_eq!(to("/x/$2"), "");
    }
}
