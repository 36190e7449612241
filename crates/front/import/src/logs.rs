//! The code for log formats that all servers have in common.
//!
//! The front has one format for all lines. A format of the source is written if the front has a name for each of its
//! parts. Otherwise lines have the format of the front, and the report says so.

use std::cell::RefCell;

use catamaran_proxy::config::LogTemplate;

/// A format as the front writes it. `fact` returns what the front writes for a part of the source's format; `expand`
/// replaces the parts.
///
/// # Errors
/// The reason why the front has no such format.
pub(crate) fn written(
    fact: impl Fn(&str) -> Option<String>,
    expand: impl FnOnce(&dyn Fn(&str) -> Option<String>) -> Option<String>,
) -> Result<String, String> {
    let unknown = RefCell::new(None);
    // Remembers the first part without a name, for the message: `expand` only says that there is one.
    let noting_unknown = |part: &str| {
        let found = fact(part);
        if found.is_none() {
            unknown.borrow_mut().get_or_insert_with(|| part.to_owned());
        }
        found
    };
    let Some(line) = expand(&noting_unknown) else {
        let part = unknown.take().unwrap_or_default();
        return Err(format!(
            "the log of the front has no name for `{part}`: lines have the format of the front"
        ));
    };
    // The key `format` takes neither a line without placeholders nor one with those of httpd.
    let can_be_read = line.contains('{') && !line.contains("%{");
    if can_be_read && LogTemplate::parse(&line).is_ok() {
        return Ok(line);
    }
    let refusal =
        "it is no line that the log of the front can write: lines have the format of the front";
    Err(refusal.to_owned())
}

/// What the front writes for a field of the request.
pub(crate) fn field(name: &str) -> String {
    match name.to_ascii_lowercase().as_str() {
        "host" => "{host}".to_owned(),
        "referer" => "{referer}".to_owned(),
        "user-agent" => "{user_agent}".to_owned(),
        name => format!("{{header:{name}}}"),
    }
}

/// The note for a log whose format was written.
pub(crate) const ONE_PLACE: &str =
    "lines go to standard output until `access` of [log] names a file";
