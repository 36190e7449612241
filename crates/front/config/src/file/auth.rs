//! `[auth.NAME]`: sign-ons before the application, which routes name.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use catamaran_proxy::config::{
    AuthConfig, AuthKind, AuthSource, FieldName, ForwardAuth, NameRef, Placeholder, Template,
    Traits,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::cache::COOKIE;
use super::named;
use super::route::reserved_of_requests;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::Table;
use crate::value::route::{FieldError, PathError, parse_field_name, parse_path};
use crate::value::text::{TextError, parse_name};
use crate::value::{Durations, NamedValues, OneOrMore, Optional, Sizes, Syntax};

/// A sign-on and its place in the file.
#[derive(Debug)]
pub(crate) struct Auth {
    pub(crate) value: AuthConfig,
    pub(crate) place: Range<usize>,
    /// Where `upstream` is in the file.
    pub(crate) upstream_place: Range<usize>,
    /// Where `sign_in` is in the file; without it, the table's header.
    pub(crate) sign_in_place: Range<usize>,
}

/// The values of the keys of `[auth.NAME]`, before they are checked against each other.
struct RawAuth {
    upstream: Option<String>,
    path: Option<String>,
    user: Option<FieldName>,
    fields: Vec<(String, AuthSource)>,
    request_fields: Vec<FieldName>,
    sign_in: Option<String>,
    timeout: Duration,
    answer_max: usize,
    hide_cookies: Vec<String>,
}

/// Reads all tables `[auth.NAME]`. Those with faults are missing.
pub(crate) fn read(value: &Spanned<DeValue<'_>>, report: &mut Report) -> Vec<Auth> {
    let tables = named(&[&SECTION], "a sign-on", value, report).into_iter();
    tables
        .filter_map(|(name, place, entries)| read_one(name, place, entries, report))
        .collect()
}

/// Reads one `[auth.NAME]`; `None` if it has faults.
fn read_one(
    name: &str,
    place: Range<usize>,
    entries: &DeTable<'_>,
    report: &mut Report,
) -> Option<Auth> {
    let mut table = Table::new(&SECTION, place.clone(), entries);
    // The defaults of the keys.
    let mut written = RawAuth {
        upstream: None,
        path: None,
        user: None,
        fields: Vec::new(),
        request_fields: Vec::new(),
        sign_in: None,
        timeout: Duration::from_secs(5),
        answer_max: 64 << 10,
        hide_cookies: Vec::new(),
    };
    table.read(KEYS, &mut written);
    if name == OFF {
        let message = "a sign-on cannot be named `off`, by which a route has none";
        table.push(Finding::fault(message, place.clone()).hint("give it another name"));
    }
    let fields = fields(&mut table, &written);
    check_request_fields(&mut table, &written.request_fields, &fields);
    let sign_in = sign_in(&mut table, written.sign_in.as_deref());
    let (upstream_place, sign_in_place) = (table.place_of("upstream"), table.place_of("sign_in"));
    let is_good = table.is_good();
    table.finish(report);
    let service = ForwardAuth {
        upstream: written.upstream?,
        path: Bytes::from(written.path?),
        user: written.user,
        fields,
        request_fields: written.request_fields,
        sign_in,
        timeout: written.timeout,
        answer_max: written.answer_max,
        hide_cookies: written.hide_cookies,
    };
    is_good.then(|| Auth {
        value: AuthConfig {
            name: name.to_owned(),
            kind: AuthKind::Forward(service),
        },
        place,
        upstream_place,
        sign_in_place,
    })
}

/// The fields for the application. Reports those that it must not be told in.
fn fields(table: &mut Table<'_>, written: &RawAuth) -> Vec<(FieldName, AuthSource)> {
    let mut fields: Vec<(FieldName, AuthSource)> = Vec::new();
    for (name, source) in &written.fields {
        let fault = match parse_field_name(name) {
            Err(error) => format!("`fields` {error}"),
            Ok(field) => match reserved_for_claims(&field) {
                Some(why) => format!("`fields` names the field `{field}`, {why}"),
                None if fields.iter().any(|(known, _)| are_alike(known, &field)) => {
                    format!("`fields` has `{field}` twice: applications may not tell them apart")
                }
                None if *source == AuthSource::User && !table.has("user") => {
                    format!("`fields` has `{field}` from \"user\", and there is no `user`")
                }
                None => {
                    fields.push((field, source.clone()));
                    continue;
                }
            },
        };
        table.push(Finding::fault(fault, table.place_of("fields")));
    }
    fields
}

/// Reports fields of the client that the service must not get.
fn check_request_fields(
    table: &mut Table<'_>,
    wanted: &[FieldName],
    fields: &[(FieldName, AuthSource)],
) {
    for name in wanted {
        let is_claim = fields.iter().any(|(claim, _)| are_alike(claim, name));
        let why = if is_claim {
            Some("in which the application is told who has signed on")
        } else if NameRef::from(name).traits().has_any(Traits::CONDITION) {
            Some("by which the service would answer without a verdict")
        } else {
            reserved_for_claims(name)
        };
        if let Some(why) = why {
            let message = format!("`request_fields` names the field `{name}`, {why}");
            let place = table.place_of("request_fields");
            table.push(Finding::fault(message, place).hint("remove it"));
        }
    }
}

/// Why neither an application nor a service may be told something in this field; `None`: it may.
fn reserved_for_claims(name: &FieldName) -> Option<&'static str> {
    if NameRef::from(name).traits().has_any(Traits::CLAIM) {
        return Some("in which the front tells of the client itself");
    }
    match &*name.as_str().to_ascii_lowercase() {
        "cookie" => Some("which has the client's cookies"),
        "authorization" => Some("which has the client's credentials"),
        "range" | "upgrade" | "transfer-encoding" => Some("which says what the request is"),
        _ => reserved_of_requests(name),
    }
}

/// Whether some applications read two names as the same.
fn are_alike(one: &FieldName, other: &FieldName) -> bool {
    let letters = |name: &FieldName| {
        let letters = name.as_str().bytes().filter(u8::is_ascii_alphanumeric);
        letters
            .map(|letter| letter.to_ascii_lowercase())
            .collect::<Vec<u8>>()
    };
    letters(one) == letters(other)
}

/// Where browsers are sent to sign on.
fn sign_in(table: &mut Table<'_>, text: Option<&str>) -> Option<Template> {
    let text = text?;
    let is_url = ["/", "http://", "https://"]
        .iter()
        .any(|it| text.starts_with(it));
    let fault = if !is_url || text.starts_with("//") {
        "must be a path on this host, or a URL with http:// or https://".to_owned()
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        "has a blank or a character that is not ASCII; escape it as %20".to_owned()
    } else {
        match Template::parse(text, Placeholder::OF_SIGN_IN) {
            Ok(template) if template.blanks() <= BLANKS_MAX => return Some(template),
            Ok(_) => format!("has more than {BLANKS_MAX} placeholders"),
            Err(error) => error.to_string(),
        }
    };
    let message = format!("`sign_in` {fault}");
    table.push(Finding::fault(message, table.place_of("sign_in")));
    None
}

/// Parses the source of a value in the service's answer: `user`, or the name of a field.
pub(crate) fn parse_source(text: &str) -> Result<AuthSource, FieldError> {
    match text {
        "user" => Ok(AuthSource::User),
        name => parse_field_name(name).map(AuthSource::Field),
    }
}

/// The value of the key `auth` of a route: the name of a sign-on.
pub(crate) const NAME: Syntax<String, TextError> = Syntax {
    what: "the name of an [auth.NAME]",
    parse: parse_name,
};

const FIELD: Syntax<FieldName, FieldError> = Syntax {
    what: "a field's name such as \"X-Auth-Request-User\"",
    parse: parse_field_name,
};

/// The value of `auth` of a route without a sign-on.
const OFF: &str = "off";

/// The most placeholders in the address of the page to sign on.
const BLANKS_MAX: usize = 8;

pub(crate) static SECTION: Section = Section {
    header: "[auth.NAME]",
    intro: "A sign-on, which routes name with `auth`; without that it guards nothing. Before a request is served, the front \
            asks a service whether its client has signed on: `GET path`, without a body and without a query. A 2xx lets the \
            request pass; each other answer, and each failure, keeps it out. Nothing is remembered. \
            [sign-on.md](sign-on.md) says which kind one needs, what the service gets and what its answers mean.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

static KEYS: &[Key<RawAuth>] = &[
    Key {
        name: "upstream",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "the name of an [upstream.NAME]",
                parse: parse_name,
            }),
            RawAuth.upstream
        ),
        preset: Preset::Required,
        sample: "\"NAME\"",
        effect: "The upstream of the service. Its timeouts, retries, probes and figures are those of any upstream.",
        extremes: "If it is down, every route with this sign-on is answered 502, 503 or 504.",
        elsewhere: "nginx `auth_request`; Caddy `forward_auth`; Traefik `forwardAuth.address`",
    },
    Key {
        name: "path",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a path such as \"/oauth2/auth\"",
                parse: |text: &str| -> Result<String, PathError> { parse_path(text) },
            }),
            RawAuth.path
        ),
        preset: Preset::Required,
        sample: "\"/oauth2/auth\"",
        effect: "The path that the service is asked for. `X-Forwarded-Uri` has the path and query of the client's \
                 request, as its route matched it.",
        extremes: "A path that answers 2xx to everybody lets everybody in.",
        elsewhere: "nginx `auth_request`; Caddy `forward_auth` `uri`",
    },
    Key {
        name: "user",
        group: ALL,
        value: fill!(Optional(FIELD), RawAuth.user),
        preset: Preset::Unset("no user is known"),
        sample: "\"X-Auth-Request-User\"",
        effect: "The field of the service's answer that has the user, for the access log, for `fields`, and for AJP \
                 backends with `remote_user = \"auth\"`. At most one line of 1 KiB. Without it the client is anonymous.",
        extremes: "An answer with two such lines, or with a control character, is refused: 502 (`auth-claim`).",
        elsewhere: "nginx `auth_request_set $user $upstream_http_…`",
    },
    Key {
        name: "fields",
        group: ALL,
        value: fill!(
            NamedValues {
                what: "request fields with their sources, such as { X-User = \"user\" }",
                of: Syntax {
                    what: "\"user\", or a field of the answer",
                    parse: parse_source,
                },
            },
            RawAuth.fields
        ),
        preset: Preset::Value("{}"),
        sample: "{ X-User = \"user\", X-Mail = \"X-Auth-Request-Email\" }",
        effect: "The fields in which backends are told who has signed on, each with its source: `user`, or a field of the \
                 service's answer, whose lines are joined by commas; 8 KiB in all.",
        extremes: "Fields of these names that clients or proxies send are removed from every request of the front, also \
                   those that are spelled `X_User` or `X.User`.",
        elsewhere: "nginx `proxy_set_header`; Caddy `copy_headers`; Traefik `authResponseHeaders`",
    },
    Key {
        name: "request_fields",
        group: ALL,
        value: fill!(OneOrMore(FIELD), RawAuth.request_fields),
        preset: Preset::Value("[]"),
        sample: "[\"X-Api-Key\"]",
        effect: "Fields of the client's request that the service gets besides `Cookie`, `Authorization`, `Accept`, \
                 `Accept-Language`, `User-Agent`, `Origin`, `Referer`, `X-Requested-With` and `Sec-Fetch-Mode`.",
        extremes: "A service that believes a field believes what the client wrote into it.",
        elsewhere: "Traefik `authRequestHeaders`; nginx and Caddy send all fields",
    },
    Key {
        name: "sign_in",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a path or URL such as \"/oauth2/start?rd={url}\"",
                parse: |text: &str| -> Result<String, TextError> { Ok(text.to_owned()) },
            }),
            RawAuth.sign_in
        ),
        preset: Preset::Unset("browsers get the service's answer"),
        sample: "\"/oauth2/start?rd={url}\"",
        effect: "Where a browser is sent, by 302, if the service answers 401 and the request is a GET or HEAD for a page. \
                 `{url}`, `{scheme}`, `{host}`, `{authority}`, `{path}`, `{query}` and `{path_query}` are those of the \
                 client's request, percent-encoded.",
        extremes: "The page needs a route without this sign-on: otherwise nobody could sign on, which is a fault.",
        elsewhere: "nginx `error_page 401 =302`; nginx-ingress `auth-signin`",
    },
    Key {
        name: "timeout",
        group: ALL,
        value: fill!(
            Durations(Duration::from_millis(1)..=Duration::from_secs(60)),
            RawAuth.timeout
        ),
        preset: Preset::Value("\"5s\""),
        sample: "\"2s\"",
        effect: "How long the service may take for its whole answer, with all attempts. After it: 504 (`auth-timeout`).",
        extremes: "Each request waits for it. Too short locks everybody out while the service is slow.",
        elsewhere: "nginx `proxy_read_timeout` of the location",
    },
    Key {
        name: "answer_max",
        group: ALL,
        value: fill!(Sizes(0..=16 << 20), RawAuth.answer_max),
        preset: Preset::Value("\"64KiB\""),
        sample: "\"1MiB\"",
        effect: "The largest body of an answer of the service. A larger one is cut: 502 (`auth-answer`).",
        extremes: "The body is kept in memory, once for each request that waits.",
        elsewhere: "Traefik `maxResponseBodySize`",
    },
    Key {
        name: "hide_cookies",
        group: ALL,
        value: fill!(OneOrMore(COOKIE), RawAuth.hide_cookies),
        preset: Preset::Value("[]"),
        sample: "[\"_oauth2_proxy*\"]",
        effect: "Cookies that the service gets and backends do not, on routes with this sign-on; a name may end in `*`.",
        extremes: "Cookies of a sign-on may have several KiB, which do not fit into an AJP packet of 8 KiB: 431.",
        elsewhere: "",
    },
];
