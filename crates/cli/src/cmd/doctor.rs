//! `doctor`: checks whether this machine has what a front needs.

use std::io::{self, Write as _};
use std::path::PathBuf;

use catamaran_proxy::config::{Config, LogConfig, ServerConfig};
use catamaran_proxy::doctor::{self, Check, Machine};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Say what this machine lacks for a front, and what changes it; exit 1 if something does not suffice
///
/// It reads limits of the system, of the unit catamaran.service, and of its own cgroup, and changes nothing.
/// `folklore` names settings that old pages recommend and that do not help.
#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    /// The configuration file [default: none, a front with default limits and without backends]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Also connect to each backend and each member that is found, and ask it: by its probe, or by CPING and `HEAD /`
    #[arg(long, requires = "config")]
    dial: bool,

    /// Print one JSON object on standard output instead
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let (mut config, secrets) = match &args.config {
        Some(path) => {
            let loaded = super::check::load(path)?;
            (loaded.config, loaded.secret_files)
        }
        None => (unconfigured(), Vec::new()),
    };
    let found = doctor::find_members(&mut config).map_err(|error| Failure::of(&error))?;
    let mut checks = doctor::examine(&config, &found, &Machine::here(), &secrets);
    if args.dial {
        checks.extend(doctor::dial(&config).map_err(|error| Failure::of(&error))?);
    }
    if args.json {
        writeln!(io::stdout(), "{:#}", document(&checks))?;
    } else {
        print(&checks)?;
    }
    judge(&checks)
}

/// Prints one line for each check.
pub(crate) fn print(checks: &[Check]) -> io::Result<()> {
    let mut stdout = io::stdout();
    checks
        .iter()
        .try_for_each(|check| writeln!(stdout, "{check}"))
}

/// Returns a failure if any check is short.
pub(crate) fn judge(checks: &[Check]) -> Result<(), Failure> {
    match checks.iter().filter(|check| check.is_short()).count() {
        0 => Ok(()),
        1 => Err(Failure::Fault("1 thing is short".to_owned())),
        short => Err(Failure::Fault(format!("{short} things are short"))),
    }
}

/// The configuration of a front with all defaults, and without listeners or backends.
fn unconfigured() -> Config {
    Config {
        server: ServerConfig::default(),
        tls: Vec::new(),
        listeners: Vec::new(),
        caches: Vec::new(),
        limits: Vec::new(),
        auths: Vec::new(),
        upstreams: Vec::new(),
        routes: Vec::new(),
        error_pages: None,
        log: LogConfig::default(),
        trace: None,
        admin: None,
    }
}

fn document(checks: &[Check]) -> Value {
    let documents = checks.iter().map(|check| {
        json!({
            "what": check.what,
            "value": check.value,
            "needed": check.needed,
            "command": check.command,
            "verdict": check.verdict.word(),
        })
    });
    let enough = !checks.iter().any(Check::is_short);
    json!({"enough": enough, "checks": documents.collect::<Vec<_>>()})
}
