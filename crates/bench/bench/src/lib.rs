//! `catamaran bench`: parses a command line, runs the load generator, and prints the result.
//!
//! The command line is parsed by our own code and not by clap, because ab's rules must hold
//! exactly: `getopt` splits it by the records in `flag`, which fill the `settings`, and `plan`
//! turns these into a plan. `load` runs the plan; `progress` and `output` print the result; `knee`
//! and `versus` run several plans. The program that contains `bench` handles signals and the limit
//! of open files ([`Program`]); [`run`] returns the exit code.

mod data;
mod execution;
mod flag;
mod getopt;
mod habit;
mod help;
mod invocation;
mod knee;
mod memcached;
mod merge;
mod number;
mod operand;
mod output;
mod page;
mod parts;
mod plan;
mod progress;
mod refusal;
pub mod replay;
mod requests;
mod schedstat;
mod server;
mod settings;
mod target;
mod url;
mod versus;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use getopt::Mode;
pub use help::{FlagHelp, flags};
pub use invocation::{Invocation, is_ab};
use refusal::{AB_INVALID, AbEnd, Refusal};
use settings::Information;
use thiserror::Error;

/// What `bench` needs from the program that contains it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The program's version, as `-V` prints it.
    pub version: &'static str,
    /// The name of the cargo profile of this build if it is too slow for comparisons, for a
    /// warning; `None`: the build is a fast one.
    pub slow_profile: Option<&'static str>,
    /// Installs signal handlers: a first SIGINT or SIGTERM sets the returned flag, a second one
    /// ends the process with the given exit code.
    pub catch_interrupts: fn(i32) -> io::Result<Arc<AtomicBool>>,
    /// Raises the limit of open files as far as the system allows.
    pub raise_limit: fn(),
}

impl Program {
    /// Installs the signal handlers: the first signal sets the returned value, which ends the run with its report; the
    /// second one ends the process with the mode's exit code.
    fn interrupts(&self, mode: Mode) -> Result<Arc<AtomicBool>, BenchFailure> {
        let code = match mode {
            Mode::Ab => 1,
            Mode::Ours => i32::from(output::INTERRUPTED),
        };
        (self.catch_interrupts)(code)
            .map_err(|error| BenchFailure::Fault(format!("cannot catch signals: {error}")))
    }
}

/// Why `bench` ends with an error instead of an exit code.
#[derive(Debug, Error)]
pub enum BenchFailure {
    /// The arguments are not valid.
    #[error("{0}")]
    Usage(String),
    /// Something failed, such as reading a file.
    #[error("{0}")]
    Fault(String),
    /// The reader of the output has closed the pipe.
    #[error("the output is closed")]
    OutputClosed,
}

/// Converts an error of writing to standard output or standard error.
impl From<io::Error> for BenchFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Fault(format!("cannot write the output: {error}")),
        }
    }
}

/// Runs a command line of `bench`; returns the exit code.
///
/// # Errors
/// The command line is refused, something failed, or the output was closed: see [`BenchFailure`].
pub fn run(invocation: &Invocation, program: &Program) -> Result<u8, BenchFailure> {
    let Invocation { name, mode, words } = invocation;
    let mode = *mode;
    if mode == Mode::Ours && words.first().is_some_and(|word| word == page::WORD) {
        return page::run(&words[1..]);
    }
    if mode == Mode::Ours && words.first().is_some_and(|word| word == merge::WORD) {
        return merge::run(&words[1..]);
    }
    // `knee` takes the flags of a run, so the rest of the line is read like one.
    let (is_knee, line) = match words.split_first() {
        Some((first, rest)) if mode == Mode::Ours && first == knee::WORD => (true, rest),
        _ => (false, &words[..]),
    };
    let settings = match settings::read(line, mode) {
        Ok(settings) => settings,
        Err(refusal) => return refuse(name, mode, &refusal),
    };
    match settings.information {
        Some(information) => inform(name, mode, information, program),
        None if is_knee => knee::run(name, settings, program),
        None if settings.load.versus.is_some() => versus::run(name, settings, program),
        None => execution::whole(name, &settings, program),
    }
}

/// Prints the help or the version that was asked for, instead of a run.
fn inform(
    name: &str,
    mode: Mode,
    information: Information,
    program: &Program,
) -> Result<u8, BenchFailure> {
    let mut stdout = io::stdout();
    match (information, mode) {
        // ab prints its usage as for a wrong line, with the same exit code.
        (Information::Help, Mode::Ab) => {
            write!(io::stderr(), "{}", help::ab_usage(name))?;
            return Ok(AB_INVALID);
        }
        (Information::Help, Mode::Ours) => write!(stdout, "{}", help::ours())?,
        (Information::Version { html }, Mode::Ab) => {
            write!(stdout, "{}", help::ab_banner(html))?;
        }
        (Information::Version { .. }, Mode::Ours) => {
            writeln!(stdout, "catamaran {}", program.version)?;
        }
    }
    Ok(0)
}

/// Reports the refusal of a command line; in ab mode prints ab's message and returns ab's exit code.
fn refuse(name: &str, mode: Mode, refusal: &Refusal) -> Result<u8, BenchFailure> {
    if mode == Mode::Ours {
        return Err(BenchFailure::Usage(format!(
            "{refusal}; `catamaran bench --help` lists the flags"
        )));
    }
    let mut stderr = io::stderr().lock();
    Ok(match refusal.as_ab() {
        AbEnd::Usage(words) => {
            write!(stderr, "{name}: {words}\n{}", help::ab_usage(name))?;
            AB_INVALID
        }
        AbEnd::Fatal(words) => {
            writeln!(stderr, "{words}")?;
            1
        }
        AbEnd::Apr(words, code) => {
            writeln!(stderr, "{words}")?;
            code
        }
    })
}
