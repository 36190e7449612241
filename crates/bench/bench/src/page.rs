//! `bench report RUN.json [PAGE.html]`: makes an HTML page of a run's JSON report; of two reports the page of both.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use catamaran_load::render::html;
use catamaran_load::report::Report;

use crate::settings::reason;
use crate::{BenchFailure, output};

/// The first word of a command line that asks for a page.
pub(crate) const WORD: &str = "report";

/// Writes an HTML page of one report, or of two to compare. Without a name, the page is written to the directory of the
/// last report.
pub(crate) fn run(arguments: &[String]) -> Result<u8, BenchFailure> {
    let is_report = |name: &String| Path::new(name).extension().is_some_and(|end| end == "json");
    let (runs, destination) = match arguments {
        [before, after, rest @ ..] if is_report(after) && rest.len() < 2 => {
            (vec![before, after], rest.first())
        }
        [run, rest @ ..] if rest.len() < 2 => (vec![run], rest.first()),
        _ => return Err(BenchFailure::Usage(USAGE.to_owned())),
    };
    let page_path = destination.cloned().unwrap_or_else(|| beside(&runs));
    for run in &runs {
        // There are no flags, and a report must not be overwritten by its page.
        if run.starts_with('-') || **run == page_path {
            return Err(BenchFailure::Usage(USAGE.to_owned()));
        }
    }
    let page = match runs[..] {
        [before, after] => html::page_beside(&read(before)?, &read(after)?),
        _ => html::page(&read(runs[0])?),
    };
    if page_path == "-" {
        io::stdout().lock().write_all(page.as_bytes())?;
    } else {
        output::write(&page_path, &page)?;
    }
    Ok(0)
}

/// The page's file: that of the last report with another ending, and with the names of both if there are two.
fn beside(runs: &[&String]) -> String {
    let stem = |name: &String| {
        let stem = Path::new(name).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    let names: Vec<String> = runs.iter().map(|name| stem(name)).collect();
    let last = runs.last().map_or("", |name| name.as_str());
    let page = Path::new(last).with_file_name(names.join("-and-") + ".html");
    page.to_string_lossy().into_owned()
}

fn read(path: &str) -> Result<Report, BenchFailure> {
    let text = fs::read_to_string(path)
        .map_err(|error| BenchFailure::Fault(format!("cannot read {path}: {}", reason(&error))))?;
    Report::parse(&text).map_err(|fault| BenchFailure::Fault(format!("{path}: {fault}")))
}

const USAGE: &str = "`catamaran bench report RUN.json [PAGE.html]` makes a page of what --json=RUN.json wrote, and \
                     `catamaran bench report BEFORE.json AFTER.json [PAGE.html]` one of two runs; `-` is standard output";
