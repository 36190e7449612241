//! `bench report RUN.json [PAGE.html]`: a run's JSON report as a page.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use catamaran_load::document::Document;
use catamaran_load::render::html;

use super::output;
use super::typed::reason;
use crate::failure::Failure;

/// The word that asks for it, as the first of the line.
pub(super) const WORD: &str = "report";

/// Writes the page; without its name, beside the report.
pub(super) fn run(arguments: &[String]) -> Result<ExitCode, Failure> {
    let (from, to) = match arguments {
        [from] => (
            from,
            Path::new(from)
                .with_extension("html")
                .to_string_lossy()
                .into_owned(),
        ),
        [from, to] => (from, to.clone()),
        _ => return Err(Failure::Usage(USAGE.to_owned())),
    };
    if from.starts_with('-') || *from == to {
        return Err(Failure::Usage(USAGE.to_owned()));
    }
    let text = fs::read_to_string(from)
        .map_err(|error| Failure::Fault(format!("cannot read {from}: {}", reason(&error))))?;
    let document =
        Document::parse(&text).map_err(|fault| Failure::Fault(format!("{from}: {fault}")))?;
    let page = html::page(&document);
    if to == "-" {
        io::stdout().lock().write_all(page.as_bytes())?;
    } else {
        output::write(&to, &page)?;
    }
    Ok(ExitCode::SUCCESS)
}

const USAGE: &str = "`catamaran bench report RUN.json [PAGE.html]` makes a page of what --json=RUN.json \
                     wrote; `-` is standard output";
