//! Running tests: the fast ones, those with a name, or all, with the servers that they need.
//!
//! Cargo builds the test programs; this runs them, several at a time. Tests of servers drive the release build, because
//! they move gibibytes; its path reaches them in [`BINARY`]. A skipped test is a failure.

mod bare;
mod programs;
mod run;
mod times;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use cargo_metadata::MetadataCommand;

use self::bare::Bare;
use self::programs::Need;
use self::run::Job;
use self::times::Times;
use crate::needs;
use crate::step::{Steps, cargo, say};

/// A selection of tests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Selection<'s> {
    /// The tests that need neither servers nor root nor much time.
    Fast,
    /// The tests whose name contains one of these texts.
    Named(&'s [&'s str]),
    /// All tests, with the examples in the documentation.
    All,
}

/// Installs the servers that tests need.
pub(crate) fn install(steps: &mut Steps) -> anyhow::Result<()> {
    steps.run("install what the tests need", || {
        needs::install(&needs::of_tests())?;
        needs::fetch_containers()?;
        needs::fetch_parsers()?;
        needs::make_go_programs()
    })
}

/// Runs `cargo xtask test` with these words after the command.
pub(crate) fn command(words: &[&str]) -> anyhow::Result<()> {
    let selection = match words {
        ["--help"] => {
            say(USAGE);
            return Ok(());
        }
        ["--fast"] => Selection::Fast,
        [] => Selection::All,
        names => {
            let flag = names.iter().find(|name| name.starts_with('-'));
            ensure!(flag.is_none(), "no such flag\n{USAGE}");
            Selection::Named(names)
        }
    };
    crate::run(|steps, root| run(steps, root, selection))
}

/// Builds the tests, installs what the selected ones need, and runs them.
pub(crate) fn run(steps: &mut Steps, root: &Path, selection: Selection<'_>) -> anyhow::Result<()> {
    let mut programs = steps.run("build the tests", || programs::build(root))?;
    programs.retain_mut(|program| program.select(selection));
    ensure!(!programs.is_empty(), "no test has such a name");
    let mut binary = None;
    if programs.iter().any(|program| program.need == Need::Servers) {
        install(steps)?;
        let build = ["build", "--release", "--quiet", "--package", "catamaran"];
        steps.run("build the binary", || cargo(root, &build).finish())?;
        binary = Some(target_directory(root)?.join("release/catamaran"));
    }
    let bare = Bare::prepare()?;
    let mut jobs: Vec<Job> = programs
        .iter()
        .map(|program| program.job(&bare, binary.as_deref()))
        .collect();
    if matches!(selection, Selection::All) {
        jobs.push(Job::of_documentation(root));
    }
    steps.run("test", || {
        let mut times = Times::default();
        let result = run::run_all(jobs, &mut times);
        // The times of failed tests are printed as well.
        times.print();
        result?;
        times.verdict()
    })
}

/// The binary for a long run: that of [`BINARY`], or else a build for debugging.
pub(crate) fn binary(steps: &mut Steps, root: &Path) -> anyhow::Result<OsString> {
    if let Some(binary) = env::var_os(BINARY) {
        return Ok(binary);
    }
    steps.run("build the binary", || {
        cargo(root, &["build", "--quiet", "--package", "catamaran"]).finish()?;
        Ok(target_directory(root)?.join("debug/catamaran").into())
    })
}

/// Cargo's target directory.
pub(crate) fn target_directory(root: &Path) -> anyhow::Result<PathBuf> {
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec();
    Ok(metadata.context("cargo metadata")?.target_directory.into())
}

/// The environment variable that tells the end-to-end tests which binary to drive.
pub(crate) const BINARY: &str = "CATAMARAN_BIN";

const USAGE: &str = "usage: cargo xtask test [--fast | NAME…]

  --fast   the tests that need neither servers nor root nor ten seconds of CPU time
  NAME…    the tests whose names contain one of these, in whichever crate; installs servers if one of them needs servers
  nothing  installs servers, then every test, and the examples of the documentation

At the end: the seconds of each test program, and the ten slowest tests.";
