//! Compares published figures with ours, and names what they do not support.

use std::collections::{BTreeMap, BTreeSet};

use super::{AsPublishedResult, CallResult, CellResult, PublishedResult};
use crate::claim::{Outcome, number};
use crate::experiment::{
    ERA, Experiment, Levels, PublishedFigure, PublishedRatio, PublishedRun, Selection,
    are_alike_but_for_era,
};
use crate::gate::{Effect, GateFinding};
use crate::judge;
use crate::published::{self, PublishedText};
use crate::result::StoredResult;

/// Each published figure with ours, and with the conclusions that it does not support.
pub(super) fn results(
    experiment: &Experiment,
    cells: &[CellResult],
    claims: &[Outcome],
) -> Vec<PublishedResult> {
    let mut results = Vec::new();
    for run in &experiment.published {
        let Some((says, found)) = theirs(run, &experiment.published) else {
            continue;
        };
        let of_run = cells_of(&run.cell, cells);
        let ours = match &run.figures {
            PublishedFigure::Text(_) if run.name.contains("strace") => in_eras(&of_run, calls_text),
            PublishedFigure::Text(_) => in_eras(&of_run, latency_text),
            PublishedFigure::Rate { .. } => in_eras(&of_run, of_rate),
            PublishedFigure::Ratio {
                cells: sides,
                claim,
                ..
            } => of_ratio(*sides, claim.as_deref(), cells, claims),
        };
        results.push(PublishedResult {
            calls: of_run
                .first()
                .map_or_else(Vec::new, |cell| calls(run, cell)),
            name: run.name.clone(),
            cell: run.cell.clone(),
            how: run.how,
            says,
            found,
            ours,
            ratio: ratio_of(run),
        });
    }
    results
}

/// The cells with the levels of a published run: one, or one for each era if the run does not name one. The era of the
/// published test is the first in files.
fn cells_of<'a>(published: &Levels, cells: &'a [CellResult]) -> Vec<&'a CellResult> {
    let is_of_run = |cell: &&CellResult| {
        if published.contains_key(ERA) {
            cell.levels == *published
        } else {
            are_alike_but_for_era(&cell.levels, published)
        }
    };
    cells.iter().filter(is_of_run).collect()
}

/// Our figure in words; with several eras, that of each. `None` if no cell has one.
fn in_eras(cells: &[&CellResult], words: impl Fn(&CellResult) -> Option<String>) -> Option<String> {
    let figure = |cell: &&CellResult| {
        let words = words(cell)?;
        Some(match cell.levels.get(ERA) {
            Some(era) => format!("{era}: {words}"),
            None => words,
        })
    };
    let figures: Vec<String> = cells.iter().filter_map(figure).collect();
    (!figures.is_empty()).then(|| figures.join("; "))
}

/// The published ratio, or its range, of a row that compares two runs; `None` for other rows.
fn ratio_of(run: &PublishedRun) -> Option<PublishedRatio> {
    match &run.figures {
        PublishedFigure::Ratio {
            ratio: Some(ratio), ..
        } => Some(PublishedRatio::One(*ratio)),
        PublishedFigure::Ratio { interval, .. } => interval.map(PublishedRatio::Range),
        PublishedFigure::Text(_) | PublishedFigure::Rate { .. } => None,
    }
}

/// The published figure in words, and the conclusions that it does not support; `None` if it cannot be read.
fn theirs(run: &PublishedRun, rows: &[PublishedRun]) -> Option<(String, Vec<GateFinding>)> {
    let (figure, interval) = match &run.figures {
        PublishedFigure::Text(text) => return text_of(run, text),
        PublishedFigure::Rate { mean, interval } => match mean {
            Some(mean) => (format!("{mean} TPS"), interval),
            None => ("no figure at hand".to_owned(), interval),
        },
        PublishedFigure::Ratio {
            ratio, interval, ..
        } => match ratio {
            Some(ratio) => (format!("×{ratio}"), interval),
            None => ("×".to_owned(), interval),
        },
    };
    let interval = match interval {
        Some([low, high]) => format!(" [{low}..{high}]"),
        None => String::new(),
    };
    let says = format!("{}: {figure}{interval}, {}", run.name, run.says);
    Some((says, judge::check_row(run, rows)))
}

/// As [`theirs`], for the text of a tool.
fn text_of(run: &PublishedRun, text: &str) -> Option<(String, Vec<GateFinding>)> {
    let texts = [(run.name.clone(), text.to_owned())];
    let judgement = judge::judge(&texts).ok()?.pop()?;
    let mut found = judgement.found;
    if run.how == Selection::BestOfSeveral {
        let words = judge::limit_of(run.how).to_owned();
        found.push(GateFinding::new("published", Effect::Note, words));
    }
    if let Some(note) = &run.note {
        found.push(GateFinding::new("published", Effect::Note, note.clone()));
    }
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
        return Vec::new(); // Our runs have not counted calls.
    }
    let by_request =
        |count: Option<&u64>| count.map_or(0.0, |count| *count as f64 / requests as f64);
    let our_names = cell.calls.values().flat_map(BTreeMap::keys);
    let names: BTreeSet<&String> = theirs.counts.keys().chain(our_names).collect();
    let call = |name: &String| CallResult {
        theirs: by_request(theirs.counts.get(name)),
        failed: by_request(theirs.errors.get(name)),
        ours: cell
            .calls
            .values()
            .filter_map(|server| server.get(name))
            .sum(),
        name: name.clone(),
    };
    let mut calls: Vec<CallResult> = names.into_iter().map(call).collect();
    let larger = |call: &CallResult| call.theirs.max(call.ours);
    calls.retain(|call| larger(call) >= CALLS_MIN);
    calls.sort_by(|one, other| larger(other).total_cmp(&larger(one)));
    calls
}

/// The published runs that were made again: their output, ours, and the figures of the rounds for the same cell. Runs
/// that the experiment does not have any more are left out.
pub(super) fn repeated_runs(stored: &StoredResult, cells: &[CellResult]) -> Vec<AsPublishedResult> {
    let mut results = Vec::new();
    for printed in &stored.as_published {
        let mut runs = stored.experiment.as_published.iter();
        let Some(run) = runs.find(|run| run.name == printed.name) else {
            continue;
        };
        let cell = cells.iter().find(|cell| cell.levels == run.cell);
        results.push(AsPublishedResult {
            name: run.name.clone(),
            theirs: block(&run.text),
            ours: block(&printed.text),
            deviations: printed.deviations.clone(),
            rounds: cell.and_then(latency_text),
        });
    }
    results
}

/// The part of ab's output from the server's name on, or from a later line if a published text has no name.
fn block(text: &str) -> String {
    let first_lines = ["Server Software:", "Document Length:", "Concurrency Level:"];
    let start = first_lines.iter().filter_map(|line| text.find(line)).min();
    text[start.unwrap_or(0)..].trim_end().to_owned()
}

/// Our number of system calls for a published table of `strace`, in words; `None` if the cell has none.
fn calls_text(cell: &CellResult) -> Option<String> {
    let calls = cell.measures.get("syscalls")?;
    Some(format!(
        "{:.1} system calls a request, of all processes",
        calls.median
    ))
}

/// Our rate and times for the published output of a load generator, in words; `None` if the cell has none.
fn latency_text(cell: &CellResult) -> Option<String> {
    let value = |name: &str| cell.measures.get(name);
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
    // A row whose cells we do not run is not ours.
    let [above, below] = sides?;
    let (above, below) = (cells.get(above)?, cells.get(below));
    let rate = |cell: &CellResult| Some(cell.measures.get("throughput")?.median);
    let mut sentences = Vec::new();
    if let (Some(rate_above), Some(rate_below)) = (rate(above), below.and_then(rate)) {
        let ratio = number(rate_above / rate_below);
        sentences.push(format!("×{ratio} of the median throughputs."));
    }
    for outcome in claims {
        // A case with other cells, such as one with a distant application, is not about this row; one of another era is.
        let mut each = outcome.each.iter();
        let is_of_row =
            each.all(|(name, level)| name == ERA || above.levels.get(name) == Some(level));
        if is_of_row && Some(outcome.says.as_str()) == claim {
            sentences.push(outcome.sentence.clone());
        }
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// The least number of calls for each request that a table shows.
pub(crate) const CALLS_MIN: f64 = 0.005;
