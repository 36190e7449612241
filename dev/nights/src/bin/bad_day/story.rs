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
    // The first server is the front.
    verdict.never("request fails before it begins", failures(&calm[0]));
    let titles = Kind::ALL.map(Kind::name).join(" | ");
    println!("| what happens | {titles} | `catamaran status` within 5 s |\n|---|---|---|---|---|");
    for event in &DAY {
        live_through(event, &mut stage, &visitors, &mut verdict)?;
    }
    println!("\n{}", stage.servers[0].log());
    Ok(verdict)
}

/// Begins and ends one event, prints its row, and judges whether `status` reports it and whether requests fail.
fn live_through(
    event: &Event,
    stage: &mut Stage,
    visitors: &Visitors,
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    let (calm, before) = (stage.status()?, visitors.counts());
    let guard = (event.begin)(stage)?;
    let report = reported_by_status(event, &calm, stage)?;
    // `TOLD_WITHIN` of the event has passed already.
    wait(event.lasts.saturating_sub(TOLD_WITHIN));
    drop(guard);
    (event.end)(stage)?;
    wait(CALM);
    let after = visitors.counts();
    let servers = before.iter().zip(&after);
    let cells: Vec<String> = servers.map(|(before, after)| cell(before, after)).collect();
    let line = report.as_deref().unwrap_or("nothing");
    println!("| {} | {} | {line} |", event.title, cells.join(" | "));
    let claim = format!("status tells: {}", event.title);
    verdict.judge(&claim, line, report.is_some());
    if event.is_harmless {
        let failed = failures(&after[0]) - failures(&before[0]);
        verdict.never(&format!("request fails: {}", event.title), failed);
    }
    Ok(())
}

/// The line of `status` that reports an event and was not there before; `None` if there is none within
/// [`TOLD_WITHIN`], for all of which this waits.
#[expect(clippy::disallowed_methods, reason = "what is judged here is a time")]
fn reported_by_status(event: &Event, calm: &str, stage: &Stage) -> anyhow::Result<Option<String>> {
    let began = Instant::now();
    let mut report = None;
    let mut status = String::new();
    while began.elapsed() < TOLD_WITHIN {
        if report.is_none() {
            status = stage.status()?;
            let mut new_lines = status.lines().filter(|line| !calm.contains(*line));
            let is_about_event = |line: &&str| event.told_by.iter().any(|word| line.contains(word));
            let line = new_lines.find(is_about_event);
            report = line.map(|line| format!("`{}`", line.trim()));
        }
        wait(Duration::from_millis(250));
    }
    if report.is_none() {
        println!("status does not tell of it:\n{status}");
    }
    Ok(report)
}

/// A cell of the table: how many of how many requests failed, and how often each failure occurred.
fn cell(before: &Counts, after: &Counts) -> String {
    let (mut total, mut failed) = (0, 0);
    let mut failures = Vec::new();
    for (outcome, count) in after {
        let new = count - before.get(outcome).copied().unwrap_or(0);
        total += new;
        if outcome != "200" && new > 0 {
            failed += new;
            failures.push(format!("{outcome}: {new}"));
        }
    }
    match failed {
        0 => format!("0 of {total}"),
        _ => format!("**{failed}** of {total} ({})", failures.join(", ")),
    }
}

fn failures(counts: &Counts) -> u64 {
    let failures = counts.iter().filter(|(outcome, _)| *outcome != "200");
    failures.map(|(_, count)| count).sum()
}

fn wait(time: Duration) {
    thread::park_timeout(time);
}

/// Time before the first and after each event.
const CALM: Duration = Duration::from_secs(5);
/// Within this time `status` must report an event.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
