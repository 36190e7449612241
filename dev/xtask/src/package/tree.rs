//! Directories that become packages, and archives with the same bytes for the same files: sorted names, owner root, one
//! time.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::step::program;

/// A directory that becomes a package.
pub(super) struct Tree(PathBuf);

impl Tree {
    /// An empty one at `root`, whatever was there.
    pub(super) fn empty(root: PathBuf) -> anyhow::Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
        }
        fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
        Ok(Self(root))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn directory(&self, path: &str) -> anyhow::Result<PathBuf> {
        let directory = self.0.join(path);
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        Ok(directory)
    }

    pub(super) fn write(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let file = self.parent(path)?;
        fs::write(&file, text).with_context(|| file.display().to_string())
    }

    pub(super) fn copy(&self, from: &Path, path: &str) -> anyhow::Result<()> {
        let file = self.parent(path)?;
        fs::copy(from, &file).with_context(|| from.display().to_string())?;
        Ok(())
    }

    fn parent(&self, path: &str) -> anyhow::Result<PathBuf> {
        let file = self.0.join(path);
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        Ok(file)
    }

    /// Runs a line of shell in the tree.
    pub(super) fn shell(&self, line: &str) -> anyhow::Result<String> {
        let line = format!("set -e; cd \"$1\"; {line}");
        program("sh", &["-c", &line, "sh", text(&self.0)?]).output()
    }

    /// Modes as files of a package have: all may read, programs are for all.
    pub(super) fn set_modes(&self) -> anyhow::Result<()> {
        self.shell("chmod -R u=rwX,go=rX .").map(drop)
    }

    /// The tree as a tar at `archive`, not compressed. `epoch` is the time of each file.
    pub(super) fn tar(&self, archive: &Path, epoch: &str) -> anyhow::Result<()> {
        // Names without `./`, which some readers of images do not expect.
        let pack = "set -e; cd \"$1\"; find . -mindepth 1 -printf '%P\\n' | LC_ALL=C sort \
                    | tar --create --format=ustar --no-recursion --files-from=- --mtime=\"@$3\" \
                    --owner=0 --group=0 --numeric-owner --file=\"$2\"";
        let arguments = ["-c", pack, "sh", text(&self.0)?, text(archive)?, epoch];
        program("sh", &arguments).finish()
    }
}

/// Compresses `archive`; gives the path of what it has become.
pub(super) fn gzip(archive: &Path) -> anyhow::Result<PathBuf> {
    program("gzip", &["--force", "--best", "--no-name", text(archive)?]).finish()?;
    let mut path = archive.as_os_str().to_owned();
    path.push(".gz");
    Ok(path.into())
}

/// A path for a command line.
pub(super) fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))
}
