//! `--versus`: runs the blocks of a comparison in turn and says the result.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_load::document::versus::{Measure, Versus};
use catamaran_load::gate::Verdict;
use catamaran_load::plan::Plan;
use catamaran_load::render::versus;
use catamaran_load::report::Ending;
use catamaran_load::versus::{Duel, MOVED, TOO_FEW};
use indicatif::ProgressBar;

use crate::output::{self, INTERRUPTED, UNDECIDED};
use crate::parts::{self, End};
use crate::refusal::{Refusal, RunKind};
use crate::server::Server;
use crate::settings::Settings;
use crate::{BenchFailure, Program, execution, flag, memcached, plan, refuse};

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
    let duel = match run_blocks(duel, is_shown, program, &interrupted) {
        Ok(duel) => duel,
        Err(end) => return end.report(name, mode),
    };
    let mut result = duel.finish();
    if !settings.checks.ratios.is_empty() {
        result.decide(&settings.checks.ratios);
    }
    parts::write(&settings, &versus::text(&result), &versus::json(&result))?;
    let is_whole = !interrupted.load(Ordering::Relaxed);
    Ok(if is_whole {
        exit_code(&result)
    } else {
        INTERRUPTED
    })
}

/// The exit code of a comparison that was not interrupted: by the verdict on its conditions if there are any, then by
/// whether there is a result.
fn exit_code(result: &Versus) -> u8 {
    let gate = result.gate.as_ref();
    let verdict = gate.and_then(|gate| Verdict::named(&gate.verdict));
    match verdict {
        Some(Verdict::Failed) => return 1,
        Some(Verdict::Undecided) => return UNDECIDED,
        Some(Verdict::Passed) | None => {}
    }
    if result.invalid.is_some() {
        return 1;
    }
    if result.died.is_some() {
        return UNDECIDED;
    }
    let has_verdict = |measure: &Measure| ![TOO_FEW, MOVED].contains(&measure.verdict.as_str());
    if verdict.is_some() || result.measures.iter().any(has_verdict) {
        0
    } else {
        UNDECIDED
    }
}

/// The comparison, and both plans: that of the URL typed and that of `--versus`. Fills in the default duration.
fn duel(settings: &mut Settings) -> Result<(Duel, [Plan; 2]), Refusal> {
    flag::check(&settings.flags, RunKind::Versus)?;
    if let Some(condition) = settings.checks.gate.conditions.first() {
        return Err(Refusal::NeedsRatio(condition.text.clone()));
    }
    // The time of each plan; `Duel` divides it into blocks.
    let span = settings.load.duration.get_or_insert(DURATION).to_owned();
    let other_url = settings.load.versus.clone().unwrap_or_default();
    let plan_a = plan::prepare(settings)?;
    settings.urls = vec![other_url];
    let plan_b = plan::prepare(settings)?;
    let plans = [plan_a, plan_b];
    let urls = [&plans[0], &plans[1]].map(|plan| plan.subject.url.clone());
    Ok((Duel::new(urls, plans.clone(), span), plans))
}

/// Runs all blocks, or those up to the interrupt.
fn run_blocks(
    mut duel: Duel,
    is_shown: bool,
    program: &Program,
    interrupted: &AtomicBool,
) -> Result<Duel, End> {
    let mut bar = None;
    while let Some(plan) = duel.next_plan() {
        let server = Server::of(&plan);
        let report = execution::part(plan, program, interrupted).map_err(End::Refused)?;
        if let Ending::Failure(error) = &report.ending {
            // If the first block fails, there is no result to keep: its error is reported as that of a single run.
            if duel.done() == 0 {
                return Err(End::Failed(BenchFailure::Fault(error.message.clone())));
            }
            duel.die(&error.message);
            break;
        }
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        let cpu = server.and_then(|server| server.used());
        duel.add(&report, cpu);
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
