//! Reproduces figures of published tests with the software of their time.
//!
//! Only figures that do not depend on the machine or its other work are checked: bytes, and system calls by name. One
//! client sends requests to one process, so that each request makes the same calls.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};

use catamaran_gauge::{Counts, Strace};
use catamaran_tier::{Launch, Process, Programs, Space, SpaceFault, StartFault, builtin};
use catamaran_toml_file::report::Report;
use serde::Deserialize;

use crate::published::{self, PublishedText, TextFigures};

/// A figure of one request: the expected and the measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproduction {
    /// The case that the figure is of.
    pub case: String,
    /// The name of the figure.
    pub figure: String,
    /// The figure that the test's author published; `None`: there is none.
    pub published: Option<f64>,
    /// The figure that this software has on Linux today.
    pub expected: f64,
    /// The figure that was measured.
    pub measured: f64,
}

/// Why figures could not be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceFault {
    /// The space for the servers cannot be made.
    #[error(transparent)]
    Space(#[from] SpaceFault),
    /// A server does not serve.
    #[error(transparent)]
    Start(#[from] StartFault),
    /// The settings of a server are wrong.
    #[error("{0}")]
    Settings(Report),
    /// strace or the load generator could not be run.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The load generator has printed no figures.
    #[error("{program} printed no figures\n{said}")]
    Load {
        /// The load generator.
        program: String,
        /// What it printed.
        said: String,
    },
}

impl Reproduction {
    /// Whether the figure is the expected one, to the digit that tests publish.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.measured - self.expected).abs() <= DIGIT / 2.0
    }
}

/// Whether there are figures to reproduce with the software called `name`.
#[must_use]
pub fn has_cases(name: &str) -> bool {
    sheets().any(|sheet| sheet.software == name)
}

/// Reproduces all figures of the software called `name`. `space` is the name of a network namespace and a cgroup, which
/// are made and removed.
///
/// # Errors
/// The software is not prepared, this process is not root, or a server fails; [`ReproduceFault`] says why.
pub fn reproduce(
    name: &str,
    programs: &Programs,
    space: &str,
) -> Result<Vec<Reproduction>, ReproduceFault> {
    let mut figures = Vec::new();
    for sheet in sheets().filter(|sheet| sheet.software == name) {
        for case in &sheet.cases {
            let space = Space::isolated(space)?;
            figures.extend(sheet.run(case, &space, programs)?);
        }
    }
    Ok(figures)
}

/// The figures that one piece of software must have: a file of `published/then`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureSheet {
    software: String,
    target: String,
    #[serde(rename = "case")]
    cases: Vec<FigureCase>,
}

/// Servers, a load, and the figures that they must have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureCase {
    /// The short name by which pages refer to the case.
    #[expect(dead_code, reason = "pages read it from the same file")]
    name: String,
    says: String,
    settings: BTreeMap<String, String>,
    /// The load: all requests are of one client of the software's own `ab`.
    keep_alive: bool,
    requests: u64,
    figures: Vec<ExpectedFigure>,
}

/// A figure of one request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedFigure {
    name: String,
    /// What is counted: either bytes or calls.
    bytes: Option<BytesOf>,
    #[serde(default)]
    calls: Vec<String>,
    published: Option<f64>,
    expected: f64,
}

/// The bytes that a load generator counts.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BytesOf {
    /// Bytes of bodies.
    Body,
    /// Bytes of heads and bodies.
    Total,
}

fn sheets() -> impl Iterator<Item = FigureSheet> {
    SHEETS
        .iter()
        .map(|text| toml::from_str(text).expect("a test reads each"))
}

impl FigureSheet {
    /// Runs the case in the space; returns its figures.
    fn run(
        &self,
        case: &FigureCase,
        space: &Space,
        programs: &Programs,
    ) -> Result<Vec<Reproduction>, ReproduceFault> {
        let server = start(space, programs, &self.target, &case.settings)?;
        // The first process starts those that serve, and serves nothing itself.
        let serving: Vec<u32> = server
            .processes()
            .into_iter()
            .filter(|id| *id != server.id())
            .collect();
        let strace = Strace::follow(&serving)?;
        let text = self.load(case, space, programs, &server)?;
        let calls = strace.finish()?;
        let measured = case.figures.iter().map(|figure| Reproduction {
            case: case.says.clone(),
            figure: figure.name.clone(),
            published: figure.published,
            expected: figure.expected,
            measured: figure.measured(&text, &calls) / case.requests as f64,
        });
        Ok(measured.collect())
    }

    /// Sends the requests, and reads what the load generator printed.
    fn load(
        &self,
        case: &FigureCase,
        space: &Space,
        programs: &Programs,
        server: &Process,
    ) -> Result<TextFigures, ReproduceFault> {
        // Without the software the path is empty, and running it fails with a message.
        let folder = programs.get(&self.software);
        let ab = folder.map(|folder| folder.join("bin/ab"));
        let program = ab.unwrap_or_default().display().to_string();
        let mut command = Command::new("timeout");
        command.arg(LOAD_SECONDS).arg(&program);
        command.args(case.keep_alive.then_some("-k"));
        command.args(["-c", "1", "-n", &case.requests.to_string()]);
        command.arg(format!("{}/", server.url("http")));
        let output = space.inside(|| command.stdin(Stdio::null()).output())??;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match published::parse(&said) {
            Ok(PublishedText::Run(figures)) if output.status.success() => Ok(*figures),
            _ => {
                let said = said + &String::from_utf8_lossy(&output.stderr);
                Err(ReproduceFault::Load { program, said })
            }
        }
    }
}

impl ExpectedFigure {
    /// The figure of all requests together.
    fn measured(&self, text: &TextFigures, calls: &Counts) -> f64 {
        let count = match self.bytes {
            Some(BytesOf::Body) => text.body_bytes.unwrap_or_default(),
            Some(BytesOf::Total) => text.bytes.unwrap_or_default(),
            None => {
                let is_counted = |name: &str| self.calls.iter().any(|call| call == name);
                let counted = calls.iter().filter(|(name, _)| is_counted(name));
                counted.map(|(_, call)| call.calls).sum()
            }
        };
        count as f64
    }
}

/// Starts a server of the case.
fn start(
    space: &Space,
    programs: &Programs,
    name: &str,
    set: &BTreeMap<String, String>,
) -> Result<Process, ReproduceFault> {
    let target = builtin(name).expect("a test looks for each");
    let set: Vec<(&str, &str)> = set.iter().map(|(key, value)| (&**key, &**value)).collect();
    let settings = target.settings(&set).map_err(ReproduceFault::Settings)?;
    Ok(space.start(&Launch {
        name,
        target: &target,
        settings: &settings,
        programs,
        core: None,
        limit: None,
    })?)
}

/// The last digit of the figures per request that tests publish.
const DIGIT: f64 = 0.1;
/// The time that a load has before it is ended.
const LOAD_SECONDS: &str = "120";

/// The files of expected figures.
const SHEETS: &[&str] = &[include_str!("../published/then/httpd-2.0.63.toml")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sheet_has_software_and_settings_of_its_target() {
        for sheet in sheets() {
            let software = &sheet.software;
            assert!(catamaran_tier::then::find(software).is_some(), "{software}");
            let target = builtin(&sheet.target).unwrap();
            assert!(target.needs_program(software), "{software}");
            for case in &sheet.cases {
                let set = case.settings.iter();
                let set: Vec<_> = set.map(|(key, value)| (&**key, &**value)).collect();
                target.settings(&set).unwrap();
                assert!(!case.figures.is_empty(), "{}", case.says);
                let is_counted = |it: &ExpectedFigure| it.bytes.is_some() == it.calls.is_empty();
                assert!(case.figures.iter().all(is_counted), "{}", case.says);
            }
        }
        assert!(has_cases("httpd-2.0.63") && !has_cases("httpd"));
    }

    #[test]
    fn a_figure_holds_to_the_digit_that_was_published() {
        let figure = |measured| Reproduction {
            case: "a case".to_owned(),
            figure: "Total transferred".to_owned(),
            published: Some(1891.1),
            expected: 1891.0,
            measured,
        };
        assert!(figure(1891.0).holds() && figure(1890.96).holds());
        assert!(!figure(1891.1).holds() && !figure(0.0).holds());
    }
}
