//! Renders a result as text for a terminal.

use std::fmt::Write as _;

use super::table::Group;
use super::{claims, setting, table};
use crate::result::ResultDocument;

/// The whole result as text.
#[must_use]
pub fn terminal(result: &ResultDocument) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        let _ = writeln!(text, "{words}");
    };
    line(&format!("\n{}\n{}\n", result.question, result.answer));
    line(&format!("{}\n", setting(result)));
    let layout = claims::layout(result);
    if !layout.is_empty() {
        line(&format!("{layout}\n"));
    }
    line("Claims:");
    for claim in &result.claims {
        line(&format!(
            "  {:<10} {}: {}",
            claim.verdict.word(),
            claims::named(claim),
            claim.sentence
        ));
        let limit = claims::limit(result, claim);
        if !limit.is_empty() {
            line(&format!("  {:<10} {limit}", ""));
        }
        let survivors = claims::survivors(claim);
        if !survivors.is_empty() {
            line(&format!("  {:<10} {survivors}", ""));
        }
    }
    let remark = claims::remark(result);
    if !remark.is_empty() {
        line(&format!("  {remark}"));
    }
    for words in claims::disagreements(result) {
        line(&format!("  {words}"));
    }
    if !result.gates.is_empty() {
        line("\nGates that fired:");
    }
    for gate in &result.gates {
        line(&format!(
            "  {} ({} runs): {} ({})",
            gate.gate, gate.runs, gate.words, gate.cell
        ));
    }
    for group in table::groups(result) {
        line(&format!("\n{} (medians of valid runs):", group.title));
        for row in rows(result, &group) {
            line(&format!("  {row}"));
        }
    }
    text
}

/// The lines of a table with aligned columns.
fn rows(result: &ResultDocument, group: &Group) -> Vec<String> {
    let names = &group.names;
    let mut head = vec!["cell".to_owned()];
    head.extend(names.iter().map(|name| table::head(name)));
    let mut rows = vec![head];
    for cell in &result.cells {
        let mut row = vec![cell.label.clone()];
        for name in names {
            let figure = table::figure(cell, name);
            row.push(figure.map_or_else(String::new, |figure| figure.median));
        }
        rows.push(row);
    }
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let align = |row: &Vec<String>| {
        let mut columns = Vec::new();
        for (column, (text, width)) in row.iter().zip(&widths).enumerate() {
            // The first column has the names of cells, the others have figures.
            columns.push(match column {
                0 => format!("{text:<width$}"),
                _ => format!("{text:>width$}"),
            });
        }
        columns.join("  ")
    };
    rows.iter().map(align).collect()
}
