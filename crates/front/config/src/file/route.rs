//! `[[route]]`: which request goes where, and what it changes on the way.

mod compress;
mod cookies;
mod cors;
mod fields;
mod files;
pub(crate) mod listeners;
mod matching;
mod reverse;
mod rules;
mod text;
mod unless;

use std::ops::Range;
use std::sync::Arc;

use catamaran_proxy::config::{
    PathExpression, Redirect, ResponseFieldRule, RouteConfig, RouteRules, RouteTarget,
};
pub(crate) use cookies::{
    DOMAIN_SECTION as COOKIE_DOMAIN_SECTION, PATH_SECTION as COOKIE_PATH_SECTION,
    SECTION as COOKIE_SECTION,
};
pub(crate) use cors::SECTION as CORS_SECTION;
pub use fields::is_ruled_field;
pub(crate) use fields::{
    REQUEST_SECTION, RESPONSE_NAME, RESPONSE_SECTION, SERVER_SECTION, reserved_of_requests,
};
use http::StatusCode;
use listeners::ListenerRefs;
pub(crate) use reverse::SECTION as REVERSE_SECTION;
use rules::ServedBy;
pub use text::{TEXT_MAX, is_inert_type};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
pub(crate) use unless::SECTION as UNLESS_SECTION;

use super::Surroundings;
use super::error_pages::{self, Pages};
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, tables};
use crate::value::route::{parse_location, parse_redirect};
use crate::value::text::parse_name;
use crate::value::{Counts, NamedValues, Optional, Syntax};

/// A route, with the places of its header and of its target.
#[derive(Debug)]
pub(crate) struct Route {
    /// One route for each combination of its paths and suffixes.
    pub(crate) values: Vec<RouteConfig>,
    pub(crate) target: RouteTarget,
    /// The listeners that the route is for; `None`: all.
    pub(crate) listen: Option<ListenerRefs>,
    pub(crate) place: Range<usize>,
    pub(crate) target_place: Range<usize>,
    /// Where `activation` is in the file; without it, the table's header.
    pub(crate) activation_place: Range<usize>,
    /// Where `cache` is in the file; without it, the table's header.
    pub(crate) cache_place: Range<usize>,
    /// Where `limits` is in the file; without it, the table's header.
    pub(crate) limits_place: Range<usize>,
    /// Where `auth` is in the file; `None`: it is not there.
    pub(crate) auth_place: Option<Range<usize>>,
    /// Whether the keys that say which requests it matches have no fault, so that it may be compared with other routes.
    pub(crate) matching: bool,
}

/// What the file sets for all routes: pages for those without their own, and changes of responses' fields.
#[derive(Clone, Copy)]
pub(crate) struct ForAll<'f> {
    pub(crate) pages: Option<&'f Pages>,
    pub(crate) response_headers: &'f [ResponseFieldRule],
}

/// Reads `[server.response_headers]`, whose rules all routes have.
pub(crate) fn response_headers(root: &DeTable<'_>, report: &mut Report) -> Vec<ResponseFieldRule> {
    fields::of_all_routes(root, report)
}

/// Reads all tables `[[route]]`.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    for_all: ForAll<'_>,
    report: &mut Report,
) -> Vec<Route> {
    let entries = tables(SECTION.header, value, report);
    entries
        .into_iter()
        .filter_map(|(place, entries)| read_one(place, entries, surroundings, for_all, report))
        .collect()
}

/// Reads one `[[route]]`; `None` if it has no valid target. Then its other keys are read for the report alone.
fn read_one(
    place: Range<usize>,
    entries: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    for_all: ForAll<'_>,
    report: &mut Report,
) -> Option<Route> {
    let mut table = Table::new(&SECTION, place.clone(), entries).except(TABLES);
    let unless = entries
        .get(unless::NAME)
        .and_then(|value| unless::read(value, report));
    let (matched, listen) = matching::read(&mut table, surroundings.base, unless);
    let matching = table.is_good();
    let expression = matched.first().and_then(|value| value.regex.as_ref());
    let target = target(&mut table, expression);
    let forwards = target.as_ref().is_some_and(|(target, _)| target.forwards());
    let serves = ServedBy {
        upstream: target.is_none() || forwards,
        files: table.has("files"),
        text: table.has("text"),
    };
    let mut rules = rules::read(&mut table, serves, expression);
    let own_files = files::read(&mut table, surroundings);
    rules.compress = compress::read(&mut table, serves).map(Arc::new);
    // Requests for files that do not exist go to the upstream.
    if forwards
        && own_files
            .as_ref()
            .is_some_and(|files| files.fallback.is_some())
    {
        files::complain_of_fallback(&mut table);
    }
    rules.files = own_files.map(Arc::new);
    let status = match &target {
        Some((RouteTarget::Status(status), _)) => Some(*status),
        _ => None,
    };
    rules.text = text::read(&mut table, status);
    let exact = matched.iter().any(|value| value.exact);
    matching::check_rewrite(&mut table, exact, rules.rewrite.is_some());
    if let Some((RouteTarget::Redirect(redirect), _)) = &target
        && redirect.to.names_rest()
    {
        matching::check_rest(&mut table, exact);
    }
    let activation_place = table.place_of("activation");
    let cache_place = table.place_of("cache");
    let limits_place = table.place_of("limits");
    let auth_place = table.has("auth").then(|| table.place_of("auth"));
    if !forwards && target.is_some() {
        check_tables(&mut table, entries);
    }
    table.finish(report);
    let all_rules = with_tables(rules, entries, expression, surroundings, for_all, report);
    // Most routes have no rules.
    let shared_rules = (all_rules != Default::default()).then(|| Arc::new(all_rules));
    let (target, target_place) = target?;
    let mut values = matched;
    for value in &mut values {
        value.target = target.clone();
        value.rules.clone_from(&shared_rules);
    }
    Some(Route {
        values,
        target,
        listen,
        place,
        target_place,
        activation_place,
        cache_place,
        limits_place,
        auth_place,
        matching,
    })
}

/// Reports tables of a route without an upstream that only requests and responses of backends need.
fn check_tables(table: &mut Table<'_>, entries: &DeTable<'_>) {
    let of_cookies = [cookies::FLAGS, cookies::DOMAINS, cookies::PATHS];
    let mut useless = of_cookies
        .map(|name| (name, entries.contains_key(name)))
        .to_vec();
    useless.push((fields::REQUEST_NAME, fields::changes_requests(entries)));
    for (name, is_there) in useless {
        if is_there {
            let message = format!("`{name}` has no use without `upstream`");
            table.push(Finding::fault(message, table.place()).hint("remove it"));
        }
    }
}

/// The rules, completed by the tables that the route has besides its keys.
fn with_tables(
    rules: RouteRules,
    entries: &DeTable<'_>,
    expression: Option<&PathExpression>,
    surroundings: &Surroundings<'_>,
    for_all: ForAll<'_>,
    report: &mut Report,
) -> RouteRules {
    let (request_headers, own) = fields::read(entries, expression, report);
    let cors = entries
        .get(cors::NAME)
        .and_then(|value| cors::read(value, &own, report));
    let pages = entries.get(error_pages::NAME).and_then(|value| {
        error_pages::read(value, &error_pages::ROUTE_SECTION, surroundings, report)
    });
    let reverse_urls = entries.get(reverse::NAME);
    RouteRules {
        cookies: cookies::read(entries, expression, report),
        reverse_urls: reverse_urls.map(|value| reverse::read(value, report)),
        request_headers,
        // The route's own changes come last, so that they win.
        response_headers: [for_all.response_headers, &own].concat(),
        cors: cors.map(Arc::new),
        error_pages: pages.map(|own| Arc::new(own.before(for_all.pages))),
        ..rules
    }
}

/// The values of the keys that say where the route leads.
#[derive(Default)]
struct RawRoute {
    upstream: Option<String>,
    split: Vec<(String, u32)>,
    status: Option<u16>,
    redirect: Option<String>,
}

/// Where the route leads, and the place of the key that says so. A redirect may have groups of the route's
/// `expression`.
fn target(
    table: &mut Table<'_>,
    expression: Option<&PathExpression>,
) -> Option<(RouteTarget, Range<usize>)> {
    let mut written = RawRoute::default();
    table.read(KEYS, &mut written);
    let key = target_key(table)?;
    let target = match key {
        "upstream" => RouteTarget::Upstream(written.upstream?),
        "split" => {
            check_split(&written.split, table)?;
            RouteTarget::Split(written.split)
        }
        "files" => RouteTarget::Files,
        "redirect" => {
            // Beside `redirect`, `status` is that of the redirect.
            let status = if table.has("status") {
                redirect_status(written.status?, table)?
            } else {
                StatusCode::PERMANENT_REDIRECT
            };
            match parse_location(&written.redirect?, expression) {
                Ok(to) => RouteTarget::Redirect(Redirect { to, status }),
                Err(error) => {
                    let message = format!("`redirect` {error}");
                    table.push(Finding::fault(message, table.place_of("redirect")));
                    return None;
                }
            }
        }
        _ => RouteTarget::Status(answer(written.status?, table)?),
    };
    Some((target, table.place_of(key)))
}

/// The key of the table that says where the route leads; `None`, with a fault, if there is none, or if two keys
/// contradict each other.
fn target_key(table: &mut Table<'_>) -> Option<&'static str> {
    let clashes = [
        ("files", "redirect"),
        ("files", "status"),
        ("split", "redirect"),
        ("split", "status"),
        ("split", "upstream"),
        ("upstream", "redirect"),
        ("upstream", "status"),
    ];
    for (first, second) in clashes {
        if table.has(first) && table.has(second) {
            let message = format!("[[route]] has both `{first}` and `{second}`");
            table.push(Finding::fault(message, table.place_of(second)).hint("remove one of them"));
            return None;
        }
    }
    let key = TARGETS.into_iter().find(|name| table.has(name));
    // If one of these keys is only misspelled, the report about that key says so.
    if key.is_none() && !table.has_slip_of(&TARGETS) {
        let message = "[[route]] leads nowhere";
        let hint =
            "give it an `upstream`, `split`, `files`, a `redirect`, or a `status` to answer with";
        table.push(Finding::fault(message, table.place()).hint(hint));
    }
    key
}

/// Checks the upstreams and weights of `split`; `None`, with a fault, if no request would go anywhere.
fn check_split(split: &[(String, u32)], table: &mut Table<'_>) -> Option<()> {
    if split.iter().all(|(_, weight)| *weight == 0) {
        let message = "`split` has no upstream with a weight above 0";
        let hint = "name the upstreams with their weights, such as { a = 9, b = 1 }";
        table.push(Finding::fault(message, table.place_of("split")).hint(hint));
        return None;
    }
    if table.has("activation") {
        let message =
            "`activation` has no use beside `split`, whose upstreams have backends of their own";
        let place = table.place_of("activation");
        table.push(Finding::fault(message, place).hint("write a route for each upstream"));
    }
    Some(())
}

/// The status of a redirect: one that all clients follow in the same way; otherwise a fault.
fn redirect_status(status: u16, table: &mut Table<'_>) -> Option<StatusCode> {
    if [301, 302, 303, 307, 308].contains(&status) {
        return StatusCode::from_u16(status).ok();
    }
    let message = format!("`status` is {status}, and not all clients follow it alike");
    let hint = "write 301 or 308 for a permanent redirect, 302 or 307 for a temporary one, 303 for a page to GET; 307 and 308 keep the method";
    table.push(Finding::fault(message, table.place_of("status")).hint(hint));
    None
}

/// The status of a plain answer; a redirect without a target is a fault.
fn answer(status: u16, table: &mut Table<'_>) -> Option<StatusCode> {
    if (300..400).contains(&status) {
        let message = format!("`status` is {status}, a redirect, but no `redirect` says where to");
        let hint = "add `redirect`, or answer with another status";
        table.push(Finding::fault(message, table.place_of("status")).hint(hint));
        return None;
    }
    StatusCode::from_u16(status).ok()
}

pub(crate) static SECTION: Section = Section {
    header: "[[route]]",
    intro: "Which request goes where, and what is changed on the way. Among the routes that match, \
            the most specific wins: an exact host before a wildcard before none, then an exact path \
            before a `regex` before the longest prefix, then a suffix before none, then one with a `listen` before one \
            without, then one with a `scheme` before one without, then one with `methods` before one without, then one \
            with more `match_headers`, then `match_query`, then `match_cookies`, then `match_regex`, then one with [route.unless], then the earlier in the file; of several `regex` the earlier. A request that matches none is answered 404; \
            there is no default backend. At least one route is needed. \
            [routes.md](routes.md) has examples.",
    keys: &[
        Part::all(&matching::KEYS),
        Part::all(&KEYS),
        Part::all(&text::KEYS),
        Part::all(&files::KEYS),
        Part::all(&compress::KEYS),
        Part::all(&rules::KEYS),
    ],
    later: &[],
};

/// The tables that a route has besides its keys.
const TABLES: &[&str] = &[
    fields::REQUEST_NAME,
    RESPONSE_NAME,
    cookies::FLAGS,
    cookies::DOMAINS,
    cookies::PATHS,
    cors::NAME,
    error_pages::NAME,
    reverse::NAME,
    unless::NAME,
];

/// The keys of which a route must have one. If it has several, the first in this order says where it leads.
const TARGETS: [&str; 5] = ["upstream", "split", "files", "redirect", "status"];

static KEYS: &[Key<RawRoute>] = &[
    Key {
        name: "upstream",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "the name of an upstream",
                parse: parse_name,
            }),
            RawRoute.upstream
        ),
        preset: Preset::Unset("then `files`, `redirect` or `status` is needed"),
        sample: "\"tomcat\"",
        effect: "The upstream that serves the request.",
        extremes: "A name that no `[upstream.NAME]` has is a fault.",
        elsewhere: "nginx `proxy_pass`; httpd `ProxyPass`; mod_jk `JkMount`",
    },
    Key {
        name: "split",
        group: ALL,
        value: fill!(
            NamedValues {
                what: "upstreams with their weights, such as { a = 9, b = 1 }",
                of: Counts(0..=1_000_000),
            },
            RawRoute.split
        ),
        preset: Preset::Unset("one upstream gets all"),
        sample: "{ NAME = 9, tomcat = 1 }",
        effect: "Instead of `upstream`: the upstreams that share the requests, by their weights. A request whose session \
                 has its backend in one of them goes there, whatever the weights; 0 leaves an upstream its sessions alone.",
        extremes: "Backends of all of them need a `jvm_route` of their own, or a session is looked for in the first that \
                   has its route. A failed request is not sent to another upstream.",
        elsewhere: "nginx `split_clients`; HAProxy `use_backend` with `rand`; Traefik `weighted`",
    },
    Key {
        name: "status",
        group: ALL,
        value: fill!(Optional(Counts(200..=599)), RawRoute.status),
        preset: Preset::Unset(
            "then `upstream`, `files` or `redirect` is needed; of a redirect 308",
        ),
        sample: "404",
        effect: "The front answers with this status itself; beside `redirect`, its status: 301 or 308 \
                 for a permanent redirect, 302 or 307 for a temporary one, 303 for another page, which the client asks for by GET. With 301 and 302 most clients turn a POST into a GET.",
        extremes: "404 hides a part of an application, such as `/app/admin`.",
        elsewhere: "nginx `return`; mod_jk `JkUnMount` (404)",
    },
    Key {
        name: "redirect",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a path or URL such as \"https://{host}{path_query}\"",
                parse: parse_redirect,
            }),
            RawRoute.redirect
        ),
        preset: Preset::Unset("then `upstream`, `files` or `status` is needed"),
        sample: "\"https://{host}{path_query}\"",
        effect: "The client is sent there. `{host}` is the host that it asked for, `{authority}` the \
                 host with its port, `{scheme}`, `{path}`, `{query}`, `{search}` `?` and the query if there is \
                 one, `{and_query}` `&` and the query likewise, and `{path_query}` the path with its query; `{rest}` is what is behind `path`, empty or with a slash at its beginning, and \
                 `{rest_query}` that with the query. Beside `regex` `{1}` and `{name}` are what its groups captured, \
                 percent-encoded again; directly behind the host it begins with a slash. `{{` stands for a brace.",
        extremes: "Behind a trusted proxy they are what the proxy was asked for. A redirect to the \
                   very URL that was asked for is answered 500 (`redirect-loop`): from http to https \
                   it needs `scheme = \"http\"`.",
        elsewhere: "nginx `return 301`; httpd `Redirect`; HAProxy `http-request redirect`",
    },
];
