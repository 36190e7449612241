//! The keys of `[[route]]` that say which requests it is for.

use std::path::Path;

use catamaran_proxy::config::{
    FieldName, PathExpression, RequestConditions, RequestTest, RequestTestError, RouteConfig,
    RouteScheme, RouteTarget, Unless,
};
use http::{Method, StatusCode};

use super::fields::reserved_of_requests;
use super::listeners::{ListenerRef, ListenerRefs, parse_listener};
use crate::fill;
use crate::key::{ALL, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::route::{
    FieldError, parse_exclusion, parse_field_name, parse_field_value, parse_host, parse_method,
    parse_path, parse_pattern, parse_suffix,
};
use crate::value::text::parse_token;
use crate::value::{Choices, NamedValues, OneOrMore, Optional, Switch, Syntax};

/// The values of the keys that say which requests match.
pub(super) struct RawMatch {
    listen: Option<Vec<ListenerRef>>,
    paths: Vec<String>,
    suffixes: Vec<String>,
    headers: Vec<(String, String)>,
    query: Vec<(String, String)>,
    cookies: Vec<(String, String)>,
    tests: Vec<RequestTest>,
    /// The values of all other keys, without a path or suffix.
    route: RouteConfig,
}

/// Reads which requests the route matches: one route for each of its paths and suffixes, with a placeholder as its
/// target. The second part is the listeners that it is for; `None`: all.
pub(super) fn read(
    table: &mut Table<'_>,
    base: &Path,
    unless: Option<Box<Unless>>,
) -> (Vec<RouteConfig>, Option<ListenerRefs>) {
    let mut written = RawMatch {
        listen: None,
        paths: vec!["/".to_owned()],
        suffixes: Vec::new(),
        headers: Vec::new(),
        query: Vec::new(),
        cookies: Vec::new(),
        tests: Vec::new(),
        route: RouteConfig::new("/", RouteTarget::Status(StatusCode::NOT_FOUND)),
    };
    table.read(KEYS, &mut written);
    let RawMatch {
        listen,
        paths,
        suffixes,
        headers,
        query,
        cookies,
        tests,
        mut route,
    } = written;
    if let Some(error) = cookies.iter().find_map(|(name, _)| parse_token(name).err()) {
        let message = format!("the name of a cookie in `match_cookies` {error}");
        table.push(Finding::fault(message, table.place_of("match_cookies")));
    }
    check_tests(&tests, table);
    route.conditions = RequestConditions {
        headers: conditions_of_fields(headers, table),
        query,
        cookies,
        tests,
        unless,
    };
    let methods = &mut route.methods;
    // A route for GET takes HEAD as well.
    if methods.contains(&Method::GET) {
        methods.push(Method::HEAD);
    }
    methods.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    methods.dedup();
    if table.is_empty_list("host") {
        let message = "`host` is an empty list, so that no host would match";
        let hint = "name a host, or leave `host` out to match any";
        table.push(Finding::fault(message, table.place_of("host")).hint(hint));
    }
    let listen = listen.map(|refs| ListenerRefs::new(refs, table, base));
    clashes(table, route.exact);
    (for_each_path(&route, &paths, suffixes), listen)
}

/// Copies of a route, for each combination of `paths` and `suffixes`. Without suffixes, one for each path.
fn for_each_path(route: &RouteConfig, paths: &[String], suffixes: Vec<String>) -> Vec<RouteConfig> {
    let suffixes: Vec<Option<String>> = if suffixes.is_empty() {
        vec![route.suffix.clone()]
    } else {
        suffixes.into_iter().map(Some).collect()
    };
    let mut routes = Vec::new();
    for path in paths {
        for suffix in &suffixes {
            routes.push(RouteConfig {
                path: path.clone(),
                suffix: suffix.clone(),
                ..route.clone()
            });
        }
    }
    routes
}

/// The conditions on fields. Reports fields by which no route may be chosen.
fn conditions_of_fields(
    written: Vec<(String, String)>,
    table: &mut Table<'_>,
) -> Vec<(FieldName, String)> {
    const KEY: &str = "match_headers";
    let mut conditions: Vec<(FieldName, String)> = Vec::new();
    for (text, value) in written {
        let place = table.place_of(KEY);
        let name = match parse_field_name(&text) {
            Ok(name) => name,
            Err(error) => {
                table.push(Finding::fault(format!("`{KEY}` {error}"), place));
                continue;
            }
        };
        if let Some(hint) = other_key(&name) {
            let message = format!("`{KEY}` cannot name `{name}`");
            table.push(Finding::fault(message, place).hint(hint));
        } else if conditions.iter().any(|(earlier, _)| *earlier == name) {
            let message = format!("`{KEY}` names `{name}` twice");
            table.push(Finding::fault(message, place).hint("remove one of them"));
        } else {
            conditions.push((name, value));
        }
    }
    conditions
}

/// Reports tests of fields by which no route may be chosen.
fn check_tests(tests: &[RequestTest], table: &mut Table<'_>) {
    const KEY: &str = "match_regex";
    let fields = tests.iter().filter_map(RequestTest::field);
    for name in fields {
        // `match_cookies` compares whole cookies only, so an expression may look into the field itself.
        let is_cookie = name.as_str().eq_ignore_ascii_case("cookie");
        if !is_cookie && let Some(hint) = other_key(name) {
            let message = format!("`{KEY}` cannot name `{name}`");
            table.push(Finding::fault(message, table.place_of(KEY)).hint(hint));
        }
    }
    if tests.len() > TESTS_MAX {
        let message = format!("`{KEY}` has more than {TESTS_MAX} tests");
        let hint = "join expressions of one value by `|`";
        table.push(Finding::fault(message, table.place_of(KEY)).hint(hint));
    }
}

/// What to do instead of choosing a route by this field; `None`: a route may be chosen by it.
fn other_key(name: &FieldName) -> Option<&'static str> {
    match &*name.as_str().to_ascii_lowercase() {
        "host" => Some("write `host`"),
        "cookie" => Some("write `match_cookies`"),
        "x-forwarded-proto" | "forwarded" => {
            Some("write `scheme`, which believes only trusted proxies")
        }
        _ => reserved_of_requests(name).map(|_| "name a field that the application would see"),
    }
}

/// Reports keys that cannot be used together.
fn clashes(table: &mut Table<'_>, exact: bool) {
    if exact && table.has("suffix") {
        let message = "`suffix` has no use beside `exact`";
        let hint = "remove one of them: an exact path has but one end";
        table.push(Finding::fault(message, table.place_of("suffix")).hint(hint));
    }
    for (whole_path, replaced) in [
        ("pattern", &["path", "exact", "suffix"][..]),
        ("regex", &["path", "exact", "suffix", "pattern"]),
    ] {
        if table.has(whole_path)
            && let Some(name) = replaced.iter().find(|name| table.has(name))
        {
            let message = format!("`{whole_path}` stands in the place of `{name}`");
            let hint = "write all of the path in one of them";
            table.push(Finding::fault(message, table.place_of(whole_path)).hint(hint));
        }
    }
    if table.has("before_regex")
        && let Some(name) = ["exact", "regex"].into_iter().find(|name| table.has(name))
    {
        let message = format!("`before_regex` has no use beside `{name}`");
        let hint = "remove one of them";
        table.push(Finding::fault(message, table.place_of("before_regex")).hint(hint));
    }
    if table.has("refuse_parameters") && !table.has("regex") {
        let message =
            "`refuse_parameters` has no use without `regex`: other routes never see parameters";
        table.push(Finding::fault(message, table.place_of("refuse_parameters")).hint("remove it"));
    }
    for name in ["path", "suffix", "methods"] {
        if table.is_empty_list(name) {
            let message = format!("`{name}` is an empty list");
            let finding = Finding::fault(message, table.place_of(name));
            table.push(finding.hint("name one, or leave it out"));
        }
    }
}

/// Reports a rewrite on a route without a prefix that it could replace. `of_prefix`: the rewrite replaces a prefix.
pub(super) fn check_rewrite(table: &mut Table<'_>, exact: bool, of_prefix: bool) {
    let is_whole = table.has("rewrite_whole") && !of_prefix;
    if !table.has("rewrite") || is_whole {
        return;
    }
    let name = if exact {
        "exact"
    } else if table.has("suffix") {
        "suffix"
    } else if table.has("pattern") {
        "pattern"
    } else {
        return;
    };
    let message = format!("`rewrite` replaces a prefix, and with `{name}` there is none");
    let hint = format!("remove `{name}`, or add a route with a `path` alone for the rewrite");
    table.push(Finding::fault(message, table.place_of("rewrite")).hint(hint));
}

/// Reports a redirect with `{rest}` on a route without a `path` that has a rest.
pub(super) fn check_rest(table: &mut Table<'_>, exact: bool) {
    let name = if exact {
        "exact"
    } else if table.has("pattern") {
        "pattern"
    } else if table.has("regex") {
        "regex"
    } else {
        return;
    };
    let message = format!("`{{rest}}` is what is behind `path`, and with `{name}` nothing is");
    let hint = format!("remove `{name}`, or write `{{path}}`");
    table.push(Finding::fault(message, table.place_of("redirect")).hint(hint));
}

/// The most tests of one route.
const TESTS_MAX: usize = 16;

/// The exact value that a request must have.
const COMPARED: Syntax<String, FieldError> = Syntax {
    what: "a text",
    parse: parse_field_value,
};

pub(super) static KEYS: &[Key<RawMatch>] = &[
    Key {
        name: "host",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a host such as \"www.example.org\" or \"*.example.org\"",
                parse: parse_host,
            }),
            RawMatch.route.hosts
        ),
        preset: Preset::Unset("any host"),
        sample: "[\"example.org\", \"*.example.org\"]",
        effect: "The hosts that match, without port. `*.example.org` matches every name below \
                 `example.org`, not that name itself. An IPv6 address matches in every spelling.",
        extremes: "Left out, requests with a made-up host match too.",
        elsewhere: "nginx `server_name`; httpd `ServerName`, `ServerAlias`",
    },
    Key {
        name: "listen",
        group: ALL,
        value: fill!(
            Optional(OneOrMore(Syntax {
                what: "the `name` or `address` of a [[listen]]",
                parse: parse_listener,
            })),
            RawMatch.listen
        ),
        preset: Preset::Unset("all listeners"),
        sample: "[\"127.0.0.1:8080\"]",
        effect: "The listeners that have this route: one for several, each by its `name` or by its \
                 `address` as it stands in its [[listen]]. For clients of other listeners the route does \
                 not exist: they get the next route that matches, or 404. What counts is the listener that \
                 accepted the connection; nothing that a client or a proxy says changes it.",
        extremes: "Without it every listener has the route: a listener that asks for no certificate, or \
                   that only insiders reach, guards nothing then. `check` warns where a profile that \
                   requires certificates has an open listener beside it, and where a wider route passes \
                   the requests of this one to the same backends. A client whose listener a \
                   reload removed is answered 421 (`listener-removed`) while it still has its connection.",
        elsewhere: "nginx `listen` of a `server`; httpd the address of a `<VirtualHost>`; HAProxy \
                    `frontend`",
    },
    Key {
        name: "scheme",
        group: ALL,
        value: fill!(
            Optional(Choices(&[
                ("http", RouteScheme::Http),
                ("https", RouteScheme::Https),
            ])),
            RawMatch.route.scheme
        ),
        preset: Preset::Unset("both"),
        sample: "\"http\"",
        effect: "Only requests whose clients came so: over TLS to a listener of this front, or to a \
                 proxy in `trusted_proxies` that says so in `X-Forwarded-Proto` or, over HTTP/2, in `:scheme`.",
        extremes: "Beside `redirect`, `\"http\"` sends clients to https once; without it they would \
                   be sent to where they are.",
        elsewhere: "HAProxy `ssl_fc`; httpd `RewriteCond %{HTTPS}`",
    },
    Key {
        name: "path",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a path such as \"/app\"",
                parse: parse_path,
            }),
            RawMatch.paths
        ),
        preset: Preset::Value("\"/\""),
        sample: "\"/app\"",
        effect: "The path, or several, matched as a prefix by whole segments: `/app` matches `/app` \
                 and `/app/x`, not `/apple`. Both are compared decoded and without `;parameters`, as \
                 containers map paths: `/adm@in` and `/adm%40in` are equal. `%2F`, `%5C`, `%25` and \
                 `%3B` stand for themselves. The normalised path is forwarded, not the decoded one.",
        extremes: "`/` matches everything: add routes with a `status` for what shall not be reached. \
                   Some containers take `%2F` and `%5C` for a slash: a request whose route would \
                   then be another is answered 400 (`path-ambiguous`).",
        elsewhere: "nginx `location`; httpd `ProxyPass`; mod_jk `JkMount /app|/*`",
    },
    Key {
        name: "exact",
        group: ALL,
        value: fill!(Switch, RawMatch.route.exact),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "The path must be equal; what is below it does not match.",
        extremes: "With `path = \"/app\"`, even `/app/` is another path then.",
        elsewhere: "nginx `location =`; mod_jk `JkMount /app`",
    },
    Key {
        name: "suffix",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "an ending such as \".jsp\"",
                parse: parse_suffix,
            }),
            RawMatch.suffixes
        ),
        preset: Preset::Unset("any ending"),
        sample: "[\".jsp\", \".do\"]",
        effect: "The path must also end like this, or like one of these, compared as `path` is.",
        extremes: "Everything else below the path needs a route of its own, or is answered 404.",
        elsewhere: "nginx `location ~ \\.jsp$`; mod_jk `JkMount /*.jsp`",
    },
    Key {
        name: "pattern",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a pattern such as \"/app*/x?.do\"",
                parse: parse_pattern,
            }),
            RawMatch.route.pattern
        ),
        preset: Preset::Unset("`path`"),
        sample: "\"/app*/x?.do\"",
        effect: "Instead of `path`: `*` stands for any characters, slashes too, `?` for one character \
                 other than a slash. Within a host the pattern with more slashes wins, then the \
                 longer; a prefix counts as `/app/*` there, one with a suffix as `/app/*.jsp`, and an \
                 exact path beats them all.",
        extremes: "Each request is compared with the patterns of its host one by one: beyond 1000 \
                   `check` warns.",
        elsewhere: "mod_jk `JkMount /app*/x?.do`; httpd `ProxyPassMatch`",
    },
    Key {
        name: "regex",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "an expression such as \"^/shop/(?<id>[0-9]+)$\"",
                parse: PathExpression::parse,
            }),
            RawMatch.route.regex
        ),
        preset: Preset::Unset("`path`"),
        sample: "\"^/shop/(?<id>[0-9]+)$\"",
        effect: "Instead of `path`: a regular expression in the syntax of the Rust crate regex, which must match \
                 somewhere in the path; `^` and `$` bind it to both ends. The path is as `path` is compared: decoded, with \
                 merged slashes and without dot segments, `;parameters` and query. Letters count; `(?i)` at the beginning \
                 ignores the case of ASCII. An expression comes after an exact path and before all others of its host; \
                 of several the first in the file wins. `rewrite`, `redirect` and fields may name its groups.",
        extremes: "There are no look-around and no back-references, so that the time is linear in the path. \
                   An expression has at most 4096 characters, and a file 2000 of them; with any, a path of \
                   more than 4096 bytes is answered 414 (`path-long`). An escaped slash (`%2F`) is no `/`, \
                   and as with `path` a request whose route would be another if it were one is answered 400 \
                   (`path-ambiguous`).",
        elsewhere: "nginx `location ~`, `location ~*` with `(?i)`; httpd `LocationMatch`, `ProxyPassMatch`",
    },
    Key {
        name: "refuse_parameters",
        group: ALL,
        value: fill!(Switch, RawMatch.route.refuse_parameters),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Beside `regex`: a request whose `;parameters` decide whether the expression matches is answered 400 \
                 (`path-ambiguous`).",
        extremes: "Other servers compare expressions with the parameters: `import` writes it, so that none opens what \
                   such an expression closed. Without it `/shop/12;jsessionid=1` is `/shop/12`.",
        elsewhere: "nginx `location ~` and httpd `LocationMatch` see parameters",
    },
    Key {
        name: "before_regex",
        group: ALL,
        value: fill!(Switch, RawMatch.route.before_regex),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Beside `path` or `pattern`: if this route would win without expressions, they are not asked.",
        extremes: "A more specific route without it leaves its paths to expressions.",
        elsewhere: "nginx `location ^~`",
    },
    Key {
        name: "methods",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a method such as \"GET\"",
                parse: parse_method,
            }),
            RawMatch.route.methods
        ),
        preset: Preset::Unset("every method"),
        sample: "[\"GET\", \"POST\"]",
        effect: "Only requests with one of these methods; `GET` includes `HEAD`, and a tunnel over HTTP/2 counts as \
                 the GET that it is over HTTP/1.1. Others get the next route that matches. If none does, the answer \
                 is 405 (`route-method`) with the methods of all routes of the path in `Allow`.",
        extremes: "Several routes of one path may have different methods. A wider route takes the other methods, unless \
                   one with a `status` does.",
        elsewhere: "nginx `limit_except`; httpd `<Limit>`, `<LimitExcept>`; HAProxy `method`",
    },
    Key {
        name: "match_headers",
        group: ALL,
        value: fill!(
            NamedValues {
                what: "fields with their values, such as { X-Beta = \"yes\" }",
                of: COMPARED,
            },
            RawMatch.headers
        ),
        preset: Preset::Value("{}"),
        sample: "{ X-Beta = \"yes\" }",
        effect: "Only requests that have each of these fields, once and with exactly this value. Others get the next \
                 route that matches.",
        extremes: "A client may send any field: what only some may reach needs `allow`, `client_certificate` or the \
                   application's own sign-on.",
        elsewhere: "HAProxy `req.hdr`; Envoy `headers`; Gateway API `headers`",
    },
    Key {
        name: "match_query",
        group: ALL,
        value: fill!(
            NamedValues {
                what: "parameters with their values, such as { v = \"2\" }",
                of: COMPARED,
            },
            RawMatch.query
        ),
        preset: Preset::Value("{}"),
        sample: "{ v = \"2\" }",
        effect: "Only requests whose query has each of these parameters with exactly this value, decoded as a form's.",
        extremes: "If a parameter stands there more than once, the first counts.",
        elsewhere: "HAProxy `url_param`; nginx `if ($arg_v = 2)`; Gateway API `queryParams`",
    },
    Key {
        name: "match_cookies",
        group: ALL,
        value: fill!(
            NamedValues {
                what: "cookies with their values, such as { beta = \"1\" }",
                of: COMPARED,
            },
            RawMatch.cookies
        ),
        preset: Preset::Value("{}"),
        sample: "{ beta = \"1\" }",
        effect: "Only requests that have each of these cookies with exactly this value.",
        extremes: "If a cookie stands there more than once, the first counts.",
        elsewhere: "HAProxy `req.cook`; nginx `if ($cookie_beta = 1)`",
    },
    Key {
        name: "match_regex",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax::<RequestTest, RequestTestError> {
                what: "a test such as \"header:User-Agent ~ (?i)bot\"",
                parse: RequestTest::parse,
            }),
            RawMatch.tests
        ),
        preset: Preset::Value("[]"),
        sample: "[\"header:User-Agent ~ (?i)(curl|wget)\", \"cookie:pass !~ ^let-me-in$\"]",
        effect: "Only requests for which each of these tests holds: a value, `~` or `!~`, and an expression as for `regex`, \
                 which must match somewhere in the value, or with `!~` must not. The value is `header:NAME`, `query:NAME` (a \
                 parameter), `cookie:NAME`, `query` (all of it) or `target` (path and query as they were sent). A value that is \
                 not there is empty. Others get the next route that matches.",
        extremes: "Made for refusing: if a field, parameter or cookie stands there more than once, in other capitals or encoded, \
                   a test holds if it holds for any reading of it. Each test is made for each request that comes so far; a \
                   route may have 16.",
        elsewhere: "nginx `if ($http_user_agent ~* bot)`, `map`, `valid_referers`; httpd `SetEnvIf`, `RewriteCond`; HAProxy `-m reg`",
    },
    Key {
        name: "exclude",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a path such as \"/app/static\" or a pattern such as \"*.gif\"",
                parse: parse_exclusion,
            }),
            RawMatch.route.exclude
        ),
        preset: Preset::Value("[]"),
        sample: "[\"/app/static\", \"*.gif\"]",
        effect: "Requests that this route leaves to others although it matches: below one of these \
                 paths, or like one of these patterns. The next most specific route gets them.",
        extremes: "If no other route matches, they are answered 404.",
        elsewhere: "mod_jk `JkUnMount`; httpd `ProxyPass /x !`",
    },
];
