//! `lab report`: writes the report again from the runs in a result's directory.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use catamaran_lab::result::ResultDocument;
use catamaran_lab::result::StoredResult;
use catamaran_lab::store::{self, Store, StoreFault};
use catamaran_lab::{report, screen, strace};

use crate::failure::Failure;

/// Write the report of a result's directory anew, from its runs or, without these, from its result.json
#[derive(clap::Args)]
pub(super) struct LabReportArgs {
    /// What `lab run` has written
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Also write this measure of all cells as MEASURE.svg
    #[arg(long, value_name = "MEASURE")]
    picture: Option<String>,

    /// Print the system calls of each cell's median run as `strace -c` does, instead of the report
    #[arg(long, conflicts_with = "picture")]
    strace: bool,
}

pub(super) fn run(args: &LabReportArgs) -> Result<ExitCode, Failure> {
    if args.strace {
        return traces(&args.directory);
    }
    let (store, document) = if store::is_without_runs(&args.directory) {
        store::open_result(&args.directory).map_err(fault)?
    } else {
        opened(&args.directory)?
    };
    write_result(&store, &document)?;
    write_reports(&store, &document)?;
    if let Some(name) = &args.picture {
        let no_measure = || Failure::Fault(format!("no cell has the measure {name}"));
        let svg = report::picture(&document, name).ok_or_else(no_measure)?;
        let result = store.write(&format!("{name}.svg"), svg.as_bytes());
        result.map_err(fault)?;
    }
    write!(io::stdout(), "{}", report::terminal(&document))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the system calls of the servers.
fn traces(directory: &Path) -> Result<ExitCode, Failure> {
    let (store, stored) = Store::open(directory).map_err(fault)?;
    let StoredResult {
        experiment, runs, ..
    } = &stored;
    let text = strace::text(experiment, runs, |run| store.traces(run));
    if text.is_empty() {
        let directory = directory.display();
        return Err(Failure::Fault(format!(
            "{directory} has no run with counts of system calls in runs/N/strace.json"
        )));
    }
    writeln!(io::stdout(), "{}", strace::preface(experiment))?;
    write!(io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// Evaluates the runs of a directory, also second by second if their samples exist.
pub(super) fn document(store: &Store, stored: &StoredResult, is_complete: bool) -> ResultDocument {
    let mut document = ResultDocument::of(stored, is_complete);
    document.add_over_time(&stored.runs, |run| store.samples(run));
    document
}

/// Opens a directory, and evaluates its runs.
fn opened(directory: &Path) -> Result<(Store, ResultDocument), Failure> {
    let (store, stored) = Store::open(directory).map_err(fault)?;
    if stored.runs.is_empty() {
        let directory = directory.display();
        return Err(Failure::Fault(format!("{directory}: no run has ended yet")));
    }
    let is_complete = screen::is_complete(&stored.experiment, &stored.runs);
    let document = document(&store, &stored, is_complete);
    Ok((store, document))
}

/// Writes `result.json`, `report.html` and `report.md`.
pub(super) fn write(store: &Store, document: &ResultDocument) -> Result<(), Failure> {
    write_result(store, document)?;
    write_reports(store, document)
}

fn write_result(store: &Store, document: &ResultDocument) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::Fault(format!("cannot write the result: {error}")))?;
    let written = store.write("result.json", (json + "\n").as_bytes());
    written.map_err(fault)
}

fn write_reports(store: &Store, document: &ResultDocument) -> Result<(), Failure> {
    for (name, text) in [
        ("report.html", report::html(document)),
        ("report.md", report::markdown(document)),
    ] {
        store.write(name, text.as_bytes()).map_err(fault)?;
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn fault(fault: StoreFault) -> Failure {
    Failure::Fault(fault.to_string())
}
