//! Writes the cells of a page: tables of figures, a strip for each measure, and system calls.

use std::collections::BTreeSet;

use catamaran_chart::{StripRow, Strips, escaped};

use super::page::Page;
use crate::report::table::{self, Group, MedianRow};
use crate::result::{CALLS_MIN, CellResult, ResultDocument};

/// Writes the tables of times, of costs, and of traffic between servers.
pub(super) fn tables(page: &mut Page, result: &ResultDocument) {
    let legend = table::legend(result);
    page.put(format_args!("<h2>Cells</h2>\n<p>{legend}</p>\n"));
    for group in table::groups(result) {
        page.put(format_args!("<h3>{}</h3>\n", group.title));
        let measured: Vec<String> = group.names.iter().map(|name| table::head(name)).collect();
        let mut heads = vec!["cell", "runs"];
        heads.extend(measured.iter().map(String::as_str));
        let extras = table::extras(result, &group);
        heads.extend(extras.iter().map(|(head, _)| *head));
        let mut rows = Vec::new();
        for cell in &result.cells {
            let mut row = row(cell, &group);
            let figures = table::of_extras(cell, &extras);
            row.extend(figures.iter().map(|figure| number(figure)));
            rows.push(row);
        }
        page.table(&heads, &rows);
    }
}

/// The cells of a row: the label, and a figure for each measure of the table.
fn row(cell: &CellResult, group: &Group) -> Vec<String> {
    let runs = match cell.void {
        0 => cell.runs.to_string(),
        void => format!("{}<br><small>{void} void</small>", cell.runs),
    };
    let mut row = vec![name(&cell.label), number(&runs)];
    for name in &group.names {
        let Some(figure) = table::figure(cell, name) else {
            row.push("<td></td>".to_owned());
            continue;
        };
        let mut lines = figure.median.clone();
        for words in figure.beside() {
            lines += &format!("<br><small>{words}</small>");
        }
        row.push(number(&lines));
    }
    row
}

/// Writes a strip for each measure; those that few readers need are folded away.
pub(super) fn pictures(page: &mut Page, result: &ResultDocument) {
    let (first, others): (Vec<String>, Vec<String>) = table::measures(result)
        .into_iter()
        .partition(|name| table::is_drawn_first(result, name));
    page.put(format_args!(
        "<p>A dot is a run, a stroke the median.</p>\n"
    ));
    let mut strips = Strips::default();
    for name in &first {
        strip(page, &mut strips, result, name);
    }
    if others.is_empty() {
        return;
    }
    let names = escaped(&others.join(", "));
    if result.cells.len() > DRAWN_CELLS_MAX {
        return page.put(format_args!(
            "<p>In the tables alone, of so many cells: {names}.</p>\n"
        ));
    }
    page.put(format_args!(
        "<details><summary>Other measures: {names}</summary>\n"
    ));
    for name in &others {
        strip(page, &mut strips, result, name);
    }
    page.put(format_args!("</details>\n"));
}

fn strip(page: &mut Page, strips: &mut Strips, result: &ResultDocument, name: &str) {
    let rows = table::strip_rows(result, name);
    let rows: Vec<StripRow<'_>> = rows.iter().map(MedianRow::drawn).collect();
    let title = table::head(name);
    let drawn = strips.strip(&title, &rows);
    page.put(format_args!("<h3>{}</h3>\n{drawn}", escaped(&title)));
}

/// Writes the system calls by name, in a table for each server.
pub(super) fn calls(page: &mut Page, result: &ResultDocument) {
    let cells = || result.cells.iter();
    let servers: BTreeSet<&String> = cells().flat_map(|cell| cell.calls.keys()).collect();
    for server in servers {
        let counts = cells().filter_map(|cell| cell.calls.get(server));
        let frequent = counts.flatten().filter(|(_, count)| **count >= CALLS_MIN);
        let names: BTreeSet<&str> = frequent.map(|(name, _)| name.as_str()).collect();
        page.fold(&format!("System calls of {server} for one request"));
        let names: Vec<&str> = names.into_iter().collect();
        for columns in names.chunks(CALLS_IN_TABLE) {
            let mut rows = Vec::new();
            for cell in cells() {
                let Some(counts) = cell.calls.get(server) else {
                    continue;
                };
                let mut row = vec![name(&cell.label)];
                row.extend(columns.iter().map(|call| match counts.get(*call) {
                    Some(count) if *count >= CALLS_MIN => number(&format!("{count:.2}")),
                    _ => "<td></td>".to_owned(),
                }));
                rows.push(row);
            }
            page.table(&[&["cell"], columns].concat(), &rows);
        }
        page.end_fold();
    }
}

fn name(label: &str) -> String {
    format!("<td class=\"says\">{}</td>", escaped(label))
}

fn number(figure: &str) -> String {
    format!("<td class=\"n\">{figure}</td>")
}

/// The most cells in one table of calls: a larger one would be cut on paper.
const CALLS_IN_TABLE: usize = 12;

/// The most cells with strips for all measures: a page with more has only the first measures, else
/// it would be too large.
const DRAWN_CELLS_MAX: usize = 48;
