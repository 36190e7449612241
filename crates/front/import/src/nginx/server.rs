//! Servers of nginx: their names, and the order in which nginx chooses a location.
//!
//! A location with `=` comes first. Otherwise nginx finds the longest prefix; unless that has `^~`, the first
//! expression that matches overrides it. Prefixes are compared as texts, not by segments.

mod asking;

use std::borrow::Cow;

use crate::condition::Port;
use crate::directive::{Directive, close_all, drop_all, keep_all};
use crate::expression::translated;
use crate::judge::PlaceUse;
use crate::ledger::{Id, Ledger, LedgerKeeper};
use crate::matcher::{MERGED, Matcher};
use crate::mod_jk::mounts::join_prefixes;
use crate::nginx::answer::TextType;
use crate::nginx::certificates::certificate_key;
use crate::nginx::conditions::{ConditionContext, Conditions, claim, replaces_captures};
use crate::nginx::default_scheme;
use crate::nginx::expires::give_lifetime;
use crate::nginx::fields::response_fields;
use crate::nginx::files::{MissingRule, give_types, missing, serve};
use crate::nginx::guards::{OrderedGuards, guarded};
use crate::nginx::jumps::{self, ErrorJump, Jump};
use crate::nginx::leaps::Leap;
use crate::nginx::limits;
use crate::nginx::listen::{Addresses, Listens, proxy_directive, reject_handshakes, senders};
use crate::nginx::location::{
    self, LocationTargets, Scope, access, action, drop_needless, drop_unused, is_uneven, modifier,
    settings,
};
use crate::nginx::logs;
use crate::nginx::names::{leave_nameless, nameless, names};
use crate::nginx::nested;
use crate::nginx::pages::{PageServer, Pages};
use crate::nginx::request_tests::{self, Choices, VERSIONS_MAX, uses, with_value};
use crate::nginx::reverse;
use crate::nginx::rewrite;
use crate::nginx::slashes::{LocationRules, slashes};
use crate::nginx::splits;
use crate::nginx::tree::Expansion;
use crate::nginx::upstream::{self, Upstreams};
use crate::nginx::variables::{constants, filled, without_redefined};
use crate::plan::{Access, Action, Keys, Plan, Rule, Settings, SharedSettings, VirtualHost};

/// Converts the directives of nginx into the plan.
pub(crate) fn convert(
    top: &[Directive],
    expansion: &mut Expansion<'_>,
    plan: &mut Plan,
    vhosts: &[String],
) {
    let settled = default_scheme::settled(top, expansion.ledger);
    let renamed = without_redefined(settled.as_deref().unwrap_or(top));
    let top = renamed.as_deref().or(settled.as_deref()).unwrap_or(top);
    let http: Vec<&Directive> = top.iter().filter(|it| it.name == "http").collect();
    http.iter().for_each(|it| expansion.ledger.mapped(it.id));
    let all: Vec<&Directive> = if http.is_empty() {
        top.iter().collect()
    } else {
        http.iter().flat_map(|it| it.inside()).collect()
    };
    let is_block = |it: &&&Directive| matches!(it.name.as_str(), "server" | "upstream");
    // The servers inherit all directives outside of them.
    let outer: Vec<Directive> = all
        .iter()
        .filter(|it| !is_block(it) && !splits::is_changed(it, top))
        .map(|&it| it.clone())
        .collect();
    drop_outer(top, &outer, expansion.ledger);
    plan.log = logs::keys(top, expansion.ledger);
    let blocks = all.iter().filter(|it| it.name == "upstream");
    let upstreams: Upstreams = blocks
        .map(|it| (it.word(0).to_owned(), upstream::read(it, expansion.ledger)))
        .collect();
    let servers = || all.iter().filter(|it| it.name == "server").copied();
    let addresses = Addresses::new(servers());
    let proxy = proxy_directive(all.iter().copied());
    for server in servers() {
        let mut reader = ServerReader {
            expansion,
            pages: Pages::default(),
            plan,
            upstreams: &upstreams,
            outer: &outer,
            addresses: &addresses,
            proxy,
            last_settings: SharedSettings::default(),
        };
        reader.server(server, vhosts);
    }
    let asked = location::addresses(top);
    expansion.ledger.address_guards.enter(asked, REMEDY);
    reject_handshakes(plan, expansion.ledger);
    senders(servers(), &outer, plan, expansion.ledger);
    settle_claims(top, plan, expansion.ledger);
    leave_nameless(plan, expansion.ledger);
    add_missing(plan);
    let rest: Vec<&Directive> = outer
        .iter()
        .chain(servers().flat_map(Directive::inside))
        .collect();
    drop_unused(&rest, expansion.ledger);
}

/// Drops directives outside of servers that need no counterpart, and marks the `map`s that were read.
fn drop_outer(top: &[Directive], outer: &[Directive], ledger: &mut Ledger) {
    drop_needless(top, ledger);
    drop_needless(outer, ledger);
    let is_upgrade = |it: &&Directive| it.name == "map" && it.word(1) == "$connection_upgrade";
    let choices = request_tests::choices(&[], &[], outer);
    let is_choice = |it: &&Directive| {
        let name = it.word(1).trim_start_matches('$');
        it.name == "map" && choices.contains_key(name)
    };
    for directive in outer.iter().filter(|it| is_upgrade(it) || is_choice(it)) {
        ledger.mapped(directive.id);
    }
    for directive in top.iter().filter(|it| it.name == "events") {
        drop_needless(directive.inside(), ledger);
    }
}

/// Reports directives that believe a proxy before nginx; they are a risk if no proxy is trusted.
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

/// Adds a listener on port 80 and a host without rules, as far as the plan has none, so that the file is valid.
/// Requests of such a host go to the old server, or are answered 404.
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

struct ServerReader<'a, 'e> {
    expansion: &'a mut Expansion<'e>,
    pages: Pages,
    plan: &'a mut Plan,
    upstreams: &'a Upstreams,
    outer: &'a [Directive],
    addresses: &'a Addresses,
    /// A directive of any server by which nginx believes a proxy before it; `None` if there is none.
    proxy: Option<&'a Directive>,
    /// The settings of the previous location, which are shared if they are equal: most locations have the same.
    last_settings: SharedSettings,
}

/// The paths of a location.
#[derive(Clone, Copy)]
struct LocationPaths<'s> {
    matchers: &'s [Matcher],
    path: Option<&'s str>,
}

/// A server's block, and what is known about it.
#[derive(Clone, Copy)]
struct Server<'s> {
    inner: &'s [Directive],
    /// The directives that locations inherit: all but the locations, because there may be very many.
    plain: &'s [Directive],
    /// The directives that all servers inherit.
    outer: &'s [Directive],
    /// The variables that have one of a few known values outside of locations.
    choices: &'s Choices,
    ports: &'s [Port],
}

impl LedgerKeeper for ServerReader<'_, '_> {
    fn ledger(&mut self) -> &mut Ledger {
        self.expansion.ledger
    }
}

impl ServerReader<'_, '_> {
    /// Converts one `server` block into a virtual host.
    fn server(&mut self, server: &Directive, vhosts: &[String]) {
        let constants = constants(server.inside(), self.outer, self.expansion.ledger);
        let with_constants = filled(server.inside(), &constants);
        let unnested = nested::unnested(&with_constants);
        let inner = unnested.as_deref().unwrap_or(&with_constants);
        let (names, unsayable) = names(inner, self.expansion.ledger);
        if !vhosts.is_empty() && !names.iter().any(|it| vhosts.contains(it)) {
            let reason = "`--vhost` leaves its server out";
            self.expansion.ledger.dropped(server.id, reason);
            return drop_all(inner, reason, self.expansion.ledger);
        }
        let host = VirtualHost {
            place: Some(self.expansion.ledger.place(server.id).clone()),
            names,
            unsayable,
            nameless: nameless(server, inner),
            ..VirtualHost::default()
        };
        self.in_place(|reader| reader.add_host(server, inner, &constants, host));
    }

    /// Adds the virtual host of a `server` block, with its listeners and rules. `inner` are the directives of the block
    /// with the values of its `constants`.
    fn add_host(
        &mut self,
        server: &Directive,
        inner: &[Directive],
        constants: &[(String, String)],
        mut host: VirtualHost,
    ) {
        self.expansion.ledger.mapped(server.id);
        drop_needless(inner, self.expansion.ledger);
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
        let outer = filled(self.outer, constants);
        host.rules = self.rules(Server {
            inner,
            plain: &plain,
            outer: &outer,
            choices: &request_tests::choices(&[], &plain, &outer),
            ports: &ports,
        });
        self.keep_slashes(inner, &mut host.rules);
        if is_hidden {
            let text = "the front cannot tell its address from other addresses with the same port";
            self.expansion.ledger.unmapped(server.id, text);
            self.expansion.ledger.address_guards.void_all();
            let rules = host.rules.iter_mut();
            rules.for_each(|it| it.settings.access = Access::Unsaid);
        }
        self.plan.hosts.push(host);
    }

    /// If `merge_slashes` is off and a rule names several slashes in a row, closes the server.
    fn keep_slashes(&mut self, inner: &[Directive], rules: &mut [Rule]) {
        let mut all = inner.iter().chain(self.outer);
        let merge = all.find(|it| it.name == "merge_slashes");
        let is_asked = rules.iter().any(|it| it.matcher.names_slashes());
        if let Some(merge) = merge.filter(|it| it.word(0) == "off" && is_asked) {
            self.expansion.ledger.unmapped(merge.id, MERGED);
            rules
                .iter_mut()
                .for_each(|it| it.settings.access = Access::Unsaid);
        }
    }

    /// The rules of a server, in the order in which nginx decides.
    fn rules(&mut self, server: Server<'_>) -> Vec<Rule> {
        let (mut rules, guards) = self.before_locations(server);
        let mut prefixes: Vec<LocationRules> = Vec::new();
        let (mut exact, mut expressions) = (Vec::new(), Vec::new());
        for location in server.inner.iter().filter(|it| it.name == "location") {
            let Some((modifier, text)) = modifier(&location.words) else {
                let text = "a location of this form was not converted";
                self.expansion.ledger.unmapped(location.id, text);
                keep_all(location.inside(), text, self.expansion.ledger);
                continue;
            };
            match modifier {
                // A pattern would take these signs for wildcards.
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
                // A named location is read where it is named.
                _ if text.starts_with('@') => {}
                _ => {
                    // Nested expressions close the location, and nginx asks them before all other expressions.
                    let mut inside = location.inside().iter();
                    let is_firm = modifier == "^~" || inside.any(|it| it.name == "location");
                    let found = self.prefix(location, text, is_firm, server);
                    prefixes.push((text.to_owned(), is_firm, found));
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
        let slashes = slashes(&prefixes, &exact, server.inner);
        rules.extend(slashes);
        ordered(prefixes, expressions, &mut rules);
        join_prefixes(&mut rules, self.expansion.ledger);
        guards.guard(rules, |guard| guard.of_rest(Matcher::everything()))
    }

    /// The rules of a server that precede its locations, with the fields that it adds to its answers, and its guards.
    /// They are closed if the server has a directive that may refuse requests before it executes them.
    fn before_locations(&mut self, server: Server<'_>) -> (Vec<Rule>, OrderedGuards) {
        let scope = Scope {
            blocks: &[server.plain, server.outer],
            expression: None,
            upstreams: self.upstreams,
        };
        let text_type = TextType::of(scope, None);
        let ledger = &mut *self.expansion.ledger;
        let (mut rules, guards) = rewrite::of_server(
            server.inner,
            text_type,
            server.ports,
            server.choices,
            ledger,
        );
        if !rules.is_empty() {
            let mut own = Settings::default();
            ledger.in_place(|ledger| {
                response_fields(scope, server.port(), &mut own, ledger);
                own.keys.extend(certificate_key(scope, ledger));
                if jumps::closes(scope, ledger) {
                    own.access = Access::Unsaid;
                }
            });
            let shared = SharedSettings::from(own);
            rules.iter_mut().for_each(|it| it.settings = shared.clone());
        }
        (rules, guards)
    }

    /// The rules of a location, for these paths.
    fn location(
        &mut self,
        location: &Directive,
        matchers: &[Matcher],
        path: Option<&str>,
        server: Server<'_>,
    ) -> Vec<Rule> {
        let choices = server.choices_in(location.inside());
        let names: Vec<&String> = choices.keys().collect();
        let found = LocationPaths { matchers, path };
        self.versions(location, &choices, &names, found, server)
    }

    /// The rules of a location. For each value of the first variable of `names` that it uses there are rules with
    /// tests for that value; the last rules are for all other requests.
    fn versions(
        &mut self,
        location: &Directive,
        choices: &Choices,
        names: &[&String],
        found: LocationPaths<'_>,
        server: Server<'_>,
    ) -> Vec<Rule> {
        let blocks = [location.inside(), server.plain, server.outer];
        let is_used = |name: &&String| {
            let is_short = choices[*name].entries.len() <= VERSIONS_MAX;
            is_short && blocks.iter().any(|block| uses(block, name))
        };
        let Some(at) = names.iter().position(is_used) else {
            return self.converted(location, choices, found, server);
        };
        let choice = &choices[names[at]];
        let entries = choice.entries.iter();
        let of_tests = entries.map(|(test, value)| (std::slice::from_ref(test), value));
        let mut rules = Vec::new();
        for (tests, value) in of_tests.chain([(&[][..], &choice.otherwise)]) {
            let [own, plain, outer] = blocks.map(|block| with_value(block, names[at], value));
            let version = Directive {
                inner: Some(own),
                ..location.clone()
            };
            let server = Server {
                plain: &plain,
                outer: &outer,
                ..server
            };
            let mut own_rules = self.versions(&version, choices, &names[at + 1..], found, server);
            own_rules.iter_mut().for_each(|it| it.add_tests(tests));
            rules.extend(own_rules);
        }
        rules
    }

    /// The rules of a location in which each variable has one value.
    fn converted(
        &mut self,
        location: &Directive,
        choices: &Choices,
        found: LocationPaths<'_>,
        server: Server<'_>,
    ) -> Vec<Rule> {
        let matchers = found.matchers;
        let inner = location.inside();
        self.expansion.ledger.mapped(location.id);
        drop_needless(inner, self.expansion.ledger);
        let blocks = [inner, server.plain, server.outer];
        let scope = Scope {
            blocks: &blocks,
            expression: match matchers {
                [Matcher::Expression(expression)] if !replaces_captures(inner) => Some(expression),
                _ => None,
            },
            upstreams: self.upstreams,
        };
        if let Some(rules) = self.jumped(location, scope, matchers, server) {
            return rules;
        }
        let rules =
            self.in_place(|reader| reader.judged(scope, location.id, choices, found, server));
        if rules.iter().all(Rule::is_closed) {
            close_all([location], self.expansion.ledger);
        }
        rules
    }

    /// The rules of the location with this scope, which is judged.
    fn judged(
        &mut self,
        scope: Scope<'_>,
        location: Id,
        choices: &Choices,
        found: LocationPaths<'_>,
        server: Server<'_>,
    ) -> Vec<Rule> {
        let LocationPaths { matchers, path } = found;
        let place = self.expansion.ledger.place(location).clone();
        let ledger = &mut *self.expansion.ledger;
        let mut settled = settings(scope, server.port(), ledger);
        reverse::urls(scope, path, server.port(), &mut settled, ledger);
        settled.access = access(scope, ledger);
        limits::add(scope, &mut settled, self.plan, ledger);
        self.sign_on(scope, server, &mut settled);
        settled.pages = self.pages(scope, server);
        let context = ConditionContext {
            path,
            ports: server.ports,
            choices,
        };
        let conditions = Conditions::read(scope, context, self.expansion.ledger);
        if conditions.is_strange {
            settled.access = Access::Unsaid;
        }
        let named = self.named(scope.own("try_files"), server, &mut settled);
        let is_left = settled.access == Access::Unsaid;
        let settled = SharedSettings::like(settled, &mut self.last_settings);
        let mut rules: Vec<Rule> = Vec::new();
        for matcher in matchers {
            let narrowed = |condition: &Rule| {
                let mut rule = condition.narrowed(matcher.clone());
                rule.settings = settled.clone();
                rule
            };
            let mut found: Vec<Rule> = conditions.rules.iter().map(narrowed).collect();
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
            give_lifetime(&mut rule, scope, self.expansion.ledger);
            found.push(rule.clone());
            let found = conditions.guards.guard(found, |guard| guard.beside(&rule));
            // Other methods are in the location of the limit before any `if` or `return` is asked.
            rules.extend(guarded(found, &rule, &conditions.limits));
        }
        self.admit(&mut rules, scope, is_left);
        rules
    }

    /// The rules of a location whose `return` an `error_page` leads elsewhere; `None` if there is no such one.
    fn jumped(
        &mut self,
        location: &Directive,
        scope: Scope<'_>,
        matchers: &[Matcher],
        server: Server<'_>,
    ) -> Option<Vec<Rule>> {
        let jump = ErrorJump::read(scope)?;
        let ledger = &mut *self.expansion.ledger;
        let target = jump.target(scope, server.inner, server.port(), ledger)?;
        let closes = ledger.in_place(|ledger| jumps::closes(scope, ledger));
        jump.ids().iter().for_each(|it| ledger.mapped(*it));
        for directive in location.inside() {
            let text = "the location answers by `return` before it is asked";
            ledger.dropped_if_open(directive.id, text);
        }
        let (action, settings) = match target {
            _ if closes => (Action::Closed, SharedSettings::default()),
            Jump::Named(named) => return Some(self.location(named, matchers, None, server)),
            Jump::Action(action, settings) => (action, settings),
        };
        let place = ledger.place(location.id).clone();
        let rule = |matcher: &Matcher| {
            let mut rule = Rule::new(Some(&place), matcher.clone(), action.clone());
            rule.settings = settings.clone();
            rule
        };
        Some(matchers.iter().map(rule).collect())
    }

    /// Judges the place that was read, and admits its rules or closes them. `is_left` says that its guards are
    /// already left to the old server.
    fn admit(&mut self, rules: &mut [Rule], scope: Scope<'_>, is_left: bool) {
        let ledger = &mut *self.expansion.ledger;
        let uses = rules.iter().map(|it| it.action.place_use());
        let mut place_use = uses.fold(PlaceUse::default(), PlaceUse::or);
        // If a named location passes requests on, that location was judged for it.
        place_use.forwards &= scope.own("proxy_pass").is_some();
        let judged = location::judge(scope, place_use, ledger);
        rules.iter_mut().for_each(|it| it.admit(judged));
        if is_left || judged.closes() {
            location::leave_guards(scope, ledger);
        }
    }

    /// The keys for a block's error pages, each looked up once for the whole server.
    fn pages(&mut self, scope: Scope<'_>, server: Server<'_>) -> Keys {
        let server = PageServer {
            inner: server.inner,
            files: self.expansion.files,
        };
        self.pages.keys(scope, server, self.expansion.ledger)
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
        // Both locations may restrict clients. Only one of two restrictions can be kept, so if both do, the place is
        // closed.
        let mine = std::mem::take(&mut settled.access);
        let asked = settled.sign_on.clone();
        // Only the named location passes requests on.
        settled.forget_additions(&rule.settings);
        settled.merge(&Settings {
            access: Access::Open,
            ..(*rule.settings).clone()
        });
        // Its own request fields do not matter, because only the named location passes requests on.
        settled.request_fields = rule.settings.request_fields.clone();
        let theirs = rule.settings.access.clone();
        settled.access = match (mine, theirs) {
            (Access::Open, other) | (other, Access::Open) => other,
            (one, two) if one == two => one,
            _ => Access::Unsaid,
        };
        // nginx asks both, and a route has one.
        let asks_two = match (&asked, &settled.sign_on) {
            (Some(one), Some(other)) => !self.plan.sign_ons.ask_alike(one, other),
            (asked, _) => asked.is_some(),
        };
        if !found.is_empty() || asks_two {
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

    /// The rules of a location that is a prefix. `is_firm` says that nginx asks no expressions after it.
    fn prefix(
        &mut self,
        location: &Directive,
        text: &str,
        is_firm: bool,
        server: Server<'_>,
    ) -> Vec<Rule> {
        let exact = match text {
            "/" => Matcher::everything(),
            text => Matcher::pattern(&format!("{text}*")),
        };
        let is_uneven = is_uneven(location, text);
        let mut matchers = Vec::new();
        if is_uneven && (is_firm || !server.asks_expression(text)) {
            matchers.push(Matcher::Exact(text.to_owned()));
        }
        if text.ends_with('/') {
            matchers.push(exact);
            return self.location(location, &matchers, Some(text), server);
        }
        // A prefix is a text in nginx, and a number of whole segments in the front.
        matchers.push(Matcher::prefix(text));
        let mut rules = self.location(location, &matchers, Some(text), server);
        if rules.iter_mut().all(|it| it.action.rewrite_mut().is_none()) {
            // A rule of one path stays one.
            let of_prefix = |it: &&mut Rule| !matches!(it.matcher, Matcher::Exact(_));
            for rule in rules.iter_mut().filter(of_prefix) {
                rule.matcher = exact.clone();
            }
            return rules;
        }
        let is_kept = |it: &Rule| it.action.keeps_path(text) || it.action.upstream().is_none();
        if !is_uneven && rules.iter().all(is_kept) {
            let of_prefix = |it: &&Rule| !matches!(it.matcher, Matcher::Exact(_));
            let copied: Vec<Rule> = rules.iter().filter(of_prefix).cloned().collect();
            for mut rule in copied {
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

    /// The rules of a location that is an expression.
    fn expression(
        &mut self,
        location: &Directive,
        text: &str,
        ignores_case: bool,
        server: Server<'_>,
    ) -> Vec<Rule> {
        if let Some(leap) = Leap::read(location, server.inner, server.outer) {
            let whole = [Matcher::everything()];
            let reached = self.location(leap.target, &whole, Some("/"), server);
            if let Some(rules) = leap.rules(reached, self.expansion.ledger) {
                return rules;
            }
        }
        let expression = translated(text, ignores_case);
        let is_exact = expression.is_exact;
        let matcher = Matcher::Expression(expression);
        let rules = self.location(location, std::slice::from_ref(&matcher), None, server);
        if is_exact {
            return rules;
        }
        let ledger = &mut *self.expansion.ledger;
        ledger.unmapped(location.id, NO_EXPRESSION);
        close_all([location], ledger);
        let place = ledger.place(location.id).clone();
        vec![Rule::new(Some(&place), matcher, Action::Closed)]
    }

    /// The rule of the server outside its locations, for all paths; it takes the place of `location /`.
    fn whole(&mut self, server: Server<'_>) -> Vec<Rule> {
        let blocks = [server.plain, server.outer];
        let scope = Scope {
            blocks: &blocks,
            expression: None,
            upstreams: self.upstreams,
        };
        self.in_place(|reader| reader.judged_whole(scope, server))
    }

    /// The rule of [`Self::whole`] with this scope, which is judged.
    fn judged_whole(&mut self, scope: Scope<'_>, server: Server<'_>) -> Vec<Rule> {
        claim(scope, &[], server.choices, self.expansion.ledger);
        let ledger = &mut *self.expansion.ledger;
        let mut settled = settings(scope, server.port(), ledger);
        settled.access = access(scope, ledger);
        limits::add(scope, &mut settled, self.plan, ledger);
        self.sign_on(scope, server, &mut settled);
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
        let (files, ledger) = (self.expansion.files, &mut *self.expansion.ledger);
        let action = serve(scope, &matcher, Some("/"), named, files, ledger);
        let mut rule = Rule::new(None, matcher, action);
        rule.settings = settled.into();
        give_types(&mut rule, scope, self.expansion.ledger);
        give_lifetime(&mut rule, scope, self.expansion.ledger);
        let mut rules = vec![rule];
        self.admit(&mut rules, scope, is_left);
        rules
    }
}

impl Server<'_> {
    /// The variables that have one of a few known values (from `map`, `set` and `valid_referers`), as a location with
    /// the directives `inner` sees them.
    fn choices_in(&self, inner: &[Directive]) -> Cow<'_, Choices> {
        if inner.iter().any(request_tests::changes_choices) {
            Cow::Owned(request_tests::choices(inner, self.plain, self.outer))
        } else {
            Cow::Borrowed(self.choices)
        }
    }

    /// Whether the expression of a location matches this path.
    fn asks_expression(&self, path: &str) -> bool {
        let locations = self.inner.iter().filter(|it| it.name == "location");
        let mut modifiers = locations.filter_map(|it| modifier(&it.words));
        modifiers.any(|(sign, text)| match sign {
            "~" | "~*" => translated(text, sign == "~*").has(path),
            _ => false,
        })
    }

    /// The value of `$server_port`.
    fn port(&self) -> u16 {
        self.ports.first().map_or(80, |it| it.0)
    }
}

/// Adds the rules in nginx's order: the longest prefix first, which yields to expressions unless it has `^~`. An exact
/// path among them is one that no expression matches.
fn ordered(mut prefixes: Vec<LocationRules>, expressions: Vec<Rule>, rules: &mut Vec<Rule>) {
    prefixes.sort_by_key(|it| std::cmp::Reverse(it.0.len()));
    // The front would prefer the rule of one path to an expression, which decides about that path in nginx.
    let is_taken = |rule: &Rule| match &rule.matcher {
        Matcher::Exact(path) => expressions.iter().any(|it| it.matcher.has(path)),
        _ => false,
    };
    for (_, is_firm, mut found) in prefixes {
        found.retain(|it| is_firm || !is_taken(it));
        let yields = |it: &Rule| !is_firm && !matches!(it.matcher, Matcher::Exact(_));
        found.iter_mut().for_each(|it| it.yields = yields(it));
        rules.extend(found);
    }
    rules.extend(expressions);
}

/// The nginx directives by which the old server learns clients' addresses behind the front.
const REMEDY: &str = "`real_ip_header X-Forwarded-For` and `set_real_ip_from 127.0.0.1`";

const NO_PATTERN: &str = "routes cannot express its path";

const NO_EXPRESSION: &str = "its expression has a part that routes do not have, such as a look-around, a back-reference or a \
    possessive repetition";

/// The risk for rules that test the scheme that a proxy before the source reports.
const PROXY_BEFORE: &str = "it uses what a proxy before this server says of the scheme (X-Forwarded-Proto): name that \
    proxy's address in `trusted_proxies` of [server], or the front ignores what it says";
