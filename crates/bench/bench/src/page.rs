//! `bench report RUN.json [PAGE.html]`: makes an HTML page of a run's JSON report.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use catamaran_load::render::html;
use catamaran_load::report::Report;

use crate::settings::reason;
use crate::{BenchFailure, output};

/// The first word of a command line that asks for a page.
pub(crate) const WORD: &str = "report";

/// Writes a report as an HTML page. Without a second argument, the page is written beside the report.
pub(crate) fn run(arguments: &[String]) -> Result<u8, BenchFailure> {
    let (from, to) = match arguments {
        [from] => (
            from,
            Path::new(from)
                .with_extension("html")
                .to_string_lossy()
                .into_owned(),
        ),
        [from, to] => (from, to.clone()),
        _ => return Err(BenchFailure::Usage(USAGE.to_owned())),
    };
    if from.starts_with('-') || *from == to {
        return Err(BenchFailure::Usage(USAGE.to_owned()));
    }
    let text = fs::read_to_string(from)
        .map_err(|error| BenchFailure::Fault(format!("cannot read {from}: {}", reason(&error))))?;
    let report =
        Report::parse(&text).map_err(|fault| BenchFailure::Fault(format!("{from}: {fault}")))?;
    let page = html::page(&report);
    if to == "-" {
        io::stdout().lock().write_all(page.as_bytes())?;
    } else {
        output::write(&to, &page)?;
    }
    Ok(0)
}

const USAGE: &str = "`catamaran bench report RUN.json [PAGE.html]` makes a page of what --json=RUN.json \
                     wrote; `-` is standard output";
