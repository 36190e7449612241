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
    let (paths, to) = read_line(arguments)?;
    let logs: Result<Vec<Log>, BenchFailure> = paths.into_iter().map(read).collect();
    let merged = Log::merge(logs?);
    if let Some(to) = to {
        write(to, &merged).map_err(|error| cannot_write(to, &error))?;
    }
    write!(io::stdout(), "{}", hdr::totals(&merged))?;
    Ok(0)
}

/// The paths of the logs, and the file of `--hdr`; `None` without that flag.
fn read_line(arguments: &[String]) -> Result<(Vec<&str>, Option<&str>), BenchFailure> {
    let usage = || BenchFailure::Usage(USAGE.to_owned());
    let (mut paths, mut to) = (Vec::new(), None);
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--hdr") {
            Some("") => Some(words.next().ok_or_else(usage)?),
            Some(rest) => Some(rest.strip_prefix('=').ok_or_else(usage)?),
            None if word.starts_with('-') => return Err(usage()),
            None => None,
        };
        match value {
            Some(_) if to.is_some() => return Err(usage()),
            Some(value) => to = Some(value),
            None => paths.push(word),
        }
    }
    if paths.is_empty() {
        return Err(usage());
    }
    Ok((paths, to))
}

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
