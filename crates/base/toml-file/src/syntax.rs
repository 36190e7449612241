//! Parses a text as TOML, and reports the parser's errors.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeTable;

use crate::report::{Finding, Report};

/// The top-level table of one of the report's texts, whose first byte has the offset `start`; `None` if the syntax
/// is broken.
///
/// In that case the report gets the parser's messages for the first faulty lines. Such a text is not read further,
/// since the parser may have lost any part of it.
pub fn parsed<'t>(
    text: &'t str,
    start: usize,
    report: &mut Report,
) -> Option<Spanned<DeTable<'t>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let placed = |error: &'_ toml::de::Error| {
        let place = shifted(error.span().unwrap_or_default(), start);
        (place, error.message().to_owned())
    };
    let mut faults: Vec<_> = errors.iter().map(placed).collect();
    faults.sort_by_key(|(place, _)| place.start);
    // Only the first fault of a line is kept: the others may be its consequences.
    faults.dedup_by_key(|(place, _)| report.line_of_all(place.start));
    let further = faults.len().saturating_sub(SHOWN_MAX);
    faults.truncate(SHOWN_MAX);
    let last = faults.len().saturating_sub(1);
    for (index, (place, message)) in faults.into_iter().enumerate() {
        let mut finding = Finding::fault(format!("syntax: {message}"), place);
        if index == last && further > 0 {
            finding.hint = format!("further lines with faults of syntax: {further}");
        }
        report.push(finding);
    }
    errors.is_empty().then_some(table)
}

/// Converts a place in one text to a place in all texts, given the offset of the text.
pub fn shifted(place: Range<usize>, by: usize) -> Range<usize> {
    place.start + by..place.end + by
}

/// The most faults of syntax that are reported: a text with more is hardly meant to be TOML.
const SHOWN_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let mut report = Report::new("x.conf", text);
        assert!(parsed(text, 0, &mut report).is_none());
        report.to_string()
    }

    #[test]
    fn of_many_broken_lines_the_first_are_shown() {
        let said_of_ten = said(&"listen 80;\n".repeat(10));
        assert_eq!(said_of_ten.matches("fault: syntax: ").count(), 10);
        assert!(!said_of_ten.contains("further"), "{said_of_ten}");
        let said = said(&"listen 80;\n".repeat(300));
        assert_eq!(said.matches("fault: syntax: ").count(), 10);
        let hint = "x.conf:10:8: fault: syntax: key with no value, expected `=`; further lines with faults of syntax: 290\n";
        assert!(said.contains(hint), "{said}");
    }
}
