//! The plan: what the source does, in the terms of the front (listeners, hosts, ordered rules, upstreams).
//!
//! The rules of a host are ordered: the first that matches a path decides, unless it yields to a later expression.
//! Each reader of a server's files puts the rules in that server's order, so that they do what the source does.
//! [`crate::emit`] writes routes that give the same result by the front's own order.

mod access;
mod depth;
mod limits;
mod listener;
mod model;
mod shared_settings;
mod shares;
mod sign_ons;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

pub(crate) use access::{Access, ClientTests, Networks};
pub(crate) use depth::{BELOW_OTHERS, DepthCount, depth, depth_key};
pub(crate) use limits::{Limits, ZoneLimit};
pub(crate) use listener::{ClientCertificates, Listener, Tls, TlsSettings};
pub(crate) use model::{Model, Schemes, first_match};
pub(crate) use shared_settings::SharedSettings;
pub(crate) use sign_ons::{AuthSettings, AuthValue, Members, Satisfy, SignOn, SignOns};

use crate::condition::{Scheme, When};
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
    pub(crate) limits: Limits,
    pub(crate) sign_ons: SignOns,
    /// The keys of `[log]`.
    pub(crate) log: Keys,
    /// Whether the source has a status page, which becomes the front's admin listener.
    pub(crate) has_status: bool,
    /// The proxies before the source that it trusts to report clients' addresses.
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

/// A virtual host of the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct VirtualHost {
    pub(crate) place: Option<Place>,
    /// Names and wildcards such as `*.example.org`, in lower case.
    pub(crate) names: Vec<String>,
    /// The directives with further names of the host, which no route can have.
    pub(crate) unsayable: Vec<Id>,
    /// The directive by which nginx has the host answer requests without `Host`; `None`: it does not.
    pub(crate) nameless: Option<Id>,
    /// The directive by which nginx refuses handshakes for the host (`ssl_reject_handshake`); `None`: it does not.
    pub(crate) rejects: Option<Id>,
    /// Indices of the listeners on which the host is served.
    pub(crate) listeners: Vec<usize>,
    /// Indices of the listeners on which it also serves hosts that no other virtual host has.
    pub(crate) default_on: Vec<usize>,
    /// The host's rules, in the order in which they decide.
    pub(crate) rules: Vec<Rule>,
}

/// What the source does with requests for some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) place: Option<Place>,
    pub(crate) matcher: Matcher,
    /// Whether a later expression that matches the path wins over this rule, as in nginx over a prefix location
    /// without `^~`.
    pub(crate) yields: bool,
    /// The methods of the requests; empty for all. For requests with other methods there is a later rule with the
    /// same paths and for all methods.
    pub(crate) methods: Vec<String>,
    /// Tests, as the file has them, that a request must all pass. For requests that do not, there is a later rule as
    /// for other methods.
    pub(crate) tests: Vec<String>,
    /// The scheme that requests must have come by; `None`: any.
    pub(crate) scheme: Option<Scheme>,
    /// A condition on the host, until [`crate::hosts`] has split the virtual hosts by it.
    pub(crate) when: Option<Box<When>>,
    pub(crate) action: Action,
    pub(crate) settings: SharedSettings,
    /// The proof by [`crate::judge`] that the rule may lead to a backend or to files. A rule that leads there without
    /// this proof is closed before the file is written.
    pub(crate) admission: Admission,
}

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Passes the request to the upstream with this index. `rewrite` replaces the rule's path; if the matcher is an
    /// expression or an exact path, it is the whole new path, of an expression as the file has it.
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

/// An answer with a text as its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerText {
    pub(crate) status: u16,
    /// The text, with placeholders of the front.
    pub(crate) text: String,
    pub(crate) media_type: String,
    /// Whether access rules and limits are asked before it is sent. nginx answers `return` before it asks them.
    pub(crate) is_guarded: bool,
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
    /// What the action does with requests, which decides which directives of its place matter.
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

    /// Whether another path replaces the rule's path.
    pub(crate) fn rewrites(&self) -> bool {
        match self {
            Self::Forward { rewrite, .. } => rewrite.is_some(),
            Self::Serve(serve) => serve.rewrite.is_some(),
            _ => false,
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

/// The settings of a rule besides its paths and its action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The clients that are let in.
    pub(crate) access: Access,
    /// The clients that a second guard lets in, while sections are being applied to rules; then it is joined to
    /// `access`.
    pub(crate) compat: Access,
    /// The clients that a third guard lets in, by their methods, while sections are being applied; then it is joined
    /// to `access`.
    pub(crate) methods: Access,
    /// Whether `access` or `compat` suffices, and how passwords are asked for, while sections are being applied; then it
    /// is part of `access` and `sign_on`.
    pub(crate) satisfy: Option<Satisfy>,
    pub(crate) auth: AuthSettings,
    /// Whether a `Require` is in force, while sections are being applied: httpd answers 500 where there is an `AuthType`
    /// without one.
    pub(crate) has_require: bool,
    /// Whether TLS is required, while sections are being applied; then a rule of its own closes plain HTTP.
    pub(crate) tls_only: bool,
    /// Whether an unknown directive may keep clients out, while sections are being applied; then it is part of
    /// `access`.
    pub(crate) is_strange: bool,
    /// Whether the rule redirects after its access rules, while sections are being applied; then it is closed unless
    /// all clients are let in.
    pub(crate) redirects_late: bool,
    /// The host name that is sent to backends, while sections are being applied; then it is a key of the upstream.
    pub(crate) sent_host: Option<String>,
    /// Further keys of the route.
    pub(crate) keys: Keys,
    /// The names of the limits that the rule's requests count for.
    pub(crate) limits: Vec<String>,
    /// The name of the sign-on that the rule's clients need; `None`: none.
    pub(crate) sign_on: Option<String>,
    /// Error pages by status, and `replace_errors`: which errors of backends they replace.
    pub(crate) pages: Keys,
    /// Changes to the header fields of requests, and of responses.
    pub(crate) request_fields: Fields,
    pub(crate) response_fields: Fields,
    /// Changes to the fields of responses with the statuses of `add_header` without `always`.
    pub(crate) success_fields: Fields,
    /// Changes by httpd's `Header always`, which has a table of its own, while sections are being applied; then they are
    /// part of `response_fields`.
    pub(crate) always_fields: Fields,
}

/// Changes to header fields: names removed, and names set or added with values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) remove: Vec<String>,
    pub(crate) set: BTreeMap<String, String>,
    pub(crate) add: BTreeMap<String, String>,
    /// The removed fields whose value would not be known, so that nothing may be added to it.
    lost: Vec<String>,
}

impl Fields {
    const NONE: Self = Self {
        remove: Vec::new(),
        set: BTreeMap::new(),
        add: BTreeMap::new(),
        lost: Vec::new(),
    };

    pub(crate) fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    /// Whether a field is set or added, and this is one of the elements of its value.
    pub(crate) fn has(&self, name: &str, value: &str) -> bool {
        let mut changes = self.set.iter().chain(&self.add);
        changes.any(|(known, list)| {
            let mut elements = list.split(',').map(str::trim);
            let has_value = list == value || elements.any(|element| element == value);
            has_value && known.eq_ignore_ascii_case(name)
        })
    }

    /// How many times the changes name a field.
    pub(crate) fn mentions(&self, name: &str) -> usize {
        let names = self.names();
        names.filter(|it| it.eq_ignore_ascii_case(name)).count()
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
        self.lost.retain(|it| !it.eq_ignore_ascii_case(name));
    }

    /// Removes a field from messages because its value is not known. What is added later is not sent either, until the
    /// field is set or removed.
    pub(crate) fn lose(&mut self, name: &str) {
        self.take(name);
        self.lost.push(name.to_owned());
    }

    /// Adds a value to a field, behind those that are added already; `false`: the front cannot do this, or the rest of
    /// the field's value is not known, so it has none.
    pub(crate) fn append(&mut self, name: &str, value: String) -> bool {
        let is_same = |known: &String| known.eq_ignore_ascii_case(name);
        if self.lost.iter().any(is_same) {
            return false;
        }
        // Cookies are no list: RFC 9110, section 5.3.
        if name.eq_ignore_ascii_case("set-cookie") {
            return self.add_line(name, value);
        }
        match self.add.iter_mut().find(|it| is_same(it.0)) {
            Some((_, list)) => *list = format!("{list}, {value}"),
            None => {
                self.add.insert(name.to_owned(), value);
            }
        }
        true
    }

    /// Adds a line of a field, of which three are possible: a table has a name only once in each spelling, so each line
    /// has another one. Returns `false` if there are three already.
    pub(crate) fn add_line(&mut self, name: &str, value: String) -> bool {
        let mut spellings = [
            name.to_owned(),
            name.to_ascii_lowercase(),
            name.to_ascii_uppercase(),
        ]
        .into_iter();
        let Some(free) = spellings.find(|it| !self.add.contains_key(it)) else {
            return false;
        };
        self.add.insert(free, value);
        true
    }

    /// Drops the values that are added by these names, in the same spelling.
    fn forget_added(&mut self, names: &Self) {
        self.add.retain(|name, _| !names.add.contains_key(name));
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

    /// Removes every field that `named` mentions, because its value is not known.
    pub(crate) fn lose_all(&mut self, named: &Self) {
        named.names().for_each(|it| self.lose(it));
    }

    /// Adds the fields of another table for the same response, which gets those of both.
    pub(crate) fn join(&mut self, other: &Self) {
        for (name, value) in &other.set {
            let is_same = |known: &String| known.eq_ignore_ascii_case(name);
            if self.set.keys().chain(self.add.keys()).any(is_same) {
                if !self.has(name, value) {
                    self.add.insert(name.clone(), value.clone());
                }
            } else {
                self.remove.retain(|known| !is_same(known));
                self.set.insert(name.clone(), value.clone());
            }
        }
        for (name, value) in &other.add {
            self.append(name, value.clone());
        }
    }

    /// Adds the changes of another section, which override earlier ones.
    fn merge(&mut self, later: &Self) {
        later.remove.iter().for_each(|it| self.take(it));
        later.set.keys().for_each(|it| self.forget(it));
        self.set.extend(later.set.clone());
        later.lost.iter().for_each(|it| self.lose(it));
        for (name, value) in &later.add {
            // The directive that lost the field has been reported.
            self.append(name, value.clone());
        }
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
        if later.methods != Access::Open {
            self.methods = later.methods.clone();
        }
        self.has_require |= later.has_require;
        self.tls_only |= later.tls_only;
        self.is_strange |= later.is_strange;
        if later.sent_host.is_some() {
            self.sent_host.clone_from(&later.sent_host);
        }
        for (key, value) in &later.keys {
            if LISTS.contains(&key.as_str()) {
                self.add_table(key, value.trim_matches(['[', ']']));
            } else {
                self.keys.insert(key.clone(), value.clone());
            }
        }
        // Limits are not replaced: the rule's own apply.
        if self.limits.is_empty() {
            self.limits.clone_from(&later.limits);
        }
        if later.sign_on.is_some() {
            self.sign_on.clone_from(&later.sign_on);
        }
        self.pages.extend(later.pages.clone());
        self.request_fields.merge(&later.request_fields);
        self.response_fields.merge(&later.response_fields);
        self.success_fields.merge(&later.success_fields);
        self.always_fields.merge(&later.always_fields);
    }
}

impl Settings {
    /// Adds a table, as TOML, to the list of tables that is the value of a key.
    pub(crate) fn add_table(&mut self, key: &str, table: &str) {
        let list = self.keys.entry(key.to_owned());
        list.and_modify(|list| {
            let known = list.trim_matches(['[', ']']).to_owned();
            *list = format!("[{known}, {table}]");
        })
        .or_insert_with(|| format!("[{table}]"));
    }

    /// Forgets what others replace instead of adding to it: lists of tables, and fields that both add to responses.
    pub(crate) fn forget_additions(&mut self, others: &Self) {
        self.keys.retain(|key, _| !LISTS.contains(&key.as_str()));
        self.response_fields.forget_added(&others.response_fields);
        self.success_fields.forget_added(&others.success_fields);
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
    /// The indices of the upstreams that share its requests, with their weights; empty if it has backends of its own.
    pub(crate) shares: Vec<(usize, u32)>,
}

/// A backend of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Backend {
    pub(crate) place: Option<Place>,
    pub(crate) url: String,
    pub(crate) keys: Keys,
}

impl Rule {
    pub(crate) fn new(place: Option<&Place>, matcher: Matcher, action: Action) -> Self {
        Self {
            place: place.cloned(),
            matcher,
            yields: false,
            methods: Vec::new(),
            tests: Vec::new(),
            scheme: None,
            when: None,
            action,
            settings: SharedSettings::default(),
            admission: Admission::default(),
        }
    }

    /// Admits the rule to what its action leads to, or closes it, by the result of judging its place.
    pub(crate) fn admit(&mut self, judged: JudgedPlace) {
        self.admission = judged.admission();
        if judged.closes() {
            self.settings.access = Access::Unsaid;
        }
    }

    /// Adds tests that requests must also pass.
    pub(crate) fn add_tests(&mut self, tests: &[String]) {
        let mut new = tests.to_vec();
        new.retain(|test| !self.tests.contains(test));
        self.tests.extend(new);
    }

    /// Whether the rule decides about all requests for its paths, by any scheme and method and for any host.
    pub(crate) fn is_unconditional(&self) -> bool {
        let takes_all = self.methods.is_empty() && self.tests.is_empty();
        self.scheme.is_none() && self.when.is_none() && takes_all
    }

    /// Whether the rule decides about requests with GET.
    pub(crate) fn takes_get(&self) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|it| it == "GET")
    }

    /// Whether the rule answers no request as the source would.
    pub(crate) fn is_closed(&self) -> bool {
        self.action == Action::Closed || self.settings.access == Access::Unsaid
    }

    /// Whether the rule's action, fields or cookies contain a part of the path that depends on its matcher, such as a group.
    fn depends_on_matcher(&self) -> bool {
        if self.action.rewrites() {
            return true;
        }
        let is_part = |text: &String| match &self.matcher {
            Matcher::Expression(expression) => expression.is_named_in(text),
            _ => text.contains("{rest"),
        };
        let fields = [
            &self.settings.request_fields,
            &self.settings.response_fields,
            &self.settings.success_fields,
        ];
        let of_fields = fields
            .into_iter()
            .flat_map(|changes| changes.set.values().chain(changes.add.values()));
        let of_cookies = ["cookie_domain", "cookie_path"].map(|key| self.settings.keys.get(key));
        let mut values = of_fields.chain(of_cookies.into_iter().flatten());
        match &self.action {
            Action::Redirect { to, .. } if is_part(to) => true,
            _ => values.any(is_part),
        }
    }

    /// The same rule for fewer paths. A rewrite or redirect then includes the part of the path that the narrower
    /// prefix adds.
    pub(crate) fn narrowed(&self, to: Matcher) -> Self {
        let mut rule = Self {
            matcher: to,
            ..self.clone()
        };
        // The front can rewrite only paths of a prefix or an expression, and this rewrite changes no path.
        if let Matcher::Prefix(outer) = &self.matcher
            && !matches!(rule.matcher, Matcher::Prefix(_))
            && rule.action.keeps_path(outer)
        {
            rule.action.forget_rewrite();
        }
        let changes_kind = self.matcher.is_expression() != rule.matcher.is_expression();
        if changes_kind && rule.depends_on_matcher() {
            // What the action or fields name of the old matcher, the new one does not have.
            rule.action = Action::Closed;
            return rule;
        }
        let (outer, inner) = match (&self.matcher, &rule.matcher) {
            (Matcher::Prefix(outer), Matcher::Prefix(inner)) => (outer, inner),
            (Matcher::Prefix(outer), Matcher::Exact(inner))
                if matches!(rule.action, Action::Forward { .. }) =>
            {
                (outer, inner)
            }
            _ => return rule,
        };
        let Some(added) = inner.strip_prefix(outer.as_str()) else {
            return rule;
        };
        if let Some(rewrite) = rule.action.rewrite_mut() {
            let joined = format!("{}{added}", rewrite.trim_end_matches('/'));
            *rewrite = if joined.is_empty() {
                "/".to_owned()
            } else {
                joined
            };
        }
        // `{rest}` is what follows the prefix: behind the longer prefix it lacks `added`.
        if let Action::Redirect { to, .. } = &mut rule.action {
            *to = to.replace("{rest", &format!("{added}{{rest"));
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
    for mut rule in rules.drain(..) {
        match rule.matcher.common(matcher) {
            Common::Nothing => {}
            Common::Set(common) if common == rule.matcher => change(&mut rule),
            Common::Set(common) => {
                let mut changed = rule.narrowed(common);
                change(&mut changed);
                // It must decide before the rule for the other paths, which also contains its own.
                next.push(changed);
            }
            Common::Unsaid => whole(&mut rule),
        }
        next.push(rule);
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
        self.upstreams.iter().any(|upstream| {
            let of_backends = upstream.backends.iter().map(|backend| &backend.keys);
            let mut tables = of_backends.chain([&upstream.keys]);
            tables.any(|keys| keys.contains_key("secret"))
        })
    }

    /// Closes all rules that admit only some networks, because clients' addresses are unknown.
    pub(crate) fn hide_networks(&mut self) {
        let rules = self.hosts.iter_mut().flat_map(|it| &mut it.rules);
        for rule in rules {
            if matches!(rule.settings.access, Access::Clients(_)) {
                rule.settings.access = Access::Unsaid;
            }
        }
    }

    /// Closes all rules that lead to a backend or to files and were not admitted.
    pub(crate) fn close_unjudged(&mut self, ledger: &mut Ledger) {
        let rules = self.hosts.iter_mut().flat_map(|it| &mut it.rules);
        for rule in rules {
            let place_use = rule.action.place_use();
            let opens = place_use.forwards || place_use.serves;
            if opens && !rule.admission.is_given() {
                rule.action = Action::Closed;
                let text = "no reader judged what is in force here: it is closed";
                ledger.say(Weight::Risk, rule.place.clone(), text);
            }
        }
    }

    /// Closes, on each listener, the hosts that no virtual host names, if the source may serve them by another
    /// virtual host than the default one: by an expression, or by a name that no route can have.
    pub(crate) fn close_unsayable(&mut self, ledger: &mut Ledger) {
        for listener in 0..self.listeners.len() {
            let others = self.hosts.iter().filter(|host| {
                host.listeners.contains(&listener) && !host.default_on.contains(&listener)
            });
            let ids: Vec<Id> = others.flat_map(|host| host.unsayable.clone()).collect();
            let Some(&first) = ids.first() else { continue };
            let place = ledger.place(first).clone();
            for id in ids {
                let text = "a route cannot have such a host name: write out each name that clients use. Until then \
                            hosts that no virtual host names are answered 403 on this listener";
                ledger.unmapped(id, text);
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

    /// The index of an upstream. If there is no equal one, it is added, with a name that is still free.
    pub(crate) fn upstream(&mut self, upstream: Upstream) -> usize {
        let mut content = upstream.clone();
        content.name.clear();
        for backend in &mut content.backends {
            backend.place = None;
        }
        if let Some(&known) = self.known.get(&content) {
            return known;
        }
        let index = self.upstreams.len();
        self.known.insert(content, index);
        let name = self.free_name(&table_name(&upstream.name));
        let mut named = Upstream { name, ..upstream };
        name_twins(&mut named.backends);
        self.upstreams.push(named);
        index
    }

    /// The name itself, or with the next number that is free. The name is then taken.
    fn free_name(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        // Another upstream may already have a name such as `a-2`.
        while self.names.contains_key(&name) {
            let count = self.names.entry(base.to_owned()).or_default();
            *count += 1;
            name = format!("{base}-{count}");
        }
        self.names.insert(name.clone(), 1);
        name
    }
}

/// Names the backends that have no name and the URL of an earlier one: `URL#2`, `URL#3` and so on. Without a name, a
/// backend is called by its URL, so two of them would have the same name.
fn name_twins(backends: &mut [Backend]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for backend in backends {
        if backend.keys.contains_key("name") {
            continue;
        }
        let count = counts.entry(backend.url.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let name = quoted(&format!("{}#{count}", backend.url));
            backend.keys.insert("name".to_owned(), name);
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
    let is_valid = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let valid = name.replace(|sign: char| !is_valid(sign), "-");
    match valid.trim_matches('-') {
        "" => "backend".to_owned(),
        trimmed => trimmed.chars().take(NAME_MAX).collect(),
    }
}

/// Keys with lists of tables, of which the first that fits counts. Those of a deeper section come after the others.
const LISTS: [&str; 2] = ["cookie_domain", "cookie_path"];

/// A host name that no virtual host has.
pub(crate) const UNKNOWN_HOST: &str = "unknown.invalid";

const NAME_MAX: usize = 60;

#[cfg(test)]
mod tests;
