//! Runs a program in namespaces of its own (network, mounts, processes), which end with it.

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

/// The `main` of a program without arguments: runs `story` in its own namespaces for network, mounts and processes,
/// for at most `minutes_max` minutes. The exit code is 0 if `story` returns `true`, 1 if it returns `false`, and 2
/// after an error, which is printed. It needs root.
#[expect(clippy::print_stdout, reason = "its output is the report")]
pub fn main(minutes_max: u32, story: fn() -> anyhow::Result<bool>) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [] => enter(minutes_max),
        [INSIDE] => story(),
        _ => Err(anyhow::anyhow!("this takes no arguments")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            println!("{error:?}");
            ExitCode::from(2)
        }
    }
}

/// Runs this program again in new namespaces. When it ends, everything that it started ends, too.
fn enter(minutes_max: u32) -> anyhow::Result<bool> {
    let mut own = Command::new("timeout");
    own.args(["--kill-after=5", &format!("{minutes_max}m")])
        .args(["unshare", "--net", "--mount", "--pid", "--fork"])
        .args(["--kill-child", "--mount-proc"])
        .arg(env::current_exe()?)
        .arg(INSIDE);
    let status = own.status().context("cannot run timeout and unshare")?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        // The exit codes of `timeout` when the time is over; 137 if it had to kill.
        Some(124 | 137) => bail!("it was not over after {minutes_max} minutes"),
        _ => bail!("it ended with {status}"),
    }
}

/// The argument that tells the program that it is in its own namespaces.
const INSIDE: &str = "inside";
