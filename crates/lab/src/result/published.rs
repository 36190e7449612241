//! Published figures beside ours, and what theirs cannot carry.

use super::{CellResult, PublishedResult};
use crate::claim::{Outcome, number};
use crate::experiment::{Experiment, Figures, How, PublishedRun};
use crate::gate::{self, Effect, Fired};
use crate::judge;

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
            Figures::Text(_) => cell.and_then(|cell| of_text(cell, run.name.contains("strace"))),
            Figures::Rate { .. } => cell.and_then(of_rate),
            Figures::Ratio {
                cells: sides,
                claim,
                ..
            } => of_ratio(*sides, claim.as_deref(), cells, claims),
        };
        Some(PublishedResult {
            name: run.name.clone(),
            cell: run.cell.clone(),
            how: run.how,
            says,
            found,
            ours,
        })
    };
    runs.filter_map(result).collect()
}

/// What was published, and what it cannot carry.
fn theirs(run: &PublishedRun, all: &[PublishedRun]) -> Option<(String, Vec<Fired>)> {
    let figure = match &run.figures {
        Figures::Text(text) => return text_of(run, text),
        Figures::Rate { mean, interval } => {
            let mean =
                mean.map_or_else(|| "no figure at hand".to_owned(), |it| format!("{it} TPS"));
            format!("{mean}{}", between(*interval))
        }
        Figures::Ratio {
            ratio, interval, ..
        } => {
            let ratio = ratio.map_or_else(|| "×".to_owned(), |it| format!("×{it}"));
            format!("{ratio}{}", between(*interval))
        }
    };
    let says = format!("{}: {figure}, {}", run.name, run.says);
    Some((says, gate::published::check(run, all)))
}

fn between(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(String::new, |[low, high]| format!(" [{low}..{high}]"))
}

fn text_of(run: &PublishedRun, text: &str) -> Option<(String, Vec<Fired>)> {
    let texts = [(run.name.clone(), text.to_owned())];
    let judgement = judge::judge(&texts).ok()?.pop()?;
    let mut found = judgement.found;
    if run.how == How::BestOfSeveral {
        let words = gate::published::how(run.how).to_owned();
        found.push(Fired::new("published", Effect::Note, words));
    }
    Some((judgement.title, found))
}

/// Our figures for what a text says.
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

/// Our rate, and between what most seconds lie, as the sources' intervals say it.
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

/// The ratio of our throughputs, which nothing is claimed of, and what the claim beside it says.
fn of_ratio(
    sides: Option<[usize; 2]>,
    claim: Option<&str>,
    cells: &[CellResult],
    claims: &[Outcome],
) -> Option<String> {
    let rate = |cell: usize| Some(cells.get(cell)?.measures.get("throughput")?.median);
    let ratio = sides.and_then(|[level, over]| Some(rate(level)? / rate(over)?));
    let ratio = ratio.map(|ratio| format!("×{} of the median throughputs.", number(ratio)));
    let outcomes = claims.iter().filter(|it| Some(it.says.as_str()) == claim);
    let sentences = outcomes.map(|it| it.sentence.clone());
    let all: Vec<String> = ratio.into_iter().chain(sentences).collect();
    (!all.is_empty()).then(|| all.join(" "))
}
