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
    let is_report = |name: &&String| Path::new(name).extension().is_some_and(|it| it == "json");
    let (runs, to) = match arguments {
        [one, other, rest @ ..] if is_report(&other) && rest.len() < 2 => {
            (vec![one, other], rest.first())
        }
        [one, rest @ ..] if rest.len() < 2 => (vec![one], rest.first()),
        _ => return Err(BenchFailure::Usage(USAGE.to_owned())),
    };
    let to = to.cloned().unwrap_or_else(|| beside(&runs));
    if runs
        .iter()
        .any(|from| from.starts_with('-') || **from == to)
    {
        return Err(BenchFailure::Usage(USAGE.to_owned()));
    }
    let reports = runs.iter().map(|from| read(from));
    let page = match &reports.collect::<Result<Vec<_>, _>>()?[..] {
        [before, after] => html::page_beside(before, after),
        [run, ..] => html::page(run),
        [] => return Err(BenchFailure::Usage(USAGE.to_owned())),
    };
    if to == "-" {
        io::stdout().lock().write_all(page.as_bytes())?;
    } else {
        output::write(&to, &page)?;
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

fn read(from: &str) -> Result<Report, BenchFailure> {
    let text = fs::read_to_string(from)
        .map_err(|error| BenchFailure::Fault(format!("cannot read {from}: {}", reason(&error))))?;
    Report::parse(&text).map_err(|fault| BenchFailure::Fault(format!("{from}: {fault}")))
}

const USAGE: &str = "`catamaran bench report RUN.json [PAGE.html]` makes a page of what --json=RUN.json wrote, and \
                     `catamaran bench report BEFORE.json AFTER.json [PAGE.html]` one of two runs; `-` is standard output";
