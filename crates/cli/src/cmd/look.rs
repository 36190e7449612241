//! A tier that is up: its drawing on standard output, and its page, until its time is over or a signal
//! comes. `lab up` and `demo --tier` end here.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamaran_lab::doctor::Programs;
use catamaran_lab::drive::{DriveFault, Driver};
use catamaran_lab::experiment::Experiment;
use catamaran_lab::up::{self, Over, TierView, UpFault, UpRequest};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::lab::own_path;
use crate::failure::Failure;
use crate::profile;

/// How it is looked at.
#[derive(clap::Args, Clone)]
pub(crate) struct Look {
    /// End after so long, such as 10s
    #[arg(long = "for", value_name = "TIME", value_parser = catamaran_units::parse_duration)]
    time: Option<Duration>,

    /// Keep the page as it is at the end
    #[arg(long, value_name = "FILE.html")]
    save: Option<PathBuf>,

    /// Where the page is served, on a loopback address [default: 127.0.0.1:8081, or another port if
    /// that is in use]
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    page: Option<SocketAddr>,
}

/// A place for the page, taken already.
pub(crate) struct Seat<'a> {
    look: &'a Look,
    listener: TcpListener,
}

/// What is shown.
pub(crate) struct LookSubject<'a> {
    /// Of one cell.
    pub(crate) experiment: &'a Experiment,
    pub(crate) programs: Programs,
    /// Whether it is in the machine's own network, without root.
    pub(crate) is_shared: bool,
    pub(crate) is_driven: bool,
}

impl Look {
    /// Whether anything was said of it.
    pub(crate) fn is_given(&self) -> bool {
        self.time.is_some() || self.save.is_some() || self.page.is_some()
    }

    /// Takes the page's port, and looks whether its file can be written.
    pub(crate) fn seat(&self) -> Result<Seat<'_>, Failure> {
        if let Some(path) = &self.save {
            let opened = OpenOptions::new().append(true).create(true).open(path);
            opened.map_err(|error| cannot_write(path, &error))?;
        }
        let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081));
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = match self.page {
            Some(address) => TcpListener::bind(address).map_err(|error| {
                let what = match error.kind() {
                    ErrorKind::AddrInUse => {
                        "the address is already in use; stop the other program, \
                                             choose another port, or leave --page out"
                            .to_owned()
                    }
                    _ => error.to_string(),
                };
                Failure::Fault(format!("cannot serve the page on {address}: {what}"))
            })?,
            None => TcpListener::bind(usual).or_else(|_| TcpListener::bind(free))?,
        };
        Ok(Seat {
            look: self,
            listener,
        })
    }
}

impl Seat<'_> {
    /// Starts it and shows it to its end.
    pub(crate) fn show(self, shown: LookSubject<'_>) -> Result<ExitCode, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // A second one does not wait for servers that are slow to end.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
            flag::register(signal, Arc::clone(&stop))?;
        }
        let driver = Driver {
            catamaran: own_path()?,
            against: None,
            programs: shown.programs,
            space: format!("catamaran-lab.{}", std::process::id()),
            stop: Arc::clone(&stop),
        };
        writeln!(io::stderr(), "starting {}", shown.experiment.name)?;
        let asked = UpRequest {
            driver: &driver,
            experiment: shown.experiment,
            is_shared: shown.is_shared,
            is_driven: shown.is_driven,
            time: self.look.time,
            page: self.listener,
        };
        match up::run(asked, |standing| explain(standing, shown.is_driven)) {
            Ok(over) => self.look.end(&over, shown.is_driven),
            Err(UpFault::Drive(DriveFault::Interrupted)) => Ok(ExitCode::from(130)),
            Err(fault) => Err(Failure::Fault(fault.to_string())),
        }
    }
}

impl Look {
    fn end(&self, over: &Over, is_driven: bool) -> Result<ExitCode, Failure> {
        if let Some(path) = &self.save {
            fs::write(path, &over.page).map_err(|error| cannot_write(path, &error))?;
            writeln!(io::stdout(), "The page is kept in {}", path.display())?;
        }
        if is_driven {
            let seconds = over.time.as_secs_f64();
            writeln!(
                io::stdout(),
                "{} answers in {seconds:.1} s, {} failed",
                over.completed,
                over.failed
            )?;
            if let Some(profile) = profile::if_slow() {
                writeln!(
                    io::stderr(),
                    "warning: this is a {profile} build, which is slower than a dist build: compare \
                     figures of `cargo build --profile dist` only"
                )?;
            }
        }
        // Without a time a signal is the way to end it.
        let is_cut = over.is_stopped && self.time.is_some();
        Ok(if is_cut {
            ExitCode::from(130)
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Says what is up and how to try it.
fn explain(standing: &TierView<'_>, is_driven: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\n{}", standing.drawing)?;
    writeln!(out, "What it does is at  http://{}/", standing.page)?;
    if standing.url.starts_with("http") {
        let inside = standing
            .namespace
            .map(|name| format!("ip netns exec {name} "));
        writeln!(
            out,
            "Ask it yourself by  {}curl -i '{}'",
            inside.unwrap_or_default(),
            standing.url.replace('\'', "'\\''")
        )?;
    }
    writeln!(out, "Its files are in    {}", standing.directory.display())?;
    if !is_driven {
        writeln!(out, "No load is driven; --load does it.")?;
    }
    writeln!(out, "Press ctrl-C to end it.\n")?;
    out.flush()
}

fn cannot_write(path: &std::path::Path, error: &io::Error) -> Failure {
    Failure::Fault(format!("cannot write {}: {error}", path.display()))
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "it is IP:PORT, such as 127.0.0.1:8081".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(
            "the page is for this machine: it needs a loopback address such as 127.0.0.1"
                .to_owned(),
        )
    }
}
