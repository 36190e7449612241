//! "Did you mean": finds the known name that is nearest to a mistyped one.

use strsim::osa_distance;

/// The known name nearest to `word`; `None` if none is near enough to be what was meant.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = plain(word);
    let score = |name: &'k str| {
        let plain_name = plain(name);
        // The same parts in another order are the same name.
        let distance = if parts(&word) == parts(&plain_name) {
            0
        } else {
            osa_distance(&word, &plain_name)
        };
        (distance, name)
    };
    let (distance, name) = known
        .into_iter()
        .map(score)
        .min_by_key(|(distance, _)| *distance)?;
    let limit = name.len().min(word.chars().count()) / 3;
    (distance <= limit).then_some(name)
}

/// The hint for a word that is not among `known`: the nearest known name, or the list of
/// them.
pub fn hint(word: &str, known: &[&str]) -> String {
    let meant = nearest(word, known.iter().copied());
    meant_or(meant, || format!("there are {}", known.join(", ")))
}

/// The hint "did you mean …?"; if there is no such name, what `otherwise` says.
pub fn meant_or(meant: Option<&str>, otherwise: impl FnOnce() -> String) -> String {
    meant.map_or_else(otherwise, |meant| format!("did you mean `{meant}`?"))
}

/// A name without differences that do not count: in lower case, with `_` for `-`, cut to
/// [`WORD_MAX`].
fn plain(name: &str) -> String {
    let name = name.to_lowercase().replace('-', "_");
    name.chars().take(WORD_MAX).collect()
}

/// The parts of a name in alphabetical order, so that `max_connections` is recognised as
/// `connections_max`.
fn parts(name: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = name.split('_').collect();
    parts.sort_unstable();
    parts
}

/// The most characters that are compared: no known name is longer.
const WORD_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let known = ["workers", "drain_timeout", "via", "connections_max"];
        for (word, expected) in [
            ("worker", Some("workers")),
            ("wrokers", Some("workers")),
            ("drain-timeout", Some("drain_timeout")),
            ("drainTimeout", Some("drain_timeout")),
            ("max_connections", Some("connections_max")),
            ("", None),
            ("v", None),
            ("completely_else", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }
}
