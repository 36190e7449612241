//! The keys of `[[route]]` that change requests and responses, and those that replace settings of listeners and
//! upstreams.

use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{
    Activation, CookieFlags, HostName, KnownNames, PathExpression, Rewrite, RouteRules, SameSite,
    Template,
};
use ipnet::IpNet;

use super::reverse;
use crate::file::{auth, backend, limit};
use crate::fill;
use crate::key::{ALL, Group, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::route::{
    CookieFlag, parse_cookie_flag, parse_internal_host, parse_new_path, parse_path, parse_rewrite,
};
use crate::value::text::{parse_forward_host, parse_name, parse_network, parse_protocol};
use crate::value::{
    Choices, Counts, Durations, NamedValues, OneOrMore, Optional, OrOff, Sizes, Switch, Syntax,
};

/// Who may answer the requests of a route.
#[derive(Clone, Copy)]
pub(super) struct ServedBy {
    pub(super) upstream: bool,
    pub(super) files: bool,
    /// The front itself, with a text.
    pub(super) text: bool,
}

/// The values of the keys, before they are checked against each other.
#[derive(Default)]
pub(super) struct RawRules {
    rewrite: Option<String>,
    rewrite_whole: bool,
    reverse: bool,
    internal_hosts: Vec<String>,
    forward_host: Option<HostName>,
    exchange_timeout: Option<Option<Duration>>,
    body_max: Option<Option<u64>>,
    /// `Some(None)`: it is off.
    auth: Option<Option<String>>,
    sticky: bool,
    log: bool,
    cookie_flags: Vec<CookieFlag>,
    /// The values of keys that need no further check.
    rules: RouteRules,
}

/// Reads the keys. Most of them need an upstream. `expression` is that of the route.
pub(super) fn read(
    table: &mut Table<'_>,
    served_by: ServedBy,
    expression: Option<&PathExpression>,
) -> RouteRules {
    let mut written = RawRules {
        reverse: true,
        sticky: true,
        log: true,
        ..RawRules::default()
    };
    table.read(KEYS, &mut written);
    let cookie_flags = cookie_flags(table, &written.cookie_flags);
    check_response_rewrite(table, written.reverse, written.rewrite_whole);
    let (to, new_path) = rewrite(table, written.rewrite, expression, written.rewrite_whole);
    let rules = RouteRules {
        rewrite: to.map(|to| Rewrite {
            to,
            reverse: written.reverse,
            internal_hosts: written.internal_hosts,
        }),
        new_path,
        forward_host: written.forward_host.map(Arc::new),
        exchange_timeout: written
            .exchange_timeout
            .map(|limit| limit.unwrap_or(Duration::MAX)),
        body_max: written.body_max.map(|limit| limit.unwrap_or(u64::MAX)),
        auth: written.auth.flatten(),
        unsticky: !written.sticky,
        unlogged: !written.log,
        cookie_flags,
        ..written.rules
    };
    check_networks(table, &rules);
    check_timeouts(table, &rules);
    if table.has("tunnel_idle_timeout") && !table.has("upgrade") {
        let message = "`tunnel_idle_timeout` has no use without `upgrade`";
        let place = table.place_of("tunnel_idle_timeout");
        table.push(Finding::fault(message, place).hint("write upgrade = [\"websocket\"]"));
    }
    let is_useless = |group| match group {
        UPSTREAM => !served_by.upstream,
        FILES => !served_by.upstream && !served_by.files,
        CONTENT => !served_by.upstream && !served_by.files && !served_by.text,
        _ => false,
    };
    let mut useless = table.written(KEYS, is_useless);
    if !served_by.upstream && table.has(reverse::NAME) {
        useless.push((reverse::NAME, table.place_of(reverse::NAME)));
    }
    for (name, place) in useless {
        let message = format!("`{name}` has no use without `upstream`");
        table.push(Finding::fault(message, place).hint("remove it"));
    }
    rules
}

/// Reads what replaces the prefix of a path, or the whole path. A whole path may have groups of the route's expression.
///
/// At most one of the two is there.
fn rewrite(
    table: &mut Table<'_>,
    written: Option<String>,
    expression: Option<&PathExpression>,
    is_whole: bool,
) -> (Option<String>, Option<Template>) {
    let Some(text) = written else {
        return (None, None);
    };
    let error = match expression {
        Some(expression) => match parse_new_path(&text, expression) {
            Ok(path) => return (None, Some(path)),
            Err(error) => error.to_string(),
        },
        None => match parse_path(&text) {
            Ok(path) if is_whole => {
                return (None, Some(Template::parse_text(&path, KnownNames::NONE)));
            }
            Ok(prefix) => return (Some(prefix), None),
            Err(error) => error.to_string(),
        },
    };
    let message = format!("`rewrite` {error}");
    table.push(Finding::fault(message, table.place_of("rewrite")));
    (None, None)
}

/// Warns of a timeout of the route that the timeout of the whole exchange ends first.
fn check_timeouts(table: &mut Table<'_>, rules: &RouteRules) {
    let whole = rules.exchange_timeout.unwrap_or(Duration::MAX);
    for (key, part) in [
        ("first_byte_timeout", rules.first_byte_timeout),
        ("idle_body_timeout", rules.idle_body_timeout),
        ("attempt_timeout", rules.attempt_timeout),
    ] {
        if part.is_some_and(|part| part > whole) {
            backend::never_reached(table, key, "exchange_timeout");
        }
    }
}

/// Reports `allow` and `deny` that together serve no client.
fn check_networks(table: &mut Table<'_>, rules: &RouteRules) {
    let is_covered = |allowed: &IpNet| rules.deny.iter().any(|denied| denied.contains(allowed));
    if !rules.allow.is_empty() && rules.allow.iter().all(is_covered) {
        let message = "`deny` has every network of `allow`, so that nobody would be served";
        let hint = "`deny` wins where both have an address; remove what is to be served from it";
        table.push(Finding::fault(message, table.place_of("deny")).hint(hint));
    }
    if table.is_empty_list("allow") {
        let message = "`allow` is an empty list, so that nobody would be served";
        let hint = "name a network, or write status = 403 instead";
        table.push(Finding::fault(message, table.place_of("allow")).hint(hint));
    }
}

/// The flags to add to cookies. Reports flags that contradict each other.
fn cookie_flags(table: &mut Table<'_>, written: &[CookieFlag]) -> CookieFlags {
    let mut flags = CookieFlags::default();
    for flag in written {
        match *flag {
            CookieFlag::Secure => flags.secure = true,
            CookieFlag::HttpOnly => flags.http_only = true,
            CookieFlag::SameSite(same_site) => {
                if flags.same_site.is_some_and(|first| first != same_site) {
                    let message = "`cookie_flags` has two values of SameSite";
                    let place = table.place_of("cookie_flags");
                    table.push(Finding::fault(message, place).hint("keep one of them"));
                }
                flags.same_site = Some(same_site);
            }
        }
    }
    if flags.same_site == Some(SameSite::None) && !flags.secure {
        let message = "browsers refuse cookies with `SameSite=None` that are not `Secure`";
        let hint = "add \"Secure\", and serve this route over TLS";
        table.push(Finding::fault(message, table.place_of("cookie_flags")).hint(hint));
    }
    flags
}

/// Reports keys about a rewrite that the route does not have.
fn check_response_rewrite(table: &mut Table<'_>, reverse: bool, whole: bool) {
    // Only a prefix can be changed back in responses.
    let whole_by = if table.has("regex") {
        Some("regex")
    } else if whole {
        Some("rewrite_whole")
    } else {
        None
    };
    let is_rewritten = table.has("rewrite") && whole_by.is_none();
    let missing_for_hosts = if reverse { "rewrite" } else { "reverse" };
    for (name, is_useful, missing) in [
        ("reverse", is_rewritten, "rewrite"),
        ("internal_hosts", is_rewritten && reverse, missing_for_hosts),
    ] {
        if table.has(name) && !is_useful {
            let message = match whole_by {
                Some(key) => format!(
                    "`{name}` has no use beside `{key}`: what leads back is known of a `path` alone"
                ),
                None => format!("`{name}` has no use without `{missing}`"),
            };
            table.push(Finding::fault(message, table.place_of(name)).hint("remove it"));
        }
    }
    if table.has("rewrite_whole") && (table.has("regex") || !table.has("rewrite")) {
        let reason = if table.has("regex") {
            "beside `regex`, whose `rewrite` is the whole path"
        } else {
            "without `rewrite`"
        };
        let message = format!("`rewrite_whole` has no use {reason}");
        table.push(Finding::fault(message, table.place_of("rewrite_whole")).hint("remove it"));
    }
}

/// The range of timeouts, as for backends.
const LONG: Durations = Durations(Duration::from_millis(1)..=Duration::from_secs(24 * 3600));

/// Keys that have no use without `upstream`.
const UPSTREAM: Group = Group("upstream");

/// Keys that have no use without `upstream` or `files`.
const FILES: Group = Group("upstream or files");

/// Keys that have no use without `upstream`, `files` or `text`: a status alone tells nobody anything.
const CONTENT: Group = Group("upstream, files or text");

pub(super) static KEYS: &[Key<RawRules>] = &[
    Key {
        name: "rewrite",
        group: FILES,
        value: fill!(
            Optional(Syntax {
                what: "a path such as \"/app\"",
                parse: parse_rewrite,
            }),
            RawRules.rewrite
        ),
        preset: Preset::Unset("the path is forwarded as it is"),
        sample: "\"/app\"",
        effect: "What stands in the place of `path` in the request that is forwarded: with `path = \
                 \"/shop\"` and `rewrite = \"/app\"`, `/shop/x` becomes `/app/x`; `\"/\"` removes it. \
                 What is behind it stays byte for byte. Responses are turned back (`reverse`). Beside `regex` it is \
                 the whole new path, in which `{1}` and `{name}` are what the groups captured, percent-encoded again; \
                 parameters of the last segment (`;jsessionid=…`) stay at its end, and responses are not turned back.",
        extremes: "A new path that would have a segment `.` or `..` is answered 400 (`path-hidden-dots`). \
                   Bodies are not looked into: absolute links that an application writes into its \
                   pages stay as they are. An application deployed under the path that clients see \
                   needs no rewrite.",
        elsewhere: "httpd `ProxyPass /shop ajp://…/app`; nginx `proxy_pass http://…/app`, `rewrite … break`",
    },
    Key {
        name: "rewrite_whole",
        group: FILES,
        value: fill!(Switch, RawRules.rewrite_whole),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether `rewrite` is the whole new path, whatever is behind `path`: with `path = \"/shop\"` and `rewrite \
                 = \"/closed\"`, `/shop/x` becomes `/closed`. It may stand beside `exact`, `suffix` and `pattern`. The \
                 query stays, and parameters of the last segment (`;jsessionid=…`) stay at its end; responses are not \
                 turned back.",
        extremes: "Relative links of the page that is served lead below the path that the client asked for.",
        elsewhere: "nginx `rewrite ^ /closed break`; Gateway API `ReplaceFullPath`",
    },
    Key {
        name: "reverse",
        group: ALL,
        value: fill!(Switch, RawRules.reverse),
        preset: Preset::Value("true"),
        sample: "false",
        effect: "Whether responses of a rewritten route are turned back: the path in `Location`, \
                 `Content-Location` and the URL of `Refresh`, of URLs with the host that the client asked for, the backend's or \
                 one of `internal_hosts`, and the `Path` of cookies. A cookie's `Domain` goes if it \
                 is the backend's or one of `internal_hosts`. `[[route.reverse_url]]` has rules of its own for URLs.",
        extremes: "Off is for an application that is told its outer path and writes it itself. \
                   Otherwise its redirects lead nowhere, and its session cookie is not sent back: \
                   each request begins a new session.",
        elsewhere: "httpd `ProxyPassReverse`, `ProxyPassReverseCookiePath`; nginx `proxy_redirect`, \
                    `proxy_cookie_path`",
    },
    Key {
        name: "internal_hosts",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a host such as \"app.internal\"",
                parse: parse_internal_host,
            }),
            RawRules.internal_hosts
        ),
        preset: Preset::Value("[]"),
        sample: "[\"app.internal\"]",
        effect: "Hosts by which the application calls itself and which clients cannot reach. URLs with \
                 them, on any port, are turned back, and cookies lose them as their `Domain`.",
        extremes: "Most applications call themselves as the client does, since `Host` is passed on.",
        elsewhere: "httpd `ProxyPassReverse`, `ProxyPassReverseCookieDomain`",
    },
    Key {
        name: "forward_host",
        group: UPSTREAM,
        value: fill!(
            Optional(Syntax {
                what: "a host such as \"app.internal\"",
                parse: parse_forward_host,
            }),
            RawRules.forward_host
        ),
        preset: Preset::Unset("as `host` of the backend says"),
        sample: "\"app.internal\"",
        effect: "On this route, instead of `host` of the backend: the host by which backends are called, in `Host` and \
                 over AJP as the server's name and port. `X-Forwarded-Host` says what the client asked for.",
        extremes: "The application writes this host into its redirects, cookies and links; a `rewrite` turns responses \
                   back.",
        elsewhere: "nginx `proxy_set_header Host` in a location; Gateway API `URLRewrite` with `hostname`",
    },
    Key {
        name: "allow",
        group: CONTENT,
        value: fill!(
            OneOrMore(Syntax {
                what: "an IP address or network such as \"10.0.0.0/8\"",
                parse: parse_network,
            }),
            RawRules.rules.allow
        ),
        preset: Preset::Unset("everybody"),
        sample: "[\"10.0.0.0/8\", \"::1\"]",
        effect: "The networks whose clients are served. Others are answered 403 (`route-denied`). What \
                 counts is the client's address as `trusted_proxies` tell it.",
        extremes: "Behind a proxy that is not in `trusted_proxies`, its own address is what counts: \
                   everybody gets in or nobody does.",
        elsewhere: "httpd `Require ip`; nginx `allow`, `deny all`; Tomcat `RemoteAddrValve`",
    },
    Key {
        name: "deny",
        group: CONTENT,
        value: fill!(
            OneOrMore(Syntax {
                what: "an IP address or network such as \"192.0.2.0/24\"",
                parse: parse_network,
            }),
            RawRules.rules.deny
        ),
        preset: Preset::Value("[]"),
        sample: "[\"192.0.2.0/24\"]",
        effect: "The networks whose clients are answered 403 (`route-denied`), even if `allow` has them. \
                 What counts is the client's address, as for `allow`.",
        extremes: "Clients that can choose another address are not kept out: to serve a few, write `allow`.",
        elsewhere: "nginx `deny`; httpd `Require not ip`; HAProxy `http-request deny`; Tomcat \
                    `RemoteAddrValve deny`",
    },
    Key {
        name: "client_certificate",
        group: ALL,
        value: fill!(
            Choices(&[("required", true), ("off", false)]),
            RawRules.rules.client_certificate
        ),
        preset: Preset::Value("\"off\""),
        sample: "\"required\"",
        effect: "With `\"required\"` only clients are served that have shown a certificate which the profile \
                 of their listener verified. Others are answered 403 (`client-certificate-missing`), whatever \
                 the route leads to. The profile asks for one with client_certificate = \"optional\".",
        extremes: "Clients of a listener without TLS, or of a profile that asks for no certificate, are all \
                   answered 403. A certificate of which a proxy in `trusted_proxies` tells is none.",
        elsewhere: "httpd `SSLVerifyClient require` in a `<Location>`; nginx `if ($ssl_client_verify != \
                    SUCCESS) { return 403; }`",
    },
    Key {
        name: "cache",
        group: UPSTREAM,
        value: fill!(
            Optional(Syntax {
                what: "the name of a [cache.NAME]",
                parse: parse_name,
            }),
            RawRules.rules.cache
        ),
        preset: Preset::Unset("nothing is stored"),
        sample: "\"pages\"",
        effect: "The [cache.NAME] that has responses of this route. Guards of the route (`allow`, \
                 `client_certificate`) are asked before it. [cache.md](cache.md) explains it.",
        extremes: "A page that is for one user alone and does not say so is shown to others if its request \
                   has no cookie of `session_cookies`.",
        elsewhere: "nginx `proxy_cache`; httpd `CacheEnable`",
    },
    Key {
        name: "limits",
        group: ALL,
        value: fill!(limit::NAMES, RawRules.rules.limits),
        preset: Preset::Value("[]"),
        sample: "[\"NAME\"]",
        effect: "The limits, at most four, that requests of this route are subject to, after those of the listener \
                 and behind `allow`, `deny` and `client_certificate`. A request beyond one of them is answered 429 \
                 (`rate-limited`). All are asked before any is charged. [limits.md](limits.md) explains it.",
        extremes: "A route without the limit is a way around it if it leads to the same application.",
        elsewhere: "nginx `limit_req`; HAProxy `http-request deny if`; Traefik `rateLimit`",
    },
    Key {
        name: "auth",
        group: ALL,
        value: fill!(Optional(OrOff(auth::NAME)), RawRules.auth),
        preset: Preset::Value("\"off\""),
        sample: "\"NAME\"",
        effect: "The [auth.NAME] that lets clients in, whatever the route leads to: behind `allow`, `deny`, \
                 `client_certificate`, `limits` and preflights of CORS, before everything else. \
                 [sign-on.md](sign-on.md) explains it.",
        extremes: "A route without it to the same application is a way around it, which `check` warns of; `\"off\"` says that it \
                   is meant.",
        elsewhere: "nginx `auth_request`, `auth_basic`; httpd `AuthType`; Traefik `forwardAuth`",
    },
    Key {
        name: "first_byte_timeout",
        group: UPSTREAM,
        value: fill!(Optional(LONG), RawRules.rules.first_byte_timeout),
        preset: Preset::Unset("that of the backend"),
        sample: "\"10m\"",
        effect: "On this route, instead of the backend's `first_byte_timeout`: how long it may be \
                 silent before the first byte of its response.",
        extremes: "A long one for reports and exports keeps the short one for everything else.",
        elsewhere: "mod_jk `reply_timeout` in a rule; httpd `ProxyPass timeout=`; nginx \
                    `proxy_read_timeout` in a location",
    },
    Key {
        name: "idle_body_timeout",
        group: UPSTREAM,
        value: fill!(Optional(LONG), RawRules.rules.idle_body_timeout),
        preset: Preset::Unset("that of the backend"),
        sample: "\"1h\"",
        effect: "On this route, instead of the backend's `idle_body_timeout`: how long it may be silent \
                 within a body.",
        extremes: "Event streams need one that is longer than the pause between two events.",
        elsewhere: "nginx `proxy_read_timeout` in a location",
    },
    Key {
        name: "exchange_timeout",
        group: UPSTREAM,
        value: fill!(Optional(OrOff(LONG)), RawRules.exchange_timeout),
        preset: Preset::Unset("that of the backend"),
        sample: "\"30s\"",
        effect: "On this route, instead of the backend's `exchange_timeout`: how long a whole exchange may take, from \
                 its head on, with every wait and every attempt. After it: 504 (`exchange-timeout`), or a response that \
                 is cut. A tunnel that has begun is no longer counted.",
        extremes: "Too short cuts downloads off. `\"off\"` lifts the backend's for exports and event streams.",
        elsewhere: "Gateway API `timeouts.request`; Envoy `timeout` of a route",
    },
    Key {
        name: "attempt_timeout",
        group: UPSTREAM,
        value: fill!(Optional(LONG), RawRules.rules.attempt_timeout),
        preset: Preset::Unset("an attempt may take as long as the exchange"),
        sample: "\"10s\"",
        effect: "On this route: how long each attempt on a backend may take, from the wait for a connection to the \
                 last byte of its response. After it another backend is asked, if nothing of a response came and \
                 `retries` and `retry_sent` allow it; else the answer is 504 (`attempt-timeout`), or the response is cut.",
        extremes: "Shorter than a slow page takes, each backend makes the page in vain: `retries = 0` keeps it to one.",
        elsewhere: "Gateway API `timeouts.backendRequest`; Envoy `per_try_timeout`",
    },
    Key {
        name: "body_max",
        group: ALL,
        value: fill!(Optional(OrOff(Sizes(0..=1 << 50))), RawRules.body_max),
        preset: Preset::Unset("that of the listener"),
        sample: "\"1GiB\"",
        effect: "On this route, instead of the listener's `body_max`: the largest body that a client \
                 may send; a larger one is answered 413.",
        extremes: "A small one for everything and a large one for uploads keeps the uploads in one \
                   place.",
        elsewhere: "nginx `client_max_body_size` in a location; httpd `LimitRequestBody`",
    },
    Key {
        name: "log",
        group: ALL,
        value: fill!(Switch, RawRules.log),
        preset: Preset::Value("true"),
        sample: "false",
        effect: "`false` keeps requests of this route out of the access log, such as those by which a load balancer asks \
                 whether the front is well. They are counted in the metrics as all are.",
        extremes: "A request that fails here leaves no line, either: to see those, write `only` in [log] instead.",
        elsewhere: "nginx `access_log off` in a location; httpd `CustomLog env=`",
    },
    Key {
        name: "retries",
        group: UPSTREAM,
        value: fill!(Optional(Counts(0..=20)), RawRules.rules.retries),
        preset: Preset::Unset("that of the upstream"),
        sample: "0",
        effect: "On this route, instead of the upstream's `retries`.",
        extremes: "0 for what is expensive even though a retry would be safe.",
        elsewhere: "nginx `proxy_next_upstream_tries` in a location",
    },
    Key {
        name: "sticky",
        group: UPSTREAM,
        value: fill!(Switch, RawRules.sticky),
        preset: Preset::Value("true"),
        sample: "false",
        effect: "`false` lets requests of this route go to any backend, whatever session they have: \
                 for what needs none, such as images and style sheets.",
        extremes: "A page that does need its session loses it here.",
        elsewhere: "mod_jk `sticky_ignore` in a rule",
    },
    Key {
        name: "activation",
        group: UPSTREAM,
        value: fill!(
            NamedValues {
                what: "backends with their activation, such as { a = \"stopped\" }",
                of: Choices(&[
                    ("active", Activation::Active),
                    ("drain", Activation::Drain),
                    ("stopped", Activation::Stopped),
                ]),
            },
            RawRules.rules.activation
        ),
        preset: Preset::Value("{}"),
        sample: "{ b = \"stopped\" }",
        effect: "Backends, by name, that get less on this route than elsewhere: `stopped` nothing, \
                 `drain` only the sessions they have.",
        extremes: "`active` does not bring back a backend that is stopped as a whole. With all \
                   stopped, the route is answered 503.",
        elsewhere: "mod_jk `active=`, `disabled=`, `stopped=` in a rule",
    },
    Key {
        name: "cookie_flags",
        group: UPSTREAM,
        value: fill!(
            OneOrMore(Syntax {
                what: "\"Secure\", \"HttpOnly\", \"SameSite=Lax\", \"SameSite=Strict\" or \"SameSite=None\"",
                parse: parse_cookie_flag,
            }),
            RawRules.cookie_flags
        ),
        preset: Preset::Value("[]"),
        sample: "[\"Secure\", \"HttpOnly\", \"SameSite=Lax\"]",
        effect: "What each cookie of the application gets unless it has it: a cookie with a `SameSite` of \
                 its own keeps that. `[[route.cookie]]` changes single cookies.",
        extremes: "With `Secure`, clients in clear lose their sessions. With `HttpOnly`, scripts that read \
                   a cookie, such as a CSRF token, find none: give their path a route without it.",
        elsewhere: "nginx `proxy_cookie_flags`; httpd `Header edit Set-Cookie`; Tomcat `<cookie-config>`, \
                    `CookieProcessor sameSiteCookies`",
    },
    Key {
        name: "upgrade",
        group: UPSTREAM,
        value: fill!(
            OneOrMore(Syntax {
                what: "a protocol such as \"websocket\"",
                parse: parse_protocol,
            }),
            RawRules.rules.upgrade
        ),
        preset: Preset::Value("[]"),
        sample: "[\"websocket\"]",
        effect: "Protocols that a client may change to on this route (`Upgrade`, over HTTP/2 \
                 `:protocol`). If the backend agrees, the connection, over HTTP/2 the stream, is a \
                 tunnel from then on: bytes go both ways as they are. A backend that speaks AJP needs \
                 `upgrade_url`. [websocket.md](websocket.md) explains it.",
        extremes: "A protocol that is not named is not asked of the backend, and the request is served \
                   like any other, over HTTP/2 refused: WebSocket then fails in the browser. What goes \
                   through a tunnel is not looked at: name `h2c` or anything else that carries requests, and no rule of this file \
                   holds for these.",
        elsewhere: "nginx `proxy_set_header Upgrade`; httpd `ProxyPass upgrade=websocket`, \
                    mod_proxy_wstunnel",
    },
    Key {
        name: "tunnel_idle_timeout",
        group: ALL,
        value: fill!(
            Optional(Durations(
                Duration::from_millis(1)..=Duration::from_secs(7 * 24 * 3600)
            )),
            RawRules.rules.tunnel_idle_timeout
        ),
        preset: Preset::Unset("\"10m\""),
        sample: "\"1h\"",
        effect: "How long a tunnel may be silent, both ways, before it is closed (`tunnel-idle`).",
        extremes: "Too short closes what only waits for news; a ping of the application keeps it open. \
                   Too long keeps the connections of clients that are gone without a word.",
        elsewhere: "HAProxy `timeout tunnel`; nginx `proxy_read_timeout`; httpd `ProxyWebsocketIdleTimeout`",
    },
];
