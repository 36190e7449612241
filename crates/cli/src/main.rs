//! The `catamaran` binary: arguments, signals, exit codes.
//!
//! Each command is a module of `cmd` with its arguments and a `run`; the other crates do the work. The
//! exit codes are stable: 0 as asked, 1 faults or failed checks, 2 usage, 3 no verdict, 130 interrupted.
//!
//! # The crates
//!
//! | crate | owns |
//! |---|---|
//! | `catamaran`, this one | the binary: arguments, signals, exit codes |
//! | [`catamaran_config`] | the configuration file as typed values, with every fault at once |
//! | [`catamaran_import`] | configurations of mod_jk, httpd and nginx, turned into a file of the front |
//! | [`catamaran_admin_api`] | the objects of the admin API, for who answers and who asks |
//! | [`catamaran_proxy`] | the front: listeners, routes, the exchange, the relay, the access log, administration |
//! | [`catamaran_connector`] | the application side: AJP13 and HTTP/1.1 served to an application |
//! | [`catamaran_bench`] | the command `bench`: flags, plans of runs, replay, comparison, output |
//! | [`catamaran_load`](../catamaran_load/index.html) | the load generator: plan in, report out, and its renderers |
//! | [`catamaran_lab`] | experiments on web tiers: gates, claims, reports |
//! | [`catamaran_units`] | durations and sizes as texts with units, for the file and all flags |
//! | [`catamaran_upstream`](../catamaran_upstream/index.html) | connections to backends: dialling, pools, leases, one exchange over either protocol |
//! | [`catamaran_balance`](../catamaran_balance/index.html) | pure decisions: which backend next, which is fit, how often to retry |
//! | [`catamaran_transport`](../catamaran_transport/index.html) | sockets and bytes, for clients and backends |
//! | [`catamaran_tls`](../catamaran_tls/index.html) | TLS on rustls, without I/O |
//! | [`catamaran_files`](../catamaran_files/index.html) | files of a directory as responses |
//! | [`catamaran_message`](../catamaran_message/index.html) | the vocabulary of HTTP messages between crates |
//! | [`catamaran_ajp`](../catamaran_ajp/index.html) | AJP13 on the wire, both roles, without I/O |
//! | [`catamaran_http1`](../catamaran_http1/index.html) | HTTP/1.1 on the wire, both roles, without I/O |
//! | [`catamaran_http_client`] | the client with which commands ask the front and other servers |
//! | [`catamaran_tier`](../catamaran_tier/index.html) | the lab's servers: from a target's file to a process that serves and ends |
//! | [`catamaran_gauge`](../catamaran_gauge/index.html) | figures of the kernel and of a JVM about processes |
//! | [`catamaran_stats`](../catamaran_stats/index.html) | histograms, and which conclusions a run's numbers support |
//! | [`catamaran_chart`](../catamaran_chart/index.html) | line charts as SVG |
//!
//! Who may know whom, the life of a request and the invariants are in `ARCHITECTURE.md`.

mod cmd;
mod descriptors;
mod failure;
mod notify;
mod own_log;
mod profile;
mod signals;
mod upgrade;
mod watch;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use failure::Failure;
use own_log::{Limit, OwnLog};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The allocator: heads and buffers come and go with each request. With glibc's allocator that took 17 % of the front's
/// CPU, most of it for merging and splitting free chunks.
///
/// It does not use transparent huge pages (`no_thp`). Little of their 2 MiB is used: with them each of 10,000 idle
/// clients took 500 bytes more, and no request was cheaper.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A web tier for Java application servers: front, connector, load generator and lab
#[derive(Parser)]
#[command(version = profile::VERSION, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// How much to write on standard error
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
    Serve(cmd::serve::ServeArgs),
    Check(cmd::check::CheckArgs),
    Doctor(cmd::doctor::DoctorArgs),
    Status(cmd::status::StatusArgs),
    Drain(cmd::operate::Drain),
    Stop(cmd::operate::Stop),
    Activate(cmd::operate::Activate),
    Probe(cmd::probe::ProbeArgs),
    Weight(cmd::operate::Weight),
    Reset(cmd::operate::Reset),
    Reload(cmd::operate::Reload),
    Purge(cmd::purge::PurgeArgs),
    Limit(cmd::limit::LimitArgs),
    Upgrade(cmd::front::Upgrade),
    Log(cmd::front::Log),
    Certificates(cmd::front::Certificates),
    Explain(cmd::explain::ExplainArgs),
    Import(cmd::import::ImportArgs),
    App(Box<cmd::app::AppArgs>),
    Demo(cmd::demo::DemoArgs),
    Bench(cmd::bench::BenchArgs),
    Lab(cmd::lab::LabArgs),
    Completions(cmd::generate::Completions),
    #[command(hide = true)]
    Generate(cmd::generate::Generate),
}

impl Command {
    /// Whether the command serves clients until a signal comes.
    fn serves(&self) -> bool {
        match self {
            Self::Serve(_) | Self::App(_) => true,
            Self::Demo(args) => args.serves(),
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next().filter(cmd::bench::is_ab) {
        return cmd::bench::run_as_ab(&name, arguments.collect());
    }
    let cli = Cli::parse_from(without_help_of_bench(std::env::args_os()));
    let limit = Limit::default();
    let started = cli.command.serves().then(|| own_log::queue(limit.clone()));
    let queue = started.transpose();
    log_to_stderr(&cli.log_level, limit);
    let _rest = match queue {
        Ok(rest) => rest,
        Err(error) => {
            return Failure::Fault(format!("cannot start to write the log: {error}")).exit();
        }
    };
    run(cli.command)
}

/// Runs a command and returns its exit code, after printing why it failed.
fn run(command: Command) -> ExitCode {
    let outcome = match command {
        Command::Serve(args) => cmd::serve::run(args),
        Command::Check(args) => cmd::check::run(args),
        Command::Doctor(args) => cmd::doctor::run(&args),
        Command::Status(args) => cmd::status::run(&args),
        Command::Drain(args) => cmd::operate::drain(&args),
        Command::Stop(args) => cmd::operate::stop(&args),
        Command::Activate(args) => cmd::operate::activate(&args),
        Command::Probe(args) => cmd::probe::run(&args),
        Command::Weight(args) => cmd::operate::weight(&args),
        Command::Reset(args) => cmd::operate::reset(&args),
        Command::Reload(args) => cmd::operate::reload(&args),
        Command::Purge(args) => cmd::purge::run(&args),
        Command::Limit(args) => cmd::limit::run(&args),
        Command::Upgrade(args) => cmd::front::upgrade(&args),
        Command::Log(args) => cmd::front::log(&args),
        Command::Certificates(args) => cmd::front::certificates(&args),
        Command::Explain(args) => cmd::explain::run(&args),
        Command::Import(args) => return cmd::import::run(&args),
        Command::App(args) => cmd::app::run(*args),
        Command::Demo(args) => return cmd::demo::run(args),
        Command::Bench(args) => return cmd::bench::run(args),
        Command::Lab(args) => return cmd::lab::run(args),
        Command::Completions(args) => cmd::generate::completions(&args, Cli::command()),
        Command::Generate(args) => cmd::generate::run(&args, Cli::command()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(),
    }
}

/// Turns the arguments `help bench` into `bench --help`: `bench` has a parser of its own, which also prints the help of
/// its flags.
fn without_help_of_bench(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments
        .get(1..3)
        .is_some_and(|words| words == ["help", "bench"])
    {
        arguments.splice(1..3, ["bench", "--help"].map(OsString::from));
    }
    arguments
}

/// Sends events to standard error. This is the only place that decides where they go; libraries only emit them.
fn log_to_stderr(level: &str, limit: Limit) {
    let level: LevelFilter = level
        .parse()
        .expect("the parser of arguments knows the levels");
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| OwnLog)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // A closed standard error is no reason to panic.
        .log_internal_errors(false)
        .finish()
        .with(limit)
        .init();
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
