//! "Did you mean": the known name nearest to a mistyped one.

use strsim::osa_distance;

/// The nearest of `known`, if it is near enough to be what was meant.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = plain(word);
    let score = |name: &'k str| {
        let plain_name = plain(name);
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

/// What to do about a name that is none of `known`.
pub fn hint(word: &str, known: &[&str]) -> String {
    let meant = nearest(word, known.iter().copied());
    meant_or(meant, || format!("there are {}", known.join(", ")))
}

/// Asks for the name that may have been meant; without one, what else to do.
pub fn meant_or(meant: Option<&str>, otherwise: impl FnOnce() -> String) -> String {
    meant.map_or_else(otherwise, |meant| format!("did you mean `{meant}`?"))
}

/// A name without the differences that do not count.
fn plain(name: &str) -> String {
    let name = name.to_lowercase().replace('-', "_");
    name.chars().take(WORD_MAX).collect()
}

/// The words of a name in one order: `max_connections` means `connections_max`.
fn parts(name: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = name.split('_').collect();
    parts.sort_unstable();
    parts
}

/// Letters compared at most: no name of ours is longer.
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
