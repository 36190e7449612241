//! Long runs in namespaces of their own: network, mounts and processes, which end with them.

use std::env;
use std::process::Command;

use anyhow::{Context as _, bail};

/// Runs this program again with the one argument `inside`, as root where the network, mounts and processes are its
/// own, for at most so many minutes: all that it starts ends with it. `true` if it exits with 0, `false` if with 1.
///
/// # Errors
/// There is no `timeout` or `unshare`, time is up, or it ended in another way.
pub fn run_inside(inside: &str, minutes_max: u32) -> anyhow::Result<bool> {
    let mut own = Command::new("timeout");
    own.args(["--kill-after=5", &format!("{minutes_max}m")])
        .args(["unshare", "--net", "--mount", "--pid", "--fork"])
        .args(["--kill-child", "--mount-proc"])
        .arg(env::current_exe()?)
        .arg(inside);
    let status = own.status().context("cannot run timeout and unshare")?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        // What `timeout` says when time is up.
        Some(124 | 137) => bail!("it was not over after {minutes_max} minutes"),
        _ => bail!("it ended with {status}"),
    }
}
