//! What packages have in common: unit, configuration, man pages, documents.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::tree::{Tree, text};
use crate::step::program;

/// The unit for a binary in /usr/bin.
pub(super) fn unit(source: &Path) -> anyhow::Result<String> {
    let unit = fs::read_to_string(source.join(UNIT))?;
    unit_of_package(&unit).with_context(|| format!("{UNIT} has no [Unit]"))
}

/// A man page of each command in `folder` of the tree, as the binary writes them.
pub(super) fn man_pages(tree: &Tree, folder: &str, binary: &Path) -> anyhow::Result<()> {
    let folder = tree.directory(folder)?;
    program(text(binary)?, &["generate", "man", text(&folder)?]).finish()
}

/// Pages, examples and changelog in `folder` of the tree.
pub(super) fn documents(tree: &Tree, folder: &str, source: &Path) -> anyhow::Result<()> {
    let folder = tree.directory(folder)?;
    let copy = "cd \"$1\" && cp CHANGELOG.md docs/*.md \"$2\" && cp -r docs/examples \"$2\"";
    program("sh", &["-c", copy, "sh", text(source)?, text(&folder)?]).finish()
}

/// The unit of docs/examples without its head, which installs by hand.
fn unit_of_package(example: &str) -> Option<String> {
    let start = example.find("[Unit]")?;
    Some(example[start..].replace("/usr/local/bin/", "/usr/bin/"))
}

/// The file that the packages install, which serves nobody.
pub(super) const CONFIGURATION: &str = include_str!("catamaran.toml");

const UNIT: &str = "docs/examples/catamaran.service";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_installed_binary() {
        let unit =
            unit_of_package(include_str!("../../../../docs/examples/catamaran.service")).unwrap();
        assert!(unit.starts_with("[Unit]"));
        assert!(unit.contains("\nExecStart=/usr/bin/catamaran serve "));
        assert!(!unit.contains("/usr/local"));
    }
}
