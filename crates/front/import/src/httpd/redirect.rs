//! mod_alias and mod_rewrite: redirects, and rules that send requests to another target.

use crate::condition::{
    CAPTURED, Condition, Port, Scheme, SettledCondition, When, captured, of_host, of_port,
    of_whole_host,
};
use crate::directive::Directive;
use crate::expression::translated;
use crate::httpd::expressions::{self, PathSet};
use crate::httpd::files::{ServedDirectory, Site};
use crate::httpd::proxy::{ProxyTargets, prefix};
use crate::httpd::question_marks::with_refusal;
use crate::httpd::tunnel::{TunnelRule, tunnel};
use crate::httpd::variables::is_of;
use crate::ledger::{Id, Ledger};
use crate::matcher::Matcher;
use crate::methods::MethodGuard;
use crate::plan::{Action, Rule, redirect_status};

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
        let path = directive.word(0);
        let place = ledger.place(directive.id);
        let closed = |matcher: Matcher| Rule::new(Some(place), matcher, Action::Closed);
        match directive.name.as_str() {
            "alias" => {
                let rule = closed(prefix(path));
                match site.alias(directive, ledger) {
                    Some(directory) => {
                        rules.push(directory.rule(rule));
                        served.push((path.trim_end_matches('/').to_owned(), directory));
                    }
                    None => rules.push(rule),
                }
            }
            "scriptalias" if site.has_no_programs(directive) => {
                rules.push(Rule::new(Some(place), prefix(path), Action::Answer(404)));
                let text = "its directory is empty: its paths are answered 404, as there";
                ledger.dropped(directive.id, text);
            }
            "scriptalias" | "wsgiscriptalias" => {
                rules.push(closed(prefix(path)));
                ledger.unmapped(directive.id, "the front runs no programs (CGI, WSGI)");
            }
            "aliasmatch" | "scriptaliasmatch" | "wsgiscriptaliasmatch" => {
                let set = expressions::paths(path, false);
                rules.extend(set.matchers.into_iter().map(closed));
                ledger.unmapped(directive.id, "the old server serves these files");
            }
            _ => {}
        }
    }
    (rules, served)
}

/// The action of a `Redirect` without a path of its own, in a section such as `<Location>`: all requests of the
/// section are redirected to one URL, to which no part of their path is appended.
pub(crate) fn within(directive: &Directive, ledger: &mut Ledger) -> Action {
    let (status, words) = status(directive);
    let action = match words {
        [] if !(300..400).contains(&status) => Some(Action::Answer(status)),
        [url] if !url.contains('%') => {
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

/// The status of a redirect, by default 302, and the words after it.
fn status(directive: &Directive) -> (u16, &[String]) {
    let words = &directive.words[..];
    match directive.name.as_str() {
        "redirectpermanent" => return (301, words),
        "redirecttemp" => return (302, words),
        _ => {}
    }
    let first_word = directive.word(0).to_ascii_lowercase();
    let status = match first_word.as_str() {
        "permanent" => Some(301),
        "temp" => Some(302),
        "seeother" => Some(303),
        "gone" => Some(410),
        other => other.parse().ok().filter(|it| (200..600).contains(it)),
    };
    match status {
        Some(status) => (status, &words[1..]),
        // The first word is no status, but the path.
        None => (302, words),
    }
}

/// The rule of a `Redirect`, closed if its target cannot be converted; `None` if it has no path of its own.
fn redirect(directive: &Directive, ledger: &mut Ledger) -> Option<Rule> {
    let id = directive.id;
    let place = ledger.place(id).clone();
    let (status, words) = status(directive);
    let path = words.first()?;
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

/// The rules of a `RedirectMatch`, closed if it cannot be converted; none if it has no expression.
fn redirect_match(directive: &Directive, ledger: &mut Ledger) -> Vec<Rule> {
    let id = directive.id;
    let place = ledger.place(id).clone();
    let (status, words) = status(directive);
    let Some(expression) = words.first() else {
        return Vec::new();
    };
    let mut set = expressions::paths(expression, false);
    let target = words.get(1).map_or("", String::as_str);
    let mut action = None;
    if set.is_exact {
        action = if (300..400).contains(&status) {
            action_of(target, status, &set.matchers)
        } else {
            Some(Action::Answer(status))
        };
    }
    if action.is_none()
        && let Some((matcher, redirect)) = grouped(target, status, expression, false)
    {
        set.matchers = vec![matcher];
        action = Some(redirect);
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
    // Placeholders are written after the braces of the text are doubled.
    let marked = target
        .replace("%{HTTP_HOST}", HOST)
        .replace("%{SERVER_NAME}", HOST);
    let whole_path = ["%{REQUEST_URI}", "/$1", "$1"];
    let base = whole_path.iter().find_map(|it| marked.strip_suffix(it));
    // Only for an expression of all paths, `$1` is the whole path.
    if base.is_some() && matchers != [Matcher::everything()] {
        return None;
    }
    let text = base.map_or(marked.as_str(), |base| base.trim_end_matches('/'));
    if text.contains(['$', '%']) {
        return None;
    }
    let mut to = escaped(text)
        .replace(CAPTURE, CAPTURED)
        .replace(HOST, "{host}");
    if base.is_some() {
        to.push_str("{path_query}");
    }
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

/// Whether the front can redirect to this text: a URL with a host, or a path.
fn is_target(text: &str) -> bool {
    let without_scheme = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let has_valid_start = match without_scheme {
        Some(url) => {
            !url.is_empty() && !url.starts_with(['/', '?', '#']) && !url.starts_with("{path")
        }
        None => (text.starts_with('/') && !text.starts_with("/{")) || text.starts_with("{path"),
    };
    let is_of_urls = |sign: char| sign.is_ascii_graphic() && !"\"<>\\^`|".contains(sign);
    has_valid_start && text.chars().all(is_of_urls)
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
                let own_conditions = std::mem::take(&mut conditions);
                if is_on {
                    in_force.push((directive, own_conditions));
                    continue;
                }
                for it in own_conditions.iter().chain([&directive]) {
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

/// The rules of the last `RewriteRule`. Paths that its conditions exclude are left to the other modules, because no
/// `RewriteRule` comes after it.
fn last_rewrite(
    directive: &Directive,
    conditions: &[&Directive],
    clients: Clients<'_>,
    targets: &mut ProxyTargets<'_>,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    // Of conditions joined by `[OR]`, one alone excludes no path.
    let is_joined = |it: &&Directive| has_flag(&flags(it), "OR");
    if conditions.iter().any(is_joined) {
        return rewrite(directive, conditions, clients, targets, ledger);
    }
    let place = ledger.place(directive.id).clone();
    let mut rules = Vec::new();
    let mut other_conditions: Vec<&Directive> = Vec::new();
    for condition in conditions {
        let Some(matchers) = excepted(condition) else {
            other_conditions.push(condition);
            continue;
        };
        ledger.mapped(condition.id);
        for matcher in matchers {
            let pass = Rule::new(Some(&place), matcher, Action::Files);
            rules.push(Rewrite::Pass(pass));
        }
    }
    let converted = rewrite(directive, &other_conditions, clients, targets, ledger);
    rules.extend(converted);
    rules
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
    let mut groups: Vec<Condition> = Vec::new();
    let mut alternatives: Vec<Condition> = Vec::new();
    for directive in conditions {
        alternatives.push(condition(directive, clients));
        if !has_flag(&flags(directive), "OR") {
            groups.push(Condition::any(std::mem::take(&mut alternatives)));
        }
    }
    // `[OR]` on the last condition has nothing to join: httpd then applies the rule whether this condition holds or
    // not.
    Condition::all(groups)
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
        // It is the host that the client asked for, without the port and in lower case.
        ("%{SERVER_NAME}", _) if !clients.is_canonical && !asks_capitals(directive) => {
            host_condition(test, &[])
        }
        _ => Condition::Unsaid,
    }
}

/// Whether a condition may ask for capital letters.
fn asks_capitals(condition: &Directive) -> bool {
    let has_capitals = condition.word(1).bytes().any(|it| it.is_ascii_uppercase());
    has_capitals && !has_flag(&flags(condition), "NC")
}

/// A condition on the host: a text after `=`, or a regular expression; `!` before either negates it.
fn host_condition(test: &str, ports: &[Port]) -> Condition {
    let positive = test.strip_prefix('!');
    let plain_test = positive.unwrap_or(test);
    let condition = match plain_test.strip_prefix('=') {
        Some("\"\"") => of_whole_host("", ports),
        Some(host) => of_whole_host(host, ports),
        // A comparison, or a test of a file.
        None if plain_test.starts_with(['<', '>', '-']) => Condition::Unsaid,
        None => of_host(plain_test, ports),
    };
    condition.negated_if(positive.is_some())
}

/// The rules of one `RewriteRule` with its conditions, which are reported. A tunnel, a guard by methods and a rule that
/// changes no path (`-`) are special; any other is closed unless target, paths and conditions are all converted.
fn rewrite(
    directive: &Directive,
    conditions: &[&Directive],
    clients: Clients<'_>,
    targets: &mut ProxyTargets<'_>,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    let (expression, target) = (directive.word(0), directive.word(1));
    let flags = flags(directive);
    let condition = all_of(conditions, clients);
    let settled = condition.settled();
    let asks_host = settled == SettledCondition::Waits;
    let (scheme, is_condition_known) = match settled {
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
    let ignores_case = has_flag(&flags, "NC");
    let mut set = expressions::paths(expression.trim_start_matches('!'), ignores_case);
    let takes_away = takes_away(&flags);
    let changes_nothing =
        |flag: &str| matches!(flag, "" | "L" | "END" | "NC" | "PT") || flag.starts_with("E=");
    if target == "-" && !takes_away && flags.split(',').all(changes_nothing) {
        let is_known = is_condition_known && set.is_exact && !negated && !asks_host;
        let matchers = is_known.then_some(set.matchers);
        return pass(directive, conditions, matchers, scheme, ledger);
    }
    let capture = conditions.last().and_then(|it| capture(it));
    let target = match &capture {
        Some(_) => target.replace("%1", CAPTURE),
        None => target.to_owned(),
    };
    let converted = converted(directive, &target, &flags, &mut set, targets, ledger);
    let is_known = is_condition_known && set.is_exact && !negated;
    let action = converted.filter(|_| is_known && !takes_away);
    report(directive.id, conditions, &flags, action.is_some(), ledger);
    let place = ledger.place(directive.id).clone();
    let action = action.unwrap_or(Action::Closed);
    // What a negated expression takes cannot be written, so the rule is for all paths.
    let matchers = if negated {
        vec![Matcher::everything()]
    } else {
        set.matchers
    };
    let directives = conditions.iter().chain([&directive]);
    let when = asks_host.then(|| {
        Box::new(When {
            condition,
            ids: directives.map(|it| it.id).collect(),
            capture: capture.filter(|_| target.contains(CAPTURE)),
        })
    });
    let rule = |matcher: Matcher| Rule {
        scheme,
        when: when.clone(),
        ..Rule::new(Some(&place), matcher, action.clone())
    };
    let rules = matchers.into_iter().map(rule).collect();
    with_refusal(rules).into_iter().map(Rewrite::Rule).collect()
}

/// The flags of a `RewriteRule` or `RewriteCond`, from its third word: in upper case, with their short names,
/// separated by `,`.
pub(super) fn flags(directive: &Directive) -> String {
    let text = directive.word(2).trim().trim_matches(['[', ']']);
    let short_name = |name: &str| -> String {
        let known = LONG_FLAGS.iter().find(|(long, _)| *long == name);
        known.map_or(name, |(_, short)| short).to_owned()
    };
    let normalised = |flag: &str| {
        let upper = flag.trim().to_ascii_uppercase();
        match upper.split_once('=') {
            Some((name, value)) => format!("{}={value}", short_name(name.trim_end())),
            None => short_name(&upper),
        }
    };
    let flags: Vec<String> = text.split(',').map(normalised).collect();
    flags.join(",")
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
    let flags = flags(condition);
    let test = condition.word(1);
    let negated_test = test.strip_prefix('!');
    let is_for_others = negated_test.is_some();
    // Without regard to case, a condition holds for more methods; a negated one for fewer.
    let has_plain_flags = flags.is_empty() || (is_for_others && flags == "NC");
    if condition.word(0) != "%{REQUEST_METHOD}" || !has_plain_flags {
        return None;
    }
    let plain_test = negated_test.unwrap_or(test);
    let list = match plain_test.strip_prefix('=') {
        Some(name) => name,
        None => {
            let behind_start = plain_test.strip_prefix('^')?;
            // Without an end, the expression matches further methods, too. A negated condition then holds for fewer
            // methods than the route for all others refuses; any other condition would hold for more.
            let whole = match behind_start.strip_suffix('$') {
                Some(whole) => whole,
                None if is_for_others => behind_start,
                None => return None,
            };
            let group = whole.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
            // Without a group, `^` and `$` apply only to the first and the last alternative.
            if group.is_none() && whole.contains('|') {
                return None;
            }
            group.unwrap_or(whole)
        }
    };
    let methods = list.trim_start_matches("?:").split('|').map(str::to_owned);
    Some((methods.collect(), is_for_others))
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
        let is_plain = |flag: &str| matches!(flag, "P" | "L" | "END" | "NC" | "QSA");
        if !flags.split(',').all(is_plain) {
            return None;
        }
        let compiled = translated(expression, ignores_case);
        targets.rewritten(expression, compiled, target, directive.id, ledger)?
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

/// For a condition on the host whose expression has a group: the beginning of the host before `%1`. `None` for any
/// other condition.
fn capture(condition: &Directive) -> Option<String> {
    let is_host = matches!(condition.word(0), "%{HTTP_HOST}" | "%{SERVER_NAME}");
    captured(condition.word(1)).filter(|_| is_host)
}

/// Converts a `RewriteRule` that changes no path (`-`): it ends the list of rules for its paths, or sets variables.
/// `matchers` are its paths; `None` if the importer cannot tell for which requests it holds.
fn pass(
    directive: &Directive,
    conditions: &[&Directive],
    matchers: Option<Vec<Matcher>>,
    scheme: Option<Scheme>,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    let flags = flags(directive);
    let ends_list = has_flag(&flags, "L") || has_flag(&flags, "END");
    let mut set = flags.split(',').filter_map(|it| it.strip_prefix("E="));
    // Backends get that field itself.
    if set.any(|it| !is_of(it, "HTTP_AUTHORIZATION")) {
        let text = "the front has no variables: what it sets by `E=` stays empty in logs and for applications";
        ledger.lost(directive.id, text);
    }
    for it in conditions.iter().chain([&directive]) {
        if ends_list && matchers.is_none() {
            let text = "the rule ends the list for some requests, which was not converted";
            ledger.lost(it.id, text);
        } else {
            ledger.mapped(it.id);
        }
    }
    if !ends_list {
        return Vec::new();
    }
    let place = ledger.place(directive.id);
    let rule = |matcher: Matcher| Rule {
        scheme,
        ..Rule::new(Some(place), matcher, Action::Files)
    };
    let rules = matchers.into_iter().flatten().map(rule);
    rules.map(Rewrite::Pass).collect()
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
fn why_not_converted(flags: &str) -> &'static str {
    let has = |name: &str| {
        let mut names = flags.split(',').map(|flag| flag.split('=').next());
        names.any(|it| it == Some(name))
    };
    if has("P") {
        "the importer cannot write this RewriteRule with [P] as a route with `upstream`"
    } else if has("F") || has("G") {
        "routes cannot say which requests this RewriteRule refuses"
    } else if has("CO") {
        "this RewriteRule sets a cookie ([CO]), and routes set none"
    } else if has("C") {
        "this RewriteRule is one of a chain ([C]), which routes cannot express"
    } else if has("E") {
        "this RewriteRule sets a variable ([E]) by which modules leave requests to others"
    } else if has("R") {
        "the front has no redirect that does the same as this RewriteRule"
    } else {
        "the front cannot change paths as this RewriteRule does"
    }
}

/// Reports a `RewriteRule`, with its conditions, as mapped or as not converted.
fn report(id: Id, conditions: &[&Directive], flags: &str, is_mapped: bool, ledger: &mut Ledger) {
    if is_mapped {
        ledger.mapped(id);
    } else {
        ledger.unmapped(id, why_not_converted(flags));
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
