//! One run, from its plan to its report: starts it, shows its progress, and ends it upon a signal.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_load::RunHandle;
use catamaran_load::plan::Plan;
use catamaran_load::render::ab;
use catamaran_load::report::{Ending, Report, Warning};

use crate::getopt::Mode;
use crate::progress::Display;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::{BenchFailure, Program, memcached, output, plan, refuse, replay};

/// Runs the load of a command line to its end, and prints the report; returns the exit code.
pub(crate) fn whole(
    name: &str,
    settings: &Settings,
    program: &Program,
) -> Result<u8, BenchFailure> {
    let file_name = Path::new(name).file_name().unwrap_or_default();
    // A complaint without a text ends the flags, as in ab, and says nothing.
    for complaint in settings.complaints.iter().filter(|text| !text.is_empty()) {
        writeln!(io::stderr(), "{}: {complaint}", file_name.to_string_lossy())?;
    }
    let plan = match plan::prepare(settings) {
        Ok(plan) => plan,
        Err(refusal) => return refuse(name, settings.mode, &refusal),
    };
    if let Some(refusal) = late_refusal(settings) {
        if settings.mode == Mode::Ab {
            let has_heartbeat = false;
            output::begin(settings, &plan, has_heartbeat)?;
        }
        return refuse(name, settings.mode, &refusal);
    }
    if let Some(replay) = &plan.replay {
        writeln!(io::stderr(), "{}", replay::summary(&replay.facts))?;
    }
    output::check_files(settings)?;
    let interrupted = program.interrupts(settings.mode)?;
    if let Some(code) = memcached::prefill(settings, &plan, program, &interrupted)? {
        return Ok(code);
    }
    let mut display = Display::new(settings, &plan);
    // The limit on open files. ab never raises it: it fails with "Too many open files".
    (program.raise_limit)();
    let running = match catamaran_load::start(plan.clone()) {
        Ok(running) => running,
        Err(fault) => return refuse(name, settings.mode, &Refusal::Plan(fault)),
    };
    let has_heartbeat = display.has_heartbeat();
    output::begin(settings, &plan, has_heartbeat)?;
    let mut report = watch(running, &mut display, &interrupted);
    if settings.mode == Mode::Ours {
        warn_of_build(&mut report, program);
    }
    conclude(settings, &plan, report, display)
}

/// Runs one of several parts, such as a step of `bench knee`, to its end or until it is interrupted.
pub(crate) fn part(
    plan: Plan,
    program: &Program,
    interrupted: &AtomicBool,
) -> Result<Report, Refusal> {
    let mut running = catamaran_load::start(plan)?;
    let stopper = running.stopper();
    while !running.wait(TICK) {
        if interrupted.load(Ordering::Relaxed) {
            stopper.stop();
        }
    }
    let mut report = running.finish();
    warn_of_build(&mut report, program);
    Ok(report)
}

/// Refusals that ab prints only after its first line: an unknown source address; no clients, since
/// it has nothing to wait for. ab's trunk takes `-c 0` for one client per thread of `-W`.
fn late_refusal(settings: &Settings) -> Option<Refusal> {
    let load = &settings.load;
    if let Some(source) = &settings.connection.unknown_source {
        return Some(Refusal::Source(source.clone()));
    }
    let has_no_clients =
        settings.mode == Mode::Ab && load.concurrency == Some(0) && load.threads.is_none();
    has_no_clients.then_some(Refusal::NoClients)
}

/// Ends the display of progress, and writes what follows the last response; returns the exit code.
fn conclude(
    settings: &Settings,
    plan: &Plan,
    report: Report,
    display: Display,
) -> Result<u8, BenchFailure> {
    let has_heartbeat = display.has_heartbeat();
    match report.ending {
        // ab has no last line for runs that are stopped.
        Ending::Failure(_) | Ending::Idle | Ending::Stopped if settings.mode == Mode::Ab => {}
        _ => display.finish(ab::complete_requests(&report)),
    }
    output::end(settings, plan, report, has_heartbeat)
}

/// Shows the run's progress until it ends, and stops it once `interrupted` is true.
fn watch(mut running: RunHandle, display: &mut Display, interrupted: &AtomicBool) -> Report {
    let stopper = running.stopper();
    while !running.wait(TICK) {
        if interrupted.load(Ordering::Relaxed) {
            stopper.stop();
        }
        display.show(&running.progress());
    }
    running.finish()
}

/// Adds the warning that this is a slow build after the warnings of the run.
fn warn_of_build(report: &mut Report, program: &Program) {
    let profile = program.slow_profile;
    report.warnings.extend(profile.map(Warning::Build));
}

/// The interval at which progress is shown and signals are looked for.
const TICK: Duration = Duration::from_millis(100);
