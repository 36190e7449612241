//! mod_alias and mod_rewrite: redirects, and rules that send requests to another target.

use crate::condition::{
    CAPTURED, Condition, Port, Scheme, SettledCondition, When, captured, of_host, of_port,
};
use crate::directive::Directive;
use crate::expression::translated;
use crate::httpd::expressions::{self, PathSet};
use crate::httpd::files::{ServedDirectory, Site};
use crate::httpd::proxy::{ProxyTargets, prefix};
use crate::httpd::question_marks::with_refusal;
use crate::httpd::tunnel::{TunnelRule, tunnel};
use crate::httpd::variables::is_of;
use crate::ledger::{Id, Ledger, Place};
use crate::matcher::Matcher;
use crate::methods::MethodGuard;
use crate::plan::{Action, Rule, redirect_status};
use crate::regex::HostTest;

/// The rules of `Redirect` and its variants, in the source's order. mod_alias asks them before any `Alias`.
pub(crate) fn redirects(directives: &[Directive], ledger: &mut Ledger) -> Vec<Rule> {
    let mut rules = Vec::new();
    for directive in directives {
        match directive.name.as_str() {
            "redirect" | "redirectpermanent" | "redirecttemp" => {
                rules.extend(redirect(directive, ledger));
            }
            "redirectmatch" => rules.extend(redirect_match(directive, ledger)),
            _ => {}
        }
    }
    rules
}

/// The rules of `Alias` and its variants, in the source's order. They serve those directories that the front serves.
pub(crate) fn aliases(
    directives: &[Directive],
    site: Site<'_>,
    ledger: &mut Ledger,
) -> (Vec<Rule>, Vec<(String, ServedDirectory)>) {
    let (mut rules, mut served) = (Vec::new(), Vec::new());
    for directive in directives {
        let place = || ledger_place(ledger, directive);
        match directive.name.as_str() {
            "alias" => {
                let rule = Rule::new(Some(&place()), prefix(directive.word(0)), Action::Closed);
                match site.alias(directive, ledger) {
                    Some(directory) => {
                        rules.push(directory.rule(rule));
                        let path = directive.word(0).trim_end_matches('/');
                        served.push((path.to_owned(), directory));
                    }
                    None => rules.push(rule),
                }
            }
            "scriptalias" | "wsgiscriptalias" => {
                let rule = Rule::new(Some(&place()), prefix(directive.word(0)), Action::Closed);
                ledger.unmapped(directive.id, "the old server runs these programs");
                rules.push(rule);
            }
            "aliasmatch" | "scriptaliasmatch" | "wsgiscriptaliasmatch" => {
                let place = place();
                ledger.unmapped(directive.id, "the old server serves these files");
                let set = expressions::paths(directive.word(0), false);
                let closed = |it: &Matcher| Rule::new(Some(&place), it.clone(), Action::Closed);
                rules.extend(set.matchers.iter().map(closed));
            }
            _ => {}
        }
    }
    (rules, served)
}

fn ledger_place(ledger: &Ledger, directive: &Directive) -> Place {
    ledger.place(directive.id).clone()
}

/// The action of a `Redirect` without a path of its own, in a section such as `<Location>`: all requests of the
/// section are redirected to one URL, to which no part of their path is appended.
pub(crate) fn within(directive: &Directive, ledger: &mut Ledger) -> Action {
    let (status, words) = status(directive);
    let action = match (status, words) {
        (Some(status), []) if !(300..400).contains(&status) => Some(Action::Answer(status)),
        (Some(status), [url]) if !url.contains('%') => {
            let to = escaped(url);
            let status = redirect_status(status).filter(|_| is_target(&to));
            status.map(|status| Action::Redirect { to, status })
        }
        _ => None,
    };
    match action.filter(|_| directive.name != "redirectmatch") {
        Some(action) => {
            ledger.mapped(directive.id);
            action
        }
        None => {
            ledger.unmapped(directive.id, "this redirect of a section was not converted");
            Action::Closed
        }
    }
}

/// The status of a redirect, and the words after it. The status is `None` if the front does not know it.
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
        other => other.parse().ok().filter(|it| (200..600).contains(it)),
    };
    match named {
        Some(status) => (Some(status), &words[1..]),
        None => (Some(302), words),
    }
}

/// The rule of a `Redirect`; `None` if it has no path of its own or cannot be converted.
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
    match redirect_status(status).filter(|_| is_target(&to)) {
        Some(status) => {
            ledger.mapped(id);
            let action = Action::Redirect { to, status };
            Some(Rule::new(Some(&place), matcher, action))
        }
        None => {
            ledger.unmapped(id, &format!("`{target}` is no target of a redirect"));
            Some(Rule::new(Some(&place), matcher, Action::Closed))
        }
    }
}

/// The rules of a `RedirectMatch`.
fn redirect_match(directive: &Directive, ledger: &mut Ledger) -> Vec<Rule> {
    let id = directive.id;
    let place = ledger.place(id).clone();
    let (status, words) = status(directive);
    let (Some(status), Some(expression)) = (status, words.first()) else {
        return Vec::new();
    };
    let mut set = expressions::paths(expression, false);
    let target = words.get(1).map_or("", String::as_str);
    let converted = if (300..400).contains(&status) {
        action_of(target, status, &set.matchers)
    } else {
        Some(Action::Answer(status))
    };
    let mut action = converted.filter(|_| set.is_exact);
    if action.is_none()
        && let Some((matcher, grouped)) = grouped(target, status, expression, false)
    {
        set.matchers = vec![matcher];
        action = Some(grouped);
    }
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

/// A redirect to the result of a rewrite without groups; `None` if the front's redirect templates cannot express it.
fn action_of(target: &str, status: u16, matchers: &[Matcher]) -> Option<Action> {
    let marked = target
        .replace("%{HTTP_HOST}", HOST)
        .replace("%{SERVER_NAME}", HOST);
    let ends = ["%{REQUEST_URI}", "/$1", "$1"];
    let text = match ends.iter().find_map(|it| marked.strip_suffix(it)) {
        Some(base) if matchers == [Matcher::everything()] => {
            format!("{}\u{1}path_query", base.trim_end_matches('/'))
        }
        Some(_) => return None,
        None => marked,
    };
    if text.contains(['$', '%']) {
        return None;
    }
    let to = escaped(&text)
        .replace(CAPTURE, CAPTURED)
        .replace(HOST, "{host}")
        .replace("\u{1}path_query", "{path_query}");
    let status = redirect_status(status)?;
    is_target(&to).then_some(Action::Redirect { to, status })
}

/// A redirect to a target with groups of the expression; `None` if the front cannot express it. httpd appends the
/// request's query if the target has none.
fn grouped(
    target: &str,
    status: u16,
    expression: &str,
    ignores_case: bool,
) -> Option<(Matcher, Action)> {
    let expression = translated(expression, ignores_case);
    // The front replaces placeholders only after the host.
    let authority = target.split_once("://").map_or("", |it| it.1);
    let host = authority.split(['/', '?']).next().unwrap_or_default();
    let marked = target.replace("%{HTTP_HOST}", HOST);
    if !target.contains('$') || marked.contains('%') || host.contains('$') {
        return None;
    }
    let query = if marked.contains('?') { "" } else { "{search}" };
    let filled = expressions::target_with_groups(marked.trim_end_matches('?'), &expression)?;
    let to = format!("{}{query}", filled.replace(HOST, "{host}"));
    let status = redirect_status(status).filter(|_| is_target(&to))?;
    let action = Action::Redirect { to, status };
    Some((Matcher::Expression(expression), action))
}

/// Doubles the braces of a text, so that the front does not take them for placeholders.
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

/// The route that a `RewriteRule` becomes.
#[derive(Clone, Debug)]
pub(crate) enum Rewrite {
    /// A rule of the front for the paths of the `RewriteRule`.
    Rule(Rule),
    /// Requests with some methods are refused, whatever their path.
    Methods(MethodGuard),
    /// The paths of this rule are left to the other modules; later `RewriteRule`s are not asked.
    Pass(Rule),
    /// The rule forwards WebSocket handshakes.
    Tunnel(TunnelRule),
}

impl Rewrite {
    /// The rule for the paths of the `RewriteRule`; `None` if it has none.
    pub(crate) fn rule_mut(&mut self) -> Option<&mut Rule> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::Pass(_) | Self::Methods(_) | Self::Tunnel(_) => None,
        }
    }
}

/// Facts about a virtual host that conditions of `RewriteRule`s test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clients<'a> {
    /// The ports of the virtual host's listeners.
    pub(crate) ports: &'a [Port],
    /// Whether `SERVER_NAME` is the name of the virtual host, whatever host clients asked for.
    pub(crate) is_canonical: bool,
}

/// The rules of `RewriteRule`, in the source's order. `is_on`: whether `RewriteEngine` is on.
pub(crate) fn rewrites<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
    is_on: bool,
    clients: Clients<'_>,
    targets: &mut ProxyTargets<'_>,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    let mut in_force: Vec<(&Directive, Vec<&Directive>)> = Vec::new();
    let mut conditions: Vec<&Directive> = Vec::new();
    for directive in directives {
        match directive.name.as_str() {
            "rewriteengine" => ledger.mapped(directive.id),
            "rewritecond" => conditions.push(directive),
            "rewriterule" => {
                let given = std::mem::take(&mut conditions);
                if is_on {
                    in_force.push((directive, given));
                    continue;
                }
                for it in given.iter().chain([&directive]) {
                    ledger.dropped(it.id, "RewriteEngine is off");
                }
            }
            _ => {}
        }
    }
    let last = in_force.pop();
    let mut rules = Vec::new();
    for (directive, conditions) in in_force {
        rules.extend(rewrite(directive, &conditions, clients, targets, ledger));
    }
    if let Some((directive, conditions)) = last {
        rules.extend(last_rewrite(
            directive,
            &conditions,
            clients,
            targets,
            ledger,
        ));
    }
    rules
}

/// The rules of the last `RewriteRule`. Paths that its conditions exclude are left to the other modules.
fn last_rewrite(
    directive: &Directive,
    conditions: &[&Directive],
    clients: Clients<'_>,
    targets: &mut ProxyTargets<'_>,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    let is_joined = |it: &&Directive| has_flag(&flags(it), "OR");
    if conditions.iter().any(is_joined) {
        return rewrite(directive, conditions, clients, targets, ledger);
    }
    let mut left = Vec::new();
    let mut others: Vec<&Directive> = Vec::new();
    for condition in conditions {
        match excepted(condition) {
            Some(matchers) => {
                ledger.mapped(condition.id);
                left.extend(matchers);
            }
            None => others.push(condition),
        }
    }
    let place = ledger.place(directive.id).clone();
    let pass = |it| Rewrite::Pass(Rule::new(Some(&place), it, Action::Files));
    let passes: Vec<Rewrite> = left.into_iter().map(pass).collect();
    let rules = rewrite(directive, &others, clients, targets, ledger);
    passes.into_iter().chain(rules).collect()
}

/// The paths that a condition such as `%{REQUEST_URI} !^/path/` excludes from a rule; `None` for other
/// conditions.
fn excepted(condition: &Directive) -> Option<Vec<Matcher>> {
    let expression = condition.word(1).strip_prefix('!')?;
    let set = expressions::paths(expression, has_flag(&flags(condition), "NC"));
    let is_one = condition.word(0) == "%{REQUEST_URI}" && set.is_exact;
    is_one.then_some(set.matchers)
}

/// All conditions of a rule as one; `[OR]` joins a condition with the next.
fn all_of(conditions: &[&Directive], clients: Clients<'_>) -> Condition {
    let mut parts: Vec<Condition> = Vec::new();
    let mut open: Vec<Condition> = Vec::new();
    for it in conditions {
        open.push(condition(it, clients));
        if !has_flag(&flags(it), "OR") {
            parts.push(Condition::any(std::mem::take(&mut open)));
        }
    }
    // `[OR]` on the last condition has nothing to join: httpd then applies the rule whether this condition holds or
    // not.
    Condition::all(parts)
}

/// The condition of a `RewriteCond`; [`Condition::Unsaid`] if the importer cannot convert it.
fn condition(directive: &Directive, clients: Clients<'_>) -> Condition {
    let (subject, test) = (directive.word(0), directive.word(1));
    match (subject, test.to_ascii_lowercase().as_str()) {
        ("%{SERVER_PORT}", test) => of_port(test, clients.ports),
        ("%{HTTPS}", "off" | "!=on" | "!on" | "^off$" | "=off" | "!^on$")
        | ("%{REQUEST_SCHEME}", "=http" | "^http$" | "!=https" | "!https" | "!^https$") => {
            Condition::Scheme(Scheme::Http)
        }
        ("%{HTTPS}", "on" | "=on" | "!=off" | "!off" | "^on$")
        | ("%{REQUEST_SCHEME}", "=https" | "https" | "^https$" | "!=http") => {
            Condition::Scheme(Scheme::Https)
        }
        (
            "%{REQUEST_METHOD}",
            "^trace" | "^trace$" | "trace" | "^(trace|track)" | "^(trace|track)$",
        ) => Condition::Never,
        (_, ".*" | "^.*$") => Condition::Always,
        ("%{HTTP_HOST}", _) => host_condition(test, clients.ports),
        // It is the host that the client asked for, without the port.
        ("%{SERVER_NAME}", _) if !clients.is_canonical => host_condition(test, &[]),
        _ => Condition::Unsaid,
    }
}

/// A condition on the host: a text after `=`, or a regular expression; `!` before either negates it.
fn host_condition(test: &str, ports: &[Port]) -> Condition {
    let (negated, test) = match test.strip_prefix('!') {
        Some(test) => (true, test),
        None => (false, test),
    };
    let condition = match test.strip_prefix('=') {
        // Every request that is served has a host.
        Some("" | "\"\"") => Condition::Never,
        Some(text) if text.contains(':') => Condition::Unsaid,
        Some(text) => Condition::Host(HostTest::Is(text.to_ascii_lowercase())),
        None if test.starts_with(['<', '>', '-']) => Condition::Unsaid,
        None => of_host(test, ports),
    };
    condition.negated_if(negated)
}

/// The rules of one `RewriteRule` with its conditions.
fn rewrite(
    directive: &Directive,
    conditions: &[&Directive],
    clients: Clients<'_>,
    targets: &mut ProxyTargets<'_>,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    let (expression, target) = (directive.word(0), directive.word(1));
    let flags = flags(directive);
    let has = |flag: &str| has_flag(&flags, flag);
    let condition = all_of(conditions, clients);
    let settled = condition.settled();
    let asks_host = settled == SettledCondition::Waits;
    let (scheme, said) = match settled {
        SettledCondition::Holds(only) => (only, true),
        SettledCondition::Waits => (None, true),
        SettledCondition::Unsaid => (None, false),
        SettledCondition::Never => {
            let text = "its conditions never hold: they ask for ports that no listener has, or for TRACE, which the front answers 405";
            conditions.iter().for_each(|it| ledger.dropped(it.id, text));
            ledger.dropped(directive.id, text);
            return Vec::new();
        }
    };
    if let Some(tunnel) = tunnel(directive, conditions) {
        return vec![Rewrite::Tunnel(tunnel)];
    }
    if let Some(guard) = method_guard(directive, conditions, ledger) {
        return vec![Rewrite::Methods(guard)];
    }
    // In the context of a server, paths begin with a slash.
    let negated = expression.starts_with('!');
    let mut set = expressions::paths(expression.trim_start_matches('!'), has("NC"));
    let takes_away = takes_away(&flags);
    let passes = |it: &str| matches!(it, "" | "L" | "END" | "NC" | "PT") || it.starts_with("E=");
    if target == "-" && !takes_away && flags.split(',').all(passes) {
        return pass(
            directive,
            conditions,
            &set,
            said && !negated && !asks_host,
            scheme,
            &flags,
            ledger,
        );
    }
    let capture = conditions.last().and_then(|it| capture(it));
    let target = match &capture {
        Some(_) => target.replace("%1", CAPTURE),
        None => target.to_owned(),
    };
    let converted = converted(directive, &target, &flags, &mut set, targets, ledger);
    let action = converted.filter(|_| said && set.is_exact && !negated && !takes_away);
    finish(directive.id, conditions, &flags, action.is_some(), ledger);
    let place = ledger.place(directive.id).clone();
    let action = action.unwrap_or(Action::Closed);
    let matchers = if negated {
        vec![Matcher::everything()]
    } else {
        set.matchers
    };
    let all = conditions.iter().chain([&directive]);
    let when = asks_host.then(|| {
        Box::new(When {
            condition,
            ids: all.map(|it| it.id).collect(),
            capture: capture.filter(|_| target.contains(CAPTURE)),
        })
    });
    let rule = |it: &Matcher| Rule {
        scheme: if said { scheme } else { None },
        when: when.clone(),
        ..Rule::new(Some(&place), it.clone(), action.clone())
    };
    let rules = matchers.iter().map(rule).collect();
    with_refusal(rules).into_iter().map(Rewrite::Rule).collect()
}

/// The flags of a `RewriteRule` or `RewriteCond`, from its third word: in upper case, with their short names,
/// separated by `,`.
pub(super) fn flags(directive: &Directive) -> String {
    let text = directive.word(2).trim().trim_matches(['[', ']']);
    let short = |flag: &str| {
        let upper = flag.trim().to_ascii_uppercase();
        let (name, value) = match upper.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value)),
            None => (upper.as_str(), None),
        };
        let found = LONG_FLAGS.iter().find(|it| it.0 == name);
        let name = found.map_or(name, |it| it.1);
        match value {
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        }
    };
    text.split(',').map(short).collect::<Vec<_>>().join(",")
}

/// Whether `flags`, as [`flags`] returns them, contain this flag without a value.
fn has_flag(flags: &str, flag: &str) -> bool {
    flags.split(',').any(|it| it == flag)
}

/// Whether flags set a variable that makes a module leave requests to others.
fn takes_away(flags: &str) -> bool {
    let mut set = flags.split(',').filter_map(|it| it.strip_prefix("E="));
    set.any(|it| is_of(it, "no-jk") || is_of(it, "no-proxy"))
}

/// The guard of a rule that refuses all requests with some methods; `None` for any other rule.
fn method_guard(
    directive: &Directive,
    conditions: &[&Directive],
    ledger: &mut Ledger,
) -> Option<MethodGuard> {
    let [condition] = conditions else {
        return None;
    };
    let flags = flags(directive);
    let set = expressions::paths(directive.word(0), false);
    let refuses = flags.split(',').all(|it| matches!(it, "F" | "L" | "NC"));
    let is_whole = set.is_exact && set.matchers == [Matcher::everything()];
    if !refuses || !has_flag(&flags, "F") || !is_whole || directive.word(1) != "-" {
        return None;
    }
    let (methods, is_for_others) = tested_methods(condition)?;
    let place = ledger.place(directive.id);
    let guard = MethodGuard::new(place, methods, is_for_others, Action::Answer(403))?;
    ledger.mapped(directive.id);
    ledger.mapped(condition.id);
    Some(guard)
}

/// The methods that a condition tests for, and whether it holds for all others. `None` for any other condition, and
/// for one that holds for more methods than it names.
fn tested_methods(condition: &Directive) -> Option<(Vec<String>, bool)> {
    let test = condition.word(1);
    let (is_for_others, test) = match test.strip_prefix('!') {
        Some(test) => (true, test),
        None => (false, test),
    };
    let list = match test.strip_prefix('=') {
        Some(name) => name,
        None => {
            let bound = test.strip_prefix('^')?;
            // Without an end, the expression matches further methods, too. A negated condition then holds for fewer
            // methods than the route for all others refuses; any other condition would hold for more.
            let whole = match bound.strip_suffix('$') {
                None if is_for_others => bound,
                whole => whole?,
            };
            let group = whole.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
            let list = group.unwrap_or(whole);
            // Without a group, `^` and `$` apply only to the first and the last alternative.
            (group.is_some() || !list.contains('|')).then_some(list)?
        }
    };
    let flags = flags(condition);
    let is_sure = flags.is_empty() || is_for_others && flags == "NC";
    let methods = list.trim_start_matches("?:").split('|').map(str::to_owned);
    (is_sure && condition.word(0) == "%{REQUEST_METHOD}")
        .then(|| (methods.collect(), is_for_others))
}

/// The action of a rule whose conditions hold; `None` if the front cannot do it. If it depends on groups of the
/// expression, `set` becomes the paths of that expression.
fn converted(
    directive: &Directive,
    target: &str,
    flags: &str,
    set: &mut PathSet,
    targets: &mut ProxyTargets<'_>,
    ledger: &mut Ledger,
) -> Option<Action> {
    let expression = directive.word(0);
    if let Some(action) = rewritten(target, flags, &set.matchers) {
        return Some(action);
    }
    if expression.starts_with('!') {
        return None;
    }
    let ignores_case = has_flag(flags, "NC");
    let (matcher, action) = if has_flag(flags, "P") {
        let is_plain = |it: &str| matches!(it, "P" | "L" | "END" | "NC" | "QSA");
        let own = translated(expression, ignores_case);
        let is_sayable = flags.split(',').all(is_plain);
        let passed =
            is_sayable.then(|| targets.rewritten(expression, own, target, directive.id, ledger));
        passed.flatten()?
    } else {
        let status = redirect_of(target, flags)?;
        let (matcher, action) = grouped(target, status, expression, ignores_case)?;
        (Some(matcher), action)
    };
    if let Some(matcher) = matcher {
        set.matchers = vec![matcher];
        set.is_exact = true;
    }
    Some(action)
}

/// For a condition on the host whose expression has a group: the beginning of the host before `%1`.
fn capture(condition: &Directive) -> Option<String> {
    let is_host = matches!(condition.word(0), "%{HTTP_HOST}" | "%{SERVER_NAME}");
    captured(condition.word(1)).filter(|_| is_host)
}

/// Converts a `RewriteRule` that changes no path (`-`): it ends the list of rules for its paths, or sets variables.
fn pass(
    directive: &Directive,
    conditions: &[&Directive],
    set: &PathSet,
    said: bool,
    scheme: Option<Scheme>,
    flags: &str,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    let all = || conditions.iter().chain([&directive]);
    let has = |flag: &str| has_flag(flags, flag);
    let ends = has("L") || has("END");
    if flags.contains("E=") {
        let text =
            "the variable that it sets by `E=` has no value here, for logs and applications alike";
        ledger.lost(directive.id, text);
    }
    let asks_later_rules_too = ends && !(said && set.is_exact);
    for it in all() {
        if asks_later_rules_too {
            let what = "the rule ends the list for some requests, which was not converted";
            ledger.lost(it.id, what);
        } else {
            ledger.mapped(it.id);
        }
    }
    if !ends || !said || !set.is_exact {
        return Vec::new();
    }
    let place = ledger.place(directive.id).clone();
    let rule = |it: &Matcher| Rule {
        scheme,
        ..Rule::new(Some(&place), it.clone(), Action::Files)
    };
    set.matchers.iter().map(rule).map(Rewrite::Pass).collect()
}

/// The action of a rule that refuses, or redirects to a target without groups; `None` if the front cannot do it.
fn rewritten(target: &str, flags: &str, matchers: &[Matcher]) -> Option<Action> {
    let has = |flag: &str| has_flag(flags, flag);
    if has("F") {
        return Some(Action::Answer(403));
    }
    if has("G") {
        return Some(Action::Answer(410));
    }
    let status = redirect_of(target, flags)?;
    action_of(target, status, matchers)
}

/// The status with which a rule redirects; `None` if it does not redirect.
fn redirect_of(target: &str, flags: &str) -> Option<u16> {
    let has = |flag: &str| has_flag(flags, flag);
    let status = flags.split(',').find_map(|it| it.strip_prefix("R="));
    let redirects = has("R") || status.is_some() || target.starts_with("http");
    if !redirects || ["P", "F", "G"].into_iter().any(has) {
        return None;
    }
    match status {
        Some("PERMANENT") => Some(301),
        Some(code) => code.parse().ok().filter(|it| (300..400).contains(it)),
        None => Some(302),
    }
}

/// Why a `RewriteRule` with these flags was not converted.
fn unsaid(flags: &str) -> &'static str {
    let names = flags
        .split(',')
        .map(|it| it.split('=').next().unwrap_or(it));
    let has = |all: &[&str]| names.clone().any(|it| all.contains(&it));
    match () {
        () if has(&["P"]) => {
            "the importer cannot write this RewriteRule with [P] as a route with `upstream`"
        }
        () if has(&["F", "G"]) => "routes cannot say which requests this RewriteRule refuses",
        () if has(&["CO"]) => "this RewriteRule sets a cookie ([CO]), and routes set none",
        () if has(&["C"]) => {
            "this RewriteRule is one of a chain ([C]), which routes cannot express"
        }
        () if has(&["E"]) => {
            "this RewriteRule sets a variable ([E]) by which modules leave requests to others"
        }
        () if has(&["R"]) => "the front has no redirect that does the same as this RewriteRule",
        () => "the front cannot change paths as this RewriteRule does",
    }
}

/// Reports a `RewriteRule`, with its conditions, as mapped or as not converted.
fn finish(id: Id, conditions: &[&Directive], flags: &str, is_mapped: bool, ledger: &mut Ledger) {
    if is_mapped {
        ledger.mapped(id);
    } else {
        ledger.unmapped(id, unsaid(flags));
    }
    conditions.iter().for_each(|it| ledger.part(it.id, id));
}

/// The long names of flags, with the short ones.
const LONG_FLAGS: [(&str, &str); 20] = [
    ("CHAIN", "C"),
    ("COOKIE", "CO"),
    ("DISCARDPATH", "DPI"),
    ("ENV", "E"),
    ("FORBIDDEN", "F"),
    ("GONE", "G"),
    ("HANDLER", "H"),
    ("LAST", "L"),
    ("NEXT", "N"),
    ("NOCASE", "NC"),
    ("NOESCAPE", "NE"),
    ("NOSUBREQ", "NS"),
    ("NOVARY", "NV"),
    ("ORNEXT", "OR"),
    ("PASSTHROUGH", "PT"),
    ("PROXY", "P"),
    ("QSAPPEND", "QSA"),
    ("QSDISCARD", "QSD"),
    ("REDIRECT", "R"),
    ("SKIP", "S"),
];

/// Stand for `%1` and for the host in a target, until the target is escaped.
const CAPTURE: &str = "\u{1}captured";
const HOST: &str = "\u{1}host";

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
