//! The rows of the result: the figures of one build or two, and the limit of their ratio.

use std::fmt;

use catamaran_units::show_count;

/// A figure of the working tree, beside that of a commit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    what: String,
    new: f64,
    old: Option<f64>,
    /// The highest ratio of new to old that passes.
    limit: f64,
}

impl Row {
    pub(super) fn instructions(what: String, new: f64, old: Option<f64>) -> Self {
        Self {
            what,
            new,
            old,
            limit: INSTRUCTIONS_LIMIT,
        }
    }

    /// A row with the bytes of memory of `of`, one connection or one page.
    pub(super) fn bytes(of: &str, new: f64, old: Option<f64>) -> Self {
        Self {
            what: format!("bytes of {of}"),
            new,
            old,
            limit: BYTES_LIMIT,
        }
    }

    pub(super) fn what(&self) -> &str {
        &self.what
    }

    fn ratio(&self) -> Option<f64> {
        Some(self.new / self.old?)
    }

    /// Whether the working tree needs more than is allowed.
    pub(super) fn is_over(&self) -> bool {
        self.ratio().is_some_and(|ratio| ratio > self.limit)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<52}{:>10}", self.what, whole(self.new))?;
        if let (Some(old), Some(ratio)) = (self.old, self.ratio()) {
            write!(f, "{:>12}  ×{ratio:.4}", whole(old))?;
        }
        if self.is_over() {
            write!(f, "  more than ×{}", self.limit)?;
        }
        Ok(())
    }
}

/// The line above all rows; `old` is what the second column is of.
pub(super) fn header(old: Option<&str>) -> String {
    let what = "instructions; fields of request + response";
    let old = old.map_or_else(String::new, |old| format!("{old:>12}  ratio"));
    format!("{what:<52}{:>10}{old}", "here")
}

/// A whole number with commas.
fn whole(number: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of instructions and bytes are not below 0, and far below 2^64"
    )]
    let count = number.round() as u64;
    show_count(count)
}

/// The largest accepted ratio of instructions.
const INSTRUCTIONS_LIMIT: f64 = 1.01;
/// The largest accepted ratio of memory. Memory is counted in whole pages, so it varies a little between runs.
const BYTES_LIMIT: f64 = 1.05;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(new: f64, old: Option<f64>) -> Row {
        Row::instructions("HTTP/1.1 to AJP13, 3+3 fields".to_owned(), new, old)
    }

    #[test]
    fn more_than_one_percent_is_over() {
        assert!(!row(25_000.0, None).is_over());
        assert!(!row(25_250.0, Some(25_000.0)).is_over());
        assert!(row(25_251.0, Some(25_000.0)).is_over());
        assert!(!row(20_000.0, Some(25_000.0)).is_over());
        assert!(!Row::bytes("it", 1_040.0, Some(1_000.0)).is_over());
        assert!(Row::bytes("it", 1_051.0, Some(1_000.0)).is_over());
    }

    #[test]
    fn rows_say_both_figures_and_their_ratio() {
        let text = row(25_300.4, Some(25_000.0)).to_string();
        let words: Vec<&str> = text.split_whitespace().collect();
        let expected = [
            "HTTP/1.1", "to", "AJP13,", "3+3", "fields", "25,300", "25,000", "×1.0120", "more",
            "than", "×1.01",
        ];
        assert_eq!(words, expected);
        let alone = row(999.0, None).to_string();
        assert!(alone.ends_with(" 999"), "{alone}");
    }

    #[test]
    fn columns_stand_below_their_names() {
        let header = header(Some("0123456789"));
        let row = row(25_300.0, Some(25_000.0)).to_string();
        let end = |text: &str, word: &str| {
            text[..text.find(word).unwrap() + word.len()]
                .chars()
                .count()
        };
        assert_eq!(end(&header, "here"), end(&row, "25,300"));
        assert_eq!(end(&header, "0123456789"), end(&row, "25,000"));
    }
}
