//! `expires`: how long responses are fresh.

use crate::directive::Directive;
use crate::freshness::Freshness;
use crate::ledger::{Ledger, Weight};
use crate::mod_jk::workers::number;
use crate::nginx::location::Scope;
use crate::plan::{Action, Fields, Rule};

/// The values of `Cache-Control` that an `expires` stands for.
struct Lifetime<'d> {
    freshness: Freshness,
    /// The `map` that names them by the media type of the response; `None`: there is one for all responses.
    map: Option<&'d Directive>,
}

/// Gives the responses of a rule the `Cache-Control` of the `expires` that is in force; reports it if the front cannot.
pub(super) fn give_lifetime(rule: &mut Rule, scope: Scope<'_>, ledger: &mut Ledger) {
    let directive = scope.find("expires");
    let lifetime = directive.and_then(|it| Lifetime::read(it, scope));
    if let Action::Serve(serve) = &rule.action
        && serve.upstream.is_some()
    {
        let plain = lifetime.as_ref().filter(|it| it.map.is_none());
        leave_to_backend(
            rule,
            plain.and_then(|it| it.freshness.others.as_deref()),
            ledger,
        );
    }
    let Some(directive) = directive else { return };
    let Some(Lifetime { freshness, map }) = lifetime else {
        return ledger.lost(directive.id, "this `expires` was not converted");
    };
    match &mut rule.action {
        Action::Serve(serve) => {
            freshness.write(&mut serve.keys);
            map.into_iter().for_each(|it| ledger.mapped(it.id));
        }
        Action::Forward { .. } | Action::Text(_) | Action::Answer(200..=299) => {
            if freshness.depends_on_type() {
                return ledger.lost(directive.id, OF_FILES_ALONE);
            }
            if let Some(value) = freshness.others {
                set(&mut rule.settings.success_fields, value);
            }
        }
        // Redirects and errors of the front have no such field.
        Action::Redirect { .. } | Action::Answer(_) | Action::Files | Action::Closed => return,
    }
    ledger.mapped(directive.id);
}

impl<'d> Lifetime<'d> {
    /// Reads an `expires`; `None` if it cannot be converted.
    fn read(directive: &Directive, scope: Scope<'d>) -> Option<Self> {
        let [word] = &directive.words[..] else {
            return None;
        };
        if !word.starts_with('$') {
            return Some(Self {
                freshness: Freshness::of_all(value(word)?),
                map: None,
            });
        }
        let outermost = scope.blocks.last().copied().unwrap_or_default();
        let mut maps = outermost.iter().filter(|it| it.name == "map");
        let map = maps.find(|it| it.word(1) == word && OF_TYPES.contains(&it.word(0)))?;
        Some(Self {
            freshness: by_type(map)?,
            map: Some(map),
        })
    }
}

/// The values of a `map`, whose words are those of [`crate::nginx::maps::words`]; `None` if a key is no media type and no
/// expression for all types of a kind, or if a value cannot be converted.
fn by_type(map: &Directive) -> Option<Freshness> {
    let mut freshness = Freshness::default();
    // Of two keys for the same types nginx takes the first.
    for pair in map.words.get(2..)?.rchunks(2) {
        let [key, word] = pair else {
            return None;
        };
        let value = value(word)?;
        let is_set = match key.strip_prefix('~') {
            _ if key == "default" => {
                freshness.others = value;
                true
            }
            Some(expression) => freshness.set(&format!("{}/*", kind(expression)?), value),
            None => freshness.set(key, value),
        };
        if !is_set {
            return None;
        }
    }
    Some(freshness)
}

/// The kind of media types that an expression such as `image/` or `^image/` matches.
fn kind(expression: &str) -> Option<&str> {
    let text = expression.strip_prefix('*').unwrap_or(expression);
    let plain = text.strip_prefix('^').unwrap_or(text).strip_suffix('/')?;
    let is_kind = !plain.is_empty() && plain.bytes().all(|it| it.is_ascii_alphabetic());
    is_kind.then_some(plain)
}

/// Makes responses fresh for as long as a value of `Cache-Control` says, whatever the application says. nginx also
/// replaces `Expires`; without it the value alone counts.
fn set(fields: &mut Fields, value: String) {
    fields.remove("Expires");
    fields.set.insert(CACHE_CONTROL.to_owned(), value);
}

/// Leaves `Cache-Control` of a backend to itself, if the named location behind files sets another value than the files
/// have: the route's fields are on both.
fn leave_to_backend(rule: &mut Rule, of_files: Option<&str>, ledger: &mut Ledger) {
    let of_backend = rule.settings.success_fields.set.get(CACHE_CONTROL);
    if of_backend.is_none() || of_backend.map(String::as_str) == of_files {
        return;
    }
    let fields = &mut rule.settings.success_fields;
    fields.set.remove(CACHE_CONTROL);
    fields.remove.retain(|name| name != "Expires");
    let text = "responses of the application keep their own `Cache-Control`: its location and the files have different \
                `expires`";
    ledger.say(Weight::Note, rule.place.clone(), text);
}

/// The value of `Cache-Control` for a time of `expires`: `Some(None)` for `off`; `None` if it cannot be converted.
fn value(text: &str) -> Option<Option<String>> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let times = match (text, &text[digits.len()..]) {
        ("off", _) => return Some(None),
        // Ten years, as nginx sends.
        ("max", _) => return Some(Some("max-age=315360000".to_owned())),
        ("epoch", _) => return Some(Some("no-cache".to_owned())),
        (_, "" | "s") => 1,
        (_, "m") => 60,
        (_, "h") => 3_600,
        (_, "d") => 86_400,
        (_, "w") => 604_800,
        // A month has 30 days in nginx, and a year 365.
        (_, "M") => 2_592_000,
        (_, "y") => 31_536_000,
        // nginx sends this for each time before now.
        _ if is_negative(text) => return Some(Some("no-cache".to_owned())),
        _ => return None,
    };
    let seconds = number(&digits)?.saturating_mul(times);
    Some(Some(format!("max-age={seconds}")))
}

/// Whether a text is a time before now, such as `-1` or `-1h`.
fn is_negative(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or_default();
    let units = unsigned.trim_start_matches(|it: char| it.is_ascii_digit());
    unsigned.len() > units.len() && matches!(units, "" | "s" | "m" | "h" | "d" | "w" | "M" | "y")
}

/// Variables of nginx that have the media type of the response.
const OF_TYPES: [&str; 2] = ["$sent_http_content_type", "$upstream_http_content_type"];

const CACHE_CONTROL: &str = "Cache-Control";

const OF_FILES_ALONE: &str = "files alone have a `Cache-Control` by their type here (`cache_control_types`): let the application \
    send the field";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_of_responses() {
        for (text, expected) in [
            ("30d", Some(Some("max-age=2592000"))),
            ("1y", Some(Some("max-age=31536000"))),
            ("0", Some(Some("max-age=0"))),
            ("max", Some(Some("max-age=315360000"))),
            ("-1", Some(Some("no-cache"))),
            ("-2h", Some(Some("no-cache"))),
            ("epoch", Some(Some("no-cache"))),
            ("off", Some(None)),
            ("@15h30m", None),
            ("-", None),
            ("1h30m", None),
            ("modified", None),
        ] {
            let found = value(text);
            let shown = found.as_ref().map(|it| it.as_deref());
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn kinds_of_media_types() {
        for (expression, expected) in [
            ("image/", Some("image")),
            ("^font/", Some("font")),
            ("*^image/", Some("image")),
            ("image/png", None),
            ("^image", None),
            ("(image|font)/", None),
            ("/", None),
        ] {
            assert_eq!(kind(expression), expected, "{expression}");
        }
    }
}
