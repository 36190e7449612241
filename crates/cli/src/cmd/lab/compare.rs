//! `lab compare`: says what has changed between two results.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use catamaran_lab::compare::compare;
use catamaran_lab::result::ResultDocument;
use catamaran_lab::store::open_result_file;

use crate::failure::Failure;

/// Compare two results of one experiment: exit code 0 if B is shown not to be worse than A, 1 if it is
/// worse, 2 if they cannot be compared, 3 if that is open
#[derive(clap::Args)]
pub(super) struct LabCompareArgs {
    /// The directory of the older result, or its result.json
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The newer one
    #[arg(value_name = "B")]
    after: PathBuf,

    /// The difference from which on a result counts as worse
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    worse: f64,
}

pub(super) fn run(args: &LabCompareArgs) -> Result<ExitCode, Failure> {
    verdict(args).map_err(Failure::without_verdict)
}

fn verdict(args: &LabCompareArgs) -> Result<ExitCode, Failure> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let compared = compare(&before, &after, args.worse);
    let comparison = compared.map_err(|fault| Failure::Fault(fault.to_string()))?;
    write!(io::stdout(), "{comparison}")?;
    Ok(match comparison.is_worse() {
        Some(false) => ExitCode::SUCCESS,
        Some(true) => ExitCode::from(1),
        None => ExitCode::from(3),
    })
}

fn read(path: &Path) -> Result<ResultDocument, Failure> {
    let path = if path.is_dir() {
        path.join("result.json")
    } else {
        path.to_owned()
    };
    let (_, result) = open_result_file(&path).map_err(|fault| Failure::Fault(fault.to_string()))?;
    Ok(result)
}

/// Parses a percentage as a ratio: `5%` is 0.05.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::parse::<f64>);
    match number {
        Some(Ok(number)) if number > 0.0 && number < 1000.0 => Ok(number / 100.0),
        _ => Err("it is a percentage such as 5%".to_owned()),
    }
}
