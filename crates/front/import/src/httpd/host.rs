//! Servers and virtual hosts of httpd: listeners, names, and the order in which modules decide.
//!
//! mod_rewrite decides before mod_proxy, and both before mod_alias and mod_jk, whatever the order in the file. Sections
//! such as `<Location>` then change what these modules decided, later ones after earlier ones.

use std::collections::HashMap;
use std::sync::LazyLock;

use catamaran_config::{Nature, foreign_answer};

use crate::compress;
use crate::condition::Port;
use crate::directive::{Directive, drop_all};
use crate::files::ImportError;
use crate::httpd::files::{ServedDirectory, Site};
use crate::httpd::jk::{drop_dead_mounts, jk_files, jk_mounts, read_given_jk_files, worker_mounts};
use crate::httpd::names::names;
use crate::httpd::proxy::{self, Balancers, ProxyTargets};
use crate::httpd::redirect::{Clients, Rewrite};
use crate::httpd::section::{call_by_host, overlay, proxies, settle, skip_template};
use crate::httpd::tree::Expansion;
use crate::httpd::{
    access, fields, logs, pages, redirect, senders, slashes, tunnel, usual, variables,
};
use crate::judge::PlaceUse;
use crate::ledger::{Ledger, Weight};
use crate::matcher::{Common, Matcher};
use crate::methods::guard_all;
use crate::mod_jk::mounts::{self, Mount, join_prefixes};
use crate::mod_jk::workers::{Workers, duration, number};
use crate::plan::{Access, Action, Plan, Rule, VirtualHost};
use crate::sources::Sources;

/// Converts the directives of a server into the plan.
pub(crate) fn convert(
    top: &[Directive],
    sources: &Sources,
    expansion: &mut Expansion<'_>,
    plan: &mut Plan,
    vhosts: &[String],
) -> Result<(), ImportError> {
    let is_host = |it: &&Directive| it.name == "virtualhost";
    let main: Vec<Directive> = top.iter().filter(|it| !is_host(it)).cloned().collect();
    let mut workers = Workers::default();
    let mut server_mounts = read_given_jk_files(sources, expansion, &mut workers);
    server_mounts.extend(jk_files(&main, sources, expansion, &mut workers)?);
    let ledger = &mut *expansion.ledger;
    server_mounts.extend(jk_mounts(&main, None, ledger));
    worker_mounts(&mut workers, &mut server_mounts);
    let copies_all = main
        .iter()
        .any(|it| it.name == "jkmountcopy" && it.word(0).eq_ignore_ascii_case("all"));
    let hosts: Vec<&Directive> = top.iter().filter(is_host).collect();
    let mut reader = Reader {
        files: expansion,
        plan,
        workers,
        main: &main,
        hosts: &hosts,
        sources,
        single_names: false,
        named: HashMap::new(),
        unsaid: Vec::new(),
    };
    for directive in main.iter().filter(|it| it.name == "listen") {
        reader.listen(directive);
    }
    reader.split_addresses();
    let mut is_copied = copies_all && !hosts.is_empty();
    for &host in &hosts {
        let inner = host.inside();
        let copies = inner
            .iter()
            .any(|it| it.name == "jkmountcopy" && it.word(0).eq_ignore_ascii_case("on"));
        let inherited = if copies || copies_all {
            &server_mounts[..]
        } else {
            &[]
        };
        is_copied |= copies;
        reader.host(Some(host), inner, inherited, vhosts)?;
    }
    let served = |plan: &Plan| -> Vec<usize> {
        let taken = |it: &usize| plan.hosts.iter().any(|host| host.listeners.contains(it));
        (0..plan.listeners.len()).filter(|it| !taken(it)).collect()
    };
    reader.settle_listeners();
    let left = served(reader.plan);
    if left.is_empty() {
        drop_dead_mounts(&server_mounts, is_copied, reader.files.ledger);
        reader.unreached_main();
    } else {
        reader.host(None, &main, &server_mounts, &[])?;
    }
    reader.workers.finish(reader.files.ledger);
    let ledger = &mut *expansion.ledger;
    ledger.address_guards.enter(access::addresses(top), REMEDY);
    senders::read(&main, &hosts, plan, ledger);
    unserved(&main, &hosts, expansion.ledger);
    if plan.log.is_empty() {
        plan.log = logs::keys(top, expansion.ledger);
    }
    usual::drop_all(top, expansion.ledger);
    Ok(())
}

/// Drops directives about files if the front serves no directory to which they apply.
fn unserved(main: &[Directive], hosts: &[&Directive], ledger: &mut Ledger) {
    let inner = hosts.iter().flat_map(|it| it.inside());
    for directive in main.iter().chain(inner) {
        if matches!(
            directive.name.as_str(),
            "documentroot" | "directoryindex" | "fallbackresource"
        ) {
            let text = "no directory is served by it";
            ledger.dropped_if_open(directive.id, text);
        }
    }
}

/// Adds the virtual hosts of a server to the plan.
pub(super) struct Reader<'a, 'e> {
    pub(super) files: &'a mut Expansion<'e>,
    pub(super) plan: &'a mut Plan,
    pub(super) workers: Workers,
    pub(super) main: &'a [Directive],
    /// All virtual hosts, in the file's order.
    pub(super) hosts: &'a [&'a Directive],
    pub(super) sources: &'a Sources,
    /// Whether all virtual hosts have the same host name as their address; then they all listen on every address.
    pub(super) single_names: bool,
    /// For each name, the indices of the virtual hosts that have it.
    pub(super) named: HashMap<String, Vec<usize>>,
    /// For each virtual host, those of its names that no route can have.
    pub(super) unsaid: Vec<Vec<String>>,
}

impl Reader<'_, '_> {
    /// Adds a listener if the source names none, and httpd's default limit on bodies.
    fn settle_listeners(&mut self) {
        if self.plan.hosts.is_empty() && self.plan.listeners.is_empty() {
            self.plan.listener("[::]:80", 80);
            let text = "the source names no address: the front listens on [::]:80; choose another with --listen";
            self.files.ledger.say(Weight::Note, None, text);
        }
        let limits_bodies = |it: &Directive| it.name == "limitrequestbody";
        if !self.sources.httpd.is_empty() && !self.main.iter().any(limits_bodies) {
            let all = self.plan.listeners.iter_mut();
            all.for_each(|it| it.limit_bodies("1GiB"));
        }
    }

    /// Adds a virtual host to the plan; with `None`, the server itself.
    fn host(
        &mut self,
        host: Option<&Directive>,
        inner: &[Directive],
        inherited: &[Mount],
        wanted: &[String],
    ) -> Result<(), ImportError> {
        self.files.ledger.begin();
        let names = names(inner, self.files.ledger);
        let mut result = VirtualHost {
            place: host.map(|it| self.files.ledger.place(it.id).clone()),
            names: names.sayable,
            unsayable: names.unsayable,
            ..VirtualHost::default()
        };
        if !wanted.is_empty() && !result.names.iter().any(|it| wanted.contains(it)) {
            let directives = host.into_iter().chain(inner);
            drop_all(
                directives,
                "`--vhost` leaves its virtual host out",
                self.files.ledger,
            );
            self.files.ledger.end();
            return Ok(());
        }
        result.listeners = match host {
            Some(host) => {
                let reached = self.listeners_of(host);
                if reached.is_empty() {
                    let text = "other virtual hosts name its addresses themselves, and no request reaches it";
                    drop_all(std::iter::once(host), text, self.files.ledger);
                    return Ok(());
                }
                self.files.ledger.mapped(host.id);
                reached
            }
            None => self.free_listeners((0..self.plan.listeners.len()).collect()),
        };
        self.tls(inner, &result.listeners);
        result.default_on = self.free_listeners(result.listeners.clone());
        self.shadowed_names(&mut result);
        let is_shadowed = self.is_shadowed(&result);
        result.rules = self.rules(host.is_some(), inner, inherited, &result.listeners)?;
        let unsaid = match host {
            Some(host) if self.shares_address(host, &result.listeners) => {
                Some("the front cannot tell its address from other addresses with the same port")
            }
            Some(_) if is_shadowed => Some(
                "an earlier virtual host has a name that no route can have, and may answer for its names",
            ),
            _ => None,
        };
        if let Some((host, text)) = host.zip(unsaid) {
            self.files.ledger.unmapped(host.id, text);
            self.files.ledger.address_guards.void_all();
            let rules = result.rules.iter_mut();
            rules.for_each(|it| it.settings.access = Access::Unsaid);
        }
        let at = self.plan.hosts.len();
        for name in &result.names {
            self.named.entry(name.clone()).or_default().push(at);
        }
        self.unsaid.push(names.others);
        self.plan.hosts.push(result);
        self.files.ledger.end();
        Ok(())
    }

    /// The listeners of these that have no virtual host yet.
    fn free_listeners(&self, listeners: Vec<usize>) -> Vec<usize> {
        let mut left = listeners;
        let hosts = &self.plan.hosts;
        left.retain(|it| !hosts.iter().any(|host| host.listeners.contains(it)));
        left
    }

    /// The rules of a host, in the order in which httpd's modules decide.
    fn rules(
        &mut self,
        is_host: bool,
        inner: &[Directive],
        inherited: &[Mount],
        listeners: &[usize],
    ) -> Result<Vec<Rule>, ImportError> {
        let main = if is_host { self.main } else { &[] };
        let mut jk = jk_mounts(inner, None, self.files.ledger);
        if is_host {
            jk.extend(jk_files(
                inner,
                self.sources,
                self.files,
                &mut self.workers,
            )?);
        }
        let listening = listeners.iter().map(|&it| &self.plan.listeners[it]);
        let ports: Vec<Port> = listening.map(|it| (it.port, it.tls.is_some())).collect();
        let ledger = &mut *self.files.ledger;
        let site = Site {
            main,
            inner,
            files: self.files.files,
        };
        let verification = proxy::verification(site, ledger);
        let mut balancers = Balancers::new(preserve_host(inner, main, ledger), verification);
        balancers.add(main, ledger);
        balancers.add(inner, ledger);
        let clients = Clients {
            ports: &ports,
            is_canonical: is_canonical(inner, self.main),
        };
        let mut targets = ProxyTargets {
            balancers: &balancers,
            plan: self.plan,
        };
        let mut rewrites = rewrites(site, clients, &mut targets, ledger);
        let mut passed = variables::declining(site, "no-proxy", ledger);
        passed.extend(proxied(inner, main, &balancers, self.plan, ledger));
        turn_back(&mut passed, self.plan);
        tunnel::open_tunnels(&rewrites, &mut passed, self.plan, ledger);
        let replaced = pages::replaced(site, ledger);
        let own = rewrites.iter_mut().filter_map(Rewrite::rule_mut);
        pages::replace(replaced.as_deref(), passed.iter_mut().chain(own));
        let mut others = redirect::redirects(inner, ledger);
        others.extend(redirect::redirects(main, ledger));
        let root = site.root(ledger);
        let mut served = Vec::new();
        for directives in [inner, main] {
            let (rules, directories) = redirect::aliases(directives, site, ledger);
            others.extend(rules);
            served.extend(directories);
        }
        jk.extend(inherited.iter().cloned());
        others.extend(variables::declining(site, "no-jk", ledger));
        others.extend(mounts::rules(&jk, &mut self.workers, self.plan, ledger));
        others.push(Rule::new(None, Matcher::everything(), Action::Files));
        let mut rules = in_order(rewrites, passed, others);
        join_prefixes(&mut rules, ledger);
        if let Some(root) = root {
            root.fill(&mut rules);
            served.push((String::new(), root));
        }
        let has_tls = inner
            .iter()
            .any(|it| it.name == "sslengine" && it.word(0).eq_ignore_ascii_case("on"));
        for directives in [main, inner] {
            apply_to_all(directives, has_tls, &mut rules, self.files);
        }
        let compression = compress::of_httpd(main.iter().chain(inner), self.files.ledger);
        for rule in rules.iter_mut().filter(|_| !compression.is_empty()) {
            rule.settings.keys.extend(compression.clone());
        }
        self.sections(site, &served, &mut rules);
        pages::give(site, &mut rules, self.files.ledger);
        Ok(rules)
    }

    /// Applies sections to the rules, and then any directives that may guard the whole server.
    fn sections(
        &mut self,
        site: Site<'_>,
        served: &[(String, ServedDirectory)],
        rules: &mut Vec<Rule>,
    ) {
        for (path, directory) in served {
            directory.lay(path, rules);
        }
        // `<Proxy>` sections are applied before `<Location>`, in whatever order they are in the file.
        proxies(site.all(), rules, self.files.ledger);
        for section in site.all() {
            overlay(section, rules, self.plan, self.files.ledger);
        }
        call_by_host(rules, self.plan);
        settle(rules, self.files.ledger);
        self.admit(site, rules);
        slashes::guard(site, rules, self.files.ledger);
    }

    /// Judges the directives outside of sections, and admits the rules of the server, or closes them.
    fn admit(&mut self, site: Site<'_>, rules: &mut [Rule]) {
        let plain = || site.all().filter(|it| it.inner.is_none());
        let has_tls = site
            .find("sslengine")
            .is_some_and(|it| it.word(0).eq_ignore_ascii_case("on"));
        for directive in plain() {
            self.handle_whole(directive, has_tls);
        }
        let uses = rules.iter().map(|it| it.action.place_use());
        let place_use = uses.fold(PlaceUse::default(), PlaceUse::or);
        let judged = place_use.judge(plain(), self.files.ledger);
        if judged.closes() {
            self.files.ledger.address_guards.void_all();
        }
        rules.iter_mut().for_each(|it| it.admit(judged));
    }

    /// Marks a directive that is decided for the whole server: authentication, which only applies where a section
    /// requires it; addresses and their TLS, where the front is stricter than a setting that is not converted;
    /// without TLS, everything about TLS; and which proxies are trusted, which [`senders::read`] decides for all
    /// servers.
    fn handle_whole(&mut self, directive: &Directive, has_tls: bool) {
        let name = directive.name.as_str();
        let ledger = &mut *self.files.ledger;
        skip_template(directive, ledger);
        let nature = foreign_answer("httpd", name).and_then(|it| it.nature);
        let is_own = nature == Some(Nature::Transport) && !name.contains("proxy");
        let is_idle = !has_tls && name.starts_with("ssl") && !name.starts_with("sslproxy");
        if is_idle && nature == Some(Nature::Transport) {
            ledger.dropped_if_open(directive.id, "SSLEngine is not on here");
        }
        if is_own || is_idle || senders::is_one(name) {
            ledger.handle(directive.id);
        }
        if access::is_sign_on(name) {
            let text = "clients sign on by this module, and the front has no sign-on";
            ledger.kept_or_risk(directive.id, text);
        }
    }

    /// Drops the server's own names if every address has a virtual host, so that no request reaches the server itself.
    fn unreached_main(&mut self) {
        for directive in self
            .main
            .iter()
            .filter(|it| matches!(it.name.as_str(), "servername" | "serveralias"))
        {
            self.files.ledger.dropped(
                directive.id,
                "each address has a virtual host, whose names count",
            );
        }
    }
}

/// The rules of mod_proxy, from the virtual host and from the server.
fn proxied(
    inner: &[Directive],
    main: &[Directive],
    balancers: &Balancers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Vec<Rule> {
    // The rules of sections go before the others: those of the virtual host's sections after those of the server's,
    // and the last section first. Of the rules outside of sections, the server's go first.
    let (mut proxied, own) = passes(inner, balancers, plan, ledger);
    let (located, servers) = passes(main, balancers, plan, ledger);
    proxied.extend(located);
    let mut said = [inner, main].into_iter().flatten();
    let inherits = said
        .find(|it| it.name == "proxypassinherit")
        .is_none_or(|it| !it.word(0).eq_ignore_ascii_case("off"));
    if inherits {
        proxied.extend(servers);
    }
    proxied.extend(own);
    proxied
}

/// The rules of `ProxyPass`: first those in `<Location>` sections, the last section first; then those outside.
fn passes(
    directives: &[Directive],
    balancers: &Balancers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> (Vec<Rule>, Vec<Rule>) {
    let mut rules = Vec::new();
    let mut located: Vec<Vec<Rule>> = Vec::new();
    for directive in directives {
        match directive.name.as_str() {
            "proxypass" | "proxypassmatch" => {
                rules.extend(proxy::pass(directive, None, balancers, plan, ledger));
            }
            "location" | "locationmatch" => {
                let is_match = directive.name == "locationmatch" || directive.word(0) == "~";
                let path = directive.words.last().map_or("", String::as_str);
                let inner = directive.inside().iter();
                for pass in
                    inner.filter(|it| matches!(it.name.as_str(), "proxypass" | "proxypassmatch"))
                {
                    if proxy::has_wildcards(path) {
                        let as_match = Directive {
                            name: "proxypassmatch".to_owned(),
                            ..pass.clone()
                        };
                        located.push(if is_match {
                            proxy::pass(&as_match, Some(path), balancers, plan, ledger)
                        } else {
                            vec![proxy::unsaid(pass, path, ledger)]
                        });
                        continue;
                    }
                    let is_plain = path.starts_with('/') && !path.contains(EXPRESSION);
                    if is_match && pass.name == "proxypass" && !is_plain {
                        let text = "ProxyPass takes the expression of its section for a path, which no request has: \
                                    ProxyPassMatch was meant";
                        ledger.dropped(pass.id, text);
                        continue;
                    }
                    located.push(proxy::pass(pass, Some(path), balancers, plan, ledger));
                }
            }
            _ => {}
        }
    }
    (located.into_iter().rev().flatten().collect(), rules)
}

/// Whether backends get the client's `Host` (`ProxyPreserveHost`). Marks that directive and the `ProxyPassReverse` kind
/// as converted.
fn preserve_host(inner: &[Directive], main: &[Directive], ledger: &mut Ledger) -> bool {
    let all = || inner.iter().chain(main);
    let said: Vec<&Directive> = all().filter(|it| it.name == "proxypreservehost").collect();
    said.iter().for_each(|it| ledger.mapped(it.id));
    let sections = all().flat_map(|it| it.inside());
    for it in all().chain(sections) {
        let reverses = matches!(
            it.name.as_str(),
            "proxypassreverse" | "proxypassreversecookiepath" | "proxypassreversecookiedomain"
        );
        if reverses {
            ledger.mapped(it.id);
        }
    }
    said.first()
        .is_some_and(|it| it.word(0).eq_ignore_ascii_case("on"))
}

/// Adds a rewrite to rules whose upstream gets its own `Host`, so that the front corrects the redirects of an
/// application that uses this name. The rewrite may replace a path by itself.
fn turn_back(rules: &mut [Rule], plan: &Plan) {
    for rule in rules {
        let Action::Forward { upstream, rewrite } = &mut rule.action else {
            continue;
        };
        if let Matcher::Prefix(path) = &rule.matcher
            && plan.upstreams[*upstream].keys.contains_key("host")
            && rewrite.is_none()
        {
            *rewrite = Some(match path.as_str() {
                "" => "/".to_owned(),
                path => path.to_owned(),
            });
        }
    }
}

/// The rules of all modules, in the order in which httpd asks them.
fn in_order(rewrites: Vec<Rewrite>, proxied: Vec<Rule>, others: Vec<Rule>) -> Vec<Rule> {
    let mut rest: Vec<Rule> = Vec::new();
    rest.extend(proxied.into_iter().flat_map(|it| declined(it, &others)));
    rest.extend(others);
    let mut rules = rest.clone();
    for rewrite in rewrites.into_iter().rev() {
        match rewrite {
            Rewrite::Rule(rule) => rules.insert(0, rule),
            Rewrite::Pass(rule) => drop(rules.splice(0..0, left(&rule, &rest))),
            Rewrite::Methods(guard) => guard_all(&mut rules, &[guard]),
            Rewrite::Tunnel(_) => {}
        }
    }
    rules
}

/// Whether `SERVER_NAME` does not depend on the host that clients ask for (`UseCanonicalName`). It is taken for the
/// configured name then, also with `DNS`, where httpd looks up the name of its address.
fn is_canonical(inner: &[Directive], main: &[Directive]) -> bool {
    let last = |block: &[Directive]| {
        let mut all = block.iter().filter(|it| it.name == "usecanonicalname");
        all.next_back().map(|it| it.word(0).to_ascii_lowercase())
    };
    let said = last(inner).or_else(|| last(main));
    said.is_some_and(|it| it != "off")
}

/// The rules of mod_rewrite of a virtual host, with those that it inherits from the server.
fn rewrites(
    site: Site<'_>,
    clients: Clients<'_>,
    targets: &mut ProxyTargets<'_>,
    ledger: &mut Ledger,
) -> Vec<Rewrite> {
    let (inner, main) = (site.inner, site.main);
    // The last `RewriteEngine` applies, wherever the rules are.
    let switch = site.find("rewriteengine");
    let is_on = switch.is_some_and(|it| it.word(0).eq_ignore_ascii_case("on"));
    let inherited = rewrites_inherited(inner, main, ledger);
    if inherited.is_none() {
        let theirs = main.iter().filter(|it| it.name.starts_with("rewrite"));
        theirs.for_each(|it| ledger.handle(it.id));
    }
    let (first, second) = match inherited {
        Some(true) => (main, inner),
        Some(false) => (inner, main),
        None => (inner, &[][..]),
    };
    redirect::rewrites(first.iter().chain(second), is_on, clients, targets, ledger)
}

/// Whether a virtual host inherits the server's mod_rewrite rules: `Some(true)`: before its own; `Some(false)`: after
/// them; `None`: not at all. If it has no `RewriteOptions`, the server's apply.
fn rewrites_inherited(
    inner: &[Directive],
    main: &[Directive],
    ledger: &mut Ledger,
) -> Option<bool> {
    let mut options = |block: &[Directive]| -> Option<Vec<String>> {
        let options = block.iter().filter(|it| it.name == "rewriteoptions");
        let all = options.inspect(|it| ledger.mapped(it.id));
        let words = all
            .flat_map(|it| &it.words)
            .map(|it| it.to_ascii_lowercase());
        Some(words.collect()).filter(|it: &Vec<String>| !it.is_empty())
    };
    let base = options(main).unwrap_or_default();
    let own = options(inner).unwrap_or_else(|| base.clone());
    let has = |all: &[String], word: &str| all.iter().any(|it| it == word);
    let comes_down = |word: &str| has(&base, word) && !has(&own, "ignoreinherit");
    match () {
        () if has(&own, "inherit") || comes_down("inheritdown") => Some(false),
        () if has(&own, "inheritbefore") || comes_down("inheritdownbefore") => Some(true),
        () => None,
    }
}

/// The rules of other modules for the paths of a `RewriteRule` that does nothing (`-`), for its scheme.
fn left(pass: &Rule, others: &[Rule]) -> Vec<Rule> {
    let fits =
        |it: &&Rule| it.scheme.is_none() || pass.scheme.is_none() || it.scheme == pass.scheme;
    let fitting = others.iter().filter(fits).map(|it| Rule {
        scheme: it.scheme.or(pass.scheme),
        ..it.clone()
    });
    let others: Vec<Rule> = fitting.collect();
    declined(pass.clone(), &others)
}

/// For a rule that declines its paths (`ProxyPass … !`), the other modules' rules for them. Any other rule is returned
/// as it is.
fn declined(rule: Rule, others: &[Rule]) -> Vec<Rule> {
    if rule.action != Action::Files {
        return vec![rule];
    }
    let narrowed = |other: &Rule| match other.matcher.common(&rule.matcher) {
        Common::Nothing => None,
        Common::Set(set) => Some(other.narrowed(set)),
        Common::Unsaid => Some(Rule {
            action: Action::Closed,
            ..rule.clone()
        }),
    };
    others.iter().filter_map(narrowed).collect()
}

/// Applies the settings of a whole host to all of its rules.
fn apply_to_all(
    directives: &[Directive],
    has_tls: bool,
    rules: &mut [Rule],
    files: &mut Expansion<'_>,
) {
    let settings = fields::settings(directives, Some(has_tls), files.ledger).into();
    rules.iter_mut().for_each(|it| it.settings.merge(&settings));
    for directive in directives {
        let name = directive.name.as_str();
        if name == "proxytimeout" {
            apply_timeout(directive, rules);
            files.ledger.mapped(directive.id);
        } else if let Some(reason) = NEEDLESS.get(name) {
            files.ledger.needless(directive.id, reason);
        }
    }
}

/// `ProxyTimeout`, for rules that have no times of their own.
fn apply_timeout(directive: &Directive, rules: &mut [Rule]) {
    let Some(time) = number(directive.word(0)).and_then(|it| duration(it, 1000)) else {
        return;
    };
    for rule in rules {
        for key in ["first_byte_timeout", "idle_body_timeout"] {
            let entry = rule.settings.keys.entry(key.to_owned());
            entry.or_insert_with(|| time.clone());
        }
    }
}

/// The httpd directives by which the old server learns clients' addresses behind the front.
const REMEDY: &str = "`RemoteIPHeader X-Forwarded-For` and `RemoteIPInternalProxy 127.0.0.1`";

/// The reason why a directive needs no counterpart, by the directive's name in lower case.
static NEEDLESS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let names = |(names, reason): &(&'static str, &'static str)| {
        let reason = *reason;
        names.split(' ').map(move |it| (it, reason))
    };
    DROPPED.iter().flat_map(names).collect()
});

/// Directives that need no counterpart: their names, separated by blanks, with the reason.
const DROPPED: &[(&str, &str)] = &[
    (
        "errorlog loglevel customlog logformat transferlog scriptlog jklogfile jkloglevel jklogstampformat jkrequestlogformat rewritelog rewriteloglevel globallog proxystatus",
        "the front has logs of its own: [log], and standard error",
    ),
    (
        "loadmodule serveradmin serversignature servertokens user group pidfile mutex startservers minspareservers maxspareservers minsparethreads maxsparethreads threadsperchild serverlimit threadlimit maxrequestworkers maxclients maxconnectionsperchild maxrequestsperchild hostnamelookups usecanonicalname usecanonicalphysicalport extendedstatus traceenable namevirtualhost accessfilename addtype adddefaultcharset defaulttype typesconfig mimemagicfile indexoptions addicon addiconbytype addiconbyencoding defaulticon readmename headername indexignore addlanguage languagepriority forcelanguagepriority enablesendfile enablemmap proxyrequests proxyvia proxybadheader filteredetag fileetag keepalive maxkeepalivereequests maxkeepaliverequests keepalivetimeout timeout browsermatch allowoverride options contentdigest proxyiobuffersize documentindex serverpath sslrandomseed sslpassphrasedialog sslsessioncachetimeout sslcryptodevice sslusestapling sslstaplingcache ssloptions jkextractssl listenbacklog defaultruntimedir",
        "the front needs no such setting",
    ),
    (
        "addcharset",
        "files of all names have the `charset` of their route; write `types` of the route for names that need another",
    ),
];

/// Characters that make a word an expression and no path.
const EXPRESSION: [char; 9] = ['^', '$', '*', '?', '(', '[', '{', '|', '\\'];
