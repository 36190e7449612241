//! `bench`: the load generator, which takes ab's command lines and, called as `ab`, is one.
//!
//! The command line is parsed by own rules and not by clap, because ab's must hold exactly: `getopt`
//! splits it by the table in `flag`, `typed` holds what was typed, and `plan` turns that into a plan.
//! `load` runs the plan; `progress` and `output` print what came of it.

mod data;
mod flag;
mod getopt;
mod habit;
mod help;
mod knee;
mod memcached;
mod merge;
mod number;
mod operand;
mod output;
mod page;
mod plan;
mod progress;
mod refusal;
pub(crate) mod replay;
mod requests;
mod schedstat;
mod target;
mod typed;
mod url;
mod versus;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_load::Running;
use catamaran_load::plan::Plan;
use catamaran_load::render::ab;
use catamaran_load::report::{Ending, Report, Warning};
use getopt::Mode;
use plan::Prepared;
use progress::Display;
use refusal::{AB_INVALID, AbEnd, Refusal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag as signal_flag;
use typed::{Asked, Typed};

use crate::descriptors;
use crate::failure::Failure;
use crate::profile;

/// Send load to a server and report rate, latency and errors; accepts ab's command lines
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// ab's flags, ours, and the URL
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS|URL"
    )]
    arguments: Vec<OsString>,
}

/// Runs `catamaran bench`.
pub(crate) fn run(args: Args) -> ExitCode {
    let (mode, line) = match mode_and_line(args.arguments) {
        Ok(said) => said,
        Err(failure) => return failure.exit(),
    };
    let done = bench("ab", mode, &line);
    match mode {
        Mode::Ab => outcome(done),
        Mode::Ours => done.unwrap_or_else(fault_as_2),
    }
}

/// Whether the program was called as `ab`, by the name that is its zeroth argument.
pub(crate) fn is_ab(name: &OsString) -> bool {
    Path::new(name).file_name().is_some_and(|name| name == "ab")
}

/// Runs as `ab`; `name` is what it was called by.
pub(crate) fn run_as_ab(name: &OsString, arguments: Vec<OsString>) -> ExitCode {
    let name = name.to_string_lossy();
    outcome(mode_and_line(arguments).and_then(|(_, line)| bench(&name, Mode::Ab, &line)))
}

fn outcome(outcome: Result<ExitCode, Failure>) -> ExitCode {
    outcome.unwrap_or_else(Failure::exit)
}

/// What could not be done is 2 here, since 1 is said of the server.
fn fault_as_2(failure: Failure) -> ExitCode {
    match &failure {
        Failure::Fault(_) | Failure::Said(_) => {
            failure.say();
            ExitCode::from(2)
        }
        Failure::Usage(_) | Failure::OutputClosed => failure.exit(),
    }
}

/// Takes `--compat ab` out of the line, because what the rest means depends on it.
fn mode_and_line(arguments: Vec<OsString>) -> Result<(Mode, Vec<String>), Failure> {
    let mut line = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let text = argument.into_string().map_err(|argument| {
            let shown = argument.to_string_lossy();
            Failure::Usage(format!("the argument {shown:?} is not UTF-8"))
        })?;
        line.push(text);
    }
    let pair = line.windows(2).position(|pair| pair == ["--compat", "ab"]);
    if let Some(at) = pair {
        line.drain(at..at + 2);
        return Ok((Mode::Ab, line));
    }
    if let Some(at) = line.iter().position(|text| text == "--compat=ab") {
        line.remove(at);
        return Ok((Mode::Ab, line));
    }
    Ok((Mode::Ours, line))
}

/// Does what the line asks for. `name` is what ab calls itself.
fn bench(name: &str, mode: Mode, line: &[String]) -> Result<ExitCode, Failure> {
    if mode == Mode::Ours && line.first().is_some_and(|word| word == page::WORD) {
        return page::run(&line[1..]);
    }
    if mode == Mode::Ours && line.first().is_some_and(|word| word == merge::WORD) {
        return merge::run(&line[1..]);
    }
    let (is_knee, line) = match line.split_first() {
        Some((first, rest)) if mode == Mode::Ours && first == "knee" => (true, rest),
        _ => (false, line),
    };
    match typed::read(line, mode) {
        Ok(Asked::Run(typed)) if is_knee => knee::run(name, *typed),
        Ok(Asked::Run(typed)) if typed.versus.is_some() => versus::run(name, *typed),
        Ok(Asked::Run(typed)) => load(name, &typed),
        Ok(Asked::Help) if mode == Mode::Ab => {
            write!(io::stderr(), "{}", help::ab_usage(name))?;
            Ok(ExitCode::from(AB_INVALID))
        }
        Ok(Asked::Help) => {
            write!(io::stdout(), "{}", help::ours())?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Asked::Version { html }) if mode == Mode::Ab => {
            write!(io::stdout(), "{}", help::ab_banner(html))?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Asked::Version { .. }) => {
            writeln!(io::stdout(), "catamaran {}", profile::VERSION)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(refusal) => refuse(name, mode, &refusal),
    }
}

/// Says why a line makes no sense.
fn refuse(name: &str, mode: Mode, refusal: &Refusal) -> Result<ExitCode, Failure> {
    if mode == Mode::Ours {
        return Err(Failure::Usage(format!(
            "{refusal}; `catamaran bench --help` lists the flags"
        )));
    }
    let mut stderr = io::stderr().lock();
    Ok(match refusal.as_ab() {
        AbEnd::Usage(words) => {
            write!(stderr, "{name}: {words}\n{}", help::ab_usage(name))?;
            ExitCode::from(AB_INVALID)
        }
        AbEnd::Fatal(words) => {
            writeln!(stderr, "{words}")?;
            ExitCode::FAILURE
        }
        AbEnd::Apr(words, code) => {
            writeln!(stderr, "{words}")?;
            ExitCode::from(code)
        }
    })
}

/// Runs the load to its end and reports.
fn load(name: &str, typed: &Typed) -> Result<ExitCode, Failure> {
    let file_name = Path::new(name).file_name().unwrap_or_default();
    for complaint in typed.complaints.iter().filter(|text| !text.is_empty()) {
        writeln!(io::stderr(), "{}: {complaint}", file_name.to_string_lossy())?;
    }
    let prepared = match plan::prepare(typed) {
        Ok(prepared) => prepared,
        Err(refusal) => return refuse(name, typed.mode, &refusal),
    };
    if let Some(refusal) = late_refusal(typed) {
        if typed.mode == Mode::Ab {
            output::begin(typed, &prepared, false)?;
        }
        return refuse(name, typed.mode, &refusal);
    }
    if let Some(log) = &prepared.replayed {
        writeln!(io::stderr(), "{}", log.summary())?;
    }
    output::check_files(typed)?;
    let interrupted = catch_interrupts(typed.mode)?;
    if let Some(code) = memcached::prefill(typed, &prepared.plan, &interrupted)? {
        return Ok(code);
    }
    let mut display = Display::new(typed, &prepared.plan);
    // ab never does: it fails with "Too many open files".
    descriptors::raise_limit();
    let running = match catamaran_load::start(prepared.plan.clone()) {
        Ok(running) => running,
        Err(fault) => return refuse(name, typed.mode, &Refusal::Plan(fault)),
    };
    let has_heartbeat = display.has_heartbeat();
    output::begin(typed, &prepared, has_heartbeat)?;
    let mut report = watch(running, &mut display, &interrupted);
    if typed.mode == Mode::Ours {
        warn_of_build(&mut report);
    }
    conclude(typed, &prepared, &report, display)
}

/// What ab finds out when it has said that it begins. Without clients it has nothing to wait for; its
/// trunk takes `-c 0` for one client per thread of `-W`.
fn late_refusal(typed: &Typed) -> Option<Refusal> {
    let load = &typed.load;
    let has_no_clients =
        typed.mode == Mode::Ab && load.concurrency == Some(0) && load.threads.is_none();
    let source = typed.connection.unknown_source.clone();
    let no_clients = has_no_clients.then_some(Refusal::NoClients);
    source.map(Refusal::Source).or(no_clients)
}

fn conclude(
    typed: &Typed,
    prepared: &Prepared,
    report: &Report,
    display: Display,
) -> Result<ExitCode, Failure> {
    let has_heartbeat = display.has_heartbeat();
    match report.ending {
        // ab has no last line for runs that do not come to their end.
        Ending::Failure(_) | Ending::Idle | Ending::Stopped if typed.mode == Mode::Ab => {}
        _ => display.finish(ab::done(report)),
    }
    output::end(typed, prepared, report, has_heartbeat)
}

/// Shows the run until it ends, or ends it when asked to.
fn watch(mut running: Running, display: &mut Display, interrupted: &AtomicBool) -> Report {
    let stopper = running.stopper();
    while !running.wait(TICK) {
        if interrupted.load(Ordering::Relaxed) {
            stopper.stop();
        }
        display.show(&running.progress());
    }
    running.finish()
}

/// Runs a part of something larger to its end, or to the interrupt.
fn run_part(plan: Plan, interrupted: &AtomicBool) -> Result<Report, Refusal> {
    let mut running = catamaran_load::start(plan)?;
    let stopper = running.stopper();
    while !running.wait(TICK) {
        if interrupted.load(Ordering::Relaxed) {
            stopper.stop();
        }
    }
    let mut report = running.finish();
    warn_of_build(&mut report);
    Ok(report)
}

/// Adds the warning that this is a slow build, behind those of the run.
fn warn_of_build(report: &mut Report) {
    let profile = profile::if_slow();
    report.warnings.extend(profile.map(Warning::Build));
}

/// A first signal ends the run with its report, a second one the process.
fn catch_interrupts(mode: Mode) -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let code = match mode {
        Mode::Ab => 1,
        Mode::Ours => i32::from(output::INTERRUPTED),
    };
    for signal in [SIGINT, SIGTERM] {
        let flags = [
            signal_flag::register_conditional_shutdown(signal, code, Arc::clone(&interrupted)),
            signal_flag::register(signal, Arc::clone(&interrupted)),
        ];
        for registered in flags {
            registered.map_err(|error| Failure::Fault(format!("cannot catch signals: {error}")))?;
        }
    }
    Ok(interrupted)
}

/// How often progress is shown and signals are looked for.
const TICK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> Vec<OsString> {
        words.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn compat_is_found_wherever_it_stands() {
        for words in ["--compat ab -k U", "-k --compat=ab U", "-k U --compat ab"] {
            let (mode, line) = mode_and_line(line(words)).unwrap();
            assert_eq!(
                (mode, line.join(" ").as_str()),
                (Mode::Ab, "-k U"),
                "{words}"
            );
        }
        let (mode, line) = mode_and_line(line("--compat wrk U")).unwrap();
        assert_eq!(mode, Mode::Ours);
        assert_eq!(line.len(), 3);
    }

    #[test]
    fn a_link_of_the_name_makes_an_ab() {
        for (name, expected) in [("ab", true), ("/usr/bin/ab", true), ("catamaran", false)] {
            assert_eq!(is_ab(&OsString::from(name)), expected, "{name}");
        }
    }
}
