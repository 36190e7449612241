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
use crate::nginx::fields::{cookie_flags, request_fields, response_fields};
use crate::nginx::files::serve;
use crate::nginx::rewrite::redirect_of_all;
use crate::nginx::splits;
use crate::nginx::upstream::{Upstreams, target, unreachable, with_scheme};
use crate::nginx::variables::expand_between;
use crate::plan::{Access, Action, AnswerText, Backend, Plan, Settings, Upstream};
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

/// What is done with a location's requests, for clients that are let in.
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
        return answer(directive, TextType::of(scope), scope.expression, ledger);
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
        return status_page(directive, scope, ledger);
    }
    if let Some(directive) = scope.own("proxy_pass") {
        return pass(directive, scope, matcher, path, targets, ledger);
    }
    serve(scope, matcher, path, targets.named, targets.files, ledger)
}

/// The action of a `stub_status`. A route with a text asks no addresses and no limits.
fn status_page(directive: &Directive, scope: Scope<'_>, ledger: &mut Ledger) -> Action {
    let guards = ["allow", "deny", "limit_req", "limit_conn"];
    if guards.iter().any(|name| scope.find(name).is_some()) {
        let text = "the front has a status page in [admin], on loopback; this path has no route";
        ledger.note(directive.id, text);
        return Action::Answer(404);
    }
    let text = "`Reading` is 0 here, and such connections count as waiting; the status page of [admin] says more";
    ledger.note(directive.id, text);
    Action::Text(Box::new(AnswerText {
        status: 200,
        text: STATUS.to_owned(),
        media_type: "text/plain".to_owned(),
    }))
}

/// The action of a `proxy_pass`.
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
    let urls: Option<Vec<PassUrl<'_>>> = parsed.collect();
    // If the URL has a variable, nginx sends the URL's path unchanged.
    let is_plain =
        |all: &Vec<PassUrl<'_>>| all.len() == 1 || all.iter().all(|it| it.path.is_empty());
    let Some(urls) = urls.filter(is_plain) else {
        unreachable(id, text, ledger);
        return Action::Closed;
    };
    let path_of_url = urls.first().map_or("", |it| &*it.path);
    let found = urls
        .iter()
        .map(|it| passed_upstream(it, scope, ledger.place(id)));
    let upstreams: Option<Vec<Upstream>> = found.collect();
    let own = scope.blocks.first().copied().unwrap_or_default();
    let rewrite = match inner_rewrite(own, path) {
        // A `proxy_pass` with a path then refers to the path of the whole location.
        Some(Some(_)) if !path_of_url.is_empty() => None,
        Some(Some(rewritten)) => {
            let rewrites = own.iter().filter(|it| it.name == "rewrite");
            rewrites.for_each(|it| ledger.mapped(it.id));
            Some(Some(rewritten))
        }
        _ => match scope.expression {
            Some(expression) => of_expression(expression, path_of_url),
            None => rewrite(path, path_of_url, matcher),
        },
    };
    let (Some(mut upstreams), Some(mut rewrite)) = (upstreams, rewrite) else {
        unreachable(id, text, ledger);
        return Action::Closed;
    };
    ledger.mapped(id);
    for (url, upstream) in urls.iter().zip(&mut upstreams) {
        backends::call(scope, &url.authority, upstream, targets.files, ledger);
        hoist(upstream);
    }
    if upstreams.iter().any(|it| it.keys.contains_key("host"))
        && rewrite.is_none()
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

/// The parts of the URL of a `proxy_pass`.
struct PassUrl<'a> {
    scheme: &'a str,
    authority: String,
    /// The path that replaces the location's path; empty if the path is not replaced.
    path: String,
}

impl<'a> PassUrl<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (authority, path) = match rest.strip_prefix("unix:") {
            Some(socket) => match socket.split_once(':') {
                Some((socket, path)) => (format!("unix:{socket}"), path),
                None => (rest.to_owned(), ""),
            },
            None => match rest.find('/') {
                Some(at) => (rest[..at].to_owned(), &rest[at..]),
                None => (rest.trim_end_matches("$request_uri").to_owned(), ""),
            },
        };
        let path = match path {
            "$request_uri" | "/$request_uri" => "",
            path => path,
        };
        Some(Self {
            scheme,
            authority,
            path: path.to_owned(),
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

/// The path by which `rewrite ^/path/(.*)$ /other/$1 break` replaces that of its location; `Some(None)` if there is
/// no `rewrite`, `None` if the front cannot express it.
pub(crate) fn inner_rewrite(own: &[Directive], path: Option<&str>) -> Option<Option<String>> {
    let all: Vec<&Directive> = own.iter().filter(|it| it.name == "rewrite").collect();
    let [only] = all[..] else {
        return all.is_empty().then_some(None);
    };
    let proxied = own.iter().any(|it| it.name == "proxy_pass");
    let below = rest_of(only.word(0))?;
    let base = only.word(1).strip_suffix("/$1")?;
    let fits = path?.trim_end_matches('/') == below && only.word(2) == "break" && proxied;
    let plain = base.is_empty() || base.starts_with('/') && !base.contains(['$', '?']);
    (fits && plain).then(|| match base {
        "" => Some("/".to_owned()),
        base => Some(base.to_owned()),
    })
}

/// For an expression such as `^/path/(.*)$`, the path before its only group, here `/path`.
fn rest_of(expression: &str) -> Option<String> {
    let (before, group) = expression.strip_prefix('^')?.split_once('(')?;
    let is_rest = matches!(group, ".*)" | ".*)$");
    let plain = before.replace("\\.", ".").replace("\\-", "-");
    let is_sign = |it: u8| it.is_ascii_alphanumeric() || b"/._-~".contains(&it);
    let is_path = plain.starts_with('/') && plain.ends_with('/') && plain.bytes().all(is_sign);
    (is_rest && (is_path || plain.is_empty())).then(|| plain.trim_end_matches('/').to_owned())
}

/// The path by which the URI of a `proxy_pass` replaces that of the location; `Some(None)` if the path is not
/// replaced, `None` if the front cannot express it.
fn rewrite(path: Option<&str>, uri: &str, matcher: &Matcher) -> Option<Option<String>> {
    if uri.contains('$') {
        return None;
    }
    let Some(path) = path else {
        return uri.is_empty().then_some(None);
    };
    if uri.is_empty() || uri == path {
        return Some(None);
    }
    let fits = path.ends_with('/') == uri.ends_with('/') || uri == "/";
    let is_prefix = matches!(matcher, Matcher::Prefix(_));
    (fits && (is_prefix || path.ends_with('/'))).then(|| {
        let plain = uri.trim_end_matches('/');
        Some(if plain.is_empty() {
            "/".to_owned()
        } else {
            plain.to_owned()
        })
    })
}

/// As [`rewrite`], for a path that an expression matched. With variables nginx sends the URI as it is written, so it
/// must end with the query.
fn of_expression(expression: &Expression, uri: &str) -> Option<Option<String>> {
    if uri.is_empty() {
        return Some(None);
    }
    let path = QUERIES.iter().find_map(|it| uri.strip_suffix(it))?;
    if path.trim_start_matches('/') == "$uri" {
        return Some(None);
    }
    let is_plain = path.starts_with('/') && !path.contains(['?', '#', '*']);
    let known = |name: &str| expression.placeholder(name);
    let between = |text: &str| Some(encoded(text));
    expand_between(path, known, between)
        .filter(|_| is_plain)
        .map(Some)
}

/// The clients that are let in.
pub(crate) fn access(scope: Scope<'_>, ledger: &mut Ledger) -> Access {
    claim_idle(scope, ledger);
    let has_others = signs_on(scope, ledger) | satisfies_any(scope, ledger);
    let rules = scope.level(|it| matches!(it.name.as_str(), "allow" | "deny"));
    rules.iter().for_each(|it| ledger.mapped(it.id));
    // `allow` and `deny` of one level together replace those of outer blocks.
    let others = ["allow", "deny"].map(|name| scope.level(|it| it.name == name));
    others.iter().flatten().for_each(|it| ledger.handle(it.id));
    let asked = rules.iter().map(|it| it.id);
    match networks(&rules).filter(|_| !has_others) {
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
fn networks(rules: &[&Directive]) -> Option<Access> {
    let (mut allow, mut deny, mut ends) = (Vec::new(), Vec::new(), None);
    for rule in rules {
        match (rule.name.as_str(), rule.word(0)) {
            (name, "all") => {
                ends = Some(name == "allow");
                break;
            }
            (_, word) if !is_network(word) => return None,
            // A `deny` after an `allow` does not refuse what that lets in; in the front it would.
            ("deny", _) if !allow.is_empty() => return None,
            ("allow", word) => allow.push(word.to_owned()),
            (_, word) => deny.push(word.to_owned()),
        }
    }
    Some(match ends {
        Some(false) if allow.is_empty() => Access::Nobody,
        Some(false) => Access::Networks { allow, deny },
        _ if deny.is_empty() => Access::Open,
        _ => Access::Networks {
            allow: Vec::new(),
            deny,
        },
    })
}

/// Whether clients must authenticate.
fn signs_on(scope: Scope<'_>, ledger: &mut Ledger) -> bool {
    let mut found = false;
    for name in ["auth_basic", "auth_request", "auth_jwt"] {
        let Some(directive) = scope.find(name) else {
            continue;
        };
        if directive.word(0) == "off" {
            ledger.mapped(directive.id);
        } else {
            let text = "clients sign on here, and the front has no sign-on";
            ledger.unmapped(directive.id, text);
            found = true;
        }
    }
    // These directives alone do not restrict access.
    for name in ["auth_basic_user_file", "auth_request_set", "auth_delay"] {
        let all = scope.level(|it| it.name == name);
        all.iter().for_each(|it| ledger.handle(it.id));
    }
    found
}

/// Whether one of several guards suffices.
fn satisfies_any(scope: Scope<'_>, ledger: &mut Ledger) -> bool {
    let Some(satisfy) = scope.find("satisfy") else {
        return false;
    };
    let any = satisfy.word(0) == "any";
    if any {
        ledger.unmapped(satisfy.id, "the front cannot express whom it admits");
    } else {
        ledger.mapped(satisfy.id);
    }
    any
}

/// Notes that a location's guards by address are left to the old server, because the front does not have them.
pub(crate) fn leave_guards(scope: Scope<'_>, ledger: &mut Ledger) {
    let rules = scope.level(|it| matches!(it.name.as_str(), "allow" | "deny"));
    ledger.address_guards.void(rules.iter().map(|it| it.id));
}

/// The directives that test clients' addresses, in blocks and inside them.
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

/// Marks directives whose value changes nothing.
fn claim_idle(scope: Scope<'_>, ledger: &mut Ledger) {
    for (name, harmless) in IDLE {
        if let Some(directive) = scope.find(name).filter(|it| it.word(0) == *harmless) {
            ledger.mapped(directive.id);
        }
    }
}

pub(crate) fn is_network(text: &str) -> bool {
    let (address, length) = text.split_once('/').unwrap_or((text, "0"));
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|it| it <= most)
}

/// The settings of a location for header fields, bodies and compression.
pub(crate) fn settings(scope: Scope<'_>, port: u16, ledger: &mut Ledger) -> Settings {
    let mut settings = Settings::default();
    response_fields(scope, port, &mut settings, ledger);
    request_fields(scope, port, &mut settings, ledger);
    if let Some(directive) = scope
        .find("ssl_verify_client")
        .filter(|it| it.word(0) == "on")
    {
        settings
            .keys
            .insert("client_certificate".to_owned(), quoted("required"));
        ledger.mapped(directive.id);
    }
    settings
        .keys
        .extend(compress::of_nginx(|name| scope.find(name), ledger));
    cookie_flags(scope, &mut settings, ledger);
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
            "off".to_owned()
        } else {
            format!("{digits}{unit}")
        };
        settings.keys.insert("body_max".to_owned(), quoted(&size));
        ledger.mapped(directive.id);
    }
    settings
}

/// The modifier of a location, and its path or expression.
pub(crate) fn modifier(words: &[String]) -> Option<(&str, &str)> {
    match words {
        [text] => {
            let modifiers = ["=", "^~", "~*", "~"];
            let found = modifiers
                .iter()
                .find_map(|it| Some((*it, text.strip_prefix(it)?)));
            Some(found.unwrap_or(("", text.as_str())))
        }
        [modifier, text] => Some((modifier.as_str(), text.as_str())),
        _ => None,
    }
}

/// Drops directives that need no counterpart.
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

fn is_needless(name: &str) -> bool {
    let is_of_others = DROPPED_STARTS.iter().any(|it| name.starts_with(it));
    NEEDLESS.contains(name)
        || is_of_others && !name.ends_with("_pass")
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
    ("proxy_cookie_flags", "off"),
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
