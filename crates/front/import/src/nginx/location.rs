//! Converts what a location, or a server outside its locations, does with requests.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::LazyLock;

use crate::compress;
use crate::directive::Directive;
use crate::expression::Expression;
use crate::files::Files;
use crate::judge::{JudgedPlace, PlaceUse};
use crate::ledger::{Id, Ledger, Place};
use crate::matcher::{Matcher, encoded};
use crate::mod_jk::workers::{hoist, number};
use crate::nginx::answer::{TextType, answer};
use crate::nginx::backends;
use crate::nginx::certificates::certificate_key;
use crate::nginx::cookies::cookies;
use crate::nginx::fields::{request_fields, response_fields};
use crate::nginx::files::serve;
use crate::nginx::reverse;
use crate::nginx::rewrite::redirect_of_all;
use crate::nginx::sign_on;
use crate::nginx::splits;
use crate::nginx::upstream::{Upstreams, target, unreachable, with_scheme};
use crate::nginx::variables::expand_between;
use crate::passwords::EITHER;
use crate::plan::{Access, Action, AnswerText, Backend, Networks, Plan, Settings, Upstream};
use crate::toml_text::quoted;

/// The blocks whose directives apply, innermost first, and the upstreams. Inner directives override outer ones.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) blocks: &'a [&'a [Directive]],
    /// The expression whose groups are the variables `$1` and so on; `None`: there is none.
    pub(crate) expression: Option<&'a Expression>,
    pub(crate) upstreams: &'a Upstreams,
}

impl<'a> Scope<'a> {
    /// The directive of this name in the innermost block itself.
    pub(crate) fn own(&self, name: &str) -> Option<&'a Directive> {
        let block = self.blocks.first().copied().unwrap_or_default();
        block.iter().find(|it| it.name == name)
    }

    /// The directive of this name in the innermost block that has one.
    pub(crate) fn find(&self, name: &str) -> Option<&'a Directive> {
        self.level(|it| it.name == name).into_iter().next()
    }

    /// The directives that apply: those whose name no inner block has, except those that a location does not inherit.
    fn in_force(&self) -> Vec<&'a Directive> {
        let mut known: HashSet<&str> = HashSet::new();
        let mut found = Vec::new();
        for (depth, block) in self.blocks.iter().enumerate() {
            let is = |it: &&Directive| {
                !known.contains(it.name.as_str()) && (depth == 0 || it.name != "try_files")
            };
            found.extend(block.iter().filter(is));
            known.extend(block.iter().map(|it| it.name.as_str()));
        }
        found
    }

    /// The matching directives of the innermost block that has any: they replace those of outer blocks.
    pub(crate) fn level(&self, is: impl Fn(&Directive) -> bool) -> Vec<&'a Directive> {
        let all_levels = self
            .blocks
            .iter()
            .map(|block| block.iter().filter(|it| is(it)).collect::<Vec<_>>());
        let mut levels = all_levels.filter(|it| !it.is_empty());
        levels.next().unwrap_or_default()
    }
}

/// The upstreams to which the requests of a location may be sent.
pub(crate) struct LocationTargets<'a> {
    pub(crate) plan: &'a mut Plan,
    pub(crate) files: &'a dyn Files,
    /// The upstream of the location's named location; `None` if it names none.
    pub(crate) named: Option<usize>,
}

/// What is done with a location's requests, for clients that are let in. Marks the directive that decides. `path` is
/// that of the location; `None` if it has an expression or only a name.
pub(crate) fn action(
    scope: Scope<'_>,
    matcher: &Matcher,
    path: Option<&str>,
    targets: LocationTargets<'_>,
    ledger: &mut Ledger,
) -> Action {
    // The order is that of nginx's phases, not that of the file.
    if let Some(directive) = scope.own("internal") {
        ledger.mapped(directive.id);
        return Action::Answer(404);
    }
    if let Some(directive) = scope.own("return") {
        let text_type = TextType::of(scope, path);
        return answer(directive, text_type, scope.expression, ledger);
    }
    let own = scope.blocks.first().copied().unwrap_or_default();
    if let Some((directive, action)) = redirect_of_all(own) {
        ledger.mapped(directive.id);
        return action;
    }
    for name in FOREIGN_PASSES {
        if let Some(directive) = scope.own(name) {
            ledger.unmapped(directive.id, "the front does not speak this protocol here");
            return Action::Closed;
        }
    }
    if let Some(directive) = scope.own("stub_status") {
        ledger.mapped(directive.id);
        targets.plan.has_status = true;
        let text = "`Reading` is 0 here, and such connections count as waiting; the status page of [admin] says more";
        ledger.note(directive.id, text);
        return status_page();
    }
    if let Some(directive) = scope.own("proxy_pass") {
        return pass(directive, scope, matcher, path, targets, ledger);
    }
    serve(scope, matcher, path, targets.named, targets.files, ledger)
}

/// The action of a `stub_status`. It is a content handler: nginx asks all guards and limits before it.
fn status_page() -> Action {
    Action::Text(Box::new(AnswerText {
        status: 200,
        text: STATUS.to_owned(),
        media_type: "text/plain".to_owned(),
        is_guarded: true,
    }))
}

/// The action of a `proxy_pass`; closed if the front cannot reach its URL or express its path. Adds its upstreams to
/// the plan, one for each part of a `split_clients`.
fn pass(
    directive: &Directive,
    scope: Scope<'_>,
    matcher: &Matcher,
    path: Option<&str>,
    targets: LocationTargets<'_>,
    ledger: &mut Ledger,
) -> Action {
    let id = directive.id;
    let text = directive.word(0);
    let shares = splits::urls(text, scope, ledger);
    let parsed = shares.iter().map(|(url, _)| PassUrl::read(url));
    // If the URL has the variable of a split, nginx sends the URL's path unchanged.
    let is_plain =
        |urls: &Vec<PassUrl<'_>>| shares.len() == 1 || urls.iter().all(|it| it.path.is_empty());
    let Some(urls) = parsed.collect::<Option<Vec<_>>>().filter(is_plain) else {
        unreachable(id, text, ledger);
        return Action::Closed;
    };
    let path_of_url = urls.first().map_or("", |it| &*it.path);
    let found = urls
        .iter()
        .map(|it| passed_upstream(it, scope, ledger.place(id)));
    let upstreams: Option<Vec<Upstream>> = found.collect();
    let Some(mut upstreams) = upstreams else {
        unreachable(id, text, ledger);
        return Action::Closed;
    };
    let Some(passed_path) = passed_path(scope, matcher, path, path_of_url, ledger) else {
        let fault = format!("routes have no such new path as `{text}` makes here");
        ledger.unmapped(id, &fault);
        return Action::Closed;
    };
    let mut rewrite = match passed_path {
        PassedPath::Same => None,
        PassedPath::Replaced(path) => Some(path),
    };
    ledger.mapped(id);
    for (url, upstream) in urls.iter().zip(&mut upstreams) {
        backends::call(scope, &url.authority, upstream, targets.files, ledger);
        hoist(upstream);
    }
    // With a host of its own the backend answers with its own URLs: the rewrite, though it changes no path, makes the
    // front replace them.
    if upstreams.iter().any(|it| it.keys.contains_key("host"))
        && rewrite.is_none()
        && !reverse::is_said(scope)
        && let Matcher::Prefix(path) = matcher
    {
        rewrite = Some(if path.is_empty() {
            "/".to_owned()
        } else {
            path.clone()
        });
    }
    let plan = targets.plan;
    let indices = upstreams.into_iter().map(|it| plan.upstream(it));
    let weights = shares.iter().map(|(_, weight)| *weight);
    let shares: Vec<(usize, u32)> = indices.zip(weights).collect();
    Action::Forward {
        upstream: plan.shared(shares),
        rewrite,
    }
}

/// The path with which a location's requests are passed on.
pub(crate) enum PassedPath {
    Same,
    /// This path stands in place of the location's path, or of the whole path that an expression matched.
    Replaced(String),
}

/// The path for the requests of a `proxy_pass` whose URL has this path; `None` if the front cannot express it.
fn passed_path(
    scope: Scope<'_>,
    matcher: &Matcher,
    path: Option<&str>,
    path_of_url: &str,
    ledger: &mut Ledger,
) -> Option<PassedPath> {
    let own = scope.blocks.first().copied().unwrap_or_default();
    if let Some(PassedPath::Replaced(rewritten)) = inner_rewrite(own, path) {
        // A path of the URL would replace that of the whole location.
        if !path_of_url.is_empty() || matches!(matcher, Matcher::Exact(_)) {
            return None;
        }
        let rewrites = own.iter().filter(|it| it.name == "rewrite");
        rewrites.for_each(|it| ledger.mapped(it.id));
        return Some(PassedPath::Replaced(rewritten));
    }
    // A `rewrite` that cannot be expressed closes its place elsewhere.
    match scope.expression {
        Some(expression) => replaced_in_expression(expression, path_of_url),
        None => replaced_in_text(path, path_of_url, matcher),
    }
}

/// The parts of the URL of a `proxy_pass`.
struct PassUrl<'a> {
    scheme: &'a str,
    authority: String,
    /// The path that replaces the location's path; empty if the path is not replaced.
    path: String,
}

impl<'a> PassUrl<'a> {
    /// Splits a URL such as `http://host:8080/path` or `http://unix:/run/socket:/path`; `None` if it has no scheme.
    fn read(text: &'a str) -> Option<Self> {
        let (scheme, behind_scheme) = text.split_once("://")?;
        let (authority, path) = match behind_scheme.strip_prefix("unix:") {
            Some(socket_and_path) => match socket_and_path.split_once(':') {
                Some((socket, path)) => (format!("unix:{socket}"), path),
                None => (behind_scheme.to_owned(), ""),
            },
            None => match behind_scheme.find('/') {
                Some(end) => (behind_scheme[..end].to_owned(), &behind_scheme[end..]),
                None => {
                    let host = behind_scheme.trim_end_matches("$request_uri");
                    (host.to_owned(), "")
                }
            },
        };
        // Without a path nginx also sends the URI of the request.
        let is_of_request = matches!(path, "$request_uri" | "/$request_uri");
        Some(Self {
            scheme,
            authority,
            path: if is_of_request { "" } else { path }.to_owned(),
        })
    }
}

/// The upstream of a `proxy_pass`: an `upstream` block of the source, or a new one with a single backend. `None` if
/// the front cannot reach it.
fn passed_upstream(url: &PassUrl<'_>, scope: Scope<'_>, place: &Place) -> Option<Upstream> {
    if let Some(known) = scope.upstreams.get(&url.authority) {
        return with_scheme(known, url.scheme);
    }
    let target = target(url.scheme, &url.authority)?;
    Some(Upstream {
        name: target.host,
        backends: vec![Backend {
            place: Some(place.clone()),
            url: target.url,
            keys: target.keys,
        }],
        ..Upstream::default()
    })
}

/// The path by which `rewrite ^/path/(.*)$ /other/$1 break` replaces that of its location; the same if there is no
/// `rewrite`, `None` if the front cannot express it.
pub(crate) fn inner_rewrite(own: &[Directive], path: Option<&str>) -> Option<PassedPath> {
    let rewrites: Vec<&Directive> = own.iter().filter(|it| it.name == "rewrite").collect();
    let [only] = rewrites[..] else {
        return rewrites.is_empty().then_some(PassedPath::Same);
    };
    let forwards = own.iter().any(|it| it.name == "proxy_pass");
    let replaced = path_before_group(only.word(0))?;
    let base = only.word(1).strip_suffix("/$1")?;
    let is_of_location = path?.trim_end_matches('/') == replaced;
    let is_plain = base.is_empty() || (base.starts_with('/') && !base.contains(['$', '?']));
    let is_convertible = is_of_location && only.word(2) == "break" && forwards && is_plain;
    is_convertible.then(|| PassedPath::Replaced(or_root(base)))
}

/// The path, or `/` for the empty one.
fn or_root(path: &str) -> String {
    if path.is_empty() { "/" } else { path }.to_owned()
}

/// For an expression such as `^/path/(.*)$`, the path before its only group, here `/path`; `None` for any other.
fn path_before_group(expression: &str) -> Option<String> {
    let (before, group) = expression.strip_prefix('^')?.split_once('(')?;
    let takes_rest = matches!(group, ".*)" | ".*)$");
    let plain = before.replace("\\.", ".").replace("\\-", "-");
    let is_sign = |it: u8| it.is_ascii_alphanumeric() || b"/._-~".contains(&it);
    let is_path = plain.starts_with('/') && plain.ends_with('/') && plain.bytes().all(is_sign);
    (takes_rest && (is_path || plain.is_empty())).then(|| plain.trim_end_matches('/').to_owned())
}

/// How the URI of a `proxy_pass` replaces the path of a location; `None` if the front cannot express it.
fn replaced_in_text(path: Option<&str>, uri: &str, matcher: &Matcher) -> Option<PassedPath> {
    if uri.contains('$') {
        return None;
    }
    let Some(path) = path else {
        return uri.is_empty().then_some(PassedPath::Same);
    };
    if uri.is_empty() || uri == path {
        return Some(PassedPath::Same);
    }
    if matches!(matcher, Matcher::Exact(_)) {
        return is_plain_path(uri).then(|| PassedPath::Replaced(uri.to_owned()));
    }
    // nginx replaces the text, the front whole segments: both give the same only at a slash. Where the URI alone ends
    // with one, the path itself has a rule of its own (`is_uneven`), and slashes in a row are merged.
    let are_alike = uri.ends_with('/') || !path.ends_with('/');
    let ends_a_segment = matches!(matcher, Matcher::Prefix(_)) || path.ends_with('/');
    let replacement = || PassedPath::Replaced(or_root(uri.trim_end_matches('/')));
    (are_alike && ends_a_segment && is_plain_path(uri)).then(replacement)
}

/// Whether the front sends a path as it is written: it has no query, no escapes and no segments to resolve.
pub(crate) fn is_plain_path(path: &str) -> bool {
    let is_sign = |it: u8| it.is_ascii_graphic() && !b"?#%*\\{}".contains(&it);
    let is_dots = |segment: &str| matches!(segment, "." | "..");
    path.bytes().all(is_sign) && !path.contains("//") && !path.split('/').any(is_dots)
}

/// Whether either the path of a location or that of its `proxy_pass` ends with a slash: then nginx makes of the path
/// itself another one than the front does by whole segments.
pub(crate) fn is_uneven(location: &Directive, path: &str) -> bool {
    let pass = location.inside().iter().find(|it| it.name == "proxy_pass");
    let url = pass.and_then(|it| PassUrl::read(it.word(0)));
    url.is_some_and(|url| {
        let uri = &url.path;
        !uri.is_empty() && !uri.contains('$') && path.ends_with('/') != uri.ends_with('/')
    })
}

/// As [`replaced_in_text`], for a path that an expression matched. With variables nginx sends the URI as it is written,
/// so it must end with the query.
fn replaced_in_expression(expression: &Expression, uri: &str) -> Option<PassedPath> {
    if uri.is_empty() {
        return Some(PassedPath::Same);
    }
    let path = QUERIES.iter().find_map(|it| uri.strip_suffix(it))?;
    if path.trim_start_matches('/') == "$uri" {
        return Some(PassedPath::Same);
    }
    if !path.starts_with('/') || path.contains(['?', '#', '*']) {
        return None;
    }
    let group = |name: &str| expression.placeholder(name);
    expand_between(path, group, |text| Some(encoded(text))).map(PassedPath::Replaced)
}

/// The clients that are let in; [`Access::Unsaid`], which closes the place, if the front cannot express it.
pub(crate) fn access(scope: Scope<'_>, ledger: &mut Ledger) -> Access {
    claim_idle(scope, ledger);
    let signs_on = signs_on(scope, ledger);
    let rules = scope.level(|it| matches!(it.name.as_str(), "allow" | "deny"));
    rules.iter().for_each(|it| ledger.mapped(it.id));
    // `allow` and `deny` of one level together replace those of outer blocks.
    let others = ["allow", "deny"].map(|name| scope.level(|it| it.name == name));
    others.iter().flatten().for_each(|it| ledger.handle(it.id));
    let asked = rules.iter().map(|it| it.id);
    let satisfied = satisfied(scope, &rules, ledger);
    match satisfied.filter(|_| !signs_on) {
        Some(access) => {
            ledger.address_guards.written(asked);
            access
        }
        None => {
            ledger.address_guards.void(asked);
            rules
                .iter()
                .for_each(|it| ledger.unmapped(it.id, "the importer cannot tell whom it admits"));
            Access::Unsaid
        }
    }
}

/// The clients that `allow` and `deny` let in; `None` if the front cannot express it.
pub(super) fn networks(rules: &[&Directive]) -> Option<Access> {
    let (mut allow, mut deny) = (Vec::new(), Vec::new());
    // Whether all other clients are let in; nginx does so by default.
    let mut admits_others = true;
    for rule in rules {
        match (rule.name.as_str(), rule.word(0)) {
            // Nothing behind it is asked.
            (name, "all") => {
                admits_others = name == "allow";
                break;
            }
            (_, word) if !is_network(word) => return None,
            // A `deny` after an `allow` does not refuse what that lets in; in the front it would.
            ("deny", _) if !allow.is_empty() => return None,
            ("allow", word) => allow.push(word.to_owned()),
            (_, word) => deny.push(word.to_owned()),
        }
    }
    Some(match (admits_others, allow.is_empty(), deny.is_empty()) {
        (false, true, _) => Access::Nobody,
        (false, false, _) => Access::from(Networks { allow, deny }),
        (true, _, true) => Access::Open,
        (true, _, false) => Access::from(Networks::but(deny)),
    })
}

/// Whether clients must sign on otherwise than by `auth_request` or `auth_basic`. Marks the directive that says so as not
/// converted.
fn signs_on(scope: Scope<'_>, ledger: &mut Ledger) -> bool {
    // These directives alone do not restrict access.
    for name in ["auth_basic_user_file", "auth_request_set", "auth_delay"] {
        let all = scope.level(|it| it.name == name);
        all.iter().for_each(|it| ledger.handle(it.id));
    }
    let Some(directive) = scope.find("auth_jwt") else {
        return false;
    };
    if directive.word(0) == "off" {
        ledger.mapped(directive.id);
        return false;
    }
    let text = "clients sign on here, which was not converted";
    ledger.unmapped(directive.id, text);
    true
}

/// The clients that these access rules let in, beside the sign-on of the scope; `None` if the front cannot express it.
/// With `satisfy any` rules that let in nobody leave it to the sign-on alone.
fn satisfied(scope: Scope<'_>, rules: &[&Directive], ledger: &mut Ledger) -> Option<Access> {
    let satisfy = scope.find("satisfy");
    let is_any = satisfy.is_some_and(|it| it.word(0) == "any");
    let has_sign_on = sign_on::asked(scope).is_some() || sign_on::by_password(scope).is_some();
    let access = if is_any && has_sign_on {
        lets_in_nobody(rules).then_some(Access::Open)
    } else {
        networks(rules)
    };
    if let Some(satisfy) = satisfy {
        match access {
            None if is_any && has_sign_on => ledger.unmapped(satisfy.id, EITHER),
            None if is_any => {
                ledger.unmapped(satisfy.id, "the front cannot express whom it admits");
            }
            _ => ledger.mapped(satisfy.id),
        }
    }
    access
}

/// Whether access rules let in no client by their address.
fn lets_in_nobody(rules: &[&Directive]) -> bool {
    let end = rules.iter().position(|it| it.word(0) == "all");
    let asked = &rules[..end.map_or(rules.len(), |at| at + 1)];
    asked.iter().all(|it| it.name == "deny")
}

/// Notes that a location's guards by address are left to the old server, because the front does not have them.
pub(crate) fn leave_guards(scope: Scope<'_>, ledger: &mut Ledger) {
    let rules = scope.level(|it| matches!(it.name.as_str(), "allow" | "deny"));
    ledger.address_guards.void(rules.iter().map(|it| it.id));
}

/// The directives that test clients' addresses, among these and inside them.
pub(crate) fn addresses<'d>(directives: impl IntoIterator<Item = &'d Directive>) -> Vec<Id> {
    let mut found = Vec::new();
    for directive in directives {
        let asks = match directive.name.as_str() {
            "allow" | "deny" => directive.word(0) != "all",
            "geo" => true,
            "if" => directive.words.iter().any(|it| it.contains("remote_addr")),
            _ => false,
        };
        if asks {
            found.push(directive.id);
        }
        found.extend(addresses(directive.inside()));
    }
    found
}

/// Judges the place of a block by all directives in force there.
pub(crate) fn judge(scope: Scope<'_>, place_use: PlaceUse, ledger: &mut Ledger) -> JudgedPlace {
    place_use.judge(scope.in_force(), ledger)
}

/// Marks directives whose value changes nothing as mapped, so that they do not close their place.
pub(super) fn claim_idle(scope: Scope<'_>, ledger: &mut Ledger) {
    for (name, harmless) in IDLE {
        if let Some(directive) = scope.find(name).filter(|it| it.word(0) == *harmless) {
            ledger.mapped(directive.id);
        }
    }
}

/// Whether a text is an address, or a network such as `192.0.2.0/24`.
pub(crate) fn is_network(text: &str) -> bool {
    // For an address alone any valid length serves.
    let (address, length) = text.split_once('/').unwrap_or((text, "0"));
    let length_max = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|it| it <= length_max)
}

/// The settings of a location for header fields, client certificates, compression, cookies and bodies. `port` is the
/// value of `$server_port`.
pub(crate) fn settings(scope: Scope<'_>, port: u16, ledger: &mut Ledger) -> Settings {
    let mut settings = Settings::default();
    response_fields(scope, port, &mut settings, ledger);
    request_fields(scope, port, &mut settings, ledger);
    settings.keys.extend(certificate_key(scope, ledger));
    settings
        .keys
        .extend(compress::of_nginx(|name| scope.find(name), ledger));
    cookies(scope, &mut settings, ledger);
    if let Some(directive) = scope.find("client_max_body_size") {
        let text = directive.word(0);
        let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
        let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "k" => "KiB",
            "m" => "MiB",
            "g" => "GiB",
            _ => "B",
        };
        let size = if number(digits) == Some(0) {
            // In nginx, zero is no limit.
            "off".to_owned()
        } else {
            format!("{digits}{unit}")
        };
        settings.keys.insert("body_max".to_owned(), quoted(&size));
        ledger.mapped(directive.id);
    }
    settings
}

/// The modifier of a location, empty for a prefix, and its path or expression. `None` if it has no or too many words.
pub(crate) fn modifier(words: &[String]) -> Option<(&str, &str)> {
    match words {
        // A modifier may stand directly before its path. `~*` is tried before `~`, which it begins with.
        [text] => {
            let joined = ["=", "^~", "~*", "~"]
                .into_iter()
                .find_map(|it| Some((it, text.strip_prefix(it)?)));
            Some(joined.unwrap_or(("", text.as_str())))
        }
        [modifier, text] => Some((modifier.as_str(), text.as_str())),
        _ => None,
    }
}

/// Drops directives that need no counterpart, and those of the cache, which routes do not have by default.
pub(crate) fn drop_needless(directives: &[Directive], ledger: &mut Ledger) {
    for directive in directives {
        let name = directive.name.as_str();
        if is_of_cache(name) {
            drop_cache(directive, ledger);
        } else if is_needless(name) {
            ledger.needless(directive.id, "the front needs no such setting");
        } else if COMPRESSION.split_whitespace().any(|it| it == name) {
            ledger.needless(directive.id, "the front compresses by settings of its own");
        }
    }
}

/// Drops settings that no location uses, of servers and of the blocks that they inherit from.
pub(super) fn drop_unused(directives: &[&Directive], ledger: &mut Ledger) {
    let unused = |it: &Directive, ledger: &mut Ledger| match it.name.as_str() {
        "gzip" | "gzip_types" | "gzip_min_length" => {
            ledger.dropped_if_open(it.id, "nothing is compressed by it");
        }
        "index" => ledger.dropped_if_open(it.id, "no location serves files by it"),
        "expires" => {
            ledger.dropped_if_open(it.id, "redirects and errors have no `Cache-Control` here");
        }
        "auth_basic" | "auth_basic_user_file" | "auth_delay" => {
            ledger.dropped_if_open(it.id, "no location that is open asks for passwords by it");
        }
        "limit_req_zone" | "limit_conn_zone" => {
            ledger.dropped_if_open(it.id, "no location that is open counts by it");
        }
        // Where it applied, the place was judged by it, and is closed.
        "proxy_set_header" => {
            ledger.dropped_if_open(it.id, "no location that is open inherits it");
        }
        _ => {}
    };
    for directive in directives {
        if matches!(
            directive.name.as_str(),
            "root" | "index" | "autoindex" | "types"
        ) {
            ledger.dropped_if_open(directive.id, "no location serves files by it");
        }
        unused(directive, ledger);
        for inner in directive.inside() {
            unused(inner, ledger);
        }
    }
}

fn is_needless(name: &str) -> bool {
    let is_of_others = DROPPED_STARTS.iter().any(|it| name.starts_with(it));
    NEEDLESS.contains(name)
        || (is_of_others && !name.ends_with("_pass"))
        || name.ends_with("_temp_path")
}

fn is_of_cache(name: &str) -> bool {
    name.starts_with("proxy_cache") || name == "proxy_no_cache"
}

fn drop_cache(directive: &Directive, ledger: &mut Ledger) {
    let reason = "nothing is cached until a route names a `cache`";
    ledger.dropped(directive.id, reason);
    if directive.name == "proxy_cache" && directive.word(0) != "off" {
        let advice = "responses are not cached: give their route a `cache`, and say in [cache.NAME] for how long";
        ledger.note(directive.id, advice);
    }
}

/// Ends of a URI that stand for the query of the request.
const QUERIES: [&str; 4] = [
    "$is_args$args",
    "$is_args$query_string",
    "?$args",
    "?$query_string",
];

/// Directives with the value that changes nothing.
const IDLE: &[(&str, &str)] = &[
    ("proxy_pass_request_headers", "on"),
    ("proxy_pass_request_body", "on"),
    ("proxy_set_body", ""),
    ("proxy_method", ""),
    ("proxy_ssl_crl", ""),
    ("ssi", "off"),
    ("disable_symlinks", "off"),
    ("ssl_reject_handshake", "off"),
    ("ssl_verify_client", "off"),
    ("ssl_ocsp", "off"),
    ("image_filter", "off"),
    ("random_index", "off"),
    ("merge_slashes", "on"),
];

/// The page of `stub_status`, as programs that watch nginx read it.
const STATUS: &str = "Active connections: {connections_open} \nserver accepts handled requests\n {connections_accepted} \
    {connections_accepted} {requests_received} \nReading: 0 Writing: {requests_in_flight} Waiting: {connections_idle} \n";

/// Directives that pass requests on by protocols other than HTTP.
const FOREIGN_PASSES: [&str; 6] = [
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "grpc_pass",
    "memcached_pass",
    "ajp_pass",
];

static NEEDLESS: LazyLock<HashSet<&str>> = LazyLock::new(|| DROPPED.split_whitespace().collect());

const DROPPED: &str = "access_log error_log log_format log_not_found server_tokens sendfile tcp_nopush \
    tcp_nodelay types_hash_max_size charset worker_processes worker_connections events user pid \
    keepalive_timeout keepalive_requests proxy_http_version proxy_redirect proxy_buffering proxy_buffers \
    proxy_buffer_size proxy_busy_buffers_size proxy_request_buffering proxy_max_temp_file_size \
    proxy_temp_file_write_size proxy_headers_hash_max_size proxy_headers_hash_bucket_size proxy_send_timeout \
    send_timeout client_header_timeout client_body_timeout client_body_buffer_size client_header_buffer_size \
    large_client_header_buffers server_names_hash_bucket_size server_names_hash_max_size variables_hash_max_size \
    multi_accept master_process daemon worker_rlimit_nofile use resolver resolver_timeout proxy_ssl_server_name proxy_ssl_session_reuse \
    ssl_session_cache ssl_session_timeout ssl_session_tickets ssl_ciphers ssl_prefer_server_ciphers ssl_dhparam \
    ssl_ecdh_curve ssl_stapling ssl_stapling_verify ssl_buffer_size reset_timedout_connection \
    fastcgi_param fastcgi_index fastcgi_split_path_info uwsgi_param port_in_redirect server_name_in_redirect \
    absolute_redirect chunked_transfer_encoding load_module ignore_invalid_headers http2";

/// Prefixes of the names of settings that the front does not need. `…_pass` directives are read elsewhere.
const DROPPED_STARTS: &[&str] = &[
    "fastcgi_",
    "uwsgi_",
    "scgi_",
    "grpc_",
    "memcached_",
    "worker_",
    "http2_",
    "open_file_cache",
    "map_hash_",
    "ssl_session_",
    "lua_package_",
    "lua_shared_",
];

/// Settings of compression and of files for which the front has no key; they are dropped.
const COMPRESSION: &str = "etag gzip_vary gzip_proxied gzip_comp_level gzip_buffers gzip_http_version gzip_disable gzip_static open_file_cache";
