//! Header fields of requests and responses, limits on bodies, and the client certificates that a path asks for.

use catamaran_config::is_ruled_field;

use crate::directive::Directive;
use crate::emit::flags;
use crate::judge::lose_field;
use crate::ledger::Ledger;
use crate::mod_jk::workers::number;
use crate::plan::{Fields, Settings};
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
                None if directive.word(0).eq_ignore_ascii_case("always") => {
                    field(directive, &mut settings.always_fields, false, tls, ledger);
                }
                None => field(directive, &mut settings.response_fields, false, tls, ledger),
            },
            "requestheader" if is_host(directive) => {
                settings.sent_host = Some(sent_host(directive, ledger));
            }
            "requestheader" if !is_usual(directive, tls == Some(true), ledger) => {
                field(directive, &mut settings.request_fields, true, tls, ledger);
            }
            "limitrequestbody" => {
                let value = match number(directive.word(0)) {
                    None | Some(0) => quoted("off"),
                    Some(bytes) => bytes.to_string(),
                };
                settings.keys.insert("body_max".to_owned(), value);
                ledger.mapped(directive.id);
            }
            "sslverifyclient" => {
                let value = if directive.word(0).eq_ignore_ascii_case("require") {
                    "required"
                } else {
                    "off"
                };
                settings
                    .keys
                    .insert("client_certificate".to_owned(), quoted(value));
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
                && !matches!(host.as_str(), "client" | OWN_HOST)
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
fn is_usual(directive: &Directive, has_tls: bool, ledger: &mut Ledger) -> bool {
    let lower = directive.word(1).to_ascii_lowercase();
    let name = lower.trim_end_matches(':');
    if !is_ruled_field(name, true) {
        return false;
    }
    let constant = name == "x-forwarded-proto" && directive.word(2) == "https" && !has_tls;
    if constant {
        ledger.lost(directive.id, "the front sets this field from the client's own connection; name the proxy before it in `trusted_proxies`");
    } else {
        ledger.dropped(directive.id, "the front writes this field itself");
    }
    true
}

/// The flags that a `Header edit` adds to every cookie; `None` if it does anything else.
fn cookie_flags(directive: &Directive) -> Option<String> {
    let given: Vec<&str> = directive.words.iter().map(String::as_str).collect();
    let words = match &given[..] {
        ["always" | "onsuccess", rest @ ..] => rest,
        all => all,
    };
    let [operation, name, expression, value] = words else {
        return None;
    };
    let is_edit = matches!(operation.to_ascii_lowercase().as_str(), "edit" | "edit*");
    let is_all = matches!(*expression, "^(.*)$" | "^(.*)" | "(.*)" | "^(.+)$" | "(.+)");
    if !is_edit || !is_all || !name.eq_ignore_ascii_case("set-cookie") {
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
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let name = word(1).trim_end_matches(':').to_owned();
    // The front adds no value of its own before, so `early` makes no difference.
    let is_condition = |it: &&String| {
        it.starts_with("env=") || it.starts_with("expr=") || *it == "early" && !of_request
    };
    let mut conditions = words.iter().skip(2).filter(is_condition);
    let only_tls = conditions.clone().next().is_some() && conditions.clone().all(|it| asks_tls(it));
    if only_tls && tls == Some(false) {
        return ledger.dropped(
            directive.id,
            "it is for clients that come over TLS, of which there are none",
        );
    }
    let conditional = conditions.any(|it| !asks_tls(it)) || only_tls && tls.is_none();
    let value = word(2).replace('{', "{{").replace('}', "}}");
    let sayable = !name.is_empty()
        && name.bytes().all(is_name_byte)
        && !value.contains('%')
        && !value.chars().any(char::is_control)
        && !conditional;
    let is_ruled = is_ruled_field(&name, of_request);
    let is_route = name.eq_ignore_ascii_case("set-cookie") && word(2).contains("ROUTEID");
    if is_route && !of_request {
        return ledger.mapped(directive.id);
    }
    let operation = word(0).to_ascii_lowercase();
    match operation.as_str() {
        _ if !sayable || is_ruled => {}
        "set" => {
            fields.forget(&name);
            fields.set.insert(name, value);
            return ledger.mapped(directive.id);
        }
        // The client may already have sent this value.
        "merge" if of_request && fields.mentions(&name) == 0 => {}
        "merge" if fields.has(&name, &value) => return ledger.mapped(directive.id),
        "add" | "append" | "merge" => {
            fields.add.insert(name, value);
            return ledger.mapped(directive.id);
        }
        "unset" => {
            fields.take(&name);
            return ledger.mapped(directive.id);
        }
        _ => {}
    }
    if of_request && !name.is_empty() && name.bytes().all(is_token_byte) {
        // The application may trust this field, so clients must not be able to set it.
        fields.take(&name);
    }
    let text = format!("`{operation}` of the field `{name}` was not converted");
    if of_request {
        ledger.lost(directive.id, format!("{text}, and backends do not get it"));
    } else {
        let text = format!("{text}, and responses are as the application sends them");
        lose_field(&name, directive.id, text, ledger);
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Whether a byte may stand in a token, by RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    is_name_byte(byte) || b"!#$%&'*+.^`|~".contains(&byte)
}

/// Value of `host` that gives each backend its own name as `Host`.
pub(crate) const OWN_HOST: &str = "backend";
