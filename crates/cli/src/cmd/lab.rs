//! `lab`: runs experiments on whole web tiers.

mod compare;
mod doctor;
mod export;
mod extra;
mod judge;
mod list;
mod needs;
mod prepare;
mod report;
mod run;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Failure;

/// Run experiments that compare web tiers, and judge other people's figures
#[derive(clap::Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::LabListArgs),
    Run(run::LabRunArgs),
    Up(up::LabUpArgs),
    Prepare(prepare::LabPrepareArgs),
    Report(report::LabReportArgs),
    Judge(judge::LabJudgeArgs),
    Compare(compare::LabCompareArgs),
    Export(export::LabExportArgs),
    Doctor(doctor::LabDoctorArgs),
    #[command(hide = true)]
    Extra(extra::LabExtraArgs),
}

/// Runs the subcommand, and returns the exit code.
pub(crate) fn run(args: LabArgs) -> ExitCode {
    let outcome = match args.command {
        Command::List(args) => list::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Up(args) => up::run(&args),
        Command::Prepare(args) => prepare::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Report(args) => report::run(&args),
        Command::Judge(args) => judge::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Doctor(args) => doctor::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Extra(args) => extra::run(args),
    };
    outcome.unwrap_or_else(Failure::exit)
}

/// The path of this binary, which experiments start as load generator and as servers.
pub(crate) fn own_path() -> Result<PathBuf, Failure> {
    let path = std::env::current_exe();
    path.map_err(|error| Failure::Fault(format!("cannot find the path of this program: {error}")))
}
