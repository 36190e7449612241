//! What a command has said, once it is over.

use catamaran_testkit::{Deadline, Process};

/// Waits for the end of a process: exit code, stdout, stderr.
///
/// # Errors
/// It does not end.
pub fn outcome(mut process: Process) -> anyhow::Result<(Option<i32>, String, String)> {
    let status = process.wait(Deadline::default())?;
    Ok((status.code(), process.stdout(), process.stderr()))
}

/// Runs `bench` with these words to its end: exit code, stdout, stderr.
///
/// # Errors
/// It cannot be started, or does not end.
pub fn bench(words: &str) -> anyhow::Result<(Option<i32>, String, String)> {
    let arguments: Vec<&str> = ["bench"]
        .into_iter()
        .chain(words.split_whitespace())
        .collect();
    outcome(catamaran_testkit::catamaran(&arguments)?)
}
