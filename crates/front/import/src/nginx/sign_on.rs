//! `auth_request`: what the service is told, what applications are told of its answer, and where browsers sign on.

use catamaran_config::is_ruled_field;

use crate::directive::Directive;
use crate::ledger::Id;
use crate::nginx::location::Scope;
use crate::nginx::variables::{expand, is_variable_name};

/// The `auth_request` that nginx asks in this scope; `None`: it asks none.
pub(super) fn asked(scope: Scope<'_>) -> Option<&Directive> {
    scope.find("auth_request").filter(|it| it.word(0) != "off")
}

/// The `auth_basic` by which nginx asks for a password in this scope; `None`: it asks for none.
pub(super) fn by_password(scope: Scope<'_>) -> Option<&Directive> {
    scope.find("auth_basic").filter(|it| it.word(0) != "off")
}

/// What a `proxy_set_header` passes on of the sign-on: the field of the service's answer, by an `auth_request_set`, or
/// [`USER`] of a sign-on by password. `None` if it is another value, or if a sign-on of the front cannot write this field.
pub(super) fn claimed(directive: &Directive, scope: Scope<'_>) -> Option<String> {
    let name = directive.word(0);
    let fields = scope.level(|it| it.name == "proxy_set_header");
    let same = fields
        .iter()
        .filter(|it| it.word(0).eq_ignore_ascii_case(name));
    let is_free = !is_ruled_field(name, true) && !RESERVED.contains(&&*name.to_ascii_lowercase());
    let value = directive.word(1);
    let source = if by_password(scope).is_some() {
        (bare(value) == "$remote_user").then(|| USER.to_owned())?
    } else {
        asked(scope)?;
        field_of_answer(value, scope)?
    };
    (same.count() == 1 && is_free).then_some(source)
}

/// Whether applications get the client's `Authorization`: nginx passes it on unless a directive says otherwise.
pub(super) fn passes_credentials(scope: Scope<'_>) -> bool {
    let fields = scope.level(|it| it.name == "proxy_set_header");
    let mut own = fields
        .iter()
        .filter(|it| it.word(0).eq_ignore_ascii_case("authorization"));
    own.all(|it| it.word(1) == "$http_authorization")
}

/// Whether an `add_header` passes the cookies of the service's answer on, as the front does.
pub(super) fn passes_cookies(directive: &Directive, scope: Scope<'_>) -> bool {
    let is_cookie = directive.word(0).eq_ignore_ascii_case("set-cookie");
    is_cookie
        && asked(scope).is_some()
        && field_of_answer(directive.word(1), scope).as_deref() == Some("Set-Cookie")
}

/// The field of the service's answer that is the value of a variable.
fn field_of_answer(word: &str, scope: Scope<'_>) -> Option<String> {
    let variable = format!("${}", bare(word).strip_prefix('$')?);
    let sets = scope.level(|it| it.name == "auth_request_set");
    let mut of_variable = sets.into_iter().filter(|it| it.word(0) == variable);
    let (set, None) = (of_variable.next()?, of_variable.next()) else {
        return None;
    };
    let value = bare(set.word(1));
    let field = value
        .strip_prefix("$upstream_http_")
        .filter(is_variable_name)?;
    let parts: Vec<String> = field.split('_').map(capitalised).collect();
    Some(parts.join("-"))
}

/// A word without the braces around the name of a variable.
fn bare(word: &str) -> String {
    word.replace(['{', '}'], "")
}

fn capitalised(part: &str) -> String {
    let (first, rest) = part.split_at(part.len().min(1));
    first.to_ascii_uppercase() + rest
}

/// The request fields in which applications are told of the answer, with the fields of the answer.
pub(super) fn claims(scope: Scope<'_>) -> Vec<(String, String)> {
    let fields = scope.level(|it| it.name == "proxy_set_header").into_iter();
    let claim = |it: &Directive| Some((it.word(0).to_owned(), claimed(it, scope)?));
    fields.filter_map(claim).collect()
}

/// The field of an answer that has the user, by its usual names.
pub(super) fn user(claims: &[(String, String)]) -> Option<&str> {
    let mut sources = claims.iter().map(|it| it.1.as_str());
    sources.find(|it| USERS.contains(&&*it.to_ascii_lowercase()))
}

/// Checks that the front tells the service what a location tells it. `proxy` is a directive of the source by which nginx
/// believes a proxy before it: the front may trust that proxy, too.
///
/// # Errors
/// What the front cannot tell. Otherwise the client's fields that the front must be told to send.
pub(super) fn told(scope: Scope<'_>, proxy: Option<&Directive>) -> Result<Vec<String>, String> {
    let mut wanted = Vec::new();
    for directive in scope.level(|it| it.name == "proxy_set_header") {
        let name = directive.word(0).to_ascii_lowercase();
        let value = bare(directive.word(1));
        let is_sent = SENT.contains(&&*name);
        let is_told =
            |(known, values): &(&str, &[&str])| *known == name && values.contains(&value.as_str());
        let is_own = value == format!("$http_{}", name.replace('-', "_"));
        let is_free = !is_ruled_field(&name, true) && !RESERVED.contains(&&*name);
        let is_reported = REPORTED.iter().any(is_told);
        if let Some(proxy) = proxy.filter(|_| is_reported) {
            return Err(format!(
                "beside `{}` the front tells the service in `{}` what the proxy says, and not this value",
                proxy.name,
                directive.word(0)
            ));
        }
        if is_reported
            || TOLD.iter().any(is_told)
            || (value.is_empty() && !is_sent)
            || (is_own && is_sent)
        {
            continue;
        }
        if !is_own || !is_free {
            return Err(format!(
                "the front cannot tell the service this value of `{}`",
                directive.word(0)
            ));
        }
        wanted.push(directive.word(0).to_owned());
    }
    Ok(wanted)
}

/// Where the front sends browsers for which the service answers 401, and the directives that say so.
pub(super) fn sign_in(scope: Scope<'_>, server: &[Directive]) -> Option<(String, Vec<Id>)> {
    let intercepts = scope.find("proxy_intercept_errors");
    if intercepts.is_some_and(|it| it.word(0) == "on") {
        // Then it is for errors of the application, too.
        return None;
    }
    let mut pages = scope.level(|it| it.name == "error_page").into_iter();
    let page = pages.find(|it| it.words.iter().any(|word| word == UNAUTHORIZED))?;
    let (target, code) = match &page.words[..] {
        [status, target] if status == UNAUTHORIZED => (target, "=302"),
        [status, code, target] if status == UNAUTHORIZED => (target, code.as_str()),
        _ => return None,
    };
    if !matches!(code, "=" | "=302") {
        return None;
    }
    if !target.starts_with('@') {
        let is_url = target.contains("://") && code == "=302";
        let to = is_url.then(|| address(target)).flatten()?;
        return Some((to, vec![page.id]));
    }
    let mut locations = server.iter().filter(|it| it.name == "location");
    let location = locations.find(|it| it.word(0) == target)?;
    let [answer] = location.inside() else {
        return None;
    };
    let is_redirect = answer.name == "return" && matches!(answer.word(0), "302" | "303");
    let to = is_redirect.then(|| address(answer.word(1))).flatten()?;
    Some((to, vec![page.id, location.id, answer.id]))
}

/// Whether an `error_page` is for 401 alone, and nothing has this status: no sign-on is asked, no directive gives the
/// status, and answers of applications stay as they are.
pub(super) fn is_never_shown(page: &Directive, scope: Scope<'_>) -> bool {
    let is_on = |name: &str| scope.find(name).is_some_and(|it| it.word(0) != "off");
    let names = [
        "auth_request",
        "auth_basic",
        "auth_jwt",
        "proxy_intercept_errors",
    ];
    let mut statuses = page.words.iter().filter(|it| it.parse::<u16>().is_ok());
    let mut directives = scope.blocks.iter().flat_map(|it| it.iter());
    statuses.all(|it| it == UNAUTHORIZED)
        && !names.into_iter().any(is_on)
        && !directives.any(gives_unauthorized)
}

/// Whether a directive, or one inside it, may give requests the status 401.
fn gives_unauthorized(directive: &Directive) -> bool {
    let mut words = directive.words.iter();
    let has_status = words.any(|it| it.trim_start_matches('=') == UNAUTHORIZED);
    (has_status && directive.name != "error_page")
        || directive.inside().iter().any(gives_unauthorized)
}

/// The address of the page to sign on, with placeholders of the front; `None` if the front cannot write it.
fn address(text: &str) -> Option<String> {
    let known = |name: &str| {
        let placeholder = match name {
            "request_uri" => "{path_query}",
            "scheme" => "{scheme}",
            "host" => "{host}",
            "http_host" => "{authority}",
            "uri" | "document_uri" => "{path}",
            "args" | "query_string" => "{query}",
            _ => return None,
        };
        Some(placeholder.to_owned())
    };
    let mut to = expand(text, known)?.replace("{scheme}://{authority}{path_query}", "{url}");
    // A path is one on this host.
    for own in ["{scheme}://{host}/", "{scheme}://{authority}/"] {
        if let Some(behind) = to.strip_prefix(own) {
            to = format!("/{behind}");
        }
    }
    let mut schemes = ["http://", "https://"].into_iter();
    let behind = schemes.find_map(|it| to.strip_prefix(it));
    let is_valid = match behind {
        // Placeholders are percent-encoded, which a host name without a port is in any case.
        Some(behind) => {
            let host = behind.split(['/', '?', '#']).next().unwrap_or_default();
            let own = host.replace("{host}", "");
            !host.is_empty() && !own.contains(['{', '}'])
        }
        None => to.starts_with('/') && !to.starts_with("//") && !to.starts_with("/{"),
    };
    let is_sign = |it: char| it.is_ascii_graphic() && !"\"<>\\^`|$".contains(it);
    (is_valid && to.chars().all(is_sign)).then_some(to)
}

/// The status of clients that have not signed on.
const UNAUTHORIZED: &str = "401";

/// The user of a sign-on by password, as the source of a field.
pub(super) const USER: &str = "user";

/// Fields that a sign-on may neither write nor ask for.
const RESERVED: [&str; 7] = [
    "authorization",
    "cookie",
    "if-match",
    "if-none-match",
    "range",
    "transfer-encoding",
    "upgrade",
];

/// Fields of answers that usually have the user.
const USERS: [&str; 6] = [
    "remote-user",
    "x-auth-request-user",
    "x-auth-user",
    "x-authentik-username",
    "x-forwarded-user",
    "x-vouch-user",
];

/// Fields of the client's request that the front sends to each service.
const SENT: [&str; 9] = [
    "accept",
    "accept-language",
    "authorization",
    "cookie",
    "origin",
    "referer",
    "sec-fetch-mode",
    "user-agent",
    "x-requested-with",
];

/// Fields that the front writes for the service, with the values that it writes, whoever sends the request.
const TOLD: &[(&str, &[&str])] = &[
    (
        "host",
        &["$host", "$http_host", "$host:$server_port", "$proxy_host"],
    ),
    ("x-forwarded-for", &["$proxy_add_x_forwarded_for"]),
    ("x-forwarded-proto", &["$scheme"]),
    ("x-forwarded-port", &["$server_port"]),
    ("x-forwarded-method", &["$request_method"]),
    ("x-original-method", &["$request_method"]),
    ("x-forwarded-uri", &["$request_uri"]),
    ("x-original-uri", &["$request_uri"]),
];

/// The other fields that the front writes for the service, with the values that it writes for a client. Of a proxy in
/// `trusted_proxies` it takes what `X-Forwarded-For` and `X-Forwarded-Host` say.
const REPORTED: &[(&str, &[&str])] = &[
    ("x-forwarded-for", &["$remote_addr"]),
    (
        "x-forwarded-host",
        &["$host", "$http_host", "$host:$server_port"],
    ),
    ("x-original-url", &["$scheme://$http_host$request_uri"]),
    ("x-real-ip", &["$remote_addr"]),
];
