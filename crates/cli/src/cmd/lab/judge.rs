//! `lab judge`: says which conclusions the figures of others do not support.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use catamaran_lab::judge::{Judgement, judge};
use serde::Serialize;

use crate::failure::Failure;

/// Say which conclusions the output of ab, wrk, hey, k6 and others, of strace -c or of `bench --json` does not support; runs
/// of one page are compared, and files of one run that follow each other
#[derive(clap::Args)]
pub(super) struct LabJudgeArgs {
    /// Texts with one or more runs, or whole pages, also in HTML; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// The JSON that `--json` writes.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    judgements: Vec<Judgement>,
}

pub(super) fn run(args: &LabJudgeArgs) -> Result<ExitCode, Failure> {
    let mut texts = Vec::new();
    for path in &args.files {
        texts.push(read(path)?);
    }
    let judgements = match judge(&texts) {
        Ok(judgements) => judgements,
        Err(fault) => {
            Failure::Fault(fault.to_string()).say();
            return Ok(ExitCode::from(NO_VERDICT));
        }
    };
    let mut out = io::stdout().lock();
    if args.json {
        let report = Report {
            schema: SCHEMA,
            judgements,
        };
        serde_json::to_writer_pretty(&mut out, &report).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    for judgement in judgements {
        write!(out, "{judgement}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a file, or standard input for `-`; returns its name and its text.
fn read(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let result = if name == "-" {
        io::stdin().lock().take(BYTES_MAX).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes))
    };
    result.map_err(|error| Failure::Fault(format!("cannot read {name}: {error}")))?;
    Ok((name, String::from_utf8_lossy(&bytes).into_owned()))
}

/// The most bytes that are read; no page is longer.
const BYTES_MAX: u64 = 64 << 20;

/// The exit code if a file contains nothing to judge.
const NO_VERDICT: u8 = 3;

/// The name and version of the format that `--json` writes.
const SCHEMA: &str = "catamaran-judge/1";
