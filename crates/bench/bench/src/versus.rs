//! `--versus`: runs the blocks of a comparison in turn and says the result.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_load::plan::Plan;
use catamaran_load::render::versus;
use catamaran_load::versus::{Duel, TOO_FEW};
use indicatif::ProgressBar;

use crate::output::{self, INTERRUPTED, UNDECIDED};
use crate::parts::{self, End};
use crate::refusal::{Refusal, RunKind};
use crate::settings::Settings;
use crate::{BenchFailure, Program, flag, memcached, plan, refuse};

/// Compares the URLs that were typed with the one of `--versus`.
pub(crate) fn run(
    name: &str,
    mut settings: Settings,
    program: &Program,
) -> Result<u8, BenchFailure> {
    let mode = settings.mode;
    let (duel, plans) = match duel(&mut settings) {
        Ok(duel) => duel,
        Err(refusal) => return refuse(name, mode, &refusal),
    };
    output::check_files(&settings)?;
    let interrupted = program.interrupts(mode)?;
    (program.raise_limit)();
    for plan in &plans {
        if let Some(code) = memcached::prefill(&settings, plan, program, &interrupted)? {
            return Ok(code);
        }
    }
    let is_shown = !settings.output.quiet && io::stderr().is_terminal();
    let duel = match fight(duel, is_shown, program, &interrupted) {
        Ok(duel) => duel,
        Err(end) => return end.told(name, mode),
    };
    let result = duel.finish();
    parts::write(&settings, &versus::text(&result), &versus::json(&result))?;
    let has_verdict = result
        .measures
        .iter()
        .any(|measure| measure.verdict != TOO_FEW);
    let is_whole = !interrupted.load(Ordering::Relaxed);
    Ok(match (is_whole, has_verdict) {
        (false, _) => INTERRUPTED,
        (true, true) => 0,
        (true, false) => UNDECIDED,
    })
}

/// The comparison, and both plans.
fn duel(settings: &mut Settings) -> Result<(Duel, [Plan; 2]), Refusal> {
    flag::check(&settings.flags, RunKind::Versus)?;
    let span = settings.load.duration.get_or_insert(DURATION).to_owned();
    let other_url = settings.load.versus.take().unwrap_or_default();
    let one = plan::prepare(settings)?;
    settings.urls = vec![other_url];
    let other = plan::prepare(settings)?;
    let urls = [&one, &other].map(|plan| plan.subject.url.clone());
    let plans = [one, other];
    Ok((Duel::new(urls, plans.clone(), span), plans))
}

/// Runs all blocks, or those up to the interrupt.
fn fight(
    mut duel: Duel,
    is_shown: bool,
    program: &Program,
    interrupted: &AtomicBool,
) -> Result<Duel, End> {
    let mut bar = None;
    while let Some(plan) = duel.next_plan() {
        let Some(report) = parts::run(plan, program, interrupted)? else {
            break;
        };
        duel.add(&report);
        if is_shown {
            let bar = bar.get_or_insert_with(|| ProgressBar::new(duel.blocks() as u64));
            bar.set_position(duel.done() as u64);
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(duel)
}

/// The default duration of a comparison: twelve pairs of half a second each.
const DURATION: Duration = Duration::from_secs(12);
