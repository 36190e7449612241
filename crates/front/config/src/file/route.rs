//! `[[route]]`: which request goes where, and what it changes on the way.

mod compress;
mod fields;
mod files;
pub(crate) mod listeners;
mod matching;
mod rules;
mod text;

use std::ops::Range;
use std::sync::Arc;

use catamaran_proxy::config::{
    PathExpression, Redirect, ResponseFieldRule, RouteConfig, RouteTarget,
};
pub use fields::is_ruled_field;
pub(crate) use fields::{
    REQUEST_SECTION, RESPONSE_NAME, RESPONSE_SECTION, SERVER_SECTION, reserved_of_requests,
};
use http::StatusCode;
use listeners::ListenerRefs;
use rules::ServedBy;
pub use text::{TEXT_MAX, is_inert_type};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Surroundings;
use super::error_pages::{self, Pages};
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, tables};
use crate::value::route::{parse_location, parse_redirect};
use crate::value::text::parse_name;
use crate::value::{Counts, Optional, Syntax};

/// A route, placed by its header and by its target.
#[derive(Debug)]
pub(crate) struct Route {
    /// One for each of its paths and suffixes.
    pub(crate) values: Vec<RouteConfig>,
    pub(crate) target: RouteTarget,
    /// `None`: it is for all listeners.
    pub(crate) listen: Option<ListenerRefs>,
    pub(crate) place: Range<usize>,
    pub(crate) target_place: Range<usize>,
    /// Where `activation` stands, or else the header.
    pub(crate) activation_place: Range<usize>,
    /// Where `cache` stands, or else the header.
    pub(crate) cache_place: Range<usize>,
    /// Whether what it matches was without fault, so that it may be compared with other routes.
    pub(crate) matching: bool,
}

/// What routes have where they have nothing of their own, or besides.
#[derive(Clone, Copy)]
pub(crate) struct ForAll<'f> {
    pub(crate) pages: Option<&'f Pages>,
    pub(crate) response_headers: &'f [ResponseFieldRule],
}

/// Reads `[server.response_headers]`, whose rules all routes have.
pub(crate) fn response_headers(root: &DeTable<'_>, report: &mut Report) -> Vec<ResponseFieldRule> {
    fields::of_all_routes(root, report)
}

/// Reads the tables.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    for_all: ForAll<'_>,
    report: &mut Report,
) -> Vec<Route> {
    let entries = tables(SECTION.header, value, report);
    entries
        .into_iter()
        .filter_map(|(place, entries)| one(place, entries, surroundings, for_all, report))
        .collect()
}

fn one(
    place: Range<usize>,
    entries: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    for_all: ForAll<'_>,
    report: &mut Report,
) -> Option<Route> {
    let mut table = Table::new(&SECTION, place.clone(), entries).except(&[
        fields::REQUEST_NAME,
        RESPONSE_NAME,
        error_pages::NAME,
    ]);
    let (matched, listen) = matching::read(&mut table, surroundings.base);
    let matching = table.is_good();
    let expression = matched.first().and_then(|it| it.regex.as_ref());
    let target = target(&mut table, expression);
    let forwards = matches!(target, Some((RouteTarget::Upstream(_), _)));
    let serves = ServedBy {
        upstream: target.is_none() || forwards,
        files: table.has("files"),
    };
    let mut rules = rules::read(&mut table, serves, expression);
    let own_files = files::read(&mut table, surroundings);
    rules.compress = compress::read(&mut table, serves).map(Arc::new);
    if forwards && own_files.as_ref().is_some_and(|it| it.fallback.is_some()) {
        let message = "`fallback` has no use beside `upstream`, which answers what is no file";
        let place = table.place_of("fallback");
        table.push(Finding::fault(message, place).hint("remove one of them"));
    }
    rules.files = own_files.map(Arc::new);
    let status = match &target {
        Some((RouteTarget::Status(status), _)) => Some(*status),
        _ => None,
    };
    rules.text = text::read(&mut table, status);
    let exact = matched.iter().any(|it| it.exact);
    matching::check_rewrite(&mut table, exact);
    if let Some((RouteTarget::Redirect(to), _)) = &target
        && to.to.names_rest()
    {
        matching::check_rest(&mut table, exact);
    }
    let activation_place = table.place_of("activation");
    let cache_place = table.place_of("cache");
    if !forwards && target.is_some() && fields::changes_requests(entries) {
        let message = "`request_headers` has no use without `upstream`";
        table.push(Finding::fault(message, place.clone()).hint("remove it"));
    }
    table.finish(report);
    (rules.request_headers, rules.response_headers) = fields::read(entries, expression, report);
    // A route's own come last, so that they win.
    let all = for_all.response_headers.iter().cloned();
    rules.response_headers = all.chain(rules.response_headers).collect();
    let own = entries.get(error_pages::NAME).and_then(|value| {
        error_pages::read(value, &error_pages::ROUTE_SECTION, surroundings, report)
    });
    rules.error_pages = own.map(|own| Arc::new(own.before(for_all.pages)));
    let rules = (rules != Default::default()).then(|| Arc::new(rules));
    let (target, target_place) = target?;
    let value = |value: RouteConfig| RouteConfig {
        target: target.clone(),
        rules: rules.clone(),
        ..value
    };
    Some(Route {
        values: matched.into_iter().map(value).collect(),
        target,
        listen,
        place,
        target_place,
        activation_place,
        cache_place,
        matching,
    })
}

/// The keys about where it leads, as written.
#[derive(Default)]
struct RawRoute {
    upstream: Option<String>,
    status: Option<u16>,
    redirect: Option<String>,
}

/// Where the route leads. A redirect may have groups of the route's `expression`.
fn target(
    table: &mut Table<'_>,
    expression: Option<&PathExpression>,
) -> Option<(RouteTarget, Range<usize>)> {
    let mut written = RawRoute::default();
    table.read(KEYS, &mut written);
    let RawRoute {
        upstream,
        status,
        redirect,
    } = written;
    let clashes = [
        ("files", "redirect"),
        ("files", "status"),
        ("upstream", "redirect"),
        ("upstream", "status"),
    ];
    let has_both = |(one, other): &(&str, &str)| table.has(one) && table.has(other);
    if let Some((one, other)) = clashes.into_iter().find(has_both) {
        let message = format!("[[route]] has both `{one}` and `{other}`");
        let place = table.place_of(other);
        table.push(Finding::fault(message, place).hint("remove one of them"));
        return None;
    }
    let Some(name) = TARGETS.into_iter().find(|name| table.has(name)) else {
        // A slip is said where the key is told to be unknown.
        if !table.has_slip_of(&TARGETS) {
            let message = "[[route]] leads nowhere";
            let hint = "give it an `upstream`, `files`, a `redirect`, or a `status` to answer with";
            table.push(Finding::fault(message, table.place()).hint(hint));
        }
        return None;
    };
    let target = match name {
        "upstream" => RouteTarget::Upstream(upstream?),
        "files" => RouteTarget::Files,
        "redirect" => {
            let status = if table.has("status") {
                redirect_status(status?, table)?
            } else {
                StatusCode::PERMANENT_REDIRECT
            };
            match parse_location(&redirect?, expression) {
                Ok(to) => RouteTarget::Redirect(Redirect { to, status }),
                Err(error) => {
                    let message = format!("`redirect` {error}");
                    table.push(Finding::fault(message, table.place_of("redirect")));
                    return None;
                }
            }
        }
        _ => RouteTarget::Status(answer(status?, table)?),
    };
    Some((target, table.place_of(name)))
}

/// A status that sends the client elsewhere, in a way that is the same for all clients.
fn redirect_status(status: u16, table: &mut Table<'_>) -> Option<StatusCode> {
    if [301, 302, 307, 308].contains(&status) {
        return StatusCode::from_u16(status).ok();
    }
    let message = format!("`status` is {status}, and not all clients follow it alike");
    let hint = "write 301 or 308 for a permanent redirect, 302 or 307 for a temporary one; 307 and 308 keep the method";
    table.push(Finding::fault(message, table.place_of("status")).hint(hint));
    None
}

/// A status that makes sense without further fields.
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
            without, then one with a `scheme` before one without, then one with `methods` before one without, then the \
            earlier in the file; of several `regex` the earlier. A request that matches none is answered 404; \
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

/// The keys of which a route needs one. Where there are several, the first says where it leads.
const TARGETS: [&str; 4] = ["upstream", "files", "redirect", "status"];

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
        name: "status",
        group: ALL,
        value: fill!(Optional(Counts(200..=599)), RawRoute.status),
        preset: Preset::Unset(
            "then `upstream`, `files` or `redirect` is needed; of a redirect 308",
        ),
        sample: "404",
        effect: "The front answers with this status itself; beside `redirect`, its status: 301 or 308 \
                 for a permanent redirect, 302 or 307 for a temporary one. With 301 and 302 most clients turn a POST into a GET.",
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
                 host with its port, `{scheme}`, `{path}`, `{query}`, and `{path_query}` the path with \
                 its query; `{rest}` is what is behind `path`, empty or with a slash at its beginning, and \
                 `{rest_query}` that with the query. Beside `regex` `{1}` and `{name}` are what its groups captured, \
                 percent-encoded again; directly behind the host it begins with a slash. `{{` stands for a brace.",
        extremes: "Behind a trusted proxy they are what the proxy was asked for. A redirect to the \
                   very URL that was asked for is answered 500 (`redirect-loop`): from http to https \
                   it needs `scheme = \"http\"`.",
        elsewhere: "nginx `return 301`; httpd `Redirect`; HAProxy `http-request redirect`",
    },
];
