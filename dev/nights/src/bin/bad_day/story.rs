//! Runs the day, and prints the table of its results.

use std::thread;
use std::time::{Duration, Instant};

use catamaran_nights::Verdict;

use crate::event::{DAY, Event};
use crate::servers::Kind;
use crate::stage::Stage;
use crate::visitors::{Counts, Visitors};

pub(crate) fn run() -> anyhow::Result<Verdict> {
    let mut stage = Stage::build()?;
    let visitors = Visitors::of(&stage.servers, stage.authority_file());
    wait(CALM);
    let mut verdict = Verdict::default();
    let calm = visitors.counts();
    verdict.never("request fails before it begins", failures(&calm[0]));
    let titles = Kind::ALL.map(Kind::name).join(" | ");
    println!("| what happens | {titles} | `catamaran status` within 5 s |\n|---|---|---|---|---|");
    for event in &DAY {
        live_through(event, &mut stage, &visitors, &mut verdict)?;
    }
    println!("\n{}", stage.servers[0].log());
    Ok(verdict)
}

fn live_through(
    event: &Event,
    stage: &mut Stage,
    visitors: &Visitors,
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    let (calm, before) = (stage.status()?, visitors.counts());
    let held = (event.begin)(stage)?;
    let told = told(event, &calm, stage)?;
    wait(event.lasts.saturating_sub(TOLD_WITHIN));
    drop(held);
    (event.end)(stage)?;
    wait(CALM);
    let after = visitors.counts();
    let cells: Vec<String> = before
        .iter()
        .zip(&after)
        .map(|(before, after)| cell(before, after))
        .collect();
    let said = told.as_deref().unwrap_or("nothing");
    println!("| {} | {} | {said} |", event.title, cells.join(" | "));
    verdict.judge(
        &format!("status tells: {}", event.title),
        said,
        told.is_some(),
    );
    if event.is_harmless {
        let failed = failures(&after[0]) - failures(&before[0]);
        verdict.never(&format!("request fails: {}", event.title), failed);
    }
    Ok(())
}

/// The line of `status` that reports an event and was not there before; `None` if there is none within
/// [`TOLD_WITHIN`], for all of which this waits.
#[expect(clippy::disallowed_methods, reason = "what is judged here is a time")]
fn told(event: &Event, calm: &str, stage: &Stage) -> anyhow::Result<Option<String>> {
    let began = Instant::now();
    let mut told = None;
    let mut status = String::new();
    while began.elapsed() < TOLD_WITHIN {
        if told.is_none() {
            status = stage.status()?;
            let mut lines = status.lines().filter(|line| !calm.contains(*line));
            let tells = |line: &&str| event.told_by.iter().any(|word| line.contains(word));
            told = lines.find(tells).map(|line| format!("`{}`", line.trim()));
        }
        wait(Duration::from_millis(250));
    }
    if told.is_none() {
        println!("status does not tell of it:\n{status}");
    }
    Ok(told)
}

/// A cell of the table: how many of how many requests failed, and how often each failure occurred.
fn cell(before: &Counts, after: &Counts) -> String {
    let ended = |what: &String, count: &u64| count - before.get(what).copied().unwrap_or(0);
    let total: u64 = after.iter().map(|(what, count)| ended(what, count)).sum();
    let failed = after.iter().filter(|(what, _)| *what != "200");
    let failed = failed.map(|(what, count)| (what, ended(what, count)));
    let kinds: Vec<_> = failed.filter(|(_, count)| *count > 0).collect();
    let sum: u64 = kinds.iter().map(|(_, count)| count).sum();
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(what, count)| format!("{what}: {count}"))
        .collect();
    match sum {
        0 => format!("0 of {total}"),
        _ => format!("**{sum}** of {total} ({})", kinds.join(", ")),
    }
}

fn failures(counts: &Counts) -> u64 {
    counts
        .iter()
        .filter(|(what, _)| *what != "200")
        .map(|(_, count)| count)
        .sum()
}

fn wait(time: Duration) {
    thread::park_timeout(time);
}

/// Time before the first and after each event.
const CALM: Duration = Duration::from_secs(5);
/// Within this time `status` must report an event.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
