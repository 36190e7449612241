//! Checks that a second build, in another directory, gives the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::{Order, make, text};
use crate::step::{Steps, program, say};

/// Makes the packages again from a clone of the commit in another directory, and compares the sums.
///
/// # Errors
/// The checkout has changes that are not committed, or a file of the second build differs.
pub(super) fn compare(steps: &mut Steps, first: &Order<'_>) -> anyhow::Result<()> {
    let again = first.target.join("again");
    let source = clone(first.root, &again)?;
    let (target, out) = (again.join("built"), again.join("package"));
    let second = Order {
        source: &source,
        target: &target,
        out: &out,
        ..*first
    };
    make(steps, &second)?;
    let sums_again = sums(&out)?;
    let different = differences(&sums(first.out)?, &sums_again);
    ensure!(
        different.is_empty(),
        "two builds differ in {}: compare {} and {}",
        different.join(", "),
        first.out.display(),
        out.display()
    );
    say(&format!("two builds are equal: {} files", sums_again.len()));
    Ok(())
}

/// Empties the directory `again`, clones the commit of `root` into it, and returns the path of the clone.
fn clone(root: &Path, again: &Path) -> anyhow::Result<PathBuf> {
    let origin = text(root)?;
    let changes = program("git", &["-C", origin, "status", "--porcelain"]).output()?;
    ensure!(
        changes.is_empty(),
        "the second build is of the commit, and the first had changes beside it: commit them\n{changes}"
    );
    if again.exists() {
        fs::remove_dir_all(again).with_context(|| again.display().to_string())?;
    }
    let source = again.join("elsewhere/catamaran");
    program(
        "git",
        &["clone", "--quiet", "--no-hardlinks", origin, text(&source)?],
    )
    .finish()?;
    Ok(source)
}

/// Reads the checksums in the SHA256SUMS of a directory, by file.
fn sums(out: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(out.join("SHA256SUMS"))?;
    let lines = text.lines().filter_map(|line| line.split_once("  "));
    Ok(lines
        .map(|(sum, file)| (file.to_owned(), sum.to_owned()))
        .collect())
}

/// The files of `other` that are missing in `one` or have another checksum there. `one` may have more files, of
/// earlier commands.
fn differences(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let different = other
        .iter()
        .filter(|(name, sum)| one.get(*name) != Some(*sum));
    different.map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_differs_or_is_missing_is_named() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            pairs
                .map(|(file, sum)| ((*file).to_owned(), (*sum).to_owned()))
                .collect()
        };
        let one = of(&[("a.deb", "1"), ("b.tar", "2")]);
        assert_eq!(differences(&one, &one), Vec::<String>::new());
        let other = of(&[("a.deb", "3"), ("c", "1")]);
        assert_eq!(differences(&one, &other), ["a.deb", "c"]);
    }
}
