//! `lab judge`: what figures of others cannot carry.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use catamaran_lab::judge::judge;

use crate::failure::Failure;

/// Say what the output of ab, wrk, strace -c or `bench --json` cannot carry; neighbours are compared
#[derive(clap::Args)]
pub(super) struct Args {
    /// Texts of one run each; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let texts = args.files.iter().map(|path| read(path));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let judgements = judge(&texts).map_err(|fault| Failure::Fault(fault.to_string()))?;
    let mut out = io::stdout().lock();
    for judgement in judgements {
        write!(out, "{judgement}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file's name and what is in it.
fn read(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let done = if name == "-" {
        io::stdin().lock().take(BYTES_MAX).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes))
    };
    done.map_err(|error| Failure::Fault(format!("cannot read {name}: {error}")))?;
    Ok((name, String::from_utf8_lossy(&bytes).into_owned()))
}

/// No tool's report is longer than this.
const BYTES_MAX: u64 = 64 << 20;
