//! Starts a tier to be looked at, and prints its servers and the commands for looking at it to standard
//! output. It runs until its time is over or a signal comes.
//!
//! `lab up` and `demo --tier` use this.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamaran_lab::doctor::Programs;
use catamaran_lab::drive::{DriveFault, Driver};
use catamaran_lab::experiment::Experiment;
use catamaran_lab::up::{self, Over, ServerView, TierView, UpFault, UpRequest};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::lab::own_path;
use crate::failure::Failure;
use crate::profile;

/// The tier to start, and how long it runs.
pub(crate) struct LookSubject<'a> {
    /// An experiment with only one cell.
    pub(crate) experiment: &'a Experiment,
    pub(crate) programs: Programs,
    /// Whether the tier uses the machine's own network, for which root is not needed.
    pub(crate) is_shared: bool,
    pub(crate) is_driven: bool,
    /// How long the tier runs; `None`: until a signal.
    pub(crate) time: Option<Duration>,
}

/// Starts the tier and waits for its end.
pub(crate) fn show(subject: LookSubject<'_>) -> Result<ExitCode, Failure> {
    let stop = flag_of_signals()?;
    let LookSubject {
        experiment,
        is_shared,
        is_driven,
        time,
        ..
    } = subject;
    let driver = Driver {
        catamaran: own_path()?,
        against: None,
        programs: subject.programs,
        space: format!("catamaran-lab.{}", std::process::id()),
        stop,
    };
    writeln!(io::stderr(), "starting {}", experiment.name)?;
    let own = driver.catamaran.display().to_string();
    let request = UpRequest {
        driver: &driver,
        experiment,
        is_shared,
        is_driven,
        time,
    };
    match up::run(request, |standing| explain(standing, &own, is_driven)) {
        Ok(result) => {
            if is_driven {
                print_results(&result)?;
            }
            // Without a time, a signal is the normal end.
            let is_cut_short = result.is_stopped && time.is_some();
            Ok(if is_cut_short {
                ExitCode::from(130)
            } else {
                ExitCode::SUCCESS
            })
        }
        Err(UpFault::Drive(DriveFault::Interrupted)) => Ok(ExitCode::from(130)),
        Err(fault) => Err(Failure::Fault(fault.to_string())),
    }
}

/// A flag that the first SIGINT or SIGTERM sets. A second signal ends the process without waiting for servers that are
/// slow to end.
fn flag_of_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Prints the results of the load.
fn print_results(over: &Over) -> io::Result<()> {
    writeln!(
        io::stdout(),
        "{} answers in {:.1} s, {} failed",
        over.completed,
        over.time.as_secs_f64(),
        over.failed
    )?;
    if let Some(profile) = profile::if_slow() {
        writeln!(
            io::stderr(),
            "warning: this is a {profile} build, which is slower than a dist build: compare figures of \
             `cargo build --profile dist` only"
        )?;
    }
    Ok(())
}

/// Prints what is running and how to look at it with the commands of this program, whose path is `own`.
fn explain(standing: &TierView<'_>, own: &str, is_driven: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\nServers, from the front to the backmost:")?;
    print_servers(&mut out, &standing.servers)?;
    writeln!(out, "\nLook at it with")?;
    print_commands(&mut out, standing, own)?;
    writeln!(out, "\nIts files are in {}", standing.directory.display())?;
    if !is_driven {
        writeln!(out, "No load is driven; --load does it.")?;
    }
    writeln!(out, "Press ctrl-C to end it.\n")?;
    out.flush()
}

fn print_servers(out: &mut impl io::Write, servers: &[ServerView<'_>]) -> io::Result<()> {
    for server in servers {
        let ports = server.ports.iter();
        let urls: Vec<String> = ports
            .map(|(name, address)| format!("{name}://{address}"))
            .collect();
        let core = server.core.map(|core| format!(", core {core}"));
        writeln!(
            out,
            "    {} ({}): {}; pid {}{}",
            server.name,
            server.target,
            urls.join(" "),
            server.pid,
            core.unwrap_or_default()
        )?;
    }
    Ok(())
}

/// Prints commands that look at the tier: curl, `status`, `bench` and top.
fn print_commands(out: &mut impl io::Write, standing: &TierView<'_>, own: &str) -> io::Result<()> {
    let inside = match standing.namespace {
        Some(name) => format!("ip netns exec {name} "),
        None => String::new(),
    };
    // The URL stands between single quotes of the shell.
    let url = standing.url.replace('\'', "'\\''");
    if url.starts_with("http") {
        let option = if url.starts_with("https") {
            "-ki"
        } else {
            "-i"
        };
        writeln!(out, "    {inside}curl {option} '{url}'")?;
    }
    let ports = standing.servers.iter().flat_map(|server| &server.ports);
    for (_, address) in ports.filter(|(name, _)| *name == "admin") {
        writeln!(out, "    {inside}{own} status --admin {address}")?;
    }
    if !url.starts_with("echo+") {
        writeln!(out, "    {inside}{own} bench -n 1000 -c 10 '{url}'")?;
    }
    let pids = standing.servers.iter().map(|server| server.pid.to_string());
    writeln!(out, "    top -p {}", pids.collect::<Vec<_>>().join(","))
}
