//! Servers and virtual hosts of httpd: listeners, names, and the order in which modules decide.
//!
//! mod_rewrite goes before mod_proxy, and both before mod_alias and mod_jk, whatever the order in the
//! file. Sections such as `<Location>` are laid over what they decided, later ones over earlier ones.

use std::path::Path;

use crate::Sources;
use crate::emit::quoted;
use crate::files::ImportError;
use crate::httpd::proxy::{self, Balancers};
use crate::httpd::section::{drop_all, overlay};
use crate::httpd::tree::{Directive, Expansion};
use crate::httpd::{fields, redirect};
use crate::ledger::{Ledger, Weight};
use crate::matcher::{Common, Matcher};
use crate::mod_jk::mounts::{self, Mount, Source, join_prefixes};
use crate::mod_jk::workers::{Workers, duration, number};
use crate::plan::{Action, Listener, Plan, Rule, Tls, VirtualHost};
use crate::regex::path_set;

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
    let mut server_mounts = jk_files(&main, sources, expansion, &mut workers)?;
    let ledger = &mut *expansion.ledger;
    server_mounts.extend(jk_mounts(&main, None, ledger));
    for (pattern, worker, id) in std::mem::take(&mut workers.mounts) {
        mounts::add(&mut server_mounts, &pattern, |pattern| Mount {
            pattern,
            written: String::new(),
            worker: worker.clone(),
            excludes: false,
            extensions: Vec::new(),
            source: Source::Worker,
            id,
        });
    }
    let listens = main.iter().filter(|it| it.name == "listen");
    for directive in listens {
        let (address, port) = address_of(directive.word(0));
        plan.listener(&address, port);
        ledger.mapped(directive.id);
    }
    let copies_all = main
        .iter()
        .any(|it| it.name == "jkmountcopy" && it.word(0).eq_ignore_ascii_case("all"));
    let hosts: Vec<&Directive> = top.iter().filter(is_host).collect();
    let mut reader = Reader {
        files: expansion,
        plan,
        workers,
        main: &main,
    };
    let mut is_copied = copies_all && !hosts.is_empty();
    for host in hosts {
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
        reader.host(Some(host), inner, inherited, vhosts);
    }
    let served = |plan: &Plan| -> Vec<usize> {
        let taken = |it: &usize| plan.hosts.iter().any(|host| host.listeners.contains(it));
        (0..plan.listeners.len()).filter(|it| !taken(it)).collect()
    };
    if reader.plan.hosts.is_empty() && reader.plan.listeners.is_empty() {
        reader.plan.listener("[::]:80", 80);
        let text = "the source names no address; [::]:80 is listened on (--listen)";
        reader.files.ledger.say(Weight::Note, None, text);
    }
    let left = served(reader.plan);
    if left.is_empty() {
        dead(&server_mounts, is_copied, reader.files.ledger);
        reader.unreached_main();
    } else {
        reader.host(None, &main, &server_mounts, &[]);
    }
    reader.workers.finish(reader.files.ledger);
    Ok(())
}

/// Mounts of the server reach no virtual host by themselves.
fn dead(mounts: &[Mount], is_copied: bool, ledger: &mut Ledger) {
    for mount in mounts.iter().filter(|_| !is_copied) {
        let text =
            "each address has a virtual host, and none has JkMountCopy: this mount serves nothing";
        ledger.dropped(mount.id, text);
        ledger.note(mount.id, text);
    }
}

/// `[::]:80` and its port.
fn address_of(text: &str) -> (String, u16) {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, port.parse().unwrap_or(80)),
        _ => match text.parse::<u16>() {
            Ok(port) => ("*", port),
            Err(_) => (text, 80),
        },
    };
    let is_any = matches!(host, "" | "*" | "_default_" | "[::]" | "0.0.0.0");
    let bare = host.trim_matches(['[', ']']);
    match bare.parse::<std::net::IpAddr>() {
        Ok(address) if !is_any => (std::net::SocketAddr::new(address, port).to_string(), port),
        _ => (format!("[::]:{port}"), port),
    }
}

/// The files that mod_jk's directives name, and properties that stand in a line.
fn jk_files(
    main: &[Directive],
    sources: &Sources,
    expansion: &mut Expansion<'_>,
    workers: &mut Workers,
) -> Result<Vec<Mount>, ImportError> {
    let mut found = Vec::new();
    for text in &sources.workers {
        workers.add(text, expansion.ledger, expansion.files);
    }
    for text in &sources.maps {
        found.extend(mounts::read_map(text, expansion.ledger));
    }
    let given = |path: &Path| {
        sources
            .workers
            .iter()
            .chain(&sources.maps)
            .any(|it| it.path == path)
    };
    for directive in main {
        match directive.name.as_str() {
            "jkworkersfile" | "jkmountfile" => {
                let paths = sources
                    .httpd
                    .first()
                    .map(|text| expansion.paths(directive.word(0), text));
                let paths = paths.unwrap_or_default();
                let has_one = match directive.name.as_str() {
                    "jkworkersfile" => !sources.workers.is_empty(),
                    _ => !sources.maps.is_empty(),
                };
                if has_one && paths.first().is_none_or(|it| given(it)) {
                    expansion.ledger.mapped(directive.id);
                    continue;
                }
                let Some(path) = paths.first() else {
                    let text = format!(
                        "`{}` is not there; name it, or its root by --root",
                        directive.word(0)
                    );
                    expansion.ledger.risk(directive.id, text);
                    continue;
                };
                let read = expansion.budget.read(expansion.files, Path::new(path))?;
                expansion.ledger.mapped(directive.id);
                match directive.name.as_str() {
                    "jkworkersfile" => workers.add(&read, expansion.ledger, expansion.files),
                    _ => found.extend(mounts::read_map(&read, expansion.ledger)),
                }
            }
            "jkworkerproperty" => {
                let line = directive.words.join(" ");
                let (name, value) = line.split_once('=').unwrap_or((&line, ""));
                expansion.ledger.mapped(directive.id);
                workers.set(
                    name.trim(),
                    value.trim(),
                    directive.id,
                    (expansion.ledger, expansion.files),
                );
            }
            _ => {}
        }
    }
    Ok(found)
}

/// `JkMount` and `JkUnMount`, within a section for its path.
fn jk_mounts(directives: &[Directive], section: Option<&str>, ledger: &mut Ledger) -> Vec<Mount> {
    let mut found = Vec::new();
    for directive in directives {
        let words = &directive.words;
        match (directive.name.as_str(), section, &words[..]) {
            ("jkmount" | "jkunmount", Some(path), [worker]) => {
                let mount = |pattern| mount(pattern, worker, directive);
                mounts::add(&mut found, path, mount);
            }
            ("jkmount" | "jkunmount", _, [pattern, worker]) => {
                let mount = |pattern| mount(pattern, worker, directive);
                mounts::add(&mut found, pattern, mount);
            }
            ("jkmount" | "jkunmount", ..) => ledger.risk(directive.id, "it needs two words"),
            ("location", None, [path]) => {
                found.extend(jk_mounts(directive.inside(), Some(path), ledger));
            }
            ("jkmountcopy", ..) => ledger.mapped(directive.id),
            _ => {}
        }
    }
    found
}

fn mount(pattern: String, worker: &str, directive: &Directive) -> Mount {
    Mount {
        pattern,
        written: String::new(),
        worker: worker.to_owned(),
        excludes: directive.name == "jkunmount",
        extensions: Vec::new(),
        source: Source::Directive,
        id: directive.id,
    }
}

struct Reader<'a, 'e> {
    files: &'a mut Expansion<'e>,
    plan: &'a mut Plan,
    workers: Workers,
    main: &'a [Directive],
}

impl Reader<'_, '_> {
    /// Adds a virtual host, or with `None` the server itself.
    fn host(
        &mut self,
        host: Option<&Directive>,
        inner: &[Directive],
        inherited: &[Mount],
        wanted: &[String],
    ) {
        let mut result = VirtualHost {
            place: host.map(|it| self.files.ledger.place(it.id).clone()),
            names: names(inner, self.files.ledger),
            ..VirtualHost::default()
        };
        if !wanted.is_empty() && !result.names.iter().any(|it| wanted.contains(it)) {
            let directives = host.into_iter().chain(inner);
            return drop_all(
                directives,
                "`--vhost` leaves its virtual host out",
                self.files.ledger,
            );
        }
        match host {
            Some(host) => {
                self.files.ledger.mapped(host.id);
                result.listeners = self.listeners(&host.words);
            }
            None => {
                let taken = |it: &usize| {
                    self.plan
                        .hosts
                        .iter()
                        .any(|host| host.listeners.contains(it))
                };
                result.listeners = (0..self.plan.listeners.len())
                    .filter(|it| !taken(it))
                    .collect();
            }
        }
        self.tls(inner, &result.listeners);
        let first = |it: &&usize| {
            !self
                .plan
                .hosts
                .iter()
                .any(|host| host.listeners.contains(it))
        };
        result.default_on = result.listeners.iter().filter(first).copied().collect();
        self.shadowed_names(&mut result);
        result.rules = self.rules(host.is_some(), inner, inherited);
        self.plan.hosts.push(result);
    }

    /// An earlier wildcard takes the names of a later host.
    fn shadowed_names(&mut self, host: &mut VirtualHost) {
        let earlier: Vec<&VirtualHost> = self
            .plan
            .hosts
            .iter()
            .filter(|it| {
                host.listeners
                    .iter()
                    .all(|listener| it.listeners.contains(listener))
            })
            .collect();
        let taken = |name: &String| {
            earlier.iter().flat_map(|it| &it.names).any(|it| {
                it == name
                    || it
                        .strip_prefix('*')
                        .is_some_and(|domain| name.ends_with(domain))
            })
        };
        let (gone, kept): (Vec<String>, Vec<String>) = host.names.drain(..).partition(taken);
        host.names = kept;
        if !gone.is_empty() {
            let text = format!("an earlier virtual host has {} already", gone.join(", "));
            self.files
                .ledger
                .say(Weight::Note, host.place.clone(), text);
        }
    }

    fn listeners(&mut self, words: &[String]) -> Vec<usize> {
        let mut found = Vec::new();
        for word in words {
            let (address, port) = address_of(word);
            let has_port = word
                .rsplit_once(':')
                .is_some_and(|it| it.1.parse::<u16>().is_ok());
            let any = address.starts_with("[::]:");
            let fits =
                |it: &Listener| (it.port == port || !has_port) && (any || it.address == address);
            let known: Vec<usize> = (0..self.plan.listeners.len())
                .filter(|&index| fits(&self.plan.listeners[index]))
                .collect();
            match known.is_empty() {
                false => found.extend(known),
                // A wildcard listener has the port of a narrower address as well.
                true => {
                    let wild = self.plan.listeners.iter().position(|it| it.port == port);
                    let index = wild.unwrap_or_else(|| self.plan.listener(&address, port));
                    found.push(index);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn tls(&mut self, inner: &[Directive], listeners: &[usize]) {
        let find = |name: &str| inner.iter().find(|it| it.name == name);
        let Some(engine) = find("sslengine") else {
            return;
        };
        self.files.ledger.mapped(engine.id);
        if !engine.word(0).eq_ignore_ascii_case("on") {
            return;
        }
        let mut tls = Tls::default();
        let (chain, key) = (find("sslcertificatefile"), find("sslcertificatekeyfile"));
        match chain {
            Some(chain) => {
                let key_path = key.unwrap_or(chain).word(0).to_owned();
                let path = chain.word(0).to_owned();
                for (id, path) in [(chain.id, &path), (key.unwrap_or(chain).id, &key_path)] {
                    match self.files.files.read(Path::new(path)) {
                        Ok(_) => self.files.ledger.mapped(id),
                        Err(error) => {
                            self.files
                                .ledger
                                .risk(id, format!("`{path}` cannot be read: {error}"));
                            tls.missing = Some("its certificate cannot be read".to_owned());
                        }
                    }
                }
                tls.certificates.push((path, key_path));
            }
            None => {
                self.files
                    .ledger
                    .risk(engine.id, "there is no SSLCertificateFile");
                tls.missing = Some("it has no certificate".to_owned());
            }
        }
        if let Some(chain) = find("sslcertificatechainfile") {
            self.files
                .ledger
                .risk(chain.id, "append it to the file that `chain` names");
        }
        self.client_certificates(inner, &mut tls);
        for &listener in listeners {
            let known = self.plan.listeners[listener].tls.get_or_insert_default();
            for certificate in &tls.certificates {
                if !known.certificates.contains(certificate) {
                    known.certificates.push(certificate.clone());
                }
            }
            known.keys.extend(tls.keys.clone());
            known.missing = known.missing.take().or_else(|| tls.missing.clone());
        }
    }

    fn client_certificates(&mut self, inner: &[Directive], tls: &mut Tls) {
        let sections = inner
            .iter()
            .filter(|it| it.name == "location")
            .flat_map(|it| it.inside());
        let mut all = inner
            .iter()
            .map(|it| (it, true))
            .chain(sections.map(|it| (it, false)));
        let verify = all.find(|(it, _)| {
            it.name == "sslverifyclient" && !it.word(0).eq_ignore_ascii_case("none")
        });
        let authority = inner.iter().find(|it| it.name == "sslcacertificatefile");
        let Some((verify, is_whole)) = verify else {
            return;
        };
        let Some(authority) = authority else {
            tls.missing = Some("its authority of clients' certificates is not named".to_owned());
            return self
                .files
                .ledger
                .risk(verify.id, "there is no SSLCACertificateFile");
        };
        let required = is_whole && verify.word(0).eq_ignore_ascii_case("require");
        let value = if required { "required" } else { "optional" };
        tls.keys
            .insert("client_certificate".to_owned(), quoted(value));
        tls.keys
            .insert("client_ca".to_owned(), quoted(authority.word(0)));
        self.files.ledger.mapped(verify.id);
        match self.files.files.read(Path::new(authority.word(0))) {
            Ok(_) => self.files.ledger.mapped(authority.id),
            Err(error) => {
                self.files
                    .ledger
                    .risk(authority.id, format!("it cannot be read: {error}"));
                tls.missing =
                    Some("its authority of clients' certificates cannot be read".to_owned());
            }
        }
    }

    /// The rules of a host, in the order in which httpd's modules decide.
    fn rules(&mut self, is_host: bool, inner: &[Directive], inherited: &[Mount]) -> Vec<Rule> {
        let main = if is_host { self.main } else { &[] };
        let ledger = &mut *self.files.ledger;
        let mut balancers = Balancers::new(preserve_host(inner, main, ledger));
        balancers.add(main, ledger);
        balancers.add(inner, ledger);
        let mut rules = redirect::rewrites(inner, ledger);
        let mut proxied = passes(inner, &balancers, self.plan, ledger);
        proxied.extend(passes(main, &balancers, self.plan, ledger));
        turn_back(&mut proxied, self.plan);
        let mut others = redirect::aliases(inner, ledger);
        others.extend(redirect::aliases(main, ledger));
        let mut jk = jk_mounts(inner, None, ledger);
        jk.extend(inherited.iter().cloned());
        others.extend(no_jk(inner, ledger));
        others.extend(no_jk(main, ledger));
        others.extend(mounts::rules(&jk, &mut self.workers, self.plan, ledger));
        others.push(Rule::new(None, Matcher::everything(), Action::Files));
        rules.extend(proxied.into_iter().flat_map(|it| declined(it, &others)));
        rules.extend(others);
        join_prefixes(&mut rules, ledger);
        let has_tls = inner
            .iter()
            .any(|it| it.name == "sslengine" && it.word(0).eq_ignore_ascii_case("on"));
        for directives in [main, inner] {
            whole(directives, has_tls, &mut rules, self.files);
            for section in directives {
                overlay(section, &mut rules, self.plan, self.files.ledger);
            }
        }
        rules
    }

    /// What the server itself says, if no address is left to it: what virtual hosts inherit was read there.
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

fn names(inner: &[Directive], ledger: &mut Ledger) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for directive in inner
        .iter()
        .filter(|it| matches!(it.name.as_str(), "servername" | "serveralias"))
    {
        ledger.mapped(directive.id);
        for word in &directive.words {
            let bare = word.rsplit_once("://").map_or(word.as_str(), |it| it.1);
            let bare = bare
                .split(':')
                .next()
                .unwrap_or(bare)
                .trim_end_matches('.')
                .to_ascii_lowercase();
            let name = bare.strip_prefix("*.").unwrap_or(&bare);
            let good = !name.is_empty()
                && name.len() < 250
                && name.split('.').all(|label| {
                    let inner = label
                        .bytes()
                        .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'));
                    inner
                        && !label.is_empty()
                        && label.len() < 64
                        && !label.starts_with('-')
                        && !label.ends_with('-')
                });
            match good {
                true if !names.contains(&bare) => names.push(bare),
                true => {}
                false => ledger.risk(
                    directive.id,
                    format!("`{word}` is no host that a route can have"),
                ),
            }
        }
    }
    names
}

/// The rules of `ProxyPass`, those in sections by their path.
fn passes(
    directives: &[Directive],
    balancers: &Balancers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Vec<Rule> {
    let mut rules = Vec::new();
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
                    let mut pass = pass.clone();
                    if is_match {
                        pass.name = "proxypassmatch".to_owned();
                    }
                    rules.extend(proxy::pass(&pass, Some(path), balancers, plan, ledger));
                }
            }
            _ => {}
        }
    }
    rules
}

/// What is said of hosts and of turning responses back; whether backends are called by the client's host.
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

/// An application that is called by another host writes that one into its redirects: a rewrite, if only of
/// a path to itself, turns them back.
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

/// What `ProxyPass … !` leaves to the other modules; a rule of another kind as it is.
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

/// Paths that `SetEnvIf` takes from mod_jk.
fn no_jk(directives: &[Directive], ledger: &mut Ledger) -> Vec<Rule> {
    let mut rules = Vec::new();
    for directive in directives
        .iter()
        .filter(|it| it.name.starts_with("setenvif"))
    {
        let is_path = directive.word(0).eq_ignore_ascii_case("request_uri");
        if !directive.words.iter().any(|it| it == "no-jk") {
            continue;
        }
        let set = path_set(directive.word(1), directive.name == "setenvifnocase");
        let place = ledger.place(directive.id).clone();
        let is_exact = is_path && set.is_exact;
        let matchers = if is_path {
            set.matchers
        } else {
            vec![Matcher::everything()]
        };
        match is_exact {
            true => ledger.mapped(directive.id),
            false => ledger.unmapped(
                directive.id,
                "what it takes from mod_jk cannot be written as patterns",
            ),
        }
        let action = if is_exact {
            Action::Files
        } else {
            Action::Closed
        };
        rules.extend(
            matchers
                .iter()
                .map(|it| Rule::new(Some(&place), it.clone(), action.clone())),
        );
    }
    rules
}

/// What holds for all rules of a host.
fn whole(directives: &[Directive], has_tls: bool, rules: &mut [Rule], files: &mut Expansion<'_>) {
    let settings = fields::settings(directives, has_tls, files.ledger);
    rules.iter_mut().for_each(|it| it.settings.merge(&settings));
    for directive in directives {
        match directive.name.as_str() {
            "documentroot" => document_root(directive, files),
            "proxytimeout" => {
                let time = number(directive.word(0)).and_then(|it| duration(it, 1000));
                if let Some(time) = time {
                    for rule in rules.iter_mut() {
                        rule.settings
                            .keys
                            .entry("first_byte_timeout".to_owned())
                            .or_insert_with(|| time.clone());
                        rule.settings
                            .keys
                            .entry("idle_body_timeout".to_owned())
                            .or_insert_with(|| time.clone());
                    }
                }
                files.ledger.mapped(directive.id);
            }
            name => {
                if let Some((_, reason)) = DROPPED
                    .iter()
                    .find(|it| it.0.split(' ').any(|it| it == name))
                {
                    files.ledger.dropped(directive.id, reason);
                }
            }
        }
    }
}

fn document_root(directive: &Directive, files: &mut Expansion<'_>) {
    let names = files
        .files
        .names(Path::new(directive.word(0)))
        .unwrap_or_default();
    let is_bare = names.iter().all(|it| {
        matches!(
            it.as_str(),
            "index.html" | "index.nginx-debian.html" | "icons"
        )
    });
    match is_bare && files.files.names(Path::new(directive.word(0))).is_some() {
        true => files.ledger.dropped(
            directive.id,
            "it has only the default page of the distribution",
        ),
        false => {
            let text =
                "directories of files are not converted: what no other rule takes is answered 404";
            files.ledger.kept_or_risk(directive.id, text);
        }
    }
}

/// Directives that need no counterpart, in lower case, and why.
const DROPPED: &[(&str, &str)] = &[
    (
        "errorlog loglevel customlog logformat transferlog scriptlog jklogfile jkloglevel jklogstampformat jkrequestlogformat rewritelog rewriteloglevel globallog proxystatus",
        "the front has logs of its own: [log], and standard error",
    ),
    (
        "loadmodule serveradmin serversignature servertokens user group pidfile mutex startservers minspareservers maxspareservers minsparethreads maxsparethreads threadsperchild serverlimit threadlimit maxrequestworkers maxclients maxconnectionsperchild maxrequestsperchild hostnamelookups usecanonicalname usecanonicalphysicalport extendedstatus traceenable namevirtualhost accessfilename directoryindex addtype adddefaultcharset defaulttype typesconfig mimemagicfile indexoptions addicon addiconbytype addiconbyencoding defaulticon readmename headername indexignore addlanguage languagepriority forcelanguagepriority addcharset enablesendfile enablemmap proxyrequests proxyvia proxybadheader filteredetag fileetag keepalive maxkeepalivereequests maxkeepaliverequests keepalivetimeout timeout browsermatch allowoverride options contentdigest proxyiobuffersize documentindex serverpath sslrandomseed sslpassphrasedialog sslsessioncachetimeout sslcryptodevice sslusestapling sslstaplingcache ssloptions jkextractssl listenbacklog defaultruntimedir",
        "the front needs no such setting",
    ),
];
