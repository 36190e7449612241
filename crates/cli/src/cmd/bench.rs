//! `bench`: runs the load generator, which accepts ab's command lines. If the binary is called
//! as `ab`, it behaves as ab.
//!
//! This module handles the unparsed arguments, signals and exit codes; the rest is in
//! `catamaran_bench`.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) use catamaran_bench::is_ab;
use catamaran_bench::{BenchFailure, Invocation, Mode, Program};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;
use crate::{descriptors, profile};

/// Send load to a server and report rate, latency and errors; accepts ab's command lines
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArgs {
    /// ab's flags, ours, and the URL
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS|URL"
    )]
    arguments: Vec<OsString>,
}

/// Runs `catamaran bench`.
pub(crate) fn run(args: BenchArgs) -> ExitCode {
    let invocation = match Invocation::new(args.arguments) {
        Ok(invocation) => invocation,
        Err(failure) => return Failure::from(failure).exit(),
    };
    let done = bench(&invocation);
    match invocation.mode() {
        Mode::Ab => done.unwrap_or_else(Failure::exit),
        Mode::Ours => done
            .map_err(Failure::without_verdict)
            .unwrap_or_else(Failure::exit),
    }
}

/// Runs the load generator as `ab`; `name` is the name by which the binary was called.
pub(crate) fn run_as_ab(name: &OsString, arguments: Vec<OsString>) -> ExitCode {
    let invocation = Invocation::as_ab(name, arguments).map_err(Failure::from);
    let done = invocation.and_then(|invocation| bench(&invocation));
    done.unwrap_or_else(Failure::exit)
}

fn bench(invocation: &Invocation) -> Result<ExitCode, Failure> {
    let program = Program {
        version: profile::VERSION,
        slow_profile: profile::if_slow(),
        catch_interrupts,
        raise_limit: || {
            descriptors::raise_limit();
        },
    };
    Ok(catamaran_bench::run(invocation, &program).map(ExitCode::from)?)
}

impl From<BenchFailure> for Failure {
    fn from(failure: BenchFailure) -> Self {
        match failure {
            BenchFailure::Usage(message) => Self::Usage(message),
            BenchFailure::Fault(message) => Self::Fault(message),
            BenchFailure::OutputClosed => Self::OutputClosed,
        }
    }
}

/// Catches SIGINT and SIGTERM: the first signal sets the returned flag, and a second one ends
/// the process with `code`.
fn catch_interrupts(code: i32) -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, code, Arc::clone(&interrupted))?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}
