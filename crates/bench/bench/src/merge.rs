//! `bench merge A.hdr B.hdr [--hdr FILE]`: adds up the HDR logs of several load generators.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};

use catamaran_load::render::hdr::{self, Log};

use crate::BenchFailure;
use crate::output::cannot_write;
use crate::settings::reason;

/// The first word of a command line that asks for a merge.
pub(crate) const WORD: &str = "merge";

/// Prints the sum of several HdrHistogram logs; with `--hdr`, also writes it as a log.
pub(crate) fn run(arguments: &[String]) -> Result<u8, BenchFailure> {
    let (paths, sum_path) = read_line(arguments)?;
    let logs: Result<Vec<Log>, BenchFailure> = paths.into_iter().map(read).collect();
    let merged = Log::merge(logs?);
    if let Some(path) = sum_path {
        write(path, &merged).map_err(|error| cannot_write(path, &error))?;
    }
    write!(io::stdout(), "{}", hdr::totals(&merged))?;
    Ok(0)
}

/// The paths of the logs, and the file of `--hdr`; `None` without that flag.
fn read_line(arguments: &[String]) -> Result<(Vec<&str>, Option<&str>), BenchFailure> {
    let usage = || BenchFailure::Usage(USAGE.to_owned());
    let (mut paths, mut sum_path) = (Vec::new(), None);
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if let Some(after_flag) = word.strip_prefix("--hdr") {
            let value = match after_flag {
                "" => words.next().ok_or_else(usage)?,
                _ => after_flag.strip_prefix('=').ok_or_else(usage)?,
            };
            if sum_path.replace(value).is_some() {
                return Err(usage());
            }
        } else if word.starts_with('-') {
            return Err(usage());
        } else {
            paths.push(word);
        }
    }
    if paths.is_empty() {
        return Err(usage());
    }
    Ok((paths, sum_path))
}

/// Reads an HDR log; one without any histogram is refused.
fn read(path: &str) -> Result<Log, BenchFailure> {
    let bytes = fs::read(path)
        .map_err(|error| BenchFailure::Fault(format!("cannot read {path}: {}", reason(&error))))?;
    let log = Log::read(&bytes).map_err(|fault| BenchFailure::Fault(format!("{path}: {fault}")))?;
    if log.is_empty() {
        let text = format!("{path}: no histogram is in it; --hdr of bench writes such logs");
        return Err(BenchFailure::Fault(text));
    }
    Ok(log)
}

fn write(path: &str, log: &Log) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    log.write(&mut file)?;
    file.flush()
}

const USAGE: &str = "`catamaran bench merge A.hdr B.hdr [--hdr FILE]` adds up logs that --hdr of bench \
                     wrote, and writes the sum to FILE";
