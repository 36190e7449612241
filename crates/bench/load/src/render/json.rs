//! Renders a report as JSON.

use serde::Serialize;

use crate::report::Report;

/// The report as one JSON object, indented, with a line end.
pub fn json(report: &Report) -> String {
    indented(report)
}

/// A document as one JSON object, indented, with a line end.
pub(super) fn indented(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("all keys are strings");
    text.push('\n');
    text
}
