//! `[auth.NAME]`: sign-ons before the application, which routes name.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use catamaran_proxy::config::{
    AuthConfig, AuthKind, AuthSource, Challenge, FieldName, ForwardAuth, NameRef, Placeholder,
    Quota, RealmFault, Template, Traits, UsersAuth,
};
use catamaran_proxy::users::{UsersFault, UsersKey};
use toml::Spanned;
use toml::de::DeValue;

use super::cache::COOKIE;
use super::limit::{RateError, parse_rate};
use super::route::reserved_of_requests;
use super::{Surroundings, named};
use crate::fill;
use crate::key::{ALL, Group, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::Table;
use crate::value::route::{FieldError, PathError, parse_field_name, parse_path};
use crate::value::text::{TextError, file_path, parse_member, parse_name};
use crate::value::{Durations, NamedValues, OneOrMore, Optional, Sizes, Switch, Syntax};

/// A sign-on and its place in the file.
#[derive(Debug)]
pub(crate) struct Auth {
    pub(crate) value: AuthConfig,
    pub(crate) place: Range<usize>,
    /// Where `upstream` is in the file; without it, the table's header.
    pub(crate) upstream_place: Range<usize>,
    /// Where `sign_in` is in the file; without it, the table's header.
    pub(crate) sign_in_place: Range<usize>,
}

/// The values of the keys of `[auth.NAME]`, before they are checked against each other.
struct RawAuth {
    fields: Vec<(String, AuthSource)>,
    service: RawService,
    users: RawUsers,
}

/// The values of the keys about a service.
struct RawService {
    upstream: Option<String>,
    path: Option<String>,
    user: Option<FieldName>,
    request_fields: Vec<FieldName>,
    sign_in: Option<String>,
    timeout: Duration,
    answer_max: usize,
    hide_cookies: Vec<String>,
}

/// The values of the keys about users in a file.
struct RawUsers {
    users_file: Option<PathBuf>,
    groups_file: Option<PathBuf>,
    users: Vec<String>,
    groups: Vec<String>,
    realm: Option<Challenge>,
    failures: (u32, Duration),
    pass_credentials: bool,
}

impl Default for RawAuth {
    /// The defaults of the keys.
    fn default() -> Self {
        Self {
            fields: Vec::new(),
            service: RawService {
                upstream: None,
                path: None,
                user: None,
                request_fields: Vec::new(),
                sign_in: None,
                timeout: Duration::from_secs(5),
                answer_max: 64 << 10,
                hide_cookies: Vec::new(),
            },
            users: RawUsers {
                users_file: None,
                groups_file: None,
                users: Vec::new(),
                groups: Vec::new(),
                realm: None,
                failures: (10, Duration::from_secs(60)),
                pass_credentials: false,
            },
        }
    }
}

/// Reads all tables `[auth.NAME]`. Those with faults are missing.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Vec<Auth> {
    let tables = named(&[&SECTION], "a sign-on", value, report).into_iter();
    tables
        .filter_map(|(name, place, entries)| {
            let table = Table::new(&SECTION, place, entries);
            read_one(name, table, surroundings, report)
        })
        .collect()
}

/// Reads one `[auth.NAME]`; `None` if it has faults.
fn read_one(
    name: &str,
    mut table: Table<'_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Auth> {
    let mut written = RawAuth::default();
    table.read(KEYS, &mut written);
    if name == OFF {
        let message = "a sign-on cannot be named `off`, by which a route has none";
        table.push(Finding::fault(message, table.place()).hint("give it another name"));
    }
    let RawAuth {
        fields,
        service,
        users,
    } = written;
    let kind = match (table.has("upstream"), table.has("users_file")) {
        (true, true) => {
            let message = "[auth.NAME] has both `upstream` and `users_file`";
            let hint = "write two sign-ons; a route has one of them";
            table.push(Finding::fault(message, table.place_of("users_file")).hint(hint));
            None
        }
        (true, false) => {
            fault_keys(&mut table, USERS, "`users_file`");
            self::service(&mut table, service, &fields).map(AuthKind::Forward)
        }
        (false, true) => {
            fault_keys(&mut table, SERVICE, "`upstream`");
            let base = surroundings.base;
            self::users(&mut table, name, users, &fields, base).map(AuthKind::Users)
        }
        (false, false) => {
            // If one of the keys is only misspelled, the report about that key says so.
            if !table.has_slip_of(&["upstream", "users_file"]) {
                let message = "[auth.NAME] says neither `upstream` nor `users_file`";
                let hint = "write the upstream of a service, or the file of users";
                table.push(Finding::fault(message, table.place()).hint(hint));
            }
            None
        }
    };
    let (upstream_place, sign_in_place) = (table.place_of("upstream"), table.place_of("sign_in"));
    let (place, is_good) = (table.place(), table.is_good());
    if let Some(AuthKind::Users(users)) = &kind
        && is_good
        && surroundings.checks_files
    {
        check_files(&mut table, users);
    }
    table.finish(report);
    let kind = kind.filter(|_| is_good)?;
    Some(Auth {
        value: AuthConfig {
            name: name.to_owned(),
            kind,
        },
        place,
        upstream_place,
        sign_in_place,
    })
}

/// Faults the keys of a group, which have no use without another key.
fn fault_keys(table: &mut Table<'_>, group: Group, without: &str) {
    for (key, place) in table.written(KEYS, |it| it == group) {
        let message = format!("`{key}` has no use without {without}");
        table.push(Finding::fault(message, place).hint("remove it"));
    }
}

/// The settings of a service; `None` if they have faults.
fn service(
    table: &mut Table<'_>,
    written: RawService,
    fields: &[(String, AuthSource)],
) -> Option<ForwardAuth> {
    if !table.has("path") {
        let message = "[auth.NAME] lacks `path`";
        let hint = "write path = \"/oauth2/auth\"";
        table.push(Finding::fault(message, table.place()).hint(hint));
    }
    let fields = self::fields(table, fields);
    check_request_fields(table, &written.request_fields, &fields);
    let sign_in = sign_in(table, written.sign_in.as_deref());
    Some(ForwardAuth {
        upstream: written.upstream?,
        path: Bytes::from(written.path?),
        user: written.user,
        fields,
        request_fields: written.request_fields,
        sign_in,
        timeout: written.timeout,
        answer_max: written.answer_max,
        hide_cookies: written.hide_cookies,
    })
}

/// The settings of users in a file; `None` if they have faults.
fn users(
    table: &mut Table<'_>,
    name: &str,
    written: RawUsers,
    fields: &[(String, AuthSource)],
    base: &Path,
) -> Option<UsersAuth> {
    if !written.groups.is_empty() && !table.has("groups_file") {
        let message = "`groups` has no use without `groups_file`";
        let hint = "write the file of groups, such as groups_file = \"/etc/catamaran/groups\"";
        table.push(Finding::fault(message, table.place_of("groups")).hint(hint));
    }
    if table.has("groups_file") && written.groups.is_empty() {
        let message = "`groups_file` has no use without `groups`";
        table.push(Finding::fault(message, table.place_of("groups_file")).hint("remove it"));
    }
    let fields = self::fields(table, fields);
    if fields.iter().any(|(_, source)| *source != AuthSource::User) {
        let message = "`fields` has a source other than \"user\", which is all that the file tells";
        table.push(Finding::fault(message, table.place_of("fields")));
    }
    let (count, period) = written.failures;
    Some(UsersAuth {
        users_file: base.join(written.users_file?),
        groups_file: written.groups_file.map(|path| base.join(path)),
        users: written.users,
        groups: written.groups,
        // A name that cannot be a realm is a fault, which is reported already.
        challenge: written.realm.or_else(|| Challenge::new(name).ok())?,
        failures: Quota::rate(count, period, count),
        pass_credentials: written.pass_credentials,
        fields: fields.into_iter().map(|(name, _)| name).collect(),
    })
}

/// Reads the files of users, and reports what is wrong with them.
fn check_files(table: &mut Table<'_>, users: &UsersAuth) {
    let (problems, make_finding): (_, fn(String, Range<usize>) -> Finding) =
        match catamaran_proxy::users::check(users) {
            Ok(warnings) => (warnings, Finding::warning),
            Err(faults) => (faults, Finding::fault),
        };
    for UsersFault { key, message, hint } in problems {
        let key = match key {
            UsersKey::UsersFile => "users_file",
            UsersKey::GroupsFile => "groups_file",
            UsersKey::Users => "users",
            UsersKey::Groups => "groups",
        };
        let finding = make_finding(message, table.place_of(key));
        table.push(if hint.is_empty() {
            finding
        } else {
            finding.hint(hint)
        });
    }
}

/// The fields for the application. Reports those that it must not be told in.
fn fields(table: &mut Table<'_>, written: &[(String, AuthSource)]) -> Vec<(FieldName, AuthSource)> {
    let has_user = table.has("user") || table.has("users_file");
    let mut fields: Vec<(FieldName, AuthSource)> = Vec::new();
    for (name, source) in written {
        let fault = match parse_field_name(name) {
            Err(error) => format!("`fields` {error}"),
            Ok(field) => match reserved_for_claims(&field) {
                Some(why) => format!("`fields` names the field `{field}`, {why}"),
                None if fields.iter().any(|(known, _)| are_alike(known, &field)) => {
                    format!("`fields` has `{field}` twice: applications may not tell them apart")
                }
                None if *source == AuthSource::User && !has_user => {
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

/// A name of a user or a group.
const MEMBER: Syntax<String, TextError> = Syntax {
    what: "a name of a user or a group",
    parse: parse_member,
};

/// The keys about a service, and those about users in a file.
const SERVICE: Group = Group("service");
const USERS: Group = Group("users");

/// The value of `auth` of a route without a sign-on.
const OFF: &str = "off";

/// The most placeholders in the address of the page to sign on.
const BLANKS_MAX: usize = 8;

pub(crate) static SECTION: Section = Section {
    header: "[auth.NAME]",
    intro: "A sign-on, which routes name with `auth`; without that it guards nothing. There are two kinds. With `upstream`, \
            the front asks a service before a request is served whether its client has signed on: `GET path`, without a \
            body and without a query. A 2xx lets the request pass; each other answer, and each failure, keeps it out. \
            Nothing is remembered. With `users_file`, the front itself asks for a user and a password. \
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
            RawAuth.service.upstream
        ),
        preset: Preset::Unset("none; this or `users_file` must be written"),
        sample: "\"NAME\"",
        effect: "The upstream of the service. Its timeouts, retries, probes and figures are those of any upstream.",
        extremes: "If it is down, every route with this sign-on is answered 502, 503 or 504.",
        elsewhere: "nginx `auth_request`; Caddy `forward_auth`; Traefik `forwardAuth.address`",
    },
    Key {
        name: "path",
        group: SERVICE,
        value: fill!(
            Optional(Syntax {
                what: "a path such as \"/oauth2/auth\"",
                parse: |text: &str| -> Result<String, PathError> { parse_path(text) },
            }),
            RawAuth.service.path
        ),
        preset: Preset::Unset("none; it must be written beside `upstream`"),
        sample: "\"/oauth2/auth\"",
        effect: "The path that the service is asked for. `X-Forwarded-Uri` has the path and query of the client's \
                 request, as its route matched it.",
        extremes: "A path that answers 2xx to everybody lets everybody in.",
        elsewhere: "nginx `auth_request`; Caddy `forward_auth` `uri`",
    },
    Key {
        name: "user",
        group: SERVICE,
        value: fill!(Optional(FIELD), RawAuth.service.user),
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
        group: SERVICE,
        value: fill!(OneOrMore(FIELD), RawAuth.service.request_fields),
        preset: Preset::Value("[]"),
        sample: "[\"X-Api-Key\"]",
        effect: "Fields of the client's request that the service gets besides `Cookie`, `Authorization`, `Accept`, \
                 `Accept-Language`, `User-Agent`, `Origin`, `Referer`, `X-Requested-With` and `Sec-Fetch-Mode`.",
        extremes: "A service that believes a field believes what the client wrote into it.",
        elsewhere: "Traefik `authRequestHeaders`; nginx and Caddy send all fields",
    },
    Key {
        name: "sign_in",
        group: SERVICE,
        value: fill!(
            Optional(Syntax {
                what: "a path or URL such as \"/oauth2/start?rd={url}\"",
                parse: |text: &str| -> Result<String, TextError> { Ok(text.to_owned()) },
            }),
            RawAuth.service.sign_in
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
        group: SERVICE,
        value: fill!(
            Durations(Duration::from_millis(1)..=Duration::from_secs(60)),
            RawAuth.service.timeout
        ),
        preset: Preset::Value("\"5s\""),
        sample: "\"2s\"",
        effect: "How long the service may take for its whole answer, with all attempts. After it: 504 (`auth-timeout`).",
        extremes: "Each request waits for it. Too short locks everybody out while the service is slow.",
        elsewhere: "nginx `proxy_read_timeout` of the location",
    },
    Key {
        name: "answer_max",
        group: SERVICE,
        value: fill!(Sizes(0..=16 << 20), RawAuth.service.answer_max),
        preset: Preset::Value("\"64KiB\""),
        sample: "\"1MiB\"",
        effect: "The largest body of an answer of the service. A larger one is cut: 502 (`auth-answer`).",
        extremes: "The body is kept in memory, once for each request that waits.",
        elsewhere: "Traefik `maxResponseBodySize`",
    },
    Key {
        name: "hide_cookies",
        group: SERVICE,
        value: fill!(OneOrMore(COOKIE), RawAuth.service.hide_cookies),
        preset: Preset::Value("[]"),
        sample: "[\"_oauth2_proxy*\"]",
        effect: "Cookies that the service gets and backends do not, on routes with this sign-on; a name may end in `*`.",
        extremes: "Cookies of a sign-on may have several KiB, which do not fit into an AJP packet of 8 KiB: 431.",
        elsewhere: "",
    },
    Key {
        name: "users_file",
        group: ALL,
        value: fill!(
            Optional(file_path("the path of a file")),
            RawAuth.users.users_file
        ),
        preset: Preset::Unset("none; this or `upstream` must be written"),
        sample: "\"/etc/catamaran/users\"",
        effect: "A file of users with hashed passwords, a line `user:hash` each, as `htpasswd -B FILE USER` writes it. The \
                 front asks for a user and a password itself (Basic). bcrypt up to cost 14, argon2id up to 64 MiB, \
                 `$6$`, `$5$` and `$apr1$` are taken; at most 10,000 users and 4 MiB. A relative path starts from the \
                 directory of the configuration file. A changed file is in use two seconds later; one with a fault is \
                 not, and is logged.",
        extremes: "Let only the user of the front read it: passwords can be guessed from hashes. bcrypt at cost 10 takes \
                   74 ms of one processor for each first password.",
        elsewhere: "nginx `auth_basic_user_file`; httpd `AuthUserFile`; HAProxy `userlist`; Traefik \
                    `basicAuth.usersFile`",
    },
    Key {
        name: "groups_file",
        group: USERS,
        value: fill!(
            Optional(file_path("the path of a file")),
            RawAuth.users.groups_file
        ),
        preset: Preset::Unset("there are no groups"),
        sample: "\"/etc/catamaran/groups\"",
        effect: "A file of groups, a line `group: user user` each, for `groups`. It is watched as `users_file` is.",
        extremes: "At most 100,000 members and 4 MiB; a larger file is a fault.",
        elsewhere: "httpd `AuthGroupFile`",
    },
    Key {
        name: "users",
        group: USERS,
        value: fill!(OneOrMore(MEMBER), RawAuth.users.users),
        preset: Preset::Value("[]"),
        sample: "[\"ann\"]",
        effect: "The users of the file who may pass, besides members of `groups`. If neither is written, all may.",
        extremes: "Others get 401 (`auth-denied`), so that a browser asks for another user.",
        elsewhere: "httpd `Require user`",
    },
    Key {
        name: "groups",
        group: USERS,
        value: fill!(OneOrMore(MEMBER), RawAuth.users.groups),
        preset: Preset::Value("[]"),
        sample: "[\"admins\"]",
        effect: "The groups of `groups_file` whose members may pass, besides `users`.",
        extremes: "A member also needs a line in `users_file`.",
        elsewhere: "httpd `Require group`",
    },
    Key {
        name: "realm",
        group: USERS,
        value: fill!(
            Optional(Syntax {
                what: "a text",
                parse: |text: &str| -> Result<Challenge, RealmFault> { Challenge::new(text) },
            }),
            RawAuth.users.realm
        ),
        preset: Preset::Unset("the name of the sign-on"),
        sample: "\"Staff only\"",
        effect: "What browsers may show when they ask for the password. They send a password again to other paths of the \
                 same realm and host.",
        extremes: "Clients that have not signed on read it. At most 255 bytes.",
        elsewhere: "nginx `auth_basic`; httpd `AuthName`",
    },
    Key {
        name: "failures",
        group: USERS,
        value: fill!(
            Syntax {
                what: "a rate such as \"10/m\" or \"100/h\"",
                parse: |text: &str| -> Result<(u32, Duration), RateError> { parse_rate(text) },
            },
            RawAuth.users.failures
        ),
        preset: Preset::Value("\"10/m\""),
        sample: "\"5/m\"",
        effect: "How many wrong passwords an address (/32, /64) may send in a second, a minute or an hour, all of them at \
                 once. Beyond it its passwords are not looked at: 429 (`auth-limited`). Passwords that were right in the \
                 last five minutes still are. Names are never locked, since anybody could lock others out.",
        extremes: "Low, one who forgot the password keeps out colleagues behind the same address for a while. High, more \
                   is guessed, and more processor time goes to guesses.",
        elsewhere: "fail2ban; HAProxy stick tables",
    },
    Key {
        name: "pass_credentials",
        group: USERS,
        value: fill!(Switch, RawAuth.users.pass_credentials),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether backends get the field `Authorization`, with the password. Without it they are told the user by \
                 `fields` and by `remote_user = \"auth\"`.",
        extremes: "On, each application learns the passwords.",
        elsewhere: "nginx and httpd pass it; Traefik `removeHeader`",
    },
];
