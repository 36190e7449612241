//! `check`: prints the faults of a configuration file.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use catamaran_config::{LoadError, LoadedFile, ReadFiles, Report, Severity, load_text};
use catamaran_proxy::config::Config;
use catamaran_proxy::tls::{OnlineFinding, look_online};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Print every fault of a configuration file; exit 1 if there is any
#[derive(clap::Args)]
#[command(override_usage = "\
    catamaran check [OPTIONS] <FILE>
       catamaran check [OPTIONS] -
       catamaran check [OPTIONS] --config <FILE>")]
pub(crate) struct CheckArgs {
    /// The configuration file; - reads it from standard input, with paths that start from the working
    /// directory
    #[arg(
        value_name = "FILE",
        required_unless_present = "config",
        conflicts_with = "config"
    )]
    file: Option<PathBuf>,

    /// The configuration file, as `serve` is told
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Ask the network, too: whether the authorities of ACME answer, and which addresses their names have. Nothing
    /// is ordered
    #[arg(long, conflicts_with = "json")]
    online: bool,

    /// Print one JSON object on standard output instead
    #[arg(long)]
    json: bool,
}

/// Reads the file, and prints its findings and how many listeners, upstreams and routes it has.
pub(crate) fn run(args: CheckArgs) -> Result<(), Failure> {
    let path = args.file.or(args.config).unwrap_or_default();
    let (name, loaded) = if path.as_os_str() == "-" {
        let loaded =
            read_stdin().and_then(|text| load_text(STDIN, &text).map_err(LoadError::Faults));
        (STDIN.to_owned(), loaded)
    } else {
        (path.display().to_string(), catamaran_config::load(&path))
    };
    if args.json {
        return say_json(&name, loaded);
    }
    let LoadedFile { config, report, .. } = loaded.map_err(|error| refused(&name, error))?;
    write!(io::stderr(), "{report}")?;
    let [listeners, upstreams, routes] = sizes(&config);
    let listeners = count(listeners, "listener");
    let upstreams = count(upstreams, "upstream");
    let routes = count(routes, "route");
    let verdict = match report.warnings() {
        0 => "fine".to_owned(),
        warnings => format!("usable, with {}", count(warnings, "warning")),
    };
    let serves = if config.routes.iter().all(|route| route.target.is_error()) {
        ", but each request is answered with an error: no route leads anywhere"
    } else {
        ""
    };
    writeln!(
        io::stdout(),
        "{name}: {verdict}{serves} ({listeners}, {upstreams}, {routes})"
    )?;
    if args.online {
        say_online(&config)
    } else {
        Ok(())
    }
}

/// Prints what the network says of certificates by ACME.
fn say_online(config: &Config) -> Result<(), Failure> {
    let mut is_good = true;
    for acme in config
        .tls
        .iter()
        .filter_map(|profile| profile.acme.as_ref())
    {
        for OnlineFinding { subject, outcome } in look_online(acme) {
            let (verb, text) = match &outcome {
                Ok(text) => ("online", text),
                Err(text) => ("FAULT", text),
            };
            is_good &= outcome.is_ok();
            writeln!(io::stdout(), "{verb}: {subject}: {}", text.escape_debug())?;
        }
    }
    if is_good {
        Ok(())
    } else {
        Err(Failure::Said(String::new()))
    }
}

/// The numbers of listeners, upstreams and routes.
fn sizes(config: &Config) -> [usize; 3] {
    [
        config.listeners.len(),
        config.upstreams.len(),
        config.routes.len(),
    ]
}

fn read_stdin() -> Result<String, LoadError> {
    let mut text = String::new();
    match io::stdin().take(TEXT_MAX).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(source) => Err(LoadError::Read {
            path: PathBuf::from(STDIN),
            source,
        }),
    }
}

/// Prints the result as JSON for scripts and editors, with the place of each finding.
fn say_json(name: &str, loaded: Result<LoadedFile, LoadError>) -> Result<(), Failure> {
    let mut counts = Value::Null;
    let findings = match &loaded {
        Ok(LoadedFile { config, report, .. }) => {
            let [listeners, upstreams, routes] = sizes(config);
            counts = json!({"listeners": listeners, "upstreams": upstreams, "routes": routes});
            findings(report)
        }
        Err(LoadError::Faults(report)) => findings(report),
        Err(error @ LoadError::Read { .. }) => {
            vec![finding("fault", name, None, &error.to_string(), "")]
        }
    };
    let is_fault = |finding: &&Value| finding["severity"] == "fault";
    let faults = findings.iter().filter(is_fault).count();
    let document = json!({
        "file": name,
        "usable": loaded.is_ok(),
        "faults": faults,
        "warnings": findings.len() - faults,
        "counts": counts,
        "findings": findings,
    });
    writeln!(io::stdout(), "{document:#}")?;
    match loaded {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::Said(String::new())),
    }
}

fn findings(report: &Report) -> Vec<Value> {
    let findings = report.findings().iter().map(|found| {
        let severity = match found.severity {
            Severity::Fault => "fault",
            Severity::Warning => "warning",
        };
        let position = report.position(found);
        finding(
            severity,
            position.file,
            position.place,
            &found.message,
            &found.hint,
        )
    });
    findings.collect()
}

fn finding(
    severity: &str,
    file: &str,
    place: Option<(usize, usize)>,
    message: &str,
    hint: &str,
) -> Value {
    json!({
        "severity": severity,
        "file": file,
        "line": place.map(|(line, _)| line),
        "column": place.map(|(_, column)| column),
        "message": message,
        "hint": hint,
    })
}

/// Loads a configuration file.
///
/// # Errors
/// All faults of the file, or why it cannot be read.
pub(super) fn load(path: &Path) -> Result<LoadedFile, Failure> {
    load_recorded(path, &mut ReadFiles::default())
}

/// As [`load`]; `files` becomes the files that were read, also those of a configuration with faults.
pub(super) fn load_recorded(path: &Path, files: &mut ReadFiles) -> Result<LoadedFile, Failure> {
    let name = path.display().to_string();
    catamaran_config::load_recorded(path, files).map_err(|error| refused(&name, error))
}

/// Why a file cannot be used.
fn refused(name: &str, error: LoadError) -> Failure {
    match error {
        LoadError::Faults(report) => Failure::Findings(format!("{report}{name}: {}", sum(&report))),
        error @ LoadError::Read { .. } => Failure::of(&error),
    }
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

/// The name that findings give to standard input.
const STDIN: &str = "standard input";

/// The most bytes that are read from standard input: as many as a file may have.
const TEXT_MAX: u64 = 16 << 20;
