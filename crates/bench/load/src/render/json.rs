//! Renders a report as JSON.

use crate::report::Report;

/// The report as one JSON object, indented, with a line end.
pub fn json(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("all keys are strings");
    text.push('\n');
    text
}
