//! `[route.request_headers]` and `[route.response_headers]`: what a route changes of fields.

use std::ops::RangeInclusive;

use catamaran_proxy::config::FieldName;
use catamaran_proxy::config::{
    FieldRule, KnownNames, NameRef, PathExpression, Placeholder, ResponseFieldRule, Template,
    Traits,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::text::BLANKS_MAX;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::route::{FieldError, parse_field_name, parse_field_value};
use crate::value::text::parse_statuses;
use crate::value::{NamedValues, OneOrMore, Syntax};

pub(super) const REQUEST_NAME: &str = "request_headers";
pub(crate) const RESPONSE_NAME: &str = "response_headers";

/// A change of a field, or why it is not valid.
type RuleResult = Result<FieldRule, String>;

/// The values of the keys of a table, before they are checked against each other.
#[derive(Default)]
struct RawFields {
    remove: Vec<String>,
    set: Vec<(String, String)>,
    add: Vec<(String, String)>,
    statuses: Vec<RangeInclusive<u16>>,
}

/// Reads `request_headers` and `response_headers` of a route. Their values may contain groups of the route's
/// `expression`.
pub(super) fn read(
    route: &DeTable<'_>,
    expression: Option<&PathExpression>,
    report: &mut Report,
) -> (Vec<FieldRule>, Vec<ResponseFieldRule>) {
    let (mut of_requests, mut of_all_responses) = (Vec::new(), Vec::new());
    if let Some(value) = route.get(REQUEST_NAME) {
        (of_requests, _) = read_one(value, &REQUEST_SECTION, expression, report);
    }
    if let Some(value) = route.get(RESPONSE_NAME) {
        of_all_responses = of_responses(value, &RESPONSE_SECTION, expression, report);
    }
    (of_requests, of_all_responses)
}

/// Reads `response_headers` of a route: a table, or a list of tables.
fn of_responses(
    value: &Spanned<DeValue<'_>>,
    section: &'static Section,
    expression: Option<&PathExpression>,
    report: &mut Report,
) -> Vec<ResponseFieldRule> {
    let values = match value.get_ref().as_array() {
        Some(list) => list.iter().collect(),
        None => vec![value],
    };
    let mut changes = Vec::new();
    for value in values {
        let (rules, statuses) = read_one(value, section, expression, report);
        changes.extend(rules.into_iter().map(|change| ResponseFieldRule {
            change,
            statuses: statuses.clone(),
        }));
    }
    changes
}

/// Reads `[server.response_headers]`: the changes of responses' fields on all routes.
pub(super) fn of_all_routes(root: &DeTable<'_>, report: &mut Report) -> Vec<ResponseFieldRule> {
    let server = root
        .get("server")
        .and_then(|server| server.get_ref().as_table());
    match server.and_then(|server| server.get(RESPONSE_NAME)) {
        Some(value) => of_responses(value, &SERVER_SECTION, None, report),
        None => Vec::new(),
    }
}

/// Whether a route changes the fields of requests.
pub(super) fn changes_requests(route: &DeTable<'_>) -> bool {
    let table = route
        .get(REQUEST_NAME)
        .and_then(|it| it.get_ref().as_table());
    table.is_some_and(|it| !it.is_empty())
}

/// Reads one table: its changes, and the statuses of the responses that they are for.
fn read_one(
    value: &Spanned<DeValue<'_>>,
    section: &'static Section,
    expression: Option<&PathExpression>,
    report: &mut Report,
) -> (Vec<FieldRule>, Vec<RangeInclusive<u16>>) {
    let Some((place, entries)) = table(section.header, value, report) else {
        return Default::default();
    };
    let mut table = Table::new(section, place, entries);
    let mut written = RawFields::default();
    table.read(KEYS, &mut written);
    let of_request = section.header == REQUEST_SECTION.header;
    if !of_request {
        table.read(STATUS_KEYS, &mut written);
        check_statuses(&written.statuses, &mut table);
    }
    let known = if of_request {
        Placeholder::OF_FIELDS
    } else {
        Placeholder::OF_RESPONSES
    };
    let mut changes: Vec<(&str, RuleResult)> = Vec::new();
    for name in &written.remove {
        changes.push(("remove", free_name(name, of_request).map(FieldRule::Remove)));
    }
    for (name, text) in &written.set {
        let name = free_name(name, of_request);
        let template = template(text, known, expression);
        let rule = name.and_then(|name| Ok(FieldRule::Set(name, template?)));
        changes.push(("set", rule));
    }
    for (name, text) in &written.add {
        let name = free_name(name, of_request);
        let template = template(text, known, expression);
        let rule = name.and_then(|name| Ok(FieldRule::Add(name, template?)));
        changes.push(("add", rule));
    }
    let mut rules = Vec::new();
    for (key, rule) in changes {
        match rule {
            Ok(rule) => rules.push(rule),
            Err(error) => {
                let message = format!("`{key}` {error}");
                table.push(Finding::fault(message, table.place_of(key)).hint("remove it"));
            }
        }
    }
    table.finish(report);
    (rules, written.statuses)
}

/// Faults the status of an interim response, except 101, after which no other response follows.
fn check_statuses(statuses: &[RangeInclusive<u16>], table: &mut Table<'_>) {
    let is_interim = |range: &RangeInclusive<u16>| *range.start() < 200 && *range != (101..=101);
    if statuses.iter().any(is_interim) {
        let message =
            "`statuses` has one below 200, and interim responses are passed on as they are";
        let place = table.place_of("statuses");
        table.push(Finding::fault(message, place).hint("of those, only \"101\" can be changed"));
    }
}

/// Parses the name of a field that a route may change; the error says why it may not.
fn free_name(text: &str, of_request: bool) -> Result<FieldName, String> {
    let name = parse_field_name(text).map_err(|error| error.to_string())?;
    match ours(&name, of_request) {
        Some(reason) => Err(format!("names `{name}`, {reason}")),
        None => Ok(name),
    }
}

/// Parses the value of a field, which may contain the placeholders `known` and groups of the route's `expression`.
fn template(
    text: &str,
    known: KnownNames,
    expression: Option<&PathExpression>,
) -> Result<Template, String> {
    let template =
        Template::parse_with(text, known, expression).map_err(|error| error.to_string())?;
    if template.blanks() > BLANKS_MAX {
        return Err(format!(
            "has a value of more than {BLANKS_MAX} placeholders"
        ));
    }
    Ok(template)
}

/// Whether the front itself sets or removes a field, so that `[route.request_headers]`, or with `of_request` false
/// `[route.response_headers]`, must not name it; `false` if `name` is not a valid field name.
pub fn is_ruled_field(name: &str, of_request: bool) -> bool {
    parse_field_name(name).is_ok_and(|it| ours(&it, of_request).is_some())
}

/// Why a field of requests is the front's own.
pub(crate) fn reserved_of_requests(name: &FieldName) -> Option<&'static str> {
    ours(name, true)
}

/// Why a route may not change a field; `None`: it may.
fn ours(name: &FieldName, of_request: bool) -> Option<&'static str> {
    if NameRef::from(name).traits().has_any(Traits::HOP_BY_HOP) {
        return Some("which concerns one connection only");
    }
    match &*name.as_str().to_ascii_lowercase() {
        "content-length" => Some("which says how long the body is"),
        "date" | "server-timing" => None,
        "host" if of_request => Some("by which the application knows its site"),
        "forwarded" | "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host" | "via"
            if of_request =>
        {
            Some("which the front writes itself")
        }
        "expect" if of_request => Some("which the front answers itself"),
        _ => None,
    }
}

pub(crate) static REQUEST_SECTION: Section = Section {
    header: "[route.request_headers]",
    intro: "What the route above it changes of the fields of requests, after the front's own fields \
            have been written: first `remove`, then `set`, then `add`.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

pub(crate) static RESPONSE_SECTION: Section = Section {
    header: "[route.response_headers]",
    intro: "What the route above it changes of the fields of responses. The front's own pages and redirects have \
            them, too, but for those that describe a body or its life: `Content-*` other than \
            `Content-Security-Policy`, `Cache-Control`, `Expires`, `Age`, `Pragma`, `ETag`, `Last-Modified`, \
            `Accept-Ranges` and `Set-Cookie`; answers of a route by `text`, or by a `status` such as 204, lack only those that \
            describe a body. A 304 has no `Content-*`. Its keys are those of \
            `[route.request_headers]`, and `statuses`. A route may have several, as `[[route.response_headers]]`.",
    keys: &[Part::all(&KEYS), Part::all(&STATUS_KEYS)],
    later: &[],
};

pub(crate) static SERVER_SECTION: Section = Section {
    header: "[server.response_headers]",
    intro: "What is changed of the fields of the responses of all routes, before a route's own \
            `[route.response_headers]` changes more of them. Its keys are those of \
            `[route.response_headers]`. Answers without a route, such as 404 for a request that none \
            matches, are not changed.",
    keys: &[Part::all(&KEYS), Part::all(&STATUS_KEYS)],
    later: &[],
};

const VALUE: Syntax<String, FieldError> = Syntax {
    what: "a text, with placeholders such as {host}",
    parse: parse_field_value,
};

static KEYS: &[Key<RawFields>] = &[
    Key {
        name: "remove",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "the name of a field",
                parse: |text| parse_field_name(text).map(|_| text.to_owned()),
            }),
            RawFields.remove
        ),
        preset: Preset::Value("[]"),
        sample: "[\"X-Powered-By\", \"Server\"]",
        effect: "Fields that are removed, all lines of them.",
        extremes: "Fields of framing, of one connection, `Host` and those that say who the client is \
                   are faults here and below: the front rules them.",
        elsewhere: "httpd `Header unset`; nginx `proxy_hide_header`; HAProxy `del-header`",
    },
    Key {
        name: "set",
        group: ALL,
        value: fill!(
            NamedValues {
                what: "fields with their values, such as { X-Frame-Options = \"DENY\" }",
                of: VALUE,
            },
            RawFields.set
        ),
        preset: Preset::Value("{}"),
        sample: "{ Strict-Transport-Security = \"max-age=31536000\" }",
        effect: "Fields that have this value alone, whatever was there. `{host}` is the host that the \
                 client asked for, `{authority}` the host with its port, `{client_ip}` its address, \
                 `{scheme}` `http` or `https`, `{method}` the method (backends of a route with a cache are told `GET` \
                 for HEAD), `{request_id}` the id in the log, `{path}` the normalised \
                 path before it is rewritten, `{query}` the query, `{search}` `?` and the query, `{and_query}` `&` and the query, `{path_query}` both; \
                 `{header:NAME}` is a field of the request (lines are joined by `, `, cookies by `; `), `{query:NAME}` a parameter \
                 of its query, as it was encoded, `{cookie:NAME}` a cookie, of several the first; `{tls_version}`, `{tls_cipher}`, \
                 `{tls_name}` (the server name of the handshake) and `{tls_reused}` (`r` if it resumed a session, else `.`) are \
                 empty without TLS; `{connections_open}`, `{connections_accepted}`, `{connections_idle}`, `{requests_received}` and \
                 `{requests_in_flight}` count for the whole front, on its own answers and files alone, and are empty elsewhere; \
                 what is in flight is counted with [admin] only. In fields of responses `{response:NAME}` is a field of the response and \
                 `{response_cookie:NAME}` a cookie that it sets, both before the route changes them; `{backend}` is the \
                 address of the backend that sent it, empty if the front or its cache did. `{{` is a brace. Beside `regex` \
                 `{1}` and `{name}` are what its groups captured, percent-encoded but for letters, digits, `-._~/`. If all that is \
                 filled in is empty and there is no text, the field is removed, or not added.",
        extremes: "A field that only a trusted front may write is safe with `set`, which replaces what \
                   a client sent, and not with `add`. A value that the client sent is one that it chose.",
        elsewhere: "httpd `Header set`, `RequestHeader set`; nginx `proxy_set_header`, `add_header … \
                    always`; HAProxy `set-header`",
    },
    Key {
        name: "add",
        group: ALL,
        value: fill!(
            NamedValues {
                what: "fields with their values, such as { X-Served-By = \"{host}\" }",
                of: VALUE,
            },
            RawFields.add
        ),
        preset: Preset::Value("{}"),
        sample: "{ Set-Cookie = \"seen=1; Path=/\" }",
        effect: "Lines that are added to those that are there. Values are as in `set`.",
        extremes: "A field that may stand only once becomes invalid if it was there.",
        elsewhere: "httpd `Header add`; HAProxy `add-header`",
    },
];

/// Keys that only tables about responses have.
static STATUS_KEYS: &[Key<RawFields>] = &[Key {
    name: "statuses",
    group: ALL,
    value: fill!(
        OneOrMore(Syntax {
            what: "a status such as \"404\", a class such as \"2xx\", or a range such as \"200-204\"",
            parse: parse_statuses,
        }),
        RawFields.statuses
    ),
    preset: Preset::Unset("all"),
    sample: "[\"200\", \"3xx\"]",
    effect: "The statuses of the responses that this table changes.",
    extremes: "For changes that depend on the status, write `[[route.response_headers]]` several times; all that name a \
               response's status change it, in their order.",
    elsewhere: "nginx `add_header` without `always` is `[\"200\", \"201\", \"204\", \"206\", \"301-304\", \"307\", \"308\"]`",
}];
