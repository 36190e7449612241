//! The binaries that are counted: of the working tree, and of a commit.
//!
//! A commit is built in a worktree of its own below the target directory, into the same target
//! directory, so that dependencies that did not change are compiled once. Its binary is kept there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::Profile;
use crate::step::{cargo, program, say};
use crate::test::target_directory;

/// A built binary, and the name of the source that it was built from.
#[derive(Debug)]
pub(super) struct Build {
    name: String,
    binary: PathBuf,
}

impl Build {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn binary(&self) -> &Path {
        &self.binary
    }

    /// Builds the working tree with its uncommitted changes.
    pub(super) fn of_working_tree(root: &Path, profile: Profile) -> anyhow::Result<Self> {
        let target = target_directory(root)?;
        let binary = folder(&target)?.join(format!("here-{}", profile.name()));
        build(root, &target, profile, &binary)?;
        let name = "here".to_owned();
        Ok(Self { name, binary })
    }

    /// Builds `commit`, unless the binary for it exists already.
    pub(super) fn of_commit(root: &Path, commit: &str, profile: Profile) -> anyhow::Result<Self> {
        let target = target_directory(root)?;
        let folder = folder(&target)?;
        let revision = format!("{commit}^{{commit}}");
        let output = git(root, &["rev-parse", "--verify", &revision])
            .with_context(|| format!("no commit {commit}"))?;
        let id = output.trim();
        let binary = folder.join(format!("{id}-{}", profile.name()));
        let name = id[..SHORT.min(id.len())].to_owned();
        if binary.exists() {
            say(&format!("{} is there", binary.display()));
            return Ok(Self { name, binary });
        }
        // The path is always the same, because Cargo compiles a crate again if its path differs.
        let worktree = folder.join("worktree");
        let place = worktree.to_string_lossy();
        remove_worktree(root, &worktree)?;
        git(root, &["worktree", "add", "--detach", &place, id])?;
        let result = build(&worktree, &target, profile, &binary);
        // Removed also if the build failed.
        remove_worktree(root, &worktree)?;
        result?;
        Ok(Self { name, binary })
    }
}

/// Builds what is in `source` and copies the binary to `to`.
fn build(source: &Path, target: &Path, profile: Profile, to: &Path) -> anyhow::Result<()> {
    let target_text = target.to_string_lossy();
    let arguments = [
        "build",
        "--package",
        "catamaran",
        "--profile",
        profile.name(),
        "--target-dir",
        &target_text,
    ];
    cargo(source, &arguments).finish()?;
    let built = target.join(profile.name()).join("catamaran");
    // It is renamed when it is complete: another process may look for it, or may still run the old one.
    let partial = to.with_extension("partial");
    fs::copy(&built, &partial).with_context(|| built.display().to_string())?;
    Ok(fs::rename(partial, to)?)
}

fn folder(target: &Path) -> anyhow::Result<PathBuf> {
    let folder = target.join("instructions");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// Removes the worktree, also one that an interrupted run has left.
fn remove_worktree(root: &Path, worktree: &Path) -> anyhow::Result<()> {
    if worktree.exists() {
        fs::remove_dir_all(worktree).with_context(|| worktree.display().to_string())?;
    }
    git(root, &["worktree", "prune"])?;
    Ok(())
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let root = root.to_string_lossy();
    program("git", &["-C", &root]).args(arguments).output()
}

/// The number of digits of a commit in a heading.
const SHORT: usize = 10;
