//! Converts the format of the access log: `LogFormat` and `CustomLog`. Only that of the outermost log is converted.

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::logs::{self, ONE_PLACE};
use crate::plan::Keys;
use crate::toml_text::quoted;

/// The keys of `[log]`, from the first `CustomLog` with a format that is not a usual one; empty if lines keep the
/// format of the front.
pub(super) fn keys(top: &[Directive], ledger: &mut Ledger) -> Keys {
    let logs = named(top, "customlog");
    let has_own_format = |it: &&&Directive| !USUAL.contains(&it.word(1)) && !it.word(1).is_empty();
    let Some(&log) = logs.iter().find(has_own_format) else {
        return Keys::new();
    };
    let name = log.word(1);
    let formats = named(top, "logformat");
    // The last format of a name is in force.
    let format = formats.into_iter().rfind(|it| it.word(1) == name);
    // The word may be the name of a format, or the format itself.
    let text = match format {
        Some(format) => format.word(0),
        None if name.contains('%') => name,
        None => return Keys::new(),
    };
    match logs::written(fact, |known| expanded(text, known)) {
        Ok(line) => {
            let converted = format.into_iter().chain([log]);
            converted.for_each(|it| ledger.mapped(it.id));
            ledger.note(log.id, ONE_PLACE);
            if let Some(other) = logs.iter().find(|it| it.word(1) != name) {
                ledger.note(other.id, "all lines have one format here");
            }
            Keys::from([("format".to_owned(), quoted(&line))])
        }
        Err(reason) => {
            ledger.note(log.id, reason);
            Keys::new()
        }
    }
}

/// All directives with this name; those outside of sections come before those inside.
fn named<'d>(directives: &'d [Directive], name: &str) -> Vec<&'d Directive> {
    let own = directives.iter().filter(|it| it.name == name);
    let inside = directives.iter().flat_map(|it| named(it.inside(), name));
    own.chain(inside).collect()
}

/// The format with each `%…` replaced by what `known` returns; `None` if that does not know one of them.
fn expanded(format: &str, known: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut out = String::new();
    let mut unread = format;
    while let Some(at) = unread.find(['%', '{', '}', '\\']) {
        out.push_str(&unread[..at]);
        let sign = &unread[at..=at];
        unread = &unread[at + 1..];
        match sign {
            "%" => {
                // If the end of a `%…` is not found, its first character is its name.
                let end = directive_end(unread).unwrap_or_else(|| unread.len().min(1));
                out.push_str(&known(unread.get(..end)?)?);
                unread = &unread[end..];
            }
            "\\" => {
                out.push(match unread.chars().next()? {
                    't' => '\t',
                    escaped @ ('"' | '\\') => escaped,
                    _ => return None,
                });
                unread = &unread[1..];
            }
            // The front writes a brace for two of them.
            brace => out.push_str(&brace.repeat(2)),
        }
    }
    out.push_str(unread);
    Some(out)
}

/// The length of what follows a `%`, up to its letter or `%`. `None` if it has a condition on the status, or no end.
fn directive_end(text: &str) -> Option<usize> {
    let from = match text.strip_prefix('{') {
        Some(inner) => inner.find('}')? + 2,
        None => usize::from(text.starts_with(['>', '<'])),
    };
    let last = text.get(from..)?.chars().next()?;
    (last.is_ascii_alphabetic() || last == '%').then_some(from + 1)
}

/// What the front writes for a `%…`; `part` is without the `%`.
fn fact(part: &str) -> Option<String> {
    if let Some((_, name)) = FACTS.iter().find(|(known, _)| *known == part) {
        return Some((*name).to_owned());
    }
    let field = part.strip_prefix('{')?.strip_suffix("}i")?;
    Some(logs::field(field))
}

/// Formats of distributions that need not be converted, because the front's own format has their facts.
const USUAL: [&str; 3] = ["combined", "common", "vhost_combined"];

/// The `%…` of httpd for which the front has a name. identd is left out: the front does not ask it.
const FACTS: [(&str, &str); 18] = [
    ("%", "%"),
    ("a", "{client}"),
    ("h", "{client}"),
    ("l", "-"),
    ("u", "{user}"),
    ("t", "[{time_local}]"),
    ("r", "{request}"),
    ("s", "{status}"),
    (">s", "{status}"),
    ("b", "{bytes}"),
    ("B", "{bytes}"),
    ("D", "{total_us}"),
    ("H", "{version}"),
    ("m", "{method}"),
    ("U", "{path}"),
    ("{SSL_PROTOCOL}x", "{tls_version}"),
    ("{SSL_CIPHER}x", "{tls_cipher}"),
    ("{us}T", "{total_us}"),
];
