//! `lab export`: writes the samples of a result in the format of other tools.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use catamaran_lab::nmon::nmon;
use catamaran_lab::store::Store;

use crate::failure::Failure;

/// Write the samples of each run in the form of another tool, as runs/N/run.nmon
#[derive(clap::Args)]
pub(super) struct LabExportArgs {
    /// What `lab run` has written
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// In the form of nmon, for its analysers
    #[arg(long, required = true)]
    nmon: bool,
}

pub(super) fn run(args: &LabExportArgs) -> Result<ExitCode, Failure> {
    let opened = Store::open(&args.directory);
    let (store, stored) = opened.map_err(|fault| Failure::Fault(fault.to_string()))?;
    let mut written = 0;
    for (number, run) in stored.runs.iter().enumerate() {
        let folder = format!("runs/{}", number + 1);
        // A result that was committed to a repository has no samples.
        let Some(lines) = store.samples(number) else {
            continue;
        };
        let name = format!("{}-{}", stored.experiment.name, number + 1);
        let label = stored.experiment.label(run.cell);
        let Some(text) = nmon(&lines, &stored.host, &format!("{name} {label}")) else {
            continue;
        };
        let file = store.write(&format!("{folder}/run.nmon"), text.as_bytes());
        file.map_err(|fault| Failure::Fault(fault.to_string()))?;
        written += 1;
    }
    if written == 0 {
        let directory = args.directory.display();
        return Err(Failure::Fault(format!(
            "{directory} has no run with samples"
        )));
    }
    writeln!(
        io::stdout(),
        "{written} files run.nmon in {}/runs",
        args.directory.display()
    )?;
    Ok(ExitCode::SUCCESS)
}
