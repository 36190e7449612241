//! `check`: the faults of a configuration file.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use catamaran_config::{LoadError, Loaded, Report};

use crate::failure::Failure;
use crate::own_log;

/// Print every fault of a configuration file; exit 1 if there is any
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Reads the file and says what is in it.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let path = args.config;
    let Loaded { config, report } = load(&path)?;
    write!(io::stderr(), "{report}")?;
    let listeners = count(config.listeners.len(), "listener");
    let upstreams = count(config.upstreams.len(), "upstream");
    let routes = count(config.routes.len(), "route");
    let path = path.display();
    writeln!(
        io::stdout(),
        "{path}: fine ({listeners}, {upstreams}, {routes})"
    )?;
    Ok(())
}

/// Reads a configuration file, or says on standard error why it cannot be used.
pub(super) fn load(path: &Path) -> Result<Loaded, Failure> {
    catamaran_config::load(path).or_else(|error| match error {
        LoadError::Faults(report) => {
            let path = path.display();
            let said = format!("{report}{path}: {}", sum(&report));
            own_log::say(&said)?;
            Err(Failure::Said(said))
        }
        error @ LoadError::Read { .. } => Err(Failure::of(&error)),
    })
}

fn sum(report: &Report) -> String {
    match report.warnings() {
        0 => count(report.faults(), "fault"),
        warnings => {
            format!(
                "{}, {}",
                count(report.faults(), "fault"),
                count(warnings, "warning")
            )
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
