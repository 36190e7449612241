//! Applies sections such as `<Location>` to the rules of a host.

use crate::compress;
use crate::condition::Scheme;
use crate::directive::{Directive, close_all, drop_all, keep_all, part_all};
use crate::httpd::access::{self, Guards};
use crate::httpd::{fields, processing, proxy, redirect};
use crate::judge::{self, PlaceUse};
use crate::ledger::{Ledger, Place};
use crate::matcher::{Common, Matcher};
use crate::plan::{Access, Action, Plan, Rule, Settings, SharedSettings};
use crate::regex::path_set;
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
            let set = path_set(text, false);
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

/// What the rules for some paths ask of the directives of a section about them.
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

/// The part of a section's settings that is safe for paths that the section may not concern: fields that it names are
/// removed from requests, so that no client can set them.
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

/// Whether settings keep clients from something, so that their loss closes the paths that they may be about: they ask
/// for certificates, or change fields of responses that forbid something.
fn has_guard(settings: &Settings) -> bool {
    let mut fields = settings.response_fields.names();
    settings.keys.contains_key("client_certificate") || fields.any(|it| !judge::can_be_lost(it))
}

/// Makes rules use upstreams that send the `Host` of the sections, unless the upstream has one already.
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

/// The changes that a section makes to the rules for its paths.
struct SectionLayer {
    change: SharedSettings,
    guards: Guards,
    answer: Option<Action>,
}

impl SectionLayer {
    /// Whether the section changes no rule, as one that only passes requests on.
    fn is_nothing(&self) -> bool {
        !self.guards.is_some() && self.answer.is_none() && self.change == SharedSettings::default()
    }

    /// Weakens the changes for paths of which only some belong to the section: its guards become unknown, request
    /// fields that it names are removed, and nothing else is changed.
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

    fn over(&self, rule: &mut Rule) {
        if self.change.keys.contains_key("compress") {
            rule.settings.keys.remove("compress_types");
        }
        rule.settings.merge(&self.change);
        // httpd redirects before it asks who the client is.
        if matches!(rule.action, Action::Redirect { .. }) && self.answer.is_none() {
            return;
        }
        if let Some(access) = &self.guards.authz {
            rule.settings.access = access.clone();
        }
        if let Some(access) = &self.guards.compat {
            rule.settings.compat = access.clone();
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

    /// Applies the section to all rules. Returns whether some rule has paths of which no pattern can say whether they
    /// belong to the section.
    fn lay(&self, matcher: &Matcher, place: &Place, rules: &mut Vec<Rule>) -> bool {
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
                    // httpd redirects before it asks who the client is.
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

    /// The rule that decides about all the section's paths where they cannot be separated from others: it answers as
    /// the section does, or closes them. `None` if the section neither answers nor closes.
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
        let is_section = directive.inner.is_some() && !name.starts_with("require");
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

/// Whether a directive sets this request variable.
fn sets(directive: &Directive, variable: &str) -> bool {
    let name = directive.name.as_str();
    let is_setter = name.starts_with("setenv") || name.starts_with("browsermatch");
    is_setter && directive.words.iter().any(|it| it.starts_with(variable))
}

/// Leaves out a condition of a template: what is in it is read in any case.
pub(crate) fn skip_template(directive: &Directive, ledger: &mut Ledger) {
    if directive.name.starts_with("{%") {
        let text = "a condition of a template was left out: render the template first";
        ledger.lost(directive.id, text);
    }
}

/// What a section itself answers: with a handler, or with a redirect.
fn answer(inner: &[Directive], plan: &mut Plan, ledger: &mut Ledger) -> Option<Action> {
    let mut found = None;
    for directive in inner {
        match directive.name.as_str() {
            "sethandler" => found = set_handler(directive, plan, ledger).or(found),
            "redirect" | "redirectpermanent" | "redirecttemp" | "redirectmatch" => {
                found = Some(redirect::within(directive, ledger));
            }
            _ => {}
        }
    }
    found
}

/// Applies `<Proxy>` sections to the rules that forward. `<Location>` is applied later and overrides them, whatever the
/// order in the file.
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
        // One for some of the backends cannot be told apart here.
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
    settings.tls_only |= said.tls_only;
    settings.is_strange |= said.is_strange;
}

/// Handles a section that is not about URL paths: one of a kind that is not converted makes all rules guarded.
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

/// Joins the guards of both modules and the unknown ones into `access`. Where TLS is required, adds a rule that closes
/// the same paths to clients in clear.
pub(crate) fn settle(rules: &mut Vec<Rule>, ledger: &mut Ledger) {
    let mut settled = Vec::with_capacity(rules.len());
    for mut rule in rules.drain(..) {
        let said = &rule.settings;
        if !said.tls_only && !said.is_strange && said.compat == Access::Open {
            settled.push(rule);
            continue;
        }
        let settings = &mut *rule.settings;
        let compat = std::mem::take(&mut settings.compat);
        let authz = std::mem::take(&mut settings.access);
        let is_said = authz != Access::Unsaid || compat != Access::Open;
        let is_strange = std::mem::take(&mut settings.is_strange);
        settings.access = access::if_strange(is_strange, access::both(authz, compat));
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
    *rules = settled;
}

/// The paths of a `<Location>`, and whether they are exact: a prefix by whole segments. With wildcards, where `*` means
/// one segment, the pattern matches at least the section's paths.
fn location(path: &str) -> (Vec<Matcher>, bool) {
    if !path.contains(['*', '?', '[']) {
        return (vec![proxy::prefix(path)], true);
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
