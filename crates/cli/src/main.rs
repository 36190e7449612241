//! The `catamaran` binary: arguments, signals, exit codes.
//!
//! Each command is a module of `cmd` with its `Args` and a `run`; what they do lives in the other
//! crates. Exit codes are a promise: 0 fine, 1 faults or failed checks, 2 usage.

mod cmd;
mod descriptors;
mod failure;
mod signals;
mod upgrade;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing::level_filters::LevelFilter;

/// Heads and buffers come and go with each request. With glibc's allocator that took 17 % of the
/// front's CPU, most of it in merging and splitting free chunks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An HTTP front for Tomcat and its kin over AJP13 or HTTP/1.1, and the application's side of it
#[derive(Parser)]
#[command(version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// What to say on standard error
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        default_value = "info",
        display_order = 100
    )]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(LEVELS))]
    log_level: String,
}

#[derive(Subcommand)]
enum Command {
    Serve(cmd::serve::Args),
    Check(cmd::check::Args),
    App(cmd::app::Args),
    Demo(cmd::demo::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_to_stderr(&cli.log_level);
    let outcome = match cli.command {
        Command::Serve(args) => cmd::serve::run(args),
        Command::Check(args) => cmd::check::run(args),
        Command::App(args) => cmd::app::run(args),
        Command::Demo(args) => cmd::demo::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(),
    }
}

/// The only place that says where events go; libraries merely emit them.
fn log_to_stderr(level: &str) {
    let level: LevelFilter = level
        .parse()
        .expect("the parser of arguments knows the levels");
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // A closed standard error is no reason to panic.
        .log_internal_errors(false)
        .init();
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
