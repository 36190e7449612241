//! `lab`: experiments on whole web tiers.

mod judge;

use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Failure;

/// Experiments on web tiers: what differs, by how much, how surely
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Judge(judge::Args),
}

/// Does what was asked for, and gives the exit code.
pub(crate) fn run(args: Args) -> ExitCode {
    let outcome = match args.command {
        Command::Judge(args) => judge::run(&args),
    };
    outcome.unwrap_or_else(Failure::exit)
}
