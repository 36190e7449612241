//! Programs from crates that packaging needs: each is built once, in a pinned version, below `target/tools`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::step::{cargo, say};
use crate::test::target_directory;

/// A crate whose program has the crate's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
}

impl Tool {
    /// Returns the path of the program, after building it if it is missing.
    pub(crate) fn program(self, root: &Path) -> anyhow::Result<PathBuf> {
        let Self { name, version } = self;
        let folder = target_directory(root)?.join(format!("tools/{name}-{version}"));
        let program = folder.join("bin").join(name);
        if program.exists() {
            return Ok(program);
        }
        say(&format!("building {name} {version}"));
        fs::create_dir_all(&folder)?;
        let place = folder.to_str().context("target is not UTF-8")?;
        let install = ["install", "--locked", "--quiet", "--version", version];
        cargo(root, &install)
            .args(&["--root", place, name])
            .finish()?;
        ensure!(program.exists(), "{name} {version} has no such program");
        Ok(program)
    }
}

/// cargo-auditable, which writes the list of a binary's crates into its section `.dep-v0`.
pub(crate) const AUDITABLE: Tool = Tool {
    name: "cargo-auditable",
    version: "0.7.7",
};

/// cargo-cyclonedx, which writes a list of crates with their licences as CycloneDX.
pub(crate) const CYCLONEDX: Tool = Tool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
};

/// cargo-deb, which makes a Debian package of the built binary.
pub(crate) const DEB: Tool = Tool {
    name: "cargo-deb",
    version: "3.8.0",
};
