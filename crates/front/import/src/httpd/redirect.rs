//! mod_alias and mod_rewrite: redirects, and rules that send requests to another target.

use crate::condition::{
    CAPTURED, Condition, Port, Scheme, SettledCondition, When, captured, of_host, of_port,
};
use crate::directive::Directive;
use crate::httpd::files::{ServedDirectory, Site};
use crate::httpd::proxy::{prefix, whole_path};
use crate::ledger::{Id, Ledger, Place};
use crate::matcher::Matcher;
use crate::plan::{Action, Plan, Rule, redirect_status};
use crate::regex::{HostTest, PathSet, path_set, rest_of};
use crate::target::Target;
use crate::toml_text::quoted;

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

/// The rules of `Alias` and its variants, in the source's order, and those of its directories that the
/// front serves.
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
                let set = path_set(directive.word(0), false);
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

/// The action of a `Redirect` without a path of its own, which stands in a section such as `<Location>`: all requests of
/// that section are sent to one URL, to which nothing of their paths is appended.
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

fn redirect_match(directive: &Directive, ledger: &mut Ledger) -> Vec<Rule> {
    let id = directive.id;
    let place = ledger.place(id).clone();
    let (status, words) = status(directive);
    let (Some(status), Some(expression)) = (status, words.first()) else {
        return Vec::new();
    };
    let set = path_set(expression, false);
    let target = words.get(1).map_or("", String::as_str);
    let converted = if (300..400).contains(&status) {
        action_of(target, status, expression, &set.matchers)
    } else {
        Some(Action::Answer(status))
    };
    let action = converted.filter(|_| set.is_exact);
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

/// A redirect to the result of a rewrite; `None` if the front's redirect templates cannot express it.
fn action_of(target: &str, status: u16, expression: &str, matchers: &[Matcher]) -> Option<Action> {
    let all = matchers == [Matcher::everything()];
    let below = rest_of(expression);
    let marked = target
        .replace("%{HTTP_HOST}", "\u{1}host")
        .replace("%{SERVER_NAME}", "\u{1}host");
    let text = match marked
        .strip_suffix("%{REQUEST_URI}")
        .or_else(|| marked.strip_suffix("/$1"))
        .or_else(|| marked.strip_suffix("$1"))
    {
        Some(base) if all => format!("{}\u{1}path_query", base.trim_end_matches('/')),
        Some(base) if marked.ends_with("/$1") && !base.is_empty() && below.is_some() => {
            format!("{base}\u{1}rest_query")
        }
        Some(_) => return None,
        None => marked,
    };
    if text.contains(['$', '%']) {
        return None;
    }
    let to = escaped(&text)
        .replace(CAPTURE, CAPTURED)
        .replace("\u{1}host", "{host}")
        .replace("\u{1}path_query", "{path_query}")
        .replace("\u{1}rest_query", "{rest_query}");
    let status = redirect_status(status)?;
    is_target(&to).then_some(Action::Redirect { to, status })
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// A rule of the front for the paths of the `RewriteRule`.
    Rule(Rule),
    /// The paths of this rule go to the other modules, and no later `RewriteRule` is asked.
    Pass(Rule),
    /// The rule passes WebSocket handshakes on.
    Tunnel(TunnelRule),
}

/// A `RewriteRule` that passes WebSocket handshakes to a backend, with their paths unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TunnelRule {
    ids: Vec<Id>,
    matchers: Vec<Matcher>,
    /// The backend's URL.
    url: String,
}

/// Allows WebSocket on rules of mod_proxy where a `RewriteRule` passes its handshakes to the same backend.
pub(crate) fn open_tunnels(
    rewrites: &[Rewrite],
    proxied: &mut [Rule],
    plan: &Plan,
    ledger: &mut Ledger,
) {
    for rewrite in rewrites {
        if let Rewrite::Tunnel(tunnel) = rewrite {
            tunnel.open(proxied, plan, ledger);
        }
    }
}

impl TunnelRule {
    /// Sets `upgrade` on those rules that forward to the same backend with the same paths.
    fn open(&self, rules: &mut [Rule], plan: &Plan, ledger: &mut Ledger) {
        let (mut opened, mut left) = (false, false);
        for rule in rules {
            let Action::Forward { upstream, rewrite } = &rule.action else {
                continue;
            };
            let mut members = plan.upstreams[*upstream].backends.iter();
            let is_own = members.all(|it| it.url == self.url);
            let is_whole = self.matchers.iter().any(|it| it.covers(&rule.matcher));
            let keeps = |path: &String| rule.action.keeps_path(path);
            let is_same = match (rewrite, &rule.matcher) {
                (None, _) => true,
                (_, Matcher::Prefix(path)) => keeps(path),
                _ => false,
            };
            if is_own && is_whole && is_same {
                opened = true;
                let upgrade = quoted("websocket");
                rule.settings.keys.insert("upgrade".to_owned(), upgrade);
            } else {
                left |= self.matchers.iter().any(|it| it.overlaps(&rule.matcher));
            }
        }
        for &id in &self.ids {
            if opened && !left {
                ledger.mapped(id);
            } else {
                ledger.lost(
                    id,
                    "WebSocket is passed on only where all else goes to the same backend",
                );
            }
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
        rules.extend(rewrite(directive, &conditions, clients, ledger));
    }
    if let Some((directive, conditions)) = last {
        rules.extend(last_rewrite(directive, &conditions, clients, ledger));
    }
    rules
}

/// The rules of the last `RewriteRule`. Paths that its conditions exclude go to the other modules.
fn last_rewrite(
    directive: &Directive,
    conditions: &[&Directive],
    clients: Clients<'_>,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    let is_joined = |it: &&&Directive| {
        let flags = it.word(2).to_ascii_lowercase();
        flags
            .split([',', '[', ']'])
            .any(|it| matches!(it.trim(), "or" | "ornext"))
    };
    if conditions.iter().any(|it| is_joined(&it)) {
        return rewrite(directive, conditions, clients, ledger);
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
    let rules = rewrite(directive, &others, clients, ledger);
    passes.into_iter().chain(rules).collect()
}

/// The paths that a condition such as `%{REQUEST_URI} !^/path/` excludes from a rule; `None` for other
/// conditions.
fn excepted(condition: &Directive) -> Option<Vec<Matcher>> {
    let expression = condition.word(1).strip_prefix('!')?;
    let flags = condition.word(2).to_ascii_uppercase();
    let set = path_set(expression, flags.contains("NC"));
    let is_one = condition.word(0) == "%{REQUEST_URI}" && set.is_exact;
    is_one.then_some(set.matchers)
}

/// All conditions of a rule as one; `[OR]` joins a condition with the next.
fn all_of(conditions: &[&Directive], clients: Clients<'_>) -> Condition {
    let mut parts: Vec<Condition> = Vec::new();
    let mut open: Vec<Condition> = Vec::new();
    for it in conditions {
        let flags = it.word(2).trim_matches(['[', ']']).to_ascii_lowercase();
        let goes_on = flags
            .split(',')
            .any(|it| matches!(it.trim(), "or" | "ornext"));
        open.push(condition(it, clients));
        if !goes_on {
            parts.push(Condition::any(std::mem::take(&mut open)));
        }
    }
    if !open.is_empty() {
        parts.push(Condition::any(open));
    }
    Condition::all(parts)
}

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
        // The name that was asked for, without its port.
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
        // Every request that is served has one.
        Some("" | "\"\"") => Condition::Never,
        Some(text) if text.contains(':') => Condition::Unsaid,
        Some(text) => Condition::Host(HostTest::Is(text.to_ascii_lowercase())),
        None if test.starts_with(['<', '>', '-']) => Condition::Unsaid,
        None => of_host(test, ports),
    };
    condition.negated_if(negated)
}

fn rewrite(
    directive: &Directive,
    conditions: &[&Directive],
    clients: Clients<'_>,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    let (expression, target) = (directive.word(0), directive.word(1));
    let flags = directive
        .word(2)
        .trim_matches(['[', ']'])
        .to_ascii_uppercase();
    let has = |flag: &str| flags.split(',').any(|it| it.trim() == flag);
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
    // Within a server the expression meets a path with its slash.
    let negated = expression.starts_with('!');
    let set = path_set(expression.trim_start_matches('!'), has("NC"));
    let passes = |it: &str| matches!(it, "" | "L" | "END" | "NC" | "PT") || it.starts_with("E=");
    if target == "-" && flags.split(',').all(|it| passes(it.trim())) {
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
    let converted = rewritten(&target, &flags, expression, &set.matchers);
    let action = converted.filter(|_| said && set.is_exact && !negated);
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
    matchers.iter().map(rule).map(Rewrite::Rule).collect()
}

/// The rule as one that passes on WebSocket handshakes; `None` if it does anything else.
fn tunnel(directive: &Directive, conditions: &[&Directive]) -> Option<TunnelRule> {
    let (expression, target) = (directive.word(0), directive.word(1));
    let url = Target::new(&tunnel_authority(expression, target)?)?;
    let flags = directive
        .word(2)
        .trim_matches(['[', ']'])
        .to_ascii_uppercase();
    let is_plain = flags
        .split(',')
        .all(|it| matches!(it.trim(), "P" | "L" | "NC" | "PROXY" | "LAST"));
    let set = path_set(expression, false);
    let all = conditions.iter().all(|it| is_handshake(it));
    let asks = conditions
        .iter()
        .any(|it| it.word(0).eq_ignore_ascii_case("%{HTTP:Upgrade}"));
    (url.is_tunnel && url.path.is_empty() && is_plain && set.is_exact && all && asks).then(|| {
        TunnelRule {
            ids: conditions
                .iter()
                .map(|it| it.id)
                .chain([directive.id])
                .collect(),
            matchers: set.matchers,
            url: url.url,
        }
    })
}

/// The target's URL without its path, if the rule keeps the request's path; else `None`.
fn tunnel_authority(expression: &str, target: &str) -> Option<String> {
    let bare = expression.trim_start_matches('^').trim_end_matches('$');
    let base = match bare {
        "/?(.*)" | "/(.*)" => target.strip_suffix("/$1"),
        "(.*)" => target.strip_suffix("$1"),
        ".*" => target.strip_suffix("%{REQUEST_URI}"),
        _ => return whole_path(expression, target),
    };
    base.map(str::to_owned)
}

/// Whether a condition holds for WebSocket handshakes.
fn is_handshake(condition: &Directive) -> bool {
    let test = condition.word(1).to_ascii_lowercase();
    let word: String = test.chars().filter(char::is_ascii_alphabetic).collect();
    let expected = match condition.word(0).to_ascii_lowercase().as_str() {
        "%{http:upgrade}" => "websocket",
        "%{http:connection}" => "upgrade",
        _ => return false,
    };
    let flags = condition.word(2).to_ascii_uppercase();
    word == expected && !test.starts_with('!') && matches!(flags.as_str(), "" | "[NC]" | "[NOCASE]")
}

/// For a condition on the host whose expression has a group: the beginning of the host before `%1`.
fn capture(condition: &Directive) -> Option<String> {
    let is_host = matches!(condition.word(0), "%{HTTP_HOST}" | "%{SERVER_NAME}");
    captured(condition.word(1)).filter(|_| is_host)
}

/// Converts a `RewriteRule` that changes no path (`-`): it ends the list for its paths, or sets variables.
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
    let has = |flag: &str| flags.split(',').any(|it| it.trim() == flag);
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

/// What a rule does if its conditions hold; `None` if the front cannot do it.
fn rewritten(target: &str, flags: &str, expression: &str, matchers: &[Matcher]) -> Option<Action> {
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
    action_of(target, status, expression, matchers)
}

/// Why a `RewriteRule` with these flags was not converted.
fn unsaid(flags: &str) -> &'static str {
    let has = |names: &[&str]| {
        let mut all = flags
            .split(',')
            .map(|it| it.split('=').next().unwrap_or(it));
        all.any(|it| names.contains(&it.trim()))
    };
    match () {
        () if has(&["P", "PROXY"]) => {
            "the importer cannot write this RewriteRule with [P] as a route with `upstream`"
        }
        () if has(&["F", "FORBIDDEN", "G", "GONE"]) => {
            "routes cannot say which requests this RewriteRule refuses"
        }
        () if has(&["CO", "COOKIE"]) => {
            "this RewriteRule sets a cookie ([CO]), and routes set none"
        }
        () if has(&["C", "CHAIN"]) => {
            "this RewriteRule is one of a chain ([C]), which routes cannot express"
        }
        () if has(&["R", "REDIRECT"]) => {
            "the front has no redirect that does the same as this RewriteRule"
        }
        () => "the front cannot change paths as this RewriteRule does",
    }
}

fn finish(id: Id, conditions: &[&Directive], flags: &str, is_mapped: bool, ledger: &mut Ledger) {
    if is_mapped {
        ledger.mapped(id);
    } else {
        ledger.unmapped(id, unsaid(flags));
    }
    conditions.iter().for_each(|it| ledger.part(it.id, id));
}

/// Placeholder for `%1` in a target, until the target is escaped.
const CAPTURE: &str = "\u{1}captured";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_expressions() {
        let all = [Matcher::everything()];
        let to = |target: &str| match action_of(target, 301, "^(.*)$", &all) {
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
