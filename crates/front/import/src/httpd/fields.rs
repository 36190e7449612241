//! Header fields of requests and responses, limits on bodies, and the client certificates that a path asks for.

use catamaran_config::is_ruled_field;

use crate::directive::Directive;
use crate::emit::flags;
use crate::httpd::cookies;
use crate::judge::lose_field;
use crate::ledger::Ledger;
use crate::mod_jk::workers::number;
use crate::plan::{Fields, Settings};
use crate::target::{OWN_HOST, is_host_keyword};
use crate::toml_text::quoted;

/// Settings for header fields, bodies and client certificates of a host or a section. `tls` says whether its clients
/// come over TLS; `None` if that is not known.
pub(crate) fn settings(
    directives: &[Directive],
    tls: Option<bool>,
    ledger: &mut Ledger,
) -> Settings {
    let mut settings = Settings::default();
    for directive in directives {
        match directive.name.as_str() {
            "header" => match cookie_flags(directive) {
                Some(flags) => {
                    settings.keys.insert("cookie_flags".to_owned(), flags);
                    ledger.mapped(directive.id);
                }
                None => {
                    let is_always = directive.word(0).eq_ignore_ascii_case("always");
                    let fields = if is_always {
                        &mut settings.always_fields
                    } else {
                        &mut settings.response_fields
                    };
                    field(directive, fields, OF_RESPONSE, tls, ledger);
                }
            },
            "requestheader" if is_host(directive) => {
                settings.sent_host = Some(sent_host(directive, ledger));
            }
            "requestheader" if !is_own_field(directive, tls == Some(true), ledger) => {
                let fields = &mut settings.request_fields;
                field(directive, fields, OF_REQUEST, tls, ledger);
            }
            "limitrequestbody" => {
                let limit = match number(directive.word(0)) {
                    None | Some(0) => quoted("off"),
                    Some(bytes) => bytes.to_string(),
                };
                settings.keys.insert("body_max".to_owned(), limit);
                ledger.mapped(directive.id);
            }
            "proxypassreversecookiedomain" | "proxypassreversecookiepath" => {
                cookies::turn_back(directive, &mut settings, ledger);
            }
            "sslverifyclient" => {
                // The listener asks for a certificate; here only a route that refuses clients without one matters.
                let is_required = directive.word(0).eq_ignore_ascii_case("require");
                let demand = if is_required { "required" } else { "off" };
                let keys = &mut settings.keys;
                keys.insert("client_certificate".to_owned(), quoted(demand));
                ledger.mapped(directive.id);
            }
            _ => {}
        }
    }
    settings
}

/// Whether a `RequestHeader` changes the `Host` field that backends see.
fn is_host(directive: &Directive) -> bool {
    let mut names = directive.words.iter().skip(1).take(2);
    names.any(|it| it.trim_end_matches(':').eq_ignore_ascii_case("host"))
}

/// The `Host` that backends get after a `RequestHeader`. If the directive cannot be converted, it is each backend's
/// own name, so that clients cannot choose it.
fn sent_host(directive: &Directive, ledger: &mut Ledger) -> String {
    let is_sign = |it: char| it.is_ascii_alphanumeric() || "-.:".contains(it);
    match &directive.words[..] {
        [operation, _, host]
            if operation.eq_ignore_ascii_case("set")
                && !is_host_keyword(host)
                && host.chars().all(is_sign) =>
        {
            ledger.mapped(directive.id);
            host.clone()
        }
        _ => {
            let text = "each backend gets its own name as `Host`; set `host` of the upstream for another one";
            ledger.lost(directive.id, text);
            OWN_HOST.to_owned()
        }
    }
}

/// Whether a directive sets a field that the front sets itself; if so, marks the directive.
fn is_own_field(directive: &Directive, has_tls: bool, ledger: &mut Ledger) -> bool {
    let lower = directive.word(1).to_ascii_lowercase();
    let name = lower.trim_end_matches(':');
    if !is_ruled_field(name, OF_REQUEST) {
        return false;
    }
    let claims_https = name == "x-forwarded-proto" && directive.word(2) == "https";
    // Without TLS of its own, the source knows the scheme from a proxy before it.
    if claims_https && !has_tls {
        ledger.lost(directive.id, "the front sets this field from the client's own connection; name the proxy before it in `trusted_proxies`");
    } else {
        ledger.dropped(directive.id, "the front writes this field itself");
    }
    true
}

/// The flags that a `Header edit` adds to every cookie; `None` if it does anything else.
fn cookie_flags(directive: &Directive) -> Option<String> {
    let words: Vec<&str> = directive.words.iter().map(String::as_str).collect();
    let without_condition = match &words[..] {
        ["always" | "onsuccess", others @ ..] => others,
        all => all,
    };
    let [operation, name, expression, value] = without_condition else {
        return None;
    };
    let is_edit = matches!(operation.to_ascii_lowercase().as_str(), "edit" | "edit*");
    let takes_whole_value = matches!(*expression, "^(.*)$" | "^(.*)" | "(.*)" | "^(.+)$" | "(.+)");
    if !is_edit || !takes_whole_value || !name.eq_ignore_ascii_case("set-cookie") {
        return None;
    }
    flags(value.strip_prefix("$1")?.split(';'))
}

/// Whether a condition holds exactly for clients that come over TLS.
fn asks_tls(word: &str) -> bool {
    let plain = word.to_ascii_lowercase().replace([' ', '\'', '"'], "");
    matches!(
        plain.as_str(),
        "env=https" | "expr=%{https}==on" | "expr=%{request_scheme}==https" | "expr=-nhttps"
    )
}

/// Adds the change of a `Header` or `RequestHeader` to `fields`, or reports it if it cannot be converted. `tls` says
/// whether clients come over TLS; `None` if that is not known.
fn field(
    directive: &Directive,
    fields: &mut Fields,
    of_request: bool,
    tls: Option<bool>,
    ledger: &mut Ledger,
) {
    let words = match directive.word(0).to_ascii_lowercase().as_str() {
        "always" | "onsuccess" | "early" => &directive.words[1..],
        _ => &directive.words[..],
    };
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let (operation, name) = (
        word(0).to_ascii_lowercase(),
        word(1).trim_end_matches(':').to_owned(),
    );
    if of_request && operation == "set" && words.len() == 3 && is_user(word(2), &name) {
        fields.forget(&name);
        fields.set.insert(name, USER.to_owned());
        return ledger.mapped(directive.id);
    }
    // For requests, the front adds no value of its own before, so `early` makes no difference.
    let is_condition = |word: &&String| {
        let is_early = *word == "early" && !of_request;
        is_early || word.starts_with("env=") || word.starts_with("expr=")
    };
    let mut conditions: Vec<&String> = words.iter().skip(2).filter(is_condition).collect();
    let asks_only_tls = !conditions.is_empty() && conditions.iter().all(|it| asks_tls(it));
    match tls {
        Some(false) if asks_only_tls => {
            let text = "it is for clients that come over TLS, of which there are none";
            return ledger.dropped(directive.id, text);
        }
        // The condition holds for all clients.
        Some(true) if asks_only_tls => conditions.clear(),
        _ => {}
    }
    // The cookie by which httpd's balancer finds a session's member: the front sets its own.
    let is_route = name.eq_ignore_ascii_case("set-cookie") && word(2).contains("ROUTEID");
    if is_route && !of_request {
        return ledger.mapped(directive.id);
    }
    let value = word(2).replace('{', "{{").replace('}', "}}");
    let has_plain_value = !value.contains('%') && !value.chars().any(char::is_control);
    let can_be_written = !name.is_empty()
        && name.bytes().all(is_name_byte)
        && has_plain_value
        && conditions.is_empty()
        && !is_ruled_field(&name, of_request);
    let is_converted =
        can_be_written && apply_operation(&operation, &name, value, of_request, fields);
    if is_converted {
        return ledger.mapped(directive.id);
    }
    let text = format!("`{operation}` of the field `{name}` was not converted");
    if of_request {
        // The application may trust this field, so clients must not be able to set it.
        if !name.is_empty() && name.bytes().all(is_token_byte) {
            fields.lose(&name);
        }
        ledger.lost(directive.id, format!("{text}, and backends do not get it"));
    } else {
        let text = format!("{text}, and responses are as the application sends them");
        lose_field(&name, directive.id, text, ledger);
    }
}

/// Whether a value is the user that has signed on, in a field that a sign-on of the front can write.
fn is_user(value: &str, name: &str) -> bool {
    let is_free = !is_ruled_field(name, OF_REQUEST)
        && !RESERVED.contains(&&*name.to_ascii_lowercase())
        && name.bytes().all(is_name_byte);
    is_free && ["expr=%{REMOTE_USER}", "%{REMOTE_USER}s"].contains(&value)
}

/// The fields whose value is the user that has signed on, without any client's. With `tells` a sign-on writes them;
/// otherwise backends do not get them.
pub(super) fn take_user(fields: &mut Fields, tells: bool) -> Vec<String> {
    let values = fields.set.iter().filter(|(_, value)| *value == USER);
    let names: Vec<String> = values.map(|(name, _)| name.clone()).collect();
    for name in &names {
        if tells {
            fields.forget(name);
        } else {
            fields.take(name);
        }
    }
    names
}

/// Whether a field has the user that has signed on.
pub(super) fn has_user(fields: &Fields) -> bool {
    fields.set.values().any(|it| it == USER)
}

/// Makes a change to a field; returns `false` if the front cannot make it.
fn apply_operation(
    operation: &str,
    name: &str,
    value: String,
    of_request: bool,
    fields: &mut Fields,
) -> bool {
    match operation {
        "set" => {
            fields.forget(name);
            fields.set.insert(name.to_owned(), value);
        }
        // `merge` adds a value unless the field has it, and the client may already have sent it.
        "merge" if of_request && fields.mentions(name) == 0 => return false,
        "merge" if fields.has(name, &value) => {}
        "add" | "append" | "merge" => return fields.append(name, value),
        "unset" => fields.take(name),
        _ => return false,
    }
    true
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Whether a byte may stand in a token, by RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    is_name_byte(byte) || b"!#$%&'*+.^`|~".contains(&byte)
}

/// In place of a value, until the sign-on is known: the user. No field can have this value.
const USER: &str = "\0";

/// Fields that a sign-on may not write.
const RESERVED: [&str; 5] = [
    "authorization",
    "cookie",
    "range",
    "transfer-encoding",
    "upgrade",
];

/// Values of `of_request`: whether a field is one of requests.
const OF_REQUEST: bool = true;
const OF_RESPONSE: bool = false;
