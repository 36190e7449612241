//! mod_proxy: converts `ProxyPass` into rules, balancers and single workers into upstreams.

use std::collections::{BTreeMap, BTreeSet};

use crate::directive::Directive;
use crate::expression::{Expression, literal, translated};
use crate::httpd::expressions::{self, PathSet};
use crate::ledger::{Id, Ledger};
use crate::matcher::Matcher;
use crate::mod_jk::workers::{duration, hoist, number};
use crate::plan::{Action, Backend, Keys, Plan, Rule, Upstream};
use crate::target::{OWN_HOST, Target};
use crate::toml_text::{quoted, quoted_list};

/// The balancers of a server by name, and settings for calling its backends.
#[derive(Clone, Debug)]
pub(crate) struct Balancers {
    known: BTreeMap<String, Upstream>,
    /// For each balancer, the paths in the URLs of its members.
    paths: BTreeMap<String, BTreeSet<String>>,
    /// For each balancer, the members that speak only WebSocket.
    tunnels: BTreeMap<String, Vec<(Id, Backend)>>,
    /// Whether HTTP backends get the `Host` that the client asked for (`ProxyPreserveHost`).
    preserve_host: bool,
    /// The keys by which the certificates of TLS backends are verified; `None`: they are not.
    verification: Option<Keys>,
}

impl Balancers {
    pub(crate) fn new(preserve_host: bool, verification: Option<Keys>) -> Self {
        Self {
            known: BTreeMap::new(),
            paths: BTreeMap::new(),
            tunnels: BTreeMap::new(),
            preserve_host,
            verification,
        }
    }

    /// Adds the balancers that these directives define.
    pub(crate) fn add(&mut self, directives: &[Directive], ledger: &mut Ledger) {
        for directive in directives {
            let url = directive.word(0).to_ascii_lowercase();
            // All other URLs are those of single workers.
            let Some(balancer) = url.strip_prefix("balancer://") else {
                continue;
            };
            let name = balancer.trim_end_matches('/');
            let id = directive.id;
            match directive.name.as_str() {
                "proxy" => {
                    ledger.mapped(id);
                    for inner in directive.inside() {
                        match inner.name.as_str() {
                            "balancermember" => self.member(name, &inner.words, inner.id, ledger),
                            "proxyset" => self.set(name, &inner.words, inner.id, ledger),
                            _ => {}
                        }
                    }
                }
                "balancermember" => self.member(name, &directive.words[1..], id, ledger),
                "proxyset" => self.set(name, &directive.words[1..], id, ledger),
                _ => {}
            }
        }
    }

    /// Sets how an upstream's backends are called: without `ProxyPreserveHost`, HTTP backends get their own name
    /// as `Host`. TLS backends are verified if the source verifies them.
    fn call(&self, upstream: &mut Upstream) {
        let has_ajp = upstream.backends.iter().any(|it| it.url.starts_with("ajp"));
        if !has_ajp && !self.preserve_host {
            upstream.keys.insert("host".to_owned(), quoted(OWN_HOST));
        }
        let Some(verification) = &self.verification else {
            return;
        };
        for backend in &mut upstream.backends {
            // Backends without TLS do not have the key. Without it, the front verifies the certificate.
            if backend.keys.remove("verify").is_some() {
                backend.keys.extend(verification.clone());
            }
        }
    }

    /// The upstream of the balancer with this name; adds it if there is none.
    fn of(&mut self, name: &str) -> &mut Upstream {
        self.known
            .entry(name.to_owned())
            .or_insert_with(|| Upstream {
                name: name.to_owned(),
                ..Upstream::default()
            })
    }

    /// Adds a `BalancerMember` to its balancer.
    fn member(&mut self, name: &str, words: &[String], id: Id, ledger: &mut Ledger) {
        let url = words.first().map_or("", String::as_str);
        let Some(target) = Target::new(url) else {
            return ledger.risk(id, format!("the front cannot reach `{url}`"));
        };
        let path = target.path.trim_end_matches('/').to_owned();
        self.paths.entry(name.to_owned()).or_default().insert(path);
        let mut backend = Backend {
            place: Some(ledger.place(id).clone()),
            url: target.url,
            keys: target.keys,
        };
        ledger.mapped(id);
        for (key, value) in parameters(&words[1..]) {
            member_key(&key, &value, id, &mut backend.keys, ledger);
        }
        // A balancer may have only members for WebSocket.
        self.of(name);
        if target.is_tunnel {
            let tunnels = self.tunnels.entry(name.to_owned()).or_default();
            tunnels.push((id, backend));
        } else {
            self.of(name).backends.push(backend);
        }
    }

    /// Applies the parameters of a `ProxySet` to its balancer.
    fn set(&mut self, name: &str, words: &[String], id: Id, ledger: &mut Ledger) {
        ledger.mapped(id);
        for (key, value) in parameters(words) {
            balancer_key(&key, &value, id, self.of(name), ledger);
        }
    }
}

/// The words `KEY=VALUE` as pairs, with keys in lower case. A word without `=` is a key with the value `on`.
fn parameters(words: &[String]) -> Vec<(String, String)> {
    let pair = |word: &String| {
        let (key, value) = word.split_once('=').unwrap_or((word, "on"));
        (key.to_ascii_lowercase(), value.to_owned())
    };
    words.iter().map(pair).collect()
}

/// The rules of a `ProxyPass`; `section` is the path of the section around it, if it has no path itself.
pub(crate) fn pass(
    directive: &Directive,
    section: Option<&str>,
    balancers: &Balancers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Vec<Rule> {
    let (path, words) = match section {
        Some(path) => (path, &directive.words[..]),
        None => (
            directive.word(0),
            directive.words.get(1..).unwrap_or_default(),
        ),
    };
    let pass = ProxyPass {
        directive,
        path,
        target: words.first().map_or("", String::as_str),
        parameters: words.get(1..).unwrap_or_default(),
        is_match: directive.name == "proxypassmatch",
    };
    let set = if pass.is_match {
        expressions::paths(path, false)
    } else {
        PathSet {
            matchers: vec![prefix(path)],
            is_exact: true,
        }
    };
    // `!` leaves the paths to other modules.
    if pass.target == "!" && set.is_exact {
        ledger.mapped(directive.id);
        return pass.rules(&set.matchers, Action::Files, ledger);
    }
    if pass.target == "!" {
        let text = format!("routes cannot express the pattern `{path}`");
        ledger.unmapped(directive.id, &text);
        return pass.rules(&set.matchers, Action::Closed, ledger);
    }
    match pass.forwarding_rules(&set, balancers, plan, ledger) {
        Some(rules) => rules,
        None => pass.rules(&set.matchers, Action::Closed, ledger),
    }
}

/// A `ProxyPass` or `ProxyPassMatch` with the parts of its line.
struct ProxyPass<'d> {
    directive: &'d Directive,
    path: &'d str,
    target: &'d str,
    parameters: &'d [String],
    /// Whether the path is an expression.
    is_match: bool,
}

impl ProxyPass<'_> {
    /// The rules that forward requests for these paths; `None` if the front cannot forward them so, which is reported.
    fn forwarding_rules(
        &self,
        set: &PathSet,
        balancers: &Balancers,
        plan: &mut Plan,
        ledger: &mut Ledger,
    ) -> Option<Vec<Rule>> {
        let id = self.directive.id;
        let mut url = Some(self.target.to_owned());
        let mut grouped = None;
        if self.is_match {
            url = whole_path(self.path, self.target);
            if url.is_none() && self.target.contains('$') {
                grouped = GroupedTarget::new(translated(self.path, false), self.target);
                url = grouped.as_ref().map(|it| it.authority.clone());
            }
        }
        let forwarded = url
            .filter(|_| set.is_exact)
            .and_then(|url| forward(&url, self.parameters, id, balancers, plan, ledger));
        let Some(Destination {
            upstream,
            path,
            keys,
        }) = forwarded
        else {
            let text = format!("`{}` cannot be converted", self.directive.shown(ledger));
            ledger.unmapped(id, &text);
            return None;
        };
        if !self.is_match && !is_joined(self.path, self.target, id, ledger) {
            return None;
        }
        ledger.mapped(id);
        let mut rules = if let Some(grouped) = grouped {
            let rewrite = Some(grouped.path);
            let action = Action::Forward { upstream, rewrite };
            self.rules(&[grouped.matcher], action, ledger)
        } else {
            let changed = rewrite(self.path, &path);
            let rewrite = changed.filter(|_| !self.is_match);
            // For an expression, it would be the whole new path, and not only that of the prefix.
            if rewrite.is_some() && set.matchers.iter().any(Matcher::is_expression) {
                ledger.unmapped(id, "routes cannot change a path with `*` or `?`");
                return None;
            }
            let action = Action::Forward { upstream, rewrite };
            self.rules(&set.matchers, action, ledger)
        };
        if !keys.is_empty() {
            for rule in &mut rules {
                rule.settings.keys.extend(keys.clone());
            }
        }
        Some(rules)
    }

    /// A rule with this action for each set of paths.
    fn rules(&self, matchers: &[Matcher], action: Action, ledger: &Ledger) -> Vec<Rule> {
        let place = ledger.place(self.directive.id);
        let rule = |it: &Matcher| Rule::new(Some(place), it.clone(), action.clone());
        matchers.iter().map(rule).collect()
    }
}

/// Whether a `ProxyPass` takes the path of its section for an expression, because it has wildcards.
pub(crate) fn has_wildcards(path: &str) -> bool {
    let has_brackets = match path.find('[') {
        Some(start) => path[start..].contains(']'),
        None => false,
    };
    has_brackets || path.contains(['*', '?'])
}

/// A closed rule for a `ProxyPass` in a section with wildcards. httpd uses the section's path both as a pattern and
/// as an expression, and the importer cannot tell which paths match both.
pub(crate) fn unsaid(directive: &Directive, path: &str, ledger: &mut Ledger) -> Rule {
    let text = "ProxyPass takes the wildcards of its section for an expression: write ProxyPassMatch outside of it";
    ledger.unmapped(directive.id, text);
    let start = path.split(['*', '?', '[']).next().unwrap_or_default();
    let wide = || Matcher::pattern(&format!("{start}*"));
    let matcher = expressions::of_wildcards(path).unwrap_or_else(wide);
    Rule::new(Some(ledger.place(directive.id)), matcher, Action::Closed)
}

/// The backends to which `RewriteRule`s with `[P]` forward requests.
pub(crate) struct ProxyTargets<'a> {
    pub(crate) balancers: &'a Balancers,
    pub(crate) plan: &'a mut Plan,
}

impl ProxyTargets<'_> {
    /// The action of a `RewriteRule` with `[P]`, and the matcher of its paths if it changes them; `None` if the front
    /// cannot forward requests in this way. `text` is the expression as in the source.
    pub(crate) fn rewritten(
        &mut self,
        text: &str,
        expression: Expression,
        target: &str,
        id: Id,
        ledger: &mut Ledger,
    ) -> Option<(Option<Matcher>, Action)> {
        let kept_path_url = match target.strip_suffix("%{REQUEST_URI}") {
            Some(base) => Some(base.to_owned()),
            // Without a group, all paths become the path of the target.
            None => whole_path(text, target).filter(|_| target.contains('$')),
        };
        let (url, matcher, rewrite) = match kept_path_url {
            Some(url) => (url, None, None),
            None => {
                let grouped = GroupedTarget::new(expression, target)?;
                (grouped.authority, Some(grouped.matcher), Some(grouped.path))
            }
        };
        if url.contains(['$', '%', '?']) {
            return None;
        }
        let forwarded = forward(&url, &[], id, self.balancers, self.plan, ledger)?;
        let has_path = !forwarded.path.trim_end_matches('/').is_empty();
        // A path in the URL would come before that of the request, and `keys` are about WebSocket.
        if has_path || !forwarded.keys.is_empty() {
            return None;
        }
        let upstream = forwarded.upstream;
        Some((matcher, Action::Forward { upstream, rewrite }))
    }
}

/// A target whose path contains groups of the expression.
struct GroupedTarget {
    matcher: Matcher,
    /// The URL without its path.
    authority: String,
    path: String,
}

impl GroupedTarget {
    /// Reads the target of an expression that changes paths; `None` if the front cannot change them in this way.
    fn new(expression: Expression, url: &str) -> Option<Self> {
        let (scheme, behind) = url.split_once("://")?;
        let authority_end = behind.find('/').unwrap_or(behind.len());
        let (authority, path) = behind.split_at(authority_end);
        if authority.contains('$') || path.contains(['?', '#', '%', '*']) {
            return None;
        }
        let rooted = if path.is_empty() { "/" } else { path };
        let filled = expressions::path_with_groups(rooted, &expression)?;
        Some(Self {
            authority: format!("{scheme}://{authority}"),
            path: filled,
            matcher: Matcher::Expression(expression),
        })
    }
}

/// The URL without its path, if the target has each request's path unchanged; `None` if the path is changed.
pub(crate) fn whole_path(expression: &str, url: &str) -> Option<String> {
    let (scheme, behind) = url.split_once("://")?;
    let authority_end = behind.find(['/', '$']).unwrap_or(behind.len());
    let (authority, path) = behind.split_at(authority_end);
    let keeps_path = match path {
        "" | "/" | "$0" | "$&" => true,
        _ => match path.strip_suffix("$1") {
            Some(before_group) => is_literal_and_group(expression, before_group),
            None => false,
        },
    };
    keeps_path.then(|| format!("{scheme}://{authority}"))
}

/// Whether an expression consists of `literal` at the beginning of the path, and one group for all that follows.
fn is_literal_and_group(expression: &str, literal: &str) -> bool {
    let Some((text, group)) = expression
        .strip_prefix('^')
        .and_then(|anchored| anchored.split_once('('))
    else {
        return false;
    };
    match group.strip_suffix('$').unwrap_or(group).strip_suffix(')') {
        Some(inner) => !inner.contains(['(', ')']) && text.replace("\\.", ".") == literal,
        None => false,
    }
}

/// Whether the front can append the remaining path to the target. httpd appends it without adding or removing a
/// slash. Reports if the front cannot, and notes where a single path differs.
fn is_joined(path: &str, url: &str, id: Id, ledger: &mut Ledger) -> bool {
    let behind_scheme = url.split_once("://").map_or(url, |(_, behind)| behind);
    // Without its first slash; `None` if the URL has no path.
    let target_path = behind_scheme.split_once('/').map(|(_, path)| path);
    let target_has_slash = target_path.is_some_and(|it| it.ends_with('/'));
    match (path.ends_with('/'), target_path) {
        // The slash behind the host is the only one, and ends the target, too.
        (_, Some("")) => {}
        (true, Some(_)) if !target_has_slash => {
            let text = "one of path and target ends with a slash, and httpd puts none between the target and the rest of the \
                        path: end both with a slash";
            ledger.unmapped(id, text);
            return false;
        }
        (true, None) => {
            let text = "httpd puts no slash between host and path, so that it serves only the path itself; the front has the \
                        slash";
            ledger.note(id, text);
        }
        (false, Some(target_path)) if target_has_slash => {
            let text = format!(
                "for `{path}` itself httpd asks for `/{target_path}`, the front without the last slash"
            );
            ledger.note(id, text);
        }
        _ => {}
    }
    true
}

/// The paths that `ProxyPass /path` matches; if it ends with a slash, only those below it. `*` and `?` are no
/// wildcards.
pub(crate) fn prefix(path: &str) -> Matcher {
    if path.contains(['*', '?']) {
        // A pattern would take them for wildcards.
        let end = if path.ends_with('/') { "" } else { "(?:/|$)" };
        let text = format!("^{}{end}", literal(path));
        Matcher::Expression(translated(&text, false))
    } else if path == "/" {
        Matcher::everything()
    } else if path.ends_with('/') {
        Matcher::pattern(&format!("{path}*"))
    } else {
        Matcher::prefix(path)
    }
}

/// The path that replaces the rule's path; `None` if both are the same.
fn rewrite(path: &str, target: &str) -> Option<String> {
    let new_path = target.trim_end_matches('/');
    if new_path == path.trim_end_matches('/') {
        None
    } else if new_path.is_empty() {
        Some("/".to_owned())
    } else {
        Some(new_path.to_owned())
    }
}

/// Where a URL leads.
struct Destination {
    /// The index of the upstream.
    upstream: usize,
    /// The path in the URL, to which httpd appends that of the request.
    path: String,
    /// Keys for the route: `upgrade`, for WebSocket.
    keys: Keys,
}

/// Adds the upstream of a URL to the plan, with the parameters in `words`; `None` if the front cannot reach it.
fn forward(
    url: &str,
    words: &[String],
    id: Id,
    balancers: &Balancers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Option<Destination> {
    if let Some(name_and_path) = url.strip_prefix("balancer://") {
        return forward_to_balancer(name_and_path, words, id, balancers, plan, ledger);
    }
    let mut keys = Keys::new();
    let target = Target::new(url)?;
    let mut backend = Backend {
        place: Some(ledger.place(id).clone()),
        url: target.url.clone(),
        keys: target.keys.clone(),
    };
    if target.is_tunnel {
        keys.insert("upgrade".to_owned(), quoted_list(["websocket"]));
    }
    for (key, value) in parameters(words) {
        match key.as_str() {
            "upgrade" if value.eq_ignore_ascii_case("websocket") => {
                keys.insert("upgrade".to_owned(), quoted_list(["websocket"]));
            }
            "upgrade" if value.eq_ignore_ascii_case("none") => {}
            _ => member_key(&key, &value, id, &mut backend.keys, ledger),
        }
    }
    let mut upstream = Upstream {
        name: target.host.clone(),
        backends: vec![backend],
        ..Upstream::default()
    };
    balancers.call(&mut upstream);
    hoist(&mut upstream);
    Some(Destination {
        upstream: plan.upstream(upstream),
        path: target.path,
        keys,
    })
}

/// As [`forward`], for what follows `balancer://`. `None` also if the balancer has no members, or members with
/// different paths.
fn forward_to_balancer(
    name_and_path: &str,
    words: &[String],
    id: Id,
    balancers: &Balancers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Option<Destination> {
    let mut keys = Keys::new();
    let (shown_name, path) = name_and_path.split_once('/').unwrap_or((name_and_path, ""));
    let name = shown_name.to_ascii_lowercase();
    let mut upstream = balancers.known.get(&name)?.clone();
    // Members with different paths in their URLs cannot be in one upstream.
    let mut member_paths = balancers.paths.get(&name)?.iter();
    let (Some(member_path), None) = (member_paths.next(), member_paths.next()) else {
        return None;
    };
    for (key, value) in parameters(words) {
        balancer_key(&key, &value, id, &mut upstream, ledger);
    }
    if let Some(tunnels) = balancers.tunnels.get(&name) {
        keys.insert("upgrade".to_owned(), quoted_list(["websocket"]));
        join_tunnels(&mut upstream.backends, tunnels, ledger);
    }
    if upstream.backends.is_empty() {
        return None;
    }
    balancers.call(&mut upstream);
    hoist(&mut upstream);
    Some(Destination {
        upstream: plan.upstream(upstream),
        path: match path {
            "" => member_path.clone(),
            _ => format!("{member_path}/{path}"),
        },
        keys,
    })
}

/// Adds the members that speak only WebSocket. httpd passes them no other request, so beside other members each is the
/// address at which the AJP member of its route takes tunnels.
fn join_tunnels(backends: &mut Vec<Backend>, tunnels: &[(Id, Backend)], ledger: &mut Ledger) {
    if backends.is_empty() {
        return backends.extend(tunnels.iter().map(|it| it.1.clone()));
    }
    for (id, tunnel) in tunnels {
        if backends.iter().any(|it| it.url == tunnel.url) {
            continue;
        }
        let route = tunnel.keys.get("jvm_route");
        let mut partners = backends
            .iter_mut()
            .filter(|it| it.url.starts_with("ajp") && it.keys.get("jvm_route") == route);
        match (partners.next(), partners.next()) {
            (Some(partner), None) => {
                let url = quoted(&tunnel.url);
                partner.keys.insert("upgrade_url".to_owned(), url);
                let verify = tunnel.keys.get_key_value("verify");
                partner
                    .keys
                    .extend(verify.map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => ledger.risk(*id, NO_PARTNER),
        }
    }
}

/// Converts a parameter of a balancer member or a single worker.
fn member_key(key: &str, value: &str, id: Id, keys: &mut Keys, ledger: &mut Ledger) {
    if time_key(key, value, keys) {
        return;
    }
    let mut set = |key: &str, value: String| drop(keys.insert(key.to_owned(), value));
    match key {
        "route" => {
            set("jvm_route", quoted(value));
            set("name", quoted(value));
        }
        "loadfactor" => match value.parse::<f64>() {
            Ok(factor) if factor.fract() == 0.0 && (1.0..=1000.0).contains(&factor) => {
                set("weight", format!("{factor:.0}"));
            }
            _ => ledger.risk(
                id,
                format!("`loadfactor={value}` is no whole number from 1 to 1000"),
            ),
        },
        "redirect" => set("fallback", quoted(value)),
        "lbset" => set("distance", number(value).unwrap_or(0).min(1000).to_string()),
        "secret" => set("secret", value.to_owned()),

        "max" => {
            ledger.note(
                id,
                "`max` counts per process of httpd; `connections_max` is 200 over the whole front",
            );
        }
        "status" => {
            let flags = value.trim_start_matches(['+', '-']).to_ascii_uppercase();
            match flags.as_str() {
                // `-` takes a status away, and none is the default.
                _ if value.starts_with('-') => {}
                "D" | "S" => set("activation", quoted("stopped")),
                "N" => set("activation", quoted("drain")),
                // A hot standby is the farthest member.
                "H" => set("distance", "100".to_owned()),
                _ => ledger.risk(id, format!("`status={value}` was not converted")),
            }
        }
        // How httpd keeps its connections, for which the front has ways of its own.
        "retry" | "min" | "smax" | "keepalive" | "flushpackets" | "flushwait" | "iobuffersize"
        | "receivebuffersize" | "disablereuse" | "enablereuse" | "addressttl" | "nocanon"
        | "responsefieldsize" | "growth" => {}
        _ => ledger.risk(
            id,
            format!("the parameter `{key}={value}` was not converted"),
        ),
    }
}

/// Converts a parameter that is a time; returns `false` if the parameter is no time.
fn time_key(key: &str, value: &str, keys: &mut Keys) -> bool {
    const SECOND: u64 = 1_000;
    let (usual_unit, own_keys): (u64, &[&str]) = match key {
        "timeout" => (SECOND, &["first_byte_timeout", "idle_body_timeout"]),
        "connectiontimeout" => (SECOND, &["connect_timeout"]),
        "ttl" => (SECOND, &["idle_timeout"]),
        "ping" => (SECOND, &["ping_timeout"]),
        "acquire" => (1, &["queue_timeout"]),
        _ => return false,
    };
    let (digits, unit) = match value.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (value, usual_unit),
    };
    if let Some(time) = number(digits).and_then(|count| duration(count, unit)) {
        for own_key in own_keys {
            keys.insert((*own_key).to_owned(), time.clone());
        }
    }
    // httpd asks before each request, not only after a pause.
    if key == "ping" {
        keys.insert("ping_after_idle".to_owned(), quoted("0s"));
    }
    true
}

/// Converts a parameter of a balancer.
fn balancer_key(key: &str, value: &str, id: Id, upstream: &mut Upstream, ledger: &mut Ledger) {
    match key {
        "stickysession" => {
            let names: Vec<&str> = value.split('|').collect();
            let keys = upstream.sticky.get_or_insert_default();
            // httpd asks the path before the cookie.
            keys.insert("first".to_owned(), quoted("path"));
            match names[0] {
                "ROUTEID" => {
                    keys.insert("set_cookie".to_owned(), quoted("ROUTEID"));
                    ledger.note(id, "the cookie ROUTEID is the front's own: a browser that has httpd's may get another member once");
                }
                name => drop(keys.insert("cookies".to_owned(), quoted(name))),
            }
            // Behind `|` is the name in paths.
            if let Some(name) = names.get(1) {
                keys.insert("parameters".to_owned(), quoted(name));
            }
        }
        "stickysessionsep" => {
            let text = if value.eq_ignore_ascii_case("off") {
                "off"
            } else {
                value
            };
            let keys = upstream.sticky.get_or_insert_default();
            keys.insert("separator".to_owned(), quoted(text));
        }
        "nofailover" if value.eq_ignore_ascii_case("on") => {
            let keys = upstream.sticky.get_or_insert_default();
            keys.insert("force".to_owned(), "true".to_owned());
        }
        "lbmethod" => {
            let policy = match value {
                "bybusyness" => "least-in-flight",
                "bytraffic" => "traffic",
                "byrequests" => "round-robin",
                _ => return ledger.risk(id, format!("`lbmethod={value}` was not converted")),
            };
            upstream.keys.insert("policy".to_owned(), quoted(policy));
        }
        "maxattempts" => {
            // The front's default is 2, and its most 20.
            let tries = number(value).unwrap_or(2).min(20).to_string();
            upstream.keys.insert("retries".to_owned(), tries);
        }
        "failonstatus" => {
            let codes: Vec<&str> = value.split(',').collect();
            if codes.contains(&"404") {
                ledger.risk(
                    id,
                    "`failonstatus` 404 would send each page that is not there to every member",
                );
            } else {
                let keys = &mut upstream.keys;
                keys.insert("retry_status".to_owned(), quoted_list(codes));
            }
        }
        "nofailover" | "forcerecovery" | "growth" | "nonce" | "scolonpathdelim"
        | "failontimeout" | "timeout" => {}
        _ => member_key(key, value, id, &mut upstream.keys, ledger),
    }
}

const NO_PARTNER: &str = "the front cannot tell whose WebSocket address this is: name it in `upgrade_url` of that AJP backend";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_expressions_that_keep_the_path() {
        for (expression, url, expected) in [
            ("^/ca/.*", "ajp://a:8009", Some("ajp://a:8009")),
            ("^/app/(.*)$", "ajp://a:8009/app/$1", Some("ajp://a:8009")),
            ("^(/.*)$", "http://a$1", Some("http://a")),
            ("^/app/(.*)$", "ajp://a:8009/$1", None),
            ("^/a/(.*)/(.*)$", "ajp://a:8009/a/$1", None),
        ] {
            assert_eq!(
                whole_path(expression, url).as_deref(),
                expected,
                "{expression} {url}"
            );
        }
    }

    #[test]
    fn paths_are_rewritten_where_they_differ() {
        for (path, target, expected) in [
            ("/app", "/app", None),
            ("/", "", None),
            ("/shop", "/app/", Some("/app")),
            ("/app", "", Some("/")),
            ("/", "/app", Some("/app")),
        ] {
            assert_eq!(
                rewrite(path, target).as_deref(),
                expected,
                "{path} {target}"
            );
        }
    }
}
