//! Applies sections such as `<Location>` to the rules of a host.

use crate::compress;
use crate::condition::Scheme;
use crate::directive::{Directive, close_all, drop_all, keep_all, part_all};
use crate::httpd::access::{self, Guards};
use crate::httpd::connection::Connections;
use crate::httpd::files::Site;
use crate::httpd::sign_on::SignOnReader;
use crate::httpd::variables::sets;
use crate::httpd::{expressions, fields, processing, proxy, redirect};
use crate::judge::{self, PlaceUse};
use crate::ledger::{Id, Ledger, LedgerKeeper as _, Place, Weight};
use crate::matcher::{Common, Matcher};
use crate::methods;
use crate::passwords::EITHER;
use crate::plan::{Access, Action, Fields, Plan, Rule, Satisfy, Settings, SharedSettings};
use crate::target::OWN_HOST;
use crate::toml_text::quoted;

/// Applies a section to the rules for its paths, and reports it. If the paths cannot be expressed exactly, only what is
/// safe for other paths is applied ([`SectionLayer::blur`]).
pub(crate) fn overlay(
    section: &Directive,
    rules: &mut Vec<Rule>,
    plan: &mut Plan,
    ledger: &mut Ledger,
) {
    let text = section.words.last().map_or("", String::as_str);
    let (matchers, is_exact) = match section.name.as_str() {
        "location" if section.words.len() == 1 => location(text),
        "location" | "locationmatch" => {
            let set = expressions::paths(text, false);
            (set.matchers, set.is_exact)
        }
        _ => return overlay_other(section, rules, ledger),
    };
    let mut layer = SectionLayer::read(section.inside(), &matchers, rules, plan, ledger);
    if is_exact {
        ledger.mapped(section.id);
    } else {
        layer.blur();
        if layer.guards.is_some() {
            ledger.unmapped(section.id, "routes cannot express its regular expression");
        } else {
            let text =
                "routes cannot express its regular expression, and its settings were left out";
            ledger.risk(section.id, text);
        }
    }
    if layer.guards.joined() == Access::Unsaid {
        close_all([section], ledger);
    }
    if layer.is_nothing() {
        return;
    }
    let place = ledger.place(section.id).clone();
    let mut is_inexact = !is_exact;
    for matcher in &matchers {
        is_inexact |= layer.lay(matcher, &place, rules);
    }
    if is_inexact {
        ledger
            .address_guards
            .void(access::addresses(section.inside()));
    }
}

/// What the rules for these paths do with requests, which decides which directives of a section about them matter.
fn use_by(rules: &[Rule], matchers: &[Matcher]) -> PlaceUse {
    let mut place_use = PlaceUse::default();
    for rule in rules {
        let with_rule = place_use.or(rule.action.place_use());
        // Comparing the paths takes long.
        if with_rule != place_use && matchers.iter().any(|it| it.overlaps(&rule.matcher)) {
            place_use = with_rule;
        }
    }
    place_use
}

/// The settings of a section for header fields, bodies and compression.
fn of_section(inner: &[Directive], ledger: &mut Ledger) -> SharedSettings {
    let mut settings = fields::settings(inner, None, ledger);
    settings.keys.extend(compress::of_httpd(inner, ledger));
    settings.into()
}

/// The part of a section's settings that may be applied to paths outside of it: fields that it sets are removed from
/// requests, so that clients cannot set them.
fn vague(settings: &SharedSettings) -> SharedSettings {
    let mut applicable = Settings::default();
    // Clients cannot choose the backend's own name either.
    if settings.sent_host.is_some() {
        applicable.sent_host = Some(OWN_HOST.to_owned());
    }
    let fields = &mut applicable.request_fields;
    fields.lose_all(&settings.request_fields);
    applicable.into()
}

/// Whether settings restrict clients, so that paths must be closed if the settings are lost: they ask for
/// certificates, or set response fields that forbid something.
fn has_guard(settings: &Settings) -> bool {
    let tables = [&settings.response_fields, &settings.always_fields];
    let mut fields = tables.into_iter().flat_map(Fields::names);
    settings.keys.contains_key("client_certificate") || fields.any(|it| !judge::can_be_lost(it))
}

/// Makes rules use upstreams with the `Host` of their section, unless the upstream sets one already.
pub(crate) fn call_by_host(rules: &mut [Rule], plan: &mut Plan) {
    for rule in rules {
        let Action::Forward { upstream, .. } = &mut rule.action else {
            continue;
        };
        let own = &plan.upstreams[*upstream];
        let Some(sent_host) = &rule.settings.sent_host else {
            continue;
        };
        if own.keys.contains_key("host") {
            continue;
        }
        // A Unix socket has no host.
        let has_socket = own.backends.iter().any(|it| it.url.contains("+unix:"));
        let host = match sent_host.as_str() {
            OWN_HOST if has_socket => "localhost",
            other => other,
        };
        let mut with_host = own.clone();
        with_host.keys.insert("host".to_owned(), quoted(host));
        *upstream = plan.upstream(with_host);
    }
}

/// The changes of a section to the rules for its paths.
struct SectionLayer {
    change: SharedSettings,
    guards: Guards,
    answer: Option<Action>,
}

impl SectionLayer {
    /// Reads the directives of a section for these paths, and judges its place. `rules` tell what the place does.
    fn read(
        inner: &[Directive],
        matchers: &[Matcher],
        rules: &[Rule],
        plan: &mut Plan,
        ledger: &mut Ledger,
    ) -> Self {
        ledger.in_place(|ledger| {
            let mut layer = Self {
                change: of_section(inner, ledger),
                guards: guards(inner, ledger),
                answer: answer(inner, plan, ledger),
            };
            // To find out what the rules do takes long, so it is done only if it matters.
            let place_use = if judge::depends(inner, ledger) {
                use_by(rules, matchers)
            } else {
                PlaceUse::default()
            };
            layer.guards.add(place_use.judge(inner, ledger));
            layer
        })
    }

    /// Whether the section changes no rule, for instance because it only forwards requests.
    fn is_nothing(&self) -> bool {
        !self.guards.is_some() && self.answer.is_none() && self.change == SharedSettings::default()
    }

    /// Reduces the changes to those for paths of which only some belong to the section: its guards become unknown,
    /// the request fields that it names are removed, and all else stays.
    fn blur(&mut self) {
        let has_answer = self.answer.take().is_some();
        let has_guarding_settings = has_guard(&self.change);
        self.change = vague(&self.change);
        // A `Require` that lets in all would open other paths. Any other becomes unknown access, which a later section
        // can replace, unlike `is_strange`. It is taken out, so that `closes` does not count it.
        let authz = match self.guards.authz.take() {
            None | Some(Access::Open) => None,
            Some(_) => Some(Access::Unsaid),
        };
        self.guards = Guards {
            is_strange: self.guards.closes() || has_answer || has_guarding_settings,
            authz,
            // It lets in no client whom `Satisfy Any` of an outer section keeps out.
            satisfy: self.guards.satisfy.filter(|it| *it == Satisfy::All),
            ..Guards::default()
        };
    }

    /// Applies the changes to one rule, all of whose paths belong to the section.
    fn over(&self, rule: &mut Rule) {
        // The section's own list of types applies, or none.
        if self.change.keys.contains_key("compress") {
            rule.settings.keys.remove("compress_types");
        }
        rule.settings.merge(&self.change);
        if redirects_first(rule) {
            if self.answer.is_none() {
                return;
            }
            // The guards of outer sections were passed over.
            rule.settings.is_strange |= matches!(self.answer, Some(Action::Redirect { .. }));
        }
        if let Some(access) = &self.guards.authz {
            rule.settings.access = access.clone();
            rule.settings.has_require = true;
        }
        if let Some(access) = &self.guards.compat {
            rule.settings.compat = access.clone();
        }
        if let Some(access) = &self.guards.methods {
            rule.settings.methods = access.clone();
        }
        ask(rule, &self.guards);
        if self.guards.tls_only {
            rule.settings.tls_only = true;
        }
        if self.guards.is_strange {
            rule.settings.is_strange = true;
        }
        if let Some(action) = &self.answer {
            rule.action = action.clone();
            rule.settings.redirects_late = matches!(action, Action::Redirect { .. });
        }
    }

    /// Applies the section to all rules. Returns whether some rule has paths that no pattern can divide into those of
    /// the section and others.
    fn lay(&self, matcher: &Matcher, place: &Place, rules: &mut Vec<Rule>) -> bool {
        if let Some((at, rule)) = self.single_rule(matcher, rules) {
            rules.insert(at, rule);
            return false;
        }
        // It comes before the first rule that is not divided.
        let mut undivided = self.rule_for_undivided(matcher, place);
        let mut has_undivided = false;
        let mut next = Vec::with_capacity(rules.len() + 1);
        for mut rule in rules.drain(..) {
            match rule.matcher.common(matcher) {
                Common::Nothing => {}
                Common::Set(common) if common == rule.matcher => self.over(&mut rule),
                Common::Set(common) => {
                    let mut changed = rule.narrowed(common);
                    self.over(&mut changed);
                    next.push(changed);
                }
                Common::Unsaid => {
                    has_undivided = true;
                    rule.settings.merge(&vague(&self.change));
                    if rule.settings.satisfy.is_some() && self.guards.satisfy == Some(Satisfy::All)
                    {
                        rule.settings.satisfy = self.guards.satisfy;
                    }
                    if !redirects_first(&rule) || self.answer.is_some() {
                        next.extend(undivided.take());
                    }
                }
            }
            next.push(rule);
        }
        *rules = next;
        has_undivided
    }

    /// One rule for all paths of the section, and its place among the rules. `None` if the rules that decide about
    /// these paths differ after the change, or if patterns can divide the paths of all of them.
    fn single_rule(&self, matcher: &Matcher, rules: &[Rule]) -> Option<(usize, Rule)> {
        let mut first: Option<(usize, Rule)> = None;
        let mut has_undivided = false;
        for (index, rule) in rules.iter().enumerate() {
            match rule.matcher.common(matcher) {
                Common::Nothing => continue,
                Common::Set(_) => {}
                Common::Unsaid => has_undivided = true,
            }
            let mut changed = rule.narrowed(matcher.clone());
            self.over(&mut changed);
            let is_last = rule.matcher.covers(matcher) && changed.is_unconditional();
            match &first {
                Some((_, known)) if !does_same(known, &changed) => return None,
                Some(_) => {}
                None => first = Some((index, changed)),
            }
            // No request for these paths reaches a later rule. Where patterns divide all rules, `lay` does it.
            if is_last {
                return first.filter(|_| has_undivided);
            }
        }
        None
    }

    /// A rule for all paths of the section, if they cannot be separated from others: it answers as the section does,
    /// or closes them. `None` if the section neither answers nor restricts.
    fn rule_for_undivided(&self, matcher: &Matcher, place: &Place) -> Option<Rule> {
        let closes = self.guards.closes() || has_guard(&self.change);
        let action = match (&self.answer, self.guards.joined()) {
            (Some(answer), Access::Open) if !matches!(answer, Action::Redirect { .. }) => {
                answer.clone()
            }
            (None, _) if !closes => return None,
            (_, Access::Nobody) => Action::Answer(403),
            _ => Action::Closed,
        };
        Some(Rule::new(Some(place), matcher.clone(), action))
    }
}

/// Whether httpd redirects before it asks access rules: by a redirect outside of sections.
fn redirects_first(rule: &Rule) -> bool {
    matches!(rule.action, Action::Redirect { .. }) && !rule.settings.redirects_late
}

/// Whether two rules for the same paths do the same with all requests. A part of a path that an action takes from its
/// matcher may differ.
fn does_same(one: &Rule, two: &Rule) -> bool {
    let takes_from_path = match &two.action {
        Action::Redirect { to, .. } => to.contains("{rest"),
        other => other.rewrites(),
    };
    let is_plain = one.is_unconditional() && two.is_unconditional() && !takes_from_path;
    is_plain && one.action == two.action && one.settings == two.settings
}

/// The guards of a section, including directives that the importer does not know.
fn guards(inner: &[Directive], ledger: &mut Ledger) -> Guards {
    let mut guards = access::of_section(inner, ledger);
    let were_known = guards.joined() != Access::Unsaid;
    for directive in inner {
        let name = directive.name.as_str();
        // `access` reads sections such as `<RequireAny>` and `<Limit>`.
        let is_guard = name.starts_with("require") || access::is_limit(name);
        let is_section = directive.inner.is_some() && !is_guard;
        if is_section {
            ledger.unmapped(
                directive.id,
                "a section inside another is not converted here",
            );
            part_all(directive.inside(), directive.id, ledger);
        }
        guards.is_strange |= is_section;
        skip_template(directive, ledger);
        if processing::runs(directive) {
            ledger.unmapped(
                directive.id,
                "the front would send the source of what this runs",
            );
            guards.is_strange = true;
        }
        if directive.name == "options" {
            let text = "it says nothing of symbolic links here, and the front lists no directories";
            ledger.dropped(directive.id, text);
        }
        if sets(directive, "no-jk") || sets(directive, "no-proxy") {
            ledger.unmapped(
                directive.id,
                "it takes requests away from the module that serves them",
            );
            guards.is_strange = true;
        }
    }
    // `access` has noted them as written.
    if were_known && guards.joined() == Access::Unsaid {
        ledger.address_guards.void(access::addresses(inner));
    }
    guards
}

/// Marks a condition of a template as not needed, because all that is inside of it is read.
pub(crate) fn skip_template(directive: &Directive, ledger: &mut Ledger) {
    if directive.name.starts_with("{%") {
        let text = "a condition of a template was left out: render the template first";
        ledger.lost(directive.id, text);
    }
}

/// The answer that a section gives itself: by its last redirect, which httpd sends after its access rules and before it
/// runs any handler, or else by its last `SetHandler`.
fn answer(inner: &[Directive], plan: &mut Plan, ledger: &mut Ledger) -> Option<Action> {
    let mut answer = None;
    for directive in inner {
        if matches!(
            directive.name.as_str(),
            "redirect" | "redirectpermanent" | "redirecttemp" | "redirectmatch"
        ) {
            answer = Some(redirect::within(directive, ledger));
        }
    }
    let mut handlers = inner.iter().filter(|it| it.name == "sethandler").rev();
    if answer.is_none() {
        answer = set_handler(handlers.next()?, plan, ledger);
    }
    for unused in handlers {
        let text = "a redirect or a later `SetHandler` of this section takes its place";
        ledger.dropped(unused.id, text);
    }
    answer
}

/// Applies `<Proxy>` sections to the rules that forward. `<Location>` sections are applied later and override them,
/// in whatever order they are in the file.
pub(crate) fn proxies<'d>(
    sections: impl IntoIterator<Item = &'d Directive>,
    rules: &mut [Rule],
    ledger: &mut Ledger,
) {
    let mut all_guards = Guards::default();
    let mut change = SharedSettings::default();
    // Sections that replace a `Satisfy Any` for some backends.
    let mut strict: Vec<Id> = Vec::new();
    let is_proxy = |it: &&Directive| matches!(it.name.as_str(), "proxy" | "proxymatch");
    for section in sections.into_iter().filter(is_proxy) {
        ledger.mapped(section.id);
        let inner = section.inside();
        let place_use = PlaceUse {
            forwards: true,
            ..PlaceUse::default()
        };
        let (guards, settings) = ledger.in_place(|ledger| {
            let mut own = guards(inner, ledger);
            let settings = of_section(inner, ledger);
            own.add(place_use.judge(inner, ledger));
            (own, settings)
        });
        if matches!(section.words.last().map(String::as_str), Some("*" | ".*")) {
            all_guards.merge(guards);
            change.merge(&settings);
            continue;
        }
        // The section may be about only some of the backends of a rule.
        if settings != SharedSettings::default() {
            let text =
                "the importer cannot tell which backends it concerns: its fields were left out";
            ledger.risk(section.id, text);
            change.merge(&vague(&settings));
        }
        if guards.closes() || has_guard(&settings) {
            ledger.unmapped(section.id, SOME_BACKENDS);
            ledger.address_guards.void_all();
            all_guards.is_strange = true;
        }
        if guards.replaces_satisfy_any() {
            strict.push(section.id);
        }
    }
    if all_guards.admits_by_either() && !strict.is_empty() {
        strict
            .into_iter()
            .for_each(|it| ledger.unmapped(it, SOME_BACKENDS));
        ledger.address_guards.void_all();
        all_guards.is_strange = true;
    }
    for rule in rules {
        if matches!(rule.action, Action::Forward { .. }) {
            rule.settings.merge(&change);
            guard(rule, &all_guards);
        }
    }
}

/// Adds the guards of `<Proxy>` to a rule, which may be closed already.
fn guard(rule: &mut Rule, guards: &Guards) {
    let settings = &mut rule.settings;
    let before = std::mem::take(&mut settings.access);
    settings.access = before.and(guards.authz.clone().unwrap_or_default());
    settings.has_require |= guards.authz.is_some();
    settings.compat = guards.compat.clone().unwrap_or_default();
    settings.methods = guards.methods.clone().unwrap_or_default();
    settings.tls_only |= guards.tls_only;
    settings.is_strange |= guards.is_strange;
    ask(rule, guards);
}

/// Adds to a rule what a section says about asking for passwords, and whether they suffice.
pub(super) fn ask(rule: &mut Rule, guards: &Guards) {
    // Settings that rules share are copied only if they change.
    if guards.satisfy.is_some() {
        rule.settings.satisfy = guards.satisfy;
    }
    if guards.asks_otherwise() {
        rule.settings.auth.merge(&guards.auth);
    }
}

/// Handles a section that is not about URL paths. If the importer does not convert its kind, all rules count as
/// restricted.
fn overlay_other(section: &Directive, rules: &mut [Rule], ledger: &mut Ledger) {
    let inner = section.inside();
    match section.name.as_str() {
        "proxy" | "proxymatch" | "virtualhost" => {}
        "directory" | "directorymatch" | "files" | "filesmatch" if ledger.is_open(section.id) => {
            let text = "it is about files of a directory that the front does not serve";
            if ledger.keeps {
                keep_all([section], text, ledger);
            } else {
                drop_all([section], text, ledger);
            }
        }
        // `files` has handled it.
        "directory" | "directorymatch" | "files" | "filesmatch" => {}
        _ if section.inner.is_some() => {
            ledger.unmapped(section.id, "a section of this kind is not converted");
            part_all(inner, section.id, ledger);
            ledger.address_guards.void_all();
            for rule in rules {
                rule.settings.is_strange = true;
            }
        }
        _ => {}
    }
}

/// Completes rules after all sections: joins both tables of fields, and joins the guards of both modules and the
/// unknown ones in `access`, with their sign-on. If TLS is required, adds a rule that closes the same paths over plain
/// HTTP.
pub(crate) fn settle(rules: &mut Vec<Rule>, site: Site<'_>, plan: &mut Plan, ledger: &mut Ledger) {
    let mut sign_ons = SignOnReader::new(site);
    let connections = Connections::of(site);
    let mut settled = Vec::with_capacity(rules.len());
    for mut rule in rules.drain(..) {
        if !rule.settings.always_fields.is_empty() {
            let always = std::mem::take(&mut rule.settings.always_fields);
            rule.settings.response_fields.join(&always);
        }
        demand_require(&mut rule, ledger);
        let has_only_authz = rule.settings.compat == Access::Open
            && rule.settings.methods == Access::Open
            && rule.settings.satisfy.is_none()
            && !rule.settings.tls_only
            && !rule.settings.is_strange;
        let mut tls_only = false;
        // Else `access` is complete. Settings that other rules share are not copied.
        if !has_only_authz {
            tls_only = std::mem::take(&mut rule.settings.tls_only);
            join_guards(&mut rule.settings, ledger);
        }
        tls_only |= connections.take_tests(&mut rule);
        sign_ons.settle(&mut rule, plan, ledger);
        if tls_only && rule.scheme != Some(Scheme::Https) {
            let mut over_http = rule.clone();
            over_http.scheme = Some(Scheme::Http);
            let access = std::mem::take(&mut over_http.settings.access);
            over_http.settings.access = access.and(Access::Nobody);
            guard_redirect(&mut over_http, ledger);
            settled.push(over_http);
        }
        guard_redirect(&mut rule, ledger);
        settled.push(rule);
    }
    *rules = settled.into_iter().flat_map(by_methods).collect();
}

/// Closes a rule for which sections say how passwords are asked for, but not who may pass: httpd answers 500.
fn demand_require(rule: &mut Rule, ledger: &mut Ledger) {
    // Settings that rules share are copied only if they change.
    if rule.settings.has_require {
        rule.settings.has_require = false;
        return;
    }
    let Some(kind) = &rule.settings.auth.kind else {
        return;
    };
    if !kind.text.eq_ignore_ascii_case("none") {
        let text = "httpd answers 500 here: there is an `AuthType` without a `Require`";
        // It may have a reason already.
        if !ledger.is_lost(kind.id) {
            ledger.unmapped(kind.id, text);
        }
        rule.settings.access = Access::Unsaid;
    }
}

/// Closes a redirect of a section that only some clients get: routes of the front redirect all clients.
fn guard_redirect(rule: &mut Rule, ledger: &mut Ledger) {
    // Settings that rules share are copied only if they change.
    if !rule.settings.redirects_late {
        return;
    }
    rule.settings.redirects_late = false;
    if rule.settings.access == Access::Open && rule.settings.sign_on.is_none() {
        return;
    }
    let text =
        "a redirect is closed here: httpd sends it only to clients whom its access rules let in";
    ledger.say(Weight::Risk, rule.place.clone(), text);
    rule.action = Action::Closed;
}

/// Joins all guards of a rule in `access`. The others get their defaults: they are only for the time in which sections
/// are applied.
fn join_guards(settings: &mut Settings, ledger: &mut Ledger) {
    let authz = std::mem::take(&mut settings.access);
    let compat = std::mem::take(&mut settings.compat);
    let methods = std::mem::take(&mut settings.methods);
    let is_strange = std::mem::take(&mut settings.is_strange);
    let satisfy = settings.satisfy.take();
    // If `access` alone is already unknown, its address guards are void already.
    let were_known = authz != Access::Unsaid || compat != Access::Open;
    let is_sure = authz != Access::Unsaid && compat != Access::Unsaid;
    let asks_password = access::asks_password(&authz);
    let satisfied = access::satisfied(satisfy, authz, compat);
    if let Some(Satisfy::Any(id)) = satisfy
        && satisfied == Access::Unsaid
        && is_sure
    {
        let text = if asks_password {
            EITHER
        } else {
            "the front cannot express whom it admits"
        };
        ledger.unmapped(id, text);
    }
    settings.access = access::if_strange(is_strange, satisfied.and(methods));
    if were_known && settings.access == Access::Unsaid {
        ledger.address_guards.void_all();
    }
}

/// Divides a rule that lets in only some methods: into one for the methods that it names, and one for all others. A
/// rule for some methods stays one for these.
fn by_methods(mut rule: Rule) -> Vec<Rule> {
    let Access::Methods { names, except } = &rule.settings.access else {
        return vec![rule];
    };
    let (of_named, of_others) = if *except {
        (Access::Nobody, Access::Open)
    } else {
        (Access::Open, Access::Nobody)
    };
    let common = methods::common(&rule.methods, names);
    let mut named = rule.clone();
    named.settings.access = of_named;
    // It comes after the other one, so it also may have the methods of that.
    rule.settings.access = of_others;
    // Without methods it would be for all.
    if common.is_empty() {
        return vec![rule];
    }
    named.methods = common;
    vec![named, rule]
}

/// The paths of a `<Location>`, and whether they are exactly these: a prefix of whole segments. For a path with
/// wildcards, where `*` matches one segment, the patterns may match more.
fn location(path: &str) -> (Vec<Matcher>, bool) {
    if !path.contains(['*', '?', '[']) {
        return (vec![proxy::prefix(path)], true);
    }
    if let Some(matcher) = expressions::of_wildcards(path) {
        return (vec![matcher], true);
    }
    // Each `[…]` becomes a `*`.
    let mut pattern = String::with_capacity(path.len());
    let mut unread = path;
    while let Some(start) = unread.find('[') {
        let Some(length) = unread[start..].find(']') else {
            break;
        };
        pattern.push_str(&unread[..start]);
        pattern.push('*');
        unread = &unread[start + length + 1..];
    }
    pattern.push_str(unread);
    (vec![Matcher::pattern(&pattern.replace('[', "*"))], false)
}

/// The action of a `SetHandler`; `None` if it answers nothing by itself.
fn set_handler(directive: &Directive, plan: &mut Plan, ledger: &mut Ledger) -> Option<Action> {
    match directive.word(0) {
        "balancer-manager" | "server-status" | "jk-status" => {
            ledger.mapped(directive.id);
            ledger.note(
                directive.id,
                "the front has a status page in [admin], on loopback; this path has no route",
            );
            plan.has_status = true;
            Some(Action::Answer(404))
        }
        "None" | "none" => {
            ledger.dropped(directive.id, "it sets no handler");
            None
        }
        _ => {
            ledger.unmapped(directive.id, "the front has no such handler");
            Some(Action::Closed)
        }
    }
}

/// Why a `<Proxy>` section closes the paths of all backends.
const SOME_BACKENDS: &str = "the importer cannot tell which backends it concerns";
