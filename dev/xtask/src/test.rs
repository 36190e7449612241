//! Running every test, with the servers they need and the binary they drive.
//!
//! The end-to-end tests drive the release build, because they move gibibytes; its path reaches
//! them in [`BINARY`]. A skipped test is a failure: what must hold is checked or it is not in the
//! suite.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use cargo_metadata::MetadataCommand;

use crate::needs;
use crate::step::{Steps, cargo, say};

/// Installs the servers that tests run against.
pub(crate) fn install(steps: &mut Steps) -> anyhow::Result<()> {
    steps.run("install what the tests need", || {
        needs::install(&needs::of_tests())?;
        needs::fetch_containers()?;
        needs::fetch_parsers()
    })
}

/// Installs, builds, and runs all tests.
pub(crate) fn all(steps: &mut Steps, root: &Path) -> anyhow::Result<()> {
    install(steps)?;
    let binary = steps.run("build the binary", || {
        cargo(
            root,
            &["build", "--release", "--quiet", "--package", "catamaran"],
        )
        .finish()?;
        Ok(target_directory(root)?.join("release/catamaran"))
    })?;
    steps.run("test", || {
        let mut totals = Totals::default();
        let passed = cargo(root, &["test", "--workspace", "--no-fail-fast"])
            .env(BINARY, &binary)
            .finish_watched(|line| totals.count(line));
        say(&totals.line());
        passed?;
        totals.verdict()
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

/// Where cargo builds.
pub(crate) fn target_directory(root: &Path) -> anyhow::Result<PathBuf> {
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec();
    Ok(metadata.context("cargo metadata")?.target_directory.into())
}

/// The sum of cargo test's closing lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    suites: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
    filtered: u64,
}

impl Totals {
    fn count(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        self.suites += 1;
        // "ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
        for part in counts.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let count = words.next().and_then(|count| count.parse::<u64>().ok());
            let total = match words.next() {
                Some("passed") => &mut self.passed,
                Some("failed") => &mut self.failed,
                Some("ignored") => &mut self.ignored,
                Some("filtered") => &mut self.filtered,
                _ => continue,
            };
            *total += count.unwrap_or(0);
        }
    }

    fn line(&self) -> String {
        format!(
            "{} suites: {} passed, {} failed, {} ignored, {} filtered out",
            self.suites, self.passed, self.failed, self.ignored, self.filtered
        )
    }

    fn verdict(&self) -> anyhow::Result<()> {
        if self.passed == 0 {
            bail!("no test ran");
        }
        if self.ignored + self.filtered > 0 {
            bail!("every test must run: {}", self.line());
        }
        Ok(())
    }
}

/// The environment variable that tells the end-to-end tests which binary to drive.
pub(crate) const BINARY: &str = "CATAMARAN_BIN";

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(lines: &[&str]) -> Totals {
        let mut totals = Totals::default();
        for line in lines {
            totals.count(line);
        }
        totals
    }

    #[test]
    fn sums_the_closing_lines() {
        let totals = totals(&[
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.17s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s",
        ]);
        assert_eq!(
            totals.line(),
            "2 suites: 4 passed, 2 failed, 0 ignored, 0 filtered out"
        );
        assert!(totals.verdict().is_ok());
    }

    #[test]
    fn an_ignored_test_fails_the_run() {
        let line = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; x";
        let error = totals(&[line]).verdict().unwrap_err();
        assert!(error.to_string().contains("1 ignored"), "{error}");
    }

    #[test]
    fn a_run_without_tests_fails() {
        assert!(totals(&[]).verdict().is_err());
    }
}
