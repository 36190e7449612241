//! `[route.cors]`: the pages of other origins that may use a route.

use std::time::Duration;

use catamaran_proxy::config::{
    CorsConfig, FieldName, OriginError, OriginPattern, ResponseFieldRule,
};
use http::Method;
use toml::Spanned;
use toml::de::DeValue;

use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::route::{FieldError, parse_field_name, parse_method};
use crate::value::{Durations, OneOrMore, Switch, Syntax};

pub(super) const NAME: &str = "cors";

/// Reads the table. `own` are the route's own changes of responses.
pub(super) fn read(
    value: &Spanned<DeValue<'_>>,
    own: &[ResponseFieldRule],
    report: &mut Report,
) -> Option<CorsConfig> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place.clone(), entries);
    let mut cors = CorsConfig {
        origins: Vec::new(),
        methods: vec![Method::GET, Method::POST],
        headers: Vec::new(),
        expose: Vec::new(),
        credentials: false,
        max_age: Duration::from_secs(600),
    };
    table.read(KEYS, &mut cors);
    // A route for GET takes HEAD as well.
    if cors.methods.contains(&Method::GET) && !cors.methods.contains(&Method::HEAD) {
        cors.methods.push(Method::HEAD);
    }
    if table.is_empty_list("origins") {
        let message = "`origins` is an empty list, so that no page would be allowed anything";
        let hint = "name an origin, or remove [route.cors]";
        table.push(Finding::fault(message, table.place_of("origins")).hint(hint));
    }
    if cors.is_open() && cors.origins.len() > 1 {
        let message = "`origins` has `*`, which allows every origin, and others";
        let hint = "remove `*`, or the others";
        table.push(Finding::fault(message, table.place_of("origins")).hint(hint));
    }
    if cors.is_open() && cors.credentials {
        let message =
            "`credentials` with `*` in `origins` would let every page act as its visitors";
        let hint = "name the origins, or remove `credentials`";
        table.push(Finding::fault(message, table.place_of("credentials")).hint(hint));
    }
    let is_of_cors = |name: &&str| name.to_ascii_lowercase().starts_with("access-control-");
    let mut own_fields = own.iter().map(|rule| rule.change.name().as_str());
    if let Some(name) = own_fields.find(is_of_cors) {
        let message = format!("[route.response_headers] has `{name}`, which [route.cors] rules");
        table.push(Finding::fault(message, place).hint("remove it there"));
    }
    table.finish(report);
    Some(cors)
}

/// Why a text is not the name of a field in a list.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum ListError {
    /// The text is `*`, which is a valid name, but means all names.
    #[error("is `*`; name each field")]
    All,
    /// The text is not the name of a field.
    #[error(transparent)]
    Field(#[from] FieldError),
}

fn parse_listed(text: &str) -> Result<FieldName, ListError> {
    match text {
        "*" => Err(ListError::All),
        text => Ok(parse_field_name(text)?),
    }
}

const FIELDS: OneOrMore<Syntax<FieldName, ListError>> = OneOrMore(Syntax {
    what: "the name of a field",
    parse: parse_listed,
});

pub(crate) static SECTION: Section = Section {
    header: "[route.cors]",
    intro: "The pages of other origins that may use the route above it: browsers let their scripts send requests to it \
            and read the responses. The front answers preflights itself (204), behind `allow`, `deny` and `limits`, and \
            before `client_certificate`, files, caches and backends. All other responses, also pages of the front, get \
            its fields in the place of any other `Access-Control-…`, and always `Vary: Origin`. \
            [cors.md](cors.md) explains it.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

static KEYS: &[Key<CorsConfig>] = &[
    Key {
        name: "origins",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax::<OriginPattern, OriginError> {
                what: "an origin such as \"https://app.example.org\" or \"https://*.example.org\", or \"*\"",
                parse: OriginPattern::parse,
            }),
            CorsConfig.origins
        ),
        preset: Preset::Required,
        sample: "[\"https://app.example.org\", \"https://*.example.net\"]",
        effect: "The origins whose pages are allowed: scheme, host and port as browsers write them in `Origin`. \
                 `https://*.example.org` stands for all names below the domain, not for the domain itself; `*` for \
                 every origin. A request with another `Origin`, with `null` or with several gets no fields.",
        extremes: "Whoever can run a script on one of the origins can read what their visitors can: `https://*.` and a \
                   domain trusts all of its hosts, `http://` everybody on the visitors' networks.",
        elsewhere: "Tomcat `cors.allowed.origins`; nginx `add_header Access-Control-Allow-Origin`; Traefik \
                    `accessControlAllowOriginList`; Gateway API `allowOrigins`",
    },
    Key {
        name: "methods",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a method such as \"PUT\"",
                parse: parse_method,
            }),
            CorsConfig.methods
        ),
        preset: Preset::Value("[\"GET\", \"POST\"]"),
        sample: "[\"GET\", \"PUT\", \"DELETE\"]",
        effect: "The methods that a preflight is granted; `GET` includes `HEAD`. A preflight gets the route of the \
                 method that it asks for.",
        extremes: "It keeps no request away: GET, HEAD and POST are sent without a preflight if they have no unusual \
                   fields. Which methods a route has, its own `methods` say.",
        elsewhere: "Tomcat `cors.allowed.methods`; Traefik `accessControlAllowMethods`; Gateway API `allowMethods`",
    },
    Key {
        name: "headers",
        group: ALL,
        value: fill!(FIELDS, CorsConfig.headers),
        preset: Preset::Value("[]"),
        sample: "[\"Content-Type\", \"X-Requested-With\"]",
        effect: "The fields that scripts may send, besides those that they always may. `Content-Type` is among those \
                 only with the types of forms and `text/plain`: for JSON name it here.",
        extremes: "A preflight that asks for a field which is not here is not granted.",
        elsewhere: "Tomcat `cors.allowed.headers`; Traefik `accessControlAllowHeaders`; Gateway API `allowHeaders`",
    },
    Key {
        name: "expose",
        group: ALL,
        value: fill!(FIELDS, CorsConfig.expose),
        preset: Preset::Value("[]"),
        sample: "[\"X-Total-Count\"]",
        effect: "The fields of responses that scripts may read, besides `Cache-Control`, `Content-Language`, \
                 `Content-Length`, `Content-Type`, `Expires`, `Last-Modified` and `Pragma`.",
        extremes: "Scripts never see cookies, whatever is here.",
        elsewhere: "Tomcat `cors.exposed.headers`; Traefik `accessControlExposeHeaders`; Gateway API `exposeHeaders`",
    },
    Key {
        name: "credentials",
        group: ALL,
        value: fill!(Switch, CorsConfig.credentials),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether scripts may send requests with cookies, passwords and certificates that the browser has, and \
                 read their responses.",
        extremes: "Scripts of the origins then act as the user who is signed on. With `*` it is a fault. Browsers send \
                   a cookie to another site only with `SameSite=None` and `Secure`.",
        elsewhere: "Tomcat `cors.support.credentials`; Traefik `accessControlAllowCredentials`; Gateway API \
                    `allowCredentials`",
    },
    Key {
        name: "max_age",
        group: ALL,
        value: fill!(
            Durations(Duration::ZERO..=Duration::from_secs(24 * 3600)),
            CorsConfig.max_age
        ),
        preset: Preset::Value("\"10m\""),
        sample: "\"1h\"",
        effect: "How long a browser may remember the answer to a preflight; in whole seconds, rounded down. Chromium \
                 keeps none longer than two hours.",
        extremes: "`\"0s\"` makes browsers ask before each such request. A change of this table reaches a browser \
                   after that time.",
        elsewhere: "Tomcat `cors.preflight.maxage`; Traefik `accessControlMaxAge`; Gateway API `maxAge`",
    },
];
