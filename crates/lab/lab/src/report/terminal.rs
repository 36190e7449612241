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
    line("Claims:");
    for claim in &result.claims {
        line(&format!(
            "  {:<10} {}: {}",
            claim.verdict.word(),
            claims::named(claim),
            claim.sentence
        ));
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
        let figure =
            |name: &String| table::figure(cell, name).map_or_else(String::new, |it| it.median);
        let mut row = vec![cell.label.clone()];
        row.extend(names.iter().map(figure));
        rows.push(row);
    }
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let align = |row: &Vec<String>| {
        let columns = row.iter().zip(&widths).enumerate();
        let columns = columns.map(|(place, (text, width))| match place {
            0 => format!("{text:<width$}"),
            _ => format!("{text:>width$}"),
        });
        columns.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(align).collect()
}
