//! `doctor`: whether this machine has what a front needs.

use std::io::{self, Write as _};
use std::path::PathBuf;

use catamaran_front::config::{Config, LogConfig, ServerConfig};
use catamaran_front::doctor::{self, Check, Machine, Verdict};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Say what this machine lacks for a front, and what changes it; exit 1 if something does not suffice
///
/// It reads limits of the system, of the unit catamaran.service, and of its own cgroup, and changes nothing.
/// `folklore` names settings that old pages recommend and that do not help.
#[derive(clap::Args)]
pub(crate) struct Args {
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

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
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
    let lacking = checks
        .iter()
        .filter(|it| it.verdict == Verdict::Short)
        .count();
    let mut stdout = io::stdout();
    match args.json {
        true => writeln!(stdout, "{:#}", document(&checks, lacking == 0))?,
        false => {
            for check in &checks {
                writeln!(stdout, "{}", line(check))?;
            }
        }
    }
    match lacking {
        0 => Ok(()),
        1 => Err(Failure::Fault("1 thing is short".to_owned())),
        _ => Err(Failure::Fault(format!("{lacking} things are short"))),
    }
}

/// A front with every default, which serves nobody.
fn unconfigured() -> Config {
    Config {
        server: ServerConfig::default(),
        tls: Vec::new(),
        listeners: Vec::new(),
        caches: Vec::new(),
        upstreams: Vec::new(),
        routes: Vec::new(),
        error_pages: None,
        log: LogConfig::default(),
        admin: None,
    }
}

fn line(check: &Check) -> String {
    let word = check.verdict.word();
    let mut line = format!(
        "{word:<8} {} = {} ({})",
        check.what, check.value, check.needed
    );
    if !check.command.is_empty() {
        line += &format!(": {}", check.command);
    }
    line
}

fn document(checks: &[Check], enough: bool) -> Value {
    let one = |check: &Check| {
        json!({
            "what": check.what,
            "value": check.value,
            "needed": check.needed,
            "command": check.command,
            "verdict": check.verdict.word(),
        })
    };
    json!({"enough": enough, "checks": checks.iter().map(one).collect::<Vec<_>>()})
}
