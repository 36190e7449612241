//! Applies sections such as `<Location>` to the rules of a host.

use crate::compress;
use crate::condition::Scheme;
use crate::directive::{Directive, close_all, drop_all, keep_all, part_all};
use crate::httpd::access::{self, Guards};
use crate::httpd::variables::sets;
use crate::httpd::{expressions, fields, processing, proxy, redirect};
use crate::judge::{self, PlaceUse};
use crate::ledger::{Ledger, Place};
use crate::matcher::{Common, Matcher};
use crate::plan::{Access, Action, Fields, Plan, Rule, Settings, SharedSettings};
use crate::toml_text::quoted;

/// Applies a section to the rules for its paths.
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
    let inner = section.inside();
    ledger.begin();
    let mut laid = SectionLayer {
        change: of_section(inner, ledger),
        guards: guards(inner, ledger),
        answer: answer(inner, plan, ledger),
    };
    let place_use = if judge::depends(inner, ledger) {
        use_by(rules, &matchers)
    } else {
        PlaceUse::default()
    };
    let judged = place_use.judge(inner, ledger);
    ledger.end();
    laid.guards.add(judged);
    if !is_exact {
        laid.blur();
    }
    match (is_exact, laid.guards.is_some()) {
        (true, _) => ledger.mapped(section.id),
        (false, true) => {
            ledger.unmapped(section.id, "routes cannot express its regular expression");
        }
        (false, false) => ledger.risk(
            section.id,
            "routes cannot express its regular expression, and its settings were left out",
        ),
    }
    if laid.guards.joined() == Access::Unsaid {
        close_all([section], ledger);
    }
    if laid.is_nothing() {
        return;
    }
    let place = ledger.place(section.id).clone();
    let mut is_left = !is_exact;
    for matcher in &matchers {
        is_left |= laid.lay(matcher, &place, rules);
    }
    if is_left {
        ledger.address_guards.void(access::addresses(inner));
    }
}

/// What the rules for these paths do with requests, which decides which directives of a section about them matter.
fn use_by(rules: &[Rule], matchers: &[Matcher]) -> PlaceUse {
    let mut place_use = PlaceUse::default();
    for rule in rules {
        let own = rule.action.place_use();
        let is_new = place_use.or(own) != place_use;
        if is_new && matchers.iter().any(|it| it.overlaps(&rule.matcher)) {
            place_use = place_use.or(own);
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
    let mut left = Settings {
        sent_host: settings
            .sent_host
            .as_ref()
            .map(|_| fields::OWN_HOST.to_owned()),
        ..Settings::default()
    };
    left.request_fields.take_all(&settings.request_fields);
    left.into()
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
        let known = &plan.upstreams[*upstream];
        let Some(host) = rule.settings.sent_host.clone() else {
            continue;
        };
        if known.keys.contains_key("host") {
            continue;
        }
        // A Unix socket has no host.
        let is_socket = known.backends.iter().any(|it| it.url.contains("+unix:"));
        let host = match host.as_str() {
            fields::OWN_HOST if is_socket => "localhost",
            host => host,
        };
        let mut called = known.clone();
        called.keys.insert("host".to_owned(), quoted(host));
        *upstream = plan.upstream(called);
    }
}

/// The changes of a section to the rules for its paths.
struct SectionLayer {
    change: SharedSettings,
    guards: Guards,
    answer: Option<Action>,
}

impl SectionLayer {
    /// Whether the section changes no rule, for instance because it only forwards requests.
    fn is_nothing(&self) -> bool {
        !self.guards.is_some() && self.answer.is_none() && self.change == SharedSettings::default()
    }

    /// Reduces the changes to those for paths of which only some belong to the section: its guards become unknown,
    /// the request fields that it names are removed, and all else stays.
    fn blur(&mut self) {
        let is_guard = has_guard(&self.change);
        let answers = self.answer.take().is_some();
        self.change = vague(&self.change);
        let authz = self.guards.authz.take().filter(|it| *it != Access::Open);
        self.guards = Guards {
            is_strange: self.guards.closes() || answers || is_guard,
            authz: authz.map(|_| Access::Unsaid),
            ..Guards::default()
        };
    }

    /// Applies the changes to one rule, all of whose paths belong to the section.
    fn over(&self, rule: &mut Rule) {
        if self.change.keys.contains_key("compress") {
            rule.settings.keys.remove("compress_types");
        }
        rule.settings.merge(&self.change);
        // httpd redirects before it asks access rules.
        if matches!(rule.action, Action::Redirect { .. }) && self.answer.is_none() {
            return;
        }
        if let Some(access) = &self.guards.authz {
            rule.settings.access = access.clone();
        }
        if let Some(access) = &self.guards.compat {
            rule.settings.compat = access.clone();
        }
        if let Some(access) = &self.guards.methods {
            rule.settings.methods = access.clone();
        }
        if self.guards.tls_only {
            rule.settings.tls_only = true;
        }
        if self.guards.is_strange {
            rule.settings.is_strange = true;
        }
        if let Some(action) = &self.answer {
            rule.action = action.clone();
        }
    }

    /// Applies the section to all rules. Returns whether some rule has paths that no pattern can divide into those of
    /// the section and others.
    fn lay(&self, matcher: &Matcher, place: &Place, rules: &mut Vec<Rule>) -> bool {
        if let Some((at, whole)) = self.whole(matcher, rules) {
            rules.insert(at, whole);
            return false;
        }
        let mut instead = self.instead(matcher, place);
        let mut is_left = false;
        let mut next = Vec::with_capacity(rules.len() + 1);
        for mut rule in rules.drain(..) {
            match rule.matcher.common(matcher) {
                Common::Nothing => {}
                Common::Set(set) if set == rule.matcher => self.over(&mut rule),
                Common::Set(set) => {
                    let mut changed = rule.narrowed(set);
                    self.over(&mut changed);
                    next.push(changed);
                }
                Common::Unsaid => {
                    is_left = true;
                    rule.settings.merge(&vague(&self.change));
                    // httpd redirects before it asks access rules.
                    if !matches!(rule.action, Action::Redirect { .. }) || self.answer.is_some() {
                        next.extend(instead.take());
                    }
                }
            }
            next.push(rule);
        }
        *rules = next;
        is_left
    }

    /// One rule for all paths of the section, and its place among the rules. `None` if the rules that decide about
    /// these paths differ after the change, or if patterns can divide the paths of all of them.
    fn whole(&self, matcher: &Matcher, rules: &[Rule]) -> Option<(usize, Rule)> {
        let mut found: Option<(usize, Rule)> = None;
        let mut is_unsaid = false;
        for (at, rule) in rules.iter().enumerate() {
            match rule.matcher.common(matcher) {
                Common::Nothing => continue,
                Common::Set(_) => {}
                Common::Unsaid => is_unsaid = true,
            }
            let mut changed = rule.narrowed(matcher.clone());
            self.over(&mut changed);
            let is_of_prefix = match &changed.action {
                Action::Redirect { to, .. } => to.contains("{rest"),
                other => other.rewrites(),
            };
            let is_alike = |it: &Rule| {
                let is_plain = it.is_unconditional() && changed.is_unconditional() && !is_of_prefix;
                is_plain && it.action == changed.action && it.settings == changed.settings
            };
            if found.as_ref().is_some_and(|it| !is_alike(&it.1)) {
                return None;
            }
            let is_last = rule.matcher.covers(matcher) && changed.is_unconditional();
            found.get_or_insert((at, changed));
            if is_last {
                return found.filter(|_| is_unsaid);
            }
        }
        None
    }

    /// A rule for all paths of the section, if they cannot be separated from others: it answers as the section does,
    /// or closes them. `None` if the section neither answers nor restricts.
    fn instead(&self, matcher: &Matcher, place: &Place) -> Option<Rule> {
        let closes = self.guards.closes() || has_guard(&self.change);
        let action = match (&self.answer, self.guards.joined()) {
            (Some(answer), Access::Open) => answer.clone(),
            (None, _) if !closes => return None,
            (_, Access::Nobody) => Action::Answer(403),
            _ => Action::Closed,
        };
        Some(Rule::new(Some(place), matcher.clone(), action))
    }
}

/// The guards of a section, including directives that the importer does not know.
fn guards(inner: &[Directive], ledger: &mut Ledger) -> Guards {
    let mut guards = access::of_section(inner, ledger);
    let is_said = guards.joined() != Access::Unsaid;
    for directive in inner {
        let name = directive.name.as_str();
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
    if is_said && guards.joined() == Access::Unsaid {
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

/// The answer that a section gives itself: by its last redirect, which httpd sends before it runs any handler, or else
/// by its last `SetHandler`.
fn answer(inner: &[Directive], plan: &mut Plan, ledger: &mut Ledger) -> Option<Action> {
    let mut found = None;
    for directive in inner {
        if matches!(
            directive.name.as_str(),
            "redirect" | "redirectpermanent" | "redirecttemp" | "redirectmatch"
        ) {
            found = Some(redirect::within(directive, ledger));
        }
    }
    let mut handlers = inner.iter().filter(|it| it.name == "sethandler").rev();
    if found.is_none() {
        found = set_handler(handlers.next()?, plan, ledger);
    }
    for unused in handlers {
        let text = "a redirect or a later `SetHandler` of this section takes its place";
        ledger.dropped(unused.id, text);
    }
    found
}

/// Applies `<Proxy>` sections to the rules that forward. `<Location>` sections are applied later and override them,
/// in whatever order they are in the file.
pub(crate) fn proxies<'d>(
    sections: impl IntoIterator<Item = &'d Directive>,
    rules: &mut [Rule],
    ledger: &mut Ledger,
) {
    let mut said = Guards::default();
    let mut change = SharedSettings::default();
    let is_proxy = |it: &&Directive| matches!(it.name.as_str(), "proxy" | "proxymatch");
    for section in sections.into_iter().filter(is_proxy) {
        ledger.mapped(section.id);
        let inner = section.inside();
        ledger.begin();
        let (mut guards, settings) = (guards(inner, ledger), of_section(inner, ledger));
        let place_use = PlaceUse {
            forwards: true,
            ..PlaceUse::default()
        };
        guards.add(place_use.judge(inner, ledger));
        ledger.end();
        if matches!(section.words.last().map(String::as_str), Some("*" | ".*")) {
            said.merge(guards);
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
            let text = "the importer cannot tell which backends it concerns";
            ledger.unmapped(section.id, text);
            ledger.address_guards.void_all();
            said.is_strange = true;
        }
    }
    let is_forward = |it: &&mut Rule| matches!(it.action, Action::Forward { .. });
    for rule in rules.iter_mut().filter(is_forward) {
        rule.settings.merge(&change);
        guard(rule, &said);
    }
}

/// Adds the guards of `<Proxy>` to a rule, which may be closed already.
fn guard(rule: &mut Rule, said: &Guards) {
    let settings = &mut rule.settings;
    let before = std::mem::take(&mut settings.access);
    settings.access = access::both(before, said.authz.clone().unwrap_or_default());
    settings.compat = said.compat.clone().unwrap_or_default();
    settings.methods = said.methods.clone().unwrap_or_default();
    settings.tls_only |= said.tls_only;
    settings.is_strange |= said.is_strange;
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
        "directory" | "directorymatch" | "files" | "filesmatch" => {}
        _ if section.inner.is_some() => {
            ledger.unmapped(section.id, "a section of this kind is not converted");
            part_all(inner, section.id, ledger);
            ledger.address_guards.void_all();
            rules
                .iter_mut()
                .for_each(|it| it.settings.is_strange = true);
        }
        _ => {}
    }
}

/// Completes rules after all sections: joins both tables of fields, and joins the guards of both modules and the
/// unknown ones in `access`. If TLS is required, adds a rule that closes the same paths over plain HTTP.
pub(crate) fn settle(rules: &mut Vec<Rule>, ledger: &mut Ledger) {
    let mut settled = Vec::with_capacity(rules.len());
    for mut rule in rules.drain(..) {
        if !rule.settings.always_fields.is_empty() {
            let always = std::mem::take(&mut rule.settings.always_fields);
            rule.settings.response_fields.join(&always);
        }
        let said = &rule.settings;
        let has_one = said.compat == Access::Open && said.methods == Access::Open;
        if !said.tls_only && !said.is_strange && has_one {
            settled.push(rule);
            continue;
        }
        let settings = &mut *rule.settings;
        let compat = std::mem::take(&mut settings.compat);
        let authz = std::mem::take(&mut settings.access);
        let is_said = authz != Access::Unsaid || compat != Access::Open;
        let is_strange = std::mem::take(&mut settings.is_strange);
        let others = access::both(compat, std::mem::take(&mut settings.methods));
        settings.access = access::if_strange(is_strange, access::both(authz, others));
        if is_said && settings.access == Access::Unsaid {
            ledger.address_guards.void_all();
        }
        let tls_only = std::mem::take(&mut settings.tls_only);
        if tls_only && rule.scheme != Some(Scheme::Https) {
            let mut clear = rule.clone();
            clear.scheme = Some(Scheme::Http);
            let said = std::mem::take(&mut clear.settings.access);
            clear.settings.access = access::both(said, Access::Nobody);
            settled.push(clear);
        }
        settled.push(rule);
    }
    *rules = settled.into_iter().flat_map(by_methods).collect();
}

/// Divides a rule that lets in only some methods: into one for these methods, and one for all others.
fn by_methods(rule: Rule) -> Vec<Rule> {
    let Access::Methods { names, except } = &rule.settings.access else {
        return vec![rule];
    };
    let with = |methods: &[String], is_open: bool| {
        let mut rule = rule.clone();
        rule.methods = methods.to_vec();
        rule.settings.access = if is_open {
            Access::Open
        } else {
            Access::Nobody
        };
        rule
    };
    vec![with(names, !except), with(&[], *except)]
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
    let mut pattern = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(start) = rest.find('[') {
        let Some(end) = rest[start..].find(']') else {
            break;
        };
        pattern.push_str(&rest[..start]);
        pattern.push('*');
        rest = &rest[start + end + 1..];
    }
    pattern.push_str(rest);
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
        "None" | "none" => None,
        _ => {
            ledger.unmapped(directive.id, "the front has no such handler");
            Some(Action::Closed)
        }
    }
}
