//! Running the steps of a command: each announced, timed and summed up at the end.
//!
//! Commands inherit stdout and stderr, unless their output is read. The first step that fails ends the run.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// The steps taken so far, with their durations.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<(String, Duration, bool)>,
}

/// A command to run, not yet started.
#[derive(Debug)]
pub(crate) struct Invocation(Command);

impl Steps {
    /// Runs one step and prints how long it took.
    pub(crate) fn run<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        say(&format!("==> {name}"));
        let start = now();
        let result = work();
        let time = now().duration_since(start);
        self.done.push((name.to_owned(), time, result.is_ok()));
        let outcome = if result.is_ok() { "ok" } else { "FAILED" };
        say(&format!(
            "<== {name}: {outcome} in {:.1} s",
            time.as_secs_f64()
        ));
        result.with_context(|| format!("step {name}"))
    }

    /// Prints one line for each step with its duration.
    pub(crate) fn summarise(&self) {
        say("");
        for (name, took, passed) in &self.done {
            let outcome = if *passed { "ok" } else { "FAILED" };
            say(&format!(
                "{:>8.1} s  {outcome:<6}  {name}",
                took.as_secs_f64()
            ));
        }
    }
}

/// An invocation of `cargo` in `directory`; it is the cargo that runs this program.
pub(crate) fn cargo(directory: &Path, arguments: &[&str]) -> Invocation {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(directory).args(arguments);
    Invocation(command)
}

/// An invocation of a program other than cargo.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Invocation {
    let mut command = Command::new(name);
    command.args(arguments);
    Invocation(command)
}

impl Invocation {
    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.0.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.0.current_dir(directory);
        self
    }

    /// Runs the program.
    ///
    /// # Errors
    /// The program ends with another status than 0.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let status = self.0.status().with_context(|| self.describe())?;
        if !status.success() {
            bail!("{} failed: {status}", self.describe());
        }
        Ok(())
    }

    /// Runs the program without showing its output. Returns whether it could be run and succeeded.
    pub(crate) fn succeeds(mut self) -> bool {
        let quiet = self
            .0
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }

    /// Runs the program and returns its stdout.
    ///
    /// # Errors
    /// The program ends with another status than 0.
    pub(crate) fn output(mut self) -> anyhow::Result<String> {
        let output = self.0.stderr(Stdio::null()).output();
        self.stdout_of(output)
    }

    /// As [`Self::output`], but stderr is shown.
    pub(crate) fn output_beside_stderr(mut self) -> anyhow::Result<String> {
        let output = self.0.stderr(Stdio::inherit()).output();
        self.stdout_of(output)
    }

    /// What the program wrote to stdout; another status than 0 is an error.
    fn stdout_of(&self, output: std::io::Result<Output>) -> anyhow::Result<String> {
        let output = output.with_context(|| self.describe())?;
        if !output.status.success() {
            bail!("{} failed: {}", self.describe(), output.status);
        }
        String::from_utf8(output.stdout).with_context(|| self.describe())
    }

    fn describe(&self) -> String {
        let words = std::iter::once(self.0.get_program()).chain(self.0.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

/// Prints one line to stdout.
#[expect(clippy::print_stdout, reason = "a command-line tool reports on stdout")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// The clock that steps and measurements are timed by.
#[expect(
    clippy::disallowed_methods,
    reason = "durations are all that is wanted"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
