//! "Did you mean": the known name nearest to a mistyped one.

/// The nearest of `known`, if it is near enough to be what was meant.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word: Vec<char> = word
        .to_lowercase()
        .replace('-', "_")
        .chars()
        .take(WORD_MAX)
        .collect();
    let score = |name: &'k str| {
        let letters: Vec<char> = name.to_lowercase().replace('-', "_").chars().collect();
        let distance = if parts(&word) == parts(&letters) {
            0
        } else {
            distance(&word, &letters)
        };
        (distance, name)
    };
    let (distance, name) = known
        .into_iter()
        .map(score)
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= name.len().min(word.len()) / 3).then_some(name)
}

/// The words of a name in one order: `max_connections` means `connections_max`.
fn parts(name: &[char]) -> Vec<&[char]> {
    let mut parts: Vec<&[char]> = name.split(|&c| c == '_').collect();
    parts.sort_unstable();
    parts
}

/// Insertions, deletions, replacements and swaps of neighbours from one word to the other.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(a != b))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && from[i - 1] == *b && to[j - 1] == *a {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
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
