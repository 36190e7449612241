//! Programs that `cargo xtask needs` makes of Go modules.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The path of a program that `cargo xtask needs` has made of a Go module.
///
/// # Errors
/// It was not made.
pub fn go_program(name: &str) -> anyhow::Result<PathBuf> {
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    let path = Path::new(&home).join(".cache/catamaran/go").join(name);
    anyhow::ensure!(
        path.exists(),
        "{} is missing: cargo xtask needs",
        path.display()
    );
    Ok(path)
}
