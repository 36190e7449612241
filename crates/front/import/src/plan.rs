//! What the source does, in the terms of the front: listeners, hosts, ordered rules, upstreams.
//!
//! The rules of a host are ordered: the first that matches a path decides. Each reader of a server's files puts
//! them in that server's order, so [`Model::decide`] does what the source does. [`crate::emit`] writes routes that
//! decide the same by the front's own order, and [`crate::proof`] compares the two.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use crate::condition::{Scheme, When};
use crate::index::FirstMatch;
use crate::judge::{Admission, JudgedPlace, PlaceUse};
use crate::ledger::{Id, Ledger, Place, Weight};
use crate::matcher::{Common, Matcher};
use crate::toml_text::quoted;

/// A whole configuration of the source.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) hosts: Vec<VirtualHost>,
    pub(crate) upstreams: Vec<Upstream>,
    /// Whether the source has a status page, which becomes the front's admin listener.
    pub(crate) has_status: bool,
    /// Proxies before the source that it trusts to report clients' addresses.
    pub(crate) trusted: Vec<String>,
    /// Whether rules test the scheme that such a proxy reports.
    pub(crate) claims_scheme: bool,
    /// Indices of the upstreams, by their contents without names and places, so that equal ones are found.
    known: HashMap<Upstream, usize>,
    /// The last number appended to each table name in use: a second upstream `a` becomes `a-2`.
    names: HashMap<String, usize>,
}

/// The keys of a table, with their values as TOML.
pub(crate) type Keys = BTreeMap<String, String>;

/// An address on which the source listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    /// The address as the file has it, `HOST:PORT`.
    pub(crate) address: String,
    pub(crate) port: u16,
    /// Keys of the listener's table, such as `body_max`.
    pub(crate) keys: Keys,
    /// The listener's certificates; `None` if it speaks plain HTTP.
    pub(crate) tls: Option<Tls>,
}

/// The certificates of a TLS listener, and the certificates that it asks of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// The paths of each certificate chain and its key.
    pub(crate) certificates: Vec<(String, String)>,
    pub(crate) keys: Keys,
    /// Why the listener cannot be served; then it is written so that the network does not reach it.
    pub(crate) missing: Option<String>,
}

impl Tls {
    /// Adds the client certificate settings of another host on the same listener. Where they differ the listener
    /// only requests a certificate; routes enforce what each host requires.
    pub(crate) fn require(&mut self, keys: &Keys) {
        let differ = |name: &str| {
            let (known, new) = (self.keys.get(name), keys.get(name));
            known.is_some() && new.is_some() && known != new
        };
        if differ("client_ca") || differ("client_crl") {
            let text = "two hosts of it trust different authorities of clients' certificates";
            self.missing = Some(text.to_owned());
        }
        let weaker = differ("client_certificate");
        self.keys.extend(keys.clone());
        if weaker {
            let value = quoted("optional");
            self.keys.insert("client_certificate".to_owned(), value);
        }
    }
}

/// A virtual host of the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct VirtualHost {
    pub(crate) place: Option<Place>,
    /// Names and wildcards such as `*.example.org`, in lower case.
    pub(crate) names: Vec<String>,
    /// The directives with further names of the host, which no route can have.
    pub(crate) unsayable: Vec<Id>,
    /// Indices of the listeners on which the host is served.
    pub(crate) listeners: Vec<usize>,
    /// Indices of the listeners on which it also serves hosts that no other virtual host has.
    pub(crate) default_on: Vec<usize>,
    /// The host's rules; the first that matches a path decides.
    pub(crate) rules: Vec<Rule>,
}

/// What the source does with requests for some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) place: Option<Place>,
    pub(crate) matcher: Matcher,
    /// The scheme that requests must have come by; `None`: any.
    pub(crate) scheme: Option<Scheme>,
    /// A condition on the host, until [`crate::hosts`] has split the virtual hosts by it.
    pub(crate) when: Option<Box<When>>,
    pub(crate) action: Action,
    pub(crate) settings: SharedSettings,
    /// Without it the rule is closed before it is written, if it leads to a backend or to files.
    pub(crate) admission: Admission,
}

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Passes the request to the upstream of this index; `rewrite` replaces the rule's path if it is given.
    Forward {
        upstream: usize,
        rewrite: Option<String>,
    },
    /// Answers with this status.
    Answer(u16),
    /// Answers with this text.
    Text(Box<AnswerText>),
    /// Redirects the client to a URL with this status.
    Redirect { to: String, status: u16 },
    /// Leaves the request to the old server's files; without an old server it is answered 404.
    Files,
    /// Serves files of a directory from the front.
    Serve(Box<Serve>),
    /// Cannot be converted: the request goes to the old server, or is answered 403.
    Closed,
}

/// The text of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerText {
    pub(crate) status: u16,
    /// The text, with placeholders of the front.
    pub(crate) text: String,
    pub(crate) media_type: String,
}

/// A directory from which the front serves files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Serve {
    pub(crate) directory: String,
    /// The directory's path on the source's machine.
    pub(crate) source: String,
    /// The path that replaces the rule's path before the file is looked up.
    pub(crate) rewrite: Option<String>,
    /// The upstream that gets requests for which there is no file.
    pub(crate) upstream: Option<usize>,
    /// Further keys of the route, such as `index`.
    pub(crate) keys: Keys,
}

impl Action {
    /// What the action asks of the directives of its place.
    pub(crate) fn place_use(&self) -> PlaceUse {
        PlaceUse {
            forwards: self.upstream().is_some(),
            serves: matches!(self, Self::Serve(_)),
            leaves: *self == Self::Files,
        }
    }

    /// The index of the upstream that may get a request.
    pub(crate) fn upstream(&self) -> Option<usize> {
        match self {
            Self::Forward { upstream, .. } => Some(*upstream),
            Self::Serve(serve) => serve.upstream,
            _ => None,
        }
    }

    /// Whether the rewrite replaces `path` by itself, so that the front adjusts responses but not the path.
    pub(crate) fn keeps_path(&self, path: &str) -> bool {
        let rewrite = match self {
            Self::Forward { rewrite, .. } => rewrite.as_deref(),
            _ => None,
        };
        rewrite.is_some_and(|it| it.trim_end_matches('/') == path)
    }

    /// Removes the rewrite of a `Forward`, so that paths are forwarded as they are. Other actions stay as they are.
    pub(crate) fn forget_rewrite(&mut self) {
        if let Self::Forward { rewrite, .. } = self {
            *rewrite = None;
        }
    }

    /// The path that replaces the rule's path, for changing it; `None` if there is none.
    pub(crate) fn rewrite_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Forward { rewrite, .. } => rewrite.as_mut(),
            Self::Serve(serve) => serve.rewrite.as_mut(),
            _ => None,
        }
    }
}

/// The settings of a rule. Rules with the same settings share them until one of them changes, for a configuration
/// may have very many rules and few different settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedSettings(Option<Rc<Settings>>);

impl SharedSettings {
    /// Adds the settings of a section that comes later in the file, or lies deeper.
    pub(crate) fn merge(&mut self, later: &Self) {
        match (&self.0, &later.0) {
            (_, None) => {}
            (None, Some(_)) => self.clone_from(later),
            (Some(_), Some(later)) => Settings::merge(self, later),
        }
    }

    /// Shares the settings of `last` if they are equal, else replaces `last`.
    pub(crate) fn like(settings: Settings, last: &mut Self) -> Self {
        if settings != **last {
            *last = Self::from(settings);
        }
        last.clone()
    }
}

impl PartialEq for SharedSettings {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(two)) if Rc::ptr_eq(one, two) => true,
            _ => **self == **other,
        }
    }
}

impl Eq for SharedSettings {}

impl Deref for SharedSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        self.0.as_deref().unwrap_or(&NO_SETTINGS)
    }
}

impl DerefMut for SharedSettings {
    fn deref_mut(&mut self) -> &mut Settings {
        Rc::make_mut(self.0.get_or_insert_with(Rc::default))
    }
}

impl From<Settings> for SharedSettings {
    fn from(settings: Settings) -> Self {
        Self((settings != NO_SETTINGS).then(|| Rc::new(settings)))
    }
}

/// The settings of a rule besides its paths and its action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The clients that are let in.
    pub(crate) access: Access,
    /// The clients that a second guard lets in, while sections are being applied to rules; then it is joined to
    /// `access`.
    pub(crate) compat: Access,
    /// Whether TLS is required, while sections are being applied; then a rule of its own closes plain HTTP.
    pub(crate) tls_only: bool,
    /// Whether an unknown directive may keep clients out, while sections are being applied; then it is part of
    /// `access`.
    pub(crate) is_strange: bool,
    /// The host name that is sent to backends, while sections are being applied; then it is a key of the upstream.
    pub(crate) sent_host: Option<String>,
    /// Further keys of the route.
    pub(crate) keys: Keys,
    /// Error pages by status, and `replace_errors`: which errors of backends they replace.
    pub(crate) pages: Keys,
    /// Changes to the header fields of requests, and of responses.
    pub(crate) request_fields: Fields,
    pub(crate) response_fields: Fields,
    /// Changes to the fields of responses with the statuses of `add_header` without `always`.
    pub(crate) success_fields: Fields,
}

/// The clients that are let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// All clients are let in.
    #[default]
    Open,
    /// Clients from some networks; `deny` takes precedence over `allow`.
    Networks {
        allow: Vec<String>,
        deny: Vec<String>,
    },
    /// No client, which the old server says as well.
    Nobody,
    /// Clients that only the old server can decide about.
    Unsaid,
}

/// Changes to header fields: names removed, and names set or added with values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) remove: Vec<String>,
    pub(crate) set: BTreeMap<String, String>,
    pub(crate) add: BTreeMap<String, String>,
}

impl Fields {
    const NONE: Self = Self {
        remove: Vec::new(),
        set: BTreeMap::new(),
        add: BTreeMap::new(),
    };

    pub(crate) fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    /// How many times the changes name a field.
    pub(crate) fn mentions(&self, name: &str) -> usize {
        let is_it = |it: &&String| it.eq_ignore_ascii_case(name);
        self.names().filter(is_it).count()
    }

    /// The names that the changes mention.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        let removed = self.remove.iter();
        removed.chain(self.set.keys()).chain(self.add.keys())
    }

    /// Drops all values that are set or added for a field.
    pub(crate) fn forget(&mut self, name: &str) {
        self.set.retain(|it, _| !it.eq_ignore_ascii_case(name));
        self.add.retain(|it, _| !it.eq_ignore_ascii_case(name));
    }

    /// Removes a field from messages, and drops earlier changes to it.
    pub(crate) fn take(&mut self, name: &str) {
        self.forget(name);
        self.remove(name);
    }

    /// Removes a field from messages, before others are set or added.
    pub(crate) fn remove(&mut self, name: &str) {
        if !self.remove.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            self.remove.push(name.to_owned());
        }
    }

    /// Removes every field that `named` mentions, for its value is not known.
    pub(crate) fn take_all(&mut self, named: &Self) {
        named.names().for_each(|it| self.take(it));
    }

    /// Adds the changes of another section, which override earlier ones.
    fn merge(&mut self, later: &Self) {
        later.remove.iter().for_each(|it| self.take(it));
        later.set.keys().for_each(|it| self.forget(it));
        self.set.extend(later.set.clone());
        self.add.extend(later.add.clone());
    }
}

impl Settings {
    /// Adds the settings of a section that comes later in the file, or lies deeper.
    pub(crate) fn merge(&mut self, later: &Self) {
        if later.access != Access::Open {
            self.access = later.access.clone();
        }
        if later.compat != Access::Open {
            self.compat = later.compat.clone();
        }
        self.tls_only |= later.tls_only;
        self.is_strange |= later.is_strange;
        if later.sent_host.is_some() {
            self.sent_host.clone_from(&later.sent_host);
        }
        self.keys.extend(later.keys.clone());
        self.pages.extend(later.pages.clone());
        self.request_fields.merge(&later.request_fields);
        self.response_fields.merge(&later.response_fields);
        self.success_fields.merge(&later.success_fields);
    }
}

/// A group of backends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) keys: Keys,
    /// The keys of `sticky`; `None` if the upstream has no sticky sessions.
    pub(crate) sticky: Option<Keys>,
    pub(crate) probe: Keys,
    pub(crate) attributes: Keys,
    pub(crate) backends: Vec<Backend>,
}

/// A backend of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Backend {
    pub(crate) place: Option<Place>,
    pub(crate) url: String,
    pub(crate) keys: Keys,
}

/// What the source does with a request, and for which clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision<'p> {
    pub(crate) action: &'p Action,
    pub(crate) access: &'p Access,
}

impl Rule {
    pub(crate) fn new(place: Option<&Place>, matcher: Matcher, action: Action) -> Self {
        Self {
            place: place.cloned(),
            matcher,
            scheme: None,
            when: None,
            action,
            settings: SharedSettings::default(),
            admission: Admission::default(),
        }
    }

    /// Admits the rule to what its action leads to, or closes it, as the place demands to which it belongs.
    pub(crate) fn admit(&mut self, judged: JudgedPlace) {
        self.admission = judged.admission();
        if judged.closes() {
            self.settings.access = Access::Unsaid;
        }
    }

    /// Whether the rule decides about all requests for its paths, by any scheme and for any host.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.scheme.is_none() && self.when.is_none()
    }

    /// Whether no request is answered by the rule as the source would.
    pub(crate) fn is_closed(&self) -> bool {
        self.action == Action::Closed || self.settings.access == Access::Unsaid
    }

    /// The same rule for fewer paths. A rewrite or redirect then includes the part of the path that the narrower
    /// prefix adds.
    pub(crate) fn narrowed(&self, to: Matcher) -> Self {
        let mut rule = Self {
            matcher: to,
            ..self.clone()
        };
        if let Matcher::Prefix(outer) = &self.matcher
            && !matches!(rule.matcher, Matcher::Prefix(_))
            && rule.action.keeps_path(outer)
        {
            rule.action.forget_rewrite();
            return rule;
        }
        let (Matcher::Prefix(outer), Matcher::Prefix(inner)) = (&self.matcher, &rule.matcher)
        else {
            return rule;
        };
        if let Some(rewrite) = rule.action.rewrite_mut()
            && let Some(rest) = inner.strip_prefix(outer.as_str())
        {
            let joined = format!("{}{rest}", rewrite.trim_end_matches('/'));
            *rewrite = if joined.is_empty() {
                "/".to_owned()
            } else {
                joined
            };
        }
        if let Action::Redirect { to, .. } = &mut rule.action
            && let Some(rest) = inner.strip_prefix(outer.as_str())
        {
            *to = to.replace("{rest", &format!("{rest}{{rest"));
        }
        rule
    }
}

/// Applies `change` to rules, for the paths in `matcher` only. Where no pattern can separate these, it applies
/// `whole` to the whole rule.
pub(crate) fn split(
    rules: &mut Vec<Rule>,
    matcher: &Matcher,
    change: impl Fn(&mut Rule),
    whole: impl Fn(&mut Rule),
) {
    let mut next = Vec::with_capacity(rules.len() + 1);
    for rule in rules.drain(..) {
        match rule.matcher.common(matcher) {
            Common::Nothing => next.push(rule),
            Common::Set(set) if set == rule.matcher => {
                let mut changed = rule;
                change(&mut changed);
                next.push(changed);
            }
            Common::Set(set) => {
                let mut changed = rule.narrowed(set);
                change(&mut changed);
                next.push(changed);
                next.push(rule);
            }
            Common::Unsaid => {
                let mut changed = rule;
                whole(&mut changed);
                next.push(changed);
            }
        }
    }
    *rules = next;
}

impl Plan {
    /// The index of the listener with this address; adds it if there is none.
    pub(crate) fn listener(&mut self, address: &str, port: u16) -> usize {
        let known = self.listeners.iter().position(|it| it.address == address);
        known.unwrap_or_else(|| {
            self.listeners.push(Listener {
                address: address.to_owned(),
                port,
                keys: Keys::new(),
                tls: None,
            });
            self.listeners.len() - 1
        })
    }

    /// The index of the listener with this socket address; adds it if there is none.
    pub(crate) fn listen(&mut self, address: SocketAddr) -> usize {
        self.listener(&address.to_string(), address.port())
    }

    /// Whether the written file will contain a secret.
    pub(crate) fn has_secrets(&self) -> bool {
        let is_one = |keys: &Keys| keys.contains_key("secret");
        let of = |it: &Upstream| is_one(&it.keys) || it.backends.iter().any(|it| is_one(&it.keys));
        self.upstreams.iter().any(of)
    }

    /// Closes all rules that admit only some networks, because clients' addresses are unknown.
    pub(crate) fn hide_networks(&mut self) {
        let rules = self.hosts.iter_mut().flat_map(|it| &mut it.rules);
        for rule in rules {
            if matches!(rule.settings.access, Access::Networks { .. }) {
                rule.settings.access = Access::Unsaid;
            }
        }
    }

    /// Closes all rules that lead to a backend or to files though nobody judged their place.
    pub(crate) fn close_unjudged(&mut self, ledger: &mut Ledger) {
        let rules = self.hosts.iter_mut().flat_map(|it| &mut it.rules);
        for rule in rules {
            let PlaceUse {
                forwards, serves, ..
            } = rule.action.place_use();
            if (forwards || serves) && !rule.admission.is_given() {
                rule.action = Action::Closed;
                let text = "no reader judged what is in force here: it is closed";
                ledger.say(Weight::Risk, rule.place.clone(), text);
            }
        }
    }

    /// Closes, on each listener, the hosts that no virtual host names, if another than the default one may serve
    /// them: by an expression, or by a name that no route can have.
    pub(crate) fn close_unsayable(&mut self, ledger: &mut Ledger) {
        for listener in 0..self.listeners.len() {
            let others = self.hosts.iter().filter(|it| {
                it.listeners.contains(&listener) && !it.default_on.contains(&listener)
            });
            let ids: Vec<Id> = others.flat_map(|it| it.unsayable.clone()).collect();
            let Some(first) = ids.first() else { continue };
            let place = ledger.place(*first).clone();
            for &id in &ids {
                ledger.unmapped(
                    id,
                    "routes have no such host: the front answers hosts that the source does not name with 403 here. Name each host",
                );
            }
            for host in &mut self.hosts {
                host.default_on.retain(|it| *it != listener);
            }
            let everything = Matcher::everything();
            self.hosts.push(VirtualHost {
                rules: vec![Rule::new(Some(&place), everything, Action::Closed)],
                place: Some(place),
                listeners: vec![listener],
                default_on: vec![listener],
                ..VirtualHost::default()
            });
        }
    }

    /// The index of an upstream; adds it if there is no equal one, under a name that is still free.
    pub(crate) fn upstream(&mut self, upstream: Upstream) -> usize {
        let bare = |it: &Backend| Backend {
            place: None,
            ..it.clone()
        };
        let key = Upstream {
            name: String::new(),
            backends: upstream.backends.iter().map(bare).collect(),
            ..upstream.clone()
        };
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let base = table_name(&upstream.name);
        let mut name = base.clone();
        // A name such as `a-2` may be that of another one already.
        while self.names.contains_key(&name) {
            let count = self.names.entry(base.clone()).or_default();
            *count += 1;
            name = format!("{base}-{count}");
        }
        self.names.insert(name.clone(), 1);
        self.known.insert(key, self.upstreams.len());
        let mut named = Upstream { name, ..upstream };
        name_twins(&mut named.backends);
        self.upstreams.push(named);
        self.upstreams.len() - 1
    }
}

/// Gives backends with the same URL names of their own, for a backend without a name has its URL as its name.
fn name_twins(backends: &mut [Backend]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for backend in backends
        .iter_mut()
        .filter(|it| !it.keys.contains_key("name"))
    {
        let count = counts.entry(backend.url.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let name = quoted(&format!("{}#{count}", backend.url));
            backend.keys.insert("name".to_owned(), name);
        }
    }
}

/// A model of the source that answers quickly what it does with a request.
pub(crate) struct Model<'p> {
    plan: &'p Plan,
    /// The first virtual host for each listener and name.
    names: HashMap<(usize, &'p str), usize>,
    defaults: HashMap<usize, usize>,
    rules: Vec<FirstMatch<'p>>,
}

impl<'p> Model<'p> {
    pub(crate) fn new(plan: &'p Plan) -> Self {
        let (mut names, mut defaults) = (HashMap::new(), HashMap::new());
        for (at, host) in plan.hosts.iter().enumerate() {
            for &listener in &host.listeners {
                for name in &host.names {
                    names.entry((listener, name.as_str())).or_insert(at);
                }
            }
            for &listener in &host.default_on {
                defaults.entry(listener).or_insert(at);
            }
        }
        let index = |it: &'p VirtualHost| FirstMatch::new(it.rules.iter().map(|it| &it.matcher));
        Self {
            plan,
            names,
            defaults,
            rules: plan.hosts.iter().map(index).collect(),
        }
    }

    /// The index of the virtual host that serves a host on a listener: by name, then by the longest wildcard, then
    /// the default.
    pub(crate) fn host(&self, listener: usize, host: &str) -> Option<usize> {
        if let Some(&found) = self.names.get(&(listener, host)) {
            return Some(found);
        }
        // Of wildcards the longest.
        let wild = host.match_indices('.').find_map(|(at, _)| {
            let name = format!("*{}", &host[at..]);
            self.names.get(&(listener, name.as_str())).copied()
        });
        wild.or_else(|| self.defaults.get(&listener).copied())
    }

    /// What the source does with a request for this host and path on a listener.
    pub(crate) fn decide(&self, listener: usize, host: &str, path: &str) -> Decision<'p> {
        let listens = self.plan.listeners.get(listener);
        let secure = listens.is_some_and(|it| it.tls.is_some());
        let scheme = if secure { Scheme::Https } else { Scheme::Http };
        let host = self.host(listener, host);
        let rule = host.and_then(|host| {
            let rules = &self.plan.hosts[host].rules;
            let fits = |at: usize| rules[at].scheme.is_none_or(|it| it == scheme);
            self.rules[host].find(path, fits).map(|at| &rules[at])
        });
        match rule {
            Some(rule) => Decision {
                action: &rule.action,
                access: &rule.settings.access,
            },
            None => Decision {
                action: &Action::Files,
                access: &Access::Open,
            },
        }
    }
}

/// The status of the front's redirect for `status`; `None` if the front has none. 303 becomes 302, which browsers
/// follow in the same way after GET, HEAD and POST.
pub(crate) fn redirect_status(status: u16) -> Option<u16> {
    match status {
        301 | 302 | 307 | 308 => Some(status),
        303 => Some(302),
        _ => None,
    }
}

/// A name made valid for a table of the file.
pub(crate) fn table_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|sign| {
            if sign.is_ascii_alphanumeric() || sign == '_' {
                sign
            } else {
                '-'
            }
        })
        .collect();
    match plain.trim_matches('-') {
        "" => "backend".to_owned(),
        plain => plain.chars().take(NAME_MAX).collect(),
    }
}

/// A host name that no virtual host has.
pub(crate) const UNKNOWN_HOST: &str = "unknown.invalid";

const NAME_MAX: usize = 60;

/// The settings of a rule that changes nothing.
static NO_SETTINGS: Settings = Settings {
    access: Access::Open,
    compat: Access::Open,
    tls_only: false,
    is_strange: false,
    sent_host: None,
    keys: Keys::new(),
    pages: Keys::new(),
    request_fields: Fields::NONE,
    response_fields: Fields::NONE,
    success_fields: Fields::NONE,
};

#[cfg(test)]
mod tests;
