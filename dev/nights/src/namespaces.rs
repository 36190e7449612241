//! Long runs in namespaces of their own: network, mounts and processes, which end with them.

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

/// The whole of a program that takes no arguments: runs `story` where the network, mounts and processes are its own,
/// for at most so many minutes. It exits with 0 if `story` says `true`, 1 if `false`, and 2 after an error, which it
/// prints. It needs root.
#[expect(clippy::print_stdout, reason = "its output is the report")]
pub fn main(minutes_max: u32, story: fn() -> anyhow::Result<bool>) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
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

/// Runs this program again in namespaces: all that it starts ends with it.
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
        // What `timeout` says when time is up.
        Some(124 | 137) => bail!("it was not over after {minutes_max} minutes"),
        _ => bail!("it ended with {status}"),
    }
}

/// What the program is told when it runs in namespaces of its own.
const INSIDE: &str = "inside";
