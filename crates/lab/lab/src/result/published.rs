//! Compares published figures with ours, and names what they do not support.

use std::collections::{BTreeMap, BTreeSet};

use super::{AsPublishedResult, CallResult, CellResult, PublishedResult};
use crate::claim::{Outcome, number};
use crate::experiment::{Experiment, PublishedFigure, PublishedRatio, PublishedRun, Selection};
use crate::gate::{Effect, GateFinding};
use crate::judge;
use crate::published::{self, PublishedText};
use crate::result::{PrintedRun, StoredResult};

/// Each published figure with ours, and with the conclusions that it does not support.
pub(super) fn results(
    experiment: &Experiment,
    cells: &[CellResult],
    claims: &[Outcome],
) -> Vec<PublishedResult> {
    let runs = experiment.published.iter();
    let result = |run: &PublishedRun| {
        let (says, found) = theirs(run, &experiment.published)?;
        let cell = cells.iter().find(|cell| cell.levels == run.cell);
        let ours = match &run.figures {
            PublishedFigure::Text(_) => {
                cell.and_then(|cell| of_text(cell, run.name.contains("strace")))
            }
            PublishedFigure::Rate { .. } => cell.and_then(of_rate),
            PublishedFigure::Ratio {
                cells: sides,
                claim,
                ..
            } => of_ratio(*sides, claim.as_deref(), cells, claims),
        };
        Some(PublishedResult {
            calls: cell.map_or_else(Vec::new, |cell| calls(run, cell)),
            name: run.name.clone(),
            cell: run.cell.clone(),
            how: run.how,
            says,
            found,
            ours,
            ratio: ratio_of(run),
        })
    };
    runs.filter_map(result).collect()
}

/// The published ratio, or its range, of a row that compares two runs; `None` for other rows.
fn ratio_of(run: &PublishedRun) -> Option<PublishedRatio> {
    match &run.figures {
        PublishedFigure::Ratio {
            ratio, interval, ..
        } => ratio
            .map(PublishedRatio::One)
            .or_else(|| interval.map(PublishedRatio::Range)),
        _ => None,
    }
}

/// The published figure in words, and the conclusions that it does not support; `None` if it cannot be read.
fn theirs(run: &PublishedRun, all: &[PublishedRun]) -> Option<(String, Vec<GateFinding>)> {
    let figure = match &run.figures {
        PublishedFigure::Text(text) => return text_of(run, text),
        PublishedFigure::Rate { mean, interval } => {
            let mean =
                mean.map_or_else(|| "no figure at hand".to_owned(), |it| format!("{it} TPS"));
            format!("{mean}{}", between(*interval))
        }
        PublishedFigure::Ratio {
            ratio, interval, ..
        } => {
            let ratio = ratio.map_or_else(|| "×".to_owned(), |it| format!("×{it}"));
            format!("{ratio}{}", between(*interval))
        }
    };
    let says = format!("{}: {figure}, {}", run.name, run.says);
    Some((says, judge::check_row(run, all)))
}

fn between(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(String::new, |[low, high]| format!(" [{low}..{high}]"))
}

fn text_of(run: &PublishedRun, text: &str) -> Option<(String, Vec<GateFinding>)> {
    let texts = [(run.name.clone(), text.to_owned())];
    let judgement = judge::judge(&texts).ok()?.pop()?;
    let mut found = judgement.found;
    if run.how == Selection::BestOfSeveral {
        let words = judge::limit_of(run.how).to_owned();
        found.push(GateFinding::new("published", Effect::Note, words));
    }
    let note = run.note.iter();
    found.extend(note.map(|note| GateFinding::new("published", Effect::Note, note.clone())));
    Some((judgement.title, found))
}

/// The system calls of a published table for one request, there and here, the most frequent first;
/// empty for other figures.
fn calls(run: &PublishedRun, cell: &CellResult) -> Vec<CallResult> {
    let (PublishedFigure::Text(text), Some(requests)) = (&run.figures, run.requests) else {
        return Vec::new();
    };
    let Ok(PublishedText::Calls(theirs)) = published::parse(text) else {
        return Vec::new();
    };
    if cell.calls.is_empty() {
        return Vec::new(); // They are not counted here.
    }
    let each = |count: Option<&u64>| count.map_or(0.0, |count| *count as f64 / requests as f64);
    let of_cell = |name: &str| {
        cell.calls
            .values()
            .filter_map(|of| of.get(name))
            .sum::<f64>()
    };
    let names = cell.calls.values().flat_map(BTreeMap::keys);
    let names: BTreeSet<&String> = theirs.counts.keys().chain(names).collect();
    let call = |name: &String| CallResult {
        theirs: each(theirs.counts.get(name)),
        failed: each(theirs.errors.get(name)),
        ours: of_cell(name),
        name: name.clone(),
    };
    let mut calls: Vec<CallResult> = names.into_iter().map(call).collect();
    calls.retain(|call| call.theirs.max(call.ours) >= CALLS_MIN);
    calls.sort_by(|one, other| {
        let most = |call: &CallResult| call.theirs.max(call.ours);
        most(other).total_cmp(&most(one))
    });
    calls
}

/// The published runs that were made again: their output, ours, and the figures of the rounds for the same cell.
pub(super) fn again(stored: &StoredResult, cells: &[CellResult]) -> Vec<AsPublishedResult> {
    let result = |printed: &PrintedRun| {
        let mut runs = stored.experiment.as_published.iter();
        let run = runs.find(|run| run.name == printed.name)?;
        let cell = cells.iter().find(|cell| cell.levels == run.cell);
        Some(AsPublishedResult {
            name: run.name.clone(),
            theirs: block(&run.text),
            ours: block(&printed.text),
            deviations: printed.deviations.clone(),
            rounds: cell.and_then(|cell| of_text(cell, false)),
        })
    };
    stored.as_published.iter().filter_map(result).collect()
}

/// The part of ab's output from the server's name on.
fn block(text: &str) -> String {
    let from = ["Server Software:", "Document Length:", "Concurrency Level:"];
    let start = from.iter().filter_map(|head| text.find(head)).min();
    text[start.unwrap_or(0)..].trim_end().to_owned()
}

/// Our figures for a published text, in words; `None` if the cell has none.
fn of_text(cell: &CellResult, is_calls: bool) -> Option<String> {
    let value = |name: &str| cell.measures.get(name);
    if is_calls {
        let calls = value("syscalls")?;
        return Some(format!(
            "{:.1} system calls a request, of all processes",
            calls.median
        ));
    }
    let (rate, p50) = (value("throughput")?, value("p50")?);
    let p99 = value("p99").map_or_else(String::new, |p99| format!(", p99 {:.2} ms", p99.median));
    let max = cell
        .max_ms
        .map_or_else(String::new, |max| format!(", longest {max:.1} ms"));
    Some(format!(
        "{:.0}/s [{:.0}..{:.0}], p50 {:.2} ms{p99}{max}",
        rate.median, rate.min, rate.max, p50.median
    ))
}

/// Our rate in words, with the range of the runs, and of nine seconds in ten, as sources give it.
fn of_rate(cell: &CellResult) -> Option<String> {
    let rate = cell.measures.get("throughput")?;
    let seconds = cell.by_second.map_or_else(String::new, |[low, high]| {
        format!("; of the seconds nine in ten within {low:.0}..{high:.0}")
    });
    Some(format!(
        "{:.0}/s [{:.0}..{:.0}]{seconds}",
        rate.median, rate.min, rate.max
    ))
}

/// The ratio of our throughputs without a claim, and the sentence of the claim for it.
fn of_ratio(
    sides: Option<[usize; 2]>,
    claim: Option<&str>,
    cells: &[CellResult],
    claims: &[Outcome],
) -> Option<String> {
    let rate = |cell: usize| Some(cells.get(cell)?.measures.get("throughput")?.median);
    let ratio = sides.and_then(|[level, over]| Some(rate(level)? / rate(over)?));
    let ratio = ratio.map(|ratio| format!("×{} of the median throughputs.", number(ratio)));
    // A case with other cells, such as one with a distant application, is not about this row.
    let is_of_row = |outcome: &&Outcome| {
        let levels = sides.and_then(|[level, _]| Some(&cells.get(level)?.levels));
        let mut each = outcome.each.iter();
        levels.is_some_and(|levels| each.all(|(name, level)| levels.get(name) == Some(level)))
    };
    let outcomes = claims.iter().filter(|it| Some(it.says.as_str()) == claim);
    let outcomes = outcomes.filter(is_of_row);
    let sentences = outcomes.map(|it| it.sentence.clone());
    let all: Vec<String> = ratio.into_iter().chain(sentences).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// The least number of calls for each request that a table shows.
pub(crate) const CALLS_MIN: f64 = 0.005;
