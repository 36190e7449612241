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
    access, certificate_user, fields, logs, pages, redirect, senders, sign_on, slashes, tunnel,
    usual, variables, verification,
};
use crate::judge::PlaceUse;
use crate::ledger::{Ledger, LedgerKeeper, Weight};
use crate::matcher::{Common, Matcher};
use crate::methods::guard_all;
use crate::mod_jk::mounts::{self, Mount, join_prefixes};
use crate::mod_jk::workers::{Workers, duration, number};
use crate::plan::{Access, Action, Plan, Rule, VirtualHost};
use crate::sources::Sources;

/// Converts the directives of a server into the plan: first its virtual hosts, each with what it inherits from the
/// server, then the server itself, if a listener has no virtual host. `vhosts` are the names to convert; empty: all.
///
/// # Errors
/// A file of mod_jk that a directive names cannot be read.
pub(crate) fn convert(
    top: &[Directive],
    sources: &Sources,
    expansion: &mut Expansion<'_>,
    plan: &mut Plan,
    vhosts: &[String],
) -> Result<(), ImportError> {
    let is_host = |it: &&Directive| it.name == "virtualhost";
    let hosts: Vec<&Directive> = top.iter().filter(is_host).collect();
    let main: Vec<Directive> = top.iter().filter(|it| !is_host(it)).cloned().collect();
    let mut workers = Workers::default();
    let mut server_mounts = read_given_jk_files(sources, expansion, &mut workers);
    server_mounts.extend(jk_files(&main, sources, expansion, &mut workers)?);
    server_mounts.extend(jk_mounts(&main, None, expansion.ledger));
    worker_mounts(&mut workers, &mut server_mounts);
    let copies_mounts = |directives: &[Directive], to: &str| {
        let mut copies = directives.iter().filter(|it| it.name == "jkmountcopy");
        copies.any(|it| it.word(0).eq_ignore_ascii_case(to))
    };
    let copies_to_all = copies_mounts(&main, "all");
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
    let mut are_mounts_copied = false;
    for &host in &hosts {
        let inner = host.inside();
        let copies = copies_to_all || copies_mounts(inner, "on");
        let inherited = if copies { &server_mounts[..] } else { &[] };
        are_mounts_copied |= copies;
        reader.add_host(Some(host), inner, inherited, vhosts)?;
    }
    reader.settle_listeners();
    if reader.free_listeners().is_empty() {
        drop_dead_mounts(&server_mounts, are_mounts_copied, reader.files.ledger);
        reader.unreached_main();
    } else {
        reader.add_host(None, &main, &server_mounts, &[])?;
    }
    reader.workers.finish(reader.files.ledger);
    let ledger = &mut *expansion.ledger;
    ledger.address_guards.enter(access::addresses(top), REMEDY);
    senders::read(&main, &hosts, plan, ledger);
    drop_unused_of_files(&main, &hosts, ledger);
    sign_on::finish(top, ledger);
    if plan.log.is_empty() {
        plan.log = logs::keys(top, ledger);
    }
    usual::drop_all(top, ledger);
    Ok(())
}

/// Drops directives about files that no reader handled: the front serves no directory to which they apply.
fn drop_unused_of_files(main: &[Directive], hosts: &[&Directive], ledger: &mut Ledger) {
    let of_hosts = hosts.iter().flat_map(|host| host.inside());
    for directive in main.iter().chain(of_hosts) {
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

impl LedgerKeeper for Reader<'_, '_> {
    fn ledger(&mut self) -> &mut Ledger {
        self.files.ledger
    }
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
            for listener in &mut self.plan.listeners {
                listener.limit_bodies("1GiB");
            }
        }
    }

    /// Adds a virtual host to the plan; with `None`, the server itself. A host without one of the `wanted` names is
    /// dropped if there are any, and so is one that no listener asks.
    fn add_host(
        &mut self,
        host: Option<&Directive>,
        inner: &[Directive],
        inherited: &[Mount],
        wanted: &[String],
    ) -> Result<(), ImportError> {
        self.in_place(|reader| reader.read_host(host, inner, inherited, wanted))
    }

    /// Reads the virtual host of [`Self::add_host`], as a place of its own.
    fn read_host(
        &mut self,
        host: Option<&Directive>,
        inner: &[Directive],
        inherited: &[Mount],
        wanted: &[String],
    ) -> Result<(), ImportError> {
        let names = names(inner, self.files.ledger);
        let mut result = VirtualHost {
            place: host.map(|it| self.files.ledger.place(it.id).clone()),
            names: names.sayable,
            unsayable: names.unsayable,
            ..VirtualHost::default()
        };
        if !wanted.is_empty() && !result.names.iter().any(|name| wanted.contains(name)) {
            let directives = host.into_iter().chain(inner);
            let text = "`--vhost` leaves its virtual host out";
            drop_all(directives, text, self.files.ledger);
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
            None => self.free_listeners(),
        };
        self.tls(inner, &result.listeners);
        // The first virtual host of a listener serves the hosts that no other one names.
        result.default_on = self.free_listeners();
        result.default_on.retain(|it| result.listeners.contains(it));
        self.shadowed_names(&mut result);
        let is_shadowed = self.is_shadowed(&result);
        result.rules = self.rules(host.is_some(), inner, inherited, &result.listeners)?;
        if let Some(host) = host {
            self.close_indistinguishable(host, is_shadowed, &mut result);
        }
        let index = self.plan.hosts.len();
        for name in &result.names {
            self.named.entry(name.clone()).or_default().push(index);
        }
        self.unsaid.push(names.others);
        self.plan.hosts.push(result);
        Ok(())
    }

    /// Closes all rules of a virtual host if the front cannot tell its requests from those of another one: by its
    /// address, or by its names (`is_shadowed`).
    fn close_indistinguishable(
        &mut self,
        host: &Directive,
        is_shadowed: bool,
        result: &mut VirtualHost,
    ) {
        let text = if self.shares_address(host, &result.listeners) {
            "the front cannot tell its address from other addresses with the same port"
        } else if is_shadowed {
            "an earlier virtual host has a name that no route can have, and may answer for its names"
        } else {
            return;
        };
        self.files.ledger.unmapped(host.id, text);
        self.files.ledger.address_guards.void_all();
        for rule in &mut result.rules {
            rule.settings.access = Access::Unsaid;
        }
    }

    /// The listeners that have no virtual host yet.
    fn free_listeners(&self) -> Vec<usize> {
        let is_taken = |index: &usize| {
            let mut hosts = self.plan.hosts.iter();
            hosts.any(|host| host.listeners.contains(index))
        };
        let all = 0..self.plan.listeners.len();
        all.filter(|index| !is_taken(index)).collect()
    }

    /// The rules of a host, in the order in which httpd's modules decide, with what its sections change. `is_host` is
    /// false for the server itself; `inherited` are the server's mounts that the host copies.
    fn rules(
        &mut self,
        is_host: bool,
        inner: &[Directive],
        inherited: &[Mount],
        listeners: &[usize],
    ) -> Result<Vec<Rule>, ImportError> {
        // For the server itself, `inner` is what it has outside of virtual hosts.
        let main = if is_host { self.main } else { &[] };
        let mut own_mounts = jk_mounts(inner, None, self.files.ledger);
        if is_host {
            let of_files = jk_files(inner, self.sources, self.files, &mut self.workers)?;
            own_mounts.extend(of_files);
        }
        let listening = listeners.iter().map(|&it| &self.plan.listeners[it]);
        let ports: Vec<Port> = listening.map(|it| (it.port, it.tls.is_some())).collect();
        let ledger = &mut *self.files.ledger;
        let site = Site {
            main,
            inner,
            files: self.files.files,
        };
        let verification = verification::keys(site, ledger);
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
        let mut proxied_rules = variables::declining(site, "no-proxy", ledger);
        proxied_rules.extend(proxied(inner, main, &balancers, self.plan, ledger));
        add_equal_rewrites(&mut proxied_rules, self.plan);
        tunnel::open_tunnels(&rewrites, &mut proxied_rules, self.plan, ledger);
        let replaced = pages::replaced(site, ledger);
        let rewritten_rules = rewrites.iter_mut().filter_map(Rewrite::rule_mut);
        let forwarded_rules = proxied_rules.iter_mut().chain(rewritten_rules);
        pages::replace(replaced.as_deref(), forwarded_rules);
        // mod_alias: redirects before aliases; then mod_jk, and at last the files.
        let mut other_rules = redirect::redirects(inner, ledger);
        other_rules.extend(redirect::redirects(main, ledger));
        let root = site.root(ledger);
        let mut served = Vec::new();
        for directives in [inner, main] {
            let (alias_rules, directories) = redirect::aliases(directives, site, ledger);
            other_rules.extend(alias_rules);
            served.extend(directories);
        }
        own_mounts.extend(inherited.iter().cloned());
        other_rules.extend(variables::declining(site, "no-jk", ledger));
        let workers = &mut self.workers;
        other_rules.extend(mounts::rules(&own_mounts, workers, self.plan, ledger));
        other_rules.push(Rule::new(None, Matcher::everything(), Action::Files));
        let mut rules = in_order(rewrites, proxied_rules, other_rules);
        join_prefixes(&mut rules, ledger);
        if let Some(root) = root {
            root.fill(&mut rules);
            served.push((String::new(), root));
        }
        self.settings_of_all(site, &mut rules);
        self.sections(site, &served, &mut rules);
        pages::give(site, &mut rules, self.files.ledger);
        Ok(rules)
    }

    /// Applies what is set outside of sections to all rules: header fields, limits, times and compression.
    fn settings_of_all(&mut self, site: Site<'_>, rules: &mut [Rule]) {
        let has_tls = site.inner.iter().any(switches_tls_on);
        for directives in [site.main, site.inner] {
            apply_to_all(directives, has_tls, rules, self.files);
        }
        let compression = compress::of_httpd(site.all(), self.files.ledger);
        // Settings that rules share are copied only if they change.
        if compression.is_empty() {
            return;
        }
        for rule in rules {
            rule.settings.keys.extend(compression.clone());
        }
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
        certificate_user::tell(site, rules, self.plan, self.files.ledger);
        settle(rules, site, self.plan, self.files.ledger);
        self.admit(site, rules);
        slashes::guard(site, rules, self.files.ledger);
    }

    /// Judges the directives outside of sections, and admits the rules of the server, or closes them.
    fn admit(&mut self, site: Site<'_>, rules: &mut [Rule]) {
        let outside_sections = || site.all().filter(|it| it.inner.is_none());
        let has_tls = site.find("sslengine").is_some_and(switches_tls_on);
        for directive in outside_sections() {
            self.handle_whole(directive, has_tls);
        }
        let mut place_use = PlaceUse::default();
        for rule in rules.iter() {
            place_use = place_use.or(rule.action.place_use());
        }
        let judged = place_use.judge(outside_sections(), self.files.ledger);
        if judged.closes() {
            self.files.ledger.address_guards.void_all();
        }
        for rule in rules {
            rule.admit(judged);
        }
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
        let is_transport = nature == Some(Nature::Transport);
        let is_of_listeners = is_transport && !name.contains("proxy");
        let is_without_effect =
            !has_tls && name.starts_with("ssl") && !name.starts_with("sslproxy");
        if is_without_effect && is_transport {
            ledger.dropped_if_open(directive.id, "SSLEngine is not on here");
        }
        if is_of_listeners || is_without_effect || senders::is_one(name) {
            ledger.handle(directive.id);
        }
        if access::is_sign_on(name) {
            let text = "clients sign on by this module, which was not converted";
            ledger.kept_or_risk(directive.id, text);
        }
    }

    /// Drops the server's own names if every address has a virtual host, so that no request reaches the server itself.
    fn unreached_main(&mut self) {
        for directive in self.main {
            if matches!(directive.name.as_str(), "servername" | "serveralias") {
                let text = "each address has a virtual host, whose names count";
                self.files.ledger.dropped(directive.id, text);
            }
        }
    }
}

fn switches_tls_on(directive: &Directive) -> bool {
    directive.name == "sslengine" && directive.word(0).eq_ignore_ascii_case("on")
}

/// The rules of mod_proxy, from the virtual host and from the server.
fn proxied(
    inner: &[Directive],
    main: &[Directive],
    balancers: &Balancers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Vec<Rule> {
    let own = passes(inner, balancers, plan, ledger);
    let of_server = passes(main, balancers, plan, ledger);
    let mut directives = inner.iter().chain(main);
    let inherits = match directives.find(|it| it.name == "proxypassinherit") {
        Some(directive) => !directive.word(0).eq_ignore_ascii_case("off"),
        None => true,
    };
    // As in httpd, the last section decides, and those of the virtual host come after those of the server. Of the rules
    // outside of sections, the server's come first.
    let mut rules = own.in_sections;
    rules.extend(of_server.in_sections);
    if inherits {
        rules.extend(of_server.outside);
    }
    rules.extend(own.outside);
    rules
}

/// The rules of `ProxyPass` directives.
struct ProxyPasses {
    /// The rules in `<Location>` sections, those of the last section first.
    in_sections: Vec<Rule>,
    outside: Vec<Rule>,
}

/// The rules of the `ProxyPass` directives of the server or of a virtual host, outside of sections and in `<Location>`.
fn passes(
    directives: &[Directive],
    balancers: &Balancers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> ProxyPasses {
    let is_pass = |it: &&Directive| matches!(it.name.as_str(), "proxypass" | "proxypassmatch");
    let mut outside = Vec::new();
    let mut by_section: Vec<Vec<Rule>> = Vec::new();
    for directive in directives {
        if is_pass(&directive) {
            outside.extend(proxy::pass(directive, None, balancers, plan, ledger));
        }
        if matches!(directive.name.as_str(), "location" | "locationmatch") {
            for pass in directive.inside().iter().filter(is_pass) {
                by_section.push(pass_in_section(pass, directive, balancers, plan, ledger));
            }
        }
    }
    ProxyPasses {
        in_sections: by_section.into_iter().rev().flatten().collect(),
        outside,
    }
}

/// The rules of a `ProxyPass` in a `<Location>` section, whose path it takes.
fn pass_in_section(
    pass: &Directive,
    section: &Directive,
    balancers: &Balancers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Vec<Rule> {
    let has_expression = section.name == "locationmatch" || section.word(0) == "~";
    let path = section.words.last().map_or("", String::as_str);
    if proxy::has_wildcards(path) {
        if !has_expression {
            return vec![proxy::unsaid(pass, path, ledger)];
        }
        // httpd then takes `ProxyPass` for `ProxyPassMatch`.
        let as_match = Directive {
            name: "proxypassmatch".to_owned(),
            ..pass.clone()
        };
        return proxy::pass(&as_match, Some(path), balancers, plan, ledger);
    }
    let is_plain = path.starts_with('/') && !path.contains(EXPRESSION);
    if has_expression && pass.name == "proxypass" && !is_plain {
        let text = "ProxyPass takes the expression of its section for a path, which no request has: ProxyPassMatch \
                    was meant";
        ledger.dropped(pass.id, text);
        return Vec::new();
    }
    proxy::pass(pass, Some(path), balancers, plan, ledger)
}

/// Whether backends get the client's `Host` (`ProxyPreserveHost`). Marks that directive and `ProxyPassReverse` as
/// converted.
fn preserve_host(inner: &[Directive], main: &[Directive], ledger: &mut Ledger) -> bool {
    let all = || inner.iter().chain(main);
    let preserving: Vec<&Directive> = all().filter(|it| it.name == "proxypreservehost").collect();
    preserving.iter().for_each(|it| ledger.mapped(it.id));
    let in_sections = all().flat_map(|section| section.inside());
    for directive in all().chain(in_sections) {
        if directive.name == "proxypassreverse" {
            ledger.mapped(directive.id);
        }
    }
    let first = preserving.first();
    first.is_some_and(|it| it.word(0).eq_ignore_ascii_case("on"))
}

/// Adds a rewrite to rules whose upstream gets its own `Host`, so that the front corrects the redirects of an
/// application that uses this name. The rewrite replaces the path by itself.
fn add_equal_rewrites(rules: &mut [Rule], plan: &Plan) {
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
    let mut without_rewrites: Vec<Rule> = Vec::new();
    for rule in proxied {
        without_rewrites.extend(declined(rule, &others));
    }
    without_rewrites.extend(others);
    // `Pass` needs the rules that no rewrite is among: after it, httpd asks no further `RewriteRule`.
    let mut rules = without_rewrites.clone();
    // Each is put before all that come after it, so the last is put first.
    for rewrite in rewrites.into_iter().rev() {
        match rewrite {
            Rewrite::Rule(rule) => rules.insert(0, rule),
            Rewrite::Pass(rule) => {
                let skipping = rules_behind(&rule, &without_rewrites);
                rules.splice(0..0, skipping);
            }
            Rewrite::Methods(guard) => guard_all(&mut rules, &[guard]),
            // Its effect is already in the rules of mod_proxy.
            Rewrite::Tunnel(_) => {}
        }
    }
    rules
}

/// Whether `SERVER_NAME` does not depend on the host that clients ask for (`UseCanonicalName`). It is taken for the
/// configured name then, also with `DNS`, where httpd looks up the name of its address.
fn is_canonical(inner: &[Directive], main: &[Directive]) -> bool {
    let last = |directives: &[Directive]| {
        let mut from_last = directives.iter().rev();
        let found = from_last.find(|it| it.name == "usecanonicalname")?;
        Some(found.word(0).to_ascii_lowercase())
    };
    let value = last(inner).or_else(|| last(main));
    value.is_some_and(|value| value != "off")
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
    let (first, second) = match inherited_rewrites(inner, main, ledger) {
        InheritedRewrites::Before => (main, inner),
        InheritedRewrites::After => (inner, main),
        InheritedRewrites::Nothing => {
            let of_server = main.iter().filter(|it| it.name.starts_with("rewrite"));
            of_server.for_each(|it| ledger.handle(it.id));
            (inner, &[][..])
        }
    };
    redirect::rewrites(first.iter().chain(second), is_on, clients, targets, ledger)
}

/// Where the server's mod_rewrite rules are among those of a virtual host.
enum InheritedRewrites {
    Before,
    After,
    /// The virtual host does not inherit them.
    Nothing,
}

/// Whether a virtual host inherits the server's mod_rewrite rules. If it has no `RewriteOptions`, the server's apply.
fn inherited_rewrites(
    inner: &[Directive],
    main: &[Directive],
    ledger: &mut Ledger,
) -> InheritedRewrites {
    let mut options = |directives: &[Directive]| -> Vec<String> {
        let mut words = Vec::new();
        for directive in directives.iter().filter(|it| it.name == "rewriteoptions") {
            ledger.mapped(directive.id);
            words.extend(directive.words.iter().map(|it| it.to_ascii_lowercase()));
        }
        words
    };
    let of_server = options(main);
    let mut own = options(inner);
    if own.is_empty() {
        own.clone_from(&of_server);
    }
    let has = |words: &[String], word: &str| words.iter().any(|it| it == word);
    let takes_down = |word: &str| has(&of_server, word) && !has(&own, "ignoreinherit");
    if has(&own, "inherit") || takes_down("inheritdown") {
        InheritedRewrites::After
    } else if has(&own, "inheritbefore") || takes_down("inheritdownbefore") {
        InheritedRewrites::Before
    } else {
        InheritedRewrites::Nothing
    }
}

/// The rules of other modules for the paths of a `RewriteRule` that does nothing (`-`), for its scheme.
fn rules_behind(pass: &Rule, others: &[Rule]) -> Vec<Rule> {
    let mut of_scheme = others.to_vec();
    if pass.scheme.is_some() {
        of_scheme.retain(|rule| rule.scheme.is_none() || rule.scheme == pass.scheme);
        of_scheme.iter_mut().for_each(|it| it.scheme = pass.scheme);
    }
    declined(pass.clone(), &of_scheme)
}

/// For a rule that declines its paths (`ProxyPass … !`), the other modules' rules for them. Any other rule is returned
/// as it is.
fn declined(rule: Rule, others: &[Rule]) -> Vec<Rule> {
    if rule.action != Action::Files {
        return vec![rule];
    }
    let mut narrowed = Vec::new();
    for other in others {
        match other.matcher.common(&rule.matcher) {
            Common::Nothing => {}
            Common::Set(common) => narrowed.push(other.narrowed(common)),
            // The other rule may decide about some of the paths, and no pattern says which.
            Common::Unsaid => narrowed.push(Rule {
                action: Action::Closed,
                ..rule.clone()
            }),
        }
    }
    narrowed
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
    let mut reasons = HashMap::new();
    for (names, reason) in DROPPED {
        reasons.extend(names.split(' ').map(|name| (name, *reason)));
    }
    reasons
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
