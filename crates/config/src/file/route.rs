//! `[[route]]`: which request goes where.

use std::ops::Range;

use catamaran_front::config::{RouteConfig, RouteTarget};
use http::StatusCode;
use toml::Spanned;
use toml::de::DeValue;

use crate::key::{Doc, Key, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, tables};
use crate::value::route::{
    HostError, PathError, SuffixError, parse_host, parse_path, parse_suffix,
};
use crate::value::text::{TextError, parse_name};
use crate::value::{Counts, OneOrMore, Parsed, Switch};

/// A route, placed by its header and by its target.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) value: RouteConfig,
    pub(crate) place: Range<usize>,
    pub(crate) target_place: Range<usize>,
    /// Whether what it matches was without fault, so that it may be compared with other routes.
    pub(crate) matching: bool,
}

/// Reads the tables.
pub(crate) fn read(value: &Spanned<DeValue<'_>>, report: &mut Report) -> Vec<Route> {
    let mut routes = Vec::new();
    for (place, entries) in tables(SECTION.header, value, report) {
        let mut table = Table::new(&SECTION, place.clone(), entries);
        let hosts = table.take(&HOST).unwrap_or_default();
        let path = table.take(&PATH).unwrap_or_else(|| "/".to_owned());
        let exact = table.take(&EXACT).unwrap_or_default();
        let suffix = table.take(&SUFFIX);
        let matching = table.is_good();
        let target = target(&mut table);
        if exact && suffix.is_some() {
            let message = "`suffix` has no use beside `exact`";
            let hint = "remove one of them: an exact path has but one end";
            table.push(Finding::fault(message, table.place_of(&SUFFIX)).hint(hint));
        }
        table.finish(report);
        routes.extend(target.map(|(target, target_place)| {
            let value = RouteConfig {
                hosts,
                path,
                exact,
                suffix,
                target,
                place: None,
            };
            Route {
                value,
                place,
                target_place,
                matching,
            }
        }));
    }
    routes
}

fn target(table: &mut Table<'_>) -> Option<(RouteTarget, Range<usize>)> {
    let (upstream, status) = (table.take(&UPSTREAM), table.take(&STATUS));
    match (table.has(&UPSTREAM), table.has(&STATUS)) {
        (true, true) => {
            let message = "[[route]] has both `upstream` and `status`";
            let place = table.place_of(&STATUS);
            table.push(Finding::fault(message, place).hint("a route leads to one of them"));
            None
        }
        (false, false) => {
            let message = "[[route]] leads nowhere";
            let hint = "give it an `upstream`, or a `status` to answer with";
            table.push(Finding::fault(message, table.place()).hint(hint));
            None
        }
        (true, false) => {
            upstream.map(|name| (RouteTarget::Upstream(name), table.place_of(&UPSTREAM)))
        }
        (false, true) => {
            let place = table.place_of(&STATUS);
            answer(status?, &place, table).map(|status| (RouteTarget::Status(status), place))
        }
    }
}

/// A status that makes sense without further fields.
fn answer(status: u16, place: &Range<usize>, table: &mut Table<'_>) -> Option<StatusCode> {
    if (300..400).contains(&status) {
        let message = format!("`status` is {status}, a redirect, and a route cannot say whereto");
        let hint = "redirect in the application, or answer with another status";
        table.push(Finding::fault(message, place.clone()).hint(hint));
        return None;
    }
    StatusCode::from_u16(status).ok()
}

pub(crate) static SECTION: Section = Section {
    header: "[[route]]",
    intro: "Which request goes where. Among the routes that match, the most specific wins: an exact \
            host before a wildcard before none, then an exact path before the longest prefix, then \
            a suffix before none, then the earlier in the file. A request that matches none is \
            answered 404; there is no default backend. At least one route is needed.",
    keys: &[&HOST, &PATH, &EXACT, &SUFFIX, &UPSTREAM, &STATUS],
    later: &[(
        "rewrite",
        "requests keep the path the client sent; remove it",
    )],
};

static HOST: Key<OneOrMore<Parsed<String, HostError>>> = Key {
    name: "host",
    values: OneOrMore(Parsed {
        what: "a host such as \"www.example.org\" or \"*.example.org\"",
        parse: parse_host,
    }),
    doc: Doc {
        preset: Preset::Unset("any host"),
        sample: "[\"example.org\", \"*.example.org\"]",
        effect: "The hosts that match, without port. `*.example.org` matches every name below \
                 `example.org`, not that name itself. An IPv6 address matches in every spelling.",
        extremes: "Left out, requests with a made-up host match too.",
        elsewhere: "nginx `server_name`; httpd `ServerName`, `ServerAlias`",
    },
};

static PATH: Key<Parsed<String, PathError>> = Key {
    name: "path",
    values: Parsed {
        what: "a path such as \"/app\"",
        parse: parse_path,
    },
    doc: Doc {
        preset: Preset::Value("\"/\""),
        sample: "\"/app\"",
        effect: "The path, matched as a prefix by whole segments: `/app` matches `/app` and \
                 `/app/x`, not `/apple`. Both are compared decoded and without `;parameters`, as \
                 containers map paths: `/adm@in` and `/adm%40in` are equal. `%2F`, `%5C`, `%25` and \
                 `%3B` stand for themselves. The normalised path is forwarded, not the decoded one.",
        extremes: "`/` matches everything: add routes with a `status` for what shall not be reached. \
                   Some containers take `%2F` and `%5C` for a slash: a request whose route would \
                   then be another is answered 400 (`path-ambiguous`).",
        elsewhere: "nginx `location`; httpd `ProxyPass`; mod_jk `JkMount /app|/*`",
    },
};

static EXACT: Key<Switch> = Key {
    name: "exact",
    values: Switch,
    doc: Doc {
        preset: Preset::Value("false"),
        sample: "true",
        effect: "The path must be equal; what is below it does not match.",
        extremes: "With `path = \"/app\"`, even `/app/` is another path then.",
        elsewhere: "nginx `location =`; mod_jk `JkMount /app`",
    },
};

static SUFFIX: Key<Parsed<String, SuffixError>> = Key {
    name: "suffix",
    values: Parsed {
        what: "an ending such as \".jsp\"",
        parse: parse_suffix,
    },
    doc: Doc {
        preset: Preset::Unset("any ending"),
        sample: "\".jsp\"",
        effect: "The path must also end like this, compared as `path` is.",
        extremes: "Everything else below the path needs a route of its own, or is answered 404.",
        elsewhere: "nginx `location ~ \\.jsp$`; mod_jk `JkMount /*.jsp`",
    },
};

static UPSTREAM: Key<Parsed<String, TextError>> = Key {
    name: "upstream",
    values: Parsed {
        what: "the name of an upstream",
        parse: parse_name,
    },
    doc: Doc {
        preset: Preset::Unset("then `status` is needed"),
        sample: "\"tomcat\"",
        effect: "The upstream that serves the request.",
        extremes: "A name that no `[upstream.NAME]` has is a fault.",
        elsewhere: "nginx `proxy_pass`; httpd `ProxyPass`; mod_jk `JkMount`",
    },
};

static STATUS: Key<Counts<u16>> = Key {
    name: "status",
    values: Counts { min: 200, max: 599 },
    doc: Doc {
        preset: Preset::Unset("then `upstream` is needed"),
        sample: "404",
        effect: "The front answers with this status itself. Redirects (3xx) are refused: a route \
                 cannot say whereto.",
        extremes: "404 hides a part of an application, such as `/app/admin`.",
        elsewhere: "nginx `return`; mod_jk `JkUnMount` (404)",
    },
};
