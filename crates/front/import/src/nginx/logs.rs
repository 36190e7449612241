//! Converts the format of the access log: `log_format` and `access_log`.
//!
//! The front has one format for all lines. The format of the outermost `access_log` that names one is converted, if
//! the front has a name for each of its variables.

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::logs::{self, ONE_PLACE};
use crate::nginx::variables::expand;
use crate::plan::Keys;
use crate::toml_text::quoted;

/// The keys of `[log]`; empty if lines keep the format of the front.
pub(super) fn keys(top: &[Directive], ledger: &mut Ledger) -> Keys {
    let mut all = named(top, "access_log");
    all.retain(|it| it.word(0) != "off");
    let own = all.iter().find(|it| format_name(it) != COMBINED);
    let formats = named(top, "log_format");
    let Some(log) = own else {
        return Keys::new();
    };
    let name = format_name(log);
    let Some(format) = formats.iter().find(|it| it.word(0) == name) else {
        return Keys::new();
    };
    let value = match written(format) {
        Ok(value) => value,
        Err(text) => {
            ledger.note(format.id, text);
            return Keys::new();
        }
    };
    ledger.mapped(format.id);
    ledger.note(log.id, ONE_PLACE);
    if let Some(other) = all.iter().find(|it| format_name(it) != name) {
        let text = format!("all lines have the format `{name}` here");
        ledger.note(other.id, text);
    }
    Keys::from([("format".to_owned(), quoted(&value))])
}

/// All directives with this name; those of outer blocks come before those inside.
fn named<'d>(directives: &'d [Directive], name: &str) -> Vec<&'d Directive> {
    let own = directives.iter().filter(|it| it.name == name);
    let inside = directives.iter().flat_map(|it| named(it.inside(), name));
    own.chain(inside).collect()
}

/// The name of a log's format.
fn format_name(log: &Directive) -> &str {
    match log.word(1) {
        "" => COMBINED,
        name if name.contains('=') => COMBINED,
        name => name,
    }
}

/// The format as the front writes it.
///
/// # Errors
/// The reason why the front has no such format.
fn written(format: &Directive) -> Result<String, String> {
    let is_escape = |it: &&String| it.starts_with("escape=");
    let parts = format.words.iter().skip(1);
    if parts.clone().any(|it| it == "escape=json") {
        return Ok("json".to_owned());
    }
    let text: String = parts.filter(|it| !is_escape(it)).cloned().collect();
    logs::written(fact, |known| expand(&text, known))
}

/// What the front writes for a variable.
fn fact(variable: &str) -> Option<String> {
    let lower = variable.to_ascii_lowercase();
    if let Some((_, name)) = FACTS.iter().find(|(known, _)| *known == lower) {
        return Some((*name).to_owned());
    }
    let field = lower.strip_prefix("http_")?;
    Some(logs::field(&field.replace('_', "-")))
}

/// The name of the format that nginx has without `log_format`.
const COMBINED: &str = "combined";

/// The variables of nginx for which the front has a name.
const FACTS: [(&str, &str); 16] = [
    ("args", "{query}"),
    ("body_bytes_sent", "{bytes}"),
    ("host", "{host}"),
    ("query_string", "{query}"),
    ("remote_addr", "{client}"),
    ("remote_user", "{user}"),
    ("request", "{request}"),
    ("request_id", "{request_id}"),
    ("request_method", "{method}"),
    ("request_time", "{duration}"),
    ("server_protocol", "{version}"),
    ("ssl_cipher", "{tls_cipher}"),
    ("ssl_protocol", "{tls_version}"),
    ("status", "{status}"),
    ("time_iso8601", "{time}"),
    ("time_local", "{time_local}"),
];
