//! Shared code of the commands that make several runs and print one result: `bench knee` and `--versus`.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use catamaran_load::plan::Plan;
use catamaran_load::report::{Ending, Report};

use crate::flag::output::Sink;
use crate::getopt::Mode;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::{BenchFailure, Program, execution, output, refuse};

/// Why a command of several runs ends early.
#[derive(Debug)]
pub(crate) enum End {
    Refused(Refusal),
    Failed(BenchFailure),
}

impl End {
    /// Reports why the command ended early; returns the exit code.
    pub(crate) fn report(self, name: &str, mode: Mode) -> Result<u8, BenchFailure> {
        match self {
            Self::Refused(refusal) => refuse(name, mode, &refusal),
            Self::Failed(failure) => Err(failure),
        }
    }
}

/// Runs one part to its end; `None` if it was interrupted.
pub(crate) fn run(
    plan: Plan,
    program: &Program,
    interrupted: &AtomicBool,
) -> Result<Option<Report>, End> {
    let report = execution::part(plan, program, interrupted).map_err(End::Refused)?;
    if let Ending::Failure(error) = &report.ending {
        return Err(End::Failed(BenchFailure::Fault(error.message.clone())));
    }
    let is_whole = !interrupted.load(Ordering::Relaxed);
    Ok(is_whole.then_some(report))
}

/// Whether standard output gets text, not JSON.
pub(crate) fn is_text(settings: &Settings) -> bool {
    settings.output.json != Some(Sink::Stdout)
}

/// Writes the result of all runs: text or JSON to standard output, and the JSON file if there is one.
pub(crate) fn write(settings: &Settings, text: &str, json: &str) -> Result<(), BenchFailure> {
    let shown = if is_text(settings) { text } else { json };
    io::stdout().lock().write_all(shown.as_bytes())?;
    if let Some(Sink::File(path)) = &settings.output.json {
        output::write(path, json)?;
    }
    Ok(())
}
