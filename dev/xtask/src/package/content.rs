//! Generated files of packages: man pages, completions, the unit.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::text;
use crate::step::program;

/// A man page of each command in `man` and completions in `completions` of `folder`, as the binary there writes them.
pub(super) fn write(folder: &Path) -> anyhow::Result<()> {
    let script = "set -e; cd \"$1\"; rm -rf man completions; mkdir man completions
                  ./catamaran generate man man
                  ./catamaran completions bash > completions/catamaran.bash
                  ./catamaran completions zsh > completions/_catamaran
                  ./catamaran completions fish > completions/catamaran.fish";
    program("sh", &["-c", script, "sh", text(folder)?]).finish()
}

/// The unit for a binary in /usr/bin.
pub(super) fn unit(source: &Path) -> anyhow::Result<String> {
    let unit = fs::read_to_string(source.join(UNIT))?;
    unit_of_package(&unit).with_context(|| format!("{UNIT} has no [Unit]"))
}

/// Makes the package's systemd unit from the one of docs/examples: without its head, which says how to install
/// by hand.
fn unit_of_package(example: &str) -> Option<String> {
    let start = example.find("[Unit]")?;
    Some(example[start..].replace("/usr/local/bin/", "/usr/bin/"))
}

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
