//! Servers: their listeners and names, and the order in which nginx chooses a location.
//!
//! `=` goes before all. Else the longest prefix is found; unless it has `^~`, the first expression that
//! matches goes before it. Prefixes are texts, not segments.

use std::path::Path;

use crate::emit::quoted;
use crate::ledger::Ledger;
use crate::matcher::{Common, Matcher};
use crate::mod_jk::mounts::join_prefixes;
use crate::nginx::location::{
    Scope, access, action, answer, closes, drop_needless, keep_all, settings, template,
};
use crate::nginx::tree::{Directive, Expansion};
use crate::nginx::upstream::{self, Upstreams};
use crate::plan::{Access, Action, Plan, Rule, Scheme, VirtualHost};
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
    let outer: Vec<Directive> = match http.is_empty() {
        true => top.to_vec(),
        false => http
            .iter()
            .flat_map(|it| it.inside().iter().cloned())
            .collect(),
    };
    drop_needless(top, expansion.ledger);
    drop_needless(&outer, expansion.ledger);
    for directive in &outer {
        let is_upgrade = directive.name == "map" && directive.word(1) == "$connection_upgrade";
        if is_upgrade {
            expansion.ledger.mapped(directive.id);
        }
    }
    for directive in top.iter().filter(|it| it.name == "events") {
        drop_needless(directive.inside(), expansion.ledger);
    }
    let blocks = outer.iter().filter(|it| it.name == "upstream");
    let upstreams: Upstreams = blocks
        .map(|it| (it.word(0).to_owned(), upstream::read(it, expansion.ledger)))
        .collect();
    for server in outer.iter().filter(|it| it.name == "server") {
        let mut reader = Reader {
            expansion,
            plan,
            upstreams: &upstreams,
            outer: &outer,
        };
        reader.server(server, vhosts);
    }
    if plan.listeners.is_empty() {
        plan.listener("[::]:80", 80);
    }
}

struct Reader<'a, 'e> {
    expansion: &'a mut Expansion<'e>,
    plan: &'a mut Plan,
    upstreams: &'a Upstreams,
    outer: &'a [Directive],
}

impl<'a> Reader<'a, '_> {
    fn server(&mut self, server: &Directive, vhosts: &[String]) {
        let inner = server.inside();
        let names = self.names(inner);
        if !vhosts.is_empty() && !names.iter().any(|it| vhosts.contains(it)) {
            self.expansion
                .ledger
                .dropped(server.id, "`--vhost` leaves its server out");
            return drop_all(inner, self.expansion.ledger);
        }
        self.expansion.ledger.mapped(server.id);
        drop_needless(inner, self.expansion.ledger);
        let mut host = VirtualHost {
            place: Some(self.expansion.ledger.place(server.id).clone()),
            names,
            ..VirtualHost::default()
        };
        self.listens(inner, &mut host);
        let port = host
            .listeners
            .first()
            .map_or(80, |&it| self.plan.listeners[it].port);
        host.rules = self.rules(inner, &host.names, port);
        self.plan.hosts.push(host);
    }

    fn names(&mut self, inner: &[Directive]) -> Vec<String> {
        let mut names = Vec::new();
        for directive in inner.iter().filter(|it| it.name == "server_name") {
            self.expansion.ledger.mapped(directive.id);
            for word in &directive.words {
                let word = word.to_ascii_lowercase();
                let bare = word
                    .strip_prefix("*.")
                    .or_else(|| word.strip_prefix('.'))
                    .unwrap_or(&word);
                let label = |it: &str| {
                    let plain = it
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
                    plain
                        && !it.is_empty()
                        && it.len() < 64
                        && !it.starts_with('-')
                        && !it.ends_with('-')
                };
                match word.as_str() {
                    "" | "_" => {}
                    _ if bare.len() > 250 || !bare.split('.').all(label) => {
                        let text = format!("`{word}` is no host that a route can have");
                        self.expansion.ledger.risk(directive.id, text);
                    }
                    _ => {
                        if !word.starts_with("*.") {
                            names.push(bare.to_owned());
                        }
                        if word.len() != bare.len() {
                            names.push(format!("*.{bare}"));
                        }
                    }
                }
            }
        }
        names.dedup();
        names
    }

    fn listens(&mut self, inner: &[Directive], host: &mut VirtualHost) {
        let listens: Vec<&Directive> = inner.iter().filter(|it| it.name == "listen").collect();
        if listens.is_empty() {
            self.listen("80", &[], inner, host);
        }
        for directive in listens {
            match directive.word(0).starts_with("unix:") {
                true => self
                    .expansion
                    .ledger
                    .risk(directive.id, "listening on a Unix socket was not converted"),
                false => {
                    self.expansion.ledger.mapped(directive.id);
                    self.listen(directive.word(0), &directive.words[1..], inner, host);
                }
            }
        }
    }

    fn listen(
        &mut self,
        text: &str,
        words: &[String],
        inner: &[Directive],
        host: &mut VirtualHost,
    ) {
        let (address, port) = match text.rsplit_once(':') {
            Some((address, port)) if port.parse::<u16>().is_ok() => {
                (address, port.parse().unwrap_or(80))
            }
            _ => match text.parse::<u16>() {
                Ok(port) => ("*", port),
                Err(_) => (text, 80),
            },
        };
        let bare = address.trim_matches(['[', ']']);
        let any = matches!(bare, "*" | "::" | "0.0.0.0");
        let address = match bare.parse::<std::net::IpAddr>() {
            Ok(address) if !any => std::net::SocketAddr::new(address, port).to_string(),
            _ => format!("[::]:{port}"),
        };
        let wild = self.plan.listeners.iter().position(|it| it.port == port);
        let index = wild.unwrap_or_else(|| self.plan.listener(&address, port));
        if host.listeners.contains(&index) {
            return;
        }
        host.listeners.push(index);
        let has = |name: &str| words.iter().any(|it| it == name);
        let taken = self
            .plan
            .hosts
            .iter()
            .any(|it| it.default_on.contains(&index));
        if has("default_server") || has("default") {
            self.plan
                .hosts
                .iter_mut()
                .for_each(|it| it.default_on.retain(|it| *it != index));
            host.default_on.push(index);
        } else if !taken {
            host.default_on.push(index);
        }
        let ssl_on = inner
            .iter()
            .any(|it| it.name == "ssl" && it.word(0) == "on");
        if has("ssl") || ssl_on {
            self.tls(inner, index);
        }
    }

    fn tls(&mut self, inner: &[Directive], listener: usize) {
        let find = |name: &str| {
            let own = inner.iter().find(|it| it.name == name);
            own.or_else(|| self.outer.iter().find(|it| it.name == name))
        };
        let mut tls = self.plan.listeners[listener]
            .tls
            .clone()
            .unwrap_or_default();
        let (chain, key) = (find("ssl_certificate"), find("ssl_certificate_key"));
        let (verify, authority) = (find("ssl_verify_client"), find("ssl_client_certificate"));
        let files = self.expansion.files;
        let ledger = &mut *self.expansion.ledger;
        match (chain, key) {
            (Some(chain), Some(key)) => {
                for directive in [chain, key] {
                    match files.read(Path::new(directive.word(0))) {
                        Ok(_) => ledger.mapped(directive.id),
                        Err(error) => {
                            ledger.risk(
                                directive.id,
                                format!("`{}` cannot be read: {error}", directive.word(0)),
                            );
                            tls.missing = Some("its certificate cannot be read".to_owned());
                        }
                    }
                }
                let pair = (chain.word(0).to_owned(), key.word(0).to_owned());
                if !tls.certificates.contains(&pair) {
                    tls.certificates.push(pair);
                }
            }
            _ if tls.certificates.is_empty() => {
                tls.missing = Some("it has no certificate".to_owned());
            }
            _ => {}
        }
        if let Some(verify) = verify.filter(|it| it.word(0) != "off") {
            match authority.filter(|it| files.read(Path::new(it.word(0))).is_ok()) {
                Some(authority) => {
                    let value = if verify.word(0) == "on" {
                        "required"
                    } else {
                        "optional"
                    };
                    tls.keys
                        .insert("client_certificate".to_owned(), quoted(value));
                    tls.keys
                        .insert("client_ca".to_owned(), quoted(authority.word(0)));
                    ledger.mapped(verify.id);
                    ledger.mapped(authority.id);
                }
                None => {
                    ledger.risk(
                        verify.id,
                        "its authority of clients' certificates cannot be read",
                    );
                    tls.missing =
                        Some("its authority of clients' certificates cannot be read".to_owned());
                }
            }
        }
        self.plan.listeners[listener].tls = Some(tls);
    }

    /// The rules of a server, in the order in which nginx decides.
    fn rules(&mut self, inner: &[Directive], names: &[String], port: u16) -> Vec<Rule> {
        let mut rules = self.server_rewrites(inner, names);
        let mut prefixes: Vec<(String, bool, Vec<Rule>)> = Vec::new();
        let mut expressions = Vec::new();
        for location in inner.iter().filter(|it| it.name == "location") {
            let (modifier, text) = match &location.words[..] {
                [text] => match ["=", "^~", "~*", "~"]
                    .iter()
                    .find_map(|it| Some((*it, text.strip_prefix(it)?)))
                {
                    Some((modifier, text)) => (modifier, text),
                    None => ("", text.as_str()),
                },
                [modifier, text] => (modifier.as_str(), text.as_str()),
                _ => {
                    closes(
                        location.id,
                        "a location of this form was not converted",
                        self.expansion.ledger,
                    );
                    keep_all(
                        location.inside(),
                        "its location was not converted",
                        self.expansion.ledger,
                    );
                    continue;
                }
            };
            match modifier {
                "=" => {
                    let found = self.location(
                        location,
                        &[Matcher::Exact(text.to_owned())],
                        Some(text),
                        port,
                    );
                    rules.extend(found);
                }
                "~" | "~*" => {
                    expressions.extend(self.expression(location, text, modifier == "~*", port));
                }
                _ if text.starts_with('@') => {
                    self.expansion
                        .ledger
                        .kept_or_risk(location.id, "a named location was not converted");
                    keep_all(
                        location.inside(),
                        "its location was not converted",
                        self.expansion.ledger,
                    );
                }
                _ => {
                    let found = self.prefix(location, text, port);
                    prefixes.push((text.to_owned(), modifier == "^~", found));
                }
            }
        }
        if !prefixes.iter().any(|it| it.0 == "/") {
            prefixes.push(("/".to_owned(), false, self.whole(inner, port)));
        }
        ordered(prefixes, &expressions, &mut rules);
        join_prefixes(&mut rules, self.expansion.ledger);
        rules
    }

    /// `return`, `rewrite` and `if` of the server go before its locations.
    fn server_rewrites(&mut self, inner: &[Directive], names: &[String]) -> Vec<Rule> {
        let ledger = &mut *self.expansion.ledger;
        let mut rules = Vec::new();
        let hosts: Vec<String> = inner
            .iter()
            .filter(|it| it.name == "if" && it.words.join(" ").starts_with("($host ="))
            .map(|it| {
                it.words
                    .join(" ")
                    .trim_start_matches("($host =")
                    .trim_matches([' ', ')', '='])
                    .to_owned()
            })
            .collect();
        let all_hosts = !names.is_empty() && names.iter().all(|it| hosts.contains(it));
        for directive in inner {
            let place = ledger.place(directive.id).clone();
            let everything = Matcher::everything();
            match directive.name.as_str() {
                "return" => rules.push(Rule::new(
                    Some(&place),
                    everything,
                    answer(directive, ledger),
                )),
                "rewrite" => rules.extend(rewrite(directive, ledger)),
                "if" => {
                    let test = directive.words.join(" ");
                    let scheme = match test.as_str() {
                        "($scheme = http)"
                        | "($scheme != https)"
                        | "($scheme != \"https\")"
                        | "($https = )" => Some(Scheme::Http),
                        _ => None,
                    };
                    let is_host = test.starts_with("($host =") && all_hosts;
                    let only_return = directive.inside().iter().find(|it| it.name == "return");
                    match only_return
                        .filter(|_| (scheme.is_some() || is_host) && directive.inside().len() == 1)
                    {
                        Some(inside) => {
                            ledger.mapped(directive.id);
                            rules.push(Rule {
                                scheme,
                                ..Rule::new(Some(&place), everything, answer(inside, ledger))
                            });
                        }
                        None => {
                            closes(
                                directive.id,
                                "a condition of this kind was not converted",
                                ledger,
                            );
                            keep_all(
                                directive.inside(),
                                "its condition was not converted",
                                ledger,
                            );
                            rules.push(Rule::new(Some(&place), everything, Action::Closed));
                        }
                    }
                }
                _ => {}
            }
        }
        rules
    }

    /// The rules of a location for these paths.
    fn location(
        &mut self,
        location: &Directive,
        matchers: &[Matcher],
        path: Option<&str>,
        port: u16,
    ) -> Vec<Rule> {
        let inner = location.inside();
        self.expansion.ledger.mapped(location.id);
        drop_needless(inner, self.expansion.ledger);
        let server = self.enclosing(location);
        let blocks: Vec<&[Directive]> = match server {
            Some(server) => vec![inner, server, self.outer],
            None => vec![inner, self.outer],
        };
        let scope = Scope {
            blocks: &blocks,
            upstreams: self.upstreams,
        };
        let place = self.expansion.ledger.place(location.id).clone();
        let mut rules: Vec<Rule> = Vec::new();
        let strange = inner.iter().find(|it| {
            matches!(
                it.name.as_str(),
                "if" | "location" | "rewrite" | "limit_except" | "try_files"
            )
        });
        let mut settled = settings(scope, port, self.expansion.ledger);
        settled.access = access(scope, self.expansion.ledger);
        for matcher in matchers {
            let action = action(scope, matcher, path, self.plan, self.expansion.ledger);
            let mut rule = Rule::new(Some(&place), matcher.clone(), action);
            rule.settings = settled.clone();
            if let Some(strange) = strange {
                let text = format!("`{}` in a location was not converted", strange.name);
                closes(strange.id, &text, self.expansion.ledger);
                keep_all(
                    strange.inside(),
                    "it is part of what was not converted",
                    self.expansion.ledger,
                );
                rule.settings.access = Access::Unsaid;
            }
            rules.push(rule);
        }
        rules
    }

    /// The block of the server that has a location.
    fn enclosing(&self, location: &Directive) -> Option<&'a [Directive]> {
        let servers = self.outer.iter().filter(|it| it.name == "server");
        let mut servers = servers.map(Directive::inside);
        servers.find(|inner| inner.iter().any(|it| it.id == location.id))
    }

    fn prefix(&mut self, location: &Directive, text: &str, port: u16) -> Vec<Rule> {
        let exact = match text {
            "/" => Matcher::everything(),
            text => Matcher::pattern(&format!("{text}*")),
        };
        if text.ends_with('/') {
            return self.location(location, &[exact], Some(text), port);
        }
        // A prefix is a text here, and segments in the front.
        let mut rules = self.location(location, &[Matcher::prefix(text)], Some(text), port);
        let plain = rules.iter().all(|it| match &it.action {
            Action::Forward { rewrite, .. } => rewrite.is_none(),
            _ => true,
        });
        for rule in &mut rules {
            if plain {
                rule.matcher = exact.clone();
            }
        }
        if !plain {
            let place = self.expansion.ledger.place(location.id).clone();
            let note =
                format!("`{text}` takes paths such as {text}x in nginx; here those are closed");
            self.expansion.ledger.note(location.id, note);
            rules.push(Rule::new(Some(&place), exact, Action::Closed));
        }
        rules
    }

    fn expression(
        &mut self,
        location: &Directive,
        text: &str,
        ignores_case: bool,
        port: u16,
    ) -> Vec<Rule> {
        let set = path_set(text, ignores_case);
        let mut rules = self.location(location, &set.matchers, None, port);
        if set.is_exact {
            return rules;
        }
        let closing = rules.iter().any(|it| {
            it.settings.access != Access::Open
                || matches!(it.action, Action::Closed | Action::Answer(_))
        });
        if ignores_case && !closing {
            self.expansion.ledger.note(
                location.id,
                "the front compares upper and lower case as they are",
            );
            return rules;
        }
        closes(
            location.id,
            "its expression is no pattern of the front",
            self.expansion.ledger,
        );
        let place = self.expansion.ledger.place(location.id).clone();
        let wide = if ignores_case {
            set.widened()
        } else {
            set.matchers
        };
        rules = wide
            .into_iter()
            .map(|it| Rule::new(Some(&place), it, Action::Closed))
            .collect();
        rules
    }

    /// What the server does outside its locations.
    fn whole(&mut self, inner: &[Directive], port: u16) -> Vec<Rule> {
        let blocks = [inner, self.outer];
        let scope = Scope {
            blocks: &blocks,
            upstreams: self.upstreams,
        };
        let mut rule = Rule::new(None, Matcher::everything(), Action::Files);
        rule.settings = settings(scope, port, self.expansion.ledger);
        rule.settings.access = access(scope, self.expansion.ledger);
        if let Some(files) = inner.iter().find(|it| it.name == "try_files") {
            self.expansion
                .ledger
                .kept_or_risk(files.id, "directories of files are not converted");
        }
        vec![rule]
    }
}

/// Expressions go before a prefix, unless it has `^~`.
fn ordered(
    mut prefixes: Vec<(String, bool, Vec<Rule>)>,
    expressions: &[Rule],
    rules: &mut Vec<Rule>,
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

fn rewrite(directive: &Directive, ledger: &mut Ledger) -> Vec<Rule> {
    let place = ledger.place(directive.id).clone();
    let set = path_set(directive.word(0), false);
    let status = match directive.word(2) {
        "permanent" => Some(301),
        "redirect" => Some(302),
        _ => None,
    };
    let all = set.matchers == [Matcher::everything()];
    let target = directive.word(1);
    let whole = target
        .strip_suffix("/$1")
        .or_else(|| target.strip_suffix("$1"));
    let to = match whole.filter(|_| all) {
        Some(base) => template(&format!("{base}$request_uri")),
        None => template(target.trim_end_matches('?')),
    };
    let redirect = status.zip(to).filter(|_| set.is_exact);
    let action = match redirect {
        Some((status, to)) => {
            ledger.mapped(directive.id);
            Action::Redirect { to, status }
        }
        None => {
            closes(
                directive.id,
                "this rewrite is no redirect of the front",
                ledger,
            );
            Action::Closed
        }
    };
    set.matchers
        .iter()
        .map(|it| Rule::new(Some(&place), it.clone(), action.clone()))
        .collect()
}

fn drop_all(directives: &[Directive], ledger: &mut Ledger) {
    for directive in directives {
        ledger.dropped(directive.id, "`--vhost` leaves its server out");
        drop_all(directive.inside(), ledger);
    }
}
