//! `lab prepare`: builds the software of a published test.

use std::io::{self, Write as _};
use std::path::PathBuf;

use catamaran_lab::{reproduce, then};

use super::needs;
use crate::failure::Failure;

/// Build the software of a published test from its own sources, so that experiments can run it; list it without a name
#[derive(clap::Args)]
pub(super) struct LabPrepareArgs {
    /// The software, such as httpd-2.0.63
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// A clone of a repository, an archive, or a folder with clones and archives; may be repeated
    #[arg(long, value_name = "DIR|FILE", requires = "name")]
    source: Vec<PathBuf>,

    /// Build into DIR/NAME [default: ~/.local/share/catamaran/then/NAME]; `lab run` needs --module NAME=DIR/NAME then
    #[arg(long, value_name = "DIR", requires = "name")]
    into: Option<PathBuf>,

    /// Reproduce the figures of the published test that are the same on any machine: bytes and system calls. It needs
    /// root and strace
    #[arg(long, requires = "name")]
    check: bool,
}

pub(super) fn run(args: &LabPrepareArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        return list();
    };
    let software = then::find(name).ok_or_else(|| {
        let names: Vec<&str> = then::all()
            .iter()
            .map(|software| software.name.as_str())
            .collect();
        Failure::Usage(format!(
            "no software `{name}`; there is {}",
            names.join(" ")
        ))
    })?;
    let folder = match &args.into {
        // The software keeps the path that it is built for.
        Some(folder) => std::path::absolute(folder)?,
        None => needs::then_folder()?,
    };
    let out = folder.join(name);
    if !software.is_prepared(&out) {
        writeln!(
            io::stderr(),
            "preparing {name}; building takes some minutes"
        )?;
        software
            .prepare(&out, &args.source)
            .map_err(|fault| Failure::Fault(fault.to_string()))?;
    }
    writeln!(io::stdout(), "{name} is in {}", out.display())?;
    if args.check {
        return check(name, out);
    }
    Ok(())
}

/// Prints each figure beside the published one; one that is not as expected is a failure.
fn check(name: &str, out: PathBuf) -> Result<(), Failure> {
    if !reproduce::has_cases(name) {
        return Err(Failure::Fault(format!("no figures are known of {name}")));
    }
    let programs = needs::programs(&[(name.to_owned(), out)])?;
    let space = format!("catamaran-lab.{}", std::process::id());
    let figures = reproduce::reproduce(name, &programs, &space)
        .map_err(|fault| Failure::Fault(fault.to_string()))?;
    let mut stdout = io::stdout().lock();
    writeln!(
        stdout,
        "{:<34}{:<28}{:>10}{:>10}{:>11}",
        "a request of", "figure", "published", "expected", "measured"
    )?;
    for figure in &figures {
        let published = match figure.published {
            Some(published) => format!("{published:.1}"),
            None => String::new(),
        };
        let verdict = if figure.holds() { "" } else { "  differs" };
        writeln!(
            stdout,
            "{:<34}{:<28}{published:>10}{:>10.1}{:>11.3}{verdict}",
            figure.case, figure.figure, figure.expected, figure.measured
        )?;
    }
    match figures.iter().filter(|figure| !figure.holds()).count() {
        0 => Ok(()),
        count => Err(Failure::Fault(format!(
            "{count} figures are not as expected"
        ))),
    }
}

fn list() -> Result<(), Failure> {
    let folder = needs::then_folder()?;
    for software in then::all() {
        let is_prepared = software.is_prepared(&folder.join(&software.name));
        let state = if is_prepared { "prepared" } else { "" };
        writeln!(
            io::stdout(),
            "{:<22} {state:<9} {}",
            software.name,
            software.what
        )?;
    }
    Ok(())
}
