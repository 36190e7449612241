//! Waits for commands to end, and returns what they printed.

use catamaran_testkit::{Deadline, Process};

/// Waits for the end of a process; returns the exit code, stdout and stderr.
///
/// # Errors
/// The process does not end.
pub fn outcome(mut process: Process) -> anyhow::Result<(Option<i32>, String, String)> {
    let status = process.wait(Deadline::default())?;
    Ok((status.code(), process.stdout(), process.stderr()))
}

/// Runs `bench` with these words to its end; returns the exit code, stdout and stderr.
///
/// # Errors
/// `bench` cannot be started, or does not end.
pub fn bench(words: &str) -> anyhow::Result<(Option<i32>, String, String)> {
    let arguments: Vec<&str> = ["bench"]
        .into_iter()
        .chain(words.split_whitespace())
        .collect();
    outcome(catamaran_testkit::catamaran(&arguments)?)
}
