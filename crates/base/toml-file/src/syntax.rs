//! A text as a table of TOML, or what its parser says where it is none.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeTable;

use crate::report::{Finding, Report};

/// The table of one of the report's texts, whose first byte has the offset `start`. Where the syntax is broken
/// the report gets the parser's words for it; such a text is not read further, since the parser may lose any
/// part of it.
pub fn parsed<'t>(
    text: &'t str,
    start: usize,
    report: &mut Report,
) -> Option<Spanned<DeTable<'t>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let place = |error: &toml::de::Error| shifted(error.span().unwrap_or_default(), start);
    let mut faults: Vec<_> = errors.iter().map(|it| (place(it), it.message())).collect();
    faults.sort_by_key(|(place, _)| place.start);
    // What follows on a line may follow from its first fault.
    faults.dedup_by_key(|(place, _)| report.line_of_all(place.start));
    for (place, message) in faults {
        report.push(Finding::fault(format!("syntax: {message}"), place));
    }
    errors.is_empty().then_some(table)
}

/// A place in a text, as a place in all texts.
pub fn shifted(place: Range<usize>, by: usize) -> Range<usize> {
    place.start + by..place.end + by
}
