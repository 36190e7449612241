//! Header fields of requests and responses that a location adds, removes or hides.

use catamaran_config::is_ruled_field;

use crate::directive::Directive;
use crate::expression::Expression;
use crate::judge::lose_field;
use crate::ledger::Ledger;
use crate::nginx::backends::of_pass;
use crate::nginx::location::Scope;
use crate::nginx::sign_on;
use crate::nginx::variables::{expand, of_front, of_response, placeholder};
use crate::plan::{Fields, Settings};
use crate::toml_text::quoted_list;

/// Converts `add_header` and `proxy_hide_header` into fields of the settings. `port` is the value of `$server_port`.
pub(crate) fn response_fields(
    scope: Scope<'_>,
    port: u16,
    settings: &mut Settings,
    ledger: &mut Ledger,
) {
    for directive in scope.level(|it| it.name == "add_header") {
        let name = directive.word(0);
        if sign_on::passes_cookies(directive, scope) {
            ledger.mapped(directive.id);
            continue;
        }
        let fields = if describes_life(name) && directive.word(2) != "always" {
            &mut settings.success_fields
        } else {
            &mut settings.response_fields
        };
        let of_response = |variable: &str| response_value(variable, directive, scope);
        let text = value(directive.word(1), port, scope.expression, of_response);
        match text.filter(|_| is_field(name)) {
            // nginx sends no field with an empty value.
            Some(value) if value.is_empty() && !is_replaced(name) => ledger.mapped(directive.id),
            Some(value) if add_field(fields, name, &value) => ledger.mapped(directive.id),
            _ => {
                let text = format!(
                    "the field `{}` was not converted, and responses go without it",
                    directive.word(0)
                );
                lose_field(directive.word(0), directive.id, text, ledger);
            }
        }
    }
    for directive in scope.level(|it| it.name == "proxy_hide_header") {
        let name = directive.word(0);
        if is_field(name) && !is_ruled_field(name, false) {
            settings.response_fields.remove(name);
            ledger.mapped(directive.id);
        } else if is_field(name) {
            ledger.lost(directive.id, format!("the field `{name}` is not hidden"));
        }
    }
}

/// The placeholder for a value of the response before the route adds fields to it, or for a count of the front in its
/// own answers. If the route itself adds the field, the value that it has where this `directive` stands; `None` if that is
/// not known, or if the front has no such value.
fn response_value(variable: &str, directive: &Directive, scope: Scope<'_>) -> Option<String> {
    if let Some(field) = variable.strip_prefix("sent_http_") {
        let is_same = |it: &&Directive| it.word(0).replace('-', "_").eq_ignore_ascii_case(field);
        let level = scope.level(|it| it.name == "add_header");
        // `expires` adds several fields.
        if scope.find("expires").is_some() {
            return None;
        }
        if level.iter().any(&is_same) {
            let before = level.iter().take_while(|it| it.id != directive.id);
            let is_alone = scope.own("return").is_some() && !WRITTEN.contains(&field);
            return joined(before.copied().filter(is_same)).filter(|_| is_alone);
        }
    }
    match of_response(variable) {
        Some(value) => Some(value),
        _ if scope.own("proxy_pass").is_some() => of_pass(variable, scope),
        _ => of_front(variable),
    }
}

/// The values that these directives add to a field of an answer that has it from nowhere else, as one value; `None` if
/// one depends on the request.
fn joined<'d>(directives: impl Iterator<Item = &'d Directive>) -> Option<String> {
    let mut values = Vec::new();
    for directive in directives {
        // nginx sends no field with an empty value.
        if !directive.word(1).is_empty() {
            values.push(expand(directive.word(1), |_| None)?);
        }
    }
    Some(values.join(", "))
}

/// Whether a field limits how long a response is fresh, or begins a session. On errors such a field would do harm.
/// Other fields may be on more errors than in nginx.
fn describes_life(name: &str) -> bool {
    LIFE.iter().any(|it| it.eq_ignore_ascii_case(name))
}

/// Whether `add_header` replaces a field, or removes it by an empty value.
fn is_replaced(name: &str) -> bool {
    ["ETag", "Last-Modified"]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(name))
}

/// Adds a field as `add_header` does: `ETag` and `Last-Modified` are replaced or removed, others are added. Returns
/// `false` if the front cannot do this: it writes the field itself, or there would be more than three lines of it.
fn add_field(fields: &mut Fields, name: &str, value: &str) -> bool {
    if is_replaced(name) {
        if value.is_empty() {
            fields.take(name);
        } else {
            fields.set.insert(name.to_owned(), value.to_owned());
        }
        return true;
    }
    if is_ruled_field(name, false) {
        return false;
    }
    fields.add_line(name, value.to_owned())
}

/// Converts `proxy_set_header`, except `Host`, which is a key of the upstream. `port` is the value of `$server_port`.
pub(crate) fn request_fields(
    scope: Scope<'_>,
    port: u16,
    settings: &mut Settings,
    ledger: &mut Ledger,
) {
    for directive in scope.level(|it| it.name == "proxy_set_header") {
        let name = directive.word(0);
        let lower = name.to_ascii_lowercase();
        // The sign-on writes it.
        if sign_on::claimed(directive, scope).is_some() {
            ledger.mapped(directive.id);
            continue;
        }
        match lower.as_str() {
            "host" => {}
            "upgrade"
                if directive.word(1) != "$http_upgrade" && directive.word(1) != "websocket" =>
            {
                ledger.dropped(directive.id, "the front writes this field itself");
            }
            "upgrade" => {
                settings
                    .keys
                    .insert("upgrade".to_owned(), quoted_list(["websocket"]));
                ledger.mapped(directive.id);
            }
            "x-forwarded-proto" if matches!(directive.word(1), "https" | "http") => {
                ledger.lost(directive.id, "the front sets this field from the client's own connection; name the proxy before it in `trusted_proxies`");
            }
            // It passes on what a proxy before the source says, which the front does if it trusts the proxy.
            _ if is_ruled_field(name, true) && directive.word(1).starts_with("$http_") => {
                ledger.mapped(directive.id);
                ledger.claims.push(directive.id);
            }
            "x-forwarded-host" if !TOLD.contains(&directive.word(1)) => {
                let text = format!(
                    "the application is told in `{name}` what the client asked for, or a proxy in `trusted_proxies`, not this \
                     value"
                );
                ledger.lost(directive.id, text);
            }
            _ if is_ruled_field(name, true) => {
                ledger.dropped(directive.id, "the front writes this field itself");
            }
            _ => request_field(
                directive,
                value(directive.word(1), port, scope.expression, |name| {
                    of_pass(name, scope)
                }),
                &mut settings.request_fields,
                ledger,
            ),
        }
    }
}

/// Sets a field of requests to this value, or removes it if the value is empty. A field without a value that the front
/// has (`None`), or that is named twice, is removed and reported.
fn request_field(
    directive: &Directive,
    value: Option<String>,
    fields: &mut Fields,
    ledger: &mut Ledger,
) {
    let name = directive.word(0);
    // If a field is named twice, nginx sends both values.
    let is_first = fields.mentions(name) == 0;
    if let Some(value) = value.filter(|_| is_field(name) && is_first) {
        if value.is_empty() {
            fields.take(name);
        } else {
            fields.set.insert(name.to_owned(), value);
        }
        return ledger.mapped(directive.id);
    }
    if is_field(name) {
        // The application may trust this field, so clients must not be able to set it.
        fields.take(name);
    }
    let text = format!("the field `{name}` was not converted, and backends do not get it");
    if is_field(name) {
        ledger.lost(directive.id, text);
    } else {
        ledger.risk(directive.id, text);
    }
}

/// Whether a text is a plain name of a field.
fn is_field(name: &str) -> bool {
    let is_sign = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    !name.is_empty() && name.bytes().all(is_sign)
}

/// The value of a field, with placeholders of the front, of the groups of an expression, and those that `others` knows;
/// `None` if it has variables that the front does not have.
fn value(
    text: &str,
    port: u16,
    expression: Option<&Expression>,
    others: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let known = |name: &str| {
        if name == "server_port" {
            return Some(port.to_string());
        }
        let captured = expression.and_then(|it| it.placeholder(name));
        captured
            .or_else(|| placeholder(name))
            .or_else(|| others(name))
    };
    // Blanks and line ends behind a value are no part of it.
    expand(text.trim_end(), known).filter(|it| !it.chars().any(char::is_control))
}

/// Fields of answers that nginx writes itself, as variables name them.
const WRITTEN: [&str; 7] = [
    "connection",
    "content_length",
    "content_type",
    "keep_alive",
    "last_modified",
    "location",
    "transfer_encoding",
];

/// Values of `X-Forwarded-Host` that the front sends in any case.
const TOLD: [&str; 4] = ["$host", "$host:$server_port", "$http_host", "$server_name"];

const LIFE: [&str; 8] = [
    "Cache-Control",
    "CDN-Cache-Control",
    "Surrogate-Control",
    "Expires",
    "Pragma",
    "ETag",
    "Last-Modified",
    "Set-Cookie",
];
