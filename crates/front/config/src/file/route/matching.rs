//! The keys of `[[route]]` that say which requests it is for.

use catamaran_front::config::{Exclusion, RouteConfig, RouteScheme, RouteTarget};
use http::StatusCode;

use super::REDIRECT;
use super::rules::REWRITE;
use crate::key::{Doc, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::route::{
    HostError, PathError, PatternError, SuffixError, parse_exclusion, parse_host, parse_path,
    parse_pattern, parse_suffix,
};
use crate::value::{Choices, OneOrMore, Parsed, Switch};

/// What the route matches: one for each of its paths and suffixes, with a target to be replaced.
pub(super) fn read(table: &mut Table<'_>) -> Vec<RouteConfig> {
    let mut route = RouteConfig::new("/", RouteTarget::Status(StatusCode::NOT_FOUND));
    table.set(&HOST, &mut route.hosts);
    if table.has(&HOST) && route.hosts.is_empty() && table.is_good() {
        let message = "`host` is an empty list, so that no host would match";
        let hint = "name a host, or leave `host` out to match any";
        table.push(Finding::fault(message, table.place_of(&HOST)).hint(hint));
    }
    route.scheme = table.take(&SCHEME);
    let paths = table.take(&PATH).unwrap_or_else(|| vec!["/".to_owned()]);
    table.set(&EXACT, &mut route.exact);
    let suffixes = table.take(&SUFFIX).unwrap_or_default();
    route.pattern = table.take(&PATTERN);
    table.set(&EXCLUDE, &mut route.exclude);
    clashes(table, route.exact);
    let with_path = |path: String| RouteConfig {
        path,
        ..route.clone()
    };
    let with_suffix = |suffix: Option<String>, route: &RouteConfig| RouteConfig {
        suffix,
        ..route.clone()
    };
    let routes = paths.into_iter().map(with_path);
    routes
        .flat_map(|route| match &suffixes[..] {
            [] => vec![route],
            suffixes => {
                let each = suffixes.iter().cloned().map(Some);
                each.map(|suffix| with_suffix(suffix, &route)).collect()
            }
        })
        .collect()
}

/// Complains of keys that have no use beside each other.
fn clashes(table: &mut Table<'_>, exact: bool) {
    if exact && table.has(&SUFFIX) {
        let message = "`suffix` has no use beside `exact`";
        let hint = "remove one of them: an exact path has but one end";
        table.push(Finding::fault(message, table.place_of(&SUFFIX)).hint(hint));
    }
    let beside = [
        (PATH.name, table.has(&PATH)),
        (EXACT.name, table.has(&EXACT)),
        (SUFFIX.name, table.has(&SUFFIX)),
    ];
    if let Some((name, _)) = beside
        .into_iter()
        .find(|(_, has)| *has && table.has(&PATTERN))
    {
        let message = format!("`pattern` stands in the place of `{name}`");
        let hint = "write all of the path in one of them";
        table.push(Finding::fault(message, table.place_of(&PATTERN)).hint(hint));
    }
    for (name, place) in [
        (PATH.name, table.has(&PATH).then(|| table.place_of(&PATH))),
        (
            SUFFIX.name,
            table.has(&SUFFIX).then(|| table.place_of(&SUFFIX)),
        ),
    ] {
        if let Some(place) = place.filter(|_| table.is_empty_list(name)) {
            let message = format!("`{name}` is an empty list");
            table.push(Finding::fault(message, place).hint("name one, or leave it out"));
        }
    }
}

/// Complains of a rewrite without a prefix that it could replace.
pub(super) fn check_rewrite(table: &mut Table<'_>, exact: bool) {
    if !table.has(&REWRITE) {
        return;
    }
    let others = [
        (EXACT.name, exact),
        (SUFFIX.name, table.has(&SUFFIX)),
        (PATTERN.name, table.has(&PATTERN)),
    ];
    if let Some((name, _)) = others.into_iter().find(|(_, has)| *has) {
        let message = format!("`rewrite` replaces a prefix, and with `{name}` there is none");
        let hint = format!("remove `{name}`, or add a route with a `path` alone for the rewrite");
        table.push(Finding::fault(message, table.place_of(&REWRITE)).hint(hint));
    }
}

/// Complains of a redirect to what is behind a `path` that there is not.
pub(super) fn check_rest(table: &mut Table<'_>, exact: bool) {
    let others = [(EXACT.name, exact), (PATTERN.name, table.has(&PATTERN))];
    if let Some((name, _)) = others.into_iter().find(|(_, has)| *has) {
        let message = format!("`{{rest}}` is what is behind `path`, and with `{name}` nothing is");
        let hint = format!("remove `{name}`, or write `{{path}}`");
        let place = table.place_of(&REDIRECT);
        table.push(Finding::fault(message, place).hint(hint));
    }
}

pub(super) static HOST: Key<OneOrMore<Parsed<String, HostError>>> = Key {
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

pub(super) static SCHEME: Key<Choices<RouteScheme>> = Key {
    name: "scheme",
    values: Choices(&[("http", RouteScheme::Http), ("https", RouteScheme::Https)]),
    doc: Doc {
        preset: Preset::Unset("both"),
        sample: "\"http\"",
        effect: "Only requests whose clients came so: over TLS to a listener of this front, or to a \
                 proxy in `trusted_proxies` that says so in `X-Forwarded-Proto` or, over HTTP/2, in `:scheme`.",
        extremes: "Beside `redirect`, `\"http\"` sends clients to https once; without it they would \
                   be sent to where they are.",
        elsewhere: "HAProxy `ssl_fc`; httpd `RewriteCond %{HTTPS}`",
    },
};

pub(super) static PATH: Key<OneOrMore<Parsed<String, PathError>>> = Key {
    name: "path",
    values: OneOrMore(Parsed {
        what: "a path such as \"/app\"",
        parse: parse_path,
    }),
    doc: Doc {
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
};

pub(super) static EXACT: Key<Switch> = Key {
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

pub(super) static SUFFIX: Key<OneOrMore<Parsed<String, SuffixError>>> = Key {
    name: "suffix",
    values: OneOrMore(Parsed {
        what: "an ending such as \".jsp\"",
        parse: parse_suffix,
    }),
    doc: Doc {
        preset: Preset::Unset("any ending"),
        sample: "[\".jsp\", \".do\"]",
        effect: "The path must also end like this, or like one of these, compared as `path` is.",
        extremes: "Everything else below the path needs a route of its own, or is answered 404.",
        elsewhere: "nginx `location ~ \\.jsp$`; mod_jk `JkMount /*.jsp`",
    },
};

pub(super) static PATTERN: Key<Parsed<String, PatternError>> = Key {
    name: "pattern",
    values: Parsed {
        what: "a pattern such as \"/app*/x?.do\"",
        parse: parse_pattern,
    },
    doc: Doc {
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
};

pub(super) static EXCLUDE: Key<OneOrMore<Parsed<Exclusion, PatternError>>> = Key {
    name: "exclude",
    values: OneOrMore(Parsed {
        what: "a path such as \"/app/static\" or a pattern such as \"*.gif\"",
        parse: parse_exclusion,
    }),
    doc: Doc {
        preset: Preset::Value("[]"),
        sample: "[\"/app/static\", \"*.gif\"]",
        effect: "Requests that this route leaves to others although it matches: below one of these \
                 paths, or like one of these patterns. The next most specific route gets them.",
        extremes: "If no other route matches, they are answered 404.",
        elsewhere: "mod_jk `JkUnMount`; httpd `ProxyPass /x !`",
    },
};
