//! Servers of nginx: their names, and the order in which nginx chooses a location.
//!
//! A location with `=` comes first. Otherwise nginx finds the longest prefix; unless that has `^~`, the first
//! expression that matches overrides it. Prefixes are compared as texts, not by segments.

use std::collections::HashSet;

use catamaran_config::is_route_host;

use crate::condition::Port;
use crate::directive::{Directive, close_all, drop_all, keep_all, part_all};
use crate::judge::PlaceUse;
use crate::ledger::{Id, Ledger, Weight};
use crate::matcher::{Common, Matcher};
use crate::mod_jk::mounts::join_prefixes;
use crate::nginx::answer::TextType;
use crate::nginx::files::{MissingRule, give_types, missing};
use crate::nginx::listen::{Addresses, Listens, senders};
use crate::nginx::location::{
    self, LocationTargets, Scope, access, action, drop_needless, inner_rewrite, modifier, settings,
};
use crate::nginx::nested;
use crate::nginx::pages::{PageServer, Pages};
use crate::nginx::rewrite;
use crate::nginx::tree::Expansion;
use crate::nginx::upstream::{self, Upstreams};
use crate::nginx::variables::fill;
use crate::plan::{Access, Action, Keys, Plan, Rule, Settings, SharedSettings, VirtualHost};
use crate::regex::path_set;

/// Converts the directives of nginx into the plan.
pub(crate) fn convert(
    top: &[Directive],
    expansion: &mut Expansion<'_>,
    plan: &mut Plan,
    vhosts: &[String],
) {
    let http: Vec<&Directive> = top.iter().filter(|it| it.name == "http").collect();
    http.iter().for_each(|it| expansion.ledger.mapped(it.id));
    let all: Vec<&Directive> = if http.is_empty() {
        top.iter().collect()
    } else {
        http.iter().flat_map(|it| it.inside()).collect()
    };
    let is_block = |it: &&&Directive| matches!(it.name.as_str(), "server" | "upstream");
    // Servers inherit the others.
    let outer: Vec<Directive> = all
        .iter()
        .filter(|it| !is_block(it))
        .map(|&it| it.clone())
        .collect();
    drop_outer(top, &outer, expansion.ledger);
    let blocks = all.iter().filter(|it| it.name == "upstream");
    let upstreams: Upstreams = blocks
        .map(|it| (it.word(0).to_owned(), upstream::read(it, expansion.ledger)))
        .collect();
    let servers = || all.iter().filter(|it| it.name == "server").copied();
    let addresses = Addresses::new(servers());
    for server in servers() {
        let mut reader = ServerReader {
            expansion,
            pages: Pages::default(),
            plan,
            upstreams: &upstreams,
            outer: &outer,
            addresses: &addresses,
            last_settings: SharedSettings::default(),
        };
        reader.server(server, vhosts);
    }
    let asked = location::addresses(top);
    expansion.ledger.address_guards.enter(asked, REMEDY);
    senders(servers(), &outer, plan, expansion.ledger);
    settle_claims(top, plan, expansion.ledger);
    add_missing(plan);
    let rest: Vec<&Directive> = outer
        .iter()
        .chain(servers().flat_map(Directive::inside))
        .collect();
    drop_unused(&rest, expansion.ledger);
}

/// Decides on what stands outside servers.
fn drop_outer(top: &[Directive], outer: &[Directive], ledger: &mut Ledger) {
    drop_needless(top, ledger);
    drop_needless(outer, ledger);
    let is_upgrade = |it: &&Directive| it.name == "map" && it.word(1) == "$connection_upgrade";
    for directive in outer.iter().filter(is_upgrade) {
        ledger.mapped(directive.id);
    }
    for directive in top.iter().filter(|it| it.name == "events") {
        drop_needless(directive.inside(), ledger);
    }
}

/// Decides on what believes a proxy before nginx: a risk if none is trusted.
fn settle_claims(top: &[Directive], plan: &mut Plan, ledger: &mut Ledger) {
    let claims = rewrite::claims(top);
    plan.claims_scheme = !claims.is_empty();
    ledger.claims.extend(claims);
    for id in std::mem::take(&mut ledger.claims) {
        if plan.trusted.is_empty() {
            ledger.risk(id, PROXY_BEFORE);
        }
    }
}

/// Adds a listener and a host if there is none. Without a server every request is left to the old one, or answered 404.
fn add_missing(plan: &mut Plan) {
    if plan.listeners.is_empty() {
        plan.listener("[::]:80", 80);
    }
    if plan.hosts.is_empty() {
        let all: Vec<usize> = (0..plan.listeners.len()).collect();
        plan.hosts.push(VirtualHost {
            listeners: all.clone(),
            default_on: all,
            ..VirtualHost::default()
        });
    }
}

/// Drops settings that no location uses, of servers and of what they inherit.
fn drop_unused(directives: &[&Directive], ledger: &mut Ledger) {
    let unused = |it: &Directive, ledger: &mut Ledger| match it.name.as_str() {
        "gzip" | "gzip_types" | "gzip_min_length" => {
            ledger.dropped_if_open(it.id, "nothing is compressed by it");
        }
        "index" => ledger.dropped_if_open(it.id, "no location serves files by it"),
        // Where it is in force and says nothing, the place was judged by it, and is closed.
        "proxy_set_header" => {
            ledger.dropped_if_open(it.id, "no location that is open inherits it");
        }
        _ => {}
    };
    for directive in directives {
        if matches!(
            directive.name.as_str(),
            "root" | "index" | "expires" | "autoindex" | "types"
        ) {
            ledger.dropped_if_open(directive.id, "no location serves files by it");
        }
        unused(directive, ledger);
        for inner in directive.inside() {
            unused(inner, ledger);
        }
    }
}

struct ServerReader<'a, 'e> {
    expansion: &'a mut Expansion<'e>,
    pages: Pages,
    plan: &'a mut Plan,
    upstreams: &'a Upstreams,
    outer: &'a [Directive],
    addresses: &'a Addresses,
    /// The settings of the previous location, for sharing: most locations have the same.
    last_settings: SharedSettings,
}

/// A server's block, with what the importer knows of it.
#[derive(Clone, Copy)]
struct Server<'s> {
    inner: &'s [Directive],
    /// The directives that locations inherit: all but the locations, of which there may be very many.
    plain: &'s [Directive],
    ports: &'s [Port],
}

impl ServerReader<'_, '_> {
    fn server(&mut self, server: &Directive, vhosts: &[String]) {
        let constants = constants(server.inside(), self.expansion.ledger);
        let filled: Vec<Directive> = if constants.is_empty() {
            Vec::new()
        } else {
            filled(server.inside(), &constants)
        };
        let inner = if constants.is_empty() {
            server.inside()
        } else {
            &filled[..]
        };
        let unnested = nested::unnested(inner);
        let inner = unnested.as_deref().unwrap_or(inner);
        let (names, unsayable) = self.names(inner);
        if !vhosts.is_empty() && !names.iter().any(|it| vhosts.contains(it)) {
            let reason = "`--vhost` leaves its server out";
            self.expansion.ledger.dropped(server.id, reason);
            return drop_all(inner, reason, self.expansion.ledger);
        }
        self.expansion.ledger.begin();
        self.expansion.ledger.mapped(server.id);
        drop_needless(inner, self.expansion.ledger);
        let mut host = VirtualHost {
            place: Some(self.expansion.ledger.place(server.id).clone()),
            names,
            unsayable,
            ..VirtualHost::default()
        };
        let listens = Listens {
            inner,
            outer: self.outer,
            addresses: self.addresses,
            files: self.expansion.files,
        };
        let is_hidden = listens.add(self.plan, &mut host, self.expansion.ledger);
        let listeners = host.listeners.iter().map(|&it| &self.plan.listeners[it]);
        let ports: Vec<Port> = listeners.map(|it| (it.port, it.tls.is_some())).collect();
        let others = inner.iter().filter(|it| it.name != "location");
        let plain: Vec<Directive> = others.cloned().collect();
        host.rules = self.rules(Server {
            inner,
            plain: &plain,
            ports: &ports,
        });
        if is_hidden {
            let text = "the front cannot tell its address from other addresses with the same port";
            self.expansion.ledger.unmapped(server.id, text);
            self.expansion.ledger.address_guards.void_all();
            let rules = host.rules.iter_mut();
            rules.for_each(|it| it.settings.access = Access::Unsaid);
        }
        self.plan.hosts.push(host);
        self.expansion.ledger.end();
    }

    /// The names of a server that routes can have, and the directives with names that they cannot.
    fn names(&mut self, inner: &[Directive]) -> (Vec<String>, Vec<Id>) {
        let (mut names, mut unsayable) = (Vec::new(), Vec::new());
        for directive in inner.iter().filter(|it| it.name == "server_name") {
            self.expansion.ledger.mapped(directive.id);
            for word in &directive.words {
                let word = word.to_ascii_lowercase();
                let bare = word
                    .strip_prefix("*.")
                    .or_else(|| word.strip_prefix('.'))
                    .unwrap_or(&word);
                let wild = (word.len() != bare.len()).then(|| format!("*.{bare}"));
                match word.as_str() {
                    "" | "_" => {}
                    _ if !is_route_host(wild.as_deref().unwrap_or(bare)) => {
                        let text = format!("`{word}` is no host that a route can have");
                        self.expansion.ledger.note(directive.id, text);
                        unsayable.push(directive.id);
                    }
                    _ => {
                        if !word.starts_with("*.") {
                            names.push(bare.to_owned());
                        }
                        names.extend(wild);
                    }
                }
            }
        }
        names.dedup();
        (names, unsayable)
    }

    /// The rules of a server, in the order in which nginx decides.
    fn rules(&mut self, server: Server<'_>) -> Vec<Rule> {
        let scope = Scope {
            blocks: &[server.plain, self.outer],
            upstreams: self.upstreams,
        };
        let text_type = TextType::of(scope);
        let ledger = &mut *self.expansion.ledger;
        let mut rules = rewrite::of_server(server.inner, text_type, server.ports, ledger);
        let mut prefixes: Vec<(String, bool, Vec<Rule>)> = Vec::new();
        let (mut exact, mut expressions) = (Vec::new(), Vec::new());
        for location in server.inner.iter().filter(|it| it.name == "location") {
            let Some((modifier, text)) = modifier(&location.words) else {
                let text = "a location of this form was not converted";
                self.expansion.ledger.unmapped(location.id, text);
                keep_all(location.inside(), text, self.expansion.ledger);
                continue;
            };
            match modifier {
                // A pattern says no such sign.
                "=" | "" | "^~" if text.contains(['*', '?']) => {
                    self.expansion.ledger.unmapped(location.id, NO_PATTERN);
                    let place = self.expansion.ledger.place(location.id).clone();
                    let wide = Matcher::pattern(&format!("{text}*"));
                    rules.push(Rule::new(Some(&place), wide, Action::Closed));
                    keep_all(location.inside(), NO_PATTERN, self.expansion.ledger);
                }
                "=" => {
                    let path = [Matcher::Exact(text.to_owned())];
                    let found = self.location(location, &path, Some(text), server);
                    rules.extend(found.iter().cloned());
                    exact.push((text.to_owned(), true, found));
                }
                "~" | "~*" => {
                    expressions.extend(self.expression(location, text, modifier == "~*", server));
                }
                // Read where it is named.
                _ if text.starts_with('@') => {}
                _ => {
                    let found = self.prefix(location, text, server);
                    prefixes.push((text.to_owned(), modifier == "^~", found));
                }
            }
        }
        if !prefixes.iter().any(|it| it.0 == "/") {
            let found = self.whole(server);
            prefixes.push(("/".to_owned(), false, found));
        }
        for named in server.inner.iter().filter(|it| it.word(0).starts_with('@')) {
            let ledger = &mut *self.expansion.ledger;
            let text = "no location that was converted names it";
            ledger.dropped_if_open(named.id, text);
            named
                .inside()
                .iter()
                .for_each(|it| ledger.dropped_if_open(it.id, text));
        }
        let slashes = slashes(&prefixes, &exact);
        rules.extend(slashes);
        ordered(prefixes, &expressions, &mut rules, self.expansion.ledger);
        join_prefixes(&mut rules, self.expansion.ledger);
        rules
    }

    /// The rules of a location, for these paths.
    fn location(
        &mut self,
        location: &Directive,
        matchers: &[Matcher],
        path: Option<&str>,
        server: Server<'_>,
    ) -> Vec<Rule> {
        let inner = location.inside();
        self.expansion.ledger.mapped(location.id);
        drop_needless(inner, self.expansion.ledger);
        let blocks = [inner, server.plain, self.outer];
        let scope = Scope {
            blocks: &blocks,
            upstreams: self.upstreams,
        };
        let place = self.expansion.ledger.place(location.id).clone();
        self.expansion.ledger.begin();
        let mut settled = settings(scope, server.port(), self.expansion.ledger);
        settled.access = access(scope, self.expansion.ledger);
        settled.pages = self.pages(scope, server);
        let mut conditions = Vec::new();
        if self.is_strange(inner, path, server.ports, &mut conditions) {
            settled.access = Access::Unsaid;
        }
        let named = self.named(scope.own("try_files"), server, &mut settled);
        let is_left = settled.access == Access::Unsaid;
        let settled = SharedSettings::like(settled, &mut self.last_settings);
        let mut rules: Vec<Rule> = Vec::new();
        for matcher in matchers {
            for condition in &conditions {
                let mut rule = condition.narrowed(matcher.clone());
                rule.settings = settled.clone();
                rules.push(rule);
            }
            let ledger = &mut *self.expansion.ledger;
            let targets = LocationTargets {
                plan: &mut *self.plan,
                files: self.expansion.files,
                named,
            };
            let action = action(scope, matcher, path, targets, ledger);
            let mut rule = Rule::new(Some(&place), matcher.clone(), action);
            rule.settings = settled.clone();
            give_types(&mut rule, scope, self.expansion.ledger);
            rules.push(rule);
        }
        self.admit(&mut rules, scope, is_left);
        if rules.iter().all(Rule::is_closed) {
            close_all([location], self.expansion.ledger);
        }
        rules
    }

    /// Judges the place that was read, and admits its rules or closes them. `is_left` says that its guards were found
    /// to be the old server's.
    fn admit(&mut self, rules: &mut [Rule], scope: Scope<'_>, is_left: bool) {
        let ledger = &mut *self.expansion.ledger;
        let uses = rules.iter().map(|it| it.action.place_use());
        let mut place_use = uses.fold(PlaceUse::default(), PlaceUse::or);
        // Where another location passes requests on, it was judged for that.
        place_use.forwards &= scope.own("proxy_pass").is_some();
        let judged = location::judge(scope, place_use, ledger);
        rules.iter_mut().for_each(|it| it.admit(judged));
        if is_left || judged.closes() {
            location::leave_guards(scope, ledger);
        }
        ledger.end();
    }

    /// The keys for a block's error pages.
    fn pages(&mut self, scope: Scope<'_>, server: Server<'_>) -> Keys {
        let server = PageServer {
            inner: server.inner,
            files: self.expansion.files,
        };
        self.pages.keys(scope, server, self.expansion.ledger)
    }

    /// Whether a block contains a directive about requests that is not converted. Adds the rules of each `if` that is
    /// converted to `conditions`.
    fn is_strange(
        &mut self,
        inner: &[Directive],
        path: Option<&str>,
        ports: &[Port],
        conditions: &mut Vec<Rule>,
    ) -> bool {
        let ledger = &mut *self.expansion.ledger;
        let mut found = false;
        for directive in inner {
            let is = match directive.name.as_str() {
                "if" => match rewrite::of_location(directive, ports, ledger) {
                    Some(rules) => {
                        conditions.extend(rules);
                        false
                    }
                    None => true,
                },
                "location" | "limit_except" => true,
                "rewrite" => inner_rewrite(inner, path).is_none(),
                "try_files" => missing(Some(directive)).is_none(),
                _ => false,
            };
            if is {
                let text = format!("`{}` in a location was not converted", directive.name);
                ledger.unmapped(directive.id, &text);
                part_all(directive.inside(), directive.id, ledger);
                found = true;
            }
        }
        found
    }

    /// The upstream of the named location that `try_files` names; `None` if there is none. Joins that location's
    /// settings to those of the place that names it.
    fn named(
        &mut self,
        tries: Option<&Directive>,
        server: Server<'_>,
        settled: &mut Settings,
    ) -> Option<usize> {
        let tries = tries?;
        let Some(MissingRule::Named(name)) = missing(Some(tries)) else {
            return None;
        };
        let mut locations = server.inner.iter().filter(|it| it.name == "location");
        let location = locations.find(|it| it.word(0) == name);
        let tries_again = |it: &&Directive| it.inside().iter().any(|it| it.name == "try_files");
        let Some(location) = location.filter(|it| !tries_again(it)) else {
            settled.access = Access::Unsaid;
            let text = "its named location does not exist, or tries files itself";
            self.expansion.ledger.unmapped(tries.id, text);
            return None;
        };
        let everything = [Matcher::everything()];
        let mut found = self.location(location, &everything, None, server);
        let rule = found.pop()?;
        // Two guards of one request: what one of them says suffices only if the other says nothing.
        let mine = std::mem::take(&mut settled.access);
        settled.merge(&Settings {
            access: Access::Open,
            ..(*rule.settings).clone()
        });
        // What it does not pass on to backends itself says nothing of their requests.
        settled.request_fields = rule.settings.request_fields.clone();
        let theirs = rule.settings.access.clone();
        settled.access = match (mine, theirs) {
            (Access::Open, other) | (other, Access::Open) => other,
            (one, two) if one == two => one,
            _ => Access::Unsaid,
        };
        if !found.is_empty() {
            settled.access = Access::Unsaid;
        }
        match rule.action {
            Action::Forward {
                upstream,
                rewrite: None,
            } => Some(upstream),
            _ => {
                settled.access = Access::Unsaid;
                let text = "its named location does not pass requests on as they are";
                self.expansion.ledger.unmapped(tries.id, text);
                None
            }
        }
    }

    fn prefix(&mut self, location: &Directive, text: &str, server: Server<'_>) -> Vec<Rule> {
        let exact = match text {
            "/" => Matcher::everything(),
            text => Matcher::pattern(&format!("{text}*")),
        };
        if text.ends_with('/') {
            return self.location(location, &[exact], Some(text), server);
        }
        // A prefix is a text here, and segments in the front.
        let segments = [Matcher::prefix(text)];
        let mut rules = self.location(location, &segments, Some(text), server);
        if rules.iter_mut().all(|it| it.action.rewrite_mut().is_none()) {
            for rule in &mut rules {
                rule.matcher = exact.clone();
            }
            return rules;
        }
        let is_kept = |it: &Rule| it.action.keeps_path(text) || it.action.upstream().is_none();
        if rules.iter().all(is_kept) {
            for mut rule in rules.clone() {
                rule.action.forget_rewrite();
                rule.matcher = exact.clone();
                rules.push(rule);
            }
            return rules;
        }
        let place = self.expansion.ledger.place(location.id).clone();
        let note = format!("`{text}` takes paths such as {text}x in nginx; here those are closed");
        self.expansion.ledger.note(location.id, note);
        rules.push(Rule::new(Some(&place), exact, Action::Closed));
        rules
    }

    fn expression(
        &mut self,
        location: &Directive,
        text: &str,
        ignores_case: bool,
        server: Server<'_>,
    ) -> Vec<Rule> {
        let wide = path_set(text, ignores_case);
        let mut set = path_set(text, false);
        if ignores_case {
            set.add_cases();
        }
        let mut rules = self.location(location, &set.matchers, None, server);
        if wide.is_exact {
            return rules;
        }
        let closing = rules.iter().any(|it| {
            it.settings.access != Access::Open
                || matches!(
                    it.action,
                    Action::Closed | Action::Answer(_) | Action::Text(_)
                )
        });
        let ledger = &mut *self.expansion.ledger;
        if set.is_exact && !closing {
            ledger.note(
                location.id,
                "the front compares upper and lower case as they are: it has this in either, and not in a mixture",
            );
            return rules;
        }
        ledger.unmapped(location.id, NO_PATTERN);
        let place = ledger.place(location.id).clone();
        rules = wide
            .matchers
            .into_iter()
            .map(|it| Rule::new(Some(&place), it, Action::Closed))
            .collect();
        rules
    }

    /// The rule of the server outside its locations, for all paths.
    fn whole(&mut self, server: Server<'_>) -> Vec<Rule> {
        let blocks = [server.plain, self.outer];
        let scope = Scope {
            blocks: &blocks,
            upstreams: self.upstreams,
        };
        self.expansion.ledger.begin();
        let mut settled = settings(scope, server.port(), self.expansion.ledger);
        settled.access = access(scope, self.expansion.ledger);
        settled.pages = self.pages(scope, server);
        let tries = scope.own("try_files");
        if let Some(tries) = tries.filter(|it| missing(Some(it)).is_none()) {
            let text = "this `try_files` was not converted";
            self.expansion.ledger.unmapped(tries.id, text);
            settled.access = Access::Unsaid;
        }
        let named = self.named(tries, server, &mut settled);
        let is_left = settled.access == Access::Unsaid;
        let matcher = Matcher::everything();
        let action = super::files::serve(
            scope,
            &matcher,
            Some("/"),
            named,
            self.expansion.files,
            self.expansion.ledger,
        );
        let action = match (action, named) {
            (Action::Files, Some(upstream)) => Action::Forward {
                upstream,
                rewrite: None,
            },
            (action, _) => action,
        };
        let mut rule = Rule::new(None, matcher, action);
        rule.settings = settled.into();
        give_types(&mut rule, scope, self.expansion.ledger);
        let mut rules = vec![rule];
        self.admit(&mut rules, scope, is_left);
        rules
    }
}

/// The values of variables that a `set` defines once, without other variables, by their names, and the server's first
/// name if it is a plain one.
fn constants(inner: &[Directive], ledger: &mut Ledger) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let named = inner.iter().find(|it| it.name == "server_name");
    let first = named.map_or("", |it| it.word(0));
    if is_route_host(first) && !first.starts_with('*') {
        found.push(("server_name".to_owned(), first.to_ascii_lowercase()));
    }
    for directive in inner.iter().filter(|it| it.name == "set") {
        let (name, value) = (directive.word(0), directive.word(1));
        if is_set_again(inner, name) || value.contains('$') {
            continue;
        }
        if let Some(name) = name.strip_prefix('$') {
            ledger.mapped(directive.id);
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    found
}

fn is_set_again(inner: &[Directive], name: &str) -> bool {
    let count = |it: &Directive| usize::from(it.name == "set" && it.word(0) == name);
    let direct: usize = inner.iter().map(count).sum();
    let deeper = inner
        .iter()
        .any(|it| !it.inside().is_empty() && sets(it.inside(), name));
    direct > 1 || deeper
}

fn sets(inner: &[Directive], name: &str) -> bool {
    inner.iter().any(|it| {
        (matches!(it.name.as_str(), "set" | "auth_request_set") && it.word(0) == name)
            || sets(it.inside(), name)
    })
}

fn filled(inner: &[Directive], constants: &[(String, String)]) -> Vec<Directive> {
    let constant = |name: &str| constants.iter().find(|it| it.0 == name);
    let fill = |word: &String| fill(word, |name| constant(name).map(|it| &*it.1));
    let fill_one = |it: &Directive| Directive {
        words: match it.name.as_str() {
            "set" => it.words.clone(),
            _ => it.words.iter().map(fill).collect(),
        },
        inner: it.inner.as_ref().map(|it| filled(it, constants)),
        ..it.clone()
    };
    inner.iter().map(fill_one).collect()
}

impl Server<'_> {
    /// The value of `$server_port`.
    fn port(&self) -> u16 {
        self.ports.first().map_or(80, |it| it.0)
    }
}

/// Redirects for paths that only lack the slash of a location that forwards: nginx sends them before it tries any
/// expression.
fn slashes(
    prefixes: &[(String, bool, Vec<Rule>)],
    exact: &[(String, bool, Vec<Rule>)],
) -> Vec<Rule> {
    let passes = |rules: &[Rule]| {
        let forwards = |it: &Rule| matches!(it.action, Action::Forward { .. });
        rules.iter().any(forwards)
    };
    let all = || prefixes.iter().chain(exact);
    let others: HashSet<&str> = all().map(|it| it.0.as_str()).collect();
    let is_one = |text: &str| text.len() > 1 && text.ends_with('/');
    let redirect = |(text, _, rules): &(String, bool, Vec<Rule>)| {
        let path = text.trim_end_matches('/');
        let is = is_one(text) && passes(rules) && !others.contains(path);
        let place = rules.first().and_then(|it| it.place.as_ref());
        let action = Action::Redirect {
            to: crate::matcher::encoded(text).replace('{', "{{"),
            status: 301,
        };
        is.then(|| Rule::new(place, Matcher::Exact(path.to_owned()), action))
    };
    all().filter_map(redirect).collect()
}

/// Appends the rules in nginx's order: expressions before prefixes, except prefixes with `^~`.
fn ordered(
    mut prefixes: Vec<(String, bool, Vec<Rule>)>,
    expressions: &[Rule],
    rules: &mut Vec<Rule>,
    ledger: &mut Ledger,
) {
    prefixes.sort_by_key(|it| std::cmp::Reverse(it.0.len()));
    let firm: Vec<String> = prefixes
        .iter()
        .filter(|it| it.1)
        .map(|it| it.0.clone())
        .collect();
    let mut deferred = Vec::new();
    for (text, is_firm, found) in prefixes {
        let within = firm.iter().any(|it| text.starts_with(it.as_str()));
        if is_firm {
            rules.extend(found);
            continue;
        }
        if !within {
            deferred.extend(found);
            continue;
        }
        for rule in &found {
            for expression in expressions {
                match expression.matcher.common(&rule.matcher) {
                    Common::Set(set) => rules.push(expression.narrowed(set)),
                    Common::Unsaid => {
                        let text = "the front cannot tell which of its paths an expression takes: it answers them with \
                                    403, or the old server keeps them. Put the expression's paths in a prefix of their own";
                        ledger.say(Weight::Risk, rule.place.clone(), text);
                        rules.push(Rule::new(
                            rule.place.as_ref(),
                            rule.matcher.clone(),
                            Action::Closed,
                        ));
                    }
                    Common::Nothing => {}
                }
            }
        }
        rules.extend(found);
    }
    rules.extend(expressions.iter().cloned());
    rules.extend(deferred);
}

/// The nginx directives by which the old server learns clients' addresses behind the front.
const REMEDY: &str = "`real_ip_header X-Forwarded-For` and `set_real_ip_from 127.0.0.1`";

const NO_PATTERN: &str = "routes cannot express its regular expression";

/// The risk for rules that test the scheme that a proxy before the source reports.
const PROXY_BEFORE: &str = "a proxy before this server says how clients came: name its address in `trusted_proxies` of \
    [server], or what it says is not believed";
