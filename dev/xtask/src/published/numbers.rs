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
    let (tables, blocks): (Vec<&PrintedText>, Vec<&PrintedText>) =
        source.texts.iter().partition(|it| it.requests.is_some());
    text += &table_of_blocks(page, &blocks)?;
    for table in tables {
        text += &table_of_calls(page, table)?;
    }
    if source.numbers.iter().any(|it| it.from.is_some()) {
        let _ = writeln!(text, "\n{}", words.intervals);
    }
    if !source.numbers.is_empty() {
        text += "\n";
        text += words.numbers_heads;
    }
    for it in &source.numbers {
        let interval = it.from.zip(it.to);
        let interval = interval.map_or_else(String::new, |(from, to)| format!(" [{from}..{to}]"));
        let ours = throughput(&it.here, page.results)?;
        let (what, at) = (page.phrase(&it.what)?, page.phrase(&it.at)?);
        let _ = writeln!(text, "| {what} | {at} | {}{interval} | {ours} |", it.value);
    }
    text += "\n";
    text += words.settings_heads;
    for setting in &source.settings {
        let [what, value, at] = setting.each_ref().map(|it| page.phrase(it));
        let _ = writeln!(text, "| {} | {} | {} |", what?, at?, value?);
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
    let ours: Vec<_> = blocks
        .iter()
        .map(|block| repeated_figures(block, page.results))
        .collect();
    for block in blocks {
        let at = page.phrase(&block.at)?;
        let _ = write!(
            text,
            " {}{}{at} | {} |",
            block.name, words.comma, words.here
        );
    }
    text += "\n|---|";
    text += &"---|---|".repeat(blocks.len());
    text += "\n";
    for Figure { name, .. } in &first.figures {
        let _ = write!(text, "| {name} |");
        let printed = |figures: &[Figure]| {
            let found = figures.iter().find(|it| it.name == *name);
            found.map_or_else(String::new, |it| it.printed.clone())
        };
        for (block, ours) in blocks.iter().zip(&ours) {
            let _ = write!(text, " {} | {} |", printed(&block.figures), printed(ours));
        }
        text += "\n";
    }
    // Some fields are only in later texts, such as the number of responses on kept connections.
    let is_new = |name: &str| number(&first.figures, name).is_none();
    for (place, block) in blocks.iter().enumerate() {
        for figure in block.figures.iter().filter(|it| is_new(&it.name)) {
            let mut cells = vec![String::new(); blocks.len() * 2];
            cells[place * 2].clone_from(&figure.printed);
            let here = ours[place].iter().find(|it| it.name == figure.name);
            cells[place * 2 + 1] = here.map_or_else(String::new, |it| it.printed.clone());
            let _ = writeln!(text, "| {} | {} |", figure.name, cells.join(" | "));
        }
    }
    Ok(text)
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
    let per = table.requests.as_deref().unwrap_or_default();
    let requests = number(&table.figures, per);
    let requests = requests.with_context(|| format!("{} has no call {per}", table.name))?;
    let ours = first_cell(&table.calls, page.results)?;
    let ours = ours.map_or_else(Vec::new, |cell| cell.calls.values().collect());
    let words = page.language.words();
    let caption = filled(words.calls, &[&table.name, page.phrase(&table.at)?, per]);
    let mut text = format!("\n{caption}\n\n{}", words.calls_heads);
    let calls = table.figures.iter().filter(|it| !it.name.contains(", "));
    for call in calls {
        let beside = |column: &str| {
            let name = format!("{}, {column}", call.name);
            let found = table.figures.iter().find(|it| it.name == name);
            found.map_or_else(String::new, |it| it.printed.clone())
        };
        let count: f64 = ours.iter().filter_map(|of| of.get(&call.name)).sum();
        let here = if count > 0.0 {
            format!("{count:.3}")
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.3} | {here} | {} | {} | {} |",
            call.name,
            call.printed,
            beside("errors"),
            call.value / requests,
            beside("% of time"),
            beside("seconds"),
            beside("µs a call")
        );
    }
    let is_new = |name: &str| number(&table.figures, name).is_none();
    let others = ours.iter().flat_map(|of| of.iter());
    let others = others.filter(|(name, count)| is_new(name) && **count >= CALLS_MIN);
    for (name, count) in others {
        let _ = writeln!(text, "| {name} | | | | {count:.3} | | | |");
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
