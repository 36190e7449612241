//! Where the built `catamaran` binary is.
//!
//! `cargo xtask test` builds the release binary and names it in `CATAMARAN_BIN`. Without that, as
//! in a plain `cargo test`, the newest one in the target directory of the running test is taken.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::Process;

/// The path of the binary under test.
///
/// # Errors
/// It has not been built.
pub fn binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = env::var_os("CATAMARAN_BIN") {
        let path = PathBuf::from(path);
        ensure!(
            path.exists(),
            "CATAMARAN_BIN is {}, which does not exist",
            path.display()
        );
        return Ok(path);
    }
    // target/PROFILE/deps/it-0123
    let test = env::current_exe()?;
    let target = test
        .ancestors()
        .nth(3)
        .context("the test is not in a target directory")?;
    let paths = ["debug", "release"].map(|profile| target.join(profile).join("catamaran"));
    let built = paths
        .into_iter()
        .filter_map(|path| Some((modified(&path)?, path)));
    // The one that was built last is meant.
    let (_, path) = built.max().context(
        "no catamaran binary: run `cargo xtask test`, or `cargo build -p catamaran` first",
    )?;
    Ok(path)
}

/// Starts the binary with `arguments` and captured output.
///
/// # Errors
/// As [`binary`], or it cannot be started.
pub fn catamaran(arguments: &[impl AsRef<OsStr>]) -> anyhow::Result<Process> {
    Process::spawn(Command::new(binary()?).args(arguments))
}

/// Writes a program of these lines for the shell.
///
/// # Errors
/// It cannot be written.
pub fn write_script(path: &Path, lines: &str) -> anyhow::Result<()> {
    // A child writes it. If this process had it open, so had a child that another thread starts at that moment, until
    // this runs its own program; meanwhile "text file busy" would be the answer to whoever runs the script.
    let write = "printf '#!/bin/sh\\n%s' \"$2\" > \"$1\" && chmod 755 \"$1\"";
    let mut shell = Command::new("sh");
    let status = shell
        .args(["-c", write, "sh"])
        .arg(path)
        .arg(lines)
        .status()?;
    ensure!(status.success(), "cannot write {}", path.display());
    Ok(())
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().ok()?.modified().ok()
}
