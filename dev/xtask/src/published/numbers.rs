//! The folded part of a page: every number of a source, and ours.

use std::fmt::Write as _;

use anyhow::Context;

use super::language::filled;
use super::page::PostPage;
use super::source::{CellPlace, PrintedText, number};
use super::starts::cell;
use super::text::{Figure, figures};
use crate::figures::{LabCell, LabResult};

/// The folded part of a page.
///
/// # Errors
///
/// A phrase is not translated, or a source names a cell that its result does not have.
pub(super) fn folded(page: &PostPage<'_>) -> anyhow::Result<String> {
    let PostPage {
        source, language, ..
    } = page;
    let words = language.words();
    let mut text = format!(
        "\n<details><summary>{}</summary>\n\n{}\n\n",
        words.numbers, words.remarks
    );
    for remark in &source.texts_in(*language).remarks {
        let _ = writeln!(text, "- {remark}");
    }
    let (tables, blocks): (Vec<&PrintedText>, Vec<&PrintedText>) = source
        .texts
        .iter()
        .partition(|printed| printed.requests.is_some());
    text += &table_of_blocks(page, &blocks)?;
    for table in tables {
        text += &table_of_calls(page, table)?;
    }
    if source.numbers.iter().any(|number| number.from.is_some()) {
        let _ = writeln!(text, "\n{}", words.intervals);
    }
    if !source.numbers.is_empty() {
        text += "\n";
        text += words.numbers_heads;
    }
    for number in &source.numbers {
        let interval = match (number.from, number.to) {
            (Some(from), Some(to)) => format!(" [{from}..{to}]"),
            (None, _) | (_, None) => String::new(),
        };
        let (what, place) = (page.phrase(&number.what)?, page.phrase(&number.at)?);
        let published = number.value;
        let own = throughput(&number.here, page.results)?;
        let _ = writeln!(text, "| {what} | {place} | {published}{interval} | {own} |");
    }
    text += "\n";
    text += words.settings_heads;
    for [what, value, place] in &source.settings {
        let (what, place) = (page.phrase(what)?, page.phrase(place)?);
        let _ = writeln!(text, "| {what} | {place} | {} |", page.phrase(value)?);
    }
    text += "\n</details>\n";
    Ok(text)
}

/// A table of ab's printed fields: for each published text a column, and beside it one for ours.
fn table_of_blocks(page: &PostPage<'_>, blocks: &[&PrintedText]) -> anyhow::Result<String> {
    let Some(first) = blocks.first() else {
        return Ok(String::new());
    };
    let words = page.language.words();
    let mut text = format!("\n{}\n\n| {} |", words.blocks, words.number);
    let mut columns: Vec<Vec<Figure>> = Vec::new();
    for block in blocks {
        let place = page.phrase(&block.at)?;
        let comma = words.comma;
        let _ = write!(text, " {}{comma}{place} | {} |", block.name, words.here);
        columns.push(block.figures.clone());
        columns.push(repeated_figures(block, page.results));
    }
    text += "\n|---|";
    text += &"---|---|".repeat(blocks.len());
    text += "\n";
    for Figure { name, .. } in &first.figures {
        let cells = columns.iter().map(|figures| printed(figures, name));
        let _ = writeln!(
            text,
            "| {name} | {} |",
            cells.collect::<Vec<_>>().join(" | ")
        );
    }
    // Some fields are only in later texts, such as the number of responses on kept connections.
    for (index, block) in blocks.iter().enumerate() {
        for figure in &block.figures {
            if number(&first.figures, &figure.name).is_some() {
                continue;
            }
            let mut cells = vec![""; columns.len()];
            // The text's own column, and the one for ours beside it.
            for column in [index * 2, index * 2 + 1] {
                cells[column] = printed(&columns[column], &figure.name);
            }
            let _ = writeln!(text, "| {} | {} |", figure.name, cells.join(" | "));
        }
    }
    Ok(text)
}

/// The printed text of a figure; empty if there is none of this name.
fn printed<'f>(figures: &'f [Figure], name: &str) -> &'f str {
    let figure = figures.iter().find(|figure| figure.name == name);
    figure.map_or("", |figure| &figure.printed)
}

/// The figures that ab printed when the run of `block` was repeated; empty if no committed result has it.
fn repeated_figures(block: &PrintedText, results: &[(String, LabResult)]) -> Vec<Figure> {
    let repeated = block.here.iter().find_map(|name| {
        let (_, result) = results.iter().find(|(folder, _)| folder == name)?;
        let mut runs = result.as_published.iter();
        runs.find(|run| run.name == block.name)
    });
    repeated.map_or_else(Vec::new, |run| figures(&run.ours))
}

/// A table of the calls that strace counted, with our calls per request beside them.
fn table_of_calls(page: &PostPage<'_>, table: &PrintedText) -> anyhow::Result<String> {
    // This call happens once in each request.
    let per = table.requests.as_deref().unwrap_or_default();
    let requests =
        number(&table.figures, per).with_context(|| format!("{} has no call {per}", table.name))?;
    // The calls per request, for each program of ours.
    let programs = match first_cell(&table.calls, page.results)? {
        Some(cell) => cell.calls.values().collect(),
        None => Vec::new(),
    };
    let words = page.language.words();
    let caption = filled(words.calls, &[&table.name, page.phrase(&table.at)?, per]);
    let mut text = format!("\n{caption}\n\n{}", words.calls_heads);
    for call in &table.figures {
        // The other columns of a call are figures named `CALL, COLUMN`.
        if call.name.contains(", ") {
            continue;
        }
        let column = |column: &str| printed(&table.figures, &format!("{}, {column}", call.name));
        let count: f64 = programs
            .iter()
            .filter_map(|calls| calls.get(&call.name))
            .sum();
        let own = if count > 0.0 {
            format!("{count:.3}")
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.3} | {own} | {} | {} | {} |",
            call.name,
            call.printed,
            column("errors"),
            call.value / requests,
            column("% of time"),
            column("seconds"),
            column("µs a call")
        );
    }
    for (name, count) in programs.iter().flat_map(|calls| calls.iter()) {
        if number(&table.figures, name).is_none() && *count >= CALLS_MIN {
            let _ = writeln!(text, "| {name} | | | | {count:.3} | | | |");
        }
    }
    Ok(text)
}

/// Our cell at the first of `places` whose result is committed.
fn first_cell<'a>(
    places: &[CellPlace],
    results: &'a [(String, LabResult)],
) -> anyhow::Result<Option<&'a LabCell>> {
    let committed = places.iter().find_map(|place| {
        let (_, result) = results.iter().find(|(folder, _)| *folder == place.result)?;
        Some(cell(result, &place.cell))
    });
    committed.transpose()
}

/// Our throughput in a cell: the median, then the lowest and the highest run.
fn throughput(places: &[CellPlace], results: &[(String, LabResult)]) -> anyhow::Result<String> {
    let ours = first_cell(places, results)?;
    let rate = ours.and_then(|cell| cell.measures.get("throughput"));
    let rate = rate.map(|it| format!("{:.0} [{:.0}..{:.0}]", it.median, it.min, it.max));
    Ok(rate.unwrap_or_default())
}

/// Calls that are rarer than this, per request, are left out.
const CALLS_MIN: f64 = 0.005;
